"""Values of x, x', x'', ... that satisfy a problem of any index together with its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from daedal.analysis.wording import FROM_ZERO, MOST_NAMED, listing, number
from daedal.common.tabular import derivative_name
from daedal.errors import InconsistentInitialError, InvalidProblemError, StructurallySingularError
from daedal.index.structure.derivative_array import NonlinearDerivativeArray, array_ranks, open_rates
from daedal.index.structure.equilibration import equilibrate
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations
from daedal.initial.array_newton import LARGEST_DENSE, RANK, SATISFIED, ArrayPoint, solve_array

_MOST_DIFFERENTIATIONS = 12  # number of differentiations after which equations count as not determining the solution
_MOST_AT_ONCE = 6
_MOST_COLUMNS = 2000
_GUESSES = (0.0, 1.0, -1.0, 1e-3)  # guesses for unknown values, in units of their sizes
_CLEAR, _LOOSE = 1e-6, 1e-3
"""Fractions of the largest singular value below which others count as zero: _CLEAR if x or states are fixed, so that
huge derivatives do not compensate for wrong values; _LOOSE, as a last resort, near points at which ranks drop."""
_NOISE = 1e-10  # fraction of the largest value, in balanced units, below which a value may be round-off
_ROUNDING = 1e-6  # relative rounding error assumed for a fixed value
_NEXT_TO_ZERO = 1e-9  # rounding error assumed for a fixed value near zero, relative to its size
_UNMOVED = 1e-13  # relative change allowed in a value that need not change


def consistent_jet(
    equations: SystemEquations,
    t: float,
    x0: Any,
    fixed: Any = None,
    weights: Any = None,
    *,
    order: int | None = None,
    offsets: Sequence[int] | None = None,
) -> np.ndarray:
    """x, x', x'', ... near given ones that satisfy all equations of a derivative array.

    Parameters
    ----------
    equations : Equations
    t : float
        The time.
    x0 : array_like, shape (n,) or (m, n)
        x, or x, x', ... row by row. NaN and missing rows denote unknown values.
    fixed : array_like of bool, optional
        Values to keep, with the shape of `x0`, or (n,) for x alone. By default all may change; states (unknowns and
        derivatives below the highest that occurs) change only as far as the equations require, algebraic variables
        before them.
    weights : array_like, optional
        Sizes of the unknowns, which scale changes. By default their values; the equations determine the sizes of zero
        values.
    order : int, optional
        Number of differentiations of all equations. By default as many as needed to determine x' (the highest
        derivatives that occur): the differentiation index.
    offsets : sequence of int, optional
        Number of differentiations of each equation, such as Pryce's c_i, instead of one number for all.

    Returns
    -------
    numpy.ndarray, shape (k + 1, n)
        x, x', ..., x^(k), with k the largest number of differentiations plus the order of the problem. Without `order`
        and `offsets`, x and x' are determined by the fixed values and x; higher derivatives may be undetermined, and
        are minimised. Derivatives that do not occur in the array are 0.

    Raises
    ------
    InconsistentInitialError
        If there are no such values near the given ones; the message names equations and fixed values.

    Examples
    --------
    The pendulum, given x = 0.6 and the velocity u = 0.8:

    >>> import daedal
    >>> import numpy as np
    >>> from daedal.initial.jet import consistent_jet
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> def pendulum(t, s, sp):
    ...     x, y, u, v, lam = s
    ...     return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1, x**2 + y**2 - 1]
    >>> equations = SystemEquations(daedal.ImplicitDAE(pendulum, 5, names=["x", "y", "u", "v", "lam"]))
    >>> fixed = np.array([True, False, True, False, False])
    >>> jet = consistent_jet(equations, 0.0, [0.6, -1.0, 0.8, 0.0, 0.0], fixed)
    >>> jet[0].round(6)
    array([ 0.6, -0.8,  0.8,  0.6,  1.8])
    """
    given, known, held = checked_values(equations, x0, fixed)
    times = order if offsets is None else offsets
    if times is not None:
        array = NonlinearDerivativeArray(equations, times)
        return _near(array, t, given, known, held, weights).jet
    array, jet = resolved_array(equations, t, given, known, held, weights)
    still_open = open_rates(array, t, jet)
    if still_open.size:
        raise _undetermined(array, t, still_open)
    return jet


def resolved_array(
    equations: SystemEquations,
    t: float,
    given: np.ndarray,
    known: np.ndarray,
    held: np.ndarray,
    weights: Any,
    *,
    whole: bool = True,
    enough: Callable[[NonlinearDerivativeArray, np.ndarray], bool] | None = None,
) -> tuple[NonlinearDerivativeArray, np.ndarray]:
    """An array that determines x', or for which `enough` holds, and a point that satisfies it.

    The search starts with the number of differentiations suggested by the structure, which need not be minimal. Unless
    the `whole` array is requested, each equation is differentiated only as often as the structure requires. If no array
    determines x', the result is one that contains all constraints.
    """
    times = _structural_guess(equations, whole) if enough is None else 0
    columns = equations.n * (int(np.max(times)) + equations.order + 1)
    if columns > _MOST_COLUMNS:
        raise InvalidProblemError(
            f"the derivative array has {columns} columns; its ranks can be computed for at most "
            f"{_MOST_COLUMNS}. Specify the number of differentiations with order=... or offsets=..."
        )
    array = NonlinearDerivativeArray(equations, times)
    jet = _near(array, t, given, known, held, weights).jet
    while not (_determines(array, t, jet) if enough is None else enough(array, jet)):
        if array.times.max() >= _MOST_DIFFERENTIATIONS or _settled(array, t, jet):
            break
        array = array.extended()
        jet = _extended_point(array, t, jet, given, known, held, weights).jet
    return array, jet


def _determines(array: NonlinearDerivativeArray, t: float, jet: np.ndarray) -> bool:
    return not open_rates(array, t, jet).size


def _near(array: NonlinearDerivativeArray, t: float, given, known, held, weights, first: int = 0) -> ArrayPoint:
    """A point near given values: with fixed x if consistent, otherwise with fixed states, otherwise without fixed
    values.

    Far from a solution the linearised equations do not reveal which values are already correct, and guessed derivatives
    would pull consistent values away. The given values satisfy equations that are differentiated less often than
    `first`.
    """
    given, known, held = (_extended(values, (array.highest + 1, array.n)) for values in (given, known, held))
    states = known & (array.order.reshape(known.shape) < array.equations.orders)
    with_x = states.copy()
    with_x[0] |= known[0]
    if np.any(with_x != states):
        attempts = [(with_x, _CLEAR), (states, _CLEAR), (states, RANK), (None, RANK), (states, _LOOSE), (None, _LOOSE)]
    else:
        attempts = [(states, _CLEAR), (None, RANK), (states, _LOOSE), (None, _LOOSE)]
    refusal: InconsistentInitialError | None = None
    for more, rank in attempts:
        if more is None:
            try:
                return _solved(array, t, given, known, held, weights, rank)
            except InconsistentInitialError as error:
                refusal = refusal or error
        elif not np.any(more & ~held):
            continue
        with suppress(InconsistentInitialError, InvalidProblemError):
            return _by_levels(array, t, given, known, held if more is None else held | more, weights, rank, first)
    assert refusal is not None
    raise refusal


def _by_levels(
    array: NonlinearDerivativeArray, t: float, given, known, held, weights, rank: float = RANK, first: int = 0
) -> ArrayPoint:
    """A point, computed level by level from the original equations to those with the most differentiations."""
    given, known, held = (_extended(values, (array.highest + 1, array.n)) for values in (given, known, held))
    for level in range(first, int(array.times.max(initial=0)) + 1):
        part = NonlinearDerivativeArray(array.equations, np.minimum(array.times, level))
        point = _solved(part, t, given, known, held, weights, rank)
        given[: len(point.jet)], known[: len(point.jet)] = point.jet, True
    return point


def _extended_point(array: NonlinearDerivativeArray, t: float, jet, given, known, held, weights) -> ArrayPoint:
    """Extend a point of the array with one differentiation fewer; if this fails, search near the given values."""
    try:
        return _near(array, t, jet, np.ones(jet.shape, dtype=bool), held, weights, int(array.times.max()))
    except InconsistentInitialError:
        return _by_levels(array, t, given, known, held, weights)


def _structural_guess(equations: SystemEquations, whole: bool) -> int | np.ndarray:
    """Number of differentiations of all equations, or of each one, that determines x': Pryce's c_i plus one."""
    try:
        signature = StructuralSignature.of(equations)
    except StructurallySingularError:
        return 0
    if whole or signature.index > _MOST_AT_ONCE:
        return min(signature.index, _MOST_AT_ONCE)
    return signature.c + 1


def _settled(array: NonlinearDerivativeArray, t: float, jet: np.ndarray) -> bool:
    """Whether only redundant equations are missing, so that more differentiations would not help."""
    if np.ptp(array.times) > 0:
        return False
    ranks = array_ranks(array, t, jet)[-2:]
    return len(ranks) == 2 and all(entry.missing == 0 and entry.v > 0 for entry in ranks)


def _undetermined(array: NonlinearDerivativeArray, t: float, unknowns: np.ndarray) -> InconsistentInitialError:
    names = listing((f"{array.equations.names[j]}'" for j in unknowns[:MOST_NAMED]), unknowns.size)
    return InconsistentInitialError(
        f"the equations do not determine {names} at t = {t:g}, however often they are differentiated (up to "
        f"{array.times.max()} times). Remedy: check for a redundant or missing equation; if only these "
        "initial values are singular, start nearby."
    )


def checked_values(
    equations: SystemEquations, x0: Any, fixed: Any, name: str = "x0"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The given values in rows, with masks of known and fixed ones."""
    given = np.atleast_2d(np.asarray(x0, dtype=float)).copy()
    if given.ndim != 2 or given.shape[1] != equations.n:
        raise InvalidProblemError(f"the rows of {name} must have length {equations.n}, got shape {np.shape(x0)}")
    held = np.zeros(given.shape, dtype=bool)
    if fixed is not None:
        mask = np.atleast_2d(np.asarray(fixed, dtype=bool))
        if mask.shape[1] != equations.n or mask.shape[0] > given.shape[0]:
            raise InvalidProblemError(f"fixed must have the shape of x0, {given.shape}, got {np.shape(fixed)}")
        held[: mask.shape[0]] = mask
    known = np.isfinite(given)
    if np.any(held & ~known):
        order, j = (int(k) for k in np.argwhere(held & ~known)[0])
        raise InvalidProblemError(f"{derivative_name(equations.names[j], order)} is fixed, but x0 has no value for it")
    return given, known, held


