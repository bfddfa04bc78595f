r"""Velocities of joints and rates of coordinates: :math:`u = N(q) \dot q`.

They differ only for Euler parameters, whose rates determine an angular velocity, :math:`\omega = 2 L(p) \dot p`. Since
:math:`\dot N \dot q = 0`, accelerations transform in the same way, and the equations of motion become

.. math:: N^T H N\, \ddot q = N^T (\tau - C) - \nu, \qquad |p|^2 - 1 = 0.

:math:`N^T H N` is singular along p. Adding :math:`\mu\, p p^T` to it, and :math:`-\mu |\dot p|^2 p` to the right-hand
side, changes only the multiplier of :math:`|p|^2 = 1`.
"""

import numpy as np

from daedal.kernels.compilation import entry, part
from daedal.kernels.signatures import void
from daedal.multibody.kinematics import ANY_ROTATION, BodyTree
from daedal.multibody.vectors import ROWS, VECTOR, grouped, rows_of_rates


def parameter_masses(tree) -> np.ndarray:
    """The factor mu for each body, of the order of its inertia."""
    traces = tree.inertia.trace(axis1=1, axis2=2)
    return np.where(traces > 0, traces, float(traces.max(initial=0.0)) or 1.0)


def joint_velocities(tree, q, rate):
    r"""Joint velocities u for the coordinate rates :math:`\dot q`."""
    u = np.zeros(tree.first_v[-1])
    fill_joint_velocities(tree, q, rate, u)
    return u


@grouped
@entry(void(BodyTree, VECTOR, VECTOR, VECTOR))
def fill_joint_velocities(tree, q, rate, u):
    for j in range(tree.parent.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                u[k] = rate[at + k - first]
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            turn = rows_of_rates(q, p)
            for k in range(3):
                value = 0.0
                for l in range(4):
                    value += turn[k][l] * rate[p + l]
                u[end - 3 + k] = value


def coordinate_rates(tree, q, u):
    r"""Coordinate rates :math:`\dot q` for the joint velocities u, with :math:`p^T \dot p = 0`."""
    rate = np.zeros(tree.first_q[-1])
    fill_coordinate_rates(tree, q, u, rate)
    return rate


@grouped
@entry(void(BodyTree, VECTOR, VECTOR, VECTOR))
def fill_coordinate_rates(tree, q, u, rate):
    for j in range(tree.parent.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                rate[at + k - first] = u[k]
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            turn = rows_of_rates(q, p)
            for l in range(4):
                value = 0.0
                for k in range(3):
                    value += 0.25 * turn[k][l] * u[end - 3 + k]
                rate[p + l] = value


def lifted_force(tree, q, rate, tau, parameter_mass):
    r""":math:`N^T \tau - \mu |\dot p|^2 p`, with mu from `parameter_mass` (one entry for each body)."""
    result = np.zeros(tree.first_q[-1])
    fill_lifted_force(tree, q, rate, tau, parameter_mass, result)
    return result


@grouped
@entry(void(BodyTree, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def fill_lifted_force(tree, q, rate, tau, parameter_mass, result):
    for j in range(tree.parent.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                result[at + k - first] = tau[k]
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            turn = rows_of_rates(q, p)
            square = 0.0
            for l in range(4):
                square += rate[p + l] * rate[p + l]
            for l in range(4):
                value = 0.0
                value -= parameter_mass[j] * square * q[p + l]
                for k in range(3):
                    value += turn[k][l] * tau[end - 3 + k]
                result[p + l] = value


def map_matrix(tree, q):
    """The matrix N, shape (n_v, n_q)."""
    matrix = np.zeros((tree.first_v[-1], tree.first_q[-1]))
    fill_map_matrix(tree, q, matrix)
    return matrix


@grouped
@entry(void(BodyTree, VECTOR, ROWS))
def fill_map_matrix(tree, q, matrix):
    matrix[:, :] = 0.0
    for j in range(tree.parent.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                matrix[k, at + k - first] = 1.0
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            turn = rows_of_rates(q, p)
            for k in range(3):
                for l in range(4):
                    matrix[end - 3 + k, p + l] = turn[k][l]


@part
def fill_lifted_rows(tree, q, matrix, result):
    """Multiply a matrix with one column per joint velocity by N from the right."""
    n = matrix.shape[0]
    for j in range(tree.parent.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                for i in range(n):
                    result[i, at + k - first] = matrix[i, k]
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            turn = rows_of_rates(q, p)
            for i in range(n):
                for l in range(4):
                    value = 0.0
                    for k in range(3):
                        value += matrix[i, end - 3 + k] * turn[k][l]
                    result[i, p + l] = value


def lifted_mass(tree, q, mass, parameter_mass):
    r""":math:`N^T H N + \mu p p^T`."""
    n_q, n_v = tree.first_q[-1], tree.first_v[-1]
    result = np.zeros((n_q, n_q))
    fill_lifted_mass(tree, q, mass, parameter_mass, np.zeros((n_v, n_q)), result)
    return result


@grouped
@entry(void(BodyTree, VECTOR, ROWS, VECTOR, ROWS, ROWS))
def fill_lifted_mass(tree, q, mass, parameter_mass, lifted, result):
    """Compute :func:`lifted_mass`; `lifted` is workspace for H N."""
    fill_lifted_rows(tree, q, mass, lifted)
    fill_lifted_rows(tree, q, lifted.T, result)
    for j in range(tree.parent.size):
        if tree.turn[j] == ANY_ROTATION:
            p = tree.first_q[j + 1] - 4
            for k in range(4):
                for l in range(4):
                    result[p + k, p + l] += parameter_mass[j] * q[p + k] * q[p + l]


def with_unit_parameters(tree, q):
    """Coordinates (n_q, nt) with Euler parameters of length 1."""
    q = q.copy()
    for end in tree.first_q[1:][tree.turn == ANY_ROTATION]:
        q[end - 4 : end] /= np.linalg.norm(q[end - 4 : end], axis=0)
    return q


def norms(tree, q):
    """|p|^2 - 1 for each joint with Euler parameters."""
    values = np.zeros((tree.turn == ANY_ROTATION).sum())
    fill_norms(tree, q, values)
    return values


@grouped
@entry(void(BodyTree, VECTOR, VECTOR))
def fill_norms(tree, q, values):
    count = 0
    for j in range(tree.parent.size):
        if tree.turn[j] == ANY_ROTATION:
            p = tree.first_q[j + 1] - 4
            values[count] = q[p] ** 2 + q[p + 1] ** 2 + q[p + 2] ** 2 + q[p + 3] ** 2 - 1.0
            count += 1
