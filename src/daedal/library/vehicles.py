"""Planar vehicles on uneven roads: the car axis of the test set, a truck driving over a hump."""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, check_positive, known, mechanical_model, model

# --- a rod on two springs, one of them on a moving support ------------------------------------------------------------

# p = (L, L0, r, w, weight); k = M eps^2/2 represents the mass in the scaled equations


def axis_force(t, q, v, p):
    length, rest = p[0], p[1]
    yb = p[2] * math.sin(p[3] * t)
    xb = math.sqrt(length * length - yb * yb)
    left = math.sqrt(q[0] * q[0] + q[1] * q[1])
    right = math.sqrt((q[2] - xb) * (q[2] - xb) + (q[3] - yb) * (q[3] - yb))
    f = np.empty(4)
    f[0] = (rest - left) * q[0] / left
    f[1] = (rest - left) * q[1] / left - p[4]
    f[2] = (rest - right) * (q[2] - xb) / right
    f[3] = (rest - right) * (q[3] - yb) / right - p[4]
    return f


def axis_constraint(t, q, p):
    yb = p[2] * np.sin(p[3] * t)
    xb = np.sqrt(p[0] * p[0] - yb * yb)
    dx, dy = q[0] - q[2], q[1] - q[3]
    return np.array([xb * q[0] + yb * q[1], dx * dx + dy * dy - p[0] * p[0]])


def axis_jacobian(t, q, p):
    yb = p[2] * np.sin(p[3] * t)
    xb = np.sqrt(p[0] * p[0] - yb * yb)
    dx, dy = 2.0 * (q[0] - q[2]), 2.0 * (q[1] - q[3])
    return np.array([[xb, yb, 0.0, 0.0], [dx, dy, -dx, -dy]])


def axis_constraint_t(t, q, p):
    yb, speed = p[2] * np.sin(p[3] * t), p[2] * p[3] * np.cos(p[3] * t)
    xb = np.sqrt(p[0] * p[0] - yb * yb)
    return np.array([-yb * speed / xb * q[0] + speed * q[1], 0.0])


def axis_bias(t, q, v, p):
    yb, yb1 = p[2] * math.sin(p[3] * t), p[2] * p[3] * math.cos(p[3] * t)
    yb2 = -p[3] * p[3] * yb
    xb = math.sqrt(p[0] * p[0] - yb * yb)
    xb1 = -yb * yb1 / xb
    xb2 = -(xb1 * xb1 + yb1 * yb1 + yb * yb2) / xb
    dx, dy = v[0] - v[2], v[1] - v[3]
    return np.array([-2.0 * (xb1 * v[0] + yb1 * v[1]) - xb2 * q[0] - yb2 * q[1], -2.0 * (dx * dx + dy * dy)])


@model
def car_axis(
    eps: float = 1e-2,
    mass: float = 10.0,
    length: float = 1.0,
    spring: float = 0.5,
    amplitude: float = 0.1,
    frequency: float = 10.0,
    gravity: float = 1.0,
    t1: float = 3.0,
    compiled: bool = False,
) -> Model:
    """A car axis on a bumpy road: two end points, two springs, a moving constraint.

    Notes
    -----
    The source adds the constraint forces, whereas Daedal subtracts them: its multipliers have the opposite sign.
    ``model.extra`` has ``lam``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.car_axis()
    >>> model.problem.n_q, model.problem.n_constraints, model.index
    (4, 2, 3)
    """
    given = dict(eps=eps, mass=mass, length=length, spring=spring, amplitude=amplitude, frequency=frequency, t1=t1)
    check_positive(**given)
    k = 0.5 * mass * eps**2
    problem = daedal.MechanicalSystem(
        [k, k, k, k],
        axis_force,
        axis_constraint,
        n_q=4,
        n_constraints=2,
        constraint_jacobian=axis_jacobian,
        constraint_t=axis_constraint_t,
        acceleration_bias=axis_bias,
        params=np.array([length, spring, amplitude, frequency, k * gravity], dtype=float),
        names=["xl", "yl", "xr", "yr"],
        constraint_names=["perpendicular", "axis"],
    )
    # The left end follows the rotating support: xl' = -w r L0 / L
    speed = -amplitude * frequency * spring / length
    return mechanical_model(
        problem,
        ([0.0, spring, length, spring], [speed, 0.0, speed, 0.0]),
        t1,
        compiled,
        known=known("car_axis", **given, gravity=gravity),
    )


