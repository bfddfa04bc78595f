"""A crank and a slider with an elastic connecting rod, as modelled in the test set."""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, known, known_reference, mechanical_model, model

# crank, rod, slider: masses (kg), moments of inertia (kg m^2), lengths (m)
M2, M3, J1, J2, L1, L2 = 0.151104, 0.075552, 0.002727, 0.0045339259, 0.15, 0.30
# rod: height and width (m), density (kg/m^3), Young's modulus (N/m^2); pi as rounded in the source
HEIGHT, WIDTH, DENSITY, YOUNG, PI = 0.008, 0.008, 7870.0, 2e11, 3.1415927

# Elastic displacements of the rod: q0, q1 are the amplitudes of two transverse sines, q2, q3 the axial displacements of
# its midpoint and its end. Integrals of the shape functions over the rod (Simeon 1996):
_VOLUME, _MASS, _STIFF = WIDTH * HEIGHT * L2, DENSITY * WIDTH * HEIGHT * L2, YOUNG * WIDTH * HEIGHT / L2
_BEND = _STIFF * PI**4 * (HEIGHT / L2) ** 2
MQ = np.array([[0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 8.0, 1.0], [0.0, 0.0, 1.0, 2.0]]) * _MASS
KQ = np.zeros((4, 4))
KQ[0, 0], KQ[1, 1] = _BEND / 24.0, _BEND * 2.0 / 3.0
KQ[2, 2], KQ[2, 3], KQ[3, 2], KQ[3, 3] = (
    16.0 * _STIFF / 3.0,
    -8.0 * _STIFF / 3.0,
    -8.0 * _STIFF / 3.0,
    7.0 * _STIFF / 3.0,
)
BQ = np.zeros((4, 4))
BQ[0, 2], BQ[0, 3], BQ[1, 3] = -16.0 * _VOLUME / PI**3, _VOLUME * (8.0 / PI**3 - 1.0 / PI), 0.5 * _VOLUME / PI
BQ -= BQ.T
C1 = np.array([0.0, 0.0, 2.0 / 3.0, 1.0 / 6.0]) * _VOLUME
C2 = np.array([2.0 / PI, 0.0, 0.0, 0.0]) * _VOLUME
C12 = np.array([0.0, 0.0, 1.0 / 3.0, 1.0 / 6.0]) * L2 * _VOLUME
C21 = np.array([1.0 / PI, -0.5 / PI, 0.0, 0.0]) * L2 * _VOLUME
DQ = np.zeros((4, 4))  # damping of 0.5 %
DQ[0, 0], DQ[1, 1] = 5.0, 25.0
DQ[2, 2], DQ[2, 3], DQ[3, 2], DQ[3, 3] = (
    0.5 * 2.308375455264791e2,
    -0.5 * 2.62688487992052e2,
    -0.5 * 2.626884879920526e2,
    0.5 * 4.217421837156818e2,
)


def crank_mass(t, q, p):
    c, s = math.cos(q[0] - q[1]), math.sin(q[0] - q[1])
    m = np.zeros((7, 7))
    m[0, 0] = J1 + M2 * L1 * L1
    m[0, 1] = 0.5 * L1 * L2 * M2 * c
    m[1, 1] = J2
    m[2, 2] = M3
    for i in range(4):
        m[0, 1] += DENSITY * L1 * (s * C2[i] + c * C1[i]) * q[3 + i]
        m[1, 1] += 2.0 * DENSITY * C12[i] * q[3 + i]
        m[0, 3 + i] = DENSITY * L1 * (c * C2[i] - s * C1[i])
        m[3 + i, 0] = m[0, 3 + i]
        m[1, 3 + i] = DENSITY * C21[i]
        for j in range(4):
            m[1, 1] += q[3 + i] * MQ[i, j] * q[3 + j]
            m[1, 3 + i] += DENSITY * q[3 + j] * BQ[j, i]
            m[3 + i, 3 + j] = MQ[i, j]
        m[3 + i, 1] = m[1, 3 + i]
    m[1, 0] = m[0, 1]
    return m


def crank_force(t, q, v, p):
    """Inertial, elastic and damping forces; p = (crank speed, damping)."""
    c, s = math.cos(q[0] - q[1]), math.sin(q[0] - q[1])
    v1, v2 = v[0] * v[0], v[1] * v[1]
    f = np.zeros(7)
    f[0] = -0.5 * L1 * L2 * M2 * v2 * s
    f[1] = 0.5 * L1 * L2 * M2 * v1 * s
    for i in range(4):
        e, r = q[3 + i], v[3 + i]
        f[0] += DENSITY * L1 * v2 * (c * C2[i] - s * C1[i]) * e
        f[0] -= 2.0 * DENSITY * L1 * v[1] * (c * C1[i] + s * C2[i]) * r
        f[1] += DENSITY * L1 * v1 * (s * C1[i] - c * C2[i]) * e - 2.0 * DENSITY * v[1] * C12[i] * r
        f[3 + i] = DENSITY * (v2 * C12[i] + L1 * v1 * (c * C1[i] + s * C2[i]))
        for j in range(4):
            f[1] -= 2.0 * v[1] * r * MQ[i, j] * q[3 + j] + DENSITY * r * BQ[i, j] * v[3 + j]
            f[3 + i] += v2 * MQ[i, j] * q[3 + j] + 2.0 * DENSITY * v[1] * BQ[i, j] * v[3 + j]
            f[3 + i] -= KQ[i, j] * q[3 + j] + p[1] * DQ[i, j] * v[3 + j]
    return f


