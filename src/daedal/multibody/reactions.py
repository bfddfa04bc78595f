r"""Forces and torques in joints.

The joint that moves body j in the tree transmits the loads of the bodies from j outwards: by Newton and Euler,

.. math::

    F_j = \sum_{k \ge j} F^*_k, \quad F^*_k = m_k (\ddot r_k - g) - f_k, \qquad
    T_j = \sum_{k \ge j} \left( I_k \dot\omega_k + \omega_k \times I_k \omega_k - t_k + (r_k - r_j) \times F^*_k \right)

with all forces f and torques t on these bodies, including those of joints that close loops: :math:`-\phi_u^T \lambda`
of their conditions (2.44). This is the recursion of ``rnea`` before its projection onto the axes of the joints.

A constraint :math:`\phi` on the positions of bodies exerts :math:`-\phi_u^T \lambda` on them, with the derivative with
respect to displacements and rotations of each body. Constraints are given as functions, so the derivative is computed
by the complex step :math:`u + i h`: :math:`\phi_u = \mathrm{Im}\, \phi(u + i h) / h` without cancellation (Squire and
Trapp 1998), or by central differences if a function does not accept complex numbers. Conditions on velocities are
linear in them. Derivatives with respect to joint coordinates of the tree are generalised forces on these.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.multibody.body import Frame
from daedal.multibody.closure import gradients
from daedal.multibody.constraint import Thread
from daedal.multibody.joints import Joint, Screw
from daedal.multibody.kinematics import ANY_ROTATION, Velocities
from daedal.multibody.motion import Motion, MotionHistory


@dataclass(frozen=True)
class Wrench:
    """A force and a torque at each time, (nt, 3) each, in the axes of the ground; `about` is the reference point of the
    torque."""

    force: np.ndarray
    torque: np.ndarray
    about: np.ndarray

    def at(self, place: np.ndarray) -> Wrench:
        """This wrench with the torque about another point."""
        return Wrench(self.force, self.torque + np.cross(self.about - place, self.force), place)

    def __neg__(self) -> Wrench:
        return Wrench(-self.force, -self.torque, self.about)


class JointForces:
    """Reactions of the joints of a model during a motion."""

    def __init__(self, course: MotionHistory):
        self._course = course

    def of(self, joint: Joint) -> Wrench:
        """Force and torque of a joint on its second body, about the origin of the joint's frame on that body."""
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
        in_plane = np.array([1.0, 1.0, 0.0])  # out-of-plane reactions are undetermined in a planar model
        return Wrench(in_plane * wrench.force, (1.0 - in_plane) * wrench.torque, wrench.about)

    def _with_thread(self, wrench: Wrench, screw: Screw) -> Wrench:
        """Add the thread of a screw that closes a loop, a_z . d - s angle = 0, which a cylindrical joint lacks."""
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
        """Number of constraints on lengths of Euler parameters: they come first and exert no force."""
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
        """Loads on bodies, joint drives, and the result of :meth:`MotionHistory.transmitted` for these loads."""
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
        """Residual of the equations of motion with the forces of the model, relative to their largest term."""
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
        for j in range(tree.parent.size):
            for k in range(tree.first_v[j], tree.first_v[j + 1]):
                if np.any(driving[:, k]):
                    self._take_out(j, k, driving[:, k, None], force[:, j], torque[:, j])
        return force, torque

    def _take_out(self, j: int, k: int, drive: np.ndarray, force: np.ndarray, torque: np.ndarray):
        """Subtract the drive along velocity k of joint j, which is a force of the model, from `force` and `torque`."""
        axis = np.array([placed.angular[k] for placed in self._course.placed])
        if np.any(axis):
            torque -= drive * axis
            return
        along = drive * np.array([placed.slide[k] for placed in self._course.placed])
        force -= along
        torque += np.cross(np.array([placed.lever[j] for placed in self._course.placed]), along)


STEP, TINY = 1e-6, 1e-30
_TURNS = np.array(
    [[[0, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 0, 0], [-1, 0, 0]], [[0, -1, 0], [1, 0, 0], [0, 0, 0]]]
)


