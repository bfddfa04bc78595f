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

import numpy as np

from daedal.conditioning.linearised import Linearised
from daedal.conditioning.matrices import NODES, aligned, rate, transposed
from daedal.errors import InvalidProblemError
from daedal.linear.rank import rank_decision

RANK_TOLERANCE = 1e-10  # of E, relative to its largest singular value


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

    def at(self, k: int) -> Form:
        """One point, as a stack of one."""
        return Form(*(getattr(self, field.name)[k : k + 1] for field in fields(self)))


def joined(forms: list[Form]) -> Form:
    """The points of several intervals: the first node of each, and the last of the last."""
    picked = [form.at(0) for form in forms] + [forms[-1].at(-1 % len(forms[-1].A))]
    return Form(*(np.concatenate([getattr(form, field.name) for form in picked]) for field in fields(Form)))


def intervals(system: Linearised) -> list[Form]:
    """The form at the nodes of every interval of the grid."""
    found: list[Form] = []
    before: tuple[np.ndarray, ...] | None = None
    for start, end in zip(system.t[:-1], system.t[1:], strict=True):
        if system.constant and found:
            found.append(found[0])
            continue
        h = end - start
        times = np.full(len(NODES), start) if system.constant else start + h * NODES
        matrices = [system.matrices(float(t)) for t in times]
        E, F = (np.array([pair[k] for pair in matrices]) for k in (0, 1))
        for name, stack in (("dF/dx'", E), ("dF/dx", F)):
            if not np.all(np.isfinite(stack)):
                raise InvalidProblemError(f"{name} is not finite between t = {start:g} and t = {end:g}")
        form, before = semi_explicit_form(E, F, float(h), before, float(start))
        found.append(form)
    return found


def semi_explicit_form(
    E: np.ndarray, F: np.ndarray, h: float, before: tuple[np.ndarray, ...] | None = None, t: float = 0.0
) -> tuple[Form, tuple[np.ndarray, ...]]:
    """The form at the nodes of an interval of length h that begins at t, and the bases at its end for the next one."""
    if len(E) == 1:  # one point: no derivatives
        E, F = np.repeat(E, len(NODES), axis=0), np.repeat(F, len(NODES), axis=0)
    n = E.shape[-1]
    ranks = [rank_decision(one, tolerance=RANK_TOLERANCE, what="dF/dx'").rank for one in E]
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
    rows = [np.linalg.svd(one)[2] for one in E]
    first, second = before if before is not None else (rows[0][:rank].T, rows[0][rank:].T)
    return (
        np.array([aligned(vt[:rank].T, first) for vt in rows]),
        np.array([aligned(vt[rank:].T, second) for vt in rows]),
    )
