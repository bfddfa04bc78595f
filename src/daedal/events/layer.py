"""The monitoring algorithm: an event is a step that ends in a layer of width 2 delta around s = 0.

The values of a switching function form four intervals, (-inf, -delta), [-delta, 0], (0, delta] and (delta, inf). A step
may stay in its interval, leave the layer or end in it; a step that would jump over the layer is repeated with a smaller
size. The event is thus the end of a step, at which the equations are satisfied, and no root of an interpolant is
needed. This is robust for functions that are flat, or curved on the scale of a step, near their root.

A step that has been repeated too often, as for functions with a jump, is accepted; the root is then located in it.

The check is a hook, which methods call for every step before accepting it.
"""

from daedal.events.switching import BY_SHAPE, LAYER_WATCHED, ROOTS, evaluate_at, resolution, same_sign
from daedal.kernels.callbacks import UNEVALUABLE
from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.records import floats, record_at
from daedal.kernels.system import HOOK, HOOK_DONE, call_hook
from daedal.kernels.vectors import copy

_MOST_TRIES = 8  # maximum number of attempts at a step; below the 10 failures after which DASSL stops
_STRAIGHT = 0.5  # change of slope between two steps, relative to the larger slope, up to which a function is straight
_CUT = 0.5  # ratio of consecutive step sizes below which the method must have reduced the step


@entry(HOOK)
def layer_hook(record, t, h, y):
    """Call the inner hook, and reject a step that jumps over a layer as if it could not be evaluated."""
    roots = record_at(record, ROOTS)
    signal = HOOK_DONE
    if roots.inner != 0:
        signal = call_hook(roots.inner, roots.inner_record, t, h, y)
        if signal < 0:
            return signal
    _take_over(roots, t - h)
    status = evaluate_at(roots.system, roots, t, floats(y, roots.size), roots.slope, roots.tried)
    if status != 0:
        return status
    roots.t_tried = t
    if not _jumps(roots, h):
        return signal
    if roots.tries >= _MOST_TRIES or abs(h) <= 10.0 * resolution(t, h):
        return signal
    roots.tries += 1
    return UNEVALUABLE


@part
def _take_over(roots, t):
    """Start the current step at the end of the last attempt if that attempt was accepted."""
    if abs(t - roots.t_tried) < abs(t - roots.t_start):
        copy(roots.before, roots.start)
        copy(roots.start, roots.tried)
        roots.t_before = roots.t_start
        roots.t_start = roots.t_tried
        roots.tries = 0


@part
def _jumps(roots, h):
    """Whether a function jumps over its layer; functions judged by shape count only if they are not straight.

    A function also counts as not straight if the method reduces its steps before the zero, as it does if the equations
    are undefined after it.
    """
    n = roots.n
    location, crooked = roots.location, roots.crooked
    start, before, tried = roots.start, roots.before, roots.tried
    delta, h_before, jump = roots.delta, roots.t_start - roots.t_before, False
    for i in range(n):
        over = (start[i] > delta[i] and tried[i] < -delta[i]) or (start[i] < -delta[i] and tried[i] > delta[i])
        if location[i] == LAYER_WATCHED:
            jump = jump or over
        elif location[i] == BY_SHAPE:
            slope = (tried[i] - start[i]) / h
            if over and not _is_straight(h_before, start[i] - before[i], slope):
                crooked[i] = 1
                jump = True
            elif abs(h) < _CUT * abs(h_before) and not same_sign(start[i], start[i] + slope * h_before):
                crooked[i] = 1
    return jump


@inlined
def _is_straight(h_before, change, slope):
    """Whether the slope equals that of the previous step, up to a fraction of the larger slope."""
    if h_before == 0.0:
        return False
    earlier = change / h_before
    return abs(slope - earlier) <= _STRAIGHT * max(abs(slope), abs(earlier))
