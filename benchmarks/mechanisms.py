"""Mechanisms of ``daedal.library`` in the forms that solvers for ODEs and first-order DAEs can take.

Daedal is given M, f and g as they are. The others get, with q' = v, n coordinates and derivatives of g by hand,

* ``index1``: M v' = f - G^T lam, G v' = gamma, the unknowns (q, v, lam);
* ``ggl``: q' = v - G^T mu, M v' = f - G^T lam, 0 = g, 0 = G v + g_t, the unknowns (q, v, lam, mu), index 2;
* ``ggl1``: the same with lam and mu as derivatives of unknowns, which lowers the index to 1;
* ``ode``: q' = v, v' from the augmented system, as one reduces by hand. Nothing keeps it on the constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from daedal import MechanicalSystem, library

Array = np.ndarray

FORMS = {"index1": "index 1", "ggl": "GGL", "ggl1": "GGL of index 1", "ode": "reduced to an ODE"}


@dataclass(frozen=True)
class Mechanism:
    """A mechanical model of the library, plain or compiled."""

    name: str

    def model(self, compiled: bool) -> library.Model:
        return _model(self.name, compiled)

    def statement(self) -> MechanicalSystem:
        """M, f and g in plain functions, and nothing else."""
        system = self.model(False).problem
        sizes = {"n_q": system.n_q, "n_constraints": system.n_constraints}
        return MechanicalSystem(system.mass, system.force, system.constraint, params=system.params, **sizes)

    def residual(self, form: str, compiled: bool) -> Callable[..., Array]:
        """F(t, y, y', p) of a form."""
        return _residual(self.name, form, compiled)

    def rate(self, compiled: bool) -> Callable[..., Array]:
        """(q', v') as f(t, y, p)."""
        return _residual(self.name, "ode", compiled)

    def start(self, form: str) -> tuple[Array, Array]:
        """Consistent unknowns and derivatives."""
        model = self.model(False)
        q, v = model.initial
        acceleration, multipliers = _accelerations(model.problem, model.t_span[0], q, v)
        none = np.zeros(model.problem.n_constraints)
        state, slope = np.concatenate([q, v]), np.concatenate([v, acceleration])
        if form == "ode":
            return state, slope
        if form == "index1":
            return np.concatenate([state, multipliers]), np.concatenate([slope, none])
        if form == "ggl":
            return np.concatenate([state, multipliers, none]), np.concatenate([slope, none, none])
        return np.concatenate([state, none, none]), np.concatenate([slope, multipliers, none])

    def drift(self, y: Array) -> float:
        """The largest residual of a position constraint at the end point ``y``."""
        model = self.model(False)
        system = model.problem
        assert system.constraint is not None
        return float(np.max(np.abs(system.constraint(model.t_span[1], np.asarray(y)[: system.n_q], system.params))))


@cache
def _model(name: str, compiled: bool) -> library.Model:
    return library.get(name, compiled=compiled)


@cache
def _residual(name: str, form: str, compiled: bool) -> Callable[..., Array]:
    system = _model(name, compiled).problem
    n, m = system.n_q, system.n_constraints
    if form == "ode":
        written = rate_function(system, n, m)
    elif form == "index1":
        written = _index1(system, n, m)
    else:
        velocity_level = _through_numba(_velocity_level(system.constraint_t), compiled)
        written = _ggl(system, n, m, form == "ggl1", velocity_level)
    return _through_numba(written, compiled)


def _through_numba(function: Callable[..., Array], compiled: bool) -> Callable[..., Array]:
    if not compiled:
        return function
    import numba

    return numba.njit(function)


def mass_function(system: Any) -> Callable[..., Array]:
    """M(t, q), also where it is constant; compiled if the other functions are."""
    matrix = system.mass
    if callable(matrix):
        return matrix
    return _through_numba(lambda t, q, p: matrix, hasattr(system.force, "py_func"))


def _accelerations(system: Any, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """Accelerations and multipliers at one point, by NumPy alone: a first call of Daedal must find nothing loaded."""
    n, m, p = system.n_q, system.n_constraints, system.params
    rows = system.constraint_jacobian(t, q, p)
    matrix = np.block([[mass_function(system)(t, q, p), rows.T], [rows, np.zeros((m, m))]])
    solved = np.linalg.solve(matrix, np.concatenate([system.force(t, q, v, p), system.acceleration_bias(t, q, v, p)]))
    return solved[:n], solved[n:]


def _index1(system: Any, n: int, m: int) -> Callable[..., Array]:
    mass, force, jacobian, bias = (
        mass_function(system),
        system.force,
        system.constraint_jacobian,
        system.acceleration_bias,
    )

    def residual(t, y, yp, p):
        q, v, lam, a = y[:n], y[n : 2 * n], y[2 * n :], yp[n : 2 * n]
        rows = jacobian(t, q, p)
        r = np.empty(2 * n + m)
        r[:n] = yp[:n] - v
        r[n : 2 * n] = mass(t, q, p) @ a - force(t, q, v, p) + lam @ rows
        r[2 * n :] = rows @ a - bias(t, q, v, p)
        return r

    return residual


def _ggl(system: Any, n: int, m: int, lowered: bool, velocity_level: Callable[..., Array]) -> Callable[..., Array]:
    mass, force, constraint, jacobian = (
        mass_function(system),
        system.force,
        system.constraint,
        system.constraint_jacobian,
    )

    def residual(t, y, yp, p):
        q, v = y[:n], y[n : 2 * n]
        multipliers = yp[2 * n :] if lowered else y[2 * n :]
        rows = jacobian(t, q, p)
        r = np.empty(2 * n + 2 * m)
        r[:n] = yp[:n] - v + multipliers[m:] @ rows
        r[n : 2 * n] = mass(t, q, p) @ yp[n : 2 * n] - force(t, q, v, p) + multipliers[:m] @ rows
        r[2 * n : 2 * n + m] = velocity_level(rows, t, q, v, p)
        r[2 * n + m :] = constraint(t, q, p)
        return r

    return residual


def _velocity_level(partial_t: Any) -> Callable[..., Array]:
    """G v + g_t."""
    if partial_t is None:
        return lambda rows, t, q, v, p: rows @ v
    return lambda rows, t, q, v, p: rows @ v + partial_t(t, q, p)


def rate_function(system: Any, n: int, m: int) -> Callable[..., Array]:
    """q' = v and v' from the augmented system, as f(t, y, p)."""
    mass, force, jacobian, bias = (
        mass_function(system),
        system.force,
        system.constraint_jacobian,
        system.acceleration_bias,
    )

    def rate(t, y, p):
        q, v = y[:n], y[n:]
        rows = jacobian(t, q, p)
        matrix, right = np.zeros((n + m, n + m)), np.empty(n + m)
        matrix[:n, :n] = mass(t, q, p)
        matrix[:n, n:] = rows.T
        matrix[n:, :n] = rows
        right[:n] = force(t, q, v, p)
        right[n:] = bias(t, q, v, p)
        slope = np.empty(2 * n)
        slope[:n] = v
        slope[n:] = np.linalg.solve(matrix, right)[:n]
        return slope

    return rate
