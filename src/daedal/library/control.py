"""Control problems of high index: an optimal regulator, and robots with flexible joints on prescribed paths."""

import math

import numpy as np

import daedal
from daedal.library.circuits import Source, linear_dae
from daedal.library.registry import Indices, Model, Reference, check_choice, closed_model, known, model

WEIGHTS = {1: (1.0, 1.0, 1.0), 3: (1.0, 1.0, 0.0), 5: (1.0, 0.0, 0.0)}
"""Weights of deviation, velocity and control, by the resulting index."""


@model
def regulator(index: int = 3) -> Model:
    r"""The regulator of a mass with the cost :math:`\tfrac12 \int q_1 (x_1 - \sin t)^2 + q_2 x_2^2 + r u^2`.

    Notes
    -----
    ``model.extra["exact"](t, derivative)`` is the solution in closed form, which lies on the stable manifold
    like the optimal one. The position satisfies :math:`r x_1'''' - q_2 x_1'' + q_1 x_1 = q_1 \sin t`: every vanishing
    weight removes two initial values and increases the index by two.
    """
    check_choice("index", index, tuple(WEIGHTS))
    q1, q2, r = WEIGHTS[index]
    H, G = np.diag([1.0, 1.0, 1.0, 1.0, 0.0]), np.zeros((5, 5))
    G[0, 1] = G[1, 4] = -1.0
    G[2, 0], G[3, 1], G[3, 2], G[4, 4], G[4, 3] = q1, q2, 1.0, r, 1.0
    problem = linear_dae(H, G, {2: Source(amplitude=q1, frequency=1.0)}, ["x1", "x2", "lambda1", "lambda2", "u"])
    roots = [root for root in np.roots([r, 0.0, -q2, 0.0, q1]) if root.real < 0.0]

    def position(t: float, derivative: int) -> float:
        forced = q1 / (q1 + q2 + r) * math.sin(t + derivative * math.pi / 2.0)
        return forced + sum((root**derivative * np.exp(root * t)).real for root in roots)

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        x1, x2, u, rate = (position(t, derivative + k) for k in range(4))
        return np.array([x1, x2, r * rate - q2 * x2, -r * u, u])

    return closed_model(
        problem,
        exact,
        2.0,
        accuracy=1e-13,
        title=f"Regulator of index {index}",
        index=index,
        indices=Indices.usual(index, 5 - index),
    )


# --- one link ---------------------------------------------------------------------------------------------------------


def flexible_joint_residual(t, y, yp, p):
    arm, rotor, stiffness, weight = p[0], p[1], p[2], p[3]
    r = np.empty(5)
    r[0] = yp[0] - y[1]
    r[1] = arm * yp[1] + stiffness * (y[0] - y[2]) + weight * math.sin(y[0])
    r[2] = yp[2] - y[3]
    r[3] = rotor * yp[3] - stiffness * (y[0] - y[2]) - y[4]
    r[4] = y[0] - math.sin(t)
    return r


@model
def flexible_joint(arm: float = 1.0, rotor: float = 0.5, stiffness: float = 20.0, weight: float = 5.0) -> Model:
    """An arm driven through a spring along a prescribed path; the unknown is the motor torque.

    Notes
    -----
    ``model.extra["exact"](t, derivative)`` is the exact solution (derivative 0) or its first derivative (derivative 1).
    There are no free initial values: the path determines all five unknowns.
    """

    def motor(t: float) -> list[float]:
        """Motor angle and its first three derivatives."""
        s, c = math.sin(t), math.cos(t)
        angle, sine, cosine = (s, c, -s, -c, s, c), math.sin(s), math.cos(s)
        lever = (sine, cosine * c, -sine * c * c - cosine * s, -cosine * c**3 + 3.0 * sine * s * c - cosine * c)
        return [angle[k] + (arm * angle[k + 2] + weight * lever[k]) / stiffness for k in range(4)]

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        q2, path, k = motor(t), (math.sin(t), math.cos(t), -math.sin(t)), derivative
        torque = rotor * q2[k + 2] - stiffness * (path[k] - q2[k])
        return np.array([path[k], path[k + 1], q2[k], q2[k + 1], torque])

    params = np.array([arm, rotor, stiffness, weight], dtype=float)
    names = ["q1", "v1", "q2", "v2", "u"]
    return closed_model(
        daedal.ImplicitDAE(flexible_joint_residual, 5, params=params, algebraic=[4], names=names),
        exact,
        2.0,
        accuracy=1e-13,
    )


# --- two links --------------------------------------------------------------------------------------------------------


def flexible_robot_residual(t, y, yp):
    x2, x3, x4, x6, u1, u2 = y[1], y[2], y[3], y[5], y[6], y[7]
    below = 2.0 - math.cos(x3) * math.cos(x3)
    a, b = 2.0 / below, math.cos(x3) / below
    c, d = math.sin(x3) / below, math.cos(x3) * math.sin(x3) / below
    turning, twist = 2.0 * c * (x4 + x6) * (x4 + x6) + x4 * x4 * d, 2.0 * x3 - x2
    r = np.empty(8)
    r[0] = yp[0] - x4
    r[1] = yp[1] - y[4]
    r[2] = yp[2] - x6
    r[3] = yp[3] - turning - twist * (a + 2.0 * b) - a * (u1 - u2)
    r[4] = yp[4] + turning - twist * (1.0 - 3.0 * a - 2.0 * b) + a * u1 - (a + 1.0) * u2
    r[5] = yp[5] + turning - twist * (a - 9.0 * b) + 2.0 * x4 * x4 * c + d * (x4 + x6) * (x4 + x6) + (a + b) * (u1 - u2)
    r[6] = math.cos(y[0]) + math.cos(y[0] + x3) - math.cos(1.0 - math.exp(t)) - math.cos(1.0 - t)
    r[7] = math.sin(y[0]) + math.sin(y[0] + x3) - math.sin(1.0 - math.exp(t)) - math.sin(1.0 - t)
    return r


@model
def flexible_robot() -> Model:
    r"""A robot arm of two links with a flexible joint whose hand follows a prescribed path, on [0, 1].

    Notes
    -----
    The angles of the links are :math:`x_1 = 1 - e^t` and :math:`x_3 = e^t - t`; the motor angle :math:`x_2` and the
    torques :math:`u_1, u_2` follow from derivatives of the equations. There are no free initial values.
    """
    entry = known("flexible_robot")
    assert entry is not None
    names = ["x1", "x2", "x3", "x4", "x5", "x6", "u1", "u2"]
    return Model(
        problem=daedal.ImplicitDAE(flexible_robot_residual, 8, algebraic=[6, 7], names=names),
        t_span=(0.0, entry["t"]),
        initial=(np.array(entry["start"]), np.array(entry["start_derivative"])),
        reference=Reference(entry["t"], np.array(entry["y"]), entry["source"], entry["accuracy"]),
    )
