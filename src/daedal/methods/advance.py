"""The compiled loop of all methods: weights, steps, switching functions and output.

A method is called through pointers: `begin(run)` once, and `step(run)` for every accepted step. Both take the address
of the RUN record and return 0 or the reason to stop (:class:`daedal.kernels.endings.Ending`). A step advances ``run.t``
and the counters, and stores y' at its end and its polynomial in Newton form (`phi`, `psi`, `degree`); everything else
is done here, in code compiled once.

The run is resumable. It returns to Python whenever a buffer is full, an event stops it, or a slice of work is done, and
continues from there at the next call.
"""

from __future__ import annotations

import numpy as np

from daedal.events.roots import begin, begin_layers, locate
from daedal.events.switching import LAYER_WATCHED, STOPPING
from daedal.kernels.compilation import caller, entry, inlined, part
from daedal.kernels.differences import ROWS
from daedal.kernels.endings import Ending
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.norms import set_weights
from daedal.kernels.records import floats, record_at
from daedal.kernels.signatures import f64, i64, void
from daedal.kernels.system import rate
from daedal.methods.run_record import RUN, STEP
from daedal.methods.step_size import LEAST_BEFORE, choose_first_step, shortest_step
from daedal.methods.task import ALIKE, ARC_NUMBERS

_FINISHED, _EVENT_STOP, _HOOK_STOPPED = int(Ending.FINISHED), int(Ending.EVENT_STOP), int(Ending.HOOK_STOPPED)
_BUFFER_FULL, _MAX_STEPS, _STALLED = int(Ending.BUFFER_FULL), int(Ending.MAX_STEPS), int(Ending.STALLED)
_ZERO_WEIGHT, _CALLBACK_RAISED = int(Ending.ZERO_WEIGHT), int(Ending.CALLBACK_RAISED)

_call_step = caller(STEP)

# Without a step limit a run stops if this many steps advance by less than this fraction of the interval.
_STEPS_TO_ADVANCE = 100_000
_LEAST_ADVANCE = 1e-3


@entry(i64(i64))
def advance(address):
    """Integrate until the end, a failure, a terminal event or a full buffer; return the reason."""
    return _advance(record_at(address, RUN), address)


@entry(i64(i64, f64, f64, i64, i64, i64))
def go_on(address, t_end, t_stop, most_steps, y, yp):
    """Integrate to a new end, and write y and y' there to the given addresses; return the reason for stopping.

    The run may have passed the end: the rest of its last step is then searched for events. `most_steps` limits the
    steps of this call; 0 is no limit.
    """
    run = record_at(address, RUN)
    _set_end(run, t_end, t_stop, most_steps)
    reason = _advance(run, address)
    if reason == _FINISHED:
        _read(run, t_end, y, yp)
    return reason


@entry(void(i64, f64, f64, i64))
def set_end(address, t_end, t_stop, most_steps):
    """Set the next end for :func:`advance` after the previous one has been reached."""
    _set_end(record_at(address, RUN), t_end, t_stop, most_steps)


@entry(void(i64, f64, i64, i64))
def read_point(address, t, y, yp):
    """Write y and y' at a time within the last step to the given addresses."""
    _read(record_at(address, RUN), t, y, yp)


@entry(i64(i64))
def pass_event(address):
    """Continue after a terminal event; return 0, or the reason to stop."""
    run = record_at(address, RUN)
    if not run.found:
        return 0
    if begin(run.system, run.roots, run.t_limit, run.t, run.psi, run.phi, run.degree) != 0:
        return _CALLBACK_RAISED
    run.found = 0
    run.searching = 1
    if run.t_limit == run.t:
        run.pending = 0
    return 0


@part
def _set_end(run, t_end, t_stop, most_steps):
    run.t_end = t_end
    run.t_stop = t_stop
    run.max_steps = run.steps + most_steps if most_steps > 0 else 0
    run.steps_seen = run.steps
    run.t_seen = run.t
    if run.n_times == 1:  # a call may end inside a step, which requires its polynomial
        floats(run.times, 1)[0] = run.t if most_steps == 1 else t_end
        run.next_time = 0
    # the last step extends beyond the new end
    if run.started and not run.pending and run.sign * (run.t - run.t_low) > 0.0:
        run.pending = 1
        run.searching = run.has_roots
        run.found = 0
        run.t_limit = step_end(run)


@part
def _read(run, t, y, yp):
    first, second = floats(y, run.n), floats(yp, run.n)
    if t == run.t or run.degree == 0 or run.steps == 0:
        phi, slope = run.phi, run.yp
        for i in range(run.n):
            first[i] = phi[0, i]
            second[i] = slope[i]
    else:
        newton_polynomial(t, run.t, run.psi, run.phi, run.degree, first, second)


