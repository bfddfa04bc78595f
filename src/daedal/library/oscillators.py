"""Ordinary differential equations: van der Pol's equation, seven stars, an elastic beam."""

import math

import numpy as np

import daedal
from daedal.library.registry import (
    HAIRER_WANNER,
    TEST_SET,
    Model,
    check_positive,
    explicit_start,
    known_reference,
    model,
)


def van_der_pol_residual(t, y, yp, p):
    return np.array([yp[0] - y[1], yp[1] - ((1.0 - y[0] * y[0]) * y[1] - y[0]) / p[0]])


@model(
    title="Van der Pol's equation",
    source="B. van der Pol, On relaxation oscillations, Phil. Mag. 2 (1926), pp. 978-992; "
    + HAIRER_WANNER
    + "; "
    + TEST_SET,
    description="A circuit with a triode, in the scaling of singular perturbations: the voltage creeps along the curve "
    "y2 = y1 / (1 - y1^2), and jumps to its other branch where it ends, in a time of the order of epsilon. With "
    "mu = 1 / sqrt(epsilon) it is the oscillator of mu = 1000.",
    equations=r"""\begin{aligned} y_1' &= y_2 \\ \varepsilon\,y_2' &= (1 - y_1^2)\,y_2 - y_1 \end{aligned}""",
)
def van_der_pol(epsilon: float = 1e-6, t1: float = 2.0) -> Model:
    """Van der Pol's relaxation oscillation, beyond its first jump to t = 2.

    Parameters
    ----------
    epsilon : float
        The small parameter, 1 / mu^2.
    t1 : float
        End time.
    """
    check_positive(epsilon=epsilon, t1=t1)
    problem = daedal.ImplicitDAE(van_der_pol_residual, 2, params=np.array([epsilon]), names=["y1", "y2"])
    return Model(
        problem=problem,
        t_span=(0.0, float(t1)),
        initial=explicit_start(problem, np.array([2.0, 0.0])),
        index=0,
        reference=known_reference("van_der_pol", epsilon=float(epsilon), t1=float(t1)),
        options={"rtol": 1e-6, "atol": 1e-6},
        plot={"variables": ["y1"]},
    )


# --- celestial mechanics: seven stars in the plane --------------------------------------------------------------------

PLACES = (3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0), (3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0)  # x and y
VELOCITIES = (0.0, 0.0, 0.0, 0.0, 0.0, 1.75, -1.5), (0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0)


def stars_residual(t, y, yp):
    """y: all x, all y, then their rates. The mass of star i is i."""
    r = np.empty(28)
    for i in range(14):
        r[i] = yp[i] - y[14 + i]
        r[14 + i] = yp[14 + i]
    for i in range(7):
        for j in range(i):
            dx = y[j] - y[i]
            dy = y[7 + j] - y[7 + i]
            squared = dx * dx + dy * dy
            cubed = squared * np.sqrt(squared)
            r[14 + i] = r[14 + i] - (j + 1) * dx / cubed
            r[21 + i] = r[21 + i] - (j + 1) * dy / cubed
            r[14 + j] = r[14 + j] + (i + 1) * dx / cubed
            r[21 + j] = r[21 + j] + (i + 1) * dy / cubed
    return r


@model(
    title="Pleiades",
    source="E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., Springer (1993), "
    "section II.10; " + TEST_SET,
    description="Seven stars with the masses 1 to 7 attract each other in the plane. They pass close to one another "
    "several times, where steps have to shrink; errors made there grow. Not stiff.",
    equations=r"""x_i'' = \sum_{j\ne i} m_j \frac{x_j - x_i}{r_{ij}^3},\qquad
    y_i'' = \sum_{j\ne i} m_j \frac{y_j - y_i}{r_{ij}^3},\qquad
    r_{ij} = \sqrt{(x_i - x_j)^2 + (y_i - y_j)^2},\quad m_i = i""",
)
def pleiades() -> Model:
    """Seven stars in the plane, 28 unknowns, to t = 3."""
    names = [f"{name}{i}" for name in ("x", "y", "vx", "vy") for i in range(1, 8)]
    problem = daedal.ImplicitDAE(stars_residual, 28, names=names)
    return Model(
        problem=problem,
        t_span=(0.0, 3.0),
        initial=explicit_start(problem, np.array([*PLACES[0], *PLACES[1], *VELOCITIES[0], *VELOCITIES[1]])),
        index=0,
        reference=known_reference("pleiades"),
        options={"rtol": 1e-6, "atol": 1e-6},
        plot={"variables": ["x1", "x5", "x6", "x7"]},
    )


