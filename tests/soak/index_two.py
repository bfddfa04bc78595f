"""Fully implicit problems of index 2 with a chosen solution: Hessenberg systems whose equations and unknowns are mixed.

The core is x' = f(t, x) + B(t, x) z, 0 = g(t, x) with g_x B regular. Rows are combined by matrices that depend on t or
on the unknowns, and so are the unknowns, so that the nullspace of F_y' turns; both are scaled by powers of ten.
"""

from __future__ import annotations

import numpy as np

from soak.case import Script

ROWS = {
    "constant rows": "r",
    "turning rows": "turned(0.7 * np.sin(t), r)",
    "rows by unknowns": "r + M @ (r * np.cos(u))",
    "turning rows by unknowns": "turned(u[0] + t, r + M @ (r * np.cos(u)))",
    "bent rows": "turned(2.0 * t, r + M @ np.tanh(r))",
    "rows by slopes": "r + M @ (r * np.cos(up))",
}
UNKNOWNS = {
    "own unknowns": ("u", "up"),
    "constant unknowns": ("Q @ u", "Q @ up"),
    "turning unknowns": ("turned(t, Q @ u)", "turned(t, Q @ up) + whirled(t, Q @ u)"),
    "unknowns that turn others": (
        "turned(middle @ u, Q @ u)",
        "turned(middle @ u, Q @ up) + (middle @ up) * whirled(middle @ u, Q @ u)",
    ),
    "nonlinear unknowns": ("Q @ u + 0.1 * np.sin(K @ u)", "Q @ up + 0.1 * np.cos(K @ u) * (K @ up)"),
    "algebraic by differential": (
        "joined(X @ u[:n], Z @ u[n:] + 0.3 * np.sin(L @ u[:n]))",
        "joined(X @ up[:n], Z @ up[n:] + 0.3 * np.cos(L @ u[:n]) * (L @ up[:n]))",
    ),
}
GUESSABLE = ("own unknowns", "algebraic by differential")

SCRIPT = """import numpy as np
import daedal

rng = np.random.default_rng({seed})
n, m, rtol, off = {n}, {m}, {rtol}, {off}
size = n + m

def regular(k):
    left, right = (np.linalg.qr(rng.normal(size=(k, k)))[0] for _ in range(2))
    return left * rng.uniform(0.5, 2.0, k) @ right

A, N = 0.5 * rng.normal(size=(n, n)) - np.eye(n), rng.normal(size=(n, n)) / n
C = np.linalg.qr(rng.normal(size=(n, n)))[0][:m]
B, B1 = C.T + 0.1 * rng.normal(size=(n, m)) / n, 0.2 * rng.normal(size=(n, m)) / n
P, Q, X, Z = regular(size), regular(size), regular(n), regular(m)
K, M, L = rng.normal(size=(size, size)) / size, 0.3 * rng.normal(size=(size, size)) / size, rng.normal(size=(m, n)) / n
middle = Q[1] if size > 2 else np.zeros(size)  # not turned itself
amplitude, speed = rng.uniform(0.5, 1.5, size), rng.uniform(0.3, 2.0, size)
phase = rng.uniform(-3.0, 3.0, size)
scale, rows = {scale}, {rows_scale}

def joined(x, z):
    return np.concatenate([x, z])

def turned(angle, r):  # the first and the last entry by an angle
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate([[c * r[0] - s * r[-1]], r[1:-1], [s * r[0] + c * r[-1]]])

def whirled(angle, r):
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate([[-s * r[0] - c * r[-1]], 0.0 * r[1:-1], [c * r[0] - s * r[-1]]])

def exact(t):
    return amplitude * np.sin(speed * t + phase), amplitude * speed * np.cos(speed * t + phase)

def unknowns(t, u, up):
    return {w}, {wp}

def core(t, w, wp, s, sp):
    x, d, z = w[:n], w[:n] - s[:n], w[n:] - s[n:]
    f = wp[:n] - sp[:n] - A @ d - 0.2 * (np.sin(N @ x) - np.sin(N @ s[:n])) - B @ z - np.cos(t + x[0]) * (B1 @ z)
    return np.concatenate([f, C @ d + 0.2 * (np.sin(C @ x) - np.sin(C @ s[:n]))])

def residual(t, y, yp):
    u, up = y / scale, yp / scale
    r = P @ core(t, *unknowns(t, u, up), *unknowns(t, *exact(t)))
    return rows * ({rows})

y0, yp0 = exact(0.0)
y0[n:] += off * rng.normal(size=m)

def found():
    problem = daedal.ImplicitDAE(residual, size)
    sol = daedal.solve(problem, (0.0, 2.0), (scale * y0, {yp0}), rtol=rtol, atol=1e-2 * rtol * scale)
    assert sol.success, sol.message
    return sol.y[:, -1] / scale

expected, allowed = exact(2.0)[0], rtol * np.linalg.cond(Q) * np.linalg.cond(Z)
{refusal}"""


def drawn(number: int) -> Script:
    """How rows and unknowns are mixed, scales, the tolerance, what is known of the start."""
    rng = np.random.default_rng(number)
    m = int(rng.integers(1, 4))
    row, unknown = str(rng.choice(list(ROWS))), str(rng.choice(list(UNKNOWNS)))
    scaled = bool(rng.random() < 0.5)
    off = float(rng.choice([0.0, 1e-3, 0.3])) if unknown in GUESSABLE else 0.0
    given = off == 0.0 and bool(rng.random() < 0.5)
    rtol = float(rng.choice([1e-4, 1e-5, 1e-6, 1e-7, 1e-8]))
    scales = "10.0 ** rng.uniform(-3.0, 3.0, size)" if scaled else "np.ones(size)"
    source = SCRIPT.format(
        seed=number,
        n=m + int(rng.integers(0, 3)),
        m=m,
        rtol=rtol,
        off=off,
        scale=scales,
        rows_scale=scales,
        w=UNKNOWNS[unknown][0],
        wp=UNKNOWNS[unknown][1],
        rows=ROWS[row],
        yp0="scale * yp0" if given else "None",
        refusal='must_say = "Inconsistent"\n'
        if off and row == "rows by slopes"
        else "",  # all unknowns look like states
    )
    label = f"{row}, {unknown}, rtol {rtol:g}" + ", scaled" * scaled + ", without y'" * (not given)
    return Script(label + f", algebraic values {off:g} off" * (off > 0.0), source)
