"""Skates and wheels: nonholonomic constraints."""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, known, mechanical_model, model

# --- a knife edge on an incline: q = (x, y, phi), p = (weight along the incline) --------------------------------


def edge_force(t, q, v, p):
    return np.array([p[0], 0.0, 0.0])


def edge(t, q, v, p):
    return np.array([np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]])


def edge_jacobian(t, q, p):
    jacobian = np.zeros((1, 3), q.dtype)
    jacobian[0, 0] = np.sin(q[2])
    jacobian[0, 1] = -np.cos(q[2])
    return jacobian


def edge_bias(t, q, v, p):
    return np.array([-v[2] * (math.cos(q[2]) * v[0] + math.sin(q[2]) * v[1])])


@model
def knife_edge(
    gravity: float = 5.0,
    omega: float = 2.0,
    mass: float = 1.0,
    inertia: float = 0.3,
    t1: float = 1.0,
    compiled: bool = False,
) -> Model:
    """A spinning skate on an inclined plane: it does not slide down but drifts sideways along a cycloid.

    Notes
    -----
    ``model.extra`` has ``exact``, ``exact_lam``, ``energy`` and ``lam``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.knife_edge()
    >>> model.problem.n_constraints, model.problem.n_velocity_constraints, model.index
    (0, 1, 2)
    """
    _check_rate(omega)
    problem = daedal.MechanicalSystem(
        [mass, mass, inertia],
        edge_force,
        n_q=3,
        velocity_constraint=edge,
        n_velocity_constraints=1,
        velocity_jacobian=edge_jacobian,
        velocity_bias=edge_bias,
        params=np.array([mass * gravity], dtype=float),
        names=["x", "y", "phi"],
        constraint_names=["edge"],
    )

    def exact(t: float) -> np.ndarray:
        a = omega * t
        s, c, size = math.sin(a), math.cos(a), 0.5 * gravity / omega**2
        q = [size * s * s, size * (a - s * c), a]
        return np.array([*q, 2.0 * size * omega * s * c, 2.0 * size * omega * s * s, omega])

    def exact_lam(t: float) -> np.ndarray:
        return np.array([2.0 * mass * gravity * math.sin(omega * t)])

    def energy(q, v):
        return 0.5 * mass * (v[0] ** 2 + v[1] ** 2) + 0.5 * inertia * v[2] ** 2 - mass * gravity * q[0]

    return mechanical_model(
        problem, (np.zeros(3), [0.0, 0.0, omega]), t1, compiled, exact=exact, exact_lam=exact_lam, energy=energy
    )


# --- a knife edge on a paraboloid: q = (x, y, z, phi), p = (weight along x, along -z) -------------------------------


def bowl_force(t, q, v, p):
    return np.array([p[0], 0.0, -p[1], 0.0])


def bowl(t, q, p):
    return np.array([q[2] - 0.5 * (q[0] * q[0] + q[1] * q[1])])


def bowl_edge(t, q, v, p):
    return np.array([np.sin(q[3]) * v[0] - np.cos(q[3]) * v[1]])


@model
def knife_edge_on_paraboloid(
    gravity: float = 5.0,
    gravity_z: float = 0.0,
    omega: float = 2.0,
    mass: float = 1.0,
    inertia: float = 0.3,
    t1: float = 1.0,
    compiled: bool = False,
) -> Model:
    """A skate on the paraboloid z = (x^2 + y^2)/2, with a position constraint and a velocity constraint.

    Daedal computes all derivatives of the constraints.

    Notes
    -----
    ``model.extra`` has ``energy`` and ``lam``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.knife_edge_on_paraboloid()
    >>> model.problem.n_constraints, model.problem.n_velocity_constraints, model.index
    (1, 1, 3)
    """
    problem = daedal.MechanicalSystem(
        [mass, mass, mass, inertia],
        bowl_force,
        bowl,
        n_q=4,
        n_constraints=1,
        velocity_constraint=bowl_edge,
        n_velocity_constraints=1,
        params=np.array([mass * gravity, mass * gravity_z], dtype=float),
        names=["x", "y", "z", "phi"],
        constraint_names=["paraboloid", "edge"],
    )
    entry = known("knife_edge_on_paraboloid", gravity=gravity, gravity_z=gravity_z, omega=omega, t1=t1)

    def energy(q, v):
        kinetic = 0.5 * mass * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) + 0.5 * inertia * v[3] ** 2
        return kinetic - mass * gravity * q[0] + mass * gravity_z * q[2]

    return mechanical_model(
        problem,
        (np.zeros(4), [0.0, 0.0, 0.0, omega]),
        t1,
        compiled,
        known=entry and {**entry, "lam": [mass * value for value in entry["lam"]]},
        energy=energy,
    )