# --- a truck: five bodies, springs and dampers between them, one joint ----------------------------------------------

# Coordinates: name, mass (kg) or inertia (kg m^2), value in equilibrium (m, rad), body, direction (0 x, 1 z, 2 angle)
COORDINATES = (
    ("z1", 1450.0, 0.5, 2, 1),
    ("z2", 3335.0, 2.0, 3, 1),
    ("a2", 14313.0, 0.0, 3, 2),
    ("z3", 600.0, 0.5, 4, 1),
    ("z4", 1100.0, 2.9, 5, 1),
    ("a4", 948.0, 0.0, 5, 2),
    ("x5", 11515.0, -1.46, 6, 0),
    ("z5", 11515.0, 2.9, 6, 1),
    ("a5", 33000.0, 0.0, 6, 2),
)
# Force elements: name, from (body, x, z), to (body, x, z), stiffness (N/m), damping (N s/m), nominal force (N)
ELEMENTS = (
    ("10", (0, 0.0, 0.0), (2, 0.0, 0.0), 44e5, 600.0, -2.329145162e6),
    ("12", (2, 0.0, 0.0), (3, -2.06, -1.34), 8.247e5, 21593.0, -2.46872662e5),
    ("30", (1, 0.0, 0.0), (4, 0.0, 0.0), 22e5, 300.0, -1.147434838e6),
    ("23", (4, 0.0, 0.0), (3, 2.44, -1.34), 2.711e5, 38537.0, -8.4924838e4),
    ("24", (3, 1.94, 0.0), (5, -0.8, 0.0), 1.357e5, 12218.0, -1.2784288235294e5),
    ("42", (3, 3.64, 0.0), (5, 0.9, 0.0), 1.357e5, 12218.0, -1.2720811764706e5),
    ("25", (3, 0.98, 0.0), (6, 2.44, 0.0), 9.0e5, 38500.0, -8.5490594111111e5),
)
GRAVITY, SPEED, HUMP = 9.81, 15.0, 1e-3
AC_X, AC_Z, CC_X, CC_Z = -3.07, 0.15, -1.61, -0.75  # the joint, on the chassis and on the loading area
# The pneumatic element: adiabatic exponent, length in equilibrium (m), air pressure (Pa), 1/m, area (m^2)
KAPPA, L_NOM, AIR, SHAPE, AREA = 1.4, 0.16, 1e5, 39.13228, 0.0562

# The same tables as arrays, for compiled functions. Bodies: road under the rear and the front wheel, rear wheel,
# chassis, front wheel, cabin, loading area; horizontal positions of bodies without horizontal motion:
FIXED_X = np.array([-2.06, 2.44, -2.06, 0.0, 2.44, 2.74, 0.0])
MASSES = np.array([row[1] for row in COORDINATES])
EQUILIBRIUM = np.array([row[2] for row in COORDINATES])
BODY, DIRECTION = (np.array([row[k] for row in COORDINATES]) for k in (3, 4))
ENDS = np.array([[row[1][0], row[2][0]] for row in ELEMENTS])
POINTS = np.array([[row[1][1:], row[2][1:]] for row in ELEMENTS])
# Distance from the start to the hump, at the rear and the front wheel (m)
AHEAD = np.array([6.5, 2.0])

# p = (gravity, hump, speed, pneumatic, stiffness (7), damping (7), nominal force (7))