def restraint_forces(course: MotionHistory, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forces and torques (nt, n, 3) on bodies and forces (nt, n_v) on joints; their multipliers begin at `first`."""
    layout = course.layout
    n, nt = layout.tree.parent.size, course.t.size
    force, torque, drive = np.zeros((nt, n, 3)), np.zeros((nt, n, 3)), np.zeros((nt, layout.n_v))
    others, planar = layout.constraints, layout.planar
    sizes = [(other, other.size(planar), _of_positions) for other in others]
    sizes += [(other, other.velocity_size(planar), _of_velocities) for other in others]
    for other, size, rows_of in sizes:
        if not size:
            continue
        for i in range(nt):
            lam = course.multipliers[i, first : first + size]
            on_bodies, on_joints = rows_of(course, i, other)
            pulls = -np.tensordot(lam, on_bodies, 1)
            force[i] += pulls[:, :3]
            torque[i] += pulls[:, 3:]
            drive[i] -= lam @ on_joints
        first += size
    return force, torque, drive


def _of_positions(course: MotionHistory, i: int, constraint: Any) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives (m, n, 6) for displacements and rotations of bodies, and (m, n_v) for coordinates of joints."""
    layout, placed, q = course.layout, course.placed[i], course.q[i]

    def along(dr: Any = 0.0, turn: Any = 0.0, dq: Any = 0.0) -> np.ndarray:
        def value(h):
            moved = placed._replace(r=placed.r + h * dr, rotation=placed.rotation + h * turn)
            return np.array(constraint.residual(course.t[i], Motion(layout, q + h * dq, None, moved, None)))

        return _derivative(value)

    size, n = constraint.size(layout.planar), len(placed.r)
    bodies, joints = np.zeros((size, n, 6)), np.zeros((size, layout.n_v))
    for j in range(n):
        for k in range(3):
            bodies[:, j, k] = along(dr=_unit((n, 3), (j, k)))
            bodies[:, j, 3 + k] = along(turn=_unit((n, 1, 1), j) * (_TURNS[k] @ placed.rotation[j]))
    for column, speed in _single_speeds(layout):
        joints[:, speed] = along(dq=_unit(q.shape, column))
    return bodies, joints


def _unit(shape: tuple[int, ...], place: Any) -> np.ndarray:
    array = np.zeros(shape)
    array[place] = 1.0
    return array


def _derivative(value: Callable[[Any], np.ndarray]) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            return np.imag(value(1j * TINY)) / TINY
    except Exception:  # user functions may raise anything for complex numbers, in which case real numbers are used
        return (value(STEP) - value(-STEP)) / (2.0 * STEP)


def _single_speeds(layout: Any) -> list[tuple[int, int]]:
    """Coordinates of the tree whose rate is a velocity, with the index of that velocity."""
    tree, pairs = layout.tree, []
    for j in range(tree.parent.size):
        count = tree.first_v[j + 1] - tree.first_v[j] - (3 if tree.turn[j] == ANY_ROTATION else 0)
        pairs += [(int(tree.first_q[j] + k), int(tree.first_v[j] + k)) for k in range(count)]
    return pairs


def _of_velocities(course: MotionHistory, i: int, constraint: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same derivatives for conditions that are linear in velocities."""
    layout, placed = course.layout, course.placed[i]
    n = layout.tree.parent.size

    def value(linear, angular, speeds):
        moving = Velocities(linear, angular, np.zeros((n, 3)), np.zeros((n, 3)))
        motion = Motion(layout, course.q[i], speeds, placed, moving)
        return np.array(constraint.velocity_residual(course.t[i], motion))

    still = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(layout.n_v)
    at_rest = value(*still)
    bodies, joints = np.zeros((at_rest.size, n, 6)), np.zeros((at_rest.size, layout.n_v))
    for j in range(n):
        for k in range(3):
            bodies[:, j, k] = value(_unit((n, 3), (j, k)), *still[1:]) - at_rest
            bodies[:, j, 3 + k] = value(still[0], _unit((n, 3), (j, k)), still[2]) - at_rest
    for k in range(layout.n_v):
        joints[:, k] = value(*still[:2], _unit((layout.n_v,), k)) - at_rest
    return bodies, joints
