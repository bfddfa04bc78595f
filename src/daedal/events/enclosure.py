"""Proof that steps contain no zeros: enclosures of switching functions along the polynomial of a step.

Bounds of a function and of its rate over a piece of the step are computed by a program
(:mod:`daedal.kernels.intervals`), from bounds of the unknowns by the Taylor coefficients of their polynomials about the
midpoint of the piece. A piece is free of zeros if the bounds of the function exclude them, if the function is monotone
with the same sign at both ends, or if the rate is too small to reach zero from these two values. It has exactly one if
the function is monotone and changes sign. Undecided pieces are halved, from left to right, until the first zero has
been isolated.
"""

from math import copysign, isfinite

import numpy as np

from daedal.events.switching import MUTED, evaluate_on
from daedal.kernels.compilation import inlined, part
from daedal.kernels.differences import ROWS
from daedal.kernels.intervals import PROGRAM, enclose
from daedal.kernels.records import ADDRESS, INTEGER, Struct, address_of, at, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import copy

ENCLOSURE = Struct(
    "ENCLOSURE",
    [
        ("program", at(PROGRAM)),
        ("n", INTEGER),  # length of the state
        ("functions", INTEGER),
        *[(name, i64["functions"]) for name in ("index", "values", "rates")],  # function, nodes of value and rate
        ("inputs", INTEGER),
        *[(name, i64["inputs"]) for name in ("nodes", "places")],  # nodes of inputs, indices in (y, y', y''); -1: t
        ("parameters", INTEGER),
        *[(name, i64["parameters"]) for name in ("parameter_nodes", "parameter_places")],
        ("numbers", ADDRESS),  # address of the parameters
        ("basis", f64[ROWS, ROWS]),  # Taylor coefficients of the Newton polynomials, in units of half the piece
        ("following", ADDRESS),  # the next record, with further functions; 0 for the last one
    ],
)
"""Some of the switching functions, with the program that bounds their values and rates."""

_FREE, _CROSSED, _UNDECIDED, _JUMPY = 0, 1, 2, 3  # verdicts on a piece; _JUMPY: undecided, and the function may jump
_DEEPEST = 60
_NOISY_CHANGES = 20  # number of sign changes of a smooth, non-monotone function from which on they count as noise
_ROUNDED = 4e-15  # bound of the rounding error of a polynomial, relative to the sum of the sizes of its terms
_CLOCK = 2.0 * float(np.finfo(float).eps)  # relative uncertainty of the difference of two times
_TINY = 1e-300
_SAME = 1e-8  # largest distance of a value from the interval of its bounds, relative to the sizes of the bounds


@part
def first_enclosed(system, roots, left, right, resolved, t_end, psi, phi, k):
    """Isolate the first zero in (left, right] of the enclosed functions; returns (left, right, status).

    ``roots.low`` and ``roots.high`` are the values at the ends of the interval, before and after the call. Functions
    that remain undecided are recorded; from there on only their values at the ends are compared.
    """
    low, high, search = roots.low, roots.high, roots.search
    begin, end, ends, stack = search.begin, search.end, search.ends, search.stack
    a, b, top, boxes = left, right, 0, 0
    copy(begin, low)
    copy(end, high)
    budget = search.further_boxes if search.doubts > 0 else search.most_boxes
    while True:
        verdict = _judge(roots, a, b, b == right, t_end, psi, phi, k)
        boxes += 1
        if verdict == _UNDECIDED:
            if abs(b - a) <= resolved:
                _leave_noise(roots, a)
                verdict = _CROSSED if _changes(roots) else _FREE
            elif boxes >= budget or top == _DEEPEST:
                _note_doubts(roots, a)
                copy(low, begin)
                search.boxes += boxes
                return a, right, 0
            else:
                copy(stack[top], end)
                ends[top] = b
                top += 1
                b, status = _split(system, roots, a, b, t_end, psi, phi, k)
                if status != 0:
                    return a, b, status
                continue
        if verdict == _CROSSED:
            search.boxes += boxes
            if _others_change(roots):  # a function that is not enclosed has a zero before this piece
                copy(high, begin)
                return left, a, 0
            copy(low, begin)
            copy(high, end)
            return a, b, 0
        if top == 0:
            search.boxes += boxes
            return left, right, 0
        top -= 1
        a, b = b, ends[top]
        copy(begin, end)
        copy(end, stack[top])


