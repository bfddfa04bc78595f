"""The differentiated equations integrated, and every accepted step projected onto all constraints."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.index.reduction.constraints import LARGEST_DENSE
from daedal.index.reduction.prolongation import Block
from daedal.index.reduction.reduced import ReducedProblem
from daedal.index.reduction.selection import tangents
from daedal.index.reduction.sheet import Sheet
from daedal.index.reduction.watch import PivotWatch
from daedal.index.structure.equations import SystemEquations
from daedal.index.structure.signature import StructuralSignature


class Projection(ReducedProblem):
    r"""The overdetermined system of all equations: some are integrated, the others hold by projection.

    Integrated are the equations as often differentiated as possible, :math:`f_i^{(c_i)} = 0`, together with
    :math:`u' = \dot u` for all unknowns that have derivatives: index 1, but of solutions of these equations alone the
    constraints drift off. After every accepted step u is brought back to all equations, lower derivatives included,
    along the directions across the tangent space, of which a basis S is kept and exchanged as by coordinate
    partitioning (E. Eich, SIAM J. Numer. Anal. 30, 1993, 1467-1482, on multistep methods with projection; L. F.
    Shampine, Comput. Math. Appl. 12B, 1986, on one-step methods).
    """

    by = "projection after every step"
    choice = staticmethod(tangents)

    @classmethod
    def checked(
        cls, original: Any, equations: SystemEquations, signature: StructuralSignature, *leading: Any
    ) -> ReducedProblem:
        """The problem reduced; refused where it is too large for dense matrices."""
        made = super().checked(original, equations, signature, *leading)
        if made.prolongation.n > LARGEST_DENSE:
            raise InvalidProblemError(
                f"projection after every step works with dense matrices of at most {LARGEST_DENSE} unknowns, and the "
                f"prolonged problem has {made.prolongation.n}. Remedy: take by='dummy_derivatives'."
            )
        return made

    @cached_property
    def kept(self) -> list[tuple[int, int]]:
        """The equations of `problem` among those given and their derivatives."""
        return [(i, r) for i, r in self.prolongation.kept if r == self.prolongation.c[i]]

    def _slopes_taken(self) -> dict[int, int]:
        return {}

    def _relations(self, block: Block, sheet: Sheet) -> list[tuple[int, str]]:
        pairs = zip(block.columns, block.targets, strict=True)
        return [(sheet.difference(low, high), self._told(low, high)) for low, high in pairs]

    def _data(self) -> list[np.ndarray]:
        return []

    @property
    def fixed(self) -> np.ndarray:
        """The rows S of all blocks, which stay as they are when u is projected."""
        return self._fixed[0]

    def watch(self) -> Any:
        """What is called after every accepted step of a run, with memory of its own."""
        return ProjectingWatch(self)


class ProjectingWatch:
    """Projection after every accepted step of a run, and the watch over the selection.

    Parameters
    ----------
    reduced : Projection
        Its selection may change from segment to segment; its blocks do not.
    """

    def __init__(self, reduced: Projection):
        from daedal.index.reduction.projecting import PROJECTING, projecting_hook
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
        self._reduced = reduced  # whose machine code is called
        self.hook: tuple[Any, Any] = projecting_hook, self._record

    def begin(self, reduced: Projection, scale: np.ndarray, limit: float) -> None:
        """Project with a selection; `scale` are the sizes that the unknowns have had."""
        self._fixed[:] = reduced.fixed
        reduced.constraints.give_numbers(self._equations)
        self.scale[:] = scale
        if self._watch is not None:
            self._watch.begin(reduced, scale, limit)
