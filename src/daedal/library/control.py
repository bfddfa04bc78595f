"""Control problems of high index: an optimal regulator, flexible joints, and re-entry on prescribed trajectories."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import daedal
from daedal.library.circuits import Source, linear_dae
from daedal.library.registry import Indices, Model, Reference, check_choice, closed_model, known, known_reference, model

WEIGHTS = {1: (1.0, 1.0, 1.0), 3: (1.0, 1.0, 0.0), 5: (1.0, 0.0, 0.0)}
"""Weights of deviation, velocity and control, by the resulting index."""


@model
def regulator(index: int = 3) -> Model:
    r"""The regulator of a mass with the cost :math:`\tfrac12 \int q_1 (x_1 - \sin t)^2 + q_2 x_2^2 + r u^2`.

    Notes
    -----
    ``model.extra["exact"](t, derivative)`` is the solution in closed form, which, like the optimal solution,
    lies on the stable manifold. The position satisfies
    :math:`r x_1'''' - q_2 x_1'' + q_1 x_1 = q_1 \sin t`: every vanishing weight removes two initial values and
    increases the index by two.
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


# --- prescribed-path control of re-entry vehicles (trajectory prescribed path control, TPPC) --------------------------

# A vehicle flies over a spherical rotating Earth without thrust. Its path is prescribed; angle of attack and bank angle
# are unknowns. Units are feet, seconds, slugs; all angles in the state vector are in radians.
#
# The axes are fixed in space, with the origin at the centre of the Earth, the third axis along its axis of rotation,
# and the first through the meridian from which the longitude is measured at t = 0. With :math:`r = |\mathbf r|`,
# :math:`\rho = \sqrt{x^2 + y^2}` and the velocity relative to the rotating Earth :math:`\mathbf w = \mathbf v -
# \Omega\, \mathbf e_z \times \mathbf r`, the directions up, east and north and the components of :math:`\mathbf w` are
#
# .. math::
#
#     \mathbf u = \mathbf r / r, \quad \mathbf e = (-y, x, 0) / \rho, \quad \mathbf n = \mathbf u \times \mathbf e,
#     \qquad w_u = \mathbf w \cdot \mathbf u, \quad w_e = \mathbf w \cdot \mathbf e, \quad
#     w_n = \mathbf w \cdot \mathbf n
#
# and with :math:`w_h = \sqrt{w_e^2 + w_n^2}` the relative coordinates are
#
# .. math::
#
#     H = r - a_e, \quad \xi = \arg(x, y) - \Omega t, \quad \lambda = \arg(\rho, z), \quad
#     V = |\mathbf w|, \quad \gamma = \arg(w_h, w_u), \quad A = \arg(w_n, w_e).
#
# Drag acts against :math:`\mathbf w`; lift along :math:`\cos\beta\, \mathbf l + \sin\beta\, \mathbf s`, where
# :math:`\mathbf s = (w_n \mathbf e - w_e \mathbf n) / w_h` is the horizontal direction of growing azimuth, and
# :math:`\mathbf l = (w_h \mathbf u - w_u (w_n \mathbf n + w_e \mathbf e) / w_h) / V` that of growing flight-path angle.

EQUATIONS = (
    r"\begin{aligned} \mathbf r' &= \mathbf v,\qquad "
    r"\mathbf v' = -\frac{\mu}{r^2} \mathbf u - \frac{D}{m} \frac{\mathbf w}{V} "
    r"+ \frac{L}{m} (\cos\beta\, \mathbf l + \sin\beta\, \mathbf s) \\ "
    r"0 &= \gamma(\mathbf r, \mathbf v) + 1^\circ + 9^\circ \Bigl(\frac{t}{300}\Bigr)^2,\qquad "
    r"0 = A(\mathbf r, \mathbf v) - 45^\circ - 90^\circ \Bigl(\frac{t}{300}\Bigr)^2 \end{aligned}"
)


