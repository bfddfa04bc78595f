"""Problems of index 1 to 6 with a chosen solution: canonical form, mixed in rows and unknowns, constantly or not."""

from __future__ import annotations

import numpy as np

from soak.case import Script

ROWS = {
    "constant rows": "P @ r",
    "turning rows": "P @ (r + 0.3 * np.sin(t) * (K @ r))",
    "rows by unknowns": "P @ r + M @ (r * np.cos(y / scale))",
    "rows by a factor": "(1.0 + 0.3 * np.sin(y[0] / scale[0])) * (P @ r)",
}
UNKNOWNS = {
    "constant unknowns": ("Q @ y", "Q @ yp"),
    "turning unknowns": (
        "Q @ y + 0.2 * np.sin(t) * (K @ y)",
        "Q @ yp + 0.2 * (np.sin(t) * (K @ yp) + np.cos(t) * (K @ y))",
    ),
    "nonlinear unknowns": ("Q @ y + 0.1 * np.sin(K @ y)", "Q @ yp + 0.1 * np.cos(K @ y) * (K @ yp)"),
}

SCRIPT = """import numpy as np
import daedal

rng = np.random.default_rng({seed})
differential, index, further = {differential}, {index}, {further}  # unknowns; length of the chain; algebraic ones
n = differential + index + further
E, A = np.zeros((n, n)), np.eye(n)
E[:differential, :differential] = np.eye(differential)
A[:differential, :differential] = np.diag(rng.uniform(0.2, 2.0, differential)) + 0.2 * rng.normal(size=2 * (differential,))
for k in range(differential, differential + index - 1):
    E[k, k + 1] = 1.0

def regular():
    left, right = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return left * rng.uniform(0.5, 2.0, n) @ right

P, Q = regular(), regular()
K, M = rng.normal(size=(n, n)) / n, 0.2 * rng.normal(size=(n, n)) / np.sqrt(n)
amplitude, speed, phase = rng.uniform(0.5, 1.5, n), rng.uniform(0.3, 2.0, n), rng.uniform(-3.0, 3.0, n)
scale, rows = {scale}, {rows_scale}

def exact(t):
    return amplitude * np.sin(speed * t + phase), amplitude * speed * np.cos(speed * t + phase)

def unknowns(t, y, yp):
    return {w}, {wp}

def residual(t, y, yp):
    w, wp = unknowns(t, y / scale, yp / scale)
    ws, wsp = unknowns(t, *exact(t))
    r = E @ (wp - wsp) + A @ (w - ws)
    return rows * ({rows})

y0, yp0 = exact(0.0)

def found():
    sol = daedal.solve(daedal.ImplicitDAE(residual, n), (0.0, 2.0), (scale * y0, {yp0}), atol=1e-9 * scale)
    assert sol.success, sol.message
    return sol.y[:, -1] / scale

expected, allowed = exact(2.0)[0], 1e-6 * np.linalg.cond(Q) * {condition}
"""

GUESSED = """import numpy as np
import daedal

rng = np.random.default_rng({seed})
n, m, index = {n}, {m}, {index}
A, C, D = rng.normal(size=(n, n)) - 2.0 * np.eye(n), rng.normal(size=(m, n)), rng.normal(size=(m, m)) + 3.0 * np.eye(m)
B = C.T + 0.2 * rng.normal(size=(n, m))
speed, phase = rng.uniform(0.3, 2.0, n + m), rng.uniform(-3.0, 3.0, n + m)

def exact(t):
    return np.sin(speed * t + phase), speed * np.cos(speed * t + phase)

def f(t, y, z):
    s, sp = exact(t)
    return A @ (y - s[:n]) + B @ (z - s[n:]) + 0.1 * (np.sin(y) - np.sin(s[:n])) + sp[:n]

def g(t, y, z):
    s, _ = exact(t)
    return C @ (y - s[:n]) + (D @ (z - s[n:]) + 0.1 * (z**3 - s[n:]**3) if index == 1 else 0.1 * (C @ (y - s[:n])) ** 3)

y0, guess = exact(0.0)[0][:n], exact(0.0)[0][n:] + {off} * rng.normal(size=m)

def found():
    sol = daedal.solve({problem})
    assert sol.success, sol.message
    return sol.y[:, -1]

expected, allowed = exact(2.0)[0], 1e-6 * np.linalg.cond(C @ B) * np.linalg.cond(D) * 3.0
"""


def drawn(number: int) -> Script:
    """Index, how rows and unknowns are mixed, scales, what is known of the start."""
    rng = np.random.default_rng(number)
    if rng.random() < 0.25:
        m, index, off = int(rng.integers(1, 3)), int(rng.integers(1, 3)), float(rng.choice([0.0, 1e-3, 0.3]))
        implicit = bool(rng.random() < 0.4)
        problem = "daedal.SemiExplicitDAE(f, g, n, m), (0.0, 2.0), (y0, guess)"
        if implicit:
            problem = (
                "daedal.ImplicitDAE(lambda t, y, yp: np.concatenate([yp[:n] - f(t, y[:n], y[n:]), g(t, y[:n], y[n:])]), "
                "n + m), (0.0, 2.0), (np.concatenate([y0, guess]), None)"
            )
        if index == 1 and off:
            problem += ", correct_initial=True"
        source = GUESSED.format(seed=number, n=m + int(rng.integers(0, 3)), m=m, index=index, off=off, problem=problem)
        return Script(f"index {index}, algebraic values {off:g} off" + ", implicit" * implicit, source)
    index = int(rng.choice([1, 2, 3, 4, 5, 6], p=[0.25, 0.3, 0.2, 0.1, 0.1, 0.05]))
    row, unknown = str(rng.choice(list(ROWS))), str(rng.choice(list(UNKNOWNS)))
    if index > 3 and unknown != "constant unknowns":
        unknown = "constant unknowns"
    scaled = bool(rng.random() < 0.3) and index < 4
    given = bool(rng.random() < 0.7)
    source = SCRIPT.format(
        seed=number,
        differential=int(rng.integers(0, 3)),
        index=index,
        further=int(rng.integers(0, 2)),
        scale="10.0 ** rng.uniform(-3.0, 3.0, n)" if scaled else "np.ones(n)",
        rows_scale="10.0 ** rng.uniform(-3.0, 3.0, n)" if scaled else "np.ones(n)",
        w=UNKNOWNS[unknown][0],
        wp=UNKNOWNS[unknown][1],
        rows=ROWS[row],
        yp0="scale * yp0" if given else "None",
        condition=3.0**index,
    )
    label = f"index {index}, {row}, {unknown}" + ", scaled" * scaled + ", without y'" * (not given)
    return Script(label, source)
