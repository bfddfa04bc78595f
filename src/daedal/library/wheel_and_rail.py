"""A wheelset on a straight track: contact between profiles, creepage forces, hunting motion."""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, known_reference, model

# mass (kg), moments of inertia about and across the axle (kg m^2), gravity (m/s^2), speed (m/s)
MASS, AXIAL, LATERAL, GRAVITY, SPEED = 16.08, 0.0605, 0.366, 9.81, 30.0
# Springs across and along the track (N/m), their distance from the middle (m), friction coefficient
SPRING_X, SPRING_Z, ARM, FRICTION = 6400.0, 6400.0, 0.19, 0.12
# Profiles: cone angle, wheel radius, half the distance of the wheels, radius of the rail head (m)
CONE, RADIUS, HALF, HEAD = 0.0262, 0.1, 0.1506, 0.06
# Contact ellipse and creepage: integrals of Hertz, Poisson's ratio, shear modulus (N/m^2), coefficients of Kalker
HERTZ_E, HERTZ_G, POISSON, SHEAR = 1.3537956, 0.7115218, 0.28, 7.92e10
KALKER_11, KALKER_22, KALKER_23 = 4.72772197, 4.27526987, 1.97203505
PI = 3.1415926  # as rounded in the source
OMEGA = SPEED / RADIUS
FORCE = 1e4  # unit of the multipliers (N)


def contact(side, y, psi, xi):
    """Geometry at the contact of one side, 1 left and -1 right.

    Returns the radius of the wheel, the slopes of wheel and rail, and the second derivative of the rail profile.
    """
    theta, phi = y[3], y[4]
    radius = RADIUS + math.tan(CONE) * (HALF - side * xi)
    place = (
        y[0]
        + xi * math.cos(theta) * math.cos(phi)
        + radius * (math.cos(theta) * math.sin(phi) * math.cos(psi) - math.sin(theta) * math.sin(psi))
    )
    beside = side * place - HALF - math.sin(CONE) * HEAD
    root = np.sqrt(max(HEAD * HEAD - beside * beside, 1e-8))
    return radius, -side * math.tan(CONE), -side * beside / root, HEAD * HEAD / root**3


def directions(y, psi, xi, radius, rail):
    """The row of the constraint matrix for a contact: d(height)/d(x, z, theta, phi)."""
    ct, st, cp, sp = math.cos(y[3]), math.sin(y[3]), math.cos(y[4]), math.sin(y[4])
    cs, ss = math.cos(psi), math.sin(psi)
    return (
        rail,
        -1.0,
        rail * (radius * (-ct * ss - cs * sp * st) - cp * st * xi),
        -cs * radius * sp - cp * xi + rail * (cp * cs * ct * radius - ct * sp * xi),
    )


