"""Andrews' squeezer: seven rigid bodies in the plane, driven by a constant torque."""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, known, mechanical_model, model

# Masses and moments of inertia (kg, m^2 kg)
M1, M2, M3, M4, M5, M6, M7 = 0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498
I1, I2, I3, I4, I5, I6, I7 = 2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5
# Fixed points A, B, C and lengths (m)
XA, YA, XB, YB, XC, YC = -0.06934, -0.00227, -0.03635, 0.03273, 0.014, 0.072
D, DA, E, EA, RR, RA, SS, SA, SB, SC, SD = (
    0.028,
    0.0115,
    0.02,
    0.01421,
    0.007,
    0.00092,
    0.035,
    0.01874,
    0.01043,
    0.018,
    0.02,
)
TA, TB, U, UA, UB, ZF, ZT, FA = 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421
# Stiffness and length of the spring (N/m, m), torque (N m)
C0, L0, TORQUE = 4530.0, 0.07785, 0.033

# beta, Theta, gamma, Phi, delta, Omega, epsilon at rest
START = (
    -0.0617138900142764496358948458001,
    0.0,
    0.455279819163070380255912382449,
    0.222668390165885884674473185609,
    0.487364979543842550225598953530,
    -0.222668390165885884674473185609,
    1.23054744454982119249735015568,
)


def squeezer_mass(t, q, p):
    cos_theta, sin_phi, sin_omega = math.cos(q[1]), math.sin(q[3]), math.sin(q[5])
    k, w = E - EA, ZF - FA
    m = np.zeros((7, 7))
    m[0, 0] = M1 * RA * RA + M2 * (RR * RR - 2.0 * DA * RR * cos_theta + DA * DA) + I1 + I2
    m[0, 1] = M2 * (DA * DA - DA * RR * cos_theta) + I2
    m[1, 0] = m[0, 1]
    m[1, 1] = M2 * DA * DA + I2
    m[2, 2] = M3 * (SA * SA + SB * SB) + I3
    m[3, 3] = M4 * k * k + I4
    m[3, 4] = M4 * (k * k + ZT * k * sin_phi) + I4
    m[4, 3] = m[3, 4]
    m[4, 4] = M4 * (ZT * ZT + 2.0 * ZT * k * sin_phi + k * k) + M5 * (TA * TA + TB * TB) + I4 + I5
    m[5, 5] = M6 * w * w + I6
    m[5, 6] = M6 * (w * w - U * w * sin_omega) + I6
    m[6, 5] = m[5, 6]
    m[6, 6] = M6 * (w * w - 2.0 * U * w * sin_omega + U * U) + M7 * (UA * UA + UB * UB) + I6 + I7
    return m


def squeezer_force(t, q, v, p):
    sin_gamma, cos_gamma = math.sin(q[2]), math.cos(q[2])
    k, w = E - EA, ZF - FA
    x = SD * cos_gamma + SC * sin_gamma + XB - XC
    y = SD * sin_gamma - SC * cos_gamma + YB - YC
    length = math.sqrt(x * x + y * y)
    pull = -C0 * (length - L0) / length
    f = np.empty(7)
    f[0] = p[0] - M2 * DA * RR * v[1] * (v[1] + 2.0 * v[0]) * math.sin(q[1])
    f[1] = M2 * DA * RR * v[0] * v[0] * math.sin(q[1])
    f[2] = pull * (x * (SC * cos_gamma - SD * sin_gamma) + y * (SD * cos_gamma + SC * sin_gamma))
    f[3] = M4 * ZT * k * v[4] * v[4] * math.cos(q[3])
    f[4] = -M4 * ZT * k * v[3] * (v[3] + 2.0 * v[4]) * math.cos(q[3])
    f[5] = -M6 * U * w * v[6] * v[6] * math.cos(q[5])
    f[6] = M6 * U * w * v[5] * (v[5] + 2.0 * v[6]) * math.cos(q[5])
    return f


def loops(t, q, p):
    a = RR * np.cos(q[0]) - D * np.cos(q[0] + q[1])
    b = RR * np.sin(q[0]) - D * np.sin(q[0] + q[1])
    g = np.empty(6, q.dtype)
    g[0] = a - SS * np.sin(q[2]) - XB
    g[1] = b + SS * np.cos(q[2]) - YB
    g[2] = a - E * np.sin(q[3] + q[4]) - ZT * np.cos(q[4]) - XA
    g[3] = b + E * np.cos(q[3] + q[4]) - ZT * np.sin(q[4]) - YA
    g[4] = a - ZF * np.cos(q[5] + q[6]) - U * np.sin(q[6]) - XA
    g[5] = b - ZF * np.sin(q[5] + q[6]) + U * np.cos(q[6]) - YA
    return g


