"""Initial values that satisfy additional equations, such as a steady state.

The derivative array of the problem is extended by the given equations B(t_0, y_0, y_0') = 0 (Brenan, Campbell and
Petzold, (5.3.7)) and solved by the Gauss-Newton method with minimal changes, so that fewer equations than degrees of
freedom leave the remaining values near their guesses. If the iteration fails, steady states of first-order problems are
approached by implicit Euler steps, and other equations by homotopy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InconsistentInitialError, InvalidProblemError, NotFiniteError, Unevaluable
from daedal.events.event import with_state
from daedal.index.structure.derivative_array import NonlinearDerivativeArray
from daedal.index.structure.system_equations import SystemEquations, required_equations
from daedal.initial.array_newton import ArrayPoint, solve_array
from daedal.initial.array_start import LARGEST_ARRAY
from daedal.initial.jet import checked_values, column_sizes, resolved_array
from daedal.kernels.functions import real_array
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_finite, check_mask

_STEP = float(np.cbrt(np.finfo(float).eps))  # increment of central differences, relative to the size of a value
_SHORTEST = 1.0 / 64.0  # smallest step of the homotopy
_MOST_STEPS = 60  # maximum number of attempted steps of the implicit Euler method
_TINY = 1e-300
_UNSATISFIED = 1e-8  # residual of a given equation, relative to its terms, above which an error names it

Rows = Callable[[float, np.ndarray], np.ndarray]
"""A function of t and the jet (x, x', ... in rows) that returns the residuals of equations."""


def solve_with_equations(problem: Any, t: float, given: np.ndarray, fixed: Any, equations: Any) -> np.ndarray:
    """x, x', ... that satisfy the problem with its hidden constraints and the additional equations.

    Parameters
    ----------
    given : numpy.ndarray, shape (m, n)
        Guesses of x, x', ..., NaN if unknown.
    fixed : mask or list of names, optional
        Values of x and x' to keep.
    equations : "steady", mapping, callable or sequence of these
        See :func:`daedal.consistent_initial`.
    """
    if given.shape[1] > LARGEST_ARRAY:
        raise InvalidProblemError(f"equations can be imposed on at most {LARGEST_ARRAY} unknowns, got {given.shape[1]}")
    own = required_equations(problem, "equations need functions that can be traced:")
    names = [f"{name}{order * chr(39)}" for order in range(2) for name in own.names]
    if isinstance(fixed, str):
        raise InvalidProblemError(f"fixed={fixed!r} cannot be combined with equations. Remedy: use equations='steady'")
    if np.asarray(fixed).dtype == bool and np.shape(fixed) == (own.n,):
        fixed = [*fixed, *np.zeros(own.n, dtype=bool)]
    mask = None if fixed is None else check_mask(fixed, len(names), "fixed", names).reshape(2, own.n)
    values, known, held = checked_values(own, given, mask, "initial")
    array, jet = resolved_array(own, t, values, known, held, None, whole=False)
    rows = _stacked([_rows(problem, own, one) for one in _as_list(equations)])
    held = np.pad(held, ((0, len(jet) - len(held)), (0, 0)))
    extended = _Extended(array, rows, column_sizes(array, t, jet, None))
    before, free = extended.begin(t, jet), np.flatnonzero(~held.ravel())
    first = extended.solved(t, jet, free)
    if first is not None and first.satisfied:
        return first.jet
    relaxes = own.order == 1 and isinstance(equations, str)
    point = _by_implicit_euler(extended, t, jet, free) if relaxes else None
    point = point or _with_homotopy(extended, t, jet, free, before)
    if point is None:
        raise _refusal(array, extended, t, first)
    return point.jet


class _Extended:
    """A derivative array with additional rows, whose values are shifted by `offset`."""

    def __init__(self, array: NonlinearDerivativeArray, rows: Rows, sizes: np.ndarray):
        self._array, self._rows, self._sizes = array, rows, sizes
        self.offset: Any = 0.0

    def residual(self, t: float, jet: np.ndarray) -> np.ndarray:
        """All equations."""
        return np.concatenate([self._array.residual(t, jet), self.given(t, jet) - self.offset])

    def given(self, t: float, jet: np.ndarray) -> np.ndarray:
        """The additional equations; NaN where they are undefined."""
        try:
            return self._rows(t, jet)
        except (Unevaluable, NotFiniteError, ArithmeticError):
            return np.full(self.count, np.nan)

    def settled_jacobian(self, t: float, jet: np.ndarray) -> Any:
        """Derivatives of all equations; those of the additional ones are central differences."""
        import scipy.sparse as sp

        flat = jet.ravel()
        slopes = np.zeros((self.count, flat.size))
        for column in range(min(3, len(jet)) * jet.shape[1]):
            step = _STEP * max(abs(flat[column]), self._sizes[column])
            up, down = flat.copy(), flat.copy()
            up[column] += step
            down[column] -= step
            change = self.given(t, up.reshape(jet.shape)) - self.given(t, down.reshape(jet.shape))
            slopes[:, column] = change / (up[column] - down[column])
        return sp.vstack([self._array.settled_jacobian(t, jet), sp.csr_array(slopes)], format="csr")

    def begin(self, t: float, jet: np.ndarray) -> np.ndarray:
        """The additional equations at the first point; stores their number, and raises if one of them is not finite."""
        values = self._rows(t, jet)
        self.count = values.size
        if not np.isfinite(values).all():
            i = int(np.flatnonzero(~np.isfinite(values))[0])
            raise NotFiniteError(
                f"equations: number {i} is {values[i]} at the guess, t = {t:g}. Remedy: use other guesses"
            )
        return values

    def solved(self, t: float, jet: np.ndarray, free: np.ndarray) -> ArrayPoint | None:
        """The point reached from `jet` if the columns `free` may change."""
        array = self._array
        differential = array.order < np.tile(array.equations.orders, len(jet))
        return solve_array(self, t, jet, free, [differential, array.order == 0], self._sizes)

    def relaxed(self, jet: np.ndarray, h: float) -> _Extended:
        """The same array with a step of the implicit Euler method, x' = (x - x_0) / h, as additional equations."""
        places = np.flatnonzero(np.asarray(self._array.equations.orders) > 0)
        other = _Extended(self._array, lambda t, new: h * new[1, places] - (new - jet)[0, places], self._sizes)
        other.count = places.size
        return other


def _with_homotopy(
    extended: _Extended, t: float, jet: np.ndarray, free: np.ndarray, before: np.ndarray
) -> ArrayPoint | None:
    """The solution of B = (1 - s) B_0 for s from 0 to 1; None if the path ends."""
    reached, step, current = 0.0, 0.25, jet
    while True:
        ahead = min(reached + step, 1.0)
        extended.offset = (1.0 - ahead) * before
        point = extended.solved(t, current, free)
        if point is not None and point.satisfied:
            if ahead == 1.0:
                return point
            reached, step, current = ahead, 2.0 * step, point.jet
        elif step <= _SHORTEST:
            extended.offset = 0.0
            return None
        else:
            step *= 0.5


def _by_implicit_euler(extended: _Extended, t: float, jet: np.ndarray, free: np.ndarray) -> ArrayPoint | None:
    """A steady state reached by implicit Euler steps of increasing size at fixed t; None if there is none."""
    rates = np.abs(jet[1]) / np.maximum(np.abs(jet[0]), np.max(np.abs(jet[0])) * 1e-3 + _TINY)
    h = 0.1 / max(float(rates.max()), _TINY)
    for _ in range(_MOST_STEPS):
        point = extended.relaxed(jet, h).solved(t, jet, free)
        if point is None or not point.satisfied:
            h *= 0.25
            continue
        jet, h = point.jet, 2.0 * h
        final = extended.solved(t, jet, free)
        if final is not None and final.satisfied:
            return final
    return None


def _refusal(array: NonlinearDerivativeArray, extended: _Extended, t: float, point: ArrayPoint | None) -> Exception:
    """The error that names the equations that cannot be satisfied together."""
    if point is None:
        return InconsistentInitialError(f"the equations cannot be evaluated near the guess at t = {t:g}")
    share = np.abs(point.residual) / np.where(point.terms > 0.0, point.terms, 1.0)
    own, count = array.shape[0], extended.count
    worst = [int(k) for k in np.argsort(-share, kind="stable") if share[k] > _UNSATISFIED]
    words = [f"equations[{k - own}]" if k >= own else array.words(k) for k in worst[:5]]
    values = [f"{word} = {point.residual[k]:.3g}" for word, k in zip(words, worst, strict=False)]
    remedy = "omit one of them, or release a fixed value" if point.stationary else "start from a better guess"
    state = "contradict each other" if point.stationary else "were not solved"
    return InconsistentInitialError(
        f"the problem and the {count} additional equations {state} at t = {t:g}. Remaining residuals: "
        f"{', '.join(values)}. Remedy: {remedy}",
        dict.fromkeys(array.rows[k][0] for k in worst if k < own),
        point.residual,
    )


# --- the given equations ----------------------------------------------------------------------------------------------


def _as_list(equations: Any) -> list[Any]:
    if isinstance(equations, (str, Mapping)) or callable(equations):
        return [equations]
    if not isinstance(equations, Sequence) or not equations:
        raise InvalidProblemError(
            "equations must be 'steady', a mapping of names to values, a function or a list of these, got "
            f"{equations!r}"
        )
    return [*equations]


def _rows(problem: Any, own: SystemEquations, given: Any) -> Rows:
    """One item of `equations`, "steady", a mapping or a function, as a function of (t, jet) that returns an array."""
    if isinstance(given, str):
        if given != "steady":
            raise InvalidProblemError(f"equations={given!r} is unknown; known: 'steady'")
        places = [(k, j) for j, order in enumerate(own.orders) for k in range(1, int(order) + 1)]
        return lambda t, jet: np.array([jet[place] for place in places])
    if isinstance(given, Mapping):
        return _named_values(own, given)
    if not callable(given):
        raise InvalidProblemError(f"equations must hold functions, mappings or 'steady', got {given!r}")
    function = with_state(given, problem, "equations")
    size = problem.n_q if isinstance(problem, MechanicalSystem) else own.n

    def values(t: float, jet: np.ndarray) -> np.ndarray:
        result = function(t, jet[0, :size].copy(), jet[1, :size].copy())
        return np.ravel(real_array(result, "equations", "real numbers")).astype(float)

    return values


def _named_values(own: SystemEquations, given: Mapping[Any, Any]) -> Rows:
    """Given values of unknowns and derivatives: x, x', x''."""
    names = {
        f"{name}{order * chr(39)}": (order, j) for j, name in enumerate(own.names) for order in range(own.order + 1)
    }
    for name in given:
        if name not in names:
            raise unknown_name(name, [*names])
    places = [names[name] for name in given]
    wanted = np.array([check_finite(value, f"equations[{name!r}]") for name, value in given.items()])
    return lambda t, jet: np.array([jet[place] for place in places]) - wanted


def _stacked(rows: Sequence[Rows]) -> Rows:
    return lambda t, jet: np.concatenate([one(t, jet) for one in rows])
