"""Many steps of DASSL in compiled code: weights, step limits, switching functions and output.

The run is resumable. It returns to Python whenever a buffer is full, an event stops it, or a slice of work is done,
and goes on where it stopped at the next call.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from daedal.events.roots import begin, locate
from daedal.events.switching import STOPPING
from daedal.kernels.compilation import announce, inlined, kernel, part
from daedal.kernels.differences import ROWS
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.norms import norm, set_weights
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats, integers
from daedal.methods.dassl_step import CALLBACK_RAISED, STEP_TAKEN, differences, start, step

FINISHED, EVENT_STOP, HOOK_STOPPED, BUFFER_FULL = 2, 4, 6, 10
MAX_STEPS, TOO_ACCURATE, ZERO_WEIGHT = -1, -2, -3
_ROUNDOFF = np.finfo(float).eps

RUN = np.dtype(
    [
        ("t_end", FLOAT),
        ("t_stop", FLOAT),
        ("h_max", FLOAT),
        ("t_low", FLOAT),
        ("t_limit", FLOAT),
        ("sign", INTEGER),
        ("max_steps", INTEGER),
        ("started", INTEGER),
        ("pending", INTEGER),
        ("searching", INTEGER),
        ("found", INTEGER),
        ("has_roots", INTEGER),
        ("each_step", INTEGER),
        ("dense", INTEGER),
        ("zero_weight", INTEGER),
        ("tight", INTEGER),  # rtol is so small that round-off may exceed the tolerance
        # requested output times, and buffers for one slice of the run
        ("n_times", INTEGER),
        ("times", ADDRESS),
        ("next_time", INTEGER),
        ("slots", INTEGER),
        ("slice", INTEGER),  # steps before the next return to Python
        ("number", INTEGER),  # of the slice
        ("stored", INTEGER),
        ("out_t", ADDRESS),
        ("out_y", ADDRESS),
        ("out_yp", ADDRESS),
        ("steps_stored", INTEGER),
        ("step_t", ADDRESS),
        ("step_h", ADDRESS),
        ("step_order", ADDRESS),
        ("psi", ADDRESS),
        ("rows", INTEGER),
        ("rows_stored", INTEGER),
        ("coefficients", ADDRESS),
        ("event_slots", INTEGER),
        ("events_stored", INTEGER),
        ("event_t", ADDRESS),
        ("event_fired", ADDRESS),
        ("event_y", ADDRESS),
        ("event_yp", ADDRESS),
    ]
)


@kernel
def advance(systems, linears, integrators, runs, root_functions):
    """Integrate until the end, a failure, a terminal event, or a full buffer; returns the reason.

    Each argument is an array of one record.
    """
    system, linear, w, r, roots = systems[0], linears[0], integrators[0], runs[0], root_functions[0]
    weights = floats(w.inverse_weights, w.n)
    rtol, atol = floats(w.rtol, w.n), floats(w.atol, w.n)
    phi = differences(w)
    y = phi[0]
    empty_buffers(r)
    if not r.started:
        r.zero_weight = set_weights(floats(w.y, w.n), rtol, atol, weights)
        if r.zero_weight >= 0:
            return ZERO_WEIGHT
        start(w, w.t, w.h)
        r.started = 1
        if r.has_roots:
            if begin(system, roots, w.t, w.t, w.c.psi, phi, 1, w.h) != 0:
                return CALLBACK_RAISED
            r.t_low = w.t
    taken = 0
    while True:
        if r.pending:
            reason = process_step(system, w, r, roots)
            if reason != 0:
                return reason
            if r.sign * (w.t - r.t_end) >= 0.0:
                return FINISHED
            if system.hook_signal != 0:
                return HOOK_STOPPED
        if w.steps >= r.max_steps:
            return MAX_STEPS
        if taken >= r.slice or (r.dense and r.rows_stored + ROWS > r.rows):
            return BUFFER_FULL  # also lets Python look for an interrupt now and then
        r.zero_weight = set_weights(y, rtol, atol, weights)
        if r.zero_weight >= 0:
            return ZERO_WEIGHT
        if r.tight and 100.0 * _ROUNDOFF * norm(system, w.t, y, weights) > 1.0:
            return TOO_ACCURATE
        w.h_min = max(4.0 * _ROUNDOFF * abs(w.t), 1e-30 * abs(r.t_end - w.t))
        if abs(w.h) > r.h_max:
            w.h = r.sign * r.h_max
        _respect_stop(w, r)
        reason = step(system, linear, w)
        if system.norm_failed:
            return CALLBACK_RAISED
        if reason != STEP_TAKEN:
            return reason
        if isfinite(r.t_stop) and abs(w.t - r.t_stop) <= 10.0 * _ROUNDOFF * (abs(w.t) + abs(w.h_last)):
            w.t = r.t_stop
        taken += 1
        r.pending = 1
        r.searching = r.has_roots
        r.found = 0
        r.t_limit = step_end(w, r)
        store_step(w, r)


@inlined
def step_end(w, r):
    """The end of the step, or of the interval if the step went past it."""
    return r.t_end if r.sign * (w.t - r.t_end) > 0.0 else w.t


@inlined
def empty_buffers(r):
    """Begin a new slice: what the last one stored has been collected."""
    r.number += 1
    r.stored = 0
    r.steps_stored = 0
    r.rows_stored = 0
    r.events_stored = 0


@inlined
def _respect_stop(w, r):
    """Shorten a step that would pass t_stop, and avoid leaving a sliver behind."""
    rest = r.t_stop - w.t
    if r.sign * (w.h - rest) > -1e-8 * abs(rest):
        w.h = rest


@inlined
def store_step(w, r):
    """Keep the polynomial of this step for dense output, and its place in the history."""
    if not (r.each_step or r.dense):
        return
    m, k = r.steps_stored, w.k_last
    floats(r.step_t, r.slots)[m] = w.t
    floats(r.step_h, r.slots)[m] = w.h_last
    integers(r.step_order, r.slots)[m] = k
    r.steps_stored = m + 1
    if r.dense:
        psi, rows, phi = float_rows(r.psi, r.slots, ROWS), float_rows(r.coefficients, r.rows, w.n), differences(w)
        for j in range(k + 1):
            psi[m, j] = w.c.psi[j]
            for i in range(w.n):
                rows[r.rows_stored + j, i] = phi[j, i]
        r.rows_stored += k + 1


@part
def process_step(system, w, r, roots):
    """Events and output inside the step just taken; returns 0 when all is done."""
    k, phi, psi = w.k_last, differences(w), w.c.psi
    while True:
        if r.searching:
            if r.events_stored >= r.event_slots:
                return BUFFER_FULL
            found, limit, status = locate(system, roots, r.t_low, step_end(w, r), w.t, psi, phi, k)
            if status != 0:
                return CALLBACK_RAISED
            r.found = found
            r.t_limit = limit
            r.t_low = limit
            r.searching = 0
        terminal = r.found != 0 and _stops(roots)
        if not _store_output(w, r, terminal):
            return BUFFER_FULL
        if not r.found:
            r.pending = 0
            return 0
        _store_event(w, r, roots)
        if terminal:
            return EVENT_STOP
        if begin(system, roots, r.t_limit, w.t, psi, phi, k, w.h_last) != 0:
            return CALLBACK_RAISED
        if r.t_limit == step_end(w, r):  # an event at the very end of the step: nothing is left to search
            r.pending = 0
            return 0
        r.searching = 1


@part
def _stops(roots):
    fired = integers(roots.fired, roots.n)
    for i in range(roots.n):
        if abs(fired[i]) == STOPPING:
            return True
    return False


@part
def _store_event(w, r, roots):
    m = r.events_stored
    fired, times = integers(roots.fired, roots.n), floats(r.event_t, r.event_slots)
    all_fired = integers(r.event_fired, r.event_slots * roots.n)
    times[m] = r.t_limit
    for i in range(roots.n):
        all_fired[m * roots.n + i] = fired[i]
    y, yp = float_rows(r.event_y, r.event_slots, w.n), float_rows(r.event_yp, r.event_slots, w.n)
    newton_polynomial(r.t_limit, w.t, w.c.psi, differences(w), w.k_last, y[m], yp[m])
    r.events_stored = m + 1


@part
def _store_output(w, r, terminal):
    """Output up to t_limit: at the requested times, or at the end of the step. False when the buffer is full."""
    if r.each_step:
        if r.t_limit != step_end(w, r) and not terminal:
            return True
        if r.stored >= r.slots:
            return False
        _store_point(w, r, r.t_limit)
        return True
    times = floats(r.times, r.n_times)
    while r.next_time < r.n_times:
        t = times[r.next_time]
        if r.sign * (t - r.t_limit) > 0.0:
            break
        if r.stored >= r.slots:
            return False
        _store_point(w, r, t)
        r.next_time += 1
    return True


@part
def _store_point(w, r, t):
    """Store the solution at t: the computed values at the end of the step, the interpolant inside it."""
    m = r.stored
    times = floats(r.out_t, r.slots)
    y, yp = float_rows(r.out_y, r.slots, w.n), float_rows(r.out_yp, r.slots, w.n)
    times[m] = t
    if t == w.t:
        phi, slope = differences(w), floats(w.yp, w.n)
        for i in range(w.n):
            y[m, i] = phi[0, i]
            yp[m, i] = slope[i]
    else:
        newton_polynomial(t, w.t, w.c.psi, differences(w), w.k_last, y[m], yp[m])
    r.stored = m + 1


announce(advance, "the DASSL integrator")
