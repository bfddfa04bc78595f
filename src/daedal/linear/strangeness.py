"""The strangeness index of A(t) x' + B(t) x = f(t) and its characteristic values.

P. Kunkel, V. Mehrmann, Differential-Algebraic Equations, EMS 2006, section 3.1. Equations without derivatives whose own
derivatives occur in others are strange: differentiating them and subtracting turns the others into equations without
derivatives as well. The number of such passes until nothing strange is left is the strangeness index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from daedal.linear.rank import RankDecision, decision_table
from daedal.linear.series import compress, product, rate
from daedal.linear.words import Shown
from daedal.tabular import Tabular, plural


class CharacteristicValues(NamedTuple):
    """The invariants of a pair of m x n matrix functions under local equivalence.

    r: rank of A. a: algebraic equations. s: strange ones. d = r - s: differential ones. u = n - r - a: undetermined
    unknowns. v = m - r - a - s: equations 0 = f.
    """

    r: int
    a: int
    s: int
    d: int
    u: int
    v: int


@dataclass(frozen=True, repr=False)
class Strangeness(Shown):
    """The strangeness index at a time, with the characteristic values of each pass.

    Attributes
    ----------
    t : float
    index : int
        The strangeness index.
    values : tuple of CharacteristicValues
        Of the system as it is given and after each pass; in the last one nothing is strange.
    decisions : tuple of RankDecision
    """

    t: float
    index: int
    values: tuple[CharacteristicValues, ...]
    decisions: tuple[RankDecision, ...]

    @property
    def clear(self) -> bool:
        """Whether the numbers decide all ranks."""
        return all(decision.clear for decision in self.decisions)

    @property
    def differentiation_index(self) -> int | None:
        """The differentiation index that follows for a system with one solution: 0 without algebraic equations."""
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

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def strangeness_passes(
    A: np.ndarray, B: np.ndarray, tolerance: float
) -> tuple[list[CharacteristicValues], list[RankDecision]] | None:
    """The characteristic values of all passes, for coefficients that are power series; None if these are too short."""
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
        # S x = f4 with S = L R, where R are the rows of A: S x' + S' x = f4' goes from L (R x' + B1 x) = L f1.
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
