"""The equations of motion of a model as a mechanical system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.kernels.functions import CodedFunction
from daedal.multibody.closure import ACROSS, residuals
from daedal.multibody.coordinates import joint_velocities, lifted_force, lifted_mass, norms, parameter_masses
from daedal.multibody.dynamics import crba, rnea
from daedal.multibody.forces.force import Force
from daedal.multibody.kinematics import placement, velocities
from daedal.multibody.large import RecursiveCode, compiled_functions, large_machine
from daedal.multibody.layout import Layout
from daedal.multibody.motion import Loads, Motion, states_by_force
from daedal.multibody.results import Machine
from daedal.multibody.tree import ANY_ROTATION
from daedal.problems import MechanicalSystem

_OF_CONSTRAINT = ("constraint_jacobian", "constraint_t", "acceleration_bias")


@dataclass(frozen=True, eq=False)
class MultibodySystem(MechanicalSystem):
    """A mechanical system that knows the model that it was made of."""

    model: Any = None
    layout: Any = None

    @property
    def machine(self) -> Machine:
        """What a solution needs to speak of bodies and joints."""
        return Machine(self.model, self.layout)

    @property
    def typical_sizes(self) -> np.ndarray:
        """What coordinates are small beside: 1 for angles, the size of the machine for displacements."""
        return self.layout.typical_sizes

    @property
    def condition_sizes(self) -> np.ndarray:
        """What residuals of the constraints are small beside: 1 for products of axes, otherwise the machine's size."""
        layout = self.layout
        lengths = np.where(layout.closures.kind == ACROSS, 1.0, layout.length)
        n_norms = int(np.sum(layout.tree.turn == ANY_ROTATION))
        others = self.n_lambda - n_norms - lengths.size
        return np.concatenate([np.ones(n_norms), lengths, np.full(others, layout.length)])

    def replaced(self, **changes) -> MultibodySystem:
        """The same system with some of its arguments replaced.

        Compiled derivatives of the constraint go with it: they are as large as it was, and belong to no other.
        """
        if "constraint" in changes:
            derived = (name for name in _OF_CONSTRAINT if isinstance(getattr(self, name), CodedFunction))
            changes = dict.fromkeys(derived) | changes
        return super().replaced(**changes)  # type: ignore[return-value]

    def motion(self, q, v, r=()) -> Motion:
        """Where everything is and how it moves, to be asked as forces ask; `r` are the states of forces.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> rod = Body.rod("rod", length=2.0, mass=1.0)
        >>> system = Model(Revolute("pivot", ground, rod.start)).system()
        >>> print(system.motion([0.0], [3.0]).velocity(rod.end))
        [0. 6. 0.]
        """
        return motion_at(
            self.model.forces, self.layout, np.array(q, dtype=float), np.array(v, dtype=float), np.array(r)
        )


def motion_at(forces: Sequence[Force], layout: Layout, q, v, states) -> Motion:
    """Placement and velocities of all bodies, and the states of each force."""
    tree = layout.tree
    u = joint_velocities(tree, q, v) if layout.n_v < layout.n_q else v
    placed = placement(tree, q)
    return Motion(layout, q, u, placed, velocities(tree, placed, u), states_by_force(forces, states))


def system_of(model: Any, layout: Layout) -> MultibodySystem:
    """The equations of motion in the coordinates of a layout.

    Their functions are traced when they are solved; those of a large machine are compiled loops.
    """
    tree, closures = layout.tree, layout.closures
    forces = model.forces  # traced functions hold what they need, not the model with all that it remembers
    n_norms = int(np.sum(tree.turn == ANY_ROTATION))
    n_closures = closures.kind.size
    n_states = sum(len(element.initial) for element in forces)
    planar, others = layout.planar, layout.constraints
    n_others = sum(other.size(planar) for other in others)
    rolling = [other for other in others if other.velocity_size(planar)]
    n_rolling = sum(other.velocity_size(planar) for other in rolling)
    layout.remember()
    parameter_mass = parameter_masses(tree)

    def mass(t, q):
        matrix = crba(tree, placement(tree, q))
        return lifted_mass(tree, q, matrix, parameter_mass) if n_norms else matrix

    def force(t, q, v, states=()):
        motion = motion_at(forces, layout, q, v, states)
        loads = Loads(layout, motion.placed)
        for element in forces:
            element.apply(t, motion, loads)
        tau = loads.joint_forces - rnea(
            tree, motion.placed, motion.moving, np.zeros(layout.n_v), loads.forces, loads.torques
        )
        return lifted_force(tree, q, v, tau, parameter_mass) if n_norms else tau

    def state_rate(t, q, v, states):
        motion = motion_at(forces, layout, q, v, states)
        return [rate for element in forces for rate in element.state_rate(t, motion)]

    def constraint(t, q):
        placed = placement(tree, q)
        parts = [norms(tree, q)] if n_norms else []
        parts.append(residuals(closures, placed.r, placed.rotation))
        motion = Motion(layout, q, None, placed, None)
        for other in others:
            if other.size(planar):
                parts.append(np.array(other.residual(t, motion)))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def velocity_constraint(t, q, v):
        u = joint_velocities(tree, q, v) if n_norms else v
        placed = placement(tree, q)
        motion = Motion(layout, q, u, placed, velocities(tree, placed, u))
        return np.concatenate([np.array(other.velocity_residual(t, motion)) for other in rolling])

    n_constraints = n_norms + n_closures + n_others
    named = [other.name for other in others for _ in range(other.size(planar))]
    named += [other.name for other in rolling for _ in range(other.velocity_size(planar))]
    turning = [joint.name for joint in layout.topology.joints if joint.turn == ANY_ROTATION]
    functions: dict[str, Any] = {"mass": mass, "force": force, "constraint": constraint if n_constraints else None}
    large = large_machine(model, layout)
    if large is not None:
        functions = compiled_functions(large, {"force": force, "state_rate": state_rate})
    elif n_states:
        functions["state_rate"] = state_rate
    system = MultibodySystem(
        **functions,
        n_q=layout.n_q,
        n_constraints=n_constraints,
        n_r=n_states,
        velocity_constraint=velocity_constraint if n_rolling else None,
        n_velocity_constraints=n_rolling,
        names=layout.names,
        constraint_names=[*(f"norm of {name}" for name in turning), *_numbered([*layout.closing_joints, *named])],
        model=model,
        layout=layout,
    )
    if large is not None:
        object.__setattr__(system, "straight_line", RecursiveCode(large, functions))
    return system


def _numbered(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(f"{name}.{seen[name]}" if names.count(name) > 1 else name)
    return result