def truck_force(t, q, v, p):
    """Gravity and the force elements, each with the tension k L + d L' + nominal force between its ends.

    The forces on each body are summed to a force and a torque about the body origin, whose components act on the
    coordinates. By the principle of virtual work this is f = -sum F dL/dq.
    """
    place, rate, load = np.zeros((7, 3)), np.zeros((7, 3)), np.zeros((7, 3))
    for body in range(7):
        place[body, 0] = FIXED_X[body]
    for wheel in range(2):
        s = (p[2] * t - AHEAD[wheel]) / SPEED
        if s > 0.0:
            place[wheel, 1] = p[1] * s**6 * math.exp(-s)
            rate[wheel, 1] = p[1] * s**5 * (6.0 - s) * math.exp(-s) * p[2] / SPEED
    for i in range(9):
        place[BODY[i], DIRECTION[i]] = q[i]
        rate[BODY[i], DIRECTION[i]] = v[i]
        if DIRECTION[i] == 1:
            load[BODY[i], 1] = -MASSES[i] * p[0]
    arm = np.zeros((2, 2))
    for k in range(7):
        dx = dz = vx = vz = 0.0
        for end in range(2):
            body, sign = ENDS[k, end], 2.0 * end - 1.0
            c, s = math.cos(place[body, 2]), math.sin(place[body, 2])
            arm[end, 0] = c * POINTS[k, end, 0] - s * POINTS[k, end, 1]
            arm[end, 1] = s * POINTS[k, end, 0] + c * POINTS[k, end, 1]
            dx += sign * (place[body, 0] + arm[end, 0])
            dz += sign * (place[body, 1] + arm[end, 1])
            vx += sign * (rate[body, 0] - rate[body, 2] * arm[end, 1])
            vz += sign * (rate[body, 1] + rate[body, 2] * arm[end, 0])
        length = math.sqrt(dx * dx + dz * dz)
        if k == 3 and p[3] != 0.0:
            static = p[4 + k] * L_NOM + p[18 + k]
            compression = ((1.0 + SHAPE * L_NOM) / (1.0 + SHAPE * length)) ** KAPPA
            tension = (static + AIR * AREA) * compression - AIR * AREA
        else:
            tension = p[4 + k] * length + p[18 + k]
        tension += p[11 + k] * (dx * vx + dz * vz) / length
        fx, fz = tension * dx / length, tension * dz / length
        for end in range(2):
            body, sign = ENDS[k, end], 1.0 - 2.0 * end
            load[body, 0] += sign * fx
            load[body, 1] += sign * fz
            load[body, 2] += sign * (arm[end, 0] * fz - arm[end, 1] * fx)
    f = np.empty(9)
    for i in range(9):
        f[i] = load[BODY[i], DIRECTION[i]]
    return f


def joint(t, q, p):
    c2, s2, c5, s5 = np.cos(q[2]), np.sin(q[2]), np.cos(q[8]), np.sin(q[8])
    g = np.empty(2, q.dtype)
    g[0] = q[6] + c5 * CC_X - s5 * CC_Z - (c2 * AC_X - s2 * AC_Z)
    g[1] = q[7] + s5 * CC_X + c5 * CC_Z - (q[1] + s2 * AC_X + c2 * AC_Z)
    return g


def joint_jacobian(t, q, p):
    c2, s2, c5, s5 = np.cos(q[2]), np.sin(q[2]), np.cos(q[8]), np.sin(q[8])
    jacobian = np.zeros((2, 9), q.dtype)
    jacobian[0, 2] = s2 * AC_X + c2 * AC_Z
    jacobian[0, 6] = 1.0
    jacobian[0, 8] = -s5 * CC_X - c5 * CC_Z
    jacobian[1, 1] = -1.0
    jacobian[1, 2] = -c2 * AC_X + s2 * AC_Z
    jacobian[1, 7] = 1.0
    jacobian[1, 8] = c5 * CC_X - s5 * CC_Z
    return jacobian


