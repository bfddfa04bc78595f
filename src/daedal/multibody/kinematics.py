r"""Where the bodies of a tree are and how they move: equations (2.16) to (2.29) of the formalism.

A body j with father i has the centre of mass :math:`r_j = r_i + s_{ij} + d_j - s_{jj}`; in the axes of the ground

.. math::

    v_j = A_j v_i + B_j \dot q_j, \qquad \dot v_j = A_j \dot v_i + B_j \ddot q_j + c_j, \qquad
    A_j = \begin{pmatrix} I & -\tilde R_j \\ 0 & I \end{pmatrix}, \qquad R_j = r_j - r_i,

with :math:`v = (\dot r, \omega)`. Here :math:`\dot q_j` are the velocities of the joint, angular ones for Euler
parameters.
"""

from typing import NamedTuple

import numpy as np

from daedal.kernels.compilation import kernel
from daedal.multibody.rotation import about_y, about_z, of_parameters
from daedal.multibody.tree import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION


class Placement(NamedTuple):
    """Where the bodies are, in the axes of the ground."""

    r: np.ndarray  # (n, 3) centres of mass
    rotation: np.ndarray  # (n, 3, 3) from the axes of the body to those of the ground
    arm: np.ndarray  # (n, 3) R_j = r_j - r_i, from the father's centre of mass
    lever: np.ndarray  # (n, 3) from the joint's frame on the body to the body's centre of mass, -s_jj
    linear: np.ndarray  # (n_v, 3) first half of the columns of B: velocity of the centre of mass per unit speed
    angular: np.ndarray  # (n_v, 3) second half, H: angular velocity per unit speed
    slide: np.ndarray  # (n_v, 3) velocity of the joint's frame relative to the father, per unit speed


class Velocities(NamedTuple):
    """How fast they are, in the axes of the ground."""

    linear: np.ndarray  # (n, 3) of the centres of mass
    angular: np.ndarray  # (n, 3)
    linear_bias: np.ndarray  # (n, 3) c_j
    angular_bias: np.ndarray  # (n, 3)


@kernel
def cross(a, b):
    """The product a x b."""
    result = np.zeros(3)
    result[0] = a[1] * b[2] - a[2] * b[1]
    result[1] = a[2] * b[0] - a[0] * b[2]
    result[2] = a[0] * b[1] - a[1] * b[0]
    return result


@kernel
def placement(tree, q):
    """Positions (2.16), (2.17) and the matrices B_j (2.24) of all bodies."""
    n, n_v = tree.father.size, tree.first_v[-1]
    r, rotation = np.zeros((n, 3)), np.zeros((n, 3, 3))
    arm, lever = np.zeros((n, 3)), np.zeros((n, 3))
    linear, angular, slide = np.zeros((n_v, 3)), np.zeros((n_v, 3)), np.zeros((n_v, 3))
    for j in range(n):
        i = tree.father[j]
        frame = tree.axes[j] if i < 0 else rotation[i] @ tree.axes[j]
        start = tree.place[j] if i < 0 else rotation[i] @ tree.place[j]
        first, end, at = tree.first_v[j], tree.first_v[j + 1], tree.first_q[j]
        shift = np.zeros(3)
        for k in range(first, end):
            slide[k] = frame @ tree.slide[k]
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                shift += slide[k] * q[at + k - first]
        turned = frame
        if tree.turn[j] == ABOUT_Z:
            angular[end - 1] = frame[:, 2]
            turned = frame @ about_z(q[at + end - 1 - first])
        elif tree.turn[j] == ABOUT_Z_AND_Y:
            angular[end - 2] = frame[:, 2]
            between = frame @ about_z(q[at + end - 2 - first])
            angular[end - 1] = between[:, 1]
            turned = between @ about_y(q[at + end - 1 - first])
        elif tree.turn[j] == ANY_ROTATION:
            turned = frame @ of_parameters(q[at + end - 3 - first : at + end + 1 - first])
            for k in range(3):
                angular[end - 3 + k] = turned[:, k]
        rotation[j] = turned @ tree.own_axes[j].T
        lever[j] = -(rotation[j] @ tree.own_place[j])
        arm[j] = start + shift + lever[j]
        r[j] = arm[j] if i < 0 else r[i] + arm[j]
        for k in range(first, end):
            linear[k] = slide[k] + cross(angular[k], lever[j])
    return Placement(r, rotation, arm, lever, linear, angular, slide)


@kernel
def velocities(tree, placed, v):
    r"""Velocities (2.22), (2.18) and what accelerations have without :math:`\ddot q`, c_j of (2.27)."""
    n = tree.father.size
    linear, angular = np.zeros((n, 3)), np.zeros((n, 3))
    linear_bias, angular_bias = np.zeros((n, 3)), np.zeros((n, 3))
    for j in range(n):
        i, first, end = tree.father[j], tree.first_v[j], tree.first_v[j + 1]
        carried, slip, spin = np.zeros(3), np.zeros(3), np.zeros(3)
        turning = np.zeros(3)  # the derivative of H_j times the speeds
        if i >= 0:
            linear[j] = linear[i] + cross(angular[i], placed.arm[j])
            carried += angular[i]
        for k in range(first, end):
            slip += placed.slide[k] * v[k]
            if tree.turn[j] == ABOUT_Z_AND_Y:
                turning += cross(carried + spin, placed.angular[k] * v[k])
            spin += placed.angular[k] * v[k]
        if tree.turn[j] != ABOUT_Z_AND_Y:
            turning = cross(carried, spin)
        angular[j] = carried + spin
        linear[j] = linear[j] + slip + cross(spin, placed.lever[j])
        angular_bias[j] = turning
        joint = placed.arm[j] - placed.lever[j]  # from the father's centre of mass to the joint's frame on the body
        linear_bias[j] = (
            cross(carried, cross(carried, joint))
            + 2.0 * cross(carried, slip)
            + cross(turning, placed.lever[j])
            + cross(angular[j], cross(angular[j], placed.lever[j]))
        )
    return Velocities(linear, angular, linear_bias, angular_bias)
