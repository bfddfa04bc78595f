"""Roots of switching functions on the interpolant of a step, as in DASSLRT (BCP section 5.3.3).

A sign change between two points is narrowed to its leftmost root by the Illinois algorithm of Hiebert and Shampine, for
a vector of functions at once. The located time is the right end of the final bracket. The two points are the ends of
the step, or those of a piece in which a zero was isolated (:mod:`daedal.events.enclosure`). For functions that are not
enclosed they may be interior points at which the function turns back towards zero (:mod:`daedal.events.extrema`).
"""

from math import copysign, isfinite

import numpy as np

from daedal.events.enclosure import first_enclosed
from daedal.events.extrema import first_reversal
from daedal.events.switching import LAYER_WATCHED, MUTED, ROOTS_LOCATED, STOPPING, evaluate_on, resolution, same_sign
from daedal.kernels.compilation import inlined, part
from daedal.kernels.vectors import copy

_MAX_BISECTIONS = 200
_AHEAD = 16.0  # distance from a zero, in resolutions, at which the new sign of a function is first determined
_NOISY = 1e-3  # fraction of a step in which the sign of a function near a zero may be round-off
_MOST_PIECES = 50  # maximum number of pieces into which turning functions divide a step
_TOGETHER = 1e-5  # fraction of a step: tangential zeros this close after a root are merged with it


@part
def begin(system, roots, t, t_end, psi, phi, k):
    """Evaluate the functions at the left end of a search, where those that have just fired count as zero."""
    low, fired = roots.low, roots.fired
    status = evaluate_on(system, roots, t, t_end, psi, phi, k, low)
    for i in range(roots.n):
        if fired[i] != 0:
            low[i] = 0.0
    return status


@part
def begin_layers(roots, t):
    """Set the positions relative to the layers at the start; a run that starts in a layer starts after the event."""
    n = roots.n
    low, delta, side = roots.low, roots.delta, roots.side
    copy(roots.start, low)
    copy(roots.before, low)
    for i in range(n):
        side[i] = 0 if not abs(low[i]) > delta[i] else 1 if low[i] > 0.0 else -1
    roots.t_start = t
    roots.t_before = t


@part
def locate(system, roots, t_low, t_high, t_end, psi, phi, k):
    """Find the first event in (t_low, t_high] given the values at t_low.

    Returns (found, time, status); the functions that fired are marked in ``roots.fired`` with the direction of their
    change, doubled if they end the run, and ``roots.low`` holds the values at the right end of the searched interval.
    """
    low, high, last = roots.low, roots.high, roots.last
    fired, aim = roots.fired, roots.aim
    status = evaluate_on(system, roots, t_high, t_end, psi, phi, k, high)
    if status != 0:
        return False, t_high, status
    copy(last, high)
    _take_aim(roots)
    left, resolved = t_low, resolution(t_end, t_high - t_low)
    for _ in range(_MOST_PIECES):
        left, status = _leave_zeros(system, roots, left, resolved, t_high, t_end, psi, phi, k)
        if status != 0:
            return False, left, status
        right, touching, status = first_reversal(system, roots, left, t_high, t_end, psi, phi, k)
        if status != 0:
            return False, left, status
        if roots.encloses != 0:
            left, right, status = first_enclosed(system, roots, left, right, resolved, t_end, psi, phi, k)
            if status != 0:
                return False, left, status
        reached, status = _first_root(system, roots, left, right, resolved, t_high, t_end, psi, phi, k)
        if status != 0:
            return False, reached, status
        if touching >= 0 and abs(right - reached) <= _TOGETHER * abs(t_high - t_low):
            change = 1 if low[touching] < 0.0 else -1
            if aim[touching] == 0 or aim[touching] == change:
                fired[touching] = change
        if _count(roots):
            return True, reached, 0
        if right == t_high and reached == right:
            break
        left = reached
        copy(low, high)
        copy(high, last)
    _enter_layers(roots)
    copy(low, high)
    return _count(roots), t_high, 0


