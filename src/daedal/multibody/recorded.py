"""A machine as numbers at the output points of a solution, for files."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import GROUND
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
    """Bodies, joints, forces and energies of a solution at its output points; what cannot be computed is left out."""
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
    except InvalidProblemError:  # forces act that the model does not know, or functions were left behind
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
