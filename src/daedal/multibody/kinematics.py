r"""A tree of bodies as arrays, with positions and velocities: equations (2.16) to (2.29) of the formalism.

A body j with parent i has the centre of mass :math:`r_j = r_i + s_{ij} + d_j - s_{jj}`; in the axes of the ground

.. math::

    v_j = A_j v_i + B_j \dot q_j, \qquad \dot v_j = A_j \dot v_i + B_j \ddot q_j + c_j, \qquad
    A_j = \begin{pmatrix} I & -\tilde R_j \\ 0 & I \end{pmatrix}, \qquad R_j = r_j - r_i,

with :math:`v = (\dot r, \omega)`. Here :math:`\dot q_j` are the velocities of the joint, angular velocities for Euler
parameters.

Velocities of joints and rates of coordinates, :math:`u = N(q) \dot q`, differ only for Euler parameters, whose rates
determine an angular velocity, :math:`\omega = 2 L(p) \dot p`. Since :math:`\dot N \dot q = 0`, accelerations transform
in the same way, and the equations of motion become

.. math:: N^T H N\, \ddot q = N^T (\tau - C) - \nu, \qquad |p|^2 - 1 = 0.

:math:`N^T H N` is singular along p. Adding :math:`\mu\, p p^T` to it, and :math:`-\mu |\dot p|^2 p` to the right-hand
side, changes only the multiplier of :math:`|p|^2 = 1`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from daedal.kernels.compilation import entry, part
from daedal.kernels.signatures import void
from daedal.multibody.vectors import (
    MATRICES,
    NUMBERS,
    ROWS,
    VECTOR,
    column,
    combined,
    grouped,
    is_unit,
    minus,
    plus,
    product,
    put,
    put_column,
    row,
    rows_of_parameters,
    rows_of_rates,
    times,
    vector_product,
)

NO_ROTATION, ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION = 0, 1, 2, 3
"""Rotation of a joint: none, about z by one angle, about z and then y, or by Euler parameters."""


class BodyTree(NamedTuple):
    r"""Bodies 0 ... n-1, each moved by one joint from its parent; parents come first, -1 is the ground.

    Joint j has a frame on the parent, at ``place[j]`` from the parent's centre of mass with the axes ``axes[j]`` in the
    parent's axes (for the ground: its origin), and one on the body itself, at ``own_place[j]`` from its centre of mass
    with ``own_axes[j]``. The joint shifts the second frame by :math:`d = \sum_k q_k\, slide_k` along the axes of the
    first, then rotates it according to ``turn[j]``. Its velocities are ``first_v[j]`` to ``first_v[j + 1]``, one for
    each coordinate except for Euler parameters: four coordinates (``first_q``) and three components of the angular
    velocity in the axes of the joint's second frame. Shifts come before rotations.
    """

    parent: np.ndarray  # (n,)
    turn: np.ndarray  # (n,) NO_ROTATION to ANY_ROTATION
    first_q: np.ndarray  # (n + 1,)
    first_v: np.ndarray  # (n + 1,)
    place: np.ndarray  # (n, 3)
    axes: np.ndarray  # (n, 3, 3)
    own_place: np.ndarray  # (n, 3)
    own_axes: np.ndarray  # (n, 3, 3)
    slide: np.ndarray  # (n_v, 3), in the axes of the joint's frame on the parent
    mass: np.ndarray  # (n,)
    inertia: np.ndarray  # (n, 3, 3), about the centre of mass, in the axes of the body
    gravity: np.ndarray  # (3,)


BodyTree.kinds = (*4 * [NUMBERS], ROWS, MATRICES, ROWS, MATRICES, ROWS, VECTOR, MATRICES, VECTOR)  # type: ignore[attr-defined]


def in_axes_of_joints(tree: BodyTree) -> BodyTree:
    """The tree with the axes of each body replaced by those of its joint's frame on the body."""
    own = tree.own_axes
    on_bodies = tree.parent >= 0
    places, axes = tree.place.copy(), tree.axes.copy()
    turned = own[tree.parent[on_bodies]].transpose(0, 2, 1)
    places[on_bodies] = (turned @ places[on_bodies, :, None])[:, :, 0]
    axes[on_bodies] = turned @ axes[on_bodies]
    return tree._replace(
        place=places,
        axes=axes,
        own_place=(own.transpose(0, 2, 1) @ tree.own_place[:, :, None])[:, :, 0],
        own_axes=np.broadcast_to(np.eye(3), own.shape),
        inertia=own.transpose(0, 2, 1) @ tree.inertia @ own,
    )


