"""An elastic beam, clamped at one end."""

import math

import numpy as np

import daedal
from daedal.library.model import Model, explicit_start, known_reference, model
from daedal.library.sources import HAIRER_WANNER, TEST_SET


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
    equations=r"""\begin{aligned} \theta'' &= C v + D u,\qquad C u = D v + \theta'^2 \\
    v_l &= n^4 (\theta_{l-1} - 2\theta_l + \theta_{l+1}) + n^2 (\cos\theta_l\,F_y - \sin\theta_l\,F_x),\quad
    \theta_0 = -\theta_1,\ \theta_{n+1} = \theta_n \\
    C_{l,l\pm1} &= -\cos(\theta_l - \theta_{l\pm1}),\quad C_{ll} = 2,\ C_{11} = 1,\ C_{nn} = 3,\quad
    D_{l,l\pm1} = -\sin(\theta_l - \theta_{l\pm1}) \\
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