def joint_bias(t, q, v, p):
    c2, s2, c5, s5 = math.cos(q[2]), math.sin(q[2]), math.cos(q[8]), math.sin(q[8])
    w2, w5 = v[2] * v[2], v[8] * v[8]
    gamma = np.empty(2)
    gamma[0] = w5 * (c5 * CC_X - s5 * CC_Z) - w2 * (c2 * AC_X - s2 * AC_Z)
    gamma[1] = w5 * (s5 * CC_X + c5 * CC_Z) - w2 * (s2 * AC_X + c2 * AC_Z)
    return gamma


@model
def truck(
    pneumatic: bool = False, speed: float = SPEED, hump: float = HUMP, t1: float = 20.0, compiled: bool = False
) -> Model:
    r"""A truck with a cabin and a loading area on suspensions drives over a hump of 12 cm.

    The bodies are the rear wheel 1, the chassis 2, the front wheel 3, the cabin 4 and the loading area 5. Wheels move
    vertically, chassis and cabin also rotate, the loading area moves freely and is hinged to the chassis.

    Notes
    -----
    This is not the truck of L. Wunderlich's thesis (Numerical Solution of Second Order Differential-Algebraic
    Equations, 2005). The latter, by B. Simeon, F. Grupp, C. Führer and P. Rentrop (J. Comput. Appl. Math. 50 (1994)
    523-532), has seven bodies, eleven coordinates and one constraint; the thesis gives none of its parameters. The
    present model is a published variant with five bodies, so the 526 and 1268 steps of the thesis cannot be compared
    with runs of this model.

    Elements are in tension if their force F is positive. The forces follow from virtual work: an element of length L
    contributes :math:`-F\, \partial L / \partial q`. The public Python version differs in the sign of the horizontal
    forces in the torque on the chassis. Its air spring carries twice the static load; here it carries the equilibrium
    load, where it is as stiff as the steel spring to four digits.

    The suspensions are short, compressed and hinged 1.34 m below the centre of the chassis, so that its pitch is 2.4
    times the slope of the road between the wheels.

    The source adds the constraint forces, whereas Daedal subtracts them: the multipliers in equilibrium are (0,
    -68056.2) N.

    ``model.extra`` has ``lam``, ``start_lam`` (the multipliers in equilibrium) and ``road(t)``, the height of the road
    under the rear and the front wheel.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.truck()
    >>> at_start = model.problem.at(0.0, *model.initial)
    >>> print(round(-at_start.multipliers[1], 1), abs(at_start.acceleration).max() < 1e-9)
    68056.2 True
    """
    if not (isinstance(hump, (int, float)) and math.isfinite(hump)):
        raise daedal.InvalidProblemError(f"hump={hump!r} must be a number")
    elements = np.array([row[3:] for row in ELEMENTS], dtype=float)
    problem = daedal.MechanicalSystem(
        MASSES,
        truck_force,
        joint,
        n_q=9,
        n_constraints=2,
        constraint_jacobian=joint_jacobian,
        acceleration_bias=joint_bias,
        params=np.array([GRAVITY, hump, speed, float(pneumatic), *elements.T.ravel()]),
        names=[row[0] for row in COORDINATES],
        constraint_names=["joint x", "joint z"],
    )

    def road(t):
        s = np.maximum((speed * np.asarray(t, dtype=float) - AHEAD.reshape(2, *[1] * np.ndim(t))) / SPEED, 0.0)
        return hump * s**6 * np.exp(-s)

    return mechanical_model(
        problem,
        (EQUILIBRIUM, np.zeros(9)),
        t1,
        compiled,
        known=known("truck", pneumatic=bool(pneumatic), speed=speed, hump=hump, t1=t1),
        extra={"road": road, "start_lam": np.array([0.0, -MASSES[6] * GRAVITY - 9.0e5 * 0.9 + 8.5490594111111e5])},
    )
