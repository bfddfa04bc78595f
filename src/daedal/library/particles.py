"""One point mass on a circle, on a sphere and on a paraboloid."""

import math

import numpy as np

import daedal
from daedal.library.mechanical_model import check_angle, mechanical_model, pendulum_angle
from daedal.library.model import Model, check_positive, known, model
from daedal.library.sources import BRASEY_HAIRER, WUNDERLICH

# --- on a circle and on a sphere: p = (length, weight), the last coordinate points upwards ----------------------


def weight(t, q, v, p):
    f = np.zeros(q.size)
    f[q.size - 1] = -p[1]
    return f


def rod(t, q, p):
    g = np.empty(1, q.dtype)
    g[0] = -0.5 * p[0] * p[0]
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


@model(
    title="Planar pendulum",
    source=BRASEY_HAIRER + ", first experiment; the paper does not print its data",
    description="A point mass on a rod in Cartesian coordinates, released from the horizontal. The smallest mechanical "
    "system with a constraint; its solution is known in elliptic functions.",
    equations=_PENDULUM + r",\qquad q = (x, y),\quad e = (0, 1)",
    drawing=("pendulum", rod),
)
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
    check_angle(angle=angle)
    problem = daedal.MechanicalSystem(
        mass,
        weight,
        rod,
        n_q=2,
        n_constraints=1,
        constraint_jacobian=rod_jacobian,
        acceleration_bias=rod_bias,
        params=np.array([length, mass * gravity], dtype=float),
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
    )


@model(
    title="Spatial pendulum",
    source="The spherical pendulum, in Cartesian coordinates",
    description="A point mass on a rod that swings round the vertical. Two quantities are conserved: the energy and "
    "the angular momentum about the vertical.",
    equations=_PENDULUM + r",\qquad q = (x, y, z),\quad e = (0, 0, 1)",
    drawing=("pendulum", rod),
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
        mass,
        weight,
        rod,
        n_q=3,
        n_constraints=1,
        constraint_jacobian=rod_jacobian,
        params=np.array([length, mass * gravity], dtype=float),
        names=["x", "y", "z"],
        constraint_names=["rod"],
    )
    entry = known("spatial_pendulum", length=length, gravity=gravity, speed=speed, t1=t1)

    def energy(q, v):
        return 0.5 * mass * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) + mass * gravity * q[2]

    def angular_momentum(q, v):
        return mass * (q[0] * v[1] - q[1] * v[0])

    return mechanical_model(
        problem,
        (length * np.array([0.8, 0.0, -0.6]), [0.0, speed, 0.0]),
        t1,
        compiled=compiled,
        known=entry and {**entry, "lam": [mass * value for value in entry["lam"]]},
        extra={"energy": energy, "angular_momentum": angular_momentum},
    )


# --- on a paraboloid -------------------------------------------------------------------------------------------


def unit_weight(t, q, v):
    return np.array([0.0, 0.0, -1.0])


def paraboloid(t, q):
    return np.array([q[0] * q[0] + q[1] * q[1] - q[2]])


@model(
    title="Particle on a paraboloid",
    source=WUNDERLICH + ", Example 7.2.2; the start is Daedal's",
    description="A point mass of mass 1 under gravity 1 on a surface that opens upwards. The third velocity can always "
    "be eliminated, the other two cannot: a test for the choice of dependent coordinates.",
    equations=r"""q_1'' = -2 q_1 \lambda,\qquad q_2'' = -2 q_2 \lambda,\qquad q_3'' = -1 + \lambda,\qquad
    0 = q_1^2 + q_2^2 - q_3""",
    drawing=("particle_in_bowl", paraboloid),
)
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
        1.0, unit_weight, paraboloid, n_q=3, n_constraints=1, names=["q1", "q2", "q3"], constraint_names=["paraboloid"]
    )

    def energy(q, v):
        return 0.5 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) + q[2]

    return mechanical_model(
        problem,
        ([1.0, 0.0, 1.0], [0.3, 0.7, 0.6]),
        t1,
        compiled=compiled,
        known=known("particle_on_paraboloid", t1=t1),
        extra={"energy": energy},
    )
