"""The strangeness index of A(t) x' + B(t) x = f(t) and its characteristic values.

P. Kunkel, V. Mehrmann, Differential-Algebraic Equations, EMS 2006, section 3.1. Equations without derivatives are
strange if their derivatives occur in other equations; differentiating and subtracting them removes the derivatives from
the others. The number of such passes until no strange equations remain is the strangeness index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from daedal.common.tabular import Tabular, plural
from daedal.errors import DaedalError, InvalidProblemError
from daedal.index.linear.rank import RankDecision, TitledTables, decision_table, rank_decision

if TYPE_CHECKING:
    pass


# Smooth transformations of time-varying systems exist near every point at which ranks are constant. They are computed
# as power series from the coefficients at one point; the rank is constant near it if the Schur complement that vanishes
# at the point also vanishes as a series.

_NEAR = 0.25  # search radius for rank changes, in the system's unit of time


class RankChangeError(DaedalError, ValueError):
    """The rank of a matrix is not constant near the given time, as required by the theory.

    Examples
    --------
    >>> from daedal import linear
    >>> system = linear.TimeVarying(lambda t: [[t]], lambda t: [[1.0]], lambda t: [0.0], n=1)
    >>> try:
    ...     system.strangeness(0.0)
    ... except linear.RankChangeError:
    ...     print("the rank of A changes at t = 0")
    the rank of A changes at t = 0
    """


def product(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """X Y, truncated to the common number of coefficients."""
    count = min(len(X), len(Y))
    return np.stack([sum(X[i] @ Y[k - i] for i in range(k + 1)) for k in range(count)])


def inverse(X: np.ndarray) -> np.ndarray:
    """The inverse of a series whose first coefficient is regular."""
    first = np.linalg.inv(X[0])
    result = np.zeros_like(X)
    result[0] = first
    for k in range(1, len(X)):
        result[k] = -first @ sum(X[i] @ result[k - i] for i in range(1, k + 1))
    return result


def rate(X: np.ndarray) -> np.ndarray:
    """The derivative with respect to time, with one coefficient fewer."""
    factors = np.arange(1.0, len(X))
    return X[1:] * factors.reshape(-1, *[1] * (X.ndim - 1))


def constant(matrix: np.ndarray, count: int) -> np.ndarray:
    """A constant matrix as a series."""
    return np.concatenate([matrix[None], np.zeros((count - 1, *matrix.shape))])


class Compression(NamedTuple):
    """``left @ X = [R; 0]`` with R of full row rank, and ``R @ kernel = 0``, as series.

    ``inverse`` is a right inverse, ``R @ inverse = I``.
    """

    rank: int
    left: np.ndarray
    rows: np.ndarray
    kernel: np.ndarray
    inverse: np.ndarray
    decisions: tuple[RankDecision, ...]


def compress(X: np.ndarray, tolerance: float, scale: float, what: str) -> Compression:
    """Compress the rows of a series of constant rank; raises RankChangeError if the rank is lower at the point."""
    count, m, n = X.shape
    U, s, Vt = np.linalg.svd(X[0])
    decision = rank_decision(s, scale=scale, tolerance=tolerance, what=what)
    r = decision.rank
    W = U.T @ X @ Vt.T
    first = inverse(W[:, :r, :r])
    lower, upper = product(W[:, r:, :r], first), product(first, W[:, :r, r:])
    rest = (W[:, r:, r:] - product(W[:, r:, :r], upper))[1:]
    rest *= _NEAR ** np.arange(1.0, count)[:, None, None]
    change = rank_decision(
        np.concatenate([*rest, np.zeros((1, n - r))]), scale=scale, tolerance=tolerance, what=f"change of {what}"
    )
    if change.lowest:
        raise RankChangeError(
            f"the rank of {what} is {r} at this time and larger near it; canonical forms and the strangeness "
            "index require constant ranks"
        )
    left = np.zeros((count, m, m))
    left[0] = np.eye(m)
    left[:, r:, :r] -= lower
    left = left @ U.T
    kernel = np.zeros((count, n, n - r))
    kernel[:, :r], kernel[0, r:] = -upper, np.eye(n - r)
    right = np.concatenate([first, np.zeros((count, n - r, r))], axis=1)
    decisions = (decision, change) if count > 1 else (decision,)
    return Compression(r, left, W[:, :r] @ Vt, Vt.T @ kernel, Vt.T @ right, decisions)


# --- computing the strangeness index ----------------------------------------------------------------------------------


class CharacteristicValues(NamedTuple):
    """The invariants of a pair of m x n matrix functions under local equivalence.

    r: rank of A. a: algebraic equations. s: strange ones. d = r - s: differential ones. u = n - r - a: undetermined
    unknowns. v = m - r - a - s: equations 0 = f.

    Examples
    --------
    >>> import daedal
    >>> system = daedal.linear.TimeVarying(lambda t: [[1, t], [0, 0]], lambda t: [[0, 0], [1, t]], n=2)
    >>> values = system.strangeness(0.5).values[0]
    >>> print(values.r, values.a, values.s)
    1 0 1
    """

    r: int
    a: int
    s: int
    d: int
    u: int
    v: int


@dataclass(frozen=True, repr=False)
class Strangeness(TitledTables):
    """The strangeness index at a time, with the characteristic values of each pass.

    Attributes
    ----------
    t : float
    index : int
        The strangeness index.
    values : tuple of CharacteristicValues
        The values of the given system and those after each pass; no strange equations remain after the last pass.
    decisions : tuple of RankDecision

    Examples
    --------
    >>> import daedal
    >>> system = daedal.linear.TimeVarying(lambda t: [[1, t], [0, 0]], lambda t: [[0, 0], [1, t]], n=2)
    >>> found = system.strangeness(0.5)
    >>> print(found.index, len(found.values))
    1 2
    """

    t: float
    index: int
    values: tuple[CharacteristicValues, ...]
    decisions: tuple[RankDecision, ...]

    @property
    def clear(self) -> bool:
        """Whether all rank decisions are unambiguous."""
        return all(decision.clear for decision in self.decisions)

    @property
    def differentiation_index(self) -> int | None:
        """The differentiation index: 0 if there are no algebraic equations, None if not uniquely solvable."""
        last = self.values[-1]
        if last.u or last.v:
            return None
        return 0 if self.index == 0 and last.a == 0 else self.index + 1

    def title(self) -> str:
        last = self.values[-1]
        parts = [plural(last.d, "differential equation"), plural(last.a, "algebraic equation")]
        if last.u:
            parts.append(plural(last.u, "undetermined unknown"))
        if last.v:
            parts.append(plural(last.v, "equation") + " 0 = f")
        doubt = "" if self.clear else " (a rank is unclear)"
        return f"Strangeness index {self.index} at t = {self.t:g}{doubt}: {', '.join(parts)}"

    def tables(self) -> list[Tabular]:
        rows = [(i, *values) for i, values in enumerate(self.values)]
        header = ("pass", "rank r", "algebraic a", "strange s", "differential d", "undetermined u", "vanishing v")
        return [Tabular("rrrrrrr", rows, header), decision_table(self.decisions)]


def strangeness_passes(
    A: np.ndarray, B: np.ndarray, tolerance: float
) -> tuple[list[CharacteristicValues], list[RankDecision]] | None:
    """The characteristic values of all passes, for coefficients given as power series; None if these are too short."""
    m, n = A.shape[1:]
    size_A, size_B = _size(A), _size(B)
    values: list[CharacteristicValues] = []
    decisions: list[RankDecision] = []
    while len(A) > 1:
        name = f", pass {len(values)}" if values else ""
        top = compress(A, tolerance, size_A, f"A{name}")
        r = top.rank
        below = product(top.left, B)[:, r:]
        algebraic = compress(product(below, top.kernel), tolerance, size_B, f"B on ker A{name}")
        a = algebraic.rank
        ordered = product(algebraic.left, below)
        strange = compress(ordered[:, a:], tolerance, size_B, f"the rest of B{name}")
        s = strange.rank
        values.append(CharacteristicValues(r, a, s, r - s, n - r - a, m - r - a - s))
        decisions += [*top.decisions, *algebraic.decisions, *strange.decisions]
        if s == 0:
            return values, decisions
        # S x = f4 with S = L R, where R are the rows of A: S x' + S' x = f4' is subtracted from
        # L (R x' + B1 x) = L f1.
        S, R, B1 = strange.rows, top.rows, product(top.left, B)[:, :r]
        L = product(S, top.inverse)
        N = np.linalg.svd(L[0])[2][s:]
        count = len(S) - 1
        hidden = product(L, B1)[:count] - rate(S)
        A = np.concatenate([N @ R, np.zeros((len(R), m - r + s, n))], axis=1)[:count]
        zero = np.zeros((count, m - r - a - s, n))
        B = np.concatenate([(N @ B1)[:count], hidden, ordered[:count, :a], S[:count], zero], axis=1)
    return None


def _size(X: np.ndarray) -> float:
    return float(np.linalg.norm(X[0], 2)) or float(np.max(np.abs(X))) or 1.0


# --- the strangeness-free system, from the derivative array at one time -----------------------------------------------


@dataclass(frozen=True, repr=False)
class StrangenessFree(TitledTables):
    """``A1 x' + B1 x = f1``, ``B2 x = f2`` at one time, with [A1; B2] of full row rank.

    P. Kunkel, V. Mehrmann, Differential-Algebraic Equations, theorem 3.32; GELDA solves such systems.

    Attributes
    ----------
    t : float
    index : int
        The strangeness index of the given system.
    A1, B1, f1 : numpy.ndarray
        d differential equations, combinations of the given ones.
    B2, f2 : numpy.ndarray
        a algebraic equations: all constraints, including hidden ones.
    v : int
        The number of equations without unknowns.
    decisions : tuple of RankDecision

    Examples
    --------
    >>> import daedal
    >>> system = daedal.linear.TimeVarying(lambda t: [[1, t], [0, 0]], lambda t: [[0, 0], [1, t]], n=2)
    >>> found = system.strangeness_free(0.5)
    >>> print(found.A1.shape, found.B2.shape)
    (0, 2) (2, 2)
    """

    t: float
    index: int
    A1: np.ndarray
    B1: np.ndarray
    f1: np.ndarray
    B2: np.ndarray
    f2: np.ndarray
    v: int
    decisions: tuple[RankDecision, ...]

    @property
    def d(self) -> int:
        """The number of differential equations."""
        return len(self.A1)

    @property
    def a(self) -> int:
        """The number of algebraic equations."""
        return len(self.B2)

    def title(self) -> str:
        parts = f"{plural(self.d, 'differential equation')}, {plural(self.a, 'algebraic equation')}"
        return f"Strangeness-free system at t = {self.t:g}, from strangeness index {self.index}: {parts}"

    def tables(self) -> list[Tabular]:
        return [decision_table(self.decisions)]


# --- the standard canonical form of a solvable time-varying system, near a time at which ranks are constant -----------


@dataclass(frozen=True, repr=False)
class StandardCanonicalForm(TitledTables):
    """``diag(I, N(t)) y' + diag(C(t), I) y = P(t) f`` with x = Q(t) y and strictly upper triangular N.

    Brenan, Campbell and Petzold, definition 2.4.5 and theorem 2.4.4. All functions are power series about `t`: arrays
    of Taylor coefficients.

    Attributes
    ----------
    t : float
    P, Q, C, N : numpy.ndarray, shape (count, rows, columns)
    index : int
        The number of diagonal blocks of N, which is the index of the system.
    decisions : tuple of RankDecision

    Examples
    --------
    >>> import daedal
    >>> system = daedal.linear.TimeVarying(lambda t: [[1, t], [0, 0]], lambda t: [[0, 0], [1, t]], n=2)
    >>> form = system.canonical_form(0.5)
    >>> print(form.t, form.N.shape)
    0.5 (4, 2, 2)
    """

    t: float
    P: np.ndarray
    Q: np.ndarray
    C: np.ndarray
    N: np.ndarray
    index: int
    decisions: tuple[RankDecision, ...]

    @property
    def n_finite(self) -> int:
        """The size of the differential part, which is the number of free initial values."""
        return self.C.shape[1]

    def title(self) -> str:
        return f"Standard canonical form near t = {self.t:g}: diag(I, N) y' + diag(C, I) y = P f, index {self.index}"

    def tables(self) -> list[Tabular]:
        rows = [
            ("differential part", f"{self.n_finite} of {self.P.shape[1]}"),
            ("Taylor coefficients", str(len(self.N))),
        ]
        return [Tabular("ll", rows), decision_table(self.decisions)]


def standard_canonical_form(t: float, A: np.ndarray, B: np.ndarray, tolerance: float) -> StandardCanonicalForm:
    """The form, obtained by removing constraints pass by pass with smooth transformations.

    In each pass the active part, which comes first in A and B, loses its equations without derivatives B2 x = f2 and
    as many unknowns; x = Q y changes B to B Q + A Q'.
    """
    n = A.shape[1]
    sizes = [float(np.linalg.norm(X[0], 2)) or 1.0 for X in (A, B)]
    P, Q = constant(np.eye(n), len(A)), constant(np.eye(n), len(A))
    decisions: list[RankDecision] = []
    levels: list[int] = []
    active = n
    while active:
        name = f", pass {len(levels)}" if levels else ""
        top = compress(A[:, :active, :active], tolerance, sizes[0], f"A{name}")
        decisions += top.decisions
        removed = active - top.rank
        if removed == 0:
            break
        left = _embedded(top.left, n)
        A, B, P = product(left, A), product(left, B), product(left, P)
        A[:, top.rank : active, :active] = 0.0
        constraints = compress(B[:, top.rank : active, :active], tolerance, sizes[1], f"the constraints{name}")
        decisions += constraints.decisions
        if constraints.rank < removed:
            raise InvalidProblemError(
                f"the system is not solvable near t = {t:g}: of {plural(removed, 'equation')} without derivatives "
                f"only {constraints.rank} count as independent, so that the solution contains a free function and "
                "the right-hand side must satisfy a condition"
            )
        # [kernel, right inverse]: B2 Q = [0, I]
        solved = product(constraints.inverse, constraints.left)
        right = _embedded(np.concatenate([constraints.kernel, solved], axis=2), n)
        A, B = _changed(A, B, right)
        P, Q = P[: len(B)], product(Q, right)[: len(B)]
        left = constant(np.eye(n), len(B))
        left[:, : top.rank, top.rank : active] = -B[:, : top.rank, top.rank : active]
        A, B, P = product(left, A), product(left, B), product(left, P)
        levels.append(removed)
        active = top.rank
    return _decoupled(t, A, B, P, Q, active, len(levels), decisions)


def _embedded(X: np.ndarray, n: int) -> np.ndarray:
    result = constant(np.eye(n), len(X))
    result[:, : X.shape[1], : X.shape[2]] = X
    return result


def _changed(A: np.ndarray, B: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients A Q and B Q + A Q' after the substitution x = Q y, with one Taylor coefficient fewer."""
    count = len(A) - 1
    return product(A, Q)[:count], product(B, Q)[:count] + product(A, rate(Q))


def _decoupled(t, A, B, P, Q, k, index, decisions) -> StandardCanonicalForm:
    """The form of the pair [A11 G; 0 N], [B11 0; 0 I]: y1 + K y2 replaces y1, where K = G + (K' + C K) N."""
    n = A.shape[1]
    left = _embedded(inverse(A[:, :k, :k]), n)
    A, B, P = product(left, A), product(left, B), product(left, P)
    C, G, N = B[:, :k, :k], A[:, :k, k:], A[:, k:, k:]
    K = L = np.zeros_like(G)
    for _ in range(index + 1):  # N is nilpotent, even together with d/dt, so the iteration terminates
        count = len(K) - 1
        L = rate(K) + product(C, K)[:count]
        K = G[:count] + product(L, N[:count])
    count = len(K) - 1
    L = rate(K) + product(C, K)[:count]
    left, right = constant(np.eye(n), count), constant(np.eye(n), count)
    left[:, :k, k:], right[:, :k, k:] = L, -K[:count]
    P, Q = product(left, P), product(Q, right)
    return StandardCanonicalForm(t, P, Q, C[:count], N[:count], index, tuple(decisions))
