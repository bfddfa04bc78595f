"""Guards of a mode at the start of a segment, in compiled code; see :class:`daedal.hybrid.guards.Guards`."""

import numpy as np

from daedal.ensembles.batch_kernel import BATCH, NOT_PLAIN
from daedal.events.accumulation import INTERVALS, WINDOW
from daedal.hybrid.hybrid_constants import BAND, LOOK, NOISE, TINY
from daedal.kernels.callbacks import CALLBACK, call_with, nothing
from daedal.kernels.compilation import part
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, floats
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import copy
from daedal.mechanics.manifold import PROJECTOR

_LOOK = np.array(LOOK)
IMMEDIATE = 111
"""A guard fires immediately: the mode is left before it has started."""

MODE = Struct(
    "MODE",
    [
        ("batch", at(BATCH)),
        ("n", INTEGER),  # length of the state (q, v, r)
        ("n_q", INTEGER),
        ("m", INTEGER),  # number of entries of the guards
        ("direction", i64["m"]),
        ("immediate", i64["m"]),
        ("owner", i64["m"]),  # the transition of each entry
        ("transition_names", i64["m"]),  # the name of the transition, as a number
        ("names", i64["m"]),  # the name of the guard
        ("transitions", i64["n_transitions"]),
        ("n_transitions", INTEGER),
        ("rtol", f64["n"]),
        ("atol", f64["n"]),
        ("projector", at(PROJECTOR)),  # projector in the norm of M
        ("start", CALLBACK),  # nonnegative at points at which a run may start
        ("step", FLOAT),  # typical step of the last segment, or 0
        # working memory
        *[(name, f64["m"]) for name in ("values", "band", "noise", "waits", "found")],
        *[(name, i64["m"]) for name in ("zero", "near", "sides")],
        *[(name, f64["n"]) for name in ("moved", "rounded", "y")],
    ],
)

HYBRID = Struct(
    "HYBRID",
    [
        ("modes", i64["n_modes"]),
        ("n_modes", INTEGER),
        ("member", INTEGER),  # the current or next member
        ("count", INTEGER),  # number of members
        ("under_way", INTEGER),  # whether the current member has started
        ("starts", f64["count", "n_first"]),
        ("first_mode", INTEGER),
        ("n_first", INTEGER),  # length of the member's initial state
        ("first_typical_step", FLOAT),
        ("reasons", i64["count"]),  # how each member ended
        ("mode", INTEGER),  # the current mode of the member
        ("t", FLOAT),
        ("y", f64["longest"]),
        ("longest", INTEGER),  # longest state
        ("running", INTEGER),  # whether inside a segment
        ("is_first", INTEGER),  # whether this is the first segment
        ("place", INTEGER),  # number of stored points of this member
        ("typical_step", FLOAT),
        ("fired", i64["most_guards"]),  # names and values of the guards that ended the last mode
        ("fired_values", f64["most_guards"]),
        ("most_guards", INTEGER),
        ("n_fired", INTEGER),
        ("before", INTEGER),  # the last mode, or -1
        ("crossed", INTEGER),  # name of the transition that left the last mode, if its guard changed sign; otherwise -1
        ("immediate", INTEGER),  # the entry of the guard that fires immediately
        ("n_immediate", INTEGER),  # number of consecutive transitions that fired immediately
        ("t_begin", FLOAT),
        ("t_end", FLOAT),
        ("shortest", FLOAT),
        ("first_step", FLOAT),  # 0 if chosen automatically
        ("rtol", FLOAT),
        ("records_idle", INTEGER),
        ("slices", INTEGER),
        ("times", f64["n_times"]),
        ("n_times", INTEGER),
        ("states", f64["count", "n_times", "n"]),
        ("finals", f64["count", "n"]),
        ("ends", f64["count"]),  # times of the final states
        ("n", INTEGER),
        ("n_events", INTEGER),
        ("max_events", INTEGER),
        ("hopeless", FLOAT),
        ("event_member", i64["most_rows"]),  # transition table
        ("event_t", f64["most_rows"]),
        ("event_name", i64["most_rows"]),
        ("event_direction", i64["most_rows"]),
        ("event_ends", i64["most_rows"]),  # whether the run ended at the transition
        ("n_rows", INTEGER),
        ("most_rows", INTEGER),
        ("n_seen", INTEGER),  # number of transitions taken
        ("recent", f64[WINDOW]),
        ("named_times", f64["n_names", INTERVALS + 1]),
        ("named_counts", i64["n_names"]),
        ("n_names", INTEGER),
    ],
)


@part
def guard_values(mode, roots, t, y, values):
    """Evaluate the guards at a point, without held signs; False if undefined."""
    if call_with(roots.functions, t, y, roots.yp, nothing()) != 0:
        return False
    copy(values, floats(roots.functions.block + 16 * mode.n, mode.m))
    for value in values:
        if np.isnan(value):
            return False
    return True


@part
def memory_of(h, mode, fired, values):
    """Store the values of the guards that have fired."""
    names, kept = h.fired, h.fired_values
    h.n_fired = 0
    for i in range(mode.m):
        if fired[i] != 0:
            names[h.n_fired], kept[h.n_fired] = mode.names[i], values[i]
            h.n_fired += 1