def inertial_residual(t, y, yp, p):
    """The index-2 form in inertial axes; its parameters are those of :func:`residual`."""
    x1, x2, x3, alpha, beta = y[0], y[1], y[2], y[6], y[7]
    axial = math.sqrt(x1 * x1 + x2 * x2)
    r = math.sqrt(x1 * x1 + x2 * x2 + x3 * x3)
    w1, w2, w3 = y[3] + p[2] * x2, y[4] - p[2] * x1, y[5]
    outward = (x1 * w1 + x2 * w2) / axial
    up = (axial * outward + x3 * w3) / r
    east = (x1 * w2 - x2 * w1) / axial
    north = (axial * w3 - x3 * outward) / r
    level = math.sqrt(east * east + north * north)
    speed = math.sqrt(up * up + level * level)
    pressure = 0.5 * p[3] * np.exp((p[0] - r) / p[4]) * speed * speed * p[6] / p[5]
    lift_coefficient = p[7] + p[8] * alpha
    drag = pressure * (p[9] + p[10] * lift_coefficient * lift_coefficient) / speed
    lift = pressure * lift_coefficient * math.cos(beta) / speed
    side = pressure * lift_coefficient * math.sin(beta) / level
    a_up = lift * level - drag * up - p[1] / (r * r)
    a_east = side * north - (drag + lift * up / level) * east
    a_north = -side * east - (drag + lift * up / level) * north
    a_outward = (a_up * axial - a_north * x3) / r
    s = t / 300.0
    out = np.empty(8)
    out[0] = yp[0] - y[3]
    out[1] = yp[1] - y[4]
    out[2] = yp[2] - y[5]
    out[3] = yp[3] - (a_outward * x1 - a_east * x2) / axial
    out[4] = yp[4] - (a_outward * x2 + a_east * x1) / axial
    out[5] = yp[5] - (a_up * x3 + a_north * axial) / r
    out[6] = math.atan2(up, level) + (1.0 + 9.0 * s * s) * math.pi / 180.0
    out[7] = math.atan2(east, north) - (45.0 + 90.0 * s * s) * math.pi / 180.0
    return out


def to_inertial(t: float, y, p) -> np.ndarray:
    """Position and velocity in inertial axes from H, xi, lambda, V, gamma, A; further entries are unchanged."""
    altitude, longitude, latitude, speed, gamma, azimuth = y[:6]
    angle = longitude + p[2] * t
    u = np.array([math.cos(latitude) * math.cos(angle), math.cos(latitude) * math.sin(angle), math.sin(latitude)])
    e = np.array([-math.sin(angle), math.cos(angle), 0.0])
    level = math.sin(azimuth) * e + math.cos(azimuth) * np.cross(u, e)
    position = (altitude + p[0]) * u
    velocity = speed * (math.sin(gamma) * u + math.cos(gamma) * level)
    velocity += p[2] * np.array([-position[1], position[0], 0.0])
    return np.concatenate([position, velocity, y[6:]])


def to_relative(t: float, y, p) -> np.ndarray:
    """H, xi, lambda, V, gamma, A from position and velocity in inertial axes; further entries are unchanged."""
    position, velocity = np.asarray(y[:3]), np.asarray(y[3:6])
    axial, r = math.hypot(position[0], position[1]), math.sqrt(position @ position)
    w = velocity - p[2] * np.array([-position[1], position[0], 0.0])
    u = position / r
    e = np.array([-position[1], position[0], 0.0]) / axial
    up, east, north = w @ u, w @ e, w @ np.cross(u, e)
    place = [r - p[0], math.atan2(position[1], position[0]) - p[2] * t, math.atan2(position[2], axial)]
    motion = [math.sqrt(w @ w), math.atan2(up, math.hypot(east, north)), math.atan2(east, north)]
    return np.concatenate([place, motion, y[6:]])


# --- equations in relative coordinates --------------------------------------------------------------------------------

DEGREE = math.pi / 180.0