class Placement(NamedTuple):
    """Positions of the bodies, in the axes of the ground."""

    r: np.ndarray  # (n, 3) centres of mass
    rotation: np.ndarray  # (n, 3, 3) from the axes of the body to those of the ground
    arm: np.ndarray  # (n, 3) R_j = r_j - r_i, from the parent's centre of mass
    lever: np.ndarray  # (n, 3) from the joint's frame on the body to the body's centre of mass, -s_jj
    linear: np.ndarray  # (n_v, 3) first half of the columns of B: velocity of the centre of mass per unit speed
    angular: np.ndarray  # (n_v, 3) second half, H: angular velocity per unit speed
    slide: np.ndarray  # (n_v, 3) velocity of the joint's frame relative to the parent, per unit speed


Placement.kinds = (ROWS, MATRICES, ROWS, ROWS, ROWS, ROWS, ROWS)  # type: ignore[attr-defined]


class Velocities(NamedTuple):
    """Velocities of the bodies, in the axes of the ground."""

    linear: np.ndarray  # (n, 3) of the centres of mass
    angular: np.ndarray  # (n, 3)
    linear_bias: np.ndarray  # (n, 3) c_j
    angular_bias: np.ndarray  # (n, 3)


Velocities.kinds = (ROWS, ROWS, ROWS, ROWS)  # type: ignore[attr-defined]


def cross(a, b):
    """The product a x b."""
    result = np.zeros(3)
    result[0] = a[1] * b[2] - a[2] * b[1]
    result[1] = a[2] * b[0] - a[0] * b[2]
    result[2] = a[0] * b[1] - a[1] * b[0]
    return result


def placement(tree, q):
    """Positions (2.16), (2.17) and the matrices B_j (2.24) of all bodies."""
    n, n_v = tree.parent.size, tree.first_v[-1]
    placed = Placement(
        np.zeros((n, 3)),
        np.zeros((n, 3, 3)),
        np.zeros((n, 3)),
        np.zeros((n, 3)),
        np.zeros((n_v, 3)),
        np.zeros((n_v, 3)),
        np.zeros((n_v, 3)),
    )
    place(tree, q, placed)
    return placed


