"""A machine as numbers at the output points of a solution, and models without functions that cannot be stored."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import GROUND, Frame
from daedal.multibody.constraints import Constraint
from daedal.multibody.forces import Force
from daedal.multibody.layout import Layout
from daedal.solution.machine_record import RecordedBody, RecordedEnergy, RecordedForce, RecordedJoint, RecordedMachine

_FRAME = (
    "t",
    "position",
    "orientation",
    "velocity",
    "angular_velocity",
    "acceleration",
    "angular_acceleration",
    "kinetic_energy",
)


def recorded(results: Any) -> RecordedMachine:
    """Bodies, joints, forces and energies of a solution at its output points, as far as they can be computed."""
    model = results.model
    names = [body.name for body in model.bodies]
    return RecordedMachine(
        str(getattr(model, "name", "") or ""),
        {name: _body(results, name) for name in (*names, GROUND)},
        {joint.name: _joint(results, joint.name) for joint in model.joints},
        {force.name: found for force in model.forces if (found := _force(results, force.name)) is not None},
        _energies(results),
    )


def _body(results: Any, name: str) -> RecordedBody:
    view = results.body(name)
    parts = {part: np.array(getattr(view, part), dtype=float) for part in _FRAME}
    count = parts["t"].size
    parts["orientation"] = np.broadcast_to(parts["orientation"], (count, 3, 3)).copy()
    center = np.zeros(3) if name == GROUND else np.array(view.body.center, dtype=float)
    return RecordedBody(**parts, local_center=center, name=name)


def _joint(results: Any, name: str) -> RecordedJoint:
    view = results.joint(name)
    force = torque = None
    try:
        force, torque = np.array(view.reaction.force), np.array(view.reaction.torque)
    except InvalidProblemError:  # other forces act than those of the model, or functions could not be stored
        pass
    return RecordedJoint(
        np.array(view.t), view.names, view.coordinates, view.rates, np.array(view.position), force, torque, name
    )


def _force(results: Any, name: str) -> RecordedForce | None:
    view = results.force(name)
    try:
        return RecordedForce(np.array(view.t), np.array(view.power), np.array(view.energy), name)
    except InvalidProblemError:
        return None


def _energies(results: Any) -> RecordedEnergy | None:
    try:
        energy = results.energy()
    except InvalidProblemError:
        return None
    return RecordedEnergy(np.array(energy.kinetic), np.array(energy.potential))


def without_functions(model: Any, layout: Layout) -> tuple[Any, Layout]:
    """A model and a layout that can be stored: forces and constraints that cannot be are replaced by their names."""
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
    except Exception:  # pickle raises various errors: AttributeError, TypeError, PicklingError, ...
        return False
    return True


def _refuse(what: str):
    raise InvalidProblemError(
        f"{what} has functions that could not be stored with the solution, so its forces are no longer available; "
        "evaluate them before storing the solution, or define these functions in a separate module"
    )


@dataclass(frozen=True, eq=False)
class ForceLeftBehind(Force):
    """Name of a force that could not be stored."""

    name: str
    frames: tuple[Frame, ...]
    joints: tuple[str, ...]
    initial: tuple[float, ...]

    @classmethod
    def of(cls, force: Force) -> ForceLeftBehind:
        return cls(force.name, tuple(force.frames), tuple(force.joints), tuple(force.initial))

    def apply(self, t, motion, loads):
        _refuse(f"force '{self.name}'")

    def energy(self, t, motion):
        _refuse(f"force '{self.name}'")


@dataclass(frozen=True, eq=False)
class ConstraintLeftBehind(Constraint):
    """Name and size of a constraint that could not be stored."""

    name: str
    frames: tuple[Frame, ...]
    sizes: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, constraint: Constraint, planar: bool) -> ConstraintLeftBehind:
        sizes = constraint.size(planar), constraint.velocity_size(planar)
        return cls(constraint.name, tuple(constraint.frames), sizes)

    def size(self, planar):
        return self.sizes[0]

    def velocity_size(self, planar):
        return self.sizes[1]

    def residual(self, t, motion):
        _refuse(f"constraint '{self.name}'")

    velocity_residual = residual