# Radius, gravity and rotation of the Earth; density at sea level and scale height of the atmosphere
EARTH = (20902900.0, 0.1407653916e17, 7.2921159e-5, 0.002378, 23800.0)
# Mass, reference area, then C_L = c0 + c1 alpha and C_D = d0 + d1 C_L^2
VEHICLE2 = (2.890532728, 1.0, 0.0, 0.01 / DEGREE, 0.04, 0.1)
VEHICLE3 = (5964.496499824, 2690.0, 0.84 + 0.48 * 2.0 / 26.0, 0.0, 0.78 + 0.58 * 2.0 / 26.0, 0.0)
# Drag profile D/m = C0 + C1 w + C2 w^2 + C3 w^3 with w = V - V0. C0 and C1 make the initial state satisfy the
# constraint and its first derivative to round-off.
V0 = 24317.0798
DRAG_PROFILE = (3.974960399102443, -0.014489476950566764, -0.2156171551995e-4, -0.1089609507291e-7)

# Controls at the start and their derivatives, from the differentiated constraints in 40-digit arithmetic
CONTROLS2 = (0.046650382816646594, -0.00091122917399968552)
CONTROL_RATES2 = (-0.00013485648003009623, 0.017559306650083192)
CONTROL3 = 0.71733013382110533
CONTROL_RATE3 = -0.0088155455375576701

_MOTION = (
    r"H' &= V \sin\gamma,\qquad \xi' = \frac{V \cos\gamma \sin A}{r \cos\lambda},\qquad "
    r"\lambda' = \frac{V}{r} \cos\gamma \cos A \\ "
    r"V' &= -\frac{D}{m} - g \sin\gamma "
    r"- \Omega^2 r \cos\lambda\,(\sin\lambda \cos A \cos\gamma - \cos\lambda \sin\gamma) \\ "
    r"\gamma' &= \frac{L \cos\beta}{m V} + \frac{\cos\gamma}{V}\Bigl(\frac{V^2}{r} - g\Bigr) "
    r"+ 2 \Omega \cos\lambda \sin A "
    r"+ \frac{\Omega^2 r \cos\lambda}{V}(\sin\lambda \cos A \sin\gamma + \cos\lambda \cos\gamma) \\ "
    r"A' &= \frac{L \sin\beta}{m V \cos\gamma} + \frac{V}{r} \cos\gamma \sin A \tan\lambda "
    r"- 2 \Omega (\cos\lambda \cos A \tan\gamma - \sin\lambda) "
    r"+ \frac{\Omega^2 r \cos\lambda \sin\lambda \sin A}{V \cos\gamma} \\ "
)


def residual(t, y, yp, p):
    """Residual of all implicit forms; p[11] is the index: 2 or 1 for :func:`tppc2`, 3 for :func:`tppc3`."""
    form = int(p[11])
    alpha = 0.0 if form == 3 else y[6]
    beta = y[6] if form == 3 else y[7]
    altitude, latitude, v, gamma, azimuth = y[0], y[2], y[3], y[4], y[5]
    sin_l, cos_l = math.sin(latitude), math.cos(latitude)
    sin_g, cos_g = math.sin(gamma), math.cos(gamma)
    sin_a, cos_a = math.sin(azimuth), math.cos(azimuth)
    r = altitude + p[0]
    g = p[1] / (r * r)
    omega = p[2]
    spin = omega * omega * r * cos_l
    pressure = 0.5 * p[3] * np.exp(-altitude / p[4]) * v * v * p[6] / p[5]  # dynamic pressure times area over mass
    lift_coefficient = p[7] + p[8] * alpha
    lift = pressure * lift_coefficient
    drag = pressure * (p[9] + p[10] * lift_coefficient * lift_coefficient)
    gamma_rate = (
        lift * math.cos(beta) / v
        + cos_g / v * (v * v / r - g)
        + 2.0 * omega * cos_l * sin_a
        + spin / v * (sin_l * cos_a * sin_g + cos_l * cos_g)
    )
    azimuth_rate = (
        lift * math.sin(beta) / (v * cos_g)
        + v / r * cos_g * sin_a * sin_l / cos_l
        - 2.0 * omega * (cos_l * cos_a * sin_g / cos_g - sin_l)
        + spin * sin_l * sin_a / (v * cos_g)
    )
    out = np.empty(y.size)
    out[0] = yp[0] - v * sin_g
    out[1] = yp[1] - v * cos_g * sin_a / (r * cos_l)
    out[2] = yp[2] - v / r * cos_g * cos_a
    out[3] = yp[3] + drag + g * sin_g + spin * (sin_l * cos_a * cos_g - cos_l * sin_g)
    out[4] = yp[4] - gamma_rate
    out[5] = yp[5] - azimuth_rate
    s = t / 300.0
    if form == 2:
        out[6] = gamma + (1.0 + 9.0 * s * s) * math.pi / 180.0
        out[7] = azimuth - (45.0 + 90.0 * s * s) * math.pi / 180.0
    elif form == 1:
        out[6] = gamma_rate + 0.06 * s * math.pi / 180.0
        out[7] = azimuth_rate - 0.6 * s * math.pi / 180.0
    else:
        w = v - p[16]
        out[6] = drag - (p[12] + w * (p[13] + w * (p[14] + w * p[15])))
    return out


