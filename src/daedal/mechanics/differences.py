r"""Compiled difference quotients for constraint derivatives, with increments chosen along the run.

A column of G is a central difference of second order, 2 calls. The velocity level and the bias are the first and second
derivative of phi(s) = g(t + s, q + s v), to sixth order from the same 6 calls; time needs no separate differences.

The increments follow from two numbers per coordinate, found by :func:`search`: the length L over which the derivative
changes, and the rounding error of g, as a fraction n of its change over L. The errors

    G:  (h/L)^2 / 6 + n L/h            bias:  (s/L)^6 / 560 + 6 n (L/s)^2

are minimal near h = (3 n)^{1/3} L and s = c n^{1/8} L. Quotients are compared from the smallest increment upwards until
the first disagrees. If they were compared from the largest downwards, an increment of whole periods would suggest that
nothing depends on the coordinate.
"""

import numpy as np

from daedal.kernels.compilation import entry, part
from daedal.kernels.records import floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import add_product, copy
from daedal.mechanics.constrained import CONSTRAINED, fetch

_EPS = float(np.finfo(float).eps)
_RATIO = 10.0  # ratio of consecutive increments in a search
_LEAST = 1e-11  # first increment of a search, as a fraction of the coordinate
_SMALLEST = 1e-24  # lower bound of the first increment, as a fraction of the largest coordinate, or of 1
_AGREE, _AGREE_EVEN = 1e-6, 1e-4
_MARGIN = 10.0  # safety factor on the estimated rounding errors
_ROUGHLY = 1e-6
_FEATURE = 1e3  # change, in rounding errors, above which a coordinate without influence so far counts as relevant
_BISECTIONS = 12  # number of bisections that locate the first change of a constraint
_RAMP = 1e-2  # a first change below this fraction of the whole change belongs to a ramp, not to round-off
_BEYOND = 1e6  # up to this multiple of the increment, a first change must grow on both sides to count as round-off
_LONGEST = 0.1  # largest increment, as a fraction of the coordinate or of the interval
_ALONG = 1.36  # s = _ALONG n^{1/8} L is 1.5 % of L if n is the unit round-off
_NOISIEST = 1e-4

_DISAGREE = 1e-2  # relative difference of quotients along the line up to which their combination has seven digits
_DISAGREE_JACOBIAN = 1e-6
_TOO_NOISY, _EXPECTED = 1e-9, 100.0
_NOISY_LINE = 1e-6  # largest round-off of a quotient (50 rounding errors), relative to the terms of G v
_FREE_SEARCHES, _EVALUATIONS_PER_SEARCH, _WAIT = 50, 20, 50


@part
def all_constraints(c, t, state, target):
    """Evaluate the position constraints, followed by the velocity constraints; returns a status."""
    nx = c.nx
    if c.all_g > 0:
        status = fetch(c.constraint, t, state, nx, c.all_g)
        if status != 0:
            return status
        copy(target, floats(c.constraint.block + 8 * nx, c.all_g))
    if c.all_v > 0:
        status = fetch(c.velocity_constraint, t, state, 2 * nx, c.all_v)
        if status != 0:
            return status
        copy(target[c.all_g :], floats(c.velocity_constraint.block + 16 * nx, c.all_v))
    return 0


# --- the search for increments --------------------------------------------------------------------------------------


@part
def search(c, t, anywhere):
    """Choose increments at the variables in ``c.state``; returns 0, or a status if the constraints cannot be evaluated.

    With `anywhere`, coordinates without visible influence may be changed by 1 or more, and times may precede the start
    of the run; exceptions raised at such points must be ignored.
    """
    nx, state, shifted = c.nx, c.state, c.shifted
    increments, singles = c.increments[0], c.increments[1]
    copy(shifted, state)
    status = all_constraints(c, t, state, c.probes[0])
    if status != 0:
        return status
    c.searches += 1
    _sizes_of_terms(c, t, shifted)
    largest = 0.0
    for j in range(nx):
        largest = max(largest, abs(state[j]))
    usual = min(1.0, largest) if largest > 0.0 else 1.0
    for j in range(nx):
        size = abs(state[j])
        low = max(_LEAST * (size if size > 0.0 else usual), _SMALLEST * max(1.0, largest))
        high = _LONGEST * max(1.0, largest) if anywhere else max(_LONGEST * size, 3.0 * increments[j])
        length, noise, farthest = _scale(c, t, shifted, j, low, high)
        along = min(_ALONG * noise**0.125 * length, 0.3 * length, farthest)
        single = min((3.0 * noise) ** (1.0 / 3.0), 0.1) * length
        if length == 0.0:  # no dependence at this point
            length = max(size, usual)
            along, single = _ALONG * _EPS**0.125 * length, (3.0 * _EPS) ** (1.0 / 3.0) * length
            if not anywhere and increments[j] >= along:
                continue
        elif length == np.inf:  # linear as far as tested, so any increment is suitable
            along = max(_ALONG * noise**0.125 * max(size, usual), farthest / 3.0)
            single = along
        increments[j], singles[j] = along, single
    if not c.autonomous:
        _search_time(c, t, shifted, anywhere)
    return 0


