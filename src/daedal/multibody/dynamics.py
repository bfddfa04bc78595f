r"""Forces from motions and masses from positions, body by body: ``rnea`` and ``crba``.

The equations of motion of a tree in the velocities of its joints are :math:`H(q) \dot u + C(q, u) = \tau`. The
recursive Newton-Euler algorithm (``rnea``) gives the forces :math:`\tau` for given accelerations, the
composite-rigid-body algorithm (``crba``) gives H. Both take what :mod:`daedal.multibody.kinematics` has computed.
"""

import numpy as np

from daedal.kernels.compilation import kernel
from daedal.multibody.kinematics import cross


@kernel
def world_inertia(tree, placed, j):
    """The moments of inertia of body j about its centre of mass, in the axes of the ground."""
    turn = placed.rotation[j]
    return turn @ tree.inertia[j] @ turn.T


@kernel
def rnea(tree, placed, moving, accelerations, force, torque):
    """Generalised forces of the joints for given accelerations of the joints.

    `force` and `torque` (n, 3) act on the bodies at their centres of mass, in the axes of the ground, besides gravity.
    """
    n = tree.father.size
    linear, angular = np.zeros((n, 3)), np.zeros((n, 3))
    pull, twist = np.zeros((n, 3)), np.zeros((n, 3))
    result = np.zeros(tree.first_v[-1])
    for j in range(n):
        i = tree.father[j]
        linear[j] = moving.linear_bias[j]
        angular[j] = moving.angular_bias[j]
        if i >= 0:
            linear[j] += linear[i] + cross(angular[i], placed.arm[j])
            angular[j] += angular[i]
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            linear[j] += placed.linear[k] * accelerations[k]
            angular[j] += placed.angular[k] * accelerations[k]
        inertia = world_inertia(tree, placed, j)
        spin = moving.angular[j]
        pull[j] = tree.mass[j] * (linear[j] - tree.gravity) - force[j]
        twist[j] = inertia @ angular[j] + cross(spin, inertia @ spin) - torque[j]
    for j in range(n - 1, -1, -1):
        i = tree.father[j]
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            result[k] = np.dot(placed.linear[k], pull[j]) + np.dot(placed.angular[k], twist[j])
        if i >= 0:
            pull[i] += pull[j]
            twist[i] += twist[j] + cross(placed.arm[j], pull[j])
    return result


@kernel
def crba(tree, placed):
    """The mass matrix in the velocities of the joints."""
    n, n_v = tree.father.size, tree.first_v[-1]
    mass = np.zeros(n)  # of a body and all that it carries
    moment = np.zeros((n, 3))  # mass times the way from the body's centre to that of the composite
    inertia = np.zeros((n, 3, 3))  # of the composite about the body's centre of mass
    matrix = np.zeros((n_v, n_v))
    for j in range(n):
        mass[j] += tree.mass[j]
        inertia[j] += world_inertia(tree, placed, j)
    for j in range(n - 1, -1, -1):
        first, end = tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            pull = mass[j] * placed.linear[k] + cross(placed.angular[k], moment[j])
            twist = inertia[j] @ placed.angular[k] + cross(moment[j], placed.linear[k])
            for l in range(first, k + 1):
                matrix[k, l] = np.dot(placed.linear[l], pull) + np.dot(placed.angular[l], twist)
                matrix[l, k] = matrix[k, l]
            i = j
            while tree.father[i] >= 0:
                twist = twist + cross(placed.arm[i], pull)
                i = tree.father[i]
                for l in range(tree.first_v[i], tree.first_v[i + 1]):
                    matrix[k, l] = np.dot(placed.linear[l], pull) + np.dot(placed.angular[l], twist)
                    matrix[l, k] = matrix[k, l]
        i = tree.father[j]
        if i >= 0:
            arm = placed.arm[j]
            whole = moment[j] + mass[j] * arm
            mass[i] += mass[j]
            # (parallel axes) of the composite about the father's centre: I - (m~ a~ + a~ m~) - m a~ a~
            for k in range(3):
                for l in range(3):
                    inertia[i, k, l] += inertia[j, k, l] - moment[j, k] * arm[l] - arm[k] * moment[j, l]
                    inertia[i, k, l] -= mass[j] * arm[k] * arm[l]
            trace = 2.0 * np.dot(moment[j], arm) + mass[j] * np.dot(arm, arm)
            for k in range(3):
                inertia[i, k, k] += trace
            moment[i] += whole
    return matrix
