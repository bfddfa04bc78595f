"""One point mass on a circle, on a sphere and on a paraboloid."""

import math
from functools import lru_cache

import numpy as np

import daedal
from daedal.library.registry import (
    BRASEY_HAIRER,
    WUNDERLICH,
    Model,
    check_angle,
    check_positive,
    known,
    mechanical_model,
    model,
    pendulum_angle,
)

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


# --- a chain of pendulums: as many coordinates as one likes, with sparse matrices -------------------------------------

SLOWEST = 2.4048255576957727686  # first zero of the Bessel function J_0
LARGEST_IN_ANGLES = 100

# --- the equations: q = (x_1, y_1, x_2, y_2, ...), y upwards, p = (mass of a bob, length of a link, gravity) ----------


def links(q):
    """Vectors along the links, from the fixed point to the last mass; the same for velocities."""
    points = np.reshape(q, (-1, 2))
    return np.diff(points, axis=0, prepend=np.zeros((1, 2)))


@lru_cache(maxsize=8)
def link_structure(n):
    """Columns and row starts of G: row i has entries for masses i - 1 and i."""
    columns = np.arange(4 * n) - 2 * np.repeat(np.arange(n), 4) - 2
    return columns[2:], np.concatenate([[0], 4 * np.arange(1, n + 1) - 2])


def links_weight(t, q, v, p):
    f = np.zeros(q.size)
    f[1::2] = -p[0] * p[2]
    return f


def link_lengths(t, q, p):
    return 0.5 * np.sum(links(q) ** 2, axis=1) - 0.5 * p[1] ** 2


def link_jacobian(t, q, p):
    from scipy.sparse import csr_array

    d = links(q)
    n = d.shape[0]
    columns, start = link_structure(n)
    return csr_array((np.hstack([-d, d]).ravel()[2:], columns, start), shape=(n, 2 * n))


def link_bias(t, q, v, p):
    return -np.sum(links(v) ** 2, axis=1)


# --- minimal coordinates: angles a_i of the links from the downward vertical ------------------------------------------


def angular_rates(t, y, n, link, gravity):
    """(a', a'') of a_i, from sum_j w_ij (cos(a_i - a_j) a_j'' + sin(a_i - a_j) a_j'^2) = -(g/l) w_ii sin a_i.

    w_ij = n - max(i, j) counts the masses below both links.
    """
    a, rate = y[:n], y[n:]
    below = n - np.maximum.outer(np.arange(n), np.arange(n))
    difference = np.subtract.outer(a, a)
    force = -(below * np.sin(difference)) @ rate**2 - gravity / link * np.diag(below) * np.sin(a)
    return np.concatenate([rate, np.linalg.solve(below * np.cos(difference), force)])


def configuration(angles, rates, link):
    """(q, v) of the chain with these angles of its links and their rates."""
    steps = link * np.stack([np.sin(angles), -np.cos(angles)], axis=1)
    speeds = link * np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.asarray(rates)[:, None]
    return np.cumsum(steps, axis=0).ravel(), np.cumsum(speeds, axis=0).ravel()


def slowest_mode(n, amplitude):
    """Angles of the links in the slowest mode of a hanging chain, y(s) = J_0(j sqrt(1 - s/L)); `amplitude` at its end.

    The inclination dy/ds is proportional to J_1(x)/x, x = j sqrt(1 - s/L).
    """
    from scipy.special import j1

    x = SLOWEST * np.sqrt(1.0 - (np.arange(n) + 0.5) / n)
    return amplitude * 2.0 * j1(x) / x