@part
def _search_time(c, t, shifted, anywhere):
    """Choose the increment of time; unless `anywhere`, the times tested lie within the run if possible."""
    span, resolution = abs(c.t_last - c.t_first), 4.0 * _EPS * abs(t)
    longest = _LONGEST * span
    slowest = _ALONG * _EPS**0.125 * longest
    high = longest if anywhere else max(3.0 * slowest, min(longest, abs(t - c.t_first), abs(t - c.t_last)))
    length, noise, farthest = _scale(c, t, shifted, c.nx, max(1e-12 * span, resolution), high)
    if 0.0 < length < np.inf:
        length = min(length, longest)
        slowest = min(_ALONG * noise**0.125 * length, 0.3 * length, farthest)
    elif anywhere:
        slowest = max(slowest, farthest / 3.0)
    c.time_increment = max(slowest, resolution)


@part
def _sizes_of_terms(c, t, shifted):
    """Sizes of the terms that each constraint sums, roughly sum_j |G_ij q_j|, from one-sided differences."""
    nx, rows = c.nx, c.all_g + c.all_v
    here, ahead, sizes = c.probes[0], c.probes[1], c.probes[7]
    sizes[:] = 0.0
    for j in range(nx + 1):
        kept = t if j == nx else shifted[j]
        if kept == 0.0 or (j == nx and c.autonomous):
            continue
        moved = kept * (1.0 + _ROUGHLY)
        if j < nx:
            shifted[j] = moved
        status = all_constraints(c, moved if j == nx else t, shifted, ahead)
        if j < nx:
            shifted[j] = kept
        if status == 0:
            for i in range(rows):
                sizes[i] += abs(ahead[i] - here[i]) / _ROUGHLY


