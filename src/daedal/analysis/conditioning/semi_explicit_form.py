r"""Transform E x' + F x = q to x' = A x + B y + p, 0 = C x + D y + q along a grid; the rank of E must be constant.

With orthonormal bases :math:`V_1, V_2` of the rows and the kernel of E, and :math:`U_1, U_2` of its range and the
orthogonal complement, :math:`x = V_1 u + V_2 y` and

.. math::

    u' &= -(M^{-1} U_1^T F V_1 + V_1^T V_1') u - (M^{-1} U_1^T F V_2 + V_1^T V_2') y + M^{-1} U_1^T q, \qquad
    M = U_1^T E V_1, \\
    0 &= U_2^T F V_1 u + U_2^T F V_2 y - U_2^T q.

Norms of solutions are those of (u, y). Bases are rotated as little as possible from point to point, and are unit
vectors where E has zero rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.index.linear.rank import rank_decision

if TYPE_CHECKING:
    from daedal.analysis.conditioning.measure import LinearForm

# Chebyshev-Lobatto nodes of [0, 1] for sampling matrices; derivatives are those of the interpolation polynomial
NODES = 0.5 * (1.0 - np.cos(np.pi * np.arange(5) / 4.0))
_POWERS = np.vander(NODES, increasing=True)
_RATES = np.column_stack([np.zeros(5), *(k * NODES ** (k - 1) for k in range(1, 5))])
_DIFFERENTIATION = _RATES @ np.linalg.inv(_POWERS)
# weights of the samples in the coefficient of the Chebyshev polynomial of degree 4 on [0, 1]
_HIGHEST = np.linalg.inv(_POWERS)[-1] / 128.0
_GAUSS = 0.5 + np.array([-1.0, 1.0]) * np.sqrt(3.0) / 6.0
_INTERPOLATION = np.vander(_GAUSS, 5, increasing=True) @ np.linalg.inv(_POWERS)


def norm(matrix: np.ndarray) -> np.ndarray:
    """The spectral norms of a stack of matrices; 0 for empty matrices, infinity where entries are not finite."""
    *stack, rows, columns = matrix.shape
    if rows == 0 or columns == 0:
        return np.zeros(stack)
    finite = np.isfinite(matrix).all(axis=(-2, -1))
    values = np.linalg.norm(np.where(finite[..., None, None], matrix, 0.0), 2, axis=(-2, -1))
    return np.where(finite, values, np.inf)


def rate(samples: np.ndarray, h: float) -> np.ndarray:
    """The time derivative at the nodes of an interval of length h, from samples at the nodes."""
    return np.tensordot(_DIFFERENTIATION / h, samples - samples[0], axes=1)  # exactly 0 for constants


def highest_term(samples: np.ndarray) -> np.ndarray:
    """The size of the term of degree 4 in the polynomial through samples at the nodes."""
    return np.tensordot(_HIGHEST, samples - samples[0], axes=1)


def at_gauss_points(samples: np.ndarray) -> np.ndarray:
    """Values at the two Gauss points of an interval, from samples at the nodes."""
    return np.tensordot(_INTERPOLATION, samples, axes=1)


def inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverses of a stack of matrices; NaN where a matrix is singular."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        pass
    result = np.full_like(matrix, np.nan)
    for place in np.ndindex(*matrix.shape[:-2]):
        try:
            result[place] = np.linalg.inv(matrix[place])
        except np.linalg.LinAlgError:
            continue
    return result


def transposed(matrix: np.ndarray) -> np.ndarray:
    """The transposes of a stack of matrices."""
    return np.swapaxes(matrix, -1, -2)


def aligned(basis: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Another orthonormal basis of the same space, rotated to be nearest to a reference basis (Procrustes)."""
    if basis.shape[1] == 0:
        return basis
    u, _, vt = np.linalg.svd(basis.T @ reference)
    return basis @ (u @ vt)


# --- fundamental matrices of w' = M(t) w on a grid, and integrals of the norms of Green's functions -------------------