def motion(t, y, z, p):
    """Right-hand side of the equations of motion of the semi-explicit form; the controls are z = (alpha, beta)."""
    altitude, latitude, v, gamma, azimuth = y[0], y[2], y[3], y[4], y[5]
    sin_l, cos_l = math.sin(latitude), math.cos(latitude)
    sin_g, cos_g = math.sin(gamma), math.cos(gamma)
    sin_a, cos_a = math.sin(azimuth), math.cos(azimuth)
    r = altitude + p[0]
    g = p[1] / (r * r)
    omega = p[2]
    spin = omega * omega * r * cos_l
    pressure = 0.5 * p[3] * np.exp(-altitude / p[4]) * v * v * p[6] / p[5]
    lift_coefficient = p[7] + p[8] * z[0]
    lift = pressure * lift_coefficient
    drag = pressure * (p[9] + p[10] * lift_coefficient * lift_coefficient)
    f = np.empty(6)
    f[0] = v * sin_g
    f[1] = v * cos_g * sin_a / (r * cos_l)
    f[2] = v / r * cos_g * cos_a
    f[3] = -drag - g * sin_g - spin * (sin_l * cos_a * cos_g - cos_l * sin_g)
    f[4] = (
        lift * math.cos(z[1]) / v
        + cos_g / v * (v * v / r - g)
        + 2.0 * omega * cos_l * sin_a
        + spin / v * (sin_l * cos_a * sin_g + cos_l * cos_g)
    )
    f[5] = (
        lift * math.sin(z[1]) / (v * cos_g)
        + v / r * cos_g * sin_a * sin_l / cos_l
        - 2.0 * omega * (cos_l * cos_a * sin_g / cos_g - sin_l)
        + spin * sin_l * sin_a / (v * cos_g)
    )
    return f


def path(t, y, z, p):
    """The prescribed flight-path angle and azimuth."""
    s = t / 300.0
    g = np.empty(2)
    g[0] = y[4] + (1.0 + 9.0 * s * s) * math.pi / 180.0
    g[1] = y[5] - (45.0 + 90.0 * s * s) * math.pi / 180.0
    return g


def _initial_derivative(equations, t0, y0, control_rates, params) -> np.ndarray:
    rates = -equations(t0, y0, np.zeros(y0.size), params)
    return np.concatenate([rates[:6], control_rates])


