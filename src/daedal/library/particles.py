"""One point mass on a circle, on a sphere and on a paraboloid."""

from __future__ import annotations

import math

import numpy as np

import daedal
from daedal.library.mechanics import mechanical_model, pendulum_angle
from daedal.library.model import Model, Reference, check_positive

EXTRAPOLATED = "the equations of index 1, by extrapolation (order 18) in 34-digit arithmetic"

# Released from (0.8, 0, -0.6) with velocity (0, 1.5, 0) under gravity 9.81, at t = 10
SPATIAL_AT_10 = (
    (-0.45141075112530733525, 0.19769900630655316339, -0.87013989488695856192),
    (0.037837211579744212494, -2.6749039009829457021, -0.62737724186347090544),
)
SPATIAL_LAM_AT_10 = 16.086217106523190477
# From q = (1, 0, 1), v = (0.3, 0.7, 0.6), at t = 1; the digits of the source are the same.
PARABOLOID_AT_1 = (
    (0.93851147478357353463, 0.6275497667033303086, 1.2746224979898424802),
    (-0.37141557134139508566, 0.49750936179272349561, -0.072731783382899775956),
)
PARABOLOID_LAM_AT_1 = 0.29038830690013772627


# --- on a circle and on a sphere: p = (mass, length, gravity), the last coordinate points upwards ---------------


def point_mass(t, q, p):
    n = q.size
    m = np.zeros((n, n))
    for i in range(n):
        m[i, i] = p[0]
    return m


def weight(t, q, v, p):
    f = np.zeros(q.size)
    f[q.size - 1] = -p[0] * p[2]
    return f


def rod(t, q, p):
    g = np.empty(1, q.dtype)
    g[0] = -0.5 * p[1] * p[1]
    for i in range(q.size):
        g[0] += 0.5 * q[i] * q[i]
    return g


def rod_jacobian(t, q, p):
    jacobian = np.empty((1, q.size), q.dtype)
    for i in range(q.size):
        jacobian[0, i] = q[i]
    return jacobian


def rod_bias(t, q, v, p):
    gamma = np.zeros(1)
    for i in range(q.size):
        gamma[0] -= v[i] * v[i]
    return gamma


_PENDULUM = r"m q'' = -m g\,e - q \lambda,\qquad 0 = \tfrac12 \bigl(q^T q - l^2\bigr)"


def planar_pendulum(
    mass: float = 1.0,
    length: float = 1.0,
    gravity: float = 1.0,
    angle: float = 0.5 * math.pi,
    t1: float = 10.0,
    compiled: bool = False,
) -> Model:
    """A point mass on a rod in the plane, released from rest, as a mechanical system.

    Parameters
    ----------
    mass, length, gravity : float
        Mass, length of the rod, gravity along -y.
    angle : float
        Angle of the start from the downward vertical, between -pi and pi.
    t1 : float
        End time.
    compiled : bool
        Whether the functions are compiled.

    Notes
    -----
    ``model.extra`` has ``exact``, ``exact_lam``, ``energy`` and ``lam``. The same pendulum as a first-order system in
    four forms is :func:`daedal.library.pendulum`.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum()
    >>> model.extra["exact"](10.0).round(8)
    array([-0.81158645, -0.58423235, -0.63152915,  0.8772888 ])
    """
    check_positive(mass=mass, length=length, gravity=gravity, t1=t1)
    if not abs(angle) < math.pi:
        raise daedal.InvalidProblemError(f"angle={angle!r} must lie between -pi and pi")
    problem = daedal.MechanicalSystem(
        point_mass,
        weight,
        rod,
        n_q=2,
        n_constraints=1,
        constraint_jacobian=rod_jacobian,
        acceleration_bias=rod_bias,
        params=np.array([mass, length, gravity], dtype=float),
        names=["x", "y"],
        constraint_names=["rod"],
    )

    def exact(t: float) -> np.ndarray:
        a, w = pendulum_angle(t, angle, math.sqrt(gravity / length))
        s, c = math.sin(a), math.cos(a)
        return length * np.array([s, -c, w * c, w * s])

    def exact_lam(t: float) -> np.ndarray:
        _, y, vx, vy = exact(t)
        return np.array([mass * (vx * vx + vy * vy - gravity * y) / length**2])

    def energy(q, v):
        return 0.5 * mass * (v[0] ** 2 + v[1] ** 2) + mass * gravity * q[1]

    start = exact(0.0)
    return mechanical_model(
        problem,
        (start[:2], start[2:]),
        t1,
        compiled=compiled,
        exact=exact,
        exact_lam=exact_lam,
        extra={"energy": energy},
        name="planar_pendulum",
        title="Planar pendulum",
        source="V. Brasey, E. Hairer, Half-explicit Runge-Kutta methods for differential-algebraic systems of index 2, "
        "SIAM J. Numer. Anal. 30 (1993), pp. 538-552, first experiment; the paper does not print its data",
        description="A point mass on a rod in Cartesian coordinates, released from the horizontal. The smallest "
        "mechanical system with a constraint; its solution is known in elliptic functions.",
        equations=_PENDULUM + r",\qquad q = (x, y),\quad e = (0, 1)",
    )