_A1, _A2 = 0.25 - np.sqrt(3.0) / 6.0, 0.25 + np.sqrt(3.0) / 6.0
_PER_OCTAVE = 4  # number of points per halving of the distance s = t - tau
_MOST_OCTAVES = 60
_ROUND_OFF = 1e-9
_TAYLOR_RADIUS, _TAYLOR_DEGREE = 0.5, 14  # maximum norm, and degree for which the remainder is below 1e-16
_SHORTEST = 0.05  # the shortest distance is this divided by |M|


def exponential(matrices: np.ndarray) -> np.ndarray:
    """The exponentials of a stack of small matrices: Taylor polynomials with scaling and squaring."""
    largest = float(np.max(norm(matrices), initial=0.0))
    if not np.isfinite(largest):
        return np.full_like(matrices, np.nan)
    squarings = int(max(0.0, np.ceil(np.log2(max(largest, 1e-300) / _TAYLOR_RADIUS))))
    scaled = matrices / 2.0**squarings
    unit = np.broadcast_to(np.eye(matrices.shape[-1]), matrices.shape)
    result = unit
    for k in range(_TAYLOR_DEGREE, 0, -1):
        result = unit + scaled @ result / k
    for _ in range(squarings):
        result = result @ result
    return result


def step(samples: np.ndarray, h: float) -> np.ndarray:
    """The fundamental matrix over an interval of length h, from M at its nodes.

    The commutator-free exponential method of order 4 (S. Blanes, P. C. Moan, Appl. Numer. Math. 56, 2006); exact for
    constant M of any stiffness.
    """
    if samples.shape[-1] == 0:
        return np.zeros(samples.shape[1:])
    first, second = at_gauss_points(samples)
    with np.errstate(all="ignore"):
        late, early = exponential(h * np.array([_A1 * first + _A2 * second, _A2 * first + _A1 * second]))
        return late @ early


