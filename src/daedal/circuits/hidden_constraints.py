r"""The start of circuits of index 2: the equations and their first derivatives, with all charges and fluxes kept.

With :math:`A = F_x` and the constant :math:`B = F_{x'}` the unknowns :math:`\delta, x', x''` of

.. math::

    F(t, x, 0) + A \delta + B x' = 0, \qquad F_t + A x' + B x'' = 0, \qquad B \delta = 0

correct a state at rest, :math:`x + \delta`, and give its derivative: the current along a CV-loop becomes that of the
slope of its source, the voltage across an LI-cutset likewise. What is not determined, derivatives of higher order, is
as small as possible.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import daedal
from daedal.circuits.equations import Equations

LARGEST = 300  # unknowns; the array has three times as many
ROUNDS = 4
_SATISFIED = 1e-8


def with_hidden_constraints(
    equations: Equations, params: Mapping[str, float], t0: float, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Consistent values and derivatives from a state at rest; None if one differentiation is not enough."""
    n = len(equations.names)
    problem = _with_time(equations, dict(params))
    rows, columns, time = _units(equations, params)
    y = np.append(x, t0)
    rest = np.zeros(n + 1)
    slope = np.zeros(n)
    for _ in range(ROUNDS):
        partials = problem.exact_partials(t0, y, rest)
        if partials is None:
            return None
        B, A, F_t = partials[0][:n, :n], partials[1][:n, :n], partials[1][:n, n]
        A, B = A * columns / rows[:, None], B * columns / (time * rows[:, None])
        F, F_t = problem.evaluate(t0, y, rest)[:n] / rows, F_t * time / rows
        zero = np.zeros((n, n))
        array = np.block([[A, B, zero], [zero, A, B], [B, zero, zero]])
        right = np.concatenate([-F, -F_t, np.zeros(n)])
        found = np.linalg.lstsq(array, right, rcond=1e-12)[0]
        if np.max(np.abs(array @ found - right)) > _SATISFIED * max(1.0, np.max(np.abs(right))):
            return None
        delta, slope = found[:n] * columns, found[n : 2 * n] * columns / time
        y[:n] += delta
        if np.max(np.abs(delta / columns)) <= 1e-12 * (1.0 + np.max(np.abs(y[:n] / columns))):
            return y[:n], slope
    return None


def _with_time(equations: Equations, params: dict[str, float]) -> daedal.ImplicitDAE:
    """The equations with the time as one more unknown, so that exact derivatives contain that by time."""
    n = len(equations.names)

    def residual(t, y, yp, p):
        return [*equations.residual(y[n], y[:n], yp[:n], p), y[n] - t]

    return daedal.ImplicitDAE(residual, n + 1, params=params).compiled(backend="trace")


def _units(equations: Equations, params: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray, float]:
    """Sizes of equations and unknowns, and a time: 1 V, and the means of resistances and of capacitances."""
    values: dict[str, list[float]] = {"R": [], "C": [], "L": []}
    for branch in equations.branches:
        if branch.kind in values and branch.name in params:
            values[branch.kind].append(params[branch.name])
    R, C, L = (float(np.exp(np.mean(np.log(found)))) if found else None for found in values.values())
    conductance = 1.0 / (R or 1e3)
    time = C / conductance if C else L * conductance if L else 1.0
    unit = {"v": 1.0, "u": 1.0, "i": conductance, "q": conductance * time, "phi": time}
    columns = np.array([unit[name.partition("(")[0]] for name in equations.names])
    rows = np.array([_row_unit(equations, name, unit) for name in equations.names])
    return rows, columns, time


def _row_unit(equations: Equations, name: str, unit: Mapping[str, float]) -> float:
    """Kirchhoff's current law stands in the row of a voltage; the law of a branch in that of its current."""
    letter, _, rest = name.partition("(")
    if letter == "v":
        return unit["i"]
    if letter != "i":
        return unit[letter]
    kind = next(branch.kind for branch in equations.branches if branch.name == rest[:-1])
    return unit["i"] if kind in "RIGC" else 1.0