def loops_jacobian(t, q, p):
    jacobian = np.zeros((6, 7), q.dtype)
    a2, b2 = D * np.sin(q[0] + q[1]), -D * np.cos(q[0] + q[1])
    for row in range(0, 6, 2):
        jacobian[row, 0] = a2 - RR * np.sin(q[0])
        jacobian[row + 1, 0] = b2 + RR * np.cos(q[0])
        jacobian[row, 1] = a2
        jacobian[row + 1, 1] = b2
    jacobian[0, 2] = -SS * np.cos(q[2])
    jacobian[1, 2] = -SS * np.sin(q[2])
    jacobian[2, 3] = -E * np.cos(q[3] + q[4])
    jacobian[3, 3] = -E * np.sin(q[3] + q[4])
    jacobian[2, 4] = jacobian[2, 3] + ZT * np.sin(q[4])
    jacobian[3, 4] = jacobian[3, 3] - ZT * np.cos(q[4])
    jacobian[4, 5] = ZF * np.sin(q[5] + q[6])
    jacobian[5, 5] = -ZF * np.cos(q[5] + q[6])
    jacobian[4, 6] = jacobian[4, 5] - U * np.cos(q[6])
    jacobian[5, 6] = jacobian[5, 5] - U * np.sin(q[6])
    return jacobian


def loops_bias(t, q, v, p):
    w0, w1, w2 = v[0] * v[0], (v[0] + v[1]) * (v[0] + v[1]), v[2] * v[2]
    w34, w4 = (v[3] + v[4]) * (v[3] + v[4]), v[4] * v[4]
    w56, w6 = (v[5] + v[6]) * (v[5] + v[6]), v[6] * v[6]
    a = RR * math.cos(q[0]) * w0 - D * math.cos(q[0] + q[1]) * w1
    b = RR * math.sin(q[0]) * w0 - D * math.sin(q[0] + q[1]) * w1
    gamma = np.empty(6)
    gamma[0] = a - SS * math.sin(q[2]) * w2
    gamma[1] = b + SS * math.cos(q[2]) * w2
    gamma[2] = a - E * math.sin(q[3] + q[4]) * w34 - ZT * math.cos(q[4]) * w4
    gamma[3] = b + E * math.cos(q[3] + q[4]) * w34 - ZT * math.sin(q[4]) * w4
    gamma[4] = a - ZF * math.cos(q[5] + q[6]) * w56 - U * math.sin(q[6]) * w6
    gamma[5] = b - ZF * math.sin(q[5] + q[6]) * w56 + U * math.cos(q[6]) * w6
    return gamma


@model
def seven_body(torque: float = TORQUE, t1: float = 0.03, compiled: bool = False) -> Model:
    """Andrews' squeezing mechanism: seven bodies, three closed loops, one degree of freedom.

    Notes
    -----
    ``model.extra`` has ``lam`` and ``energy``, which includes the work of the torque.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.seven_body(t1=0.025)
    >>> print(round(model.reference.y[0], 12))
    12.107149234448
    """
    params = np.array([torque], dtype=float)
    problem = daedal.MechanicalSystem(
        squeezer_mass,
        squeezer_force,
        loops,
        n_q=7,
        n_constraints=6,
        constraint_jacobian=loops_jacobian,
        acceleration_bias=loops_bias,
        params=params,
        names=["beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon"],
        constraint_names=[
            "loop B x",
            "loop B y",
            "loop A upper x",
            "loop A upper y",
            "loop A lower x",
            "loop A lower y",
        ],
    )

    def energy(q, v):
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if q.ndim == 2:
            return np.array([energy(q[:, k], v[:, k]) for k in range(q.shape[1])])
        x = SD * np.cos(q[2]) + SC * np.sin(q[2]) + XB - XC
        y = SD * np.sin(q[2]) - SC * np.cos(q[2]) + YB - YC
        return 0.5 * v @ squeezer_mass(0.0, q, params) @ v + 0.5 * C0 * (np.hypot(x, y) - L0) ** 2 - torque * q[0]

    return mechanical_model(
        problem, (START, np.zeros(7)), t1, compiled, known=known("seven_body", torque=torque, t1=t1), energy=energy
    )
