"""Members that pass through modes, in one compiled loop: the common cases of :mod:`daedal.hybrid.hybrid_run`.

A segment in a mode is a run of its batch (:mod:`daedal.ensembles.batch_kernel`) with the guards as terminal events. It
is followed by the transition, its reset and the projection onto the constraints of the next mode. In other cases
(guards that fire immediately, several at the same time, accumulation, a mode without a loop) the member is returned
with a code, and the driver runs it.
"""

import numpy as np

from daedal.ensembles.batch_kernel import MEMBER, NOT_PLAIN, NOT_PROJECTED, NOT_READY, restore
from daedal.ensembles.guards_kernel import HYBRID, IMMEDIATE, MODE, guard_values, judge, memory_of
from daedal.ensembles.mechanism_kernel import MECHANISMS
from daedal.events.accumulation import CLOSE, EVEN, FEW, HOPELESS, INTERVALS, RESOLUTION, WINDOW
from daedal.hybrid.hybrid_constants import IDLE, MOST_IMMEDIATE, SHORT
from daedal.kernels.callbacks import CALLBACK, call_with, is_given, nothing
from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.endings import Ending
from daedal.kernels.records import INTEGER, Struct, address_of, data_of, floats, record_at
from daedal.kernels.signatures import i64, void
from daedal.kernels.vectors import copy, largest
from daedal.mechanics.manifold import project_point
from daedal.mechanics.readiness import settle
from daedal.methods.advance import advance

_FINISHED, _EVENT_STOP, _BUFFER_FULL = int(Ending.FINISHED), int(Ending.EVENT_STOP), int(Ending.BUFFER_FULL)
ENDS = -2
"""Number of a mode that ends the run."""

TRANSITION = Struct(
    "TRANSITION",
    [
        ("name", INTEGER),
        ("decision", CALLBACK),  # returns an index into `targets`; 0 if there is only one target
        ("targets", i64["n_targets"]),  # numbers of the modes: -1 for a mode without a loop, or ENDS
        ("n_targets", INTEGER),
        ("reset", CALLBACK),  # reset of (q, v[, r]); 0 if the state is unchanged
        ("n_reset", INTEGER),
        ("projects", INTEGER),
    ],
)

_call = caller(MEMBER)


@entry(void(i64))
def run_through_modes(address):
    """Run the members from ``h.member`` onwards, until all are done, the table is full, or the loop must return."""
    h = record_at(address, HYBRID)
    for _ in range(h.slices):
        if h.member >= h.count or h.n_rows == h.most_rows:
            return
        if not h.under_way:
            _begin_member(h)
        reason = _stretch(h)
        if reason != 0:
            h.reasons[h.member] = reason
            h.under_way = 0
            h.member += 1


@part
def _begin_member(h):
    """Initialise a member, and clear the memory of all others."""
    h.mode, h.t, h.typical_step = h.first_mode, h.t_begin, h.first_typical_step
    h.under_way, h.is_first, h.running = 1, 1, 0
    h.place, h.n_fired, h.n_events, h.n_seen, h.n_immediate, h.before = 0, 0, 0, 0, 0, -1
    h.named_counts[:] = 0
    for k in range(h.n_modes):
        _mode(h, k).step = 0.0
    copy(h.y, h.starts[h.member])


@part
def _stretch(h):
    """Run one slice of a segment and the transition at its end; 0 if the member continues, otherwise how it ended."""
    mode = _mode(h, h.mode)
    batch, run = mode.batch, mode.batch.run
    if not h.running:
        found = _begin(h, mode, batch, run)
        if found != 0:
            return _immediate(h, mode) if found == IMMEDIATE else found
    reason = advance(address_of(run))
    found = _keep_points(h, batch, run)
    if found != 0 or reason == _BUFFER_FULL:
        return found
    h.running = 0
    if reason == _EVENT_STOP:
        return _transition(h, mode, batch, run)
    if reason == _FINISHED:
        _keep_end(h, h.t_end, h.states[h.member, h.n_times - 1])
    return reason


@part
def _mode(h, index):
    return record_at(h.modes[index], MODE)


# --- a stretch --------------------------------------------------------------------------------------------------------


