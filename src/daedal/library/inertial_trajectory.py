r"""Trajectory control in inertial coordinates, Brenan, Campbell and Petzold (6.3.3), who leave the conversion out.

The axes are fixed in space, with the origin in the middle of the Earth, the third one along its axis of rotation, and
the first one through the meridian from which the longitude is counted at t = 0. With :math:`r = |\mathbf r|`,
:math:`\rho = \sqrt{x^2 + y^2}` and the velocity relative to the rotating Earth :math:`\mathbf w = \mathbf v - \Omega\,
\mathbf e_z \times \mathbf r`, the directions up, east and north and the components of :math:`\mathbf w` are

.. math::

    \mathbf u = \mathbf r / r, \quad \mathbf e = (-y, x, 0) / \rho, \quad \mathbf n = \mathbf u \times \mathbf e,
    \qquad w_u = \mathbf w \cdot \mathbf u, \quad w_e = \mathbf w \cdot \mathbf e, \quad w_n = \mathbf w \cdot \mathbf n

and with :math:`w_h = \sqrt{w_e^2 + w_n^2}` the relative coordinates are

.. math::

    H = r - a_e, \quad \xi = \arg(x, y) - \Omega t, \quad \lambda = \arg(\rho, z), \quad
    V = |\mathbf w|, \quad \gamma = \arg(w_h, w_u), \quad A = \arg(w_n, w_e).

Drag acts against :math:`\mathbf w`; lift along :math:`\cos\beta\, \mathbf l + \sin\beta\, \mathbf s`, where
:math:`\mathbf s = (w_n \mathbf e - w_e \mathbf n) / w_h` is the horizontal direction of growing azimuth, and
:math:`\mathbf l = (w_h \mathbf u - w_u (w_n \mathbf n + w_e \mathbf e) / w_h) / V` that of growing flight-path angle.
"""

import math

import numpy as np

EQUATIONS = (
    r"\begin{aligned} \mathbf r' &= \mathbf v,\qquad "
    r"\mathbf v' = -\frac{\mu}{r^2} \mathbf u - \frac{D}{m} \frac{\mathbf w}{V} "
    r"+ \frac{L}{m} (\cos\beta\, \mathbf l + \sin\beta\, \mathbf s) \\ "
    r"0 &= \gamma(\mathbf r, \mathbf v) + 1^\circ + 9^\circ \Bigl(\frac{t}{300}\Bigr)^2,\qquad "
    r"0 = A(\mathbf r, \mathbf v) - 45^\circ - 90^\circ \Bigl(\frac{t}{300}\Bigr)^2 \end{aligned}"
)


def inertial_residual(t, y, yp, p):
    """The index-2 form; parameters as for the relative coordinates."""
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
    """Position and velocity in inertial axes from H, xi, lambda, V, gamma, A; what follows them stays."""
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
    """H, xi, lambda, V, gamma, A from position and velocity in inertial axes; what follows them stays."""
    position, velocity = np.asarray(y[:3]), np.asarray(y[3:6])
    axial, r = math.hypot(position[0], position[1]), math.sqrt(position @ position)
    w = velocity - p[2] * np.array([-position[1], position[0], 0.0])
    u = position / r
    e = np.array([-position[1], position[0], 0.0]) / axial
    up, east, north = w @ u, w @ e, w @ np.cross(u, e)
    place = [r - p[0], math.atan2(position[1], position[0]) - p[2] * t, math.atan2(position[2], axial)]
    motion = [math.sqrt(w @ w), math.atan2(up, math.hypot(east, north)), math.atan2(east, north)]
    return np.concatenate([place, motion, y[6:]])