def short_times(M: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Distances tau from 0 to |h|, graded towards 0, and exp(tau M) for each, or exp(-tau M) if h is negative."""
    size = float(norm(M)) * abs(h)
    octaves = int(np.clip(np.ceil(np.log2(max(size, 1e-300) / _SHORTEST)), 1, _MOST_OCTAVES))
    first = abs(h) * 2.0 ** (-octaves + np.arange(_PER_OCTAVE) / _PER_OCTAVE)
    if M.shape[0] == 0:
        return np.array([0.0, abs(h)]), np.zeros((2, 0, 0))
    with np.errstate(all="ignore"):
        powers = exponential(np.sign(h) * first[:, None, None] * M)
        tau, found = [np.zeros(1), first], [np.eye(M.shape[0])[None], powers]
        for k in range(1, octaves):
            powers = powers @ powers
            tau.append(first * 2.0**k)
            found.append(powers)
        tau.append(np.array([abs(h)]))
        found.append((powers @ powers)[:1])
    return np.concatenate(tau), np.concatenate(found)


def pieces(left: np.ndarray, right: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Integrals over intervals of a function interpolated exponentially between its values `left` and `right`."""
    low, high = np.minimum(left, right), np.maximum(left, right)
    near = high - low <= 1e-6 * high
    with np.errstate(all="ignore"):
        logarithmic = (high - low) / np.log(high / np.maximum(low, 1e-300 + 1e-12 * high))
    return lengths * np.where(near, 0.5 * (low + high), np.where(np.isfinite(high), logarithmic, np.inf))


class Kernel:
    """k(t, s) = L(t) Phi(t, s) R(s) on a grid, with the fundamental matrix Phi of w' = M(t) w.

    `steps` are the fundamental matrices from each of the N grid points to the next, shape (N - 1, n, n); M has shape
    (N, n, n).
    """

    def __init__(self, t: np.ndarray, steps: np.ndarray, M: np.ndarray):
        self.t, self.steps, self.M = t, steps, M
        self._short = [short_times(M[k], t[k] - t[k - 1]) for k in range(1, t.size)]

    def from_start(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """L(t) Phi(t, t0) R(t0) on the grid."""
        found = [right]
        with np.errstate(all="ignore"):
            for one in self.steps:
                found.append(one @ found[-1])
            return left @ np.array(found)

    def growth(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The norm of L(t) Phi(t, t0) R(t0) on the grid; a peak inside the first interval is assigned to its end."""
        values = norm(self.from_start(left, right))
        with np.errstate(all="ignore"):
            inside = norm(left[0] @ self._short[0][1] @ right)
        if np.max(inside) > (1.0 + _ROUND_OFF) * max(values[0], values[1]):
            values[1] = np.max(inside)
        return values

    def integrals(self, kernels: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
        """For each pair (L, R) on the grid, the integrals of |L(t) Phi(t, s) R(s)| over s from t0 to t, for all t."""
        lengths = np.abs(np.diff(self.t))
        results = [np.zeros(self.t.size) for _ in kernels]
        carried = [right[:1] for _, right in kernels]
        with np.errstate(all="ignore"):
            for k, one in enumerate(self.steps, start=1):
                tau, short = self._short[k - 1]
                for place, (left, right) in enumerate(kernels):
                    moved = one @ carried[place]  # Phi(t_k, s) R(s) for all s of the grid before t_k
                    far = norm(left[k] @ moved)
                    near = norm(left[k] @ short @ right[k])
                    total = np.sum(pieces(far[:-1], far[1:], lengths[: k - 1]))
                    results[place][k] = total + np.sum(pieces(near[:-1], near[1:], np.diff(tau)))
                    carried[place] = np.concatenate([moved, right[k : k + 1]])
        return results


# --- the semi-explicit form along a grid ------------------------------------------------------------------------------

RANK_TOLERANCE = 1e-10  # tolerance for the rank of E, with rows of length 1
_RESOLVED = 0.02  # largest term of degree 4 in a resolved interpolation polynomial, relative to the matrix
_HARMLESS = 0.02  # largest negligible term of degree 4 in a differential equation, times the interval length
_MOST_HALVINGS, _MOST_INTERVALS = 8, 2000


@dataclass(frozen=True)
class SemiExplicitForm:
    """Matrices at the nodes of an interval, or on the grid: stacks with time as first axis."""

    # The coefficients of the semi-explicit form
    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    C_rate: np.ndarray  # the time derivative of C
    # The given matrices
    E: np.ndarray
    F: np.ndarray
    # Bases of u and y
    V1: np.ndarray
    V2: np.ndarray
    V1_rate: np.ndarray  # the time derivative of V1
    U2: np.ndarray  # the constraints as combinations of the equations

    @property
    def n_x(self) -> int:
        """Number of differential variables."""
        return self.A.shape[-1]

    @property
    def n_y(self) -> int:
        """Number of algebraic variables."""
        return self.D.shape[-1]


@dataclass(frozen=True)
class Path:
    """The form along a grid, refined where matrices change fast."""

    t: np.ndarray  # the refined grid
    forms: list[SemiExplicitForm]  # the matrices at the nodes of each interval
    kept: np.ndarray  # indices of the given grid points in the refined grid
    unresolved: tuple[float, ...]  # times near which matrices change too fast even for the refined grid

    @property
    def grid(self) -> SemiExplicitForm:
        """The form on the given grid."""
        return SemiExplicitForm(
            *(self.on_grid([getattr(form, field.name) for form in self.forms]) for field in fields(SemiExplicitForm))
        )

    def on_grid(self, samples: list[np.ndarray]) -> np.ndarray:
        """Values on the given grid from samples at the nodes of all intervals of the refined one."""
        return np.array([*(one[0] for one in samples), samples[-1][-1]])[self.kept]

    def steps(self, samples: list[np.ndarray]) -> np.ndarray:
        """Fundamental matrices from each point of the given grid to the next, from M at all nodes."""
        found = []
        fine = [step(M, h) for M, h in zip(samples, np.diff(self.t), strict=True)]
        with np.errstate(all="ignore"):
            for start, end in zip(self.kept[:-1], self.kept[1:], strict=True):
                product = fine[start]
                for one in fine[start + 1 : end]:
                    product = one @ product
                found.append(product)
        return np.array(found)


def path_of(system: LinearForm) -> Path:
    """The form at the nodes of every interval; intervals are halved until polynomials resolve the matrices."""
    t, kept = [float(system.t[0])], [0]
    forms: list[SemiExplicitForm] = []
    unresolved: list[float] = []
    before: tuple[np.ndarray, ...] | None = None
    most = max(_MOST_INTERVALS, 10 * system.t.size)
    follow = system.steps.size <= most  # one interval per step of a solution
    if not follow:
        unresolved.append(t[0])
    for first, last in zip(system.t[:-1], system.t[1:], strict=True):
        inside = system.steps[(system.steps - first) * (system.steps - last) < 0.0] if follow else []
        ends = [float(first), *map(float, inside), float(last)]
        waiting = [(start, end, 0) for start, end in pairwise(ends)][::-1]
        while waiting:
            start, end, halvings = waiting.pop()
            if system.constant and forms:
                forms.append(forms[0])
                t.append(end)
                continue
            E, F = _samples(system, start, end)
            if not (system.constant or (_is_resolved(E) and _is_resolved(F))):
                if halvings < _MOST_HALVINGS and len(forms) + len(waiting) < most:
                    middle = 0.5 * (start + end)
                    waiting += [(middle, end, halvings + 1), (start, middle, halvings + 1)]
                    continue
                if _matters(E, F, end - start):
                    unresolved.append(start)
            form, before = semi_explicit_form(E, F, end - start, before, start)
            forms.append(form)
            t.append(end)
        kept.append(len(forms))
    return Path(np.array(t), forms, np.array(kept), tuple(unresolved))


def _samples(system: LinearForm, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    matrices = [system.matrices(start if system.constant else start + (end - start) * node) for node in NODES]
    E, F = (np.array([pair[k] for pair in matrices], dtype=float) for k in (0, 1))
    for name, stack in (("dF/dx'", E), ("dF/dx", F)):
        if not np.all(np.isfinite(stack)):
            raise InvalidProblemError(f"{name} is not finite between t = {start:g} and t = {end:g}")
    return E, F


def _is_resolved(samples: np.ndarray) -> bool:
    """Whether the highest-degree term of the interpolation polynomial is small in every row of the matrix."""
    sizes = np.max(np.abs(samples), axis=(0, 2))
    return bool(np.all(np.max(np.abs(highest_term(samples)), axis=1) <= _RESOLVED * sizes))


def _matters(E: np.ndarray, F: np.ndarray, h: float) -> bool:
    """Whether unresolved matrices, as at a jump, affect solutions noticeably over an interval of length h."""
    if not _is_resolved(E):
        return True
    sizes, rest = np.max(np.abs(E), axis=(0, 2)), np.max(np.abs(highest_term(F)), axis=1)
    allowed = np.where(sizes > 0.0, _HARMLESS * sizes / abs(h), _RESOLVED * np.max(np.abs(F), axis=(0, 2)))
    return bool(np.any(rest > allowed))


def semi_explicit_form(
    E: np.ndarray, F: np.ndarray, h: float, before: tuple[np.ndarray, ...] | None = None, t: float = 0.0
) -> tuple[SemiExplicitForm, tuple[np.ndarray, ...]]:
    """The form at the nodes of the interval of length h from t, and the bases at its end for the next interval."""
    if len(E) == 1:  # one point: no derivatives
        E, F = np.repeat(E, len(NODES), axis=0), np.repeat(F, len(NODES), axis=0)
    n = E.shape[-1]
    ranks = [rank_decision(_normalised(one), tolerance=RANK_TOLERANCE, what="dF/dx'").rank for one in E]
    ranks += [] if before is None else [n - before[1].shape[1]]
    if min(ranks) != max(ranks):
        raise InvalidProblemError(
            f"the rank of dF/dx' changes near t = {t:g} (it is {min(ranks)} at one point and {max(ranks)} at "
            "another): the type of the equations changes there; examine the conditioning on both sides separately"
        )
    r = ranks[0]
    V1, V2 = _bases(E, r, before[:2] if before else None)
    U1, U2 = _bases(transposed(E), r, before[2:] if before else None)
    V1_rate, V2_rate = rate(V1, h), rate(V2, h)
    scaled = np.linalg.inv(transposed(U1) @ E @ V1) @ transposed(U1)
    A = -scaled @ F @ V1 - transposed(V1) @ V1_rate
    B = -scaled @ F @ V2 - transposed(V1) @ V2_rate
    C, D = transposed(U2) @ F @ V1, transposed(U2) @ F @ V2
    form = SemiExplicitForm(A, B, C, D, rate(C, h), E, F, V1, V2, V1_rate, U2)
    return form, (V1[-1], V2[-1], U1[-1], U2[-1])


def _bases(E: np.ndarray, rank: int, before: tuple[np.ndarray, ...] | None) -> tuple:
    n = E.shape[-1]
    zero = ~np.any(E != 0.0, axis=(0, 1))
    if np.sum(zero) == n - rank:
        unit = np.repeat(np.eye(n)[None], len(E), axis=0)
        return unit[..., ~zero], unit[..., zero]
    rows = [np.linalg.svd(_normalised(one))[2] for one in E]
    first, second = before if before is not None else (rows[0][:rank].T, rows[0][rank:].T)
    return (
        np.array([aligned(vt[:rank].T, first) for vt in rows]),
        np.array([aligned(vt[rank:].T, second) for vt in rows]),
    )


def _normalised(matrix: np.ndarray) -> np.ndarray:
    """Rows of norm 1 with the same kernel, which makes equations in different units comparable."""
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(sizes > 0.0, sizes, 1.0)


# --- splitting off constraints that determine some algebraic variables ------------------------------------------------


@dataclass(frozen=True)
class Rest:
    """x' = A x + B z2 + p - B1 S q, 0 = C x + D z2 + U2^T q, at the nodes of an interval or on the grid.

    The eliminated variables are z1 = -S (C_given x + q), and y = V1 z1 + V2 z2.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    C_rate: np.ndarray
    U2: np.ndarray
    U2_rate: np.ndarray
    V1: np.ndarray
    V2: np.ndarray
    S: np.ndarray
    B1: np.ndarray


def splitting(forms: list[SemiExplicitForm], rank: int, t: np.ndarray) -> list[Rest]:
    """Eliminate the algebraic variables that D determines well, by its `rank` largest singular values."""
    found: list[Rest] = []
    before: tuple[np.ndarray, ...] | None = None
    for form, h in zip(forms, np.diff(t), strict=True):
        bases = _splitting_bases(form.D, rank, before)
        before = tuple(basis[-1] for basis in bases)
        U1, U2, V1, V2 = bases
        S = np.linalg.inv(transposed(U1) @ form.D @ V1) @ transposed(U1)
        C, B1 = transposed(U2) @ form.C, form.B @ V1
        found.append(
            Rest(
                A=form.A - B1 @ S @ form.C,
                B=form.B @ V2,
                C=C,
                D=transposed(U2) @ form.D @ V2,
                C_rate=rate(C, h),
                U2=U2,
                U2_rate=rate(U2, h),
                V1=V1,
                V2=V2,
                S=S,
                B1=B1,
            )
        )
    return found


def _splitting_bases(D: np.ndarray, rank: int, before: tuple[np.ndarray, ...] | None) -> tuple[np.ndarray, ...]:
    """U1, U2, V1, V2 at all nodes, rotated as little as possible; unit vectors if nothing is split off."""
    n = D.shape[-1]
    if rank in (0, n):
        unit = np.repeat(np.eye(n)[None], len(D), axis=0)
        first, second = unit[..., :rank], unit[..., rank:]
        return first, second, first, second
    parts = []
    for one in D:
        u, _, vt = np.linalg.svd(one)
        parts.append((u[:, :rank], u[:, rank:], vt[:rank].T, vt[rank:].T))
    references = parts[0] if before is None else before
    return tuple(np.array([aligned(part[k], references[k]) for part in parts]) for k in range(4))
