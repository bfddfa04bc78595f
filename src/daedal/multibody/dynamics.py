r"""Forces from motions and masses from positions, body by body: ``rnea`` and ``crba``.

The equations of motion of a tree in the velocities of its joints are :math:`H(q) \dot u + C(q, u) = \tau`. The
recursive Newton-Euler algorithm (``rnea``) gives the forces :math:`\tau` for given accelerations, the
composite-rigid-body algorithm (``crba``) gives H. Both take what :mod:`daedal.multibody.kinematics` has computed.
"""

from typing import NamedTuple

import numpy as np

from daedal.kernels.compilation import entry, part
from daedal.kernels.signatures import void
from daedal.multibody.grouped import grouped
from daedal.multibody.kinematics import Placement, Velocities
from daedal.multibody.tree import BodyTree
from daedal.multibody.vectors import (
    MATRICES,
    ROWS,
    VECTOR,
    add,
    dot,
    minus,
    plus,
    product,
    put,
    row,
    times,
    transposed_product,
    vector_product,
)


class Sweep(NamedTuple):
    """What ``rnea`` finds on its way, in the axes of the ground."""

    linear: np.ndarray  # (n, 3) accelerations of the centres of mass
    angular: np.ndarray  # (n, 3) angular accelerations
    pull: np.ndarray  # (n, 3) force that the joint of a body exerts on it
    twist: np.ndarray  # (n, 3) its torque about the centre of mass


Sweep.kinds = (ROWS, ROWS, ROWS, ROWS)  # type: ignore[attr-defined]


class Composite(NamedTuple):
    """Bodies with all that they carry."""

    mass: np.ndarray  # (n,)
    moment: np.ndarray  # (n, 3) mass times the way from the body's centre to that of the composite
    inertia: np.ndarray  # (n, 3, 3) about the body's centre of mass


Composite.kinds = (VECTOR, ROWS, MATRICES)  # type: ignore[attr-defined]


@part
def moment_of_momentum(tree, placed, j, spin):
    """The moments of inertia of body j about its centre of mass, times a vector in the axes of the ground."""
    return product(placed.rotation, j, product(tree.inertia, j, transposed_product(placed.rotation, j, spin)))


@part
def world_inertia(tree, placed, j, target):
    """The moments of inertia of body j about its centre of mass, in the axes of the ground, into target[j]."""
    rotation, inertia = placed.rotation, tree.inertia
    for k in range(3):
        turned = product(inertia, j, (rotation[j, k, 0], rotation[j, k, 1], rotation[j, k, 2]))
        for l in range(k + 1):
            value = dot((rotation[j, l, 0], rotation[j, l, 1], rotation[j, l, 2]), turned)
            target[j, k, l] = value
            target[j, l, k] = value


def rnea(tree, placed, moving, accelerations, force, torque):
    """Generalised forces of the joints for given accelerations of the joints.

    `force` and `torque` (n, 3) act on the bodies at their centres of mass, in the axes of the ground, besides gravity.
    """
    return transmission(tree, placed, moving, accelerations, force, torque)[-1]


def transmission(tree, placed, moving, accelerations, force, torque):
    """The arrays of a :class:`Sweep`, and what ``rnea`` returns: their part along the velocities of the joints."""
    n, result = tree.father.size, np.zeros(tree.first_v[-1])
    sweep = Sweep(np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)))
    newton_euler(tree, placed, moving, accelerations, force, torque, sweep, result)
    return *sweep, result


@grouped
@entry(void(BodyTree, Placement, Velocities, VECTOR, ROWS, ROWS, Sweep, VECTOR))
def newton_euler(tree, placed, moving, accelerations, force, torque, sweep, result):
    """Both sweeps of ``rnea``."""
    n = tree.father.size
    linear, angular, pull, twist = sweep
    for j in range(n):
        i = tree.father[j]
        speeding, turning = row(moving.linear_bias, j), row(moving.angular_bias, j)
        if i >= 0:
            carried = row(angular, i)
            speeding = plus(speeding, plus(row(linear, i), vector_product(carried, row(placed.arm, j))))
            turning = plus(turning, carried)
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            speeding = plus(speeding, times(accelerations[k], row(placed.linear, k)))
            turning = plus(turning, times(accelerations[k], row(placed.angular, k)))
        put(linear, j, speeding)
        put(angular, j, turning)
        spin = row(moving.angular, j)
        # I w' + w x I w, in the axes of the body
        own_spin = transposed_product(placed.rotation, j, spin)
        own = plus(
            product(tree.inertia, j, transposed_product(placed.rotation, j, turning)),
            vector_product(own_spin, product(tree.inertia, j, own_spin)),
        )
        change = product(placed.rotation, j, own)
        put(pull, j, minus(times(tree.mass[j], minus(speeding, tree.gravity)), row(force, j)))
        put(twist, j, minus(change, row(torque, j)))
    for j in range(n - 1, -1, -1):
        i, carried, moment = tree.father[j], row(pull, j), row(twist, j)
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            result[k] = dot(row(placed.linear, k), carried) + dot(row(placed.angular, k), moment)
        if i >= 0:
            add(pull, i, carried)
            add(twist, i, plus(moment, vector_product(row(placed.arm, j), carried)))


def crba(tree, placed):
    """The mass matrix in the velocities of the joints."""
    n, n_v = tree.father.size, tree.first_v[-1]
    matrix = np.zeros((n_v, n_v))
    composite_bodies(tree, placed, Composite(np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3, 3))), matrix)
    return matrix


@grouped
@entry(void(BodyTree, Placement, Composite, ROWS))
def composite_bodies(tree, placed, composite, matrix):
    """Fill a matrix."""
    n = tree.father.size
    mass, moment, inertia = composite
    for k in range(tree.first_v[n]):
        for l in range(tree.first_v[n]):
            matrix[k, l] = 0.0
    for j in range(n):
        mass[j] = tree.mass[j]
        put(moment, j, (0.0, 0.0, 0.0))
        world_inertia(tree, placed, j, inertia)
    for j in range(n - 1, -1, -1):
        first, end = tree.first_v[j], tree.first_v[j + 1]
        heavy, lever = mass[j], row(moment, j)
        for k in range(first, end):
            linear, angular = row(placed.linear, k), row(placed.angular, k)
            pull = plus(times(heavy, linear), vector_product(angular, lever))
            twist = plus(product(inertia, j, angular), vector_product(lever, linear))
            for l in range(first, k + 1):
                matrix[k, l] = dot(row(placed.linear, l), pull) + dot(row(placed.angular, l), twist)
                matrix[l, k] = matrix[k, l]
            i = j
            while tree.father[i] >= 0:
                twist = plus(twist, vector_product(row(placed.arm, i), pull))
                i = tree.father[i]
                for l in range(tree.first_v[i], tree.first_v[i + 1]):
                    matrix[k, l] = dot(row(placed.linear, l), pull) + dot(row(placed.angular, l), twist)
                    matrix[l, k] = matrix[k, l]
        i = tree.father[j]
        if i >= 0:
            arm = row(placed.arm, j)
            mass[i] += heavy
            add(moment, i, plus(lever, times(heavy, arm)))
            # (parallel axes) of the composite about the father's centre: I - (m~ a~ + a~ m~) - m a~ a~
            trace = 2.0 * dot(lever, arm) + heavy * dot(arm, arm)
            for k in range(3):
                inertia[i, k, k] += trace
                for l in range(k + 1):
                    inertia[i, k, l] += inertia[j, k, l] - lever[k] * arm[l] - arm[k] * (lever[l] + heavy * arm[l])
                    inertia[i, l, k] = inertia[i, k, l]
