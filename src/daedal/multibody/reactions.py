r"""Forces and torques in joints.

The joint that moves body j in the tree carries what the bodies from j outwards need: by Newton and Euler,

.. math::

    F_j = \sum_{k \ge j} F^*_k, \quad F^*_k = m_k (\ddot r_k - g) - f_k, \qquad
    T_j = \sum_{k \ge j} \left( I_k \dot\omega_k + \omega_k \times I_k \omega_k - t_k + (r_k - r_j) \times F^*_k \right)

with all forces f and torques t on these bodies, those of joints that close loops among them:
:math:`-\phi_u^T \lambda` of their conditions (2.44). This is the recursion of ``rnea`` before its projection onto the
axes of the joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from daedal.multibody.body import Frame
from daedal.multibody.closure import gradients
from daedal.multibody.constraints.couplings import Thread
from daedal.multibody.course import MotionHistory
from daedal.multibody.joints import Joint, Screw
from daedal.multibody.restraints import restraint_forces
from daedal.multibody.tree import ANY_ROTATION


@dataclass(frozen=True)
class Wrench:
    """A force and a torque at each time, (nt, 3) each, in the axes of the ground; the torque about `about`."""

    force: np.ndarray
    torque: np.ndarray
    about: np.ndarray

    def at(self, place: np.ndarray) -> Wrench:
        """The same with the torque about another point."""
        return Wrench(self.force, self.torque + np.cross(self.about - place, self.force), place)

    def __neg__(self) -> Wrench:
        return Wrench(-self.force, -self.torque, self.about)


class JointForces:
    """What the joints of a model carry in the course of a motion."""

    def __init__(self, course: MotionHistory):
        self._course = course

    def of(self, joint: Joint) -> Wrench:
        """What a joint exerts on its second body, about its frame there."""
        course, layout = self._course, self._course.layout
        number = layout.number_in_tree(joint)
        if number is not None:
            force, torque = self._carried
            wrench = Wrench(force[:, number], torque[:, number], course.centers[:, number])
            wrench = -wrench if layout.topology.reversed[number] else wrench
        else:
            own = [i for i, name in enumerate(layout.closing_joints) if name == joint.name]
            force, torque = self._closing
            center = course.position(Frame(joint.b.body, joint.b.body.center))
            wrench = Wrench(force[:, own, 1].sum(axis=1), torque[:, own, 1].sum(axis=1), center)
        wrench = wrench.at(course.position(joint.b))
        if number is None and isinstance(joint, Screw):
            wrench = self._with_thread(wrench, joint)
        if not layout.planar:
            return wrench
        in_plane = np.array([1.0, 1.0, 0.0])  # a model of the plane says nothing about what holds it there
        return Wrench(in_plane * wrench.force, (1.0 - in_plane) * wrench.torque, wrench.about)

    def _with_thread(self, wrench: Wrench, screw: Screw) -> Wrench:
        """Besides a cylindrical joint, a screw that closes a loop has a thread, a_z . d - s angle = 0."""
        layout, axes = self._course.layout, self._course.rotation(screw.a)[:, :, 2]
        first = self._norms + layout.closures.kind.size
        for other in layout.constraints:
            if isinstance(other, Thread) and other.name == screw.name:
                pull = self._course.multipliers[:, first, None] * axes
                return Wrench(wrench.force - pull, wrench.torque + screw.slides[0, 2] * pull, wrench.about)
            first += other.size(layout.planar)
        return wrench

    @property
    def _norms(self) -> int:
        """How many constraints are lengths of Euler parameters: they come first and pull at no body."""
        return int(np.sum(self._course.layout.tree.turn == ANY_ROTATION))

    @cached_property
    def _closing(self) -> tuple[np.ndarray, np.ndarray]:
        r""":math:`-\phi_u^T \lambda` of each condition on its two bodies, (nt, m, 2, 3); torques about the centres."""
        course, closures = self._course, self._course.layout.closures
        norms, count = self._norms, closures.kind.size
        rows = np.zeros((course.t.size, count, 2, 6))
        for row, placed in zip(rows, course.placed):
            row[:] = gradients(closures, placed.r, placed.rotation)
        weights = course.multipliers[:, norms : norms + count, None, None]
        return -weights * rows[..., :3], -weights * rows[..., 3:]

    @cached_property
    def _balance(self) -> tuple[np.ndarray, ...]:
        """Loads on bodies, what drives the joints, and what :meth:`MotionHistory.transmitted` makes of the loads."""
        course = self._course
        loads = course.loads(course.model.forces)
        force, torque, drive = restraint_forces(course, self._norms + course.layout.closures.kind.size)
        force += np.array([load.forces for load in loads])
        torque += np.array([load.torques for load in loads])
        pulls, twists = self._closing
        for i, bodies in enumerate(course.layout.closures.body):
            for side in (0, 1):
                if bodies[side] >= 0:
                    force[:, bodies[side]] += pulls[:, i, side]
                    torque[:, bodies[side]] += twists[:, i, side]
        driving = drive + np.array([load.joint_forces for load in loads])
        return force, torque, driving, *course.transmitted(force, torque)

    @property
    def imbalance(self) -> float:
        """What the forces of the model leave of the equations of motion, compared with the largest of them."""
        tree = self._course.layout.tree
        force, torque, driving, linear, angular, _, _, along = self._balance
        own = np.abs(force) + tree.mass[:, None] * (np.abs(linear) + np.abs(tree.gravity))
        turning = np.abs(torque) + np.abs(angular) * tree.inertia.max(axis=(1, 2))[:, None]
        arms = 1.0 + max(np.abs(placed.arm).max(initial=0.0) for placed in self._course.placed)
        size = arms * own.sum(axis=(1, 2)).max() + turning.sum(axis=(1, 2)).max() + np.abs(driving).max(initial=0.0)
        return float(np.abs(along - driving).max(initial=0.0) / (size or 1.0))

    @cached_property
    def _carried(self) -> tuple[np.ndarray, np.ndarray]:
        """Force and torque of each joint of the tree on its body, (nt, n, 3) each, about the centre of mass."""
        tree = self._course.layout.tree
        _, _, driving, _, _, force, torque, _ = self._balance
        for j in range(tree.father.size):
            for k in range(tree.first_v[j], tree.first_v[j + 1]):
                if np.any(driving[:, k]):
                    self._take_out(j, k, driving[:, k, None], force[:, j], torque[:, j])
        return force, torque

    def _take_out(self, j: int, k: int, drive: np.ndarray, force: np.ndarray, torque: np.ndarray):
        """What drives velocity k of joint j is a force of the model, not of the joint."""
        axis = np.array([placed.angular[k] for placed in self._course.placed])
        if np.any(axis):
            torque -= drive * axis
            return
        along = drive * np.array([placed.slide[k] for placed in self._course.placed])
        force -= along
        torque += np.cross(np.array([placed.lever[j] for placed in self._course.placed]), along)
