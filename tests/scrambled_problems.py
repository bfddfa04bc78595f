"""Random problems of index 2 to 6 in fully implicit form, with solutions that are known.

A problem in Hessenberg form, in which the index is plain, is disguised: unknowns x = Phi(y, t) and equations are mixed,
linearly with matrices that turn with time and nonlinearly with y, and rows and columns are scaled. What a start leaves
open is guessed well, badly or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import daedal

SPAN = 0.0, 1.5
TIMES = np.linspace(*SPAN, 9)
_GUESSES = 0.0, 0.1, 1.0
_TOLERANCES = 1e-4, 1e-5, 1e-6, 1e-7, 1e-8


@dataclass(frozen=True)
class Scrambled:
    """A problem with arguments of :func:`daedal.solve`, and what its solution is measured by.

    Attributes
    ----------
    solution : numpy.ndarray, shape (n, times)
        At TIMES.
    conditioning : float
        By how much unknowns of the problem change with those in Hessenberg form, in units of their sizes.
    words : str
        How it is disguised.
    follow : callable
        The solution at TIMES from another start, y at t = 0.
    """

    problem: Any
    initial: tuple
    options: dict
    solution: np.ndarray
    sizes: np.ndarray
    conditioning: float
    words: str
    follow: Callable[[np.ndarray], np.ndarray]

    def solve(self, **options):
        return daedal.solve(self.problem, SPAN, self.initial, t_eval=TIMES, **(self.options | options))

    def error(self, found: np.ndarray) -> float:
        """The largest error of values at TIMES, in units of the tolerance times the conditioning."""
        unit = self.options["rtol"] * self.sizes[:, None] * self.conditioning
        moved = np.max(np.abs(found[:, 0] - self.solution[:, 0]) / unit[:, 0]) > 1.0
        right = self.follow(found[:, 0]) if moved and self.options.get("correct_initial") else self.solution
        return float(np.max(np.abs(found - right) / unit))


class _Rotation:
    """An orthogonal matrix that turns with time, a block for each range of unknowns."""

    def __init__(self, rng, blocks, speed: float):
        self.n, self.blocks = sum(map(len, blocks)), []
        for block in blocks:
            left, right = (np.linalg.qr(rng.normal(size=(len(block), len(block))))[0] for _ in range(2))
            rates = speed * rng.uniform(0.3, 1.0, len(block) // 2)
            self.blocks.append((np.ix_(block, block), left, right, rates))

    def _assembled(self, t, turned) -> Any:
        found = np.zeros((self.n, self.n), dtype=object if not isinstance(t, (int, float)) else float)
        for place, left, right, rates in self.blocks:
            found[place] = left @ turned(t, len(right), rates) @ right
        return found

    def at(self, t):
        def turned(t, n, rates):
            m = np.eye(n).astype(object) if not isinstance(t, (int, float)) else np.eye(n)
            for k, w in enumerate(rates):
                c, s = np.cos(w * t), np.sin(w * t)
                m[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = np.array([[c, -s], [s, c]])
            return m

        return self._assembled(t, turned)

    def rate(self, t):
        def turned(t, n, rates):
            m = np.zeros((n, n)).astype(object) if not isinstance(t, (int, float)) else np.zeros((n, n))
            for k, w in enumerate(rates):
                c, s = w * np.cos(w * t), w * np.sin(w * t)
                m[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = np.array([[-s, -c], [c, -s]])
            return m

        return self._assembled(t, turned)


def _hessenberg_2(rng, n: int):
    """x' = f(t, x, z, w), 0 = g(x), 0 = w + h(x): E, the rest as a function of all unknowns, and which are states."""
    nz = int(rng.integers(1, n // 2 + 1))
    nd = int(rng.integers(nz, n - nz + 1))
    E = np.diag((np.arange(n) < nd).astype(float))
    G = np.linalg.qr(rng.normal(size=(nd, nd)))[0][:nz]
    K = np.eye(n)
    K[:nd, :nd] = np.eye(nd) + 0.2 * rng.normal(size=(nd, nd))
    K[:nd, nd:] = 0.3 * rng.normal(size=(nd, n - nd))
    K[:nd, nd : nd + nz] = G.T + 0.1 * rng.normal(size=(nd, nz))
    K[nd : nd + nz] = 0.0
    K[nd : nd + nz, :nd] = G
    K[nd + nz :, :nd] = 0.3 * rng.normal(size=(n - nd - nz, nd))
    W = np.zeros((n, n))
    W[:, :nd] = 0.5 * rng.normal(size=(n, nd))
    S = 0.1 * rng.normal(size=(n, n))
    return E, K, S, W, nd


def _chain(rng, n: int, index: int):
    """x1 + u1 = ..., x1' = x2, ..., x_(index - 1)' = x_index, u' = -u + ...: the same; the last of x is no state."""
    E, K, W = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    m = n - index  # u first, so that the states are the first n - 1
    E[np.arange(m), np.arange(m)] = 1.0
    K[:m, :m] = np.eye(m)
    K[:m, m] = 0.3
    for k in range(index - 1):
        E[m + k, m + k] = 1.0
        K[m + k, m + k + 1] = -1.0
    K[n - 1, m] = 1.0
    K[n - 1, : min(m, 1)] = 0.3
    S = np.diag(np.full(n, 0.2))
    for k in range(n):  # each equation a function of unknowns that do not change the index
        W[k, k if k < n - 1 else m] = 0.5
    return E, K, S, W, n - 1


def scrambled(seed: int, index: int = 2) -> Scrambled:
    """The problem with this number."""
    rng = np.random.default_rng([index, seed])
    n = int(rng.integers(2, 9)) if index == 2 else index + int(rng.integers(0, 3))
    E, K, S, W, states = _hessenberg_2(rng, n) if index == 2 else _chain(rng, n, index)
    turning, bent = bool(rng.integers(2)), 0.1 * int(rng.integers(2))  # of unknowns: among all, or states apart
    rows = ("constant", "time", "state")[int(rng.integers(3))]
    scaled_rows, scaled_columns = rng.integers(2, size=2)
    guess, has_slopes = _GUESSES[int(rng.integers(3))], bool(rng.integers(2))
    rtol = _TOLERANCES[int(rng.integers(5))]

    blocks = [np.arange(n)] if turning else [np.arange(states), np.arange(states, n)]
    of_unknowns, of_rows = _Rotation(rng, blocks, 1.0), _Rotation(rng, [np.arange(n)], float(rows != "constant"))
    inner, outer = rng.normal(size=(2, n, n)) / np.sqrt(n)
    if not turning:
        inner[:states, states:] = outer[:states, states:] = 0.0
    outer *= bent
    mixing = 0.2 * rng.normal(size=(n, n)) / np.sqrt(n) * (rows == "state")
    columns = 10.0 ** (scaled_columns * rng.uniform(-4, 4, n))
    factors = 10.0 ** (scaled_rows * rng.uniform(-4, 4, n))
    mean, wave = rng.choice([-1, 1], n) * rng.uniform(0.5, 1.5, n), rng.uniform(0.2, 0.8, n)
    rate, phase = rng.uniform(0.5, 2.0, n), rng.uniform(0, 6, n)

    def x_of(t, y):
        return of_unknowns.at(t) @ y + outer @ np.sin(inner @ y)

    def slope_of(t, y, yp):
        return of_unknowns.at(t) @ yp + of_unknowns.rate(t) @ y + outer @ (np.cos(inner @ y) * (inner @ yp))

    def exact(t):
        return mean + wave * np.sin(rate * t + phase)

    def exact_slope(t):
        return wave * rate * np.cos(rate * t + phase)

    def hessenberg(x, xp):
        return E @ xp + K @ x + S @ np.sin(W @ x)

    def residual(t, y, yp):
        y, yp = y / columns, yp / columns
        r = hessenberg(x_of(t, y), slope_of(t, y, yp)) - forcing(t)
        return factors * (of_rows.at(t) @ r + mixing @ (r * np.cos(y)))

    def forcing(t):
        return hessenberg(x_of(t, exact(t)), slope_of(t, exact(t), exact_slope(t)))

    def disguised(t, x):
        """y with these x, near the solution."""
        y = exact(t)
        for _ in range(30):
            change = np.linalg.solve(of_unknowns.at(t) + outer @ (np.cos(inner @ y)[:, None] * inner), x_of(t, y) - x)
            y = y - change
        assert np.abs(change).max() < 1e-12
        return y

    def follow(y_start):
        """By the underlying differential equation of the states, of index 2."""
        nd, hidden = states, _of_constraints(K)
        x_start = x_of(0.0, y_start / columns)
        defect = (K @ x_start + S @ np.sin(W @ x_start) - forcing(0.0))[hidden]
        assert np.abs(defect).max() < 1e-9, f"constraints are violated by {defect}"

        def others(t, xd):
            x = np.append(xd, np.zeros(n - nd))
            f = forcing(t) - K[:, :nd] @ xd - S @ np.sin(W @ x)
            nominal, rates = x_of(t, exact(t)), slope_of(t, exact(t), exact_slope(t))
            gradient = (K + S @ (np.cos(W @ x)[:, None] * W))[hidden, :nd]
            rate = K[hidden] @ rates + S[hidden] @ (np.cos(W @ nominal) * (W @ rates))
            matrix, right = K[nd:, nd:].copy(), f[nd:].copy()
            matrix[hidden - nd], right[hidden - nd] = gradient @ K[:nd, nd:], gradient @ f[:nd] - rate
            rest = np.linalg.solve(matrix, right)
            return rest, f[:nd] - K[:nd, nd:] @ rest

        found = solve_ivp(lambda t, xd: others(t, xd)[1], SPAN, x_start[:nd], "DOP853", TIMES, rtol=1e-11, atol=1e-12)
        x = np.array([np.append(xd, others(t, xd)[0]) for t, xd in zip(TIMES, found.y.T, strict=True)])
        return columns[:, None] * np.array([disguised(t, row) for t, row in zip(TIMES, x, strict=True)]).T

    y0, yp0 = exact(0.0), exact_slope(0.0)
    jacobian = of_unknowns.at(0.0) + outer @ (np.cos(inner @ y0)[:, None] * inner)
    if guess and not turning:  # what is no state is guessed
        y0 = np.where(np.arange(n) < states, y0, y0 * (1.0 + guess * rng.choice([-1, 1], n)))
    elif guess and index == 2:  # the same, among all unknowns
        y0 = disguised(0.0, x_of(0.0, y0) * (1.0 + guess * rng.choice([-1, 1], n) * (np.arange(n) >= states)))
    elif guess:
        guess = 0.0
    options = {"rtol": rtol, "atol": 1e-2 * rtol * columns}
    if guess and (has_slopes or turning):
        options["correct_initial"] = True
    words = (
        f"index {index}, {n} unknowns, {states} states, {'turning' if turning else 'apart'}, {bent:g} bent, rows by "
        f"{rows}, scaled {scaled_rows}{scaled_columns}, {guess:.0%} off, slopes {has_slopes}, rtol {rtol:.0e}"
    )
    return Scrambled(
        daedal.ImplicitDAE(residual, n),
        (y0 * columns, yp0 * columns if has_slopes else None),
        options,
        columns[:, None] * np.array([exact(t) for t in TIMES]).T,
        columns * (np.abs(mean) + wave),
        float(np.linalg.cond(jacobian)),
        words,
        follow,
    )


def _of_constraints(K: np.ndarray) -> np.ndarray:
    """Rows of a problem in Hessenberg form of index 2 without algebraic unknowns."""
    return np.flatnonzero(np.diag(K) == 0.0)