@model
def tppc2(form: str = "index2") -> Model:
    """Re-entry along a prescribed flight-path angle and azimuth, controlled by angle of attack and bank angle.

    Notes
    -----
    The inertial form has ``extra["relative"](t, y)``, which converts to the variables of the other forms. Its options
    set the first step: a coordinate with initial value 0 and an absolute tolerance far below a foot would lead to a
    first step of 1e-10 s, for which round-off in the constraints perturbs the controls by more than any tolerance.
    """
    names = ["H", "xi", "lambda", "V", "gamma", "A", "alpha", "beta"]
    index = 1 if form == "index1" else 2
    params = np.array([*EARTH, *VEHICLE2, float(index)])
    y0 = np.array([100000.0, 0.0, 0.0, 12000.0, -1.0 * DEGREE, 45.0 * DEGREE, *CONTROLS2])
    reference = known_reference("tppc2")
    assert reference is not None
    problem: daedal.ImplicitDAE | daedal.SemiExplicitDAE
    if form == "semi-explicit":
        problem = daedal.SemiExplicitDAE(motion, path, 6, 2, params=params, names=names)
        initial = (y0[:6], y0[6:])
    elif form == "inertial":
        names = ["x", "y", "z", "v_x", "v_y", "v_z", "alpha", "beta"]
        problem = daedal.ImplicitDAE(inertial_residual, 8, params=params, algebraic=[6, 7], names=names)
        y0 = to_inertial(0.0, y0, params)
        initial = (y0, _initial_derivative(inertial_residual, 0.0, y0, CONTROL_RATES2, params))
        reference = replace(reference, y=to_inertial(reference.t, reference.y, params))
    else:
        problem = daedal.ImplicitDAE(residual, 8, params=params, algebraic=[6, 7], names=names)
        initial = (y0, _initial_derivative(residual, 0.0, y0, CONTROL_RATES2, params))
    constraint = (
        r"0 &= \gamma' + 18^\circ\,\frac{t}{300^2},\qquad 0 = A' - 180^\circ\,\frac{t}{300^2}"
        if index == 1
        else r"0 &= \gamma + 1^\circ + 9^\circ \Bigl(\frac{t}{300}\Bigr)^2,\qquad "
        r"0 = A - 45^\circ - 90^\circ \Bigl(\frac{t}{300}\Bigr)^2"
    )
    shown = ["alpha", "beta"] if form == "inertial" else ["alpha", "beta", "gamma"]
    special: dict[str, dict[str, Any]] = {
        "index2": {"method": "dassl", "error_test": "differential"},
        "inertial": {"method": "dassl", "error_test": "differential", "first_step": 1e-3, "rtol": 1e-8, "atol": 1e-8},
    }
    return Model(
        problem=problem,
        initial=initial,
        index=index,
        indices=Indices.usual(index, 8 - 2 * index),
        equations=EQUATIONS if form == "inertial" else r"\begin{aligned} " + _MOTION + constraint + r" \end{aligned}",
        reference=reference,
        options={"rtol": 1e-7, "atol": 1e-7} | special.get(form, {}),
        plot={"variables": shown, "factors": dict.fromkeys(shown, 1 / DEGREE)},
        extra={"relative": partial(to_relative, p=params)} if form == "inertial" else {},
    )


@model
def tppc3(t1: float = 419.868734542) -> Model:
    """Space shuttle re-entry with prescribed drag acceleration, controlled by the bank angle alone: index 3.

    Notes
    -----
    Variable-step BDF methods cannot start on this problem. With constant steps a full Newton step at the start leads to
    another branch of the bank angle; limiting changes to 0.3 rad keeps the correct branch.
    """
    t0 = 332.868734542
    if not t1 > t0:
        raise daedal.InvalidProblemError(f"t1={t1} must be later than the start t0={t0}")
    names = ["H", "xi", "lambda", "V", "gamma", "A", "beta"]
    params = np.array([*EARTH, *VEHICLE3, 3.0, *DRAG_PROFILE, V0])
    angles = np.array([177.718047, 32.0417885, -0.749986488, 62.7883367]) * DEGREE
    y0 = np.array([264039.328, angles[0], angles[1], V0, angles[2], angles[3], CONTROL3])
    return Model(
        problem=daedal.ImplicitDAE(residual, 7, params=params, algebraic=[6], names=names),
        t_span=(t0, t1),
        initial=(y0, _initial_derivative(residual, t0, y0, [CONTROL_RATE3], params)),
        reference=known_reference("tppc3", t1=t1),
        options={
            "method": "dassl",
            "fixed_step": 0.1,
            "max_order": 1,
            "max_newton_change": np.array([np.inf] * 6 + [0.3]),
        },
        plot={"variables": ["beta"], "factors": {"beta": 1 / DEGREE}},
    )
