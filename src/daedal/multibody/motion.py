"""Interface between forces and machines: motion of frames and joints, and loads on bodies and joints."""

from __future__ import annotations

import numpy as np

from daedal.common.messages import unknown_name
from daedal.multibody.joint_coordinates import angle_name, coordinate_of
from daedal.multibody.kinematics import ABOUT_Z_AND_Y, cross


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

        `which` is "angle", "displacement", "second_angle", "x", ...; required for joints with several. Angles count
        turns in the plane, at joints of the tree, and at joints that constraints refer to; other angles in space are
        between -pi and pi.
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
        """A force on the origin of a frame."""
        body = self._layout.index[frame.body.name]
        if body < 0:
            return
        arm = self._placed.rotation[body] @ (frame.position - frame.body.center)
        self.forces[body] += vector
        self.torques[body] += cross(arm, vector)

    def torque(self, frame, vector):
        """A torque on the body of a frame."""
        body = self._layout.index[frame.body.name]
        if body >= 0:
            self.torques[body] += vector

    def joint(self, joint, value, which=None):
        """A torque or a force along a joint coordinate: on the second body, with the reaction on the first."""
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
