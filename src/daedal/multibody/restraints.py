r"""Forces of constraints on bodies.

A constraint :math:`\phi` on the positions of bodies exerts :math:`-\phi_u^T \lambda` on them, with the derivative for
displacements and rotations of each body by itself. Constraints are functions, so the derivative is taken along
:math:`u + i h`: :math:`\phi_u = \mathrm{Im}\, \phi(u + i h) / h` without cancellation (Squire and Trapp 1998), or by
central differences where a function does not take complex numbers. Conditions on velocities are linear in them. What a
constraint says about coordinates of joints of the tree is a force on these.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.multibody.course import MotionHistory
from daedal.multibody.kinematics import Velocities
from daedal.multibody.motion import Motion
from daedal.multibody.tree import ANY_ROTATION

STEP, TINY = 1e-6, 1e-30
_TURNS = np.array(
    [[[0, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 0, 0], [-1, 0, 0]], [[0, -1, 0], [1, 0, 0], [0, 0, 0]]]
)


def restraint_forces(course: MotionHistory, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forces and torques (nt, n, 3) on bodies and forces (nt, n_v) on joints; their multipliers begin at `first`."""
    layout = course.layout
    n, nt = layout.tree.father.size, course.t.size
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
    except Exception:  # whatever a function of the user says to complex numbers, it gets real ones
        return (value(STEP) - value(-STEP)) / (2.0 * STEP)


def _single_speeds(layout: Any) -> list[tuple[int, int]]:
    """The coordinates of the tree whose rate is a velocity of its own, with the number of that velocity."""
    tree, pairs = layout.tree, []
    for j in range(tree.father.size):
        count = tree.first_v[j + 1] - tree.first_v[j] - (3 if tree.turn[j] == ANY_ROTATION else 0)
        pairs += [(int(tree.first_q[j] + k), int(tree.first_v[j] + k)) for k in range(count)]
    return pairs


def _of_velocities(course: MotionHistory, i: int, constraint: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same for conditions that are linear in velocities."""
    layout, placed = course.layout, course.placed[i]
    n = layout.tree.father.size

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
