"""The motion of a machine at a time, as used by forces, the loads of forces, and the motion over time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.multibody.body import Frame
from daedal.multibody.dynamics import transmission
from daedal.multibody.joint_coordinates import angle_name, coordinate_of
from daedal.multibody.kinematics import ABOUT_Z_AND_Y, cross, joint_velocities, placement, velocities

if TYPE_CHECKING:
    from daedal.multibody.layout import Layout


class Motion:
    """Positions and velocities of frames and joints, as numbers or as symbols of a trace.

    Vectors are in the axes of the ground. Frames are passed as objects (``crank.end``), joints by name.
    """

    def __init__(self, layout, q, u, placed, moving, states=None, inputs=None):
        self.layout, self.placed, self.moving, self.speeds = layout, placed, moving, u
        self.q, self._states, self._inputs = q, {} if states is None else states, {} if inputs is None else inputs

    def position(self, frame):
        """Position of the frame's origin."""
        return _position(self.layout, self.placed, frame)

    def velocity(self, frame):
        """Velocity of the frame's origin."""
        body = self.layout.index[frame.body.name]
        if body < 0:
            return np.zeros(3)
        arm = self.placed.rotation[body] @ (frame.position - frame.body.center)
        return self.moving.linear[body] + cross(self.moving.angular[body], arm)

    def rotation(self, frame):
        """The matrix from the axes of the frame to those of the ground."""
        return _rotation(self.layout, self.placed, frame)

    def angular_velocity(self, frame):
        """Angular velocity of the frame."""
        body = self.layout.index[frame.body.name]
        return np.zeros(3) if body < 0 else self.moving.angular[body]

    def coordinate(self, joint, which=None):
        """A coordinate of a joint: rotation or displacement of its second body relative to its first.

        `which` is "angle", "displacement", "second_angle", "x", ...; required for joints with several coordinates.
        Angles count turns in the plane, at joints of the tree, and at joints that constraints refer to; other angles in
        space are between -pi and pi.
        """
        one = coordinate_of(self.layout, joint, which)
        if one.q >= 0:
            return self.q[one.q]
        if one.turns and angle_name(one) in self.layout.counted_angles:
            return self.layout.counted_angles[angle_name(one)].value(self.q)
        a, b = one.joint.frames
        axes = self.rotation(a)
        if not one.turns:
            return np.dot(axes[:, one.axis], self.position(b) - self.position(a))
        R = axes.T @ self.rotation(b)
        if one.second:
            return np.arctan2(-R[2, 0], R[2, 2])
        return np.arctan2(-R[0, 1], R[1, 1]) if one.joint.turn == ABOUT_Z_AND_Y else np.arctan2(R[1, 0], R[0, 0])

    def rate(self, joint, which=None):
        """Rate of a coordinate of a joint."""
        one = coordinate_of(self.layout, joint, which)
        if one.v >= 0:
            return self.speeds[one.v]
        a, b = one.joint.frames
        axis = _axis(self.layout, self.placed, one)
        if one.turns:
            return np.dot(axis, self.angular_velocity(b) - self.angular_velocity(a))
        carried = cross(self.angular_velocity(a), self.position(b) - self.position(a))
        return np.dot(axis, self.velocity(b) - self.velocity(a) - carried)

    def angle(self, joint):
        """The angle of a joint."""
        return self.coordinate(joint, "angle")

    def displacement(self, joint):
        """The displacement of a joint along its axis."""
        return self.coordinate(joint, "displacement")

    def parameter(self, name):
        """Value of a massless coordinate added by a constraint."""
        return self.q[self.layout.massless[name]]

    def turn(self, constraint):
        """The relative angle of the two bodies of a constraint in the plane."""
        return self.layout.turns[constraint].value(self.q)

    @property
    def planar(self):
        """Whether the model is planar."""
        return self.layout.planar

    def state(self, force):
        """The states of a force, which is given as an object or by name."""
        return self._states[getattr(force, "name", force)]

    def input(self, name):
        """An input of the model: a number or a vector."""
        if name not in self._inputs:
            raise unknown_name(name, self._inputs, "input")
        return self._inputs[name]


class Loads:
    """Forces and torques on the centres of mass, in the axes of the ground, and on the joints of the tree."""

    def __init__(self, layout, placed):
        n = layout.tree.parent.size
        self._layout, self._placed = layout, placed
        self.forces, self.torques = np.zeros((n, 3)), np.zeros((n, 3))
        self.joint_forces = np.zeros(layout.n_v)

    def force(self, frame, vector):
        """Add a force at the origin of a frame."""
        body = self._layout.index[frame.body.name]
        if body < 0:
            return
        arm = self._placed.rotation[body] @ (frame.position - frame.body.center)
        self.forces[body] += vector
        self.torques[body] += cross(arm, vector)

    def torque(self, frame, vector):
        """Add a torque on the body of a frame."""
        body = self._layout.index[frame.body.name]
        if body >= 0:
            self.torques[body] += vector

    def joint(self, joint, value, which=None):
        """Add a torque or a force along a joint coordinate: on the second body, with the reaction on the first."""
        one = coordinate_of(self._layout, joint, which)
        if one.v >= 0:
            self.joint_forces[one.v] += value
            return
        a, b = one.joint.frames
        vector = value * _axis(self._layout, self._placed, one)
        if one.turns:
            self.torque(b, vector)
            self.torque(a, -vector)
            return
        self.force(b, vector)
        self.force(a, -vector)
        d = _position(self._layout, self._placed, b) - _position(self._layout, self._placed, a)
        self.torque(a, -cross(d, vector))

    def power(self, motion):
        """The power of these loads in a motion."""
        moving = motion.moving
        bodies = np.sum(self.forces * moving.linear) + np.sum(self.torques * moving.angular)
        return bodies + np.sum(self.joint_forces * motion.speeds)


def states_by_force(forces, states) -> dict:
    """Split the vector of all states into those of each force, by name."""
    own, first = {}, 0
    for force in forces:
        if force.initial:
            own[force.name] = states[first : first + len(force.initial)]
            first += len(force.initial)
    return own


def power_of(force, t, motion) -> float:
    """The power of all loads of a force."""
    loads = Loads(motion.layout, motion.placed)
    force.apply(t, motion, loads)
    return float(loads.power(motion))


def _position(layout, placed, frame):
    body = layout.index[frame.body.name]
    place = frame.position - frame.body.center
    return place if body < 0 else placed.r[body] + placed.rotation[body] @ place


def _rotation(layout, placed, frame):
    body = layout.index[frame.body.name]
    return frame.rotation if body < 0 else placed.rotation[body] @ frame.rotation


def _axis(layout, placed, one):
    return _rotation(layout, placed, one.joint.frames[1 if one.second else 0])[:, one.axis]


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
