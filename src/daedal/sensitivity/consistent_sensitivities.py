r"""Consistent initial sensitivities.

At the start :math:`F_y s + F_{y'} s' + F_p = 0` must also hold. The components of s in the kernel of :math:`F_{y'}`,
the algebraic variables, are determined together with :math:`s'`; the others keep their given values, which are 0 for
parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InconsistentInitialError
from daedal.initial.variable_kinds import LARGEST_DENSE, algebraic_variables
from daedal.problems import SemiExplicitDAE
from daedal.symbolic.derivative import directional
from daedal.symbolic.graph import evaluate

_REGULAR = 1e-9  # smallest singular value of a regular matrix after scaling, relative to the largest
_FREE = 1e6  # scale of the changes of algebraic variables, relative to the changes of all others, which are kept small
_COARSE, _SHARP = 1e-9, 1e-13  # precision of consistent values, relative to the largest value
_ARTIFICIAL = 1e-12  # artificial step size for large problems, shorter than any time scale
_ROUNDOFF = 1e-6  # tolerated residual of the equations, relative to their terms


def consistent_sensitivities(plan: Any, problem: Any, t0: float, y0: np.ndarray, yp0: np.ndarray, s0: np.ndarray):
    """s and s' at the start, each (m, n), from given values; `problem` is the variational problem."""
    n, m = y0.size, s0.shape[0]
    known = of_index_2(plan, t0, y0, yp0, s0) if plan.is_half_explicit else None
    if known is not None:
        return known
    if n > LARGEST_DENSE:
        return _of_large_problem(plan, t0, y0, yp0, s0)
    e, a = plan.partials(t0, y0, yp0)
    point = np.concatenate([y0, s0.ravel()]), np.concatenate([yp0, np.zeros(m * n)])
    left = problem.evaluate(t0, *point)[n:].reshape(m, n)
    algebraic = ~np.any(e, axis=0)
    combined = np.where(algebraic, a, e)
    if _is_regular(combined):
        found = np.linalg.solve(combined, -left.T).T
        return s0 + np.where(algebraic, found, 0.0), np.where(algebraic, 0.0, found)
    if isinstance(plan.problem, SemiExplicitDAE) and plan.variational.is_exact and not plan.is_half_explicit:
        known = of_index_2(plan, t0, y0, yp0, s0)
        if known is not None:
            return known
    free = _null_space(e)
    matrix = np.hstack([a @ free, e])
    found = np.linalg.lstsq(matrix, -left.T, rcond=1e-12)[0]
    rest = np.abs(matrix @ found + left.T).T
    terms = (np.abs(matrix) @ np.abs(found)).T + np.abs(left) + 1e-300
    s, sp = s0 + (free @ found[: free.shape[1]]).T, found[free.shape[1] :].T
    if np.all(rest <= _ROUNDOFF * terms) and _is_of_index_1(e, a):
        return s, sp
    on_constraints = s0 + _to_constraints(e, a, left, algebraic)
    point = np.concatenate([y0, on_constraints.ravel()]), point[1]
    return _of_higher_index(plan, problem, t0, point, algebraic)


def sensitivities_of_array(problem: Any, t0: float, y0: np.ndarray, yp0: np.ndarray, s0: np.ndarray, order: int):
    """s and s' for problems of higher index, with the given number of differentiations of all equations."""
    from daedal.index.structure.system_equations import SystemEquations
    from daedal.initial.jet import consistent_jet

    n, m = y0.size, s0.shape[0]
    itself = np.arange(n * (1 + m)) < n
    point = np.array([np.concatenate([y0, s0.ravel()]), np.concatenate([yp0, np.full(m * n, np.nan)])])
    jet = consistent_jet(SystemEquations(problem), t0, point, np.array([itself, itself]), order=order)
    return jet[0, n:].reshape(m, n), jet[1, n:].reshape(m, n)


def of_index_2(plan: Any, t0: float, y0: np.ndarray, yp0: np.ndarray, s0: np.ndarray):
    r"""s and s' of y' = f(t, y, z), 0 = g(t, y); None unless the index is 2.

    s changes as little as possible to satisfy :math:`g_y s + g_p = 0`, whose time derivative determines :math:`\sigma`
    with the matrix :math:`g_y f_z`. :math:`\sigma'` is not used and set to 0.
    """
    n, n_y, m = y0.size, plan.problem.n_y, s0.shape[0]
    function: Any = plan.variational.problem.residual
    graph, nodes = function.graph, function.nodes.reshape(1 + m, n)
    read = {graph.data[i] for i in graph.needed(nodes[0, n_y:].tolist()) if graph.operations[i] == "argument"}
    if any(name == "y" and n_y <= i < n for name, i in read):
        return None
    a = plan.partials(t0, y0, yp0)[1]
    by_y, matrix = a[n_y:, :n_y], -a[n_y:, :n_y] @ a[:n_y, n_y:]
    if not _is_regular(matrix):
        return None
    s, problem = s0.copy(), plan.numbered(plan.variational.problem)
    s[:, n_y:] = 0.0

    def left() -> np.ndarray:
        """Residuals of the variational equations for zero slopes: minus derivatives of f, and derivatives of g."""
        values = problem.evaluate(t0, np.concatenate([y0, s.ravel()]), np.zeros((1 + m) * n))
        return values[n:].reshape(m, n)

    s[:, :n_y] -= np.linalg.lstsq(by_y, left()[:, n_y:].T, rcond=None)[0].T
    slopes = -left()[:, :n_y]
    rates = {graph.argument("t", 0): graph.one}
    for k in range(1 + m):
        rates |= {graph.argument("y", k * n + i): graph.argument("yp", k * n + i) for i in range(n_y)}
    found = [directional(graph, nodes[k, n_y:].tolist(), rates) for k in range(1, 1 + m)]
    point = {"t": t0, "y": np.concatenate([y0, s.ravel()])}
    point["yp"] = np.concatenate([yp0, np.hstack([slopes, np.zeros((m, n - n_y))]).ravel()])
    if function.params is not None:
        point[function.params[0]] = np.asarray(problem.params)
    hidden = np.array(evaluate(graph, [i for row in found for i in row], point)).reshape(m, n - n_y)
    s[:, n_y:] = -np.linalg.solve(matrix, hidden.T).T
    return s, np.hstack([-left()[:, :n_y], np.zeros((m, n - n_y))])


