"""Minimal extension: derivatives that hidden constraints determine become unknowns of their own, and no others."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np

from daedal.index.reduction.prolongation import Block
from daedal.index.reduction.reduced import ReducedProblem
from daedal.index.reduction.sheet import Sheet


class MinimalExtensionProblem(ReducedProblem):
    r"""All equations, hidden ones included, in as few unknowns as possible.

    With the selection S of what is integrated and the rows D of what is not, unit vectors both, the highest
    derivatives stand in the equations as

    .. math::

        \dot u = S^T S\,u' + D^T w:

    derivatives of what is integrated as such, the others as new unknowns w, one for each equation that ties them (P.
    Kunkel and V. Mehrmann, Math. Control Signals Systems 16, 2004; for mechanisms (7.13) in L. Wunderlich's thesis on
    second-order DAEs). Dummy derivatives have unknowns for all of them, and equations :math:`S (u' - \dot u) = 0`. The
    unknowns w mean something else where another selection is taken; the method then begins anew.
    """

    by = "minimal extension"
    unknowns_stay = False

    @cached_property
    def _extended(self) -> list[Block]:
        """The blocks whose derivatives are partly replaced."""
        return [block for block in self.blocks if block.rows and block.free and all(map(self._is_new, block.targets))]

    def _without(self) -> Collection[int]:
        return {*self._slope_of, *(target for block in self._extended for target in block.targets)}

    def _further_unknowns(self) -> list[tuple[str, int]]:
        likes = [target for block in self._extended for target in block.targets[: len(block.rows)]]
        return [(f"w[{k}]", target) for k, target in enumerate(likes)]

    def _write_unknowns(self, sheet: Sheet) -> None:
        for block in self._extended:
            rates = [sheet.rate(low) for low in block.columns]
            integrated = [sheet.data(len(rates)) for _ in range(block.free)]
            others = [sheet.data(len(rates)) for _ in block.rows]
            parts = [sheet.combination(rates, row) for row in integrated]
            parts += [sheet.further() for _ in block.rows]
            for target, factors in zip(block.targets, zip(*integrated, *others, strict=True), strict=True):
                sheet.nodes[target] = sheet.combination(parts, factors)

    def _relations(self, block: Block, sheet: Sheet) -> list[tuple[int, str]]:
        return [] if any(block is other for other in self._extended) else super()._relations(block, sheet)

    def _splits(self) -> list[tuple[Block, np.ndarray, np.ndarray]]:
        """For each of these blocks S and D."""
        rows = {id(block): rows for block, rows in zip(self.blocks, self.chosen, strict=True)}
        found = []
        for block in self._extended:
            selected = rows[id(block)]
            found.append((block, selected, np.eye(len(block.columns))[~np.any(selected != 0.0, axis=0)]))
        return found

    def _data(self) -> list[np.ndarray]:
        others = [
            rows.ravel()
            for block, rows in zip(self.blocks, self.chosen, strict=True)
            if block.rows and not any(block is other for other in self._extended)
        ]
        return [part.ravel() for _, s, d in self._splits() for part in (s, d)] + others

    def all_unknowns(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """u at points given by the unknowns of `problem` and their derivatives, one in each row."""
        u, first = super().all_unknowns(y, yp), self._inside.size
        for block, s, d in self._splits():
            w = y[:, first : first + len(d)]
            u[:, block.next_places] = yp[:, self.places(block.columns)] @ s.T @ s + w @ d
            first += len(d)
        return u

    def _own(self, u: np.ndarray) -> np.ndarray:
        return np.concatenate([u[self._inside], *(d @ u[block.next_places] for block, _, d in self._splits())])
