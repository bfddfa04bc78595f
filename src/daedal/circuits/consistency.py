r"""Consistent starts from a state at rest, with charges and fluxes kept.

Let :math:`A = F_x` and :math:`B = F_{x'}`, which is constant. With index 1 the state is consistent, and its derivative
follows from the equations and the derivatives of those combinations :math:`N^T F` that contain none, :math:`N^T B = 0`:

.. math::

    B x' = -F(t, x, 0), \qquad N^T A x' = -N^T F_t .

With index 2 the unknowns :math:`\delta, x', x''` of

.. math::

    F(t, x, 0) + A \delta + B x' = 0, \qquad F_t + A x' + B x'' = 0, \qquad B \delta = 0

correct the state: the current along a CV-loop becomes that of the slope of its source, the voltage across an LI-cutset
likewise. What is not determined, derivatives of higher order, is as small as possible.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

import daedal
from daedal.circuits.equations import Equations

LARGEST = 300  # unknowns; the array has three times as many
ROUNDS = 4
_RANK, _SATISFIED = 1e-13, 1e-8


def consistent_start(
    equations: Equations, params: Mapping[str, float], t0: float, x: np.ndarray, index: int | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Consistent values and derivatives from a state at rest; None if one differentiation is not enough."""
    n = len(equations.names)
    sizes, time = _units(equations, params)
    problem = _with_time(equations, dict(params))
    find = _rates if index is not None and index <= 1 else _corrected
    y = np.append(x, t0)
    for _ in range(ROUNDS):
        partials = problem.exact_partials(t0, y, np.zeros(n + 1))
        if partials is None or not np.isfinite(partials).all():
            return None
        A, B, F_t = partials[1][:n, :n] * sizes, partials[0][:n, :n] * sizes / time, partials[1][:n, n] * time
        rows = np.maximum(np.max(np.abs(A), axis=1), np.max(np.abs(B), axis=1))
        F = problem.evaluate(t0, y, np.zeros(n + 1))[:n] / rows
        found = find(A / rows[:, None], B / rows[:, None], F, F_t / rows)
        if found is None:
            return None
        y[:n] += found[0] * sizes
        if np.max(np.abs(found[0])) <= 1e-12 * (1.0 + np.max(np.abs(y[:n] / sizes))):
            return y[:n], found[1] * sizes / time
    return None


def _rates(A: np.ndarray, B: np.ndarray, F: np.ndarray, F_t: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """No correction, and x'."""
    left, singular, _ = np.linalg.svd(B)
    N = left[:, singular <= _RANK * max(1.0, singular[0])]
    found = _solved(np.vstack([B, N.T @ A]), np.concatenate([-F, -N.T @ F_t]))
    return None if found is None else (np.zeros(len(F)), found)


def _corrected(A: np.ndarray, B: np.ndarray, F: np.ndarray, F_t: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The correction of x, and x'."""
    n, zero = len(F), np.zeros_like(A)
    array = np.block([[A, B, zero], [zero, A, B], [B, zero, zero]])
    found = _solved(array, np.concatenate([-F, -F_t, np.zeros(n)]))
    return None if found is None else (found[:n], found[n : 2 * n])


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    found = np.linalg.lstsq(matrix, right, rcond=_RANK)[0]
    return found if np.max(np.abs(matrix @ found - right)) <= _SATISFIED * max(1.0, np.max(np.abs(right))) else None


def _with_time(equations: Equations, params: dict[str, float]) -> daedal.ImplicitDAE:
    """The equations with the time as one more unknown, so that exact derivatives contain that by time."""
    n = len(equations.names)

    def residual(t, y, yp, p):
        return [*equations.residual(y[n], y[:n], yp[:n], p), y[n] - t]

    inner = equations.sparsity(params)
    pattern = None if inner is None else sparse.block_array([[inner, np.ones((n, 1))], [None, np.ones((1, 1))]])
    return daedal.ImplicitDAE(residual, n + 1, params=params, sparsity=pattern).compiled(backend="trace")


def _units(equations: Equations, params: Mapping[str, float]) -> tuple[np.ndarray, float]:
    """Sizes of the unknowns, and a time: 1 V, and the means of resistances and of capacitances or inductances."""
    values: dict[str, list[float]] = {"R": [], "C": [], "L": []}
    for branch in equations.branches:
        if branch.kind in values and branch.name in params:
            values[branch.kind].append(params[branch.name])
    R, C, L = (float(np.exp(np.mean(np.log(found)))) if found else None for found in values.values())
    conductance = 1.0 / (R or 1e3)
    time = C / conductance if C else L * conductance if L else 1.0
    unit = {"v": 1.0, "u": 1.0, "i": conductance, "q": conductance * time, "phi": time}
    return np.array([unit[name.partition("(")[0]] for name in equations.names]), time