@model(
    title="Chain of pendulums",
    source="D. Bernoulli, Theoremata de oscillationibus corporum filo flexili connexorum et catenae verticaliter "
    "suspensae, Comm. Acad. Sci. Petrop. 6 (1738) 108-122: n bodies on a thread, and the hanging chain as their limit",
    equations=r"""\begin{aligned} m q_i'' &= -m g\,e_y - \lambda_i (q_i - q_{i-1}) + \lambda_{i+1} (q_{i+1} - q_i) \\
    0 &= \tfrac12 \bigl(|q_i - q_{i-1}|^2 - l^2\bigr),\qquad q_0 = 0,\; i = 1 \dots n \end{aligned}""",
    drawing=("chain", link_lengths),
)
def chain_of_pendulums(
    n: int = 10, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81, amplitude: float = 0.5, t1: float = 1.0
) -> Model:
    r"""A hanging chain: n point masses joined by rigid massless links, in absolute coordinates, with sparse matrices.

    It is released from rest in the shape of its slowest mode. For large n the motion tends to that of a hanging rope,
    so that the number of links changes the size of the problem, but hardly its difficulty.

    Parameters
    ----------
    n : int
        Number of links; the system has 2 n coordinates and n constraints.
    length, mass : float
        Length and mass of the whole chain.
    gravity : float
        Gravity along -y.
    amplitude : float
        Inclination of the last link at the start.
    t1 : float
        End time.

    Notes
    -----
    ``model.extra`` has ``exact(t)``, the state (q, v) from the equations of the angles, to about eleven digits and for
    up to 100 links, ``energy(q, v)``, ``configuration(angles, rates)``, and ``frequency``, the angular frequency
    :math:`\tfrac12 j_{0,1} \sqrt{g/L}` of small oscillations of a rope.

    Examples
    --------
    >>> import daedal
    >>> from daedal.library.particles import chain_of_pendulums
    >>> model = chain_of_pendulums(200)
    >>> sol = daedal.solve(model.problem, (0.0, 0.1), model.initial, rtol=1e-5, atol=1e-5)
    >>> print(model.problem.n_q, sol.formulation, sol.drift["position"] < 1e-12)
    400 GGL True
    """
    check_positive(n=n, length=length, mass=mass, gravity=gravity, t1=t1)
    if int(n) != n:
        raise daedal.InvalidProblemError(f"n={n!r} must be an integer")
    check_angle(amplitude=amplitude)
    n = int(n)
    bob, link = mass / n, length / n
    from scipy.sparse import csr_array, eye_array

    problem = daedal.MechanicalSystem(
        csr_array(bob * eye_array(2 * n)),
        links_weight,
        link_lengths,
        n_q=2 * n,
        n_constraints=n,
        constraint_jacobian=link_jacobian,
        acceleration_bias=link_bias,
        params=np.array([bob, link, gravity], dtype=float),
        names=[f"{axis}{i}" for i in range(1, n + 1) for axis in "xy"],
        constraint_names=[f"link {i}" for i in range(1, n + 1)],
        force_sparsity=csr_array((2 * n, 2 * n)),
    )
    start = slowest_mode(n, amplitude)

    def exact(t: float) -> np.ndarray:
        from scipy.integrate import solve_ivp

        if n > LARGEST_IN_ANGLES:
            raise daedal.InvalidProblemError(f"exact(t) is for up to {LARGEST_IN_ANGLES} links, not for {n}")
        y = np.concatenate([start, np.zeros(n)])
        if t != 0.0:
            y = solve_ivp(
                angular_rates, (0.0, t), y, method="DOP853", rtol=1e-13, atol=1e-13, args=(n, link, gravity)
            ).y[:, -1]
        return np.concatenate(configuration(y[:n], y[n:], link))

    def energy(q, v):
        q, v = np.asarray(q), np.asarray(v)
        return 0.5 * bob * np.sum(v**2, axis=0) + bob * gravity * np.sum(q[1::2], axis=0)

    entry = known("chain_of_pendulums", n=n, length=length, mass=mass, gravity=gravity, amplitude=amplitude, t1=t1)
    return mechanical_model(
        problem,
        configuration(start, np.zeros(n), link),
        t1,
        compiled=False,
        known=entry and {**entry, "y": np.concatenate(configuration(entry["minimal"][0], entry["minimal"][1], link))},
        description=(
            f"A chain of {n} point masses and rigid links, released in the shape of its slowest mode: {2 * n} "
            "coordinates with sparse mass matrix and constraint Jacobian."
        ),
        options={"rtol": 1e-8, "atol": 1e-8, "formulation": "ggl"},
        plot={"variables": [f"x{n}", f"y{n}"]},
        extra={
            "exact": exact,
            "energy": energy,
            "configuration": lambda angles, rates: configuration(angles, rates, link),
            "frequency": 0.5 * SLOWEST * math.sqrt(gravity / length),
        },
    )
