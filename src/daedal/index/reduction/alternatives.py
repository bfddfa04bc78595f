"""Index reduction methods other than dummy derivatives and the strangeness-free form."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.index.reduction.prolongation import LARGEST_DENSE, Block
from daedal.index.reduction.reduced_problem import EquationBuilder, ReducedProblem
from daedal.index.reduction.selection import PivotWatch, tangents
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations


class CoordinatePartitioning(ReducedProblem):
    r"""All equations with :math:`S\,(u' - \dot u) = 0`, the rows of S an orthonormal basis of the tangent space.

    Dummy derivatives are the special case of unit vectors as rows of S: they integrate some of the unknowns, while this
    method integrates combinations of them, along which the equations allow motion at the point at which S was computed.
    At this point dependent directions do not change with integrated ones, to first order; whether S must be updated
    less often depends on the problem. The price is matrices that are less sparse (R. A. Wehage and E. J. Haug, J. Mech.
    Design 104, 1982, 247-255, for mechanisms; N. K. Mani, E. J. Haug and K. E. Atkinson, J. Mech. Transm. 107, 1985,
    for the tangent space from singular values; F. A. Potra and W. C. Rheinboldt, Mech. Struct. Mach. 19, 1991). The
    dependent unknowns are determined implicitly by all equations, within the nonlinear systems of the method.
    """

    by = "coordinate partitioning"
    choice = staticmethod(tangents)


# --- Minimal extension: only derivatives determined by hidden constraints become additional unknowns -----------------


class MinimalExtensionProblem(ReducedProblem):
    r"""All equations, including hidden ones, in as few unknowns as possible.

    With the selection S of integrated unknowns and the rows D of the others, both unit vectors, the highest derivatives
    are

    .. math::

        \dot u = S^T S\,u' + D^T w:

    derivatives of integrated unknowns are used directly, the others are new unknowns w, one for each equation that
    relates them (P. Kunkel and V. Mehrmann, Math. Control Signals Systems 16, 2004; for mechanisms (7.13) in L.
    Wunderlich's thesis on second-order DAEs). The method of dummy derivatives has unknowns for all highest derivatives,
    and equations :math:`S (u' - \dot u) = 0`. The meaning of w depends on the selection; the method
    restarts when the selection changes.
    """

    by = "minimal extension"
    unknowns_stay = False

    @cached_property
    def _extended(self) -> list[Block]:
        """The blocks whose highest derivatives are replaced by unknowns w."""
        return [block for block in self.blocks if block.rows and block.free and all(map(self._is_new, block.targets))]

    def _without(self) -> Collection[int]:
        return {*self._slope_of, *(target for block in self._extended for target in block.targets)}

    def _further_unknowns(self) -> list[tuple[str, int]]:
        likes = [target for block in self._extended for target in block.targets[: len(block.rows)]]
        return [(f"w[{k}]", target) for k, target in enumerate(likes)]

    def _write_unknowns(self, sheet: EquationBuilder) -> None:
        for block in self._extended:
            rates = [sheet.rate(low) for low in block.columns]
            integrated = [sheet.data(len(rates)) for _ in range(block.free)]
            others = [sheet.data(len(rates)) for _ in block.rows]
            parts = [sheet.combination(rates, row) for row in integrated]
            parts += [sheet.further() for _ in block.rows]
            for target, factors in zip(block.targets, zip(*integrated, *others, strict=True), strict=True):
                sheet.nodes[target] = sheet.combination(parts, factors)

    def _relations(self, block: Block, sheet: EquationBuilder) -> list[tuple[int, str]]:
        return [] if any(block is other for other in self._extended) else super()._relations(block, sheet)

    def _splits(self) -> list[tuple[Block, np.ndarray, np.ndarray]]:
        """S and D for each block of `_extended`."""
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
        u, first = super().all_unknowns(y, yp), self._inside.size
        for block, s, d in self._splits():
            w = y[:, first : first + len(d)]
            u[:, block.next_places] = yp[:, self.places(block.columns)] @ s.T @ s + w @ d
            first += len(d)
        return u

    def _own(self, u: np.ndarray) -> np.ndarray:
        return np.concatenate([u[self._inside], *(d @ u[block.next_places] for block, _, d in self._splits())])


# --- All hidden constraints enforced by additional multipliers (Gear, Gupta and Leimkuhler) ---------------------------


class Stabilised(ReducedProblem):
    r"""A problem of any index as an index-2 problem that enforces all its constraints.

    Of the equations :math:`f_i^{(r)} = 0` of the prolonged system, those that determine the highest derivatives,
    :math:`r = c_i > 0`, are omitted: they are replaced by unknowns whose derivatives do not occur, such as the
    multipliers of mechanics. The remaining equations are constraints between integrated unknowns; the lower ones,
    :math:`r < c_i - 1`, would be redundant and get additional multipliers,

    .. math::

        u' = \dot u + A^T \mu,   \qquad   A = \partial f^{(r)} / \partial u,

    level by level, so that differentiating these constraints gives :math:`A A^T \mu = 0`: :math:`\mu` is zero on
    solutions, and otherwise measures the errors of a run (C. W. Gear, G. K. Gupta and B. Leimkuhler, J. Comput. Appl.
    Math. 12, 1985; Brenan, Campbell and Petzold, (2.5.10), theorems 2.5.1 and 2.5.2). For mechanisms this is the
    GGL formulation. A problem of index 2 is unchanged.
    """

    by = "stabilisation with additional multipliers"
    result_index = 2

    @cached_property
    def kept(self) -> list[tuple[int, int]]:
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
        """Whether the highest derivatives of the constraints of a block are also constraints."""
        return bool(block.rows) and block.equations[0][1] < self.prolongation.c[block.equations[0][0]] - 1

    def _untested(self) -> np.ndarray:
        """Mask of the variables of index 2: multipliers, and unknowns whose derivatives do not occur."""
        return self.is_highest[self._like] | (np.arange(self._like.size) >= self._inside.size)

    def _relations(self, block: Block, sheet: EquationBuilder) -> list[tuple[int, str]]:
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


# --- Integrating the differentiated equations, with projection of every accepted step onto all constraints -----------


class Projection(ReducedProblem):
    r"""The overdetermined system of all equations: some are integrated, the others enforced by projection.

    The equations of highest order, :math:`f_i^{(c_i)} = 0`, are integrated with :math:`u' = \dot u` for all unknowns
    with derivatives. These equations have index 1, but their solutions drift off the constraints. After every accepted
    step u is projected onto all equations, including lower derivatives, along directions transverse to the tangent
    space, whose basis S is stored and updated as in coordinate partitioning (E. Eich, SIAM J. Numer. Anal. 30, 1993,
    1467-1482, on multistep methods with projection; L. F. Shampine, Comput. Math. Appl. 12B, 1986, on one-step
    methods).
    """

    by = "projection after every step"
    choice = staticmethod(tangents)

    @classmethod
    def checked(
        cls, original: Any, equations: SystemEquations, signature: StructuralSignature, *leading: Any
    ) -> ReducedProblem:
        """The reduced problem; raises an error if it is too large for dense matrices."""
        made = super().checked(original, equations, signature, *leading)
        if made.prolongation.n > LARGEST_DENSE:
            raise InvalidProblemError(
                f"projection after every step uses dense matrices of at most {LARGEST_DENSE} unknowns, and the "
                f"prolonged problem has {made.prolongation.n}. Remedy: use by='dummy_derivatives'."
            )
        return made

    @cached_property
    def kept(self) -> list[tuple[int, int]]:
        return [(i, r) for i, r in self.prolongation.kept if r == self.prolongation.c[i]]

    def _slopes_taken(self) -> dict[int, int]:
        return {}

    def _relations(self, block: Block, sheet: EquationBuilder) -> list[tuple[int, str]]:
        pairs = zip(block.columns, block.targets, strict=True)
        return [(sheet.difference(low, high), self._told(low, high)) for low, high in pairs]

    def _data(self) -> list[np.ndarray]:
        return []

    @property
    def fixed(self) -> np.ndarray:
        """The rows S of all blocks; the projection preserves their values."""
        return self._fixed[0]

    def watch(self) -> Any:
        """The hook called after every accepted step of a run, with its own memory."""
        return ProjectingWatch(self)


class ProjectingWatch:
    """A hook that projects every accepted step and monitors the selection, which may change between segments."""

    def __init__(self, reduced: Projection):
        from daedal.index.reduction.step_hooks import PROJECTING, projecting_hook
        from daedal.kernels.records import Record

        n = reduced.prolongation.n
        self._watch = PivotWatch(reduced) if reduced.tied else None
        self._equations = reduced.constraints.record()
        self.scale = np.zeros(n) if self._watch is None else self._watch.scale
        self._fixed = np.zeros((n - reduced.constraints.m, n))
        hook, record = (None, None) if self._watch is None else self._watch.hook
        self._record = Record.allocated(
            PROJECTING,
            equations=self._equations,
            fixed=self._fixed,
            scale=self.scale,
            watch=0 if hook is None else hook.address,
            watch_record=0 if record is None else record.address,
        )
        self._reduced = reduced  # owner of the machine code
        self.hook: tuple[Any, Any] = projecting_hook, self._record

    def begin(self, reduced: Projection, scale: np.ndarray, limit: float) -> None:
        """Use the selection of `reduced` from now on; `scale` are the sizes of the unknowns so far."""
        self._fixed[:] = reduced.fixed
        reduced.constraints.give_numbers(self._equations)
        self.scale[:] = scale
        if self._watch is not None:
            self._watch.begin(reduced, scale, limit)
