"""Planar mechanisms of rods, in absolute coordinates: pendulum, double pendulum, crank and slider.

Gravity acts along +x, angles are measured from the x axis: a rod with angle 0 hangs down. A rod of length 2l and mass m
has its centre of mass at the midpoint and the moment of inertia m l^2/3 about it.
"""

import math
from typing import NamedTuple

import numpy as np

import daedal
from daedal.library.registry import Model, check_angle, known, mechanical_model, model, pendulum_angle

# gravity for the period 2 s with amplitude pi/2: 3g/(4l) = (2K)^2 with the quarter period K for modulus sin(pi/4)
GRAVITY_PERIOD_2 = 18.33382884805432754

# --- one rod: q = (x, y, phi), p = (l, weight) -------------------------------------------------------------------


def rod_weight(t, q, v, p):
    return np.array([p[1], 0.0, 0.0])


def pivot(t, q, p):
    return np.array([q[0] - p[0] * np.cos(q[2]), q[1] - p[0] * np.sin(q[2])])


def pivot_jacobian(t, q, p):
    jacobian = np.zeros((2, 3), q.dtype)
    jacobian[0, 0] = 1.0
    jacobian[1, 1] = 1.0
    jacobian[0, 2] = p[0] * np.sin(q[2])
    jacobian[1, 2] = -p[0] * np.cos(q[2])
    return jacobian


def pivot_bias(t, q, v, p):
    return np.array([-p[0] * math.cos(q[2]) * v[2] * v[2], -p[0] * math.sin(q[2]) * v[2] * v[2]])


@model
def rod_pendulum(
    m: float = 1.0,
    l: float = 1.0,
    gravity: float = GRAVITY_PERIOD_2,
    angle: float = 0.5 * math.pi,
    t1: float = 100.0,
    compiled: bool = False,
) -> Model:
    """A rod of length 2l that swings about its end, with centre and angle as coordinates.

    Notes
    -----
    ``model.extra`` has ``exact``, ``exact_lam``, ``energy``, ``configuration`` and ``lam``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.rod_pendulum()
    >>> model.extra["lam"].round(7) + 0.0
    array([4.5834572, 0.       ])
    """
    check_angle(angle=angle)
    problem = daedal.MechanicalSystem(
        [m, m, m * l * l / 3.0],
        rod_weight,
        pivot,
        n_q=3,
        n_constraints=2,
        constraint_jacobian=pivot_jacobian,
        acceleration_bias=pivot_bias,
        params=np.array([l, m * gravity], dtype=float),
        names=["x", "y", "phi"],
        constraint_names=["pivot x", "pivot y"],
    )

    def configuration(phi, rate):
        s, c = np.sin(phi), np.cos(phi)
        return np.array([l * c, l * s, phi]), np.array([-l * rate * s, l * rate * c, rate])

    def exact(t: float) -> np.ndarray:
        return np.concatenate(configuration(*pendulum_angle(t, angle, math.sqrt(0.75 * gravity / l))))

    def exact_lam(t: float) -> np.ndarray:
        a, w = pendulum_angle(t, angle, math.sqrt(0.75 * gravity / l))
        s, c, slope = math.sin(a), math.cos(a), -0.75 * gravity / l * math.sin(a)
        return m * np.array([gravity + l * (slope * s + w * w * c), -l * (slope * c - w * w * s)])

    def energy(q, v):
        return 0.5 * m * (v[0] ** 2 + v[1] ** 2 + l * l * v[2] ** 2 / 3.0) - m * gravity * q[0]

    return mechanical_model(
        problem,
        configuration(angle, 0.0),
        t1,
        compiled,
        exact=exact,
        exact_lam=exact_lam,
        energy=energy,
        configuration=configuration,
    )


# --- two rods in a row: q = (x1, y1, phi1, x2, y2, phi2), p = (l1, l2, weight1, weight2) -----------------------


def rods_weight(t, q, v, p):
    return np.array([p[2], 0.0, 0.0, p[3], 0.0, 0.0])


def joints(t, q, p):
    g = np.empty(4, q.dtype)
    g[0] = q[0] - p[0] * np.cos(q[2])
    g[1] = q[1] - p[0] * np.sin(q[2])
    g[2] = q[3] - 2.0 * p[0] * np.cos(q[2]) - p[1] * np.cos(q[5])
    g[3] = q[4] - 2.0 * p[0] * np.sin(q[2]) - p[1] * np.sin(q[5])
    return g


