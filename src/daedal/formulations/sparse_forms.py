"""The builder of formulations with sparse matrices: what of a declaration has a sparse form, and its reduction."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.formulations.reduction import Reduction
from daedal.formulations.shape import Shape, Sizes
from daedal.mechanics.sparse.equations import SparseEquations
from daedal.mechanics.start import Start
from daedal.problems import ImplicitDAE, MechanicalSystem

if TYPE_CHECKING:
    from daedal.formulations.formulation import Formulation
    from daedal.mechanics.sparse.assembly import SparseAssembly

_KNOWN = "ggl (projection='GT'), index3, index2, index1, baumgarte"


def check_sparse(formulation: Formulation, system: MechanicalSystem):
    """Refuse a formulation that has no sparse form, before anything is computed."""
    n_c = system.n_constraints
    _check(type(formulation).__name__, formulation.shape(Sizes(2, n_c, n_c)))


def _check(title: str, shape: Shape):
    if shape.lowered:
        raise InvalidProblemError(f"multipliers='derivative' of {title} has no sparse form; leave it out")
    if not shape.by_levels:
        raise InvalidProblemError(f"{title} has no sparse form; formulations for sparse matrices: {_KNOWN}")
    if shape.low and not shape.along_gradients:
        raise InvalidProblemError("GGL has a sparse form with projection='GT' only: others would fill G")


class SparseReduction(Reduction):
    """A formulation in the unknowns of :mod:`daedal.mechanics.sparse.equations`."""

    def __init__(self, formulation: Formulation, shape: Shape, assembly: SparseAssembly, start: Start):
        _check(type(formulation).__name__, shape)
        self._stabilised = shape.low > 0 and assembly.n_c > 0
        self._equations = SparseEquations(assembly, shape.directed(start.direction), self._stabilised)
        super().__init__(formulation, shape, assembly, self._equations.n, assembly.n_state)
        self.begin(start)

    @cached_property
    def problem(self) -> ImplicitDAE:
        """F(t, y, y') = 0 with its sparse iteration matrix."""
        return ImplicitDAE(
            self._equations.residual,
            self.n,
            jacobian=self._equations.jacobian,
            sparsity=self._equations.blocks.pattern,
            algebraic=np.arange(self.n) >= self.n_state,
            names=self.names,
        )

    def choose(self, start: Start) -> None:
        """The sign of damping."""
        self._equations.levels = self.shape.directed(start.direction)

    def unknowns(self, start: Start) -> tuple[np.ndarray, np.ndarray]:
        """(q, v, lam, mu) and derivatives at a start."""
        y, yp = np.zeros(self.n), np.zeros(self.n)
        y[: self.n_state], yp[: self.n_state] = start.z, start.slope
        y[self.n_state : self.n_state + self.assembly.n_c] = start.lam
        return y, yp

    pack = None

    def _hand_over(self, usual_norms: Any) -> None:
        """Nothing is kept of a start."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        rows = self.row_labels
        names = [*self.assembly.state_names(), *[f"lam[{row}]" for row in rows]]
        return (*names, *[f"mu[{row}]" for row in rows if self._stabilised])