# --- an upright disc on an incline: q = (x, y, theta, phi), p = (R, weight along the incline) -------------------


def disc_force(t, q, v, p):
    return np.array([p[1], 0.0, 0.0, 0.0])


def rolling(t, q, v, p):
    return np.array([v[0] - p[0] * np.cos(q[3]) * v[2], v[1] - p[0] * np.sin(q[3]) * v[2]])


@model
def rolling_disc(
    mass: float = 1.0,
    radius: float = 0.5,
    gravity: float = 2.0,
    spin: float = 3.0,
    omega: float = 1.5,
    t1: float = 5.0,
    compiled: bool = False,
) -> Model:
    """An upright disc that rolls without slipping on an inclined plane while its heading rotates at a constant rate.

    Notes
    -----
    On a level plane the disc rolls in a circle; on an incline it also drifts sideways. Daedal computes the derivatives
    of the constraints. ``model.extra`` has ``exact``, ``exact_lam``, ``energy`` and ``lam``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.rolling_disc(gravity=0.0)
    >>> x, y = model.extra["exact"](0.7)[:2]
    >>> print(round(x**2 + (y - 1.0) ** 2, 12))  # a circle of radius R spin/omega = 1
    1.0
    """
    _check_rate(omega)
    rolling_inertia, turning_inertia = 0.5 * mass * radius**2, 0.25 * mass * radius**2
    problem = daedal.MechanicalSystem(
        [mass, mass, rolling_inertia, turning_inertia],
        disc_force,
        n_q=4,
        velocity_constraint=rolling,
        n_velocity_constraints=2,
        params=np.array([radius, mass * gravity], dtype=float),
        names=["x", "y", "theta", "phi"],
        constraint_names=["rolling x", "rolling y"],
    )
    # (m R^2 + I) theta'' = m g R cos(omega t)
    slope = mass * gravity * radius / (mass * radius**2 + rolling_inertia)

    def exact(t: float) -> np.ndarray:
        a = omega * t
        s, c, size = math.sin(a), math.cos(a), 0.5 * slope / omega**2
        x = radius * (spin / omega * s + size * s * s)
        y = radius * (spin / omega * (1.0 - c) + size * (a - s * c))
        rate = spin + slope / omega * s
        return np.array([x, y, spin * t + 2.0 * size * (1.0 - c), a, radius * rate * c, radius * rate * s, rate, omega])

    def exact_lam(t: float) -> np.ndarray:
        s, c = math.sin(omega * t), math.cos(omega * t)
        rate, change = spin + slope / omega * s, slope * c
        ax, ay = radius * (change * c - rate * omega * s), radius * (change * s + rate * omega * c)
        return np.array([mass * (gravity - ax), -mass * ay])

    def energy(q, v):
        turning = 0.5 * rolling_inertia * v[2] ** 2 + 0.5 * turning_inertia * v[3] ** 2
        return 0.5 * mass * (v[0] ** 2 + v[1] ** 2) + turning - mass * gravity * q[0]

    start = exact(0.0)
    return mechanical_model(
        problem, (start[:4], start[4:]), t1, compiled, exact=exact, exact_lam=exact_lam, energy=energy
    )


def _check_rate(omega: float) -> None:
    if not (math.isfinite(omega) and omega != 0.0):
        raise daedal.InvalidProblemError(f"omega={omega!r} must be a number other than 0")