def joints_jacobian(t, q, p):
    jacobian = np.zeros((4, 6), q.dtype)
    s1, c1 = p[0] * np.sin(q[2]), p[0] * np.cos(q[2])
    jacobian[0, 0] = 1.0
    jacobian[1, 1] = 1.0
    jacobian[2, 3] = 1.0
    jacobian[3, 4] = 1.0
    jacobian[0, 2] = s1
    jacobian[1, 2] = -c1
    jacobian[2, 2] = 2.0 * s1
    jacobian[3, 2] = -2.0 * c1
    jacobian[2, 5] = p[1] * np.sin(q[5])
    jacobian[3, 5] = -p[1] * np.cos(q[5])
    return jacobian


def joints_bias(t, q, v, p):
    gamma = np.empty(4)
    w1, w2 = p[0] * v[2] * v[2], p[1] * v[5] * v[5]
    gamma[0] = -w1 * math.cos(q[2])
    gamma[1] = -w1 * math.sin(q[2])
    gamma[2] = -2.0 * w1 * math.cos(q[2]) - w2 * math.cos(q[5])
    gamma[3] = -2.0 * w1 * math.sin(q[2]) - w2 * math.sin(q[5])
    return gamma


def slider(t, q, p):
    g = np.empty(5, q.dtype)
    g[0] = q[0] - p[0] * np.cos(q[2])
    g[1] = q[1] - p[0] * np.sin(q[2])
    g[2] = q[3] - 2.0 * p[0] * np.cos(q[2]) - p[1] * np.cos(q[5])
    g[3] = q[4] - 2.0 * p[0] * np.sin(q[2]) - p[1] * np.sin(q[5])
    g[4] = 2.0 * p[0] * np.sin(q[2]) + 2.0 * p[1] * np.sin(q[5])
    return g


def slider_jacobian(t, q, p):
    jacobian = np.zeros((5, 6), q.dtype)
    s1, c1, s2, c2 = p[0] * np.sin(q[2]), p[0] * np.cos(q[2]), p[1] * np.sin(q[5]), p[1] * np.cos(q[5])
    jacobian[0, 0] = 1.0
    jacobian[1, 1] = 1.0
    jacobian[2, 3] = 1.0
    jacobian[3, 4] = 1.0
    jacobian[0, 2] = s1
    jacobian[1, 2] = -c1
    jacobian[2, 2] = 2.0 * s1
    jacobian[3, 2] = -2.0 * c1
    jacobian[4, 2] = 2.0 * c1
    jacobian[2, 5] = s2
    jacobian[3, 5] = -c2
    jacobian[4, 5] = 2.0 * c2
    return jacobian


def slider_bias(t, q, v, p):
    gamma = np.empty(5)
    w1, w2 = p[0] * v[2] * v[2], p[1] * v[5] * v[5]
    gamma[0] = -w1 * math.cos(q[2])
    gamma[1] = -w1 * math.sin(q[2])
    gamma[2] = -2.0 * w1 * math.cos(q[2]) - w2 * math.cos(q[5])
    gamma[3] = -2.0 * w1 * math.sin(q[2]) - w2 * math.sin(q[5])
    gamma[4] = 2.0 * w1 * math.sin(q[2]) + 2.0 * w2 * math.sin(q[5])
    return gamma


