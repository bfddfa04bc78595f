"""Consistent y and y' of a first-order problem of any index, where its functions can be traced."""

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.initial.jet import checked_values, resolved_array
from daedal.initial.newton import InitialResult
from daedal.structure.equations import equations_of

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
        _, jet = resolved_array(equations, t, *checked_values(equations, [y, yp], held), sizes)
    except InconsistentInitialError as refusal:
        return InitialResult(y, yp, False, np.inf, refusal)
    except (InvalidProblemError, np.linalg.LinAlgError):  # not defined there, or beyond the arithmetic
        return None
    return InitialResult(jet[0], jet[1], True, 0.0) if _agree(problem, t, jet[0], jet[1], sizes) else None


def _agree(problem, t: float, y: np.ndarray, yp: np.ndarray, sizes: np.ndarray) -> bool:
    """Whether the user's own function finds the values consistent as well."""
    residual = problem.evaluate(t, y, yp)
    slopes = np.maximum(np.abs(yp), np.max(np.abs(yp), initial=0.0) * 1e-3)
    with np.errstate(all="ignore"):
        moved = np.abs(problem.sample(t, y + 1e-3 * sizes, yp + 1e-3 * slopes) - residual)
        other = np.abs(problem.sample(t, y - 2e-3 * sizes, yp + 1e-3 * slopes) - residual)
    terms = 1e3 * np.nan_to_num(np.maximum(moved, other), nan=np.inf)
    return bool(np.all(np.abs(residual) <= _AGREES * terms + 1e-13 * np.max(np.abs(residual), initial=0.0)))