def _solved(array: NonlinearDerivativeArray, t, given, known, held, weights, rank: float = RANK) -> ArrayPoint:
    """A point that satisfies the array; raises an error if there is none."""
    shape = array.highest + 1, array.n
    jet, known, held = (_extended(values, shape) for values in (given, known, held))
    unknown = ~known.ravel()
    differential = (array.order < np.tile(array.equations.orders, shape[0])) & ~unknown
    tiers = [differential, (array.order == 0) & ~unknown]
    first, units = None, array.time_units
    for guess in _GUESSES if unknown.any() else _GUESSES[:1]:
        start = np.where(known, jet, 0.0)
        sizes = column_sizes(array, t, start, weights)
        start.ravel()[unknown] = guess * sizes[unknown] * (1.0 + 0.1 * (np.arange(unknown.sum()) % 10))
        # sparse corrections change all values slightly, so states that are not held are excluded first
        if array.shape[1] > LARGEST_DENSE and np.any(differential & ~held.ravel()):
            point = solve_array(
                array,
                t,
                start,
                np.flatnonzero(~(held.ravel() | differential)),
                tiers,
                sizes,
                rank=rank,
                units=array.time_units,
            )
            if point is not None and point.satisfied:
                return point
        point = solve_array(array, t, start, np.flatnonzero(~held.ravel()), tiers, sizes, rank=rank, units=units)
        if point is not None and point.satisfied:
            unmoved = differential & (np.abs(point.jet - start).ravel() <= _UNMOVED * sizes)
            if not np.any(unmoved & ~held.ravel()):
                return point
            nearer = np.where(unmoved.reshape(shape), start, point.jet)
            again = solve_array(
                array,
                t,
                nearer,
                np.flatnonzero(~(held.ravel() | unmoved)),
                tiers,
                sizes,
                rank=rank,
                units=array.time_units,
            )
            return again if again is not None and again.satisfied else point
        first = point if first is None else first
        if held.any():  # fixed values may be inexact: computed from a rounded t, or round-off near zero
            point = solve_array(array, t, start, np.arange(held.size), tiers, sizes, rank=rank, units=units)
            if point is not None and point.satisfied:
                own, near = np.abs(start)[held], _NEXT_TO_ZERO * sizes.reshape(shape)[held]
                if np.all(np.abs(point.jet - start)[held] <= np.maximum(_ROUNDING * own, near)):
                    return point
    raise _refusal(array, t, first, held.ravel())