@part
def judge(h, mode, run, t, y, step):
    """Determine directions of the guards, and initially held signs.

    Returns 0, IMMEDIATE if a guard fires at the start, or NOT_PLAIN if the member is left to the driver.
    """
    m, roots = mode.m, run.roots
    values, direction = mode.values, roots.direction
    copy(direction, mode.direction)
    roots.t_begin, roots.held = t, 0
    if not guard_values(mode, roots, t, y, values) or not _noise(mode, roots, t, y, values, mode.noise):
        return NOT_PLAIN
    doubtful = False
    for i in range(m):
        doubtful = doubtful or _is_doubtful(direction[i], values[i]) or abs(values[i]) <= mode.noise[i]
    if not doubtful:
        return 0
    return _look_closer(h, mode, run, roots, t, y, step, values)


@part
def _is_doubtful(direction, value):
    return direction * value > 0.0 or value == 0.0 or direction == 0


@part
def _look_closer(h, mode, run, roots, t, y, step, values):
    m, direction = mode.m, roots.direction
    band, noise, zero, near = mode.band, mode.noise, mode.zero, mode.near
    if not _band(mode, roots, t, y, values, band):
        return NOT_PLAIN
    for i in range(m):
        doubtful = _is_doubtful(direction[i], values[i])
        zero[i] = doubtful and abs(values[i]) <= max(band[i], 4.0 * abs(_fired_before(h, mode, i)))
        near[i] = not doubtful and abs(values[i]) <= noise[i]
    sides, waits = mode.sides, mode.waits
    sides[:] = 0
    waits[:] = 0.0
    if not _leave(mode, run, roots, t, y, step, values, noise, zero, near, sides, waits):
        return NOT_PLAIN
    for i in range(m):
        if near[i]:
            if sides[i] == -direction[i] and waits[i] > 0.0:  # zero up to round-off, and moving towards the fired side
                _hold(roots, i, sides[i], waits[i])
            continue
        went = sides[i] if zero[i] else np.sign(values[i])
        if went != 0.0 and went == direction[i] and mode.immediate[i]:
            if zero[i] and _may_pass(h, mode, i):
                return NOT_PLAIN
            h.immediate = i
            return IMMEDIATE
        if direction[i] == 0:
            direction[i] = -int(went)
        if zero[i] and sides[i] != 0 and waits[i] > 0.0:
            _hold(roots, i, sides[i], waits[i])
        elif zero[i] and sides[i] == 0 and direction[i] != 0 and values[i] != 0.0:
            _hold(roots, i, -direction[i], 0.0)
    return 0


@part
def _hold(roots, i, side, time):
    """Hold the sign of a guard for some time."""
    held_side, held_for = roots.held_side, roots.held_for
    held_side[i], held_for[i] = side, time
    roots.held += 1


@part
def _may_pass(h, mode, i):
    """Whether guard i belongs to the last transition, within the same mode; the driver then decides if it can fire."""
    return h.before == h.mode and h.crossed == mode.transition_names[i]


@part
def _fired_before(h, mode, i):
    """The value of the guard of the given name at the end of the last mode, if the guard fired there."""
    name = mode.names[i]
    for k in range(h.n_fired):
        if h.fired[k] == name:
            return h.fired_values[k]
    return 0.0


@part
def _band(mode, roots, t, y, values, band):
    """Compute the changes of guards due to errors within the tolerance; False if a guard is undefined."""
    rtol, atol, moved, found = mode.rtol, mode.atol, mode.moved, mode.found
    for j in range(mode.n):
        moved[j] = y[j] + BAND * max(rtol[j] * abs(y[j]) + atol[j], TINY) * np.cos(0.7 + 1.3 * j)
    if not guard_values(mode, roots, t, moved, found):
        return False
    for i in range(mode.m):
        band[i] = 2.0 * abs(found[i] - values[i])
    return True


@part
def _noise(mode, roots, t, y, values, noise):
    """Compute the changes of guards due to round-off; False if a guard is undefined."""
    rounded, found = mode.rounded, mode.found
    for j in range(mode.n):
        rounded[j] = y[j] + NOISE * abs(y[j]) * np.cos(0.7 + 1.3 * j)
    if not guard_values(mode, roots, t + NOISE * t, rounded, found):
        return False
    for i in range(mode.m):
        noise[i] = 2.0 * abs(found[i] - values[i]) + TINY
    return True


@part
def _leave(mode, run, roots, t, y, step, values, noise, zero, near, sides, waits):
    """Compute for guards near zero the sign that they take, and when they exceed round-off; False if undefined."""
    k, m = mode.n_q, mode.m
    slope, ahead, found = run.yp, mode.moved, mode.found
    if not zero.any() and not near.any():
        return True
    for part_of_step in _LOOK:
        s = part_of_step * step
        copy(ahead, y)
        for j in range(k):
            v, a = y[k + j], slope[k + j]
            ahead[j] = y[j] + s * v + 0.5 * s * s * a
            ahead[k + j] = v + s * a
        if not guard_values(mode, roots, t + s, ahead, found):
            return False
        settled = True
        for i in range(m):
            change = found[i] - values[i]
            if sides[i] == 0 and abs(change) > noise[i]:
                sides[i] = int(np.sign(change))
            if waits[i] == 0.0 and sides[i] != 0 and found[i] * sides[i] > noise[i]:
                waits[i] = part_of_step * abs(step)
            settled = settled and (not (zero[i] or near[i]) or waits[i] != 0.0)
        if settled:
            break
    return True