def crank_constraint(t, q, p):
    """The rod ends on the slider axis and at the slider; the crank rotates at constant speed."""
    rod = L2 + q[6]
    return np.array(
        [L1 * np.sin(q[0]) + rod * np.sin(q[1]), q[2] - L1 * np.cos(q[0]) - rod * np.cos(q[1]), q[0] - p[0] * t]
    )


def crank_jacobian(t, q, p):
    g = np.zeros((3, 7), q.dtype)
    rod = L2 + q[6]
    g[0, 0], g[0, 1], g[0, 6] = L1 * np.cos(q[0]), rod * np.cos(q[1]), np.sin(q[1])
    g[1, 0], g[1, 1], g[1, 2], g[1, 6] = L1 * np.sin(q[0]), rod * np.sin(q[1]), 1.0, -np.cos(q[1])
    g[2, 0] = 1.0
    return g


def crank_constraint_t(t, q, p):
    return np.array([0.0, 0.0, -p[0]])


def crank_bias(t, q, v, p):
    rod, v1, v2, r = L2 + q[6], v[0] * v[0], v[1] * v[1], 2.0 * v[1] * v[6]
    c2, s2 = math.cos(q[1]), math.sin(q[1])
    return np.array(
        [L1 * math.sin(q[0]) * v1 + rod * s2 * v2 - c2 * r, -L1 * math.cos(q[0]) * v1 - rod * c2 * v2 - s2 * r, 0.0]
    )


def crank_slopes(t, y, z, p):
    """y' for y = (q, v) and z = (accelerations, multipliers)."""
    f = np.empty(14)
    for i in range(7):
        f[i] = y[7 + i]
        f[7 + i] = z[i]
    return f


def crank_balance(t, y, z, p):
    """M a - f + G^T lam, and the velocity constraints."""
    q, v = y[:7], y[7:]
    mass, force, jacobian = crank_mass(t, q, p), crank_force(t, q, v, p), crank_jacobian(t, q, p)
    g = np.empty(10)
    for i in range(7):
        g[i] = -force[i]
        for j in range(7):
            g[i] += mass[i, j] * z[j]
        for k in range(3):
            g[i] += jacobian[k, i] * z[7 + k]
    for k in range(3):
        g[7 + k] = 0.0
        for j in range(7):
            g[7 + k] += jacobian[k, j] * v[j]
    g[9] -= p[0]
    return g


# Initial velocities and elastic displacements of the test set; x3 follows from the constraint
START_Q = (0.0, 0.0, L1 + L2 + 1.69327969e-5, 0.0, 0.0, 1.03339863e-5, 1.69327969e-5)
START_V = (
    150.0,
    -7.499576703969453e1,
    -2.68938671997904e-6,
    4.44896112581599e-1,
    4.63433931923867e-3,
    -1.78591076000055e-6,
    -2.68938671997904e-6,
)
SIZES = np.repeat([1.0, 1e-4, 100.0, 0.1, 1e4, 1e3, 500.0], [3, 4, 3, 4, 3, 4, 3])


@model
def flexible_slider_crank(form: str = "index3", damped: bool = False, t1: float = 0.1, compiled: bool = False) -> Model:
    """Crank, elastic rod and slider: three large and four elastic coordinates, three constraints.

    Notes
    -----
    The coordinates are the angles of crank and rod, the position of the slider, the amplitudes w1, w2 of two
    transverse sines, and the axial displacements u1, u2 of midpoint and end of the rod. The initial slider position
    satisfies the constraint; the position in the test set is larger by 2e-10, which the index-2 form does not detect.
    Accelerations are of the order of 10^4, elastic displacements of 10^-4: ``model.extra`` has ``sizes`` of all
    unknowns, on which ``atol`` in ``model.options`` is based.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.flexible_slider_crank(t1=0.01)
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(sol.q[:2, -1].round(4))
    [ 1.5    -0.5222]
    """
    params = np.array([START_V[0], float(bool(damped))])
    entry = known("flexible_slider_crank", damped=bool(damped), t1=t1)
    names = ["phi1", "phi2", "x3", "w1", "w2", "u1", "u2"]
    system = daedal.MechanicalSystem(
        crank_mass,
        crank_force,
        crank_constraint,
        n_q=7,
        n_constraints=3,
        constraint_jacobian=crank_jacobian,
        constraint_t=crank_constraint_t,
        acceleration_bias=crank_bias,
        params=params,
        names=names,
        constraint_names=["height", "slider", "drive"],
    )
    plot = {"variables": ["phi2", "x3", "w1"], "factors": {"w1": 1e3}}
    if form == "index3":
        return mechanical_model(
            system,
            (START_Q, START_V),
            t1,
            compiled,
            known=entry and entry | {"y": entry["y"][:14], "lam": entry["y"][21:]},
            options={"rtol": 1e-6, "atol": 1e-10},
            plot=plot,
            extra={"sizes": SIZES[:14]},
        )
    there = system.at(0.0, START_Q, START_V)
    problem = daedal.SemiExplicitDAE(
        crank_slopes,
        crank_balance,
        14,
        10,
        params=params,
        names=[*names, *(f"v_{name}" for name in names), *(f"a_{name}" for name in names), "height", "slider", "drive"],
    )
    return Model(
        problem=problem.compiled(backend="trace") if compiled else problem,
        t_span=(0.0, float(t1)),
        initial=(np.array(START_Q + START_V), np.concatenate([there.acceleration, there.multipliers])),
        index=2,
        reference=known_reference("flexible_slider_crank", damped=bool(damped), t1=t1),
        options={"rtol": 1e-6, "atol": 1e-6 * SIZES},
        plot=plot,
        extra={"sizes": SIZES},
    )
