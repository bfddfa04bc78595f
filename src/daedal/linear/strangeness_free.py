"""The reduced system without strangeness, from the derivative array at one time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.derivative_array import balanced_array
from daedal.linear.rank import RankDecision, decision_table, rank_decision, require_clear
from daedal.linear.words import Shown
from daedal.tabular import Tabular, plural

if TYPE_CHECKING:
    from daedal.linear.time_varying import TimeVarying


@dataclass(frozen=True, repr=False)
class StrangenessFree(Shown):
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
        a algebraic equations: all constraints, also the hidden ones.
    v : int
        The number of equations without unknowns.
    decisions : tuple of RankDecision
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

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def strangeness_free(system: TimeVarying, t: float) -> StrangenessFree:
    """Z2 and T2 from the array of mu + 1, Z1 from A T2, for the least mu with which they suffice."""
    m, n = system.shape
    previous = 0  # equations without unknowns in the array before
    for mu in range(min(m, n) + 1):
        local = system.series(t, mu + 1, with_f=True)
        A, B, f, _ = balanced_array(local.A, local.B, local.f, mu + 1)
        tolerance, size = system.tolerance(t), float(np.linalg.norm(B, 2)) or 1.0
        U, s, _ = np.linalg.svd(A)
        first = rank_decision(s, tolerance=tolerance, what=f"the array of {mu + 1}")
        Z = U[:, first.rank :].T
        U, s, Vt = np.linalg.svd(Z @ B)
        second = rank_decision(s, scale=size, tolerance=tolerance, what="constraints from it")
        a = second.rank
        vanishing = len(Z) - a
        v, previous = vanishing - previous, vanishing
        scale = float(np.linalg.norm(local.A[0], 2)) or 1.0
        Z1, s, _ = np.linalg.svd(local.A[0] @ Vt[a:].T)
        third = rank_decision(s, scale=scale, tolerance=tolerance, what="A on what they leave free")
        d = third.rank
        if d == m - a - v:
            require_clear((first, second, third), "the strangeness-free system")
            Z2, Z1 = (U.T @ Z)[:a], Z1[:, :d].T
            return StrangenessFree(
                t,
                mu,
                Z1 @ local.A[0] * local.unit / local.columns,
                Z1 @ local.B[0] / local.columns,
                Z1 @ local.f[0],
                Z2 @ B / local.columns,
                Z2 @ f,
                v,
                (first, second, third),
            )
    raise InvalidProblemError(f"no strangeness-free system was found at t = {t:g}: ranks are not constant near it")
