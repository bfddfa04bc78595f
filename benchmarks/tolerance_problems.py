"""The problems of the tolerance study: those of the library that have a known solution, and some of the test set.

References of the latter are by an independent code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import daedal
from daedal import library

Array = np.ndarray

# Steps are prescribed, or rtol = atol makes no sense there (10^11 s with variables of size 1e-14)
_LEFT_OUT = ("index3_chain", "tppc3", "robertson")
# Index-2 variables of residuals are left out of the error test, as the library's own options say
_KEPT_OPTIONS = ("error_test", "correct_initial", "formulation", "method")


@dataclass(frozen=True)
class Study:
    """A problem with the time and values of its known solution; nan where none is known."""

    name: str
    kind: str
    problem: Any
    start: tuple
    t_span: tuple[float, float]
    known: Array
    options: dict = field(default_factory=dict)
    state: Callable[[Any], Array] = lambda sol: sol.y[:, -1]


@cache
def problems(test_set: bool = True) -> tuple[Study, ...]:
    """All problems of the study; those of the test set take some seconds for their references."""
    found = (*_of_library(), *_second_order())
    return (*found, *_test_set(), *_stiff_vibrations()) if test_set else found


def _of_library():
    for name in library.names():
        if name in _LEFT_OUT:
            continue
        model = library.get(name)
        if model.reference is None:
            continue
        options = {key: model.options[key] for key in _KEPT_OPTIONS if key in model.options}
        span = (model.t_span[0], model.reference.t)
        yield Study(name, type(model.problem).__name__, model.problem, model.initial, span, model.reference.y, options)


def _second_order():
    """Mechanisms of the library as index-3 residuals, which SecondOrderDAE takes as they stand."""
    for name in ("seven_body", "car_axis", "double_pendulum", "planar_pendulum", "crank_slider"):
        model = library.get(name)
        system, (q, v) = model.problem, (np.asarray(part, dtype=float) for part in model.initial)
        n, m = system.n_q, system.n_constraints
        at = system.at(model.t_span[0], *model.initial)
        problem = daedal.SecondOrderDAE(_index3(system), n + m, order=[2] * n + [0] * m)
        start = (np.concatenate([q, at.multipliers]), np.concatenate([v, np.zeros(m)]))
        yield Study(
            f"{name}, index 3",
            "SecondOrderDAE",
            problem,
            start,
            (model.t_span[0], model.reference.t),
            model.reference.y[: 2 * n],
            state=lambda sol, n=n: np.concatenate([sol.x[:n, -1], sol.xp[:n, -1]]),
        )


def _index3(system):
    n, tail = system.n_q, () if system.params is None else (system.params,)

    def mass(t, q):
        return np.asarray(system.mass(t, q, *tail) if callable(system.mass) else system.mass, dtype=float)

    def residual(t, x, xp, xpp):
        q, v, a, lam = x[:n], xp[:n], xpp[:n], x[n:]
        M, G = mass(t, q), np.asarray(system.constraint_jacobian(t, q, *tail))
        inertia = M @ a if M.ndim == 2 else M * a
        forces = inertia - np.asarray(system.force(t, q, v, *tail)) + G.T @ lam
        return np.concatenate([forces, np.asarray(system.constraint(t, q, *tail))])

    return residual


def _ode(name: str, right_side, start, t1: float, method: str = "DOP853"):
    """y' = f(t, y) as a residual, with a reference by SciPy."""
    start = np.asarray(start, dtype=float)
    exact = solve_ivp(right_side, (0.0, t1), start, method=method, rtol=3e-13, atol=1e-15).y[:, -1]

    def residual(t, y, yp):
        return yp - right_side(t, y)

    problem = daedal.ImplicitDAE(residual, start.size)
    return Study(name, "ImplicitDAE", problem, (start, right_side(0.0, start)), (0.0, t1), exact)


def _test_set():
    yield _ode("HIRES", _hires, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057], 321.8122, "Radau")
    yield _ode("Pleiades", _pleiades, _PLEIADES, 3.0)
    yield _ode(
        "van der Pol", lambda t, y: np.array([y[1], 1e3 * ((1.0 - y[0] ** 2) * y[1] - y[0])]), [2.0, 0.0], 2.0, "Radau"
    )
    yield _ode("OREGO", _oregonator, [1.0, 2.0, 3.0], 360.0, "Radau")