@part
def _scale(c, t, shifted, j, low, high):
    """Length over which derivatives with respect to z_j (or t, j = nx) change, and the relative round-off of changes.

    Also returns the increment at which the change appeared; larger ones are not examined. The length is 0 if no
    constraint depends on the variable, infinite if all constraints are linear as far as tested.
    """
    nx, rows = c.nx, c.all_g + c.all_v
    probes = c.probes
    here, ahead, behind, odd_before = probes[0], probes[1], probes[2], probes[3]
    even_before, noise, steady, sizes = probes[4], probes[5], probes[6], probes[7]
    noise[:] = 0.0
    steady[:] = 0.0
    kept = t if j == nx else shifted[j]
    length, seen, before, h = np.inf, False, 0.0, low
    while length == np.inf:
        unsettled = 0.0
        up, down = kept + h, kept - h
        half = 0.5 * (up - down)
        if half > 0.0:
            status = _both_sides(c, t, shifted, j, up, down, ahead, behind)
            if status != 0:
                break
            for i in range(rows):
                odd = 0.5 * (ahead[i] - behind[i]) / half
                even = (ahead[i] - 2.0 * here[i] + behind[i]) / (half * half)
                size = abs(ahead[i]) + abs(here[i]) + abs(behind[i]) + max(sizes[i], abs(odd * kept))
                noise[i] = max(noise[i], _EPS * size)
                move = max(abs(ahead[i] - here[i]), abs(behind[i] - here[i]))
                seen = seen or move > 0.0
                if before > 0.0:
                    if odd_before[i] == 0.0 and even_before[i] == 0.0 and move > _FEATURE * noise[i]:
                        # flat up to the last increment: a dependence begins here, or was hidden by the rounding of
                        # large terms
                        jump = _step_of_rounding(c, t, shifted, j, kept, before, h, high, i)
                        if jump == 0.0:
                            length = min(length, half)
                        noise[i] = max(noise[i], jump)
                    change, change_even = abs(odd - odd_before[i]), abs(even - even_before[i])
                    if before < 2.0 * low:
                        noise[i] = max(noise[i], min(before * change, 1e-4 * size))
                    # a quotient that vanishes by accident is compared with the opposite one
                    rounding, usual = _MARGIN * noise[i] / before, abs(odd_before[i]) + half * abs(even_before[i])
                    if change > _AGREE * usual + rounding:
                        if steady[i] == 1.0 or steady[i] == 3.0:
                            length = min(length, half / np.sqrt(6.0 * change / usual))
                        else:
                            unsettled = max(unsettled, abs(odd))
                    elif abs(odd) > rounding and steady[i] != 1.0 and steady[i] != 3.0:
                        steady[i] += 1.0
                    rounding, usual = 4.0 * rounding / before, usual / half
                    if change_even > _AGREE_EVEN * usual + rounding:
                        if steady[i] >= 2.0:
                            length = min(length, half / np.sqrt(12.0 * change_even / usual))
                    elif abs(even) > rounding and steady[i] < 2.0:
                        steady[i] += 2.0
                odd_before[i], even_before[i] = odd, even
            before = half
        if h >= high:
            break
        h = min(_RATIO * h, high)
    if not seen:
        return 0.0, _EPS, before
    if length == np.inf and unsettled > 0.0:
        length = before = _descend(c, t, shifted, j, kept, before, low, unsettled)
    if length == np.inf:  # for a quadratic function, the change of the gradient must not hide the gradient
        for i in range(rows):
            if abs(even_before[i]) * before > abs(odd_before[i]):
                before = abs(odd_before[i]) / abs(even_before[i])
    least, reach = _NOISIEST, length if length < np.inf else max(abs(kept), before)
    for i in range(rows):
        change = abs(odd_before[i]) * reach + 0.5 * abs(even_before[i]) * reach * reach
        if change > 0.0:
            least = min(least, noise[i] / change)
    return length, max(least, _EPS), before


@part
def _step_of_rounding(c, t, shifted, j, kept, low, h, high, i):
    """Size of the first change of constraint i between increments low and h; 0 if it is not a rounding error.

    The round-off of cancelling terms whose derivatives vanish as well, such as 20 + 20 cos q near q = pi, is not
    visible otherwise. A change hidden by round-off starts with a step, unlike a ramp, and continues on both sides,
    unlike a jump.
    """
    here, ahead, behind = c.probes[0, i], c.probes[1], c.probes[2]
    whole = max(abs(ahead[i] - here), abs(behind[i] - here))
    least, far, end, nearer = whole, h, h, 0.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + end)
        if _both_sides(c, t, shifted, j, kept + middle, kept - middle, ahead, behind) != 0:
            break
        move = max(abs(ahead[i] - here), abs(behind[i] - here))
        if move > 0.0:
            end, least = middle, min(least, move)
        else:
            low = middle
    while least > _RAMP * whole and nearer <= 2.0 * least and far < min(_BEYOND * h, high):
        far = min(_RATIO * far, high)
        if _both_sides(c, t, shifted, j, kept + far, kept - far, ahead, behind) != 0:
            break
        nearer = min(abs(ahead[i] - here), abs(behind[i] - here))
    _both_sides(c, t, shifted, j, kept + h, kept - h, ahead, behind)
    return least if nearer > 2.0 * least else 0.0


@part
def _descend(c, t, shifted, j, kept, high, low, largest):
    """Increment below which a quotient that never converges, as for x^3 at 0, is negligible relative to its maximum."""
    ahead, behind, steady = c.probes[1], c.probes[2], c.probes[6]
    h, quotient = high, largest
    while h > low and quotient > _AGREE * largest:
        h /= _RATIO
        up, down = kept + h, kept - h
        if not up > down or _both_sides(c, t, shifted, j, up, down, ahead, behind) != 0:
            break
        quotient = 0.0
        for i in range(steady.size):
            if steady[i] == 0.0 or steady[i] == 2.0:
                quotient = max(quotient, abs(ahead[i] - behind[i]) / (up - down))
    return h


