"""Ordinary differential equations: van der Pol's equation, seven stars, an elastic beam."""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, explicit_start, known_reference, model


def van_der_pol_residual(t, y, yp, p):
    return np.array([yp[0] - y[1], yp[1] - ((1.0 - y[0] * y[0]) * y[1] - y[0]) / p[0]])


@model
def van_der_pol(epsilon: float = 1e-6, t1: float = 2.0) -> Model:
    """Van der Pol's relaxation oscillation, past its first jump, to t = 2."""
    problem = daedal.ImplicitDAE(van_der_pol_residual, 2, params=np.array([epsilon]), names=["y1", "y2"])
    return Model(
        problem=problem,
        initial=explicit_start(problem, np.array([2.0, 0.0])),
        reference=known_reference("van_der_pol", epsilon=float(epsilon), t1=float(t1)),
    )


# --- celestial mechanics: seven stars in the plane --------------------------------------------------------------------

PLACES = (3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0), (3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0)  # x and y
VELOCITIES = (0.0, 0.0, 0.0, 0.0, 0.0, 1.75, -1.5), (0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0)


def stars_residual(t, y, yp):
    """y contains all x, all y and their rates; star i has mass i."""
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


@model
def pleiades() -> Model:
    """Seven stars in the plane with 28 unknowns, to t = 3."""
    names = [f"{name}{i}" for name in ("x", "y", "vx", "vy") for i in range(1, 8)]
    problem = daedal.ImplicitDAE(stars_residual, 28, names=names)
    return Model(
        problem=problem,
        initial=explicit_start(problem, np.array([*PLACES[0], *PLACES[1], *VELOCITIES[0], *VELOCITIES[1]])),
        reference=known_reference("pleiades"),
    )


# --- an elastic beam, clamped at one end ------------------------------------------------------------------------------


def beam_residual(t, y, yp):
    """y contains the segment angles and their rates; Hairer, Wanner, section IV.1, (1.10) to (1.16)."""
    n = y.size // 2
    squared = float(n * n)
    force = 1.5 * math.sin(t) * math.sin(t) if t <= math.pi else 0.0
    v = np.empty(n)
    for j in range(n):
        before = y[j - 1] if j > 0 else -y[0]
        after = y[j + 1] if j < n - 1 else y[n - 1]
        bending = squared * squared * (before - 2.0 * y[j] + after)
        v[j] = bending + squared * force * (np.cos(y[j]) + np.sin(y[j]))
    cosine = np.empty(n - 1)
    sine = np.empty(n - 1)
    for j in range(n - 1):
        cosine[j] = np.cos(y[j] - y[j + 1])
        sine[j] = np.sin(y[j] - y[j + 1])
    # C u = D v + theta'^2, from the last segment to the first and back; C has the diagonal 1, 2, ..., 2, 3
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


@model
def elastic_beam(pieces: int = 40) -> Model:
    """Large oscillations of a thin beam to t = 5."""
    if pieces < 3:
        raise daedal.InvalidProblemError(f"pieces={pieces} must be at least 3")
    names = [f"{name}{j}" for name in ("theta", "omega") for j in range(1, pieces + 1)]
    problem = daedal.ImplicitDAE(beam_residual, 2 * pieces, names=names)
    return Model(
        problem=problem,
        initial=explicit_start(problem, np.zeros(2 * pieces)),
        reference=known_reference("elastic_beam", pieces=pieces),
        plot={"variables": [f"theta{max(pieces * part // 4, 1)}" for part in range(1, 5)]},
    )