def _hires(t, y):
    rate = 280.0 * y[5] * y[7]
    return np.array(
        [
            -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -rate + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
            rate - 1.81 * y[6],
            -rate + 1.81 * y[6],
        ]
    )


_PLEIADES = [3, 3, -1, -3, 2, -2, 2, 3, -3, 2, 0, 0, -4, 4, *[0] * 5, 1.75, -1.5, 0, 0, 0, -1.25, 1, 0, 0]


def _pleiades(t, y):
    x, z = y[:7], y[7:14]
    dx, dz = x - x[:, None], z - z[:, None]
    cube = (dx**2 + dz**2 + np.eye(7)) ** 1.5
    masses = np.arange(1.0, 8.0)
    return np.concatenate([y[14:], (masses * dx / cube).sum(axis=1), (masses * dz / cube).sum(axis=1)])


def _oregonator(t, y):
    return np.array(
        [
            77.27 * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1])),
            (y[2] - (1.0 + y[0]) * y[1]) / 77.27,
            0.161 * (y[0] - y[2]),
        ]
    )


def _stiff_vibrations():
    """Mechanisms with undamped vibrations far faster than the motion: an elastic beam, a pendulum on a stiff spring."""
    n = 10
    force = elastic_beam(n)
    start, span = (np.zeros(n), np.zeros(n)), (0.0, 5.0)
    exact = solve_ivp(
        lambda t, y: np.concatenate([y[n:], force(t, y[:n], y[n:])]),
        span,
        np.zeros(2 * n),
        "Radau",
        rtol=1e-10,
        atol=1e-12,
    ).y[:, -1]
    yield Study("elastic beam", "MechanicalSystem", daedal.MechanicalSystem(1.0, force, n_q=n), start, span, exact)
    yield from _pendulum_on_spring(1e6)


def elastic_beam(n: int):
    """Accelerations of the angles of an inextensible beam of n pieces (Hairer and Wanner, IV (1.10))."""
    i, diagonal = np.arange(n - 1), np.concatenate([[1.0], np.full(n - 2, 2.0), [3.0]])

    def force(t, angle, rate):
        load = 1.5 * np.sin(t) ** 2 if t <= np.pi else 0.0
        before, after = np.concatenate([[-angle[0]], angle[:-1]]), np.concatenate([angle[1:], [angle[-1]]])
        v = n**4 * (before - 2.0 * angle + after) + n**2 * load * (np.cos(angle) + np.sin(angle))
        C, D, turn = np.diag(diagonal), np.zeros((n, n)), np.diff(angle)
        C[i + 1, i] = C[i, i + 1] = -np.cos(turn)
        D[i + 1, i], D[i, i + 1] = -np.sin(turn), np.sin(turn)
        return C @ v + D @ np.linalg.solve(C, D @ v + rate**2)

    return force


def _pendulum_on_spring(k: float):
    """A bob on a rod, and a second one that hangs on it by an undamped spring of length 0.5."""

    def pull(along):
        length = np.hypot(along[0], along[1])
        return k * (length - 0.5) / length * along

    def force(t, q, v):
        f = pull(q[2:] - q[:2])
        return np.array([f[0], f[1] - 9.81, -f[0], -f[1] - 9.81])

    def minimal(t, y):
        s, c = np.sin(y[0]), np.cos(y[0])
        f = pull(np.array([y[1] - s, y[2] + c]))
        return np.array([*y[3:], c * f[0] + s * (f[1] - 9.81), -f[0], -f[1] - 9.81])

    system = daedal.MechanicalSystem(
        1.0,
        force,
        lambda t, q: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
        n_q=4,
        n_constraints=1,
        constraint_jacobian=lambda t, q: [[q[0], q[1], 0.0, 0.0]],
    )
    a, x, y, rate, u, w = solve_ivp(
        minimal, (0.0, 2.0), [np.pi / 2, 1.5, 0.0, 0.0, 0.0, 0.0], "DOP853", rtol=1e-12, atol=1e-13
    ).y[:, -1]
    known = np.array([np.sin(a), -np.cos(a), x, y, rate * np.cos(a), rate * np.sin(a), u, w])
    start = ([1.0, 0.0, 1.5, 0.0], np.zeros(4))
    yield Study("stiff spring", "MechanicalSystem", system, start, (0.0, 2.0), known)
    for formulation in ("ggl", "projected_invariants"):
        yield Study(
            f"stiff spring, {formulation}",
            "MechanicalSystem",
            system,
            start,
            (0.0, 2.0),
            known,
            {"formulation": formulation},
        )
