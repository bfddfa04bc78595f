"""What remains of a model when a solution is stored: everything but functions that cannot be written to a file."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Frame
from daedal.multibody.constraints import Constraint
from daedal.multibody.forces import Force
from daedal.multibody.layout import Layout


def without_functions(model: Any, layout: Layout) -> tuple[Any, Layout]:
    """A model and a layout that can be stored; forces and constraints that cannot leave their names."""
    kept = copy(model)
    kept.forces = tuple(force if _can_be_stored(force) else ForceLeftBehind.of(force) for force in model.forces)
    kept.constraints = tuple(_kept(constraint, layout.planar) for constraint in model.constraints)
    return kept, replace(
        layout, constraints=tuple(_kept(constraint, layout.planar) for constraint in layout.constraints)
    )


def _kept(constraint: Any, planar: bool) -> Constraint:
    return constraint if _can_be_stored(constraint) else ConstraintLeftBehind.of(constraint, planar)


def _can_be_stored(part: Any) -> bool:
    try:
        pickle.dumps(part)
    except Exception:  # pickle has no error of its own for this: AttributeError, TypeError, PicklingError, ...
        return False
    return True


def _refuse(what: str):
    raise InvalidProblemError(
        f"{what} has functions that could not be stored with the solution, so that forces are no longer known; ask for "
        "them before it is stored, or define these functions in a module of their own"
    )


@dataclass(frozen=True, eq=False)
class ForceLeftBehind(Force):
    """The name of a force that could not be stored."""

    name: str
    frames: tuple[Frame, ...]
    joints: tuple[str, ...]
    initial: tuple[float, ...]

    @classmethod
    def of(cls, force: Force) -> ForceLeftBehind:
        """What is kept of a force."""
        return cls(force.name, tuple(force.frames), tuple(force.joints), tuple(force.initial))

    def apply(self, t, motion, loads):
        """Refused."""
        _refuse(f"force '{self.name}'")

    def energy(self, t, motion):
        """Refused."""
        _refuse(f"force '{self.name}'")


@dataclass(frozen=True, eq=False)
class ConstraintLeftBehind(Constraint):
    """The name and the size of a constraint that could not be stored."""

    name: str
    frames: tuple[Frame, ...]
    sizes: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, constraint: Constraint, planar: bool) -> ConstraintLeftBehind:
        """What is kept of a constraint."""
        sizes = constraint.size(planar), constraint.velocity_size(planar)
        return cls(constraint.name, tuple(constraint.frames), sizes)

    def size(self, planar):
        """As it was."""
        return self.sizes[0]

    def velocity_size(self, planar):
        """As it was."""
        return self.sizes[1]

    def residual(self, t, motion):
        """Refused."""
        _refuse(f"constraint '{self.name}'")

    velocity_residual = residual
