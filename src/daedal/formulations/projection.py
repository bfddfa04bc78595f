"""Step, then project: the underlying ODE with every step brought back onto the constraints."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.formulations.formulation import Formulation
from daedal.formulations.shape import ACCELERATION, ProjectedSteps, Shape, level


def _is_integer(value) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@dataclass(frozen=True)
class CoordinateProjection(Formulation):
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
    ordinary = True

    def shape(self, system) -> Shape:
        """The underlying ODE, and the projection."""
        levels = self.levels
        if levels is not None and (not _is_integer(levels) or levels not in range(1, system.m + 1)):
            raise InvalidProblemError(f"levels must be 1 to {system.m}, got {self.levels!r}")
        return Shape(level(system.m, system.m), top=ACCELERATION, steps=ProjectedSteps(self.weight, levels))


@dataclass(frozen=True)
class VelocityConstraints(Formulation):
    r"""The index-2 form for half-explicit methods, which make :math:`G v + g_t = 0` hold at every stage themselves.

    Positions drift slowly and are projected now and then.

    Parameters
    ----------
    weight : {"M", "I"} or matrix
        The norm of the projection.
    projection : {"drift", "always", "never"}
        When to project.
    rtol, atol : float
        With "drift": distances from the constraints up to atol + rtol max |q| are left alone.
    """

    weight: Any = "M"
    projection: str = "drift"
    rtol: float = 5e-8
    atol: float = 5e-11
    name = "velocity_constraints"
    ordinary = True

    def shape(self, system) -> Shape:
        """The underlying ODE, whose steps are projected when their drift asks for it."""
        steps = None
        if self.projection != "never":
            watched = self.projection == "drift" and system.n_g
            steps = ProjectedSteps(self.weight, None, *((self.rtol, self.atol) if watched else ()))
        return Shape(level(system.m, system.m), top=ACCELERATION, steps=steps)