@part
def _split(system, roots, a, b, t_end, psi, phi, k):
    """Evaluate the functions at the midpoint of a piece; those that vanish there keep their previous sign."""
    search, middle = roots.search, 0.5 * (a + b)
    begin, end = search.begin, search.end
    status = evaluate_on(system, roots, middle, t_end, psi, phi, k, end)
    for i in range(roots.n):
        if end[i] == 0.0:
            end[i] = copysign(_TINY, begin[i]) if begin[i] != 0.0 else 0.0
    return middle, status


@inlined
def _is_wanted(low, high, aim):
    """Whether the sign changes in the requested direction."""
    return (low < 0.0 < high or high < 0.0 < low) and aim != MUTED and (aim == 0 or (high > low) == (aim > 0))


@part
def _changes(roots):
    """Whether an enclosed function changes sign in the piece, in the requested direction."""
    search, aim = roots.search, roots.aim
    enclosed, begin, end = search.enclosed, search.begin, search.end
    for i in range(roots.n):
        if enclosed[i] != 0 and _is_wanted(begin[i], end[i], aim[i]):
            return True
    return False


@part
def _others_change(roots):
    """Whether a function that is not enclosed has changed sign or reached zero before the piece."""
    search, aim, low = roots.search, roots.aim, roots.low
    enclosed, begin = search.enclosed, search.begin
    for i in range(roots.n):
        if enclosed[i] == 0 and low[i] != 0.0 and (begin[i] == 0.0 or _is_wanted(low[i], begin[i], aim[i])):
            return True
    return False


@part
def _note_doubts(roots, t):
    """Record the place at which the existence of zeros was undecided, once for each function."""
    search = roots.search
    verdicts, doubtful, doubt = search.verdicts, search.doubtful, search.doubt
    for i in range(roots.n):
        if verdicts[i] >= _UNDECIDED and doubtful[i] == 0:
            doubtful[i] = 1
            doubt[i] = t
            search.doubts += 1


@part
def _leave_noise(roots, t):
    """Sample, from t on, smooth functions that repeatedly change sign within round-off."""
    search, interior = roots.search, roots.interior
    verdicts, enclosed, doubtful, doubt = search.verdicts, search.enclosed, search.doubtful, search.doubt
    rough = search.rough
    for i in range(roots.n):
        if verdicts[i] == _UNDECIDED and enclosed[i] != 0 and _is_wanted(search.begin[i], search.end[i], roots.aim[i]):
            rough[i] += 1
            if rough[i] < _NOISY_CHANGES:
                continue
            enclosed[i] = 0
            interior[i] = 1
            if doubtful[i] == 0:
                doubtful[i] = 1
                doubt[i] = t
                search.doubts += 1


# --- one piece --------------------------------------------------------------------------------------------------------


@part
def _judge(roots, a, b, is_last, t_end, psi, phi, k):
    """Store the verdicts on all functions over the piece between a and b; return the verdict on the piece."""
    search, aim, interior = roots.search, roots.aim, roots.interior
    verdicts, enclosed, begin, end = search.verdicts, search.enclosed, search.begin, search.end
    held_side, held_for = roots.held_side, roots.held_for
    crossed, undecided, address = False, False, search.enclosure
    length = abs(b - a)
    while address != 0:
        enclosure = record_at(address, ENCLOSURE)
        address = enclosure.following
        _enclose_piece(enclosure, a, b, t_end, psi, phi, k)
        program, index = enclosure.program, enclosure.index
        lower, upper, steady = program.lower, program.upper, program.steady
        values, rates = enclosure.values, enclosure.rates
        for m in range(enclosure.functions):
            i, value, rate = index[m], values[m], rates[m]
            verdicts[i] = _FREE
            if enclosed[i] == 0 or aim[i] == MUTED:
                continue
            is_held = roots.held != 0 and held_side[i] != 0 and abs(a - roots.t_begin) <= held_for[i]
            if is_held and abs(b - roots.t_begin) <= held_for[i]:
                continue
            slowest, fastest = -np.inf, np.inf
            if steady[value] != 0:
                slowest, fastest = lower[rate], upper[rate]
            if b < a:
                slowest, fastest = -fastest, -slowest
            if not is_held and not _contains(
                lower[value], upper[value], begin[i]
            ):  # the function has changed since it was traced
                enclosed[i] = 0
                interior[i] = 1
                search.doubt[i] = a
                continue
            verdict = _FREE
            if lower[value] <= 0.0 <= upper[value] and begin[i] != 0.0:
                verdict = _shown(begin[i], end[i], slowest, fastest, length, is_last)
            if verdict == _CROSSED and not _is_wanted(begin[i], end[i], aim[i]):
                verdict = _FREE
            crossed = crossed or verdict == _CROSSED
            undecided = undecided or verdict == _UNDECIDED
            verdicts[i] = _JUMPY if verdict == _UNDECIDED and steady[value] == 0 else verdict
    return _UNDECIDED if undecided else _CROSSED if crossed else _FREE


