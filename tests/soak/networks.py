"""Networks of pipes and Stokes flow, with a pressure that is given, or none: then what is not determined is named."""

from __future__ import annotations

import numpy as np

from soak.case import Script

GRAPHS = {
    "chain": "[(i, i + 1) for i in range(k - 1)]",
    "ring": "[(i, (i + 1) % k) for i in range(k)]",
    "star": "[(0, i) for i in range(1, k)]",
    "grid": "[(i * k + j, i * k + j + 1) for i in range(k) for j in range(k - 1)]"
    " + [(i * k + j, (i + 1) * k + j) for i in range(k - 1) for j in range(k)]",
    "random": "[(i, int(rng.integers(i))) for i in range(1, k)] + [tuple(rng.choice(k, 2, replace=False)) for _ in range(k // 2)]",
}

PIPES = """import numpy as np
import daedal

rng, k = np.random.default_rng({seed}), {k}
edges = {edges}
m, n = len(edges), 1 + max(max(e) for e in edges)
B, w = np.zeros((m, n)), np.zeros(n)
for e, (a, b) in enumerate(edges):
    B[e, a], B[e, b] = -1.0, 1.0
w[0], w[-1] = 1.0, -1.0
pinned = {pinned}

def residual(t, y, yp):
    balance = B.T @ y[:m] + w * np.sin(t) ** 2
    if pinned is not None:
        balance[pinned] = y[m + pinned]
    return np.concatenate([yp[:m] + y[:m] + B @ y[m:], balance])

def found():
    sol = daedal.solve_dae(residual, (0.0, 2.0), np.zeros(m + n), None{options})
    assert sol.success, sol.message
    return sol.y[:, -1]

"""
PIPES_EXACT = """pressure = np.linalg.pinv(B.T @ B) @ w
flows, pressures = -B @ pressure * np.sin(2.0) ** 2, pressure * (np.sin(2.0) ** 2 + np.sin(4.0))
expected, allowed = np.concatenate([flows, pressures - pressures[pinned]]), 1e-6 * np.linalg.cond(B[:, 1:])
"""

STOKES = """import numpy as np
import scipy.integrate
import daedal

rng, k = np.random.default_rng({seed}), {k}
cell, inner = (lambda i, j: i * k + j), [(i, j) for i in range(k - 1) for j in range(k)]
n_u = 2 * len(inner)
G = np.zeros((n_u, k * k))  # differences of pressures across the inner faces of a k x k grid
for f, (i, j) in enumerate(inner):
    G[f, cell(i + 1, j)], G[f, cell(i, j)] = 1.0, -1.0
    G[len(inner) + f, cell(j, i + 1)], G[len(inner) + f, cell(j, i)] = 1.0, -1.0
force = rng.normal(size=n_u)
pinned = {pinned}

def residual(t, y, yp):
    u, p = y[:n_u], y[n_u:]
    divergence = G.T @ u
    if pinned is not None:
        divergence[pinned] = p[pinned]
    return np.concatenate([yp[:n_u] + u + G @ p - force * np.sin(t), divergence])

def found():
    sol = daedal.solve_dae(residual, (0.0, 2.0), np.zeros(n_u + k * k), None{options})
    assert sol.success, sol.message
    return sol.y[:, -1]

"""
STOKES_EXACT = """onto = np.linalg.pinv(G)
free = force - G @ (onto @ force)
part = (np.exp(-2.0) - np.cos(2.0) + np.sin(2.0)) / 2.0  # of u' = -u + sin(t)
pressures = onto @ force * np.sin(2.0)
expected = np.concatenate([free * part, pressures - pressures[pinned]])
allowed = 1e-6 * np.linalg.cond(G[:, 1:])
"""

REPEATED = """import numpy as np
import daedal

rng, n = np.random.default_rng({seed}), {k}
A = rng.normal(size=(n, n)) / n

def residual(t, y, yp):
    r = yp + y - A @ np.sin(y)
    r[n - 2] = y[0] + y[n - 1] - np.sin(t)
    r[n - 1] = {last}
    return r

def found():
    sol = daedal.solve_dae(residual, (0.0, 2.0), np.zeros(n), None)
    assert sol.success, sol.message
    return sol.y[:, -1]

must_say = r"(?i)determin|singular|contradict|redundant|depend|violate"
"""
NAMED = 'must_say = r"(?i)determin|singular|redundant|linearly depend"\n'


def drawn(number: int) -> Script:
    """The kind of network, its size from 3 to 40, and whether a pressure is given."""
    rng = np.random.default_rng(number)
    kind = str(rng.choice([*GRAPHS, "Stokes", "repeated equation"]))
    k = 3 + int(38 * rng.random() ** 2)
    if kind == "repeated equation":
        last = [
            "2.0 * (y[0] + y[n - 1] - np.sin(t))",
            "y[0] + y[n - 1] - np.cos(t)",
            "(y[0] + y[n - 1] - np.sin(t)) ** 3",
        ]
        return Script(f"{kind}, n = {k}", REPEATED.format(seed=number, k=k, last=last[rng.integers(3)]))
    k = min(k, 3 + k // 8) if kind in ("grid", "Stokes") else k
    given = bool(rng.random() < 0.5)
    options = str(rng.choice(["", "", ", rtol=1e-3, atol=1e-4", ", rtol=1e-4"])) if not given else ""
    pinned = int(rng.integers(k)) if given else None
    head, tail = (STOKES, STOKES_EXACT) if kind == "Stokes" else (PIPES, PIPES_EXACT)
    source = head.format(seed=number, k=k, edges=GRAPHS.get(kind), pinned=pinned, options=options)
    words = "a given pressure" if given else "no given pressure"
    return Script(f"{kind}, k = {k}, {words}", source + (tail if given else NAMED))
