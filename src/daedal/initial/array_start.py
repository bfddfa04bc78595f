"""Consistent values from a derivative array: exact if functions can be traced, otherwise by finite differences."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.index.structure.system_equations import SystemEquations, equations_of
from daedal.initial.array_newton import solve_array
from daedal.initial.jet import checked_values, resolved_array
from daedal.initial.local_structure import local_structure
from daedal.initial.newton_start import InitialResult
from daedal.initial.variable_kinds import LARGEST_DENSE, algebraic_variables, evaluate_or_nan, partials_of
from daedal.problems import SecondOrderDAE

if TYPE_CHECKING:
    import scipy.sparse as sp

LARGEST_ARRAY = 200
"""Number of unknowns above which dense matrices of the derivative array are too expensive."""
_AGREES = 1e-8  # largest residual of consistent values, relative to its change if the values change by their own sizes


def exact_array_initial(
    problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    *,
    fixed: np.ndarray,
    fixed_slope: np.ndarray | None = None,
    weights: np.ndarray,
) -> InitialResult | None:
    """Solve the exact derivative array for the free values; None if there is no solution.

    Parameters
    ----------
    fixed, fixed_slope : bool masks
        Components of y, and of y', whose given values are kept (by default no component of y').
    weights : array
        Negligible changes of y, rtol |y| + atol: the scale of zero values.
    """
    equations = equations_of(problem) if problem.n <= LARGEST_ARRAY else None
    if equations is None:
        return None
    held = np.array([fixed, np.zeros(problem.n, dtype=bool) if fixed_slope is None else fixed_slope])
    sizes = np.maximum(np.abs(y), 1e3 * weights)
    try:
        _, jet = resolved_array(equations, t, *checked_values(equations, [y, yp], held), sizes, whole=False)
    except InconsistentInitialError as refusal:
        return InitialResult(y, yp, False, np.inf, _explained(refusal, equations, t, y, fixed, sizes))
    except (InvalidProblemError, np.linalg.LinAlgError):  # undefined there, or outside the floating-point range
        return None
    return InitialResult(jet[0], jet[1], True, 0.0) if agrees(problem, t, jet[0], jet[1], sizes) else None


def _explained(
    refusal: InconsistentInitialError, equations: SystemEquations, t: float, y: np.ndarray, fixed: np.ndarray, sizes
) -> InconsistentInitialError:
    """An error with the constraints, including hidden ones, that the fixed values violate."""
    try:
        constraints = local_structure(equations, t, y, weights=sizes).constraints
    except (InconsistentInitialError, InvalidProblemError, np.linalg.LinAlgError):
        return refusal
    held = {equations.unknown(int(j)) for j in np.flatnonzero(fixed)}
    own = {equations.unknown(j) for j in range(equations.n)}
    violated = []
    for constraint in constraints:
        node = constraint.node
        if node is None or not own.intersection(equations.graph.needed([node])) <= held:
            continue
        (value,) = equations.values([node], t, [y])
        (row,) = equations.jacobian([node], equations.unknowns([0]))
        terms = np.abs(equations.values(list(row.values()), t, [y])) @ sizes[list(row)]
        if not abs(value) <= _AGREES * terms:
            violated.append(f"{constraint.text} (left side {value:.4g})")
    if not violated:
        return refusal
    words = f"{refusal}\nThe fixed values violate: {'; '.join(violated)}."
    return InconsistentInitialError(words, refusal.equations, refusal.residual)


def exact_second_order(problem: SecondOrderDAE, t: float, values, held) -> list[np.ndarray] | None:
    """(x, x', x'') of a second-order problem of any index near `values`; None without solution or derivative array.

    `held` are masks of fixed x and x'.
    """
    equations = equations_of(problem) if problem.n <= LARGEST_ARRAY else None
    if equations is None:
        return None
    try:
        _, jet = resolved_array(equations, t, *checked_values(equations, values, held), None, whole=False)
    except (InconsistentInitialError, InvalidProblemError, np.linalg.LinAlgError):
        return None
    residual, moved = (problem.evaluate(t, *(jet[:3] * factor)) for factor in (1.0, 1.001))
    agree = np.all(np.abs(residual) <= _AGREES * (1e3 * np.abs(moved - residual) + np.max(np.abs(jet[:3]))))
    return list(jet[:3]) if agree else None


def agrees(problem, t: float, y: np.ndarray, yp: np.ndarray, sizes: np.ndarray) -> bool:
    """Whether the user's function confirms that the values are consistent."""
    residual = problem.evaluate(t, y, yp)
    slopes = np.maximum(np.abs(yp), np.max(np.abs(yp), initial=0.0) * 1e-3)
    with np.errstate(all="ignore"):
        moved = np.abs(problem.sample(t, y + 1e-3 * sizes, yp + 1e-3 * slopes) - residual)
        other = np.abs(problem.sample(t, y - 2e-3 * sizes, yp + 1e-3 * slopes) - residual)
    terms = 1e3 * np.nan_to_num(np.maximum(moved, other), nan=np.inf)
    return bool(np.all(np.abs(residual) <= _AGREES * terms + 1e-13 * np.max(np.abs(residual), initial=0.0)))


# --- The derivative array of untraceable functions, by finite differences: consistent values up to index 3 -----------

# F and its partial derivatives are sampled along the Taylor polynomial of x, at Chebyshev points on the side of t0 on
# which the run proceeds, and the interpolating polynomials are differentiated at t0 (Leimkuhler, Petzold and Gear's D_h
# of high order; Brenan, Campbell and Petzold, section 5.3.4). A long interval with few points loses fewer digits than a
# short one.

HIGHEST_INDEX = 3
_POINTS = 7
_STRETCHES = 10.0 ** np.arange(2.0, -6.1, -0.5)  # lengths to try, in units of the time scale
_MIDDLE = 8  # index of the length 1e-2, used if no derivative can be computed
_RANK = 1e-6  # relative size below which singular values count as zero; partial derivatives are inexact
_SATISFIED = 1e-6
_ROUNDS = 3


@dataclass
class DifferenceArray:
    """F, F', ..., F^(times) at t for x, x', ..., x^(times + 1), by differences over an interval of time."""

    problem: Any
    times: int
    stretch: float

    def __post_init__(self):
        self.n, self.highest = self.problem.n, self.times + 1
        points = 0.5 * (1.0 - np.cos(np.pi * np.arange(_POINTS) / (_POINTS - 1)))
        inverse = np.linalg.inv(np.vander(points, increasing=True))
        self._taus = self.stretch * points
        self._rules = [factorial(r) * inverse[r] / self.stretch**r for r in range(self.times + 1)]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the Jacobian."""
        return self.n * (self.times + 1), self.n * (self.highest + 1)

    def residual(self, t: float, jet: np.ndarray) -> np.ndarray:
        """All equations, NaN if they cannot be evaluated on the interval."""
        samples = np.array([evaluate_or_nan(self.problem, t + tau, *_path(jet, tau)) for tau in self._taus])
        return np.concatenate([samples[0], *(rule @ samples for rule in self._rules[1:])])

    def settled_jacobian(self, t: float, jet: np.ndarray) -> sp.csr_array:
        """Jacobian of the equations with respect to x, x', ..., with the column order of the exact array."""
        import scipy.sparse as sp

        samples = [partials_of(self.problem, t + tau, *_path(jet, tau)) for tau in self._taus]
        slopes, values = (np.array(matrices) for matrices in zip(*samples, strict=True))
        blocks = [[np.tensordot(rule, matrices, 1) for rule in self._rules] for matrices in (values, slopes)]
        n, found = self.n, np.zeros(self.shape)
        for r in range(self.times + 1):
            for k in range(r + 1):
                for s in range(2):
                    column = (s + r - k) * n
                    found[r * n : (r + 1) * n, column : column + n] += comb(r, k) * blocks[s][k]
        return sp.csr_array(found)


def difference_array_initial(
    problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    *,
    fixed,
    fixed_slope=None,
    weights,
    index: int,
    side: float = 1.0,
    longest: float = np.inf,
) -> InitialResult:
    """Consistent y and y' of a problem of known index, with some of them fixed.

    Parameters
    ----------
    index : int
        2 or 3. Equations are differentiated ``index - 1`` times; derivatives of algebraic variables are undetermined.
    side : float
        The side of t on which the equations may be evaluated.
    longest : float
        The maximal distance from t.
    """
    times, n = index - 1, problem.n
    jet = np.zeros((times + 2, n))
    jet[:2] = y, yp
    held = np.zeros(jet.shape, dtype=bool)
    held[0], held[1] = fixed, False if fixed_slope is None else fixed_slope
    free, tiers = np.flatnonzero(~held.ravel()), [np.arange(jet.size) < n]
    values, rates = np.abs(jet[:2]).max(axis=1)
    time = values / rates if values > 0.0 and rates > 0.0 else 1.0
    sizes = np.maximum(np.abs(y), 1e3 * weights) / time ** np.arange(times + 2.0)[:, None]
    found = None
    for _ in range(_ROUNDS):  # the values change the path and thus the best interval
        array = _best_array(problem, times, t, jet, side * np.minimum(time * _STRETCHES, longest))
        point = solve_array(array, t, jet, free, tiers, sizes.ravel(), rank=_RANK, tolerance=_SATISFIED)
        if point is None:
            break
        jet = point.jet
        found = point if point.satisfied else found
    if found is None:
        return InitialResult(y, yp, False, np.inf)
    return InitialResult(found.jet[0], found.jet[1], True, 0.0)


def _path(jet: np.ndarray, tau: float) -> tuple[np.ndarray, np.ndarray]:
    """x and x' at t0 + tau by Taylor's polynomial."""
    powers = [tau**k / factorial(k) for k in range(len(jet))]
    return powers @ jet, powers[:-1] @ jet[1:]


def _best_array(problem, times: int, t: float, jet: np.ndarray, stretches: np.ndarray) -> DifferenceArray:
    """The array whose highest derivatives change least when its interval is halved."""
    best, least = DifferenceArray(problem, times, stretches[_MIDDLE]), np.inf
    for stretch in dict.fromkeys(stretches.tolist()):
        here, half = (DifferenceArray(problem, times, stretch * part).residual(t, jet) for part in (1.0, 0.5))
        change = float(np.linalg.norm((here - half)[-problem.n :]))
        if change < least:
            best, least = DifferenceArray(problem, times, stretch), change
    return best


# --- y' of all variables at the start, including those whose derivative does not occur in the equations --------------


def all_slopes(
    problem: Any, t: float, y: np.ndarray, yp: np.ndarray, weights: np.ndarray, sign: float, method: Any
) -> np.ndarray:
    """The y' that satisfies F = 0 and dF/dt = 0 with y fixed.

    For index 1 it is unique (Brenan, Campbell and Petzold 5.3.4). In `yp`, only the entries of algebraic variables are
    unknown. The equations are evaluated on the side of t given by `sign`; errors name the `method`, which needs y'.
    """
    if np.any(weights <= 0.0):
        return yp  # the integrator reports the zero weight with the variable's name
    if problem.n <= LARGEST_DENSE:
        everything = np.ones(problem.n, dtype=bool)
        found = difference_array_initial(problem, t, y, yp, fixed=everything, weights=weights, index=2, side=sign)
        if found.converged:
            return found.yp
    unknown = algebraic_variables(problem, t, y, yp)
    if not unknown.any():
        return yp
    names = [problem.label(int(i)) for i in np.flatnonzero(unknown)]
    raise InvalidProblemError(
        f"{method.title} needs y' of all variables at t = {t:g}, but that of "
        f"{', '.join(names[:5])}{' and others' if len(names) > 5 else ''} could not be computed: give yp0, or use "
        "a method whose first stage is not at the start of the step, such as 'radau5' or 'lobatto_iiic3'"
    )
