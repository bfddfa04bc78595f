r"""Conditions of joints that close loops, in the velocities of the other joints: :math:`J u = 0, J \dot u = \gamma`."""

import numpy as np

from daedal.kernels.compilation import kernel
from daedal.multibody.closure import biases, gradients
from daedal.multibody.vectors import add, dot, plus, put, row, vector_product


@kernel
def loop_jacobian(tree, placed, closures):
    """The matrix J, shape (m, n_v): the gradients of the conditions, carried from the cut bodies to the base."""
    rows = gradients(closures, placed.r, placed.rotation)
    matrix = np.zeros((closures.kind.size, tree.first_v[-1]))
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
    return matrix


@kernel
def loop_bias(tree, placed, moving, closures):
    r"""The vector :math:`\gamma`, (m,)."""
    n = tree.father.size
    linear, angular = np.zeros((n, 3)), np.zeros((n, 3))  # accelerations of the bodies if those of the joints are zero
    for j in range(n):
        i = tree.father[j]
        put(linear, j, row(moving.linear_bias, j))
        put(angular, j, row(moving.angular_bias, j))
        if i >= 0:
            turning = row(angular, i)
            add(linear, j, plus(row(linear, i), vector_product(turning, row(placed.arm, j))))
            add(angular, j, turning)
    values = biases(closures, placed.r, placed.rotation, moving.linear, moving.angular)
    rows = gradients(closures, placed.r, placed.rotation)
    for i in range(closures.kind.size):
        for side in range(2):
            j = closures.body[i, side]
            if j >= 0:
                values[i] -= dot((rows[i, side, 0], rows[i, side, 1], rows[i, side, 2]), row(linear, j))
                values[i] -= dot((rows[i, side, 3], rows[i, side, 4], rows[i, side, 5]), row(angular, j))
    return values