@part
def _advance(run, address):
    system, roots = run.system, run.roots
    _empty_buffers(run)
    if not run.started:
        reason = open_run(system, run, roots, address)
        if reason != 0:
            return reason
    taken = 0
    while True:
        if run.pending:
            reason = _process_step(system, run, roots)
            if reason != 0:
                return reason
            if run.steps >= run.last_step if run.fixed else run.sign * (run.t - run.t_end) >= 0.0:
                if not _starts_next_arc(system, run):
                    return _FINISHED
                reason = open_run(system, run, roots, address)
                if reason != 0:
                    return reason
            if system.hook_signal != 0:
                return _HOOK_STOPPED
        if not run.fixed:
            reason = _too_many_steps(run)
            if reason != 0:
                return reason
        if taken >= run.slice or (run.dense and run.rows_stored + ROWS > run.rows):
            return _BUFFER_FULL  # also lets Python check for interrupts
        if not _set_weights(run, run.phi[0]):
            return _ZERO_WEIGHT
        run.h_min = shortest_step(run)
        reason = _call_step(run.step, address)
        if reason != 0:
            return reason
        taken += 1
        run.pending = 1
        run.searching = run.has_roots
        run.found = 0
        run.t_limit = step_end(run)
        _store_step(run)


@part
def _starts_next_arc(system, run):
    """Change the parameters and prepare the next arc as if a run started. False if there is none, or if y' differs so
    little from its value at the start of the arc that ends here that it may be better to ignore the change."""
    if run.arc >= run.arcs:
        return False
    n, count = run.n, run.n_parameters
    width = ARC_NUMBERS + count + 3 * n
    row = floats(run.arc_rows + 8 * width * run.arc, width)
    parameters, phi, y, yp, slope = floats(run.parameters, count), run.phi, run.y, run.yp, run.slope
    for i in range(count):
        parameters[i] = row[ARC_NUMBERS + i]
    for i in range(n):
        y[i] = phi[0, i]
    if rate(system, run.t, y, slope) != 0:
        return False
    begin = ARC_NUMBERS + count
    is_kink = row[1] != 0.0
    for i in range(n):
        before = row[begin + i]
        is_kink = is_kink and abs(slope[i] - before) <= ALIKE * max(abs(slope[i]), abs(before))
    if is_kink:
        return False
    run.t_end = row[0]
    run.t_stop = row[0]
    row[2] = run.steps
    for i in range(n):
        row[begin + n + i] = y[i]
        row[begin + 2 * n + i] = yp[i]
        yp[i] = slope[i]
    run.arc += 1
    if run.arc < run.arcs:
        following = floats(run.arc_rows + 8 * width * run.arc, width)
        for i in range(n):
            following[begin + i] = slope[i]
    run.h = 0.0
    run.degree = 0
    run.slope_known = 0
    run.rejected = 0
    run.error_before = LEAST_BEFORE
    run.stiff_count = 0
    run.nonstiff_count = 0
    return True


@inlined
def _too_many_steps(run):
    """The reason to stop at the given step limit or, by default, if steps make no progress; otherwise 0."""
    if run.max_steps > 0:
        return _MAX_STEPS if run.steps >= run.max_steps else 0
    if run.steps - run.steps_seen < _STEPS_TO_ADVANCE:
        return 0
    stalled = abs(run.t - run.t_seen) < _LEAST_ADVANCE * abs(run.t_end - run.t0)
    run.t_seen, run.steps_seen = run.t, run.steps
    return _STALLED if stalled else 0


@part
def open_run(system, run, roots, address):
    """Initialise values, weights, step size and switching functions; return 0 or the reason to stop."""
    n = run.n
    y, yp, phi = run.y, run.yp, run.phi
    if not _set_weights(run, y):
        return _ZERO_WEIGHT
    if run.h == 0.0:
        run.h = choose_first_step(run)
    if run.degree == 0:  # no polynomial yet: use the tangent, as if a step h preceded the start
        for i in range(n):
            phi[0, i] = y[i]
            phi[1, i] = run.h * yp[i]
        run.psi[0] = run.h
        run.psi[1] = 2.0 * run.h
        run.degree = 1
    run.t_low = run.t
    run.t_seen = run.t
    run.started = 1
    if run.has_roots:
        if begin(system, roots, run.t, run.t, run.psi, phi, run.degree) != 0:
            return _CALLBACK_RAISED
        begin_layers(roots, run.t)
    return _call_step(run.begin, address) if run.begin != 0 else 0


@inlined
def _set_weights(run, y):
    """Set the weights 1 / (rtol |y| + atol); return False if one is infinite."""
    run.zero_weight = set_weights(y, run.rtol, run.atol, run.inverse_weights)
    return run.zero_weight < 0


@inlined
def step_end(run):
    """The end of the step, or of the interval if the step overshoots it."""
    return run.t_end if run.sign * (run.t - run.t_end) > 0.0 else run.t


