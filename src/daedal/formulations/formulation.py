"""What all formulations have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from daedal.formulations.shape import Shape

if TYPE_CHECKING:
    from daedal.formulations.reduction import Reduction
    from daedal.mechanics.start import Start


class Formulation:
    """A way to rewrite a constrained system before time is discretised: a frozen dataclass that declares its levels.

    A new one needs a `name` and :meth:`shape`; dense, sparse and second-order builders read the shape.
    """

    name: ClassVar[str]
    ordinary: ClassVar[bool] = False
    """Whether it is an ordinary differential equation, which explicit methods can solve."""
    half_explicit: bool = False
    """Whether it leaves the constraints to the stages of half-explicit methods."""
    stiff: ClassVar[bool] = False
    """Whether it is stiff by construction, so that an explicit method is not chosen for it."""

    def shape(self, system) -> Shape:
        """The declaration for a system: :class:`~daedal.formulations.shape.Sizes`, or an assembled one."""
        raise NotImplementedError

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system, ready for a run from `start`."""
        from daedal.mechanics.sparse.assembly import SparseAssembly

        shape = self.shape(assembly)
        if isinstance(assembly, SparseAssembly):
            from daedal.formulations.sparse_forms import SparseReduction

            return SparseReduction(self, shape, assembly, start)
        return self.dense(shape, assembly, start)

    def dense(self, shape: Shape, assembly, start: Start) -> Reduction:
        """The form with dense matrices."""
        from daedal.formulations.dense_forms import DenseReduction

        return DenseReduction(self, shape, assembly, start)
