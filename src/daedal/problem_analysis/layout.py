"""The order of equations and unknowns in which a structure is block-triangular, as all pictures of it show it."""

from __future__ import annotations

from dataclasses import dataclass

from daedal.structure.dulmage_mendelsohn import DulmageMendelsohn, Part
from daedal.structure.signature import Orders


@dataclass(frozen=True)
class Block:
    """A diagonal block: its first row and column in the picture, and what is in it.

    Attributes
    ----------
    row, column : int
        Where it begins.
    part : Part
        Its equations and unknowns.
    kind : str
        "square", "over" (more equations than unknowns) or "under".
    """

    row: int
    column: int
    part: Part
    kind: str


@dataclass(frozen=True)
class Layout:
    """A structure in block-triangular order.

    Attributes
    ----------
    rows, columns : list of int
        Equations and unknowns in the order in which they are shown.
    blocks : list of Block
        The diagonal blocks, in the order in which they can be solved.
    sigma : list of dict
        For each equation (not in the order of the picture) {unknown: highest derivative}.
    leading : list of dict
        The part of it that the system Jacobian consists of.
    matched : list of int
        The unknown that each equation determines, -1 if none.
    """

    rows: list[int]
    columns: list[int]
    blocks: list[Block]
    sigma: Orders
    leading: Orders
    matched: list[int]

    @classmethod
    def of(cls, parts: DulmageMendelsohn, sigma: Orders, leading: Orders) -> Layout:
        """What is overdetermined first, then the square blocks, each after those that it needs."""
        matched = [int(j) for j in parts.matching]
        rows, columns, blocks = list[int](), list[int](), list[Block]()
        named = [(parts.over, "over"), *((part, "square") for part in parts.blocks), (parts.under, "under")]
        for part, kind in named:
            if part.rows or part.columns:
                blocks.append(Block(len(rows), len(columns), part, kind))
                rows += part.rows
                paired = [matched[i] for i in part.rows if matched[i] >= 0]
                columns += paired + [j for j in part.columns if j not in set(paired)]
        return cls(rows, columns, blocks, sigma, leading, matched)

    def places(self) -> list[tuple[int, int, int, str]]:
        """All entries: row and column of the picture, order of the derivative, and "matched", "leading" or "other"."""
        row_of = {i: k for k, i in enumerate(self.rows)}
        column_of = {j: k for k, j in enumerate(self.columns)}
        found = []
        for i, entries in enumerate(self.sigma):
            for j, order in entries.items():
                kind = "matched" if self.matched[i] == j else "leading" if j in self.leading[i] else "other"
                found.append((row_of[i], column_of[j], order, kind))
        return found