def _extended(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The values in an array of the given shape: further rows are zero, or False, and excess rows are dropped."""
    found = np.zeros(shape, dtype=values.dtype)
    rows = min(len(values), shape[0])
    found[:rows] = values[:rows]
    return found


def column_sizes(array: NonlinearDerivativeArray, t: float, jet: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Sizes of all columns: values or given weights; for zeros, the scales that balance the equations."""
    z = np.abs(jet.ravel())
    weights = None if weights is None else np.broadcast_to(np.asarray(weights, dtype=float), array.n)
    jacobian = array.settled_jacobian(t, jet)
    jacobian.data[~np.isfinite(jacobian.data)] = 0.0
    _, columns = equilibrate(jacobian, array.time_units(jacobian))
    if weights is not None:
        z[: array.n] = np.maximum(z[: array.n], weights)
    ratios = z / columns
    filled = ratios[ratios > _NOISE * ratios.max()]
    unit = np.exp(np.median(np.log(filled))) if filled.size else 1.0
    sizes = np.maximum(z, unit * columns)
    if weights is not None:
        sizes[: array.n] = z[: array.n]
    return sizes


def _refusal(array: NonlinearDerivativeArray, t: float, point: ArrayPoint | None, held: np.ndarray) -> Exception:
    """Error for an array without solution, with the equations violated at the best point and the fixed values."""
    if point is None:
        return InvalidProblemError(
            f"the equations or their derivatives cannot be evaluated at the initial values, t = {t:g}"
        )
    share = np.abs(point.residual) / np.where(point.terms > 0.0, point.terms, 1.0)
    worst = [int(k) for k in np.argsort(-share, kind="stable") if share[k] > SATISFIED]
    named = listing((f"{array.words(k)} ({number(point.residual[k])})" for k in worst[:MOST_NAMED]), len(worst))
    weighted = point.residual / np.where(point.terms > 0.0, point.terms, 1.0) ** 2
    pull = np.abs(array.jacobian(t, point.jet).T @ weighted) * held * np.maximum(np.abs(point.jet.ravel()), 1e-300)
    holding = [int(c) for c in np.argsort(-pull, kind="stable") if pull[c] > 1e-6 * pull.max(initial=0.0)]
    names = listing((array.label(c) for c in holding[:MOST_NAMED]), len(holding))
    with_held = f" with {names} fixed" if holding else ""
    reason = (
        f"the equations and their derivatives are contradictory{with_held} at t = {t:g}"
        if point.stationary
        else f"no consistent values were found near the given ones{with_held} at t = {t:g}"
    )
    remedy = "fix other values, or fewer" if holding else "check these equations, or start closer"
    return InconsistentInitialError(
        f"{reason}. Remaining residuals {FROM_ZERO}, which should be 0: {named}. Remedy: {remedy}.",
        dict.fromkeys(array.rows[k][0] for k in worst),
        point.residual,
    )
