"""The motion of all bodies over time, from which bodies, joints and forces of a solution are evaluated."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from daedal.multibody.body import Frame
from daedal.multibody.coordinates import joint_velocities
from daedal.multibody.dynamics import transmission
from daedal.multibody.kinematics import placement, velocities
from daedal.multibody.layout import Layout
from daedal.multibody.motion import Loads, Motion, states_by_force


class MotionHistory:
    """Coordinates, velocities, accelerations and multipliers at given times, and quantities of bodies and frames.

    Parameters
    ----------
    model, layout : Model, Layout
        The machine and its coordinates.
    t : numpy.ndarray, shape (nt,)
        The times.
    q, v : numpy.ndarray, shape (nt, n_q)
        Coordinates and their rates, in rows.
    r : numpy.ndarray, shape (nt, n_r)
        States of forces, in rows.
    rest : function
        Returns an object with accelerations `a` (n_q, nt) and multipliers `lam` (n_lambda, nt).
    inputs : function, optional
        ``inputs(t)`` returns the inputs of the model by name.
    is_single : bool
        Whether a single time was requested, so that results have no time axis.
    """

    def __init__(
        self, model: Any, layout: Layout, t, q, v, r, rest: Callable, inputs: Any = None, *, is_single: bool = False
    ):
        self.model, self.layout, self.is_single = model, layout, is_single
        self.t, self.q, self.v, self.r = t, np.ascontiguousarray(q), np.ascontiguousarray(v), r
        self._rest, self._inputs = rest, inputs

    # --- all bodies of the tree, for each time ----------------------------------------------------------------------

    @cached_property
    def _solved(self) -> Any:
        return self._rest()

    @property
    def multipliers(self) -> np.ndarray:
        """Multipliers of the constraints, in rows."""
        return self._solved.lam.T

    @cached_property
    def speeds(self) -> np.ndarray:
        """Velocities of the tree joints, in rows."""
        return np.array([joint_velocities(self.layout.tree, q, v) for q, v in zip(self.q, self.v)])

    @cached_property
    def placed(self) -> list:
        """Positions of the bodies."""
        return [placement(self.layout.tree, q) for q in self.q]

    @cached_property
    def moving(self) -> list:
        """Velocities of the bodies."""
        return [velocities(self.layout.tree, placed, u) for placed, u in zip(self.placed, self.speeds)]

    @cached_property
    def accelerating(self) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations of the centres of mass and angular accelerations, (nt, n, 3)."""
        still = np.zeros((self.t.size, self.layout.tree.parent.size, 3))
        linear, angular, *_ = self.transmitted(still, still)
        return linear, angular

    def transmitted(self, force: np.ndarray, torque: np.ndarray) -> tuple[np.ndarray, ...]:
        """Accelerations, reactions of the tree joints on bodies, and reaction components along joint velocities."""
        tree, rates = self.layout.tree, np.ascontiguousarray(self._solved.a.T)
        found = [
            transmission(tree, placed, moving, joint_velocities(tree, q, a), *loads)  # (N q')' = N q'', since N' q' = 0
            for placed, moving, q, a, *loads in zip(self.placed, self.moving, self.q, rates, force, torque)
        ]
        return tuple(np.array(kind) for kind in zip(*found))

    @cached_property
    def centers(self) -> np.ndarray:
        """Centres of mass, (nt, n, 3)."""
        return np.array([placed.r for placed in self.placed])

    @cached_property
    def rotations(self) -> np.ndarray:
        """Matrices from the axes of the bodies to those of the ground, (nt, n, 3, 3)."""
        return np.array([placed.rotation for placed in self.placed])

    @cached_property
    def center_velocities(self) -> np.ndarray:
        """Velocities of the centres of mass, (nt, n, 3)."""
        return np.array([moving.linear for moving in self.moving])

    @cached_property
    def angular_velocities(self) -> np.ndarray:
        """Angular velocities, (nt, n, 3)."""
        return np.array([moving.angular for moving in self.moving])

    @cached_property
    def kinetic_energies(self) -> np.ndarray:
        """Kinetic energy of each body, (nt, n)."""
        speed, spin = self.center_velocities, self.angular_velocities
        own = np.einsum("tnji,tnj->tni", self.rotations, spin)  # spin in the axes of the bodies
        turning = np.einsum("tni,nij,tnj->tn", own, self.layout.tree.inertia, own)
        return 0.5 * (self.layout.tree.mass * np.sum(speed**2, axis=2) + turning)

    # --- frames on bodies -------------------------------------------------------------------------------------------

    def _of_body(self, values: np.ndarray, frame: Frame) -> np.ndarray:
        """The rows of a frame's body in `values`, (nt, 3); zero for the ground."""
        body = self.layout.index[frame.body.name]
        return np.zeros((self.t.size, 3)) if body < 0 else values[:, body]

    def rotation(self, frame: Frame) -> np.ndarray:
        """Matrices from the axes of the frame to those of the ground, (nt, 3, 3)."""
        body = self.layout.index[frame.body.name]
        if body < 0:
            return np.broadcast_to(frame.rotation, (self.t.size, 3, 3))
        return self.rotations[:, body] @ frame.rotation

    def _arm(self, frame: Frame) -> np.ndarray:
        place = frame.position - frame.body.center
        return self.rotation(Frame(frame.body)) @ place

    def position(self, frame: Frame) -> np.ndarray:
        """Position of the frame's origin, (nt, 3)."""
        return self._of_body(self.centers, frame) + self._arm(frame)

    def angular_velocity(self, frame: Frame) -> np.ndarray:
        """Angular velocity of the frame, (nt, 3)."""
        return self._of_body(self.angular_velocities, frame)

    def velocity(self, frame: Frame) -> np.ndarray:
        """Velocity of the frame's origin, (nt, 3)."""
        return self._of_body(self.center_velocities, frame) + np.cross(self.angular_velocity(frame), self._arm(frame))

    def angular_acceleration(self, frame: Frame) -> np.ndarray:
        """Angular acceleration of the frame, (nt, 3)."""
        return self._of_body(self.accelerating[1], frame)

    def acceleration(self, frame: Frame) -> np.ndarray:
        """Acceleration of the frame's origin, (nt, 3)."""
        arm, spin = self._arm(frame), self.angular_velocity(frame)
        turning = np.cross(self.angular_acceleration(frame), arm) + np.cross(spin, np.cross(spin, arm))
        return self._of_body(self.accelerating[0], frame) + turning

    # --- forces -----------------------------------------------------------------------------------------------------

    def loads(self, forces) -> list[Loads]:
        """Loads of `forces` on the bodies at each time."""
        found = []
        for i, placed in enumerate(self.placed):
            loads, motion = Loads(self.layout, placed), self.motion(i)
            for force in forces:
                force.apply(self.t[i], motion, loads)
            found.append(loads)
        return found

    def on_bodies(self, loads: list[Loads]) -> tuple[np.ndarray, np.ndarray]:
        """Forces and torques (nt, n, 3) on the centres of mass, with the loads along joint coordinates."""
        tree = self.layout.tree
        force, torque = np.array([load.forces for load in loads]), np.array([load.torques for load in loads])
        for i, (load, placed) in enumerate(zip(loads, self.placed)):
            for j in range(tree.parent.size):
                for k in range(tree.first_v[j], tree.first_v[j + 1]):
                    if load.joint_forces[k] == 0.0:
                        continue
                    twist = load.joint_forces[k] * placed.angular[k]
                    pull = np.zeros(3) if np.any(twist) else load.joint_forces[k] * placed.slide[k]
                    force[i, j] += pull
                    torque[i, j] += twist - np.cross(placed.lever[j], pull)
                    if tree.parent[j] >= 0:
                        force[i, tree.parent[j]] -= pull
                        torque[i, tree.parent[j]] -= twist + np.cross(placed.arm[j] - placed.lever[j], pull)
        return force, torque

    def motion(self, i: int) -> Motion:
        """The motion at the time with index i, in the form used by forces."""
        states = states_by_force(self.model.forces, self.r[i])
        inputs = None if self._inputs is None else self._inputs(self.t[i])
        return Motion(self.layout, self.q[i], self.speeds[i], self.placed[i], self.moving[i], states, inputs)

    # --- shapes of results --------------------------------------------------------------------------------------------

    def values(self, rows: np.ndarray) -> Any:
        """One entry per time, or a single entry if a single time was requested."""
        return rows[0] if self.is_single else rows

    def columns(self, rows: np.ndarray) -> np.ndarray:
        """Vectors (n, nt), or a single vector if a single time was requested."""
        return rows[0] if self.is_single else rows.T