@part
def _both_sides(c, t, shifted, j, up, down, ahead, behind):
    """Evaluate all constraints with z_j (or t, j = nx) set to `up` and to `down`; returns a status."""
    if j == c.nx:
        return all_constraints(c, up, shifted, ahead) or all_constraints(c, down, shifted, behind)
    kept = shifted[j]
    shifted[j] = up
    status = all_constraints(c, t, shifted, ahead)
    if status == 0:
        shifted[j] = down
        status = all_constraints(c, t, shifted, behind)
    shifted[j] = kept
    return status


@part
def may_search(c):
    """Whether another search for increments is allowed: not soon after one without effect, and not too often."""
    return c.evaluations >= c.patience and c.searches < _FREE_SEARCHES + c.evaluations // _EVALUATIONS_PER_SEARCH


@part
def did_not_help(c):
    """Delay the next search, each time by a longer interval, since changes of increments disturb a method."""
    c.patience = c.evaluations + _WAIT * c.searches


@entry(i64(i64, f64, f64[:]))
def find_increments(system, t, z):
    """Choose increments for a run from (t, z) and store them in the record; 0, or a status if evaluation fails."""
    c = record_at(system, CONSTRAINED)
    copy(c.state, z)
    return search(c, t, True)


# --- derivatives ------------------------------------------------------------------------------------------------------


@part
def differentiate(c, function, t, state, variable, jacobian):
    """d function / d z_j for nx variables from `variable` on, by central differences.

    Returns a status, and whether the increments have become so short that rounding errors dominate.
    """
    nx, rows, n_arguments = c.nx, jacobian.shape[0], variable + c.nx
    shifted, increments, singles = c.shifted, c.increments[0], c.increments[1]
    copy(shifted, state[:n_arguments])
    values = floats(function.block + 8 * n_arguments, rows)
    too_noisy = False
    for j in range(nx):
        kept = state[variable + j]
        h = singles[j] if variable == 0 else max(abs(kept), 1.0)
        up, down = kept + h, kept - h
        if not up > down:  # increments were chosen when this coordinate was far smaller
            up, down = kept + 4.0 * _EPS * abs(kept), kept - 4.0 * _EPS * abs(kept)
            too_noisy = True
        shifted[variable + j] = up
        status = fetch(function, t, shifted, n_arguments, rows)
        if status != 0:
            return status, False
        largest = 0.0
        for i in range(rows):
            jacobian[i, j] = values[i]
            largest = max(largest, abs(values[i]))
        shifted[variable + j] = down
        status = fetch(function, t, shifted, n_arguments, rows)
        if status != 0:
            return status, False
        clearest = np.inf
        for i in range(rows):
            change = jacobian[i, j] - values[i]
            jacobian[i, j] = change / (up - down)
            if change != 0.0:
                size = abs(values[i]) + abs(jacobian[i, j] * kept)
                clearest = min(clearest, _EPS * size / abs(change))
        shifted[variable + j] = kept
        if variable == 0 and _TOO_NOISY < clearest < np.inf:
            n = (h / (1.05 * increments[j])) ** 4.8  # ratio to the length for which the increments were chosen
            too_noisy = too_noisy or clearest > _EXPECTED * n ** (2.0 / 3.0)
    return 0, too_noisy


@part
def differentiate_accurately(c, function, t, state, jacobian):
    """The same derivatives with respect to the coordinates to sixth order, at three times the cost."""
    nx, rows = c.nx, jacobian.shape[0]
    shifted, increments = c.shifted, c.increments[0]
    copy(shifted, state[:nx])
    values, ahead = floats(function.block + 8 * nx, rows), c.probes[0]
    for j in range(nx):
        kept = state[j]
        h = 0.5 * ((kept + increments[j]) - (kept - increments[j]))
        jacobian[:, j] = 0.0
        for k in range(1, 4):
            shifted[j] = kept + k * h
            status = fetch(function, t, shifted, nx, rows)
            if status != 0:
                return status
            copy(ahead, values)
            shifted[j] = kept - k * h
            status = fetch(function, t, shifted, nx, rows)
            if status != 0:
                return status
            for i in range(rows):
                jacobian[i, j] += (45.0, -9.0, 1.0)[k - 1] / (60.0 * h) * (ahead[i] - values[i])
        shifted[j] = kept
    return 0


