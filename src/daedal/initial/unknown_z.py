"""z of semi-explicit problems that are given without it: initial guesses, and Newton's method from a guess."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError, NotFiniteError
from daedal.problems import SemiExplicitDAE
from daedal.problems.compile import machine_value

GUESSES = (0.0, 1.0, -1.0, 1e-3, -1e-3, 1e3, -1e3)
TRIED = "z0 was not given: z = " + ", ".join(f"{z:g}" for z in GUESSES) + " were tried"
_MOST_ITERATIONS, _CONTRACTING, _CONVERGED = 20, 0.5, 1e-9
REMEDY = "Give a guess as z0 with correct_initial=True, or use daedal.consistent_initial"


def evaluable_guesses(problem: SemiExplicitDAE, t0: float, x0: np.ndarray) -> Iterator[np.ndarray]:
    """(y, z) for the guesses of z, with equal components, at which f and g can be evaluated; at least one."""
    found, trouble, complaint = False, None, ""
    for value in GUESSES:
        x = x0.copy()
        x[problem.n_y :] = value
        try:
            with np.errstate(all="ignore"):
                bad = not_finite(problem, t0, x)
        except InvalidProblemError:
            raise
        except Exception as error:  # f or g is undefined there and may raise any exception
            trouble = trouble or error
            continue
        complaint = complaint or bad or ""
        if bad is None:
            found = True
            yield x
    if found:
        return
    if trouble is not None:
        trouble.add_note(f"{TRIED}. {REMEDY}.")
        raise trouble
    raise NotFiniteError(f"{complaint} at the initial values (t = {t0:g}). {TRIED}. {REMEDY}")


def not_finite(problem: SemiExplicitDAE, t0: float, x: np.ndarray) -> str | None:
    """Description of the component of f or g that is not finite; None if all are finite."""
    y, z = x[: problem.n_y], x[problem.n_y :]
    for name, values in (("f", problem.slope(t0, y, z)), ("g", problem.constraint(t0, y, z))):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            return f"{name}[{bad[0]}] is {values[bad[0]]}"
    return None


Values = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""F and dF/dy of F(t, y, y') = 0 for stacks of y, not finite where undefined."""


def solved_for_z(values: Values, rows: np.ndarray, n_y: int) -> tuple[np.ndarray, np.ndarray]:
    """The `rows` (y, z) after Newton's method for g = 0 in z, and a mask of the rows for which it has converged."""
    rows, solved, size = rows.copy(), np.zeros(len(rows), dtype=bool), np.full(len(rows), np.inf)
    active = ~solved
    for _ in range(_MOST_ITERATIONS):
        residuals, matrices = (found[:, n_y:] for found in values(rows))
        matrices = matrices[:, :, n_y:]
        active &= np.isfinite(residuals).all(axis=1) & np.isfinite(matrices).all(axis=(1, 2))
        active[active] = np.linalg.det(matrices[active]) != 0.0
        k = np.flatnonzero(active)
        changes = np.linalg.solve(matrices[k], residuals[k][:, :, None])[:, :, 0]
        before, size[k] = size[k], np.abs(changes).max(axis=1, initial=0.0)
        contracting = size[k] <= _CONTRACTING * before
        active[k[~contracting]] = False
        k = k[contracting]
        rows[k, n_y:] -= changes[contracting]
        done = k[size[k] <= _CONVERGED * np.abs(rows[k, n_y:]).max(axis=1, initial=0.0)]
        solved[done], active[done] = True, False
        if not active.any():
            break
    return rows, solved


def start_with_z(problem: SemiExplicitDAE, implicit: Any, t0: float, x0: np.ndarray) -> np.ndarray:
    """(y, z) with g = 0 if Newton's method with exact derivatives converges from the first guess; else this guess."""
    x, slopes = next(evaluable_guesses(problem, t0, x0)), np.zeros(x0.size)

    if implicit.sparsity is not None or not getattr(implicit.jacobian, "is_derivative", False):
        return x

    def values(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual = machine_value(implicit.residual, implicit.params, t0, rows[0], slopes)
        matrix = implicit.exact_matrix(t0, rows[0], slopes)
        if residual is None or matrix is None:
            return np.full((1, x.size), np.nan), np.full((1, x.size, x.size), np.nan)
        return residual[None], matrix[None]

    with np.errstate(all="ignore"):
        [found], [is_solved] = solved_for_z(values, x[None], problem.n_y)
    return found if is_solved else x