def _of_large_problem(plan: Any, t0: float, y0: np.ndarray, yp0: np.ndarray, s0: np.ndarray):
    """s and s' by Newton's method with the iteration matrix of an artificial, very short step (BCP section 7.5)."""
    from daedal.initial.newton_start import newton_initial
    from daedal.methods.workspace import Workspace

    n, m = y0.size, s0.shape[0]
    problem = plan.numbered(plan.traced_problem())
    algebraic = algebraic_variables(plan.problem.implicit(), t0, y0, yp0)
    y, yp = np.concatenate([y0, s0.ravel()]), np.concatenate([yp0, np.zeros(m * n)])
    sizes = np.maximum(np.abs(y), _SHARP * max(1.0, float(np.abs(y).max())))
    step = _ARTIFICIAL * max(1.0, abs(t0))
    found = newton_initial(Workspace(problem), t0, y, yp, np.tile(algebraic, 1 + m), step, _COARSE * sizes)
    if not found.converged:
        raise InconsistentInitialError(
            f"no consistent initial sensitivities were found at t = {t0:g}: Newton's method did not converge. "
            "Remedy: declare the algebraic variables (algebraic=...), or give initial_sensitivities"
        )
    return found.y[n:].reshape(m, n), found.yp[n:].reshape(m, n)


def _to_constraints(e: np.ndarray, a: np.ndarray, left: np.ndarray, algebraic: np.ndarray) -> np.ndarray:
    """Smallest change of the differential variables that satisfies the equations that contain only these."""
    rows = _null_space(np.hstack([e, a[:, algebraic]]).T).T
    change = np.zeros_like(left)
    if rows.size:
        change[:, ~algebraic] = np.linalg.lstsq(rows @ a[:, ~algebraic], -rows @ left.T, rcond=1e-12)[0].T
    return change


def _of_higher_index(plan: Any, problem: Any, t0: float, point: tuple[np.ndarray, np.ndarray], algebraic: np.ndarray):
    """Satisfy the derivatives of the hidden constraints too, from the derivative array of the variational equations.

    The solution itself is unchanged. Sensitivities of algebraic variables change first, the others as little as
    possible.
    """
    from daedal.initial.consistent import consistent_initial

    n, m = plan.problem.n, plan.m
    plain = type(problem)(problem.residual, problem.n, params=problem.params, names=problem.names)
    itself = np.arange(n * (1 + m)) < n
    size = max(1.0, float(np.max(np.abs(point[0]), initial=0.0)))
    weights = size * np.tile(np.where(algebraic, _FREE, 1.0), 1 + m)
    try:  # first without changing the sensitivities of the differential variables
        held = itself | ~np.tile(algebraic, 1 + m)
        y, yp = consistent_initial(plain, t0, point, fixed=held, atol=_COARSE * weights)
        return y[n:].reshape(m, n), yp[n:].reshape(m, n)
    except InconsistentInitialError:
        pass
    try:
        y, yp = consistent_initial(plain, t0, point, fixed=itself, rtol=1e-12, atol=_SHARP * weights)
    except InconsistentInitialError as error:
        raise InconsistentInitialError(
            f"no consistent initial sensitivities were found at t = {t0:g}: give those of the initial values with "
            f"initial_sensitivities. {str(error).splitlines()[0]}",
            error.equations,
            error.residual,
        ) from None
    return y[n:].reshape(m, n), yp[n:].reshape(m, n)


def _is_of_index_1(e: np.ndarray, a: np.ndarray) -> bool:
    """Whether E + h A is as regular as its parts for small h, so that the equations determine the kernel of E."""
    left, right = _null_space(e.T), _null_space(e)
    return right.shape[1] == 0 or _is_regular(left.T @ a @ right)


def _null_space(e: np.ndarray) -> np.ndarray:
    if not e.size:
        return np.zeros((e.shape[1], 0))
    _, sizes, rows = np.linalg.svd(e)
    rank = int(np.sum(sizes > 1e-11 * max(float(sizes[0]), 1e-300)))
    return rows[rank:].T


def _is_regular(matrix: np.ndarray) -> bool:
    if not matrix.size:
        return True
    if not np.isfinite(matrix).all():
        return False
    matrix = matrix / np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 1e-300)
    matrix = matrix / np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return bool(sizes[-1] > _REGULAR * sizes[0])