def creepage(side, y, psi, xi, radius, wheel, rail, bend, plane, normal):
    """Creepage forces at a contact in the directions x, y and z, by the smooth law of Jaschinski."""
    cp, sp, cs, ss = math.cos(y[4]), math.sin(y[4]), math.cos(psi), math.sin(psi)
    cd, sd = math.cos(plane), side * math.sin(plane)
    ct, st = math.cos(y[3] / cd), math.sin(y[3] / cd)
    spin = OMEGA + y[10]
    # Semiaxes of the ellipse (Hertz)
    curvature = 0.5 / (radius * math.sqrt(1.0 + wheel * wheel)) + 0.5 * bend / (1.0 + rail * rail) ** 1.5
    c = (3.0 * abs(normal) * (1.0 - POISSON) * HERTZ_E / (2.0 * PI * curvature * SHEAR * math.sqrt(HERTZ_G))) ** (
        1.0 / 3.0
    )
    # Velocity at the contact, and the rolling velocity
    across = st * sp * cs + ct * ss
    along = ct * sp * cs - st * ss
    w1 = -spin * radius * (st * cs + ct * sp * ss) + y[5] - y[8] * (radius * across + xi * st * cp)
    w1 -= y[9] * ct * (xi * sp - radius * cp * cs)
    w2 = spin * radius * cp * ss + y[6] + y[9] * (xi * cp + radius * sp * cs)
    w3 = -spin * radius * (ct * cs - st * sp * ss) + SPEED + y[7] - y[8] * (xi * ct * cp + radius * along)
    w3 += y[9] * st * (xi * sp - radius * cp * cs)
    r1, r2, r3 = w1 - 2.0 * y[5], w2 - 2.0 * y[6], w3 - 2.0 * y[7] - 2.0 * SPEED
    rolling = 0.5 * np.sqrt(r1 * r1 + r2 * r2 + r3 * r3)
    slip_x = (st * w1 + ct * w3) / rolling
    slip_y = (ct * cd * w1 + sd * w2 - st * cd * w3) / rolling
    turn = (cd * y[8] - sd * spin) / rolling
    limit = FRICTION * normal
    tx = -limit * math.tanh(SHEAR * c * c * KALKER_11 * slip_x / limit)
    ty = -limit * math.tanh(SHEAR * c * c * (KALKER_22 * slip_y + c * KALKER_23 * turn) / limit)
    share = min(1.0, abs(limit) / max(np.sqrt(tx * tx + ty * ty), 1e-30))
    tx, ty = share * tx, share * ty
    return st * tx + ct * cd * ty, sd * ty, ct * tx - st * cd * ty


def wheelset_residual(t, y, yp):
    """y contains x, y, z, theta, phi, their velocities, spin rate, contact angles and positions, and multipliers."""
    psi, xi = (y[13], y[11]), (y[14], y[12])  # left, right
    theta, phi, spin = y[3], y[4], OMEGA + y[10]
    ct, st, cp, sp = math.cos(theta), math.sin(theta), math.cos(phi), math.sin(phi)
    left, right = contact(1.0, y, psi[0], xi[0]), contact(-1.0, y, psi[1], xi[1])
    e1, e2 = FORCE * y[15], FORCE * y[16]
    ql, qr = directions(y, psi[0], xi[0], left[0], left[2]), directions(y, psi[1], xi[1], right[0], right[2])
    # Angles of the contact planes, and the normal forces
    plane = []
    for side, k, wheel in ((1.0, 0, left[1]), (-1.0, 1, right[1])):
        cs, ss = math.cos(psi[k]), math.sin(psi[k])
        plane.append(math.atan(((wheel * cp - sp * cs) * ct + ss * st) / (-side * (wheel * sp + cs * cp))))
    w1, w2 = ql[0] * e1 + qr[0] * e2, ql[1] * e1 + qr[1] * e2
    sl, cl, sr, cr = math.sin(plane[0]), math.cos(plane[0]), math.sin(plane[1]), math.cos(plane[1])
    determinant = -sl * cr - sr * cl
    normal = (cr * w1 - sr * w2) / determinant, (-cl * w1 - sl * w2) / determinant
    r = np.empty(17)
    for k in range(5):
        r[k] = yp[k] - y[5 + k]
    r[5] = MASS * yp[5] - w1 + 2.0 * SPRING_X * y[0]
    r[6] = MASS * (yp[6] + GRAVITY) - w2
    r[7] = MASS * yp[7] + 2.0 * SPRING_Z * y[2]
    turning = -2.0 * ARM * ARM * SPRING_Z * theta
    r[8] = LATERAL * cp * yp[8] - LATERAL * y[8] * y[9] * sp + AXIAL * spin * y[9]
    r[8] += (AXIAL - LATERAL) * y[8] * sp * y[9] - cp * turning - ql[2] * e1 - qr[2] * e2
    r[9] = LATERAL * yp[9] - AXIAL * spin * y[8] * cp - (AXIAL - LATERAL) * y[8] * sp * y[8] * cp
    r[9] -= ql[3] * e1 + qr[3] * e2
    r[10] = AXIAL * (sp * yp[8] + yp[10] + y[8] * y[9] * cp) - sp * turning
    for side, k, wheel, q in ((1.0, 0, left, ql), (-1.0, 1, right, qr)):
        f = creepage(side, y, psi[k], xi[k], wheel[0], wheel[1], wheel[2], wheel[3], plane[k], normal[k])
        cs, ss, place, radius = math.cos(psi[k]), math.sin(psi[k]), xi[k], wheel[0]
        r[5] -= f[0]
        r[6] -= f[1]
        r[7] -= f[2]
        r[8] += (place * st + radius * ss * ct * cp) * f[0] + radius * ss * sp * f[1]
        r[8] -= (radius * ss * st * cp - place * ct) * f[2]
        r[9] += (place * ct * sp - radius * cs * ct * cp) * f[0] - (place * cp + radius * cs * sp) * f[1]
        r[9] -= (place * st * sp - radius * cs * st * cp) * f[2]
        r[10] += radius * (cs * st + ss * ct * sp) * f[0] - radius * ss * cp * f[1]
        r[10] += radius * (cs * ct - ss * st * sp) * f[2]
        # Normals are parallel, and the profiles do not intersect
        row = 13 - 2 * k
        r[row] = wheel[2] * (wheel[1] * sp + cp * cs) + wheel[1] * ct * cp - ct * sp * cs + st * ss
        r[row + 1] = wheel[1] * st * cp - st * sp * cs - ct * ss
        # contact is maintained at velocity level
        r[15 + k] = q[0] * y[5] + q[1] * y[6] + q[2] * y[8] + q[3] * y[9]
    return r


