"""Constraints taken apart: those that determine some of the algebraic variables, which are eliminated, and the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.problem_conditioning.matrices import aligned, rate, transposed
from daedal.problem_conditioning.semi_explicit_form import Form


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


def splitting(forms: list[Form], rank: int, t: np.ndarray) -> list[Rest]:
    """Eliminate as many algebraic variables as D determines well, by its `rank` largest singular values."""
    found: list[Rest] = []
    before: tuple[np.ndarray, ...] | None = None
    for form, h in zip(forms, np.diff(t), strict=True):
        bases = _bases(form.D, rank, before)
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


def _bases(D: np.ndarray, rank: int, before: tuple[np.ndarray, ...] | None) -> tuple[np.ndarray, ...]:
    """U1, U2, V1, V2 at all nodes, turned as little as possible; unit vectors where nothing is to be taken apart."""
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