@part
def _begin(h, mode, batch, run):
    """Prepare the next segment; returns 0, or why the member is left to the driver."""
    t, left = h.t, abs(h.t_end - h.t)
    if left < h.shortest:
        return NOT_PLAIN
    y = h.y[: mode.n]
    restore(batch, h.member)
    batch.t0 = t
    copy(batch.starts[0], y)
    found = _call(batch.begin, address_of(batch), 0)
    if found != 0:
        return found
    if h.is_first and not _may_begin(mode, t, y):
        return NOT_READY
    found = judge(h, mode, run, t, y, min(h.typical_step, left))
    if found != 0:
        return found
    run.t, run.t0, run.h = t, t, _first_step(h, mode, left)
    _begin_output(h, run, y)
    h.is_first, h.running, h.n_immediate = 0, 1, 0
    return 0


@part
def _may_begin(mode, t, y):
    """Whether the model allows a run to start here."""
    if not is_given(mode.start):
        return True
    status = call_with(mode.start, t, y, nothing(), nothing())
    return status == 0 and floats(mode.start.block + 8 * mode.n, 1)[0] >= 0.0


@part
def _first_step(h, mode, left):
    """First step: the user's value, or the last step in the mode; 0 if chosen automatically."""
    if h.is_first:
        return min(h.first_step, left)
    if mode.step == 0.0:
        return 0.0
    return min(max(mode.step, SHORT * abs(h.t)), 0.5 * left)


@part
def _begin_output(h, run, y):
    """Write the remaining times; an output time at a transition gets the state after it."""
    times = h.times
    if h.place > 0 and times[h.place - 1] == h.t:
        h.place -= 1
    run.times, run.n_times, run.next_time = data_of(h.times) + 8 * h.place, h.n_times - h.place, 0
    if times[h.place] == h.t:
        run.next_time = 1
        copy(h.states[h.member, h.place], y[: h.n])
        h.place += 1


@part
def _keep_points(h, batch, run):
    """Copy the points stored by a slice, projected onto the constraints."""
    rows = run.out_y
    for m in range(run.stored):
        if not _project(batch, h.times[h.place], rows[m]):
            return NOT_PROJECTED
        copy(h.states[h.member, h.place], rows[m, : h.n])
        h.place += 1
    return 0


@part
def _project(batch, t, y):
    """Project a state in the same way as for output."""
    own = record_at(batch.own, MECHANISMS)
    return own.system.n_c == 0 or project_point(own.projector, own.system, t, y) == 0


@part
def _keep_end(h, t, y):
    """Store the state at the end; also used for an output time there."""
    times = h.times
    h.ends[h.member] = t
    there = h.place > 0 and times[h.place - 1] == t
    copy(h.finals[h.member], h.states[h.member, h.place - 1] if there else y[: h.n])


# --- a transition -----------------------------------------------------------------------------------------------------


@part
def _transition(h, mode, batch, run):
    """Switch to the next mode; returns 0, or why the member is left to the driver."""
    fired = run.event_fired[0]
    entry = _only_one(mode, fired)
    if run.events_stored != 1 or entry < 0:
        return NOT_PLAIN
    t, n = run.event_t[0], mode.n
    y = mode.y
    copy(y, run.event_y[0, :n])
    if not _project(batch, t, y):
        return NOT_PROJECTED
    if run.steps > 0 and abs(t - h.t) > 0.0:
        h.typical_step = mode.step = abs(t - h.t) / run.steps
    h.t = t
    roots, values = run.roots, mode.values
    if not guard_values(mode, roots, t, y, values):
        return NOT_PLAIN
    memory_of(h, mode, fired, values)
    transition, source = _transition_of(mode, entry), h.mode
    found = _take(h, mode, transition, t, y, int(np.sign(fired[entry])))
    h.before, h.crossed = source, transition.name
    if found != 0:
        return found
    return NOT_PLAIN if _accumulates(h, transition.name, t) else 0


@part
def _immediate(h, mode):
    """Leave a mode through the guard that fires immediately; returns 0, or how the member ended."""
    transition, source, y = _transition_of(mode, h.immediate), h.mode, mode.y
    copy(y, h.y[: mode.n])
    h.n_immediate += 1
    if h.n_immediate > MOST_IMMEDIATE:
        return NOT_PLAIN
    found = _take(h, mode, transition, h.t, y, mode.direction[h.immediate])
    h.before, h.crossed, h.n_fired, h.is_first = source, -1, 0, 0
    return found


@part
def _transition_of(mode, entry):
    number = mode.owner[entry]
    return record_at(mode.transitions[number], TRANSITION)