# --- an elastic beam, clamped at one end ------------------------------------------------------------------------------


def beam_residual(t, y, yp):
    """y: the angles of the pieces, then their rates. Hairer, Wanner, section IV.1, (1.10) to (1.16)"""
    n = y.size // 2
    squared = float(n * n)
    force = 1.5 * math.sin(t) * math.sin(t) if t <= math.pi else 0.0
    v = np.empty(n)
    for j in range(n):
        before = y[j - 1] if j > 0 else -y[0]
        behind = y[j + 1] if j < n - 1 else y[n - 1]
        bending = squared * squared * (before - 2.0 * y[j] + behind)
        v[j] = bending + squared * force * (np.cos(y[j]) + np.sin(y[j]))
    cosine = np.empty(n - 1)
    sine = np.empty(n - 1)
    for j in range(n - 1):
        cosine[j] = np.cos(y[j] - y[j + 1])
        sine[j] = np.sin(y[j] - y[j + 1])
    # C u = D v + theta'^2, from the last piece to the first and back; C has the diagonal 1, 2, ..., 2, 3
    u = np.empty(n)
    diagonal = np.empty(n)
    for j in range(n - 1, -1, -1):
        u[j] = y[n + j] * y[n + j]
        diagonal[j] = 1.0 if j == 0 else 3.0 if j == n - 1 else 2.0
        if j > 0:
            u[j] = u[j] + sine[j - 1] * v[j - 1]
        if j < n - 1:
            u[j] = u[j] - sine[j] * v[j + 1] + cosine[j] * u[j + 1] / diagonal[j + 1]
            diagonal[j] = diagonal[j] - cosine[j] * cosine[j] / diagonal[j + 1]
    for j in range(n):
        if j > 0:
            u[j] = u[j] + cosine[j - 1] * u[j - 1]
        u[j] = u[j] / diagonal[j]
    # theta'' = C v + D u
    r = np.empty(2 * n)
    for j in range(n):
        turn = (1.0 if j == 0 else 3.0 if j == n - 1 else 2.0) * v[j]
        if j > 0:
            turn = turn - cosine[j - 1] * v[j - 1] + sine[j - 1] * u[j - 1]
        if j < n - 1:
            turn = turn - cosine[j] * v[j + 1] - sine[j] * u[j + 1]
        r[j] = yp[j] - y[n + j]
        r[n + j] = yp[n + j] - turn
    return r


@model(
    title="Elastic beam",
    source=HAIRER_WANNER + ", section IV.1; " + TEST_SET,
    description="A thin elastic beam that cannot be stretched, clamped at one end, pulled at the other by a force that "
    "acts for pi seconds, and left to swing. Forty pieces, each with its angle. Its eigenvalues lie on the imaginary "
    "axis, up to 6400: stiff, and not damped.",
    equations=r"""\begin{aligned} \theta'' &= C v + D u,\qquad C u = D v + (\theta')^2 \\
    v_l &= n^4 (\theta_{l-1} - 2\theta_l + \theta_{l+1}) + n^2 (\cos\theta_l\,F_y - \sin\theta_l\,F_x),\quad
    \theta_0 = -\theta_1,\ \theta_{n+1} = \theta_n \\
    C_{l,l\pm 1} &= -\cos(\theta_l - \theta_{l\pm 1}),\quad C_{ll} = 2,\ C_{11} = 1,\ C_{nn} = 3,\quad
    D_{l,l\pm 1} = -\sin(\theta_l - \theta_{l\pm 1}) \\
    F_y &= -F_x = \begin{cases} 1.5 \sin^2 t & t \le \pi \\ 0 & t > \pi \end{cases} \end{aligned}""",
)
def elastic_beam(pieces: int = 40) -> Model:
    """Large oscillations of a thin beam to t = 5.

    Parameters
    ----------
    pieces : int
        Number of pieces; the problem has twice as many unknowns.
    """
    if pieces < 3:
        raise daedal.InvalidProblemError(f"pieces={pieces} must be at least 3")
    names = [f"{name}{j}" for name in ("theta", "omega") for j in range(1, pieces + 1)]
    problem = daedal.ImplicitDAE(beam_residual, 2 * pieces, names=names)
    return Model(
        problem=problem,
        t_span=(0.0, 5.0),
        initial=explicit_start(problem, np.zeros(2 * pieces)),
        index=0,
        reference=known_reference("elastic_beam", pieces=pieces),
        options={"rtol": 1e-6, "atol": 1e-6},
        plot={"variables": [f"theta{max(pieces * part // 4, 1)}" for part in range(1, 5)]},
    )
