"""Repelling points on the sphere: Fekete's problem of the test set, as equations of motion."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import daedal
from daedal.library.registry import Model, Reference, known, mechanical_model, model

POINTS = 20
# initially, the points lie on four circles of latitude: number, latitude, longitude of point 0, number of the first
CIRCLES = (
    (3, 3.0 * math.pi / 8.0, math.pi / 13.0, 1),
    (7, math.pi / 8.0, math.pi / 29.0, 1),
    (6, -2.0 * math.pi / 15.0, math.pi / 7.0, 1),
    (4, -3.0 * math.pi / 10.0, math.pi / 17.0, 0),
)


def start() -> np.ndarray:
    """The initial positions of the 20 points, as one vector."""
    places = []
    for count, latitude, turn, first in CIRCLES:
        for k in range(first, count + first):
            longitude = 2.0 * math.pi * k / count + turn
            places += [
                math.cos(longitude) * math.cos(latitude),
                math.sin(longitude) * math.cos(latitude),
                math.sin(latitude),
            ]
    return np.array(places)


def repulsion(t, q, v, p):
    """Repulsive forces (q_i - q_j)/|q_i - q_j|^2, and friction -p_0 v."""
    f = np.empty(60)
    for k in range(60):
        f[k] = -p[0] * v[k]
    for i in range(0, 60, 3):
        for j in range(0, i, 3):
            x, y, z = q[i] - q[j], q[i + 1] - q[j + 1], q[i + 2] - q[j + 2]
            w = 1.0 / (x * x + y * y + z * z)
            f[i] += w * x
            f[i + 1] += w * y
            f[i + 2] += w * z
            f[j] -= w * x
            f[j + 1] -= w * y
            f[j + 2] -= w * z
    return f


def on_sphere(t, q, p):
    g = np.empty(20, q.dtype)
    for i in range(20):
        g[i] = q[3 * i] * q[3 * i] + q[3 * i + 1] * q[3 * i + 1] + q[3 * i + 2] * q[3 * i + 2] - 1.0
    return g


def on_sphere_jacobian(t, q, p):
    jacobian = np.zeros((20, 60), q.dtype)
    for i in range(20):
        for k in range(3 * i, 3 * i + 3):
            jacobian[i, k] = 2.0 * q[k]
    return jacobian


def on_sphere_bias(t, q, v, p):
    gamma = np.empty(20)
    for i in range(20):
        gamma[i] = -2.0 * (v[3 * i] * v[3 * i] + v[3 * i + 1] * v[3 * i + 1] + v[3 * i + 2] * v[3 * i + 2])
    return gamma


def stabilised_slopes(t, y, z, p):
    f = np.empty(120)
    for i in range(60):
        f[i] = y[60 + i] + 2.0 * z[20 + i // 3] * y[i]
        f[60 + i] = 2.0 * z[i // 3] * y[i] - p[0] * y[60 + i]
    for i in range(0, 60, 3):
        for j in range(0, i, 3):
            a, b, c = y[i] - y[j], y[i + 1] - y[j + 1], y[i + 2] - y[j + 2]
            w = 1.0 / (a * a + b * b + c * c)
            f[60 + i] += w * a
            f[61 + i] += w * b
            f[62 + i] += w * c
            f[60 + j] -= w * a
            f[61 + j] -= w * b
            f[62 + j] -= w * c
    return f


def stabilised_constraints(t, y, z, p):
    g = np.empty(40)
    for i in range(20):
        a, b, c = y[3 * i], y[3 * i + 1], y[3 * i + 2]
        g[i] = a * a + b * b + c * c - 1.0
        g[20 + i] = 2.0 * (a * y[60 + 3 * i] + b * y[61 + 3 * i] + c * y[62 + 3 * i])
    return g


@model
def fekete(form: str = "index3", friction: float = 0.5, t1: float = 1000.0, compiled: bool = False) -> Model:
    """Twenty repelling points on the unit sphere: 60 coordinates, 20 constraints.

    Notes
    -----
    In equilibrium every multiplier is (1 - 20)/4, since (q_i - q_j) . q_i is half of the squared distance. The test set
    adds the constraint forces, whereas mechanisms subtract them, so its multipliers have the opposite sign.
    ``model.extra`` has ``logarithm(q)``, the sum of the logarithms of all distances, which the motion maximises.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.fekete(t1=20.0)
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial)
    >>> print(f"{model.extra['logarithm'](sol.q[:, 0]):.2f} -> {model.extra['logarithm'](sol.q[:, -1]):.2f}")
    53.42 -> 54.01
    """
    params = np.array([friction], dtype=float)
    q0 = start()
    names = [f"{axis}{k}" for k in range(1, POINTS + 1) for axis in "xyz"]
    entry = known("fekete", friction=friction, t1=t1)
    extra = {"logarithm": _logarithm}
    plot = {"variables": ["z1", "z4", "z11", "z17"]}
    if form == "index3":
        problem = daedal.MechanicalSystem(
            1.0,
            repulsion,
            on_sphere,
            n_q=60,
            n_constraints=20,
            constraint_jacobian=on_sphere_jacobian,
            acceleration_bias=on_sphere_bias,
            params=params,
            names=names,
            constraint_names=[f"point {k}" for k in range(1, POINTS + 1)],
        )
        return mechanical_model(problem, (q0, np.zeros(60)), t1, compiled, known=entry, extra=extra, plot=plot)
    first_order = daedal.SemiExplicitDAE(
        stabilised_slopes,
        stabilised_constraints,
        120,
        40,
        params=params,
        names=[
            *names,
            *(f"v{name}" for name in names),
            *(f"lam{k}" for k in range(1, 21)),
            *(f"mu{k}" for k in range(1, 21)),
        ],
    )
    z0 = np.concatenate([np.full(POINTS, 0.25 * (1 - POINTS)), np.zeros(POINTS)])
    return Model(
        problem=first_order.compiled(backend="trace") if compiled else first_order,
        t_span=(0.0, float(t1)),
        initial=(np.concatenate([q0, np.zeros(60)]), z0),
        index=2,
        reference=None if entry is None else _first_order_reference(entry, t1),
        options={"rtol": 1e-6, "atol": 1e-6},
        plot=plot,
        extra=extra,
    )


def _first_order_reference(entry: Mapping[str, Any], t1: float) -> Reference:
    """Reference with the multipliers 2 lam = -(n - 1)/2 - |v|^2, since q . v = 0, and mu = 0."""
    y = np.array(entry["y"])
    speed = np.sum(y[60:].reshape(POINTS, 3) ** 2, axis=1)
    multipliers = np.concatenate([-0.25 * (POINTS - 1) - 0.5 * speed, np.zeros(POINTS)])
    return Reference(t1, np.concatenate([y, multipliers]), entry["source"], entry["accuracy"])


def _logarithm(q) -> float:
    """Sum of the logarithms of all pairwise distances."""
    places = np.asarray(q, dtype=float)[:60].reshape(POINTS, 3)
    first, second = np.triu_indices(POINTS, 1)
    return float(np.sum(np.log(np.linalg.norm(places[first] - places[second], axis=1))))