@inlined
def _contains(lower, upper, value):
    slack = _SAME * (abs(lower) + abs(upper))
    return not (value < lower - slack or value > upper + slack)


@part
def _shown(begin, end, slowest, fastest, length, is_last):
    """The verdict that follows from the values at the ends of a piece and the bounds of the rate."""
    if slowest >= 0.0 or fastest <= 0.0:
        return _CROSSED if begin < 0.0 < end or end < 0.0 < begin else _FREE
    if begin < 0.0:
        begin, end, slowest, fastest = -begin, -end, -fastest, -slowest
    if end < 0.0 or not (isfinite(slowest) and isfinite(fastest)) or (end == 0.0 and not is_last):
        return _UNDECIDED
    least = begin * fastest - end * slowest + length * slowest * fastest
    return _FREE if least > 0.0 or (end == 0.0 and least == 0.0) else _UNDECIDED


@part
def _enclose_piece(enclosure, a, b, t_end, psi, phi, k):
    """Run the program on intervals: t between a and b, and the bounds of the unknowns' polynomials there."""
    program, basis, n = enclosure.program, enclosure.basis, enclosure.n
    lower, upper, nodes, places = program.lower, program.upper, enclosure.nodes, enclosure.places
    targets, sources = enclosure.parameter_nodes, enclosure.parameter_places
    if enclosure.parameters > 0:
        numbers = floats(enclosure.numbers, sources[enclosure.parameters - 1] + 1)
        for m in range(enclosure.parameters):
            lower[targets[m]] = numbers[sources[m]]
            upper[targets[m]] = numbers[sources[m]]
    half = 0.5 * abs(b - a) + _CLOCK * max(abs(a), abs(b))
    _set_basis(basis, 0.5 * (a + b) - t_end, half, psi, k)
    for m in range(enclosure.inputs):
        i, place = nodes[m], places[m]
        if place < 0:
            lower[i], upper[i] = min(a, b), max(a, b)
            continue
        order = place // n
        centre, spread = _range(basis, phi, place - order * n, order, half, k)
        lower[i], upper[i] = centre - spread, centre + spread
    enclose(address_of(program))


@part
def _set_basis(basis, x, half, psi, k):
    """basis[j, m]: the coefficient of s^m of the j-th Newton polynomial at x + half s."""
    for m in range(k + 1):
        basis[0, m] = 0.0
    basis[0, 0] = 1.0
    for j in range(1, k + 1):
        shift = x if j == 1 else x + psi[j - 2]
        basis[j, 0] = basis[j - 1, 0] * shift / psi[j - 1]
        for m in range(1, k + 1):
            basis[j, m] = (basis[j - 1, m] * shift + basis[j - 1, m - 1] * half) / psi[j - 1]


@part
def _range(basis, phi, i, order, half, k):
    """Midpoint and half width of the bounds of y_i, y_i' (order 1) or y_i'' (order 2) for s between -1 and 1."""
    centre, spread, unit = 0.0, 0.0, 1.0
    for m in range(order, k + 1):
        term, size = 0.0, 0.0
        for j in range(m, k + 1):
            part_of_it = phi[j, i] * basis[j, m]
            term += part_of_it
            size += abs(part_of_it)
        factor = 1.0 if order == 0 else 1.0 * m if order == 1 else 1.0 * m * (m - 1)
        if m == order:
            centre = factor * term
            spread = _ROUNDED * factor * size
        else:
            spread += factor * (abs(term) + _ROUNDED * size)
    if order > 0:
        unit = half if order == 1 else half * half
    return centre / unit, spread / unit
