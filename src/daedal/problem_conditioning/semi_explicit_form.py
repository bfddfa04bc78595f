r"""Any E x' + F x = q with a kernel of constant size as x' = A x + B y + p, 0 = C x + D y + q, along a grid.

With orthonormal bases :math:`V_1, V_2` of the rows and the kernel of E, and :math:`U_1, U_2` of its range and what is
orthogonal to it, :math:`x = V_1 u + V_2 y` and

.. math::

    u' &= -(M^{-1} U_1^T F V_1 + V_1^T V_1') u - (M^{-1} U_1^T F V_2 + V_1^T V_2') y + M^{-1} U_1^T q, \qquad
    M = U_1^T E V_1, \\
    0 &= U_2^T F V_1 u + U_2^T F V_2 y - U_2^T q.

Norms of solutions are those of (u, y). Bases are turned as little as possible from point to point, and are unit vectors
where E has rows and columns of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.rank import rank_decision
from daedal.problem_conditioning.linearised import Linearised
from daedal.problem_conditioning.matrices import NODES, aligned, highest_term, rate, transposed
from daedal.problem_conditioning.transition import step

RANK_TOLERANCE = 1e-10  # of E, with rows of length 1
_RESOLVED = 0.02  # part of the matrices in the highest term of the polynomial through the nodes of an interval
_HARMLESS = 0.02  # what is not resolved of a differential equation, times the length of the interval
_MOST_HALVINGS, _MOST_INTERVALS = 8, 2000


@dataclass(frozen=True)
class Form:
    """Matrices at the nodes of an interval, or on the grid: stacks with the first axis for time.

    Attributes
    ----------
    A, B, C, D : numpy.ndarray
        The coefficients of the semi-explicit form.
    C_rate : numpy.ndarray
        The time derivative of C.
    E, F : numpy.ndarray
        The given matrices.
    V1, V2 : numpy.ndarray
        Bases of u and y.
    V1_rate : numpy.ndarray
        The time derivative of V1.
    U2 : numpy.ndarray
        The constraints as combinations of the equations.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    C_rate: np.ndarray
    E: np.ndarray
    F: np.ndarray
    V1: np.ndarray
    V2: np.ndarray
    V1_rate: np.ndarray
    U2: np.ndarray

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
    """The form along a grid that is refined where matrices change fast.

    Attributes
    ----------
    t : numpy.ndarray
        The refined grid.
    forms : list of Form
        At the nodes of each of its intervals.
    kept : numpy.ndarray
        The places of the points of the given grid in the refined one.
    unresolved : tuple of float
        Times near which matrices change too fast even for the refined grid.
    """

    t: np.ndarray
    forms: list[Form]
    kept: np.ndarray
    unresolved: tuple[float, ...]

    @property
    def grid(self) -> Form:
        """The form on the given grid."""
        return Form(*(self.on_grid([getattr(form, field.name) for form in self.forms]) for field in fields(Form)))

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


def path_of(system: Linearised) -> Path:
    """The form at the nodes of every interval; intervals are halved until polynomials represent the matrices."""
    t, kept = [float(system.t[0])], [0]
    forms: list[Form] = []
    unresolved: list[float] = []
    before: tuple[np.ndarray, ...] | None = None
    most = max(_MOST_INTERVALS, 10 * system.t.size)
    follow = system.steps.size <= most  # every step of a solution
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


def _samples(system: Linearised, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    matrices = [system.matrices(start if system.constant else start + (end - start) * node) for node in NODES]
    E, F = (np.array([pair[k] for pair in matrices], dtype=float) for k in (0, 1))
    for name, stack in (("dF/dx'", E), ("dF/dx", F)):
        if not np.all(np.isfinite(stack)):
            raise InvalidProblemError(f"{name} is not finite between t = {start:g} and t = {end:g}")
    return E, F


def _is_resolved(samples: np.ndarray) -> bool:
    """Whether the term of highest degree of the polynomial through the nodes is small, in every row of the matrix."""
    sizes = np.max(np.abs(samples), axis=(0, 2))
    return bool(np.all(np.max(np.abs(highest_term(samples)), axis=1) <= _RESOLVED * sizes))


def _matters(E: np.ndarray, F: np.ndarray, h: float) -> bool:
    """Whether matrices that are not resolved, as at a jump, matter over an interval that is as short as can be."""
    if not _is_resolved(E):
        return True
    sizes, rest = np.max(np.abs(E), axis=(0, 2)), np.max(np.abs(highest_term(F)), axis=1)
    allowed = np.where(sizes > 0.0, _HARMLESS * sizes / abs(h), _RESOLVED * np.max(np.abs(F), axis=(0, 2)))
    return bool(np.any(rest > allowed))


def semi_explicit_form(
    E: np.ndarray, F: np.ndarray, h: float, before: tuple[np.ndarray, ...] | None = None, t: float = 0.0
) -> tuple[Form, tuple[np.ndarray, ...]]:
    """The form at the nodes of an interval of length h that begins at t, and the bases at its end for the next one."""
    if len(E) == 1:  # one point: no derivatives
        E, F = np.repeat(E, len(NODES), axis=0), np.repeat(F, len(NODES), axis=0)
    n = E.shape[-1]
    ranks = [rank_decision(_normalised(one), tolerance=RANK_TOLERANCE, what="dF/dx'").rank for one in E]
    if min(ranks) != max(ranks) or (before is not None and before[1].shape[1] != n - ranks[0]):
        raise InvalidProblemError(
            f"the rank of dF/dx' changes near t = {t:g} (it is {min(ranks)} at one point and {max(ranks)} at another "
            "or before): the kind of the equations changes there; look at the conditioning on both sides separately"
        )
    r = ranks[0]
    V1, V2 = _bases(E, r, before[:2] if before else None)
    U1, U2 = _bases(transposed(E), r, before[2:] if before else None)
    V1_rate, V2_rate = rate(V1, h), rate(V2, h)
    scaled = np.linalg.inv(transposed(U1) @ E @ V1) @ transposed(U1)
    A = -scaled @ F @ V1 - transposed(V1) @ V1_rate
    B = -scaled @ F @ V2 - transposed(V1) @ V2_rate
    C, D = transposed(U2) @ F @ V1, transposed(U2) @ F @ V2
    form = Form(A, B, C, D, rate(C, h), E, F, V1, V2, V1_rate, U2)
    return form, (V1[-1], V2[-1], U1[-1], U2[-1])


def _bases(E: np.ndarray, rank: int, before: tuple[np.ndarray, ...] | None) -> tuple:
    """Bases of the row space and of the kernel at every node."""
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
    """Rows of length 1, which have the same kernel; equations in different units are compared on equal terms."""
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(sizes > 0.0, sizes, 1.0)