class Rods(NamedTuple):
    """Two rods in a row: masses, half-lengths, gravity."""

    m1: float
    m2: float
    l1: float
    l2: float
    gravity: float

    def system(self, constraint, jacobian, bias, last: str, constraint_names: list[str]) -> daedal.MechanicalSystem:
        """The two rods under a constraint; `last` is the name of the second angle."""
        m1, m2, l1, l2, gravity = self
        return daedal.MechanicalSystem(
            [m1, m1, m1 * l1 * l1 / 3.0, m2, m2, m2 * l2 * l2 / 3.0],
            rods_weight,
            constraint,
            n_q=6,
            n_constraints=len(constraint_names),
            constraint_jacobian=jacobian,
            acceleration_bias=bias,
            params=np.array([l1, l2, m1 * gravity, m2 * gravity], dtype=float),
            names=["x1", "y1", "phi1", "x2", "y2", last],
            constraint_names=constraint_names,
        )

    def configuration(self, angles, rates) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and velocities from the angles and their rates."""
        (a, b), (u, w) = angles, rates
        x1, y1 = self.l1 * math.cos(a), self.l1 * math.sin(a)
        x2, y2 = self.l2 * math.cos(b), self.l2 * math.sin(b)
        q = np.array([x1, y1, a, 2.0 * x1 + x2, 2.0 * y1 + y2, b])
        v = np.array([-u * y1, u * x1, u, -2.0 * u * y1 - w * y2, 2.0 * u * x1 + w * x2, w])
        return q, v

    def energy(self, q, v):
        m1, m2, l1, l2, gravity = self
        first = 0.5 * m1 * (v[0] ** 2 + v[1] ** 2 + l1 * l1 * v[2] ** 2 / 3.0) - m1 * gravity * q[0]
        second = 0.5 * m2 * (v[3] ** 2 + v[4] ** 2 + l2 * l2 * v[5] ** 2 / 3.0) - m2 * gravity * q[3]
        return first + second


@model
def double_pendulum(
    m1: float = 1.0,
    m2: float = 2.0,
    l1: float = 1.0,
    l2: float = 2.0,
    gravity: float = 9.81,
    phi1: float = 0.5 * math.pi,
    alpha: float = 0.5 * math.pi,
    t1: float = 5.0,
    ill_conditioned: bool = False,
    compiled: bool = False,
) -> Model:
    """A double pendulum of two rods of lengths 2 l1 and 2 l2, with centres and angles as coordinates.

    Notes
    -----
    ``model.extra`` has ``energy``, ``configuration`` (of the two angles and their rates) and ``lam``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.double_pendulum(ill_conditioned=True, t1=10.0)
    >>> model.reference.y[[2, 5]].round(6)
    array([ -0.899396, -75.387904])
    """
    if ill_conditioned:
        m1, m2 = 1e6, 2e-4
    rods = Rods(m1, m2, l1, l2, gravity)
    names = ["pivot x", "pivot y", "joint x", "joint y"]
    entry = known("double_pendulum", **rods._asdict(), phi1=phi1, alpha=alpha, t1=t1)
    return mechanical_model(
        rods.system(joints, joints_jacobian, joints_bias, "alpha", names),
        rods.configuration((phi1, alpha), (0.0, 0.0)),
        t1,
        compiled,
        known=entry and {**entry, "y": np.concatenate(rods.configuration(*entry["minimal"]))},
        energy=rods.energy,
        configuration=rods.configuration,
    )


@model
def crank_slider(
    m1: float = 1.0,
    m2: float = 2.0,
    l1: float = 1.0,
    l2: float = 2.0,
    gravity: float = 9.81,
    phi1: float = 0.5236,
    rate: float = 0.0,
    t1: float = 10.0,
    compiled: bool = False,
) -> Model:
    """A crank of length 2 l1 and a connecting rod of length 2 l2 whose end slides on the x axis.

    Notes
    -----
    The slider has no mass. For l1 = l2 the constraints lose rank when the connecting rod is perpendicular to the axis,
    which a sufficiently fast crank reaches. ``model.extra`` has ``energy``, ``configuration`` (of the crank angle and
    its rate) and ``lam``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.crank_slider()
    >>> print(round(model.reference.y[2], 8))
    0.07711396
    """
    rods = Rods(m1, m2, l1, l2, gravity)

    def configuration(angle: float, rate: float):
        sine = -l1 / l2 * math.sin(angle)
        if not abs(sine) < 1.0:
            raise daedal.InvalidProblemError(
                f"a connecting rod with l2={l2} cannot join the crank with l1={l1} at phi1={angle} to the axis"
            )
        phi2 = math.asin(sine)
        return rods.configuration((angle, phi2), (rate, -rate * l1 * math.cos(angle) / (l2 * math.cos(phi2))))

    names = ["pivot x", "pivot y", "joint x", "joint y", "slider"]
    entry = known("crank_slider", **rods._asdict(), phi1=phi1, rate=rate, t1=t1)
    return mechanical_model(
        rods.system(slider, slider_jacobian, slider_bias, "phi2", names),
        configuration(phi1, rate),
        t1,
        compiled,
        known=entry and {**entry, "y": np.concatenate(configuration(*entry["minimal"]))},
        energy=rods.energy,
        configuration=configuration,
    )