@part
def _take_aim(roots):
    """Store the active directions in ``roots.aim``; monitored functions in their layer, or reaching it, are muted."""
    n = roots.n
    directions, aim, location = roots.direction, roots.aim, roots.location
    side, crooked = roots.side, roots.crooked
    high, delta = roots.high, roots.delta
    for i in range(n):
        aim[i] = directions[i]
        if location[i] != ROOTS_LOCATED:
            lands = abs(high[i]) <= delta[i] and (location[i] == LAYER_WATCHED or crooked[i] != 0)
            if side[i] == 0 or lands:
                aim[i] = MUTED


@part
def _leave_zeros(system, roots, left, resolved, t_high, t_end, psi, phi, k):
    """Find the point at which functions that vanish at the left end, or have just fired, have left zero.


    Near a zero the sign of a function may be round-off: it counts if two points, one twice as far as the other, agree.
    Returns (place, status); the search for roots continues from this place.
    """
    n = roots.n
    low, trial, seen = roots.low, roots.trial, roots.middle
    waiting = False
    for i in range(n):
        seen[i] = 0.0
        waiting = waiting or low[i] == 0.0
    length, ahead, place = abs(t_high - left), _AHEAD * resolved, left
    limit = min(max(_NOISY * length, 4.0 * ahead), length)
    while waiting and ahead < limit:
        place = left + copysign(ahead, t_high - left)
        status = evaluate_on(system, roots, place, t_end, psi, phi, k, trial)
        if status != 0:
            return place, status
        waiting = False
        for i in range(n):
            if low[i] == 0.0:
                if same_sign(seen[i], trial[i]):
                    low[i] = trial[i]
                else:
                    waiting = True
                seen[i] = trial[i]
        ahead *= 2.0
    for i in range(n):
        if low[i] == 0.0:
            low[i] = seen[i]
    return place, 0


@inlined
def _crosses(low, high, aim):
    """Whether the sign changes in the requested direction."""
    if aim == MUTED or not (low < 0.0 < high or high < 0.0 < low):
        return False
    return aim == 0 or (high > low) == (aim > 0)


@inlined
def _arrives(low, high, aim):
    """Whether the function reaches exactly zero from the requested side."""
    return aim != MUTED and high == 0.0 and low != 0.0 and (aim == 0 or (low < 0.0) == (aim > 0))


@part
def _first_root(system, roots, left, right, resolved, t_high, t_end, psi, phi, k):
    """The Illinois algorithm on (left, right]: marks the functions that fire first; returns (end of the bracket or
    `right`, status).

    ``roots.low`` and ``roots.high`` are the values at the ends of the bracket afterwards.
    """
    n = roots.n
    low, high, trial = roots.low, roots.high, roots.trial
    aim, fired, tolerance = roots.aim, roots.fired, roots.tolerance
    alpha, last_side, side, last_leader = 1.0, -1, -1, -1
    width, plateau = np.inf, False
    for i in range(n):
        fired[i] = 0
    for _ in range(_MAX_BISECTIONS):
        leader, steepest, arrived = -1, -1.0, False
        for i in range(n):
            if _crosses(low[i], high[i], aim[i]):
                share = abs(high[i] / (high[i] - low[i]))
                if leader < 0 or share > steepest:
                    leader, steepest = i, share
            elif _arrives(low[i], high[i], aim[i]):
                arrived = True
        if leader < 0 and not arrived:
            return right, 0
        if abs(right - left) <= max(resolved, tolerance[leader] if leader >= 0 else 0.0):
            break
        if leader >= 0:
            if leader != last_leader:
                alpha = 1.0
            elif side == last_side:
                alpha = 2.0 * alpha if side == 0 else 0.5 * alpha
            last_leader, last_side = leader, side
            middle = right - (right - left) * high[leader] / (high[leader] - alpha * low[leader])
            width_before, width = width, abs(right - left)
            slow = width > 0.5 * width_before
            if slow or not isfinite(middle) or not isfinite(high[leader]) or not isfinite(low[leader]):
                middle = 0.5 * (left + right)
            # at the smallest distinguishable distance from an end, at which the bracket is final
            middle = left + copysign(max(abs(middle - left), 0.5 * resolved), right - left)
            middle = right - copysign(max(abs(right - middle), 0.5 * resolved), right - left)
        elif plateau:
            middle = 0.5 * (left + right)
        else:  # zero at the right end: determine since when
            plateau = True
            middle = right - copysign(0.9 * resolved, right - left)
        status = evaluate_on(system, roots, middle, t_end, psi, phi, k, trial)
        if status != 0:
            return middle, status
        on_the_left = False
        for i in range(n):
            if _crosses(low[i], trial[i], aim[i]) or _arrives(low[i], trial[i], aim[i]):
                on_the_left = True
        if on_the_left:
            right, side = middle, 1
            copy(high, trial)
        else:
            left, side = middle, 0
            copy(low, trial)
    return _fire(system, roots, right, resolved, t_high, t_end, psi, phi, k)


