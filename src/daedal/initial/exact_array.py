"""Consistent values of problems of any index, from the exact derivative array of functions that can be traced."""

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.index.structure.equations import SystemEquations, equations_of
from daedal.initial.jet import checked_values, resolved_array
from daedal.initial.local_structure import local_structure
from daedal.initial.newton import InitialResult
from daedal.problems import SecondOrderDAE

LARGEST = 200
"""Unknowns beyond which dense matrices of the derivative array take too long."""
_AGREES = 1e-8  # residual of the user's function, relative to the change that the values themselves make


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
    """Solve the exact derivative array for what is not fixed; None where there is none.

    Parameters
    ----------
    fixed, fixed_slope : bool masks
        Components of y, and of y', that keep their given values (by default no component of y').
    weights : array
        Changes of y that do not matter, rtol |y| + atol: what values that are zero are measured by.
    """
    equations = equations_of(problem) if problem.n <= LARGEST else None
    if equations is None:
        return None
    held = np.array([fixed, np.zeros(problem.n, dtype=bool) if fixed_slope is None else fixed_slope])
    sizes = np.maximum(np.abs(y), 1e3 * weights)
    try:
        _, jet = resolved_array(equations, t, *checked_values(equations, [y, yp], held), sizes, whole=False)
    except InconsistentInitialError as refusal:
        return InitialResult(y, yp, False, np.inf, _explained(refusal, equations, t, y, fixed, sizes))
    except (InvalidProblemError, np.linalg.LinAlgError):  # not defined there, or beyond the arithmetic
        return None
    return InitialResult(jet[0], jet[1], True, 0.0) if agrees(problem, t, jet[0], jet[1], sizes) else None


def _explained(
    refusal: InconsistentInitialError, equations: SystemEquations, t: float, y: np.ndarray, fixed: np.ndarray, sizes
) -> InconsistentInitialError:
    """A refusal with the constraints, hidden ones included, that values which are held violate."""
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
    words = f"{refusal}\nThe values that are held violate: {'; '.join(violated)}."
    return InconsistentInitialError(words, refusal.equations, refusal.residual)


def exact_second_order(problem: SecondOrderDAE, t: float, values, held) -> list[np.ndarray] | None:
    """(x, x', x'') of a second-order problem of any index near `values`; None where there are none, or no array.

    `held` are masks of x and x' that keep their values.
    """
    equations = equations_of(problem) if problem.n <= LARGEST else None
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
    """Whether the user's own function finds the values consistent as well."""
    residual = problem.evaluate(t, y, yp)
    slopes = np.maximum(np.abs(yp), np.max(np.abs(yp), initial=0.0) * 1e-3)
    with np.errstate(all="ignore"):
        moved = np.abs(problem.sample(t, y + 1e-3 * sizes, yp + 1e-3 * slopes) - residual)
        other = np.abs(problem.sample(t, y - 2e-3 * sizes, yp + 1e-3 * slopes) - residual)
    terms = 1e3 * np.nan_to_num(np.maximum(moved, other), nan=np.inf)
    return bool(np.all(np.abs(residual) <= _AGREES * terms + 1e-13 * np.max(np.abs(residual), initial=0.0)))
