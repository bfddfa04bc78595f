"""Step, then project: the underlying ODE with every step brought back onto the constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.formulations.reduction import Reduction, Shape, Start, build


@dataclass(frozen=True)
class CoordinateProjection:
    r"""Integrate the underlying ODE and project after every step, Ascher and Petzold (4.16) to (4.20).

    The projected point is the nearest one in the norm of W: :math:`p = \tilde p - W^{-1} G^T (G W^{-1} G^T)^{-1} g`,
    then the same for the velocities. With backward Euler it is the projected invariants with
    :math:`D = W^{-1} G^T`.

    Parameters
    ----------
    weight : {"M", "I"} or matrix
        W: the mass matrix, the identity, or a given matrix.
    levels : int, optional
        1 projects positions only; by default positions and velocities.
    """

    weight: Any = "M"
    levels: int | None = None
    name = "projection"

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        from daedal.formulations.residuals import TOP_ACCELERATION
        from daedal.mechanics.manifold import projection_hook

        if self.levels is not None and self.levels not in range(1, assembly.m + 1):
            raise InvalidProblemError(f"levels must be 1 to {assembly.m}, got {self.levels!r}")
        hook = None
        if assembly.n_c:
            hook = (projection_hook, assembly.projector(self.weight, self.levels))
        return build(assembly, start, Shape(top=TOP_ACCELERATION), hook=hook)