@grouped
@entry(void(BodyTree, VECTOR, Placement))
def place(tree, q, placed):
    """Compute a :class:`Placement` in place."""
    rotation, angular = placed.rotation, placed.angular
    for j in range(tree.parent.size):
        i, turn = tree.parent[j], tree.turn[j]
        first, end, at = tree.first_v[j], tree.first_v[j + 1], tree.first_q[j]
        c, s = 1.0, 0.0
        if turn == ABOUT_Z or turn == ABOUT_Z_AND_Y:
            angle = q[at + end - turn - first]  # the first of one or two angles, according to the kind of rotation
            c, s = math.cos(angle), math.sin(angle)
        x, y, z = column(tree.axes, j, 0), column(tree.axes, j, 1), column(tree.axes, j, 2)  # axes of the joint's frame
        where = row(tree.place, j)
        if i >= 0:
            where = product(rotation, i, where)
            if is_unit(tree.axes, j):
                x, y, z = column(rotation, i, 0), column(rotation, i, 1), column(rotation, i, 2)
            else:
                x, y, z = product(rotation, i, x), product(rotation, i, y), product(rotation, i, z)
        for k in range(first, end):
            put(angular, k, (0.0, 0.0, 0.0))
            put(placed.slide, k, (0.0, 0.0, 0.0))
            slide = row(tree.slide, k)
            if slide[0] != 0.0 or slide[1] != 0.0 or slide[2] != 0.0:
                along = combined(x, y, z, slide)
                put(placed.slide, k, along)
                where = plus(where, times(q[at + k - first], along))
        if turn == ABOUT_Z or turn == ABOUT_Z_AND_Y:
            put(angular, end - turn, z)
            x, y = plus(times(c, x), times(s, y)), minus(times(c, y), times(s, x))
        if turn == ABOUT_Z_AND_Y:
            put(angular, end - 1, y)
            c, s = math.cos(q[at + end - 1 - first]), math.sin(q[at + end - 1 - first])
            x, z = minus(times(c, x), times(s, z)), plus(times(s, x), times(c, z))
        elif turn == ANY_ROTATION:
            p = at + end - 3 - first
            first_row, second_row, third_row = rows_of_parameters(q[p], q[p + 1], q[p + 2], q[p + 3])
            x, y, z = (
                combined(x, y, z, (first_row[0], second_row[0], third_row[0])),
                combined(x, y, z, (first_row[1], second_row[1], third_row[1])),
                combined(x, y, z, (first_row[2], second_row[2], third_row[2])),
            )
            put(angular, end - 3, x)
            put(angular, end - 2, y)
            put(angular, end - 1, z)
        if is_unit(tree.own_axes, j):
            put_column(rotation, j, 0, x)
            put_column(rotation, j, 1, y)
            put_column(rotation, j, 2, z)
        else:
            for k in range(3):  # axis k of the body, with its components along those of the joint
                own = tree.own_axes[j, k, 0], tree.own_axes[j, k, 1], tree.own_axes[j, k, 2]
                put_column(rotation, j, k, combined(x, y, z, own))
        lever = times(-1.0, product(rotation, j, row(tree.own_place, j)))
        arm = plus(where, lever)
        put(placed.lever, j, lever)
        put(placed.arm, j, arm)
        put(placed.r, j, plus(row(placed.r, i), arm) if i >= 0 else arm)
        for k in range(first, end):
            put(placed.linear, k, plus(row(placed.slide, k), vector_product(row(angular, k), lever)))


def velocities(tree, placed, v):
    r"""Velocities (2.22), (2.18) and the terms of accelerations without :math:`\ddot q`, c_j of (2.27)."""
    n = tree.parent.size
    moving = Velocities(np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)))
    move(tree, placed, v, moving)
    return moving


@grouped
@entry(void(BodyTree, Placement, VECTOR, Velocities))
def move(tree, placed, v, moving):
    """Compute :class:`Velocities` in place."""
    for j in range(tree.parent.size):
        i, turn = tree.parent[j], tree.turn[j]
        arm, lever = row(placed.arm, j), row(placed.lever, j)
        speed, carried, slip = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        turning = (0.0, 0.0, 0.0)  # the derivative of H_j times the speeds
        if i >= 0:
            carried = row(moving.angular, i)
            speed = plus(row(moving.linear, i), vector_product(carried, arm))
        angular = carried
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            slip = plus(slip, times(v[k], row(placed.slide, k)))
            spin = times(v[k], row(placed.angular, k))
            # the axes of a joint rotate with the parent, the second one of a universal joint also with the first
            # rotation
            turning = plus(turning, vector_product(angular if turn == ABOUT_Z_AND_Y else carried, spin))
            angular = plus(angular, spin)
        spin = minus(angular, carried)
        put(moving.angular, j, angular)
        put(moving.angular_bias, j, turning)
        put(moving.linear, j, plus(plus(speed, slip), vector_product(spin, lever)))
        joint = minus(arm, lever)  # from the parent's centre of mass to the joint's frame on the body
        bias = plus(
            vector_product(carried, plus(vector_product(carried, joint), times(2.0, slip))),
            vector_product(angular, vector_product(angular, lever)),
        )
        put(moving.linear_bias, j, plus(bias, vector_product(turning, lever)))


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
    """Write the product of `matrix`, which has one column per joint velocity, and N to `result`."""
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
