"""Strangeness of M x'' + C x' + K x = f, without turning it into a system of first order.

V. Mehrmann, C. Shi, Transformation of high order linear differential-algebraic systems to first order, Numerical
Algorithms 42, 2006; L. Wunderlich, diploma thesis, TU Berlin 2005, (3.5) to (3.8). Equations with x'', equations whose
highest derivative is x', and equations in x alone can repeat what others say, differentiated: such directions are
strange.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from daedal.linear.rank import RankDecision
from daedal.linear.series import Compression, compress, product, rate


class SecondOrderValues(NamedTuple):
    """The characteristic values of three m x n matrix functions.

    s012, s12, s02, s01: strange directions, which occur in equations of the orders in their names. d2, d1: directions
    with a differential equation of second and of first order. a: algebraic ones. u: undetermined unknowns. v:
    equations 0 = f.
    """

    s012: int
    s12: int
    s02: int
    s01: int
    d2: int
    d1: int
    a: int
    u: int
    v: int

    @property
    def strange(self) -> int:
        """All strange directions."""
        return self.s012 + self.s12 + self.s02 + self.s01


class _Triple(NamedTuple):
    """Rows of M, C and K as power series."""

    M: np.ndarray
    C: np.ndarray
    K: np.ndarray

    def combined(self, left: np.ndarray) -> _Triple:
        return _Triple(*(product(left, X) for X in self))

    def part(self, rows: slice) -> _Triple:
        return _Triple(*(X[:, rows] for X in self))


def second_order_passes(
    M: np.ndarray, C: np.ndarray, K: np.ndarray, tolerance: float
) -> tuple[list[SecondOrderValues], list[RankDecision]]:
    """The characteristic values of all passes, for coefficients that are power series."""
    rows = _Triple(M, C, K)
    sizes = {name: float(np.linalg.norm(X[0], 2)) or 1.0 for name, X in zip("MCK", rows)}
    values: list[SecondOrderValues] = []
    decisions: list[RankDecision] = []
    while True:
        found, rows = _one_pass(rows, sizes, tolerance, f", pass {len(values)}" if values else "", decisions)
        values.append(found)
        if found.strange == 0:
            return values, decisions


def _one_pass(
    rows: _Triple, sizes: dict[str, float], tolerance: float, name: str, decisions: list[RankDecision]
) -> tuple[SecondOrderValues, _Triple]:
    m, n = rows.M.shape[1:]

    def squeeze(X: np.ndarray, size: str, what: str) -> Compression:
        result = compress(X, tolerance, sizes[size], what + name)
        decisions.extend(result.decisions)
        return result

    # Equations of second order, of first order, algebraic ones.
    top = squeeze(rows.M, "M", "M")
    r2 = top.rank
    rows = rows.combined(top.left)
    second, others = rows.part(slice(0, r2)), rows.part(slice(r2, m))
    middle = squeeze(others.C, "C", "C without M")
    r1 = middle.rank
    others = others.combined(middle.left)
    first, lowest = others.part(slice(0, r1)), others.part(slice(r1, m))
    bottom = squeeze(lowest.K, "K", "K without M and C")
    r0 = bottom.rank
    algebraic = bottom.rows

    # Which of them lie in the directions of M, and of C besides.
    kernel = top.kernel
    split = squeeze(product(first.C, kernel), "C", "C on ker M")
    first = first.combined(split.left)
    own, shared = first.part(slice(0, split.rank)), first.part(slice(split.rank, r1))
    split_K = squeeze(product(algebraic, kernel), "K", "K on ker M")
    algebraic = product(split_K.left, algebraic)
    K_own, K_shared = algebraic[:, : split_K.rank], algebraic[:, split_K.rank :]
    both = product(kernel, split.kernel)
    split_a = squeeze(product(K_own, both), "K", "K on ker M and ker C")
    a, s01 = split_a.rank, split_K.rank - split_a.rank
    K_own = product(split_a.left, K_own)
    K_a, K_01 = K_own[:, :a], K_own[:, a:]
    in_K = squeeze(K_shared, "K", "K in the directions of M")
    split_s = squeeze(product(shared.C, in_K.kernel), "C", "C in the directions of M on ker K")
    shared = shared.combined(split_s.left)
    s12 = split_s.rank
    once, twice = shared.part(slice(0, s12)), shared.part(slice(s12, len(shared.C[0])))
    s012 = twice.C.shape[1]
    s02 = K_shared.shape[1] - s012
    values = SecondOrderValues(
        s012, s12, s02, s01, r2 - s012 - s12 - s02, split.rank - s01, a, n - r2 - split.rank - a, m - r2 - r1 - r0
    )
    if values.strange == 0:
        return values, rows
    return values, _reduced(second, own, once, twice, K_a, K_01, K_shared, top, split, kernel, values.v)


def _reduced(second, own, once, twice, K_a, K_01, K_shared, top, split, kernel, v) -> _Triple:
    """Subtract derivatives of equations of lower order: (3.8)."""
    n, count = K_a.shape[2], len(K_a) - 2

    def rows(M=None, C=None, K=None) -> _Triple:
        given = next(X for X in (M, C, K) if X is not None)
        return _Triple(*(np.zeros_like(given)[:count] if X is None else X[:count] for X in (M, C, K)))

    # Second order: K_shared twice differentiated, and the equations of `once` differentiated, leave L (M, C, K).
    S = np.concatenate([K_shared, once.C], axis=1)
    L = product(S, top.inverse)
    rest = second.combined(_complement(L)) if L.shape[1] else second
    k = K_shared.shape[1]
    taken = second.combined(L)
    C = taken.C[:, :k][:count] - 2.0 * rate(K_shared)[:count]
    K = taken.K[:, :k][:count] - rate(rate(K_shared))
    C_once = taken.C[:, k:][:count] - rate(once.C)[:count] - once.K[:count]
    K_once = taken.K[:, k:][:count] - rate(once.K)[:count]
    # First order: K_01 differentiated leaves L (C, K).
    L = product(product(K_01, kernel), split.inverse)
    free = own.combined(_complement(L)) if L.shape[1] else own
    taken = own.combined(L)
    C_own, K_own = taken.C - K_01, taken.K[:count] - rate(K_01)[:count]
    pieces = [
        rows(*rest),
        rows(C=C, K=K),
        rows(C=C_once, K=K_once),
        rows(C=C_own, K=K_own),
        rows(C=free.C, K=free.K),
        rows(C=once.C, K=once.K),
        rows(K=twice.K[:count] - rate(twice.C)[:count]),
        rows(K=K_a),
        rows(K=K_01),
        rows(K=K_shared),
        rows(K=np.zeros((count, v, n))),
    ]
    return _Triple(*(np.concatenate(parts, axis=1) for parts in zip(*pieces)))


def _complement(L: np.ndarray) -> np.ndarray:
    """Constant rows that complete L to a regular matrix."""
    rows = np.linalg.svd(L[0])[2][L.shape[1] :]
    return np.concatenate([rows[None], np.zeros((len(L) - 1, *rows.shape))])