@part
def _search_end(run, roots):
    """End of the next search for events. Long steps of one-step methods are searched in sections, as many as the degree
    of their polynomial.

    A polynomial of degree s may have s - 1 extrema, as may a switching function along it. Functions evaluated
    at step ends only, and monitored functions whose events are step ends, are searched over the whole step.
    """
    location, crooked = roots.location, roots.crooked
    interior, whole = roots.interior, True
    for i in range(roots.n):
        whole = whole and interior[i] == 0
    whole = whole or run.attempt == 0
    for i in range(roots.n):
        whole = whole or location[i] == LAYER_WATCHED or crooked[i] != 0
    piece = run.h_last / run.degree
    left = np.ceil((run.t - run.t_low) / piece - 0.01) - 1.0
    end = run.t - left * piece
    lost = not (end - run.t_low) * piece > 0.0  # round-off of the time makes the section empty
    last = step_end(run)
    return last if whole or left < 1.0 or lost or run.sign * (end - last) > 0.0 else end


@inlined
def _empty_buffers(run):
    """Start a new slice: the output of the last one has been collected."""
    run.number += 1
    run.rows_before += run.rows_stored
    run.stored = 0
    run.steps_stored = 0
    run.rows_stored = 0
    run.events_stored = 0


@part
def _store_step(run):
    """Store the polynomial of this step for dense output or the history of steps, with the index of its first row."""
    if not (run.each_step or run.dense):
        return
    m, degree = run.steps_stored, run.degree
    run.step_t[m] = run.t
    run.step_h[m] = run.h_last
    run.step_order[m] = degree
    run.step_start[m] = run.rows_before + run.rows_stored
    run.steps_stored = m + 1
    if run.dense:
        psi, phi = run.step_psi, run.phi
        rows = run.coefficients
        for j in range(degree + 1):
            psi[m, j] = run.psi[j]
            for i in range(run.n):
                rows[run.rows_stored + j, i] = phi[j, i]
        run.rows_stored += degree + 1


@part
def _process_step(system, run, roots):
    """Process events and output in the last step; return 0 when done."""
    degree, phi, psi = run.degree, run.phi, run.psi
    while True:
        if run.searching:
            if run.events_stored >= run.event_slots:
                return _BUFFER_FULL
            found, limit, status = locate(system, roots, run.t_low, _search_end(run, roots), run.t, psi, phi, degree)
            if status != 0:
                return _CALLBACK_RAISED
            run.found = found
            run.t_limit = limit
            run.t_low = limit
            run.searching = 0
        terminal = run.found != 0 and _stops(roots)
        if not _store_output(run, terminal):
            return _BUFFER_FULL
        if not run.found and run.t_limit != step_end(run):
            run.searching = run.has_roots
            continue
        if not run.found:
            run.pending = 0
            return 0
        _store_event(run, roots)
        if terminal:
            return _EVENT_STOP
        if begin(system, roots, run.t_limit, run.t, psi, phi, degree) != 0:
            return _CALLBACK_RAISED
        if run.t_limit == step_end(run):  # an event exactly at the end of the step: nothing is left to search
            run.pending = 0
            return 0
        run.searching = 1


@part
def _stops(roots):
    fired = roots.fired
    for i in range(roots.n):
        if abs(fired[i]) == STOPPING:
            return True
    return False


@part
def _store_event(run, roots):
    m = run.events_stored
    fired, all_fired = roots.fired, run.event_fired
    run.event_t[m] = run.t_limit
    for i in range(roots.n):
        all_fired[m, i] = fired[i]
    y, yp = run.event_y, run.event_yp
    newton_polynomial(run.t_limit, run.t, run.psi, run.phi, run.degree, y[m], yp[m])
    run.events_stored = m + 1


@part
def _store_output(run, terminal):
    """Store output up to t_limit, at requested times or at step ends; return False if the buffer is full."""
    if run.each_step:
        if run.t_limit != step_end(run) and not terminal:
            return True
        if run.stored >= run.slots:
            return False
        _store_point(run, run.t_limit)
        return True
    times = floats(run.times, run.n_times)
    while run.next_time < run.n_times:
        t = times[run.next_time]
        if run.sign * (t - run.t_limit) > 0.0:
            break
        if run.stored >= run.slots:
            return False
        _store_point(run, t)
        run.next_time += 1
    return True


@part
def _store_point(run, t):
    """Store the solution at t: computed values at the end of the step, interpolated ones inside."""
    m, n = run.stored, run.n
    y, yp = run.out_y, run.out_yp
    run.out_t[m] = t
    if t == run.t:
        phi, slope = run.phi, run.yp
        for i in range(n):
            y[m, i] = phi[0, i]
            yp[m, i] = slope[i]
    else:
        newton_polynomial(t, run.t, run.psi, run.phi, run.degree, y[m], yp[m])
    run.stored = m + 1