@model
def wheelset(t1: float = 10.0) -> Model:
    """A wheelset on a straight track: five coordinates, the spin, two contacts; 17 unknowns of index 2.

    Notes
    -----
    x is the displacement to the left, y upwards, z along the track relative to a motion at the nominal speed, theta the
    yaw, phi the roll, beta the spin rate minus the nominal one. A contact is at the position xi along the axle and
    the angle psi of the wheel. Multipliers are in units of 10^4 N. The contact constraint holds at velocity level,
    as in the test set, whose initial multipliers have five digits; the multipliers of this model also satisfy the
    derivative of the constraint. ``model.extra`` has ``sizes`` of all unknowns, on which ``atol`` in ``model.options``
    is based. Friction saturates and recovers hundreds of times; these switches are left to step size control.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.wheelset()
    >>> print(len(model.problem.names), abs(model.reference.y[0]) > 5.0 * abs(model.initial[0][0]))
    17 True
    """
    start = [1.4941e-3, 4.0089e-7, 1.1241e-6, -2.8573e-4, 2.6459e-4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    contacts = [-7.4122380357667139e-6, -0.1521364296121248, 7.563440639517294e-6, 0.1490635714733819]
    multipliers = [-8.3591840189592599e-3, -7.4145528406821771e-3]
    slopes = [-1.9752571592205681, -1.0665800037257026e-3, 7.8839404363413357e-2, -5.5333730667525991]
    slopes += [-0.34980266105077351, -2.1325520251279242]
    sizes = np.array([1e-2, 1e-5, 1e-4, 1e-2, 1e-3, 0.1, 1e-3, 1e-2, 0.3, 0.02, 0.3, 1e-3, 0.1, 1e-3, 0.1, 1e-2, 1e-2])
    names = ["x", "y", "z", "theta", "phi", "vx", "vy", "vz", "vtheta", "vphi", "beta"]
    return Model(
        problem=daedal.ImplicitDAE(
            wheelset_residual,
            17,
            algebraic=[11, 12, 13, 14, 15, 16],
            names=[*names, "psiR", "xiR", "psiL", "xiL", "lamL", "lamR"],
        ),
        initial=(np.array([*start, *contacts, *multipliers]), np.array([*np.zeros(5), *slopes, *np.zeros(6)])),
        reference=known_reference("wheelset", t1=t1),
        options={"rtol": 1e-6, "atol": 1e-6 * sizes, "switches": "never"},
        extra={"sizes": sizes},
    )
