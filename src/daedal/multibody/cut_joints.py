r"""Conditions of joints that close loops, in the velocities of the other joints: :math:`J u = 0, J \dot u = \gamma`."""

import numpy as np

from daedal.kernels.compilation import entry
from daedal.kernels.signatures import void
from daedal.multibody.closure import Closures, fill_biases, fill_gradients
from daedal.multibody.grouped import grouped
from daedal.multibody.kinematics import Placement, Velocities
from daedal.multibody.tree import BodyTree
from daedal.multibody.vectors import MATRICES, ROWS, VECTOR, add, dot, plus, put, row, vector_product


def loop_jacobian(tree, placed, closures):
    """The matrix J, shape (m, n_v): the gradients of the conditions, carried from the cut bodies to the base."""
    m = closures.kind.size
    matrix = np.zeros((m, tree.first_v[-1]))
    fill_loop_jacobian(tree, placed, closures.stacked, np.zeros((m, 2, 6)), matrix)
    return matrix


@grouped
@entry(void(BodyTree, Placement, Closures, MATRICES, ROWS))
def fill_loop_jacobian(tree, placed, closures, rows, matrix):
    """The matrix of :func:`loop_jacobian`; `rows` has room for the gradients."""
    fill_gradients(closures, placed.r, placed.rotation, rows)
    matrix[:, :] = 0.0
    for i in range(closures.kind.size):
        for side in range(2):
            j = closures.body[i, side]
            pull = rows[i, side, 0], rows[i, side, 1], rows[i, side, 2]
            twist = rows[i, side, 3], rows[i, side, 4], rows[i, side, 5]
            while j >= 0:
                for k in range(tree.first_v[j], tree.first_v[j + 1]):
                    matrix[i, k] += dot(pull, row(placed.linear, k)) + dot(twist, row(placed.angular, k))
                twist = plus(twist, vector_product(row(placed.arm, j), pull))
                j = tree.father[j]


def loop_bias(tree, placed, moving, closures):
    r"""The vector :math:`\gamma`, (m,)."""
    n, m = tree.father.size, closures.kind.size
    values = np.zeros(m)
    fill_loop_bias(
        tree, placed, moving, closures.stacked, np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((m, 2, 6)), values
    )
    return values


@grouped
@entry(void(BodyTree, Placement, Velocities, Closures, ROWS, ROWS, MATRICES, VECTOR))
def fill_loop_bias(tree, placed, moving, closures, linear, angular, rows, values):
    """The vector of :func:`loop_bias`.

    There is room for the accelerations of the bodies if those of the joints are zero, and for the gradients.
    """
    for j in range(tree.father.size):
        i = tree.father[j]
        put(linear, j, row(moving.linear_bias, j))
        put(angular, j, row(moving.angular_bias, j))
        if i >= 0:
            turning = row(angular, i)
            add(linear, j, plus(row(linear, i), vector_product(turning, row(placed.arm, j))))
            add(angular, j, turning)
    fill_biases(closures, placed.r, placed.rotation, moving.linear, moving.angular, values)
    fill_gradients(closures, placed.r, placed.rotation, rows)
    for i in range(closures.kind.size):
        for side in range(2):
            j = closures.body[i, side]
            if j >= 0:
                values[i] -= dot((rows[i, side, 0], rows[i, side, 1], rows[i, side, 2]), row(linear, j))
                values[i] -= dot((rows[i, side, 3], rows[i, side, 4], rows[i, side, 5]), row(angular, j))