@part
def _take(h, mode, transition, t, y, direction):
    """Change the mode; returns 0, EVENT_STOP if the run ends, or why the member is left to the driver."""
    index, before = _target(transition, t, y), h.mode
    if index == ENDS:
        _note(h, transition.name, direction, True)
        _keep_end(h, t, y)
        return _EVENT_STOP
    if index < 0:
        return NOT_PLAIN
    target = _mode(h, index)
    if not _carried_over(h, transition, mode, target, t, y):
        return NOT_PLAIN
    idle = index == before and _difference(h.y[: target.n], y) <= IDLE * largest(y)
    h.n_events += 1
    if idle:
        target.step = 0.0
    if not idle or h.records_idle:
        _note(h, transition.name, direction, False)
    h.mode = index
    return NOT_PLAIN if h.n_events >= h.max_events else 0


@part
def _note(h, name, direction, ends):
    """Add a row to the table, which must have space for it."""
    row = h.n_rows
    h.event_member[row] = h.member
    h.event_t[row] = h.t
    h.event_name[row] = name
    h.event_direction[row] = direction
    h.event_ends[row] = ends
    h.n_rows += 1


@part
def _only_one(mode, fired):
    """The first entry that fired, if all that fired belong to one transition; otherwise -1."""
    owner, first = mode.owner, -1
    for i in range(mode.m):
        if fired[i] != 0:
            if first < 0:
                first = i
            elif owner[i] != owner[first]:
                return -1
    return first


@part
def _target(transition, t, y):
    """The next mode, or ENDS; -1 if it has no loop."""
    choice = 0
    if is_given(transition.decision):
        if call_with(transition.decision, t, y, nothing(), nothing()) != 0:
            return -1
        number = floats(transition.decision.block + 8 * y.size, 1)[0]
        if not (number >= 0.0 and number < transition.n_targets):
            return -1
        choice = int(number)
    return transition.targets[choice]


@part
def _carried_over(h, transition, mode, target, t, y):
    """Compute the state of the next mode, projected if requested; returns False if this is left to the driver."""
    after = h.y[: target.n]
    after[:] = 0.0
    if is_given(transition.reset):
        if call_with(transition.reset, t, y, nothing(), nothing()) != 0:
            return False
        n = transition.n_reset
        copy(after, floats(transition.reset.block + 8 * mode.n, n))
        if target.n == mode.n:
            copy(after[n:], y[n:])  # r, if the reset omits it
    else:
        copy(after, y)
    for value in after:
        if not np.isfinite(value):
            return False
    if not transition.projects:
        return True
    restore(target.batch, h.member)
    own = record_at(target.batch.own, MECHANISMS)
    return settle(address_of(own.system), address_of(target.projector), t, after)


@part
def _difference(a, b):
    found = 0.0
    for i in range(a.size):
        found = max(found, abs(a[i] - b[i]))
    return found


@part
def _accumulates(h, name, t):
    """Whether transitions accumulate or chatter, as in :class:`daedal.events.accumulation.AccumulationWatch`."""
    recent, seen = h.recent, h.n_seen
    recent[seen % WINDOW] = t
    h.n_seen += 1
    times, counts = h.named_times[name], h.named_counts
    if counts[name] > INTERVALS:
        for i in range(INTERVALS):
            times[i] = times[i + 1]
    times[min(counts[name], INTERVALS)] = t
    counts[name] += 1
    if counts[name] > INTERVALS and _shrink(h, times, t):
        return True
    if h.n_seen >= FEW and abs(t - recent[(h.n_seen - FEW) % WINDOW]) < FEW * RESOLUTION * abs(t):
        return True
    if h.n_seen < WINDOW:
        return False
    speed = abs(t - recent[h.n_seen % WINDOW]) / (WINDOW - 1)
    return abs(h.t_end - t) > HOPELESS * h.hopeless * speed


@part
def _shrink(h, times, t):
    """Whether the last intervals shrink by a constant factor and their limit has nearly been reached."""
    first, last = abs(times[1] - times[0]), abs(times[INTERVALS] - times[INTERVALS - 1])
    if last >= first:
        return False
    if last == 0.0:
        return True
    factor = (last / first) ** (1.0 / (INTERVALS - 1))
    if factor == 1.0:
        return False
    for i in range(INTERVALS - 1):
        before, after = abs(times[i + 1] - times[i]), abs(times[i + 2] - times[i + 1])
        if before == 0.0 or after == 0.0:
            return False
        if abs(after / before - factor) > max(EVEN * (1.0 - factor), EVEN * factor):
            return False
    rest = last * factor / (1.0 - factor)
    return rest <= max(h.rtol * abs(t - h.t_begin), CLOSE * RESOLUTION * abs(t))