@part
def _fire(system, roots, right, resolved, t_high, t_end, psi, phi, k):
    """Mark functions that fire in the bracket, and those less than a resolution later; returns (time, status).

    A function only touches zero if it is exactly zero at the end of the bracket and has its old sign again at two later
    points, or is zero until it has its old sign at the end of the step.
    """
    n = roots.n
    low, high, ahead, last = roots.low, roots.high, roots.trial, roots.last
    aim, fired, touch = roots.aim, roots.fired, roots.touch
    arrived, waiting = False, False
    for i in range(n):
        if _crosses(low[i], high[i], aim[i]):
            fired[i] = 1 if high[i] > low[i] else -1
        elif _arrives(low[i], high[i], aim[i]):
            arrived = True
        elif aim[i] != MUTED:
            waiting = True
    beyond = _AHEAD * resolved
    further = right + copysign(beyond, t_high - right if right != t_high else roots.t_end - right)
    room = abs(t_high - right) > beyond
    if not (arrived and right != roots.t_end) and not (waiting and room):
        for i in range(n):
            if _arrives(low[i], high[i], aim[i]):
                fired[i] = 1 if low[i] < 0.0 else -1
        return right, 0
    status = evaluate_on(system, roots, further, t_end, psi, phi, k, ahead)
    if status != 0:
        return right, status
    late = False
    for i in range(n):
        if _arrives(low[i], high[i], aim[i]):
            behind, seen = ahead[i], 0.0  # zero, or its old sign by round-off: check later points
            while 2.0 * beyond < abs(t_high - right) and (
                behind == 0.0 or (same_sign(low[i], behind) and not same_sign(low[i], seen))
            ):
                beyond *= 2.0
                place = right + copysign(beyond, t_high - right)
                status = evaluate_on(system, roots, place, t_end, psi, phi, k, roots.middle)
                if status != 0:
                    return right, status
                seen, behind = behind, roots.middle[i]
            returns = same_sign(low[i], last[i] if behind == 0.0 else behind)
            if touch[i] or not returns:
                fired[i] = 1 if low[i] < 0.0 else -1
        elif room and fired[i] == 0 and (_crosses(low[i], ahead[i], aim[i]) or _arrives(low[i], ahead[i], aim[i])):
            fired[i] = 1 if low[i] < 0.0 else -1
            late = True
    if late:
        copy(high, ahead)
        return further, 0
    return right, 0


@part
def _enter_layers(roots):
    """Mark the monitored functions whose layer the step has entered; they can fire again after they have left it."""
    n = roots.n
    directions, location, fired = roots.direction, roots.location, roots.fired
    side, crooked = roots.side, roots.crooked
    high, delta = roots.high, roots.delta
    for i in range(n):
        if location[i] == ROOTS_LOCATED:
            continue
        if abs(high[i]) > delta[i]:
            side[i] = 1 if high[i] > 0.0 else -1
        elif side[i] != 0 and (location[i] == LAYER_WATCHED or crooked[i] != 0):
            if directions[i] == 0 or directions[i] == -side[i]:
                fired[i] = -side[i]
            side[i] = 0


@part
def _count(roots):
    """Count the functions that fired, and mark those whose occurrence ends the run; returns whether any has fired."""
    n = roots.n
    fired, count, terminal = roots.fired, roots.count, roots.terminal
    crooked, any_fired = roots.crooked, False
    for i in range(n):
        if fired[i] != 0:
            any_fired = True
            crooked[i] = 0
            count[i] += 1
            if terminal[i] > 0 and count[i] >= terminal[i]:
                fired[i] *= STOPPING
    return any_fired