@part
def along_line(c, function, t, state, n_arguments, rows, first, second, moving):
    """First and second derivative of f(t + s, q + s v[, v]) at s = 0, to sixth order; of f(t + s, q) if not `moving`.

    Returns a status, and whether quotients with different increments disagree.
    """
    nx = c.nx
    values, shifted = floats(function.block + 8 * n_arguments, rows), c.shifted
    increments, probes = c.increments[0], c.probes
    first[:] = 0.0
    second[:] = 0.0
    speed = 0.0 if c.autonomous else 1.0 / c.time_increment
    for j in range(nx):
        speed = max(speed, moving * abs(state[nx + j]) / increments[j])
    if speed == 0.0:
        return 0, False
    s = 1.0 / speed
    if not c.autonomous:
        s = min(s, max(abs(c.t_last - t), 4e-3 * abs(c.t_last - c.t_first)) / 3.0)
        s = (t + s) - t  # avoids rounding of times
    copy(shifted, state[:n_arguments])
    for k in range(-3, 4):
        for j in range(nx):
            shifted[j] = state[j] + moving * k * s * state[nx + j]
        status = fetch(function, t if c.autonomous else t + k * s, shifted, n_arguments, rows)
        if status != 0:
            return status, False
        copy(probes[k + 3], values)
    disagree, of_velocity = False, n_arguments > nx
    for i in range(rows):
        here, row = probes[3, i], i + (c.all_g if of_velocity else 0)
        d1 = (probes[4, i] - probes[2, i]) / (2.0 * s)
        d2 = (probes[5, i] - probes[1, i]) / (4.0 * s)
        d3 = (probes[6, i] - probes[0, i]) / (6.0 * s)
        b1 = (probes[4, i] - 2.0 * here + probes[2, i]) / (s * s)
        b2 = (probes[5, i] - 2.0 * here + probes[1, i]) / (4.0 * s * s)
        b3 = (probes[6, i] - 2.0 * here + probes[0, i]) / (9.0 * s * s)
        first[i] = 1.5 * d1 - 0.6 * d2 + 0.1 * d3
        second[i] = 1.5 * b1 - 0.6 * b2 + 0.1 * b3
        terms, size = _terms(c, state, row, nx if of_velocity else 0)
        size += abs(probes[6, i]) + abs(here) + abs(probes[0, i])
        noise = 50.0 * _EPS * size / s
        if not of_velocity and noise > _NOISY_LINE * terms > 0.0:
            disagree = True
        rate = abs(d1) + abs(d2) + (0.015 * terms / s if of_velocity else terms)
        if abs(d1 - d2) > _DISAGREE * rate + noise or abs(d2 - d3) > 2.0 * _DISAGREE * rate + noise:
            disagree = True
        rate = abs(b1) + abs(b2) + 0.015 * rate / s
        if not of_velocity and max(abs(b1 - b2), 0.5 * abs(b2 - b3)) > _DISAGREE * rate + noise / s:
            disagree = True
    return 0, disagree


@part
def _terms(c, state, row, variable):
    """Sizes of the terms of K_i v, and of K_i z with z from `variable` on, with the latest K."""
    nx, jacobian = c.nx, c.all_jacobian[row]
    terms, size = 0.0, 0.0
    for j in range(nx):
        terms += abs(jacobian[j] * state[nx + j])
        size += abs(jacobian[j] * state[variable + j])
    return terms, size


@part
def contradicts(c, state, rate):
    """Whether G v of time-independent constraints differs from their derivative along the motion."""
    nx, singles = c.nx, c.increments[1]
    for i in range(c.all_g):
        terms, size = _terms(c, state, i, 0)
        terms += abs(rate[i])
        rounding = 0.0
        for j in range(nx):
            rounding += abs(state[nx + j]) / singles[j]
        value = add_product(0.0, c.all_jacobian[i], state[nx : 2 * nx])
        if abs(value - rate[i]) > _DISAGREE_JACOBIAN * terms + 20.0 * _EPS * size * rounding:
            return True
    return False