def spatial_pendulum(
    mass: float = 1.0,
    length: float = 1.0,
    gravity: float = 9.81,
    speed: float = 1.5,
    t1: float = 10.0,
    compiled: bool = False,
) -> Model:
    """A point mass on a rod in space, started sideways at 0.6 of its length below the pivot.

    Parameters
    ----------
    mass, length, gravity : float
        Mass, length of the rod, gravity along -z.
    speed : float
        The horizontal velocity of the start, along y.
    t1 : float
        End time; a reference is known for 10 (lengths, gravity and speed as they are).
    compiled : bool
        Whether the functions are compiled.

    Notes
    -----
    ``model.extra`` has ``energy``, ``angular_momentum(q, v)`` about the vertical, which is constant too, and ``lam``.
    The acceleration bias is left to Daedal.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.spatial_pendulum()
    >>> print(round(model.extra["angular_momentum"](*model.initial), 12))
    1.2
    """
    check_positive(mass=mass, length=length, t1=t1)
    problem = daedal.MechanicalSystem(
        point_mass,
        weight,
        rod,
        n_q=3,
        n_constraints=1,
        constraint_jacobian=rod_jacobian,
        params=np.array([mass, length, gravity], dtype=float),
        names=["x", "y", "z"],
        constraint_names=["rod"],
    )
    reference = None
    if (length, gravity, speed, t1) == (1.0, 9.81, 1.5, 10.0):
        reference = Reference(t1, np.concatenate(SPATIAL_AT_10), EXTRAPOLATED, 1e-15)

    def energy(q, v):
        return 0.5 * mass * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) + mass * gravity * q[2]

    def angular_momentum(q, v):
        return mass * (q[0] * v[1] - q[1] * v[0])

    return mechanical_model(
        problem,
        (length * np.array([0.8, 0.0, -0.6]), [0.0, speed, 0.0]),
        t1,
        compiled=compiled,
        reference=reference,
        lam=[mass * SPATIAL_LAM_AT_10],
        extra={"energy": energy, "angular_momentum": angular_momentum},
        name="spatial_pendulum",
        title="Spatial pendulum",
        source="The spherical pendulum, in Cartesian coordinates",
        description="A point mass on a rod that swings round the vertical. Two quantities are conserved: the energy "
        "and the angular momentum about the vertical.",
        equations=_PENDULUM + r",\qquad q = (x, y, z),\quad e = (0, 0, 1)",
    )


# --- on a paraboloid -------------------------------------------------------------------------------------------


def unit_weight(t, q, v):
    f = np.zeros(3)
    f[2] = -1.0
    return f


def paraboloid(t, q):
    g = np.empty(1, q.dtype)
    g[0] = q[0] * q[0] + q[1] * q[1] - q[2]
    return g


def particle_on_paraboloid(t1: float = 1.0, compiled: bool = False) -> Model:
    """A point mass that slides without friction in a paraboloid.

    Parameters
    ----------
    t1 : float
        End time; a reference is known for 1.
    compiled : bool
        Whether the functions are compiled.

    Notes
    -----
    The source adds the force of the constraint where Daedal subtracts it: its multiplier has the opposite sign. All
    derivatives of the constraint are left to Daedal. ``model.extra`` has ``energy`` and ``lam``.

    Examples
    --------
    >>> import daedal
    >>> daedal.library.particle_on_paraboloid().extra["lam"].round(8)
    array([0.29038831])
    """
    check_positive(t1=t1)
    problem = daedal.MechanicalSystem(
        1.0,
        unit_weight,
        paraboloid,
        n_q=3,
        n_constraints=1,
        names=["q1", "q2", "q3"],
        constraint_names=["paraboloid"],
    )

    def energy(q, v):
        return 0.5 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) + q[2]

    return mechanical_model(
        problem,
        ([1.0, 0.0, 1.0], [0.3, 0.7, 0.6]),
        t1,
        compiled=compiled,
        reference=Reference(t1, np.concatenate(PARABOLOID_AT_1), EXTRAPOLATED, 1e-15) if t1 == 1.0 else None,
        lam=[PARABOLOID_LAM_AT_1],
        extra={"energy": energy},
        name="particle_on_paraboloid",
        title="Particle on a paraboloid",
        source="L. Wunderlich, Numerical Solution of Second Order Differential-Algebraic Equations, Example 7.2.2; "
        "the start is Daedal's",
        description="A point mass of mass 1 under gravity 1 on a surface that opens upwards. The third velocity can "
        "always be eliminated, the other two cannot: a test for the choice of dependent coordinates.",
        equations=r"q_1'' = -2 q_1 \lambda,\qquad q_2'' = -2 q_2 \lambda,\qquad q_3'' = -1 + \lambda,\qquad "
        r"0 = q_1^2 + q_2^2 - q_3",
    )
