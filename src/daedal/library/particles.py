"""One point mass on a circle, on a sphere and on a paraboloid."""

import math
from functools import lru_cache

import numpy as np

import daedal
from daedal.library.registry import Model, check_angle, known, mechanical_model, model, pendulum_angle

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


@model
def planar_pendulum(
    mass: float = 1.0,
    length: float = 1.0,
    gravity: float = 1.0,
    angle: float = 0.5 * math.pi,
    t1: float = 10.0,
    compiled: bool = False,
) -> Model:
    """A point mass on a rod in the plane, released from rest, as a mechanical system.

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
        problem, (start[:2], start[2:]), t1, compiled, exact=exact, exact_lam=exact_lam, energy=energy
    )


@model
def spatial_pendulum(
    mass: float = 1.0,
    length: float = 1.0,
    gravity: float = 9.81,
    speed: float = 1.5,
    t1: float = 10.0,
    compiled: bool = False,
) -> Model:
    """A point mass on a rod in space, started sideways at 0.6 times its length below the pivot.

    Notes
    -----
    ``model.extra`` has ``energy``, ``angular_momentum(q, v)`` about the vertical, which is constant too, and ``lam``.
    Daedal computes the acceleration bias.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.spatial_pendulum()
    >>> print(round(model.extra["angular_momentum"](*model.initial), 12))
    1.2
    """
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
        compiled,
        known=entry and {**entry, "lam": [mass * value for value in entry["lam"]]},
        energy=energy,
        extra={"angular_momentum": angular_momentum},
    )


# --- on a paraboloid -------------------------------------------------------------------------------------------


def unit_weight(t, q, v):
    return np.array([0.0, 0.0, -1.0])


def paraboloid(t, q):
    return np.array([q[0] * q[0] + q[1] * q[1] - q[2]])


@model
def particle_on_paraboloid(t1: float = 1.0, compiled: bool = False) -> Model:
    """A point mass sliding without friction in a paraboloid.

    Notes
    -----
    The source adds the constraint force, whereas Daedal subtracts it: its multiplier has the opposite sign. Daedal
    computes all derivatives of the constraint. ``model.extra`` has ``energy`` and ``lam``.

    Examples
    --------
    >>> import daedal
    >>> daedal.library.particle_on_paraboloid().extra["lam"].round(8)
    array([0.29038831])
    """
    problem = daedal.MechanicalSystem(
        1.0, unit_weight, paraboloid, n_q=3, n_constraints=1, names=["q1", "q2", "q3"], constraint_names=["paraboloid"]
    )

    def energy(q, v):
        return 0.5 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) + q[2]

    return mechanical_model(
        problem,
        ([1.0, 0.0, 1.0], [0.3, 0.7, 0.6]),
        t1,
        compiled,
        known=known("particle_on_paraboloid", t1=t1),
        energy=energy,
    )


# --- a chain of pendulums: any number of coordinates, with sparse matrices --------------------------------------------

SLOWEST = 2.4048255576957727686  # first zero of the Bessel function J_0
LARGEST_IN_ANGLES = 100  # number of links up to which exact(t) is available

# --- the equations: q = (x_1, y_1, x_2, y_2, ...), y upwards, p = (mass of a bob, length of a link, gravity) ----------


def links(q):
    """Differences of the positions, or velocities, at the ends of the links, from the fixed point on."""
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

    w_ij = n - max(i, j) is the number of masses below both links.
    """
    a, rate = y[:n], y[n:]
    below = n - np.maximum.outer(np.arange(n), np.arange(n))
    difference = np.subtract.outer(a, a)
    force = -(below * np.sin(difference)) @ rate**2 - gravity / link * np.diag(below) * np.sin(a)
    return np.concatenate([rate, np.linalg.solve(below * np.cos(difference), force)])


def configuration(angles, rates, link):
    """(q, v) of the chain for given angles of its links and their rates."""
    steps = link * np.stack([np.sin(angles), -np.cos(angles)], axis=1)
    speeds = link * np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.asarray(rates)[:, None]
    return np.cumsum(steps, axis=0).ravel(), np.cumsum(speeds, axis=0).ravel()


def slowest_mode(n, amplitude):
    """Link angles in the slowest mode of a hanging chain, with `amplitude` at the free end.

    y(s) = J_0(x) with x = j sqrt(1 - s/L), whose inclination dy/ds is proportional to J_1(x)/x.
    """
    from scipy.special import j1

    x = SLOWEST * np.sqrt(1.0 - (np.arange(n) + 0.5) / n)
    return amplitude * 2.0 * j1(x) / x


@model
def chain_of_pendulums(
    n: int = 10, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81, amplitude: float = 0.5, t1: float = 1.0
) -> Model:
    r"""A hanging chain: n point masses joined by rigid massless links, in absolute coordinates, with sparse matrices.

    The chain is released from rest in the shape of its slowest mode. For large n it moves like a hanging rope,
    so that the number of links changes the size of the problem but hardly its difficulty.

    Notes
    -----
    ``model.extra`` has ``exact(t)``, the state (q, v) computed from the equations for the angles to about eleven digits
    (for up to 100 links); ``energy(q, v)``; ``configuration(angles, rates)``; and ``frequency``, the angular frequency
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
            raise daedal.InvalidProblemError(f"exact(t) supports up to {LARGEST_IN_ANGLES} links, not {n}")
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
        known=entry and {**entry, "y": np.concatenate(configuration(entry["minimal"][0], entry["minimal"][1], link))},
        description=(
            f"A chain of {n} point masses and rigid links, released in the shape of its slowest mode: {2 * n} "
            "coordinates with sparse mass matrix and constraint Jacobian."
        ),
        plot={"variables": [f"x{n}", f"y{n}"]},
        extra={
            "exact": exact,
            "energy": energy,
            "configuration": lambda angles, rates: configuration(angles, rates, link),
            "frequency": 0.5 * SLOWEST * math.sqrt(gravity / length),
        },
    )
