r"""Velocities of joints and rates of coordinates: :math:`u = N(q) \dot q`.

They are the same but for Euler parameters, whose rates give an angular velocity, :math:`\omega = 2 L(p) \dot p`. As
:math:`\dot N \dot q = 0`, accelerations go the same way, and the equations of motion become

.. math:: N^T H N\, \ddot q = N^T (\tau - C) - \nu, \qquad |p|^2 - 1 = 0.

:math:`N^T H N` is singular along p. Adding :math:`\mu\, p p^T` there, and :math:`-\mu |\dot p|^2 p` on the right,
changes nothing but the multiplier of :math:`|p|^2 = 1`.
"""

import numpy as np

from daedal.kernels.compilation import kernel
from daedal.multibody.rotation import rates
from daedal.multibody.tree import ANY_ROTATION


def parameter_masses(tree) -> np.ndarray:
    """The factor mu of each body: of the size of its inertia."""
    traces = tree.inertia.trace(axis1=1, axis2=2)
    return np.where(traces > 0, traces, float(traces.max(initial=0.0)) or 1.0)


@kernel
def joint_velocities(tree, q, rate):
    r"""u of :math:`\dot q`."""
    u = np.zeros(tree.first_v[-1])
    for j in range(tree.father.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                u[k] = rate[at + k - first]
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            matrix = rates(q[p : p + 4])
            for k in range(3):
                for l in range(4):
                    u[end - 3 + k] += matrix[k, l] * rate[p + l]
    return u


@kernel
def coordinate_rates(tree, q, u):
    r""":math:`\dot q` of u, with :math:`p^T \dot p = 0`."""
    rate = np.zeros(tree.first_q[-1])
    for j in range(tree.father.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                rate[at + k - first] = u[k]
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            matrix = rates(q[p : p + 4])
            for k in range(3):
                for l in range(4):
                    rate[p + l] += 0.25 * matrix[k, l] * u[end - 3 + k]
    return rate


@kernel
def lifted_force(tree, q, rate, tau, parameter_mass):
    r""":math:`N^T \tau - \mu |\dot p|^2 p`, with mu from `parameter_mass` (one entry for each body)."""
    result = np.zeros(tree.first_q[-1])
    for j in range(tree.father.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                result[at + k - first] = tau[k]
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            matrix = rates(q[p : p + 4])
            square = 0.0
            for l in range(4):
                square += rate[p + l] * rate[p + l]
            for l in range(4):
                result[p + l] -= parameter_mass[j] * square * q[p + l]
                for k in range(3):
                    result[p + l] += matrix[k, l] * tau[end - 3 + k]
    return result


@kernel
def map_matrix(tree, q):
    """The matrix N, shape (n_v, n_q)."""
    matrix = np.zeros((tree.first_v[-1], tree.first_q[-1]))
    for j in range(tree.father.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                matrix[k, at + k - first] = 1.0
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            matrix[end - 3 : end, p : p + 4] = rates(q[p : p + 4])
    return matrix


@kernel
def lifted_rows(tree, q, matrix):
    """A matrix with one column for each velocity of a joint, times N."""
    n = matrix.shape[0]
    result = np.zeros((n, tree.first_q[-1]))
    for j in range(tree.father.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                for i in range(n):
                    result[i, at + k - first] = matrix[i, k]
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            turn = rates(q[p : p + 4])
            for i in range(n):
                for l in range(4):
                    for k in range(3):
                        result[i, p + l] += matrix[i, end - 3 + k] * turn[k, l]
    return result


@kernel
def lifted_mass(tree, q, mass, parameter_mass):
    r""":math:`N^T H N + \mu p p^T`."""
    result = lifted_rows(tree, q, lifted_rows(tree, q, mass).T)
    for j in range(tree.father.size):
        if tree.turn[j] == ANY_ROTATION:
            p = tree.first_q[j + 1] - 4
            for k in range(4):
                for l in range(4):
                    result[p + k, p + l] += parameter_mass[j] * q[p + k] * q[p + l]
    return result


@kernel
def norms(tree, q):
    """|p|^2 - 1 for each joint with Euler parameters."""
    count = 0
    for j in range(tree.father.size):
        if tree.turn[j] == ANY_ROTATION:
            count += 1
    values = np.zeros(count)
    count = 0
    for j in range(tree.father.size):
        if tree.turn[j] == ANY_ROTATION:
            p = tree.first_q[j + 1] - 4
            values[count] = q[p] ** 2 + q[p + 1] ** 2 + q[p + 2] ** 2 + q[p + 3] ** 2 - 1.0
            count += 1
    return values
