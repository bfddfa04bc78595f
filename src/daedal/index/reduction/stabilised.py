"""All hidden constraints kept by further multipliers, in the manner of Gear, Gupta and Leimkuhler."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from daedal.index.reduction.prolongation import Block
from daedal.index.reduction.reduced import ReducedProblem
from daedal.index.reduction.sheet import Sheet


class Stabilised(ReducedProblem):
    r"""A problem of any index as one of index 2 that keeps all its constraints.

    Of the equations :math:`f_i^{(r)} = 0` of the prolonged system those that determine the highest derivatives,
    :math:`r = c_i > 0`, are left out: their work is done by unknowns of the problem whose derivatives do not occur,
    such as the multipliers of mechanics. What is left are constraints between unknowns that are integrated; the lower
    ones, :math:`r < c_i - 1`, would be redundant and get multipliers of their own,

    .. math::

        u' = \dot u + A^T \mu,   \qquad   A = \partial f^{(r)} / \partial u,

    level by level, so that differentiation of these constraints leaves :math:`A A^T \mu = 0`: :math:`\mu` is zero on
    solutions, and where it is not it tells of the errors of a run (C. W. Gear, G. K. Gupta and B. Leimkuhler, J.
    Comput. Appl. Math. 12, 1985; Brenan, Campbell and Petzold, (2.5.10), theorems 2.5.1 and 2.5.2). For mechanisms it
    is the GGL formulation. A problem of index 2 is left as it is.
    """

    by = "stabilisation with further multipliers"
    result_index = 2

    @cached_property
    def kept(self) -> list[tuple[int, int]]:
        """The equations of `problem` among those given and their derivatives."""
        return [
            (i, r) for i, r in self.prolongation.kept if r < self.prolongation.c[i] or r == 0 == self.prolongation.c[i]
        ]

    def _slopes_taken(self) -> dict[int, int]:
        pairs = ((high, low) for block in self.blocks for low, high in zip(block.columns, block.targets, strict=True))
        return {high: low for high, low in pairs if self._is_new(high)}

    def _further_unknowns(self) -> list[tuple[str, int]]:
        lower = [block for block in self.blocks if self._is_lower(block)]
        likes = [column for block in lower for column in block.columns[: len(block.rows)]]
        return [(f"mu[{k}]", column) for k, column in enumerate(likes)]

    def _is_lower(self, block: Block) -> bool:
        """Whether the constraints of a block are such that the highest of their derivatives is a constraint as well."""
        return bool(block.rows) and block.equations[0][1] < self.prolongation.c[block.equations[0][0]] - 1

    def _untested(self) -> np.ndarray:
        """Variables of index 2: multipliers, and unknowns whose derivatives do not occur."""
        return self.is_highest[self._like] | (np.arange(self._like.size) >= self._inside.size)

    def _relations(self, block: Block, sheet: Sheet) -> list[tuple[int, str]]:
        pairs = list(zip(block.columns, block.targets, strict=True))
        nodes = {low: sheet.difference(low, high) for low, high in pairs if high not in self._slope_of}
        if self._is_lower(block):
            for row in block.rows:
                mu, entries = sheet.further(), sheet.written(list(row.values()))
                for low, entry in zip(row, entries, strict=True):
                    nodes[low] = sheet.graph.subtract(nodes[low], sheet.graph.multiply(entry, mu))
        return [(nodes[low], self._told(low, high)) for low, high in pairs if low in nodes]

    def _data(self) -> list[np.ndarray]:
        return []

    def _own(self, u: np.ndarray) -> np.ndarray:
        return np.concatenate([u[self._inside], np.zeros(self._like.size - self._inside.size)])
