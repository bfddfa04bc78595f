r"""Accelerations of machines with closed loops: chains are reduced to the base, appendix B of the formalism.

The conditions of cut joints, :math:`\phi_{u} \dot v = \gamma` (2.45), go along when bodies are eliminated from the tips
(:mod:`daedal.multibody.articulated`). They start with :math:`\hat\Phi = \phi_u` at the bodies that were cut apart, and
with zeros for :math:`\hat\psi` and :math:`\hat\gamma`:

.. math::

    \hat\psi &\mathrel{-}= \hat\Phi_j B_j D_j B_j^T \hat\Phi_j^T, \\
    \hat\gamma &\mathrel{-}= \hat\Phi_j c_j + \hat\Phi_j B_j D_j B_j^T (\bar g_j - \bar M_j c_j), \\
    \hat\Phi_i^T &\mathrel{+}= A_j^T \Pi_j \hat\Phi_j^T.

At the ground, where :math:`\dot v_0 = 0`, the system (2.42), (2.46), (2.47) has become :math:`\hat\psi \lambda =
\hat\gamma + \gamma`, one for each set of loops that share bodies. Then come the accelerations from the base to the
tips, with :math:`\hat\Phi_j^T \lambda` among the loads (B.6).
"""

from typing import NamedTuple

import numpy as np

from daedal.kernels.compilation import kernel, part
from daedal.multibody.articulated import accelerate, eliminate, elimination
from daedal.multibody.closure import biases, gradients
from daedal.multibody.kinematics import Velocities, placement, velocities
from daedal.multibody.least_norm import least_norm_solution
from daedal.multibody.vectors import dot, plus, put, row, times, vector_product


class Reduction(NamedTuple):
    r"""What is left of the conditions at the base."""

    phi: np.ndarray  # (places, 6) Phihat at each body of each chain; Pi Phihat^T when its joint has been eliminated
    product: np.ndarray  # Phihat b, for each column b of B
    psi: np.ndarray  # the matrices -psihat, row by row, one set after the other
    gamma: np.ndarray  # (m,) -(gammahat + gamma)


@kernel
def constrained_accelerations(tree, closures, chains, q, u, tau, force, torque):
    """Accelerations of the joints, multipliers of the conditions, and how many conditions follow from others."""
    placed = placement(tree, q)
    moving = velocities(tree, placed, u)
    left, reduced = reduction(tree, closures, chains, placed, moving, tau, force, torque)
    return constrained_solution(tree, chains, placed, moving, left, reduced)


@kernel
def constrained_solution(tree, chains, placed, moving, left, reduced):
    """What follows from a reduction, as of :func:`constrained_accelerations`."""
    multipliers = np.zeros(reduced.gamma.size)
    redundant = solve_at_base(chains, reduced, multipliers)
    press(tree, chains, reduced, multipliers, left)
    n, result = tree.father.size, np.zeros(tree.first_v[-1])
    accelerate(tree, placed, moving, left, (np.zeros((n, 3)), np.zeros((n, 3))), result)
    return result, multipliers, redundant


@kernel
def shortest_change(tree, closures, chains, placed, gap):
    """The change of the coordinates by which the conditions change by -gap, the shortest one in the norm of H, and
    how many conditions follow from others.

    It is the acceleration of a machine at rest and without loads, with -gap in place of gamma.
    """
    n = tree.father.size
    still, weight = np.zeros((n, 3)), np.zeros((n, 3))
    for j in range(n):
        put(weight, j, times(-tree.mass[j], tree.gravity))
    moving = Velocities(still, still, still, still)
    left, reduced = reduction(tree, closures, chains, placed, moving, np.zeros(tree.first_v[-1]), weight, still)
    for i in range(gap.size):
        reduced.gamma[i] += gap[i]
    change, _, redundant = constrained_solution(tree, chains, placed, moving, left, reduced)
    return change, redundant


@kernel
def reduction(tree, closures, chains, placed, moving, tau, force, torque):
    """Bodies eliminated and conditions carried to the base: an ``Elimination`` and a :class:`Reduction`."""
    left = elimination(tree.father.size, tree.first_v[-1])
    eliminate(tree, placed, moving, tau, force, torque, left)
    return left, reduce(tree, placed, moving, closures, chains, left)


@part
def reduce(tree, placed, moving, closures, chains, left):
    """Carry the conditions to the base, along with an elimination that has been done."""
    reduced = Reduction(
        np.zeros((chains.condition.size, 6)),
        np.zeros(chains.first_product[-1]),
        np.zeros(chains.first_entry[-1]),
        -biases(closures, placed.r, placed.rotation, moving.linear, moving.angular),
    )
    start = gradients(closures, placed.r, placed.rotation)
    for i in range(closures.kind.size):
        for side in range(2):
            if chains.side[i, side] >= 0:
                for k in range(6):
                    reduced.phi[chains.side[i, side], k] += start[i, side, k]
    for j in range(tree.father.size - 1, -1, -1):
        for place in range(chains.first_place[j], chains.first_place[j + 1]):
            pull, twist = _halves(reduced.phi, place)
            bias = dot(pull, row(moving.linear_bias, j)) + dot(twist, row(moving.angular_bias, j))
            reduced.gamma[chains.condition[place]] += bias
        for k in range(tree.first_v[j + 1] - 1, tree.first_v[j] - 1, -1):
            _reduce_column(tree, placed, chains, left, reduced, j, k)
        for place in range(chains.first_place[j], chains.first_place[j + 1]):
            if chains.up[place] >= 0:
                pull, twist = _halves(reduced.phi, place)
                _add(reduced.phi, chains.up[place], pull, plus(twist, vector_product(row(placed.arm, j), pull)))
    return reduced


@part
def _halves(phi, place):
    return (phi[place, 0], phi[place, 1], phi[place, 2]), (phi[place, 3], phi[place, 4], phi[place, 5])


@part
def _add(phi, place, pull, twist):
    for k in range(3):
        phi[place, k] += pull[k]
        phi[place, 3 + k] += twist[k]


@part
def _reduce_column(tree, placed, chains, left, reduced, j, k):
    first, end = chains.first_place[j], chains.first_place[j + 1]
    at = chains.first_product[j] + (k - tree.first_v[j]) * (end - first)
    linear, angular = row(placed.linear, k), row(placed.angular, k)
    for place in range(first, end):
        pull, twist = _halves(reduced.phi, place)
        value = dot(pull, linear) + dot(twist, angular)
        share = value / left.pivot[k]
        reduced.product[at + place - first] = value
        reduced.gamma[chains.condition[place]] += share * left.drive[k]
        _add(reduced.phi, place, times(-share, row(left.row_pull, k)), times(-share, row(left.row_twist, k)))
        own = chains.condition[place]
        group = chains.group[own]
        size = chains.first_member[group + 1] - chains.first_member[group]
        line = chains.first_entry[group] + size * chains.within[own]
        for other in range(first, place + 1):
            column = chains.within[chains.condition[other]]  # within itself: conditions at one body are of one set
            reduced.psi[line + column] += share * reduced.product[at + other - first]


@part
def press(tree, chains, reduced, multipliers, left):
    """Add the reactions of the conditions to what drives the joints (B.6)."""
    for j in range(tree.father.size):
        first, end = chains.first_place[j], chains.first_place[j + 1]
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            at = chains.first_product[j] + (k - tree.first_v[j]) * (end - first)
            for place in range(first, end):
                left.drive[k] -= reduced.product[at + place - first] * multipliers[chains.condition[place]]


@part
def solve_at_base(chains, reduced, multipliers):
    """The multipliers of all sets; returns how many conditions follow from others."""
    redundant = 0
    for group in range(chains.first_entry.size - 1):
        members = chains.member[chains.first_member[group] : chains.first_member[group + 1]]
        size = members.size
        matrix = reduced.psi[chains.first_entry[group] : chains.first_entry[group + 1]].reshape((size, size))
        right = np.zeros(size)
        for i in range(size):
            right[i] = reduced.gamma[members[i]]
        solution, rank = least_norm_solution(matrix, right)
        redundant += size - rank
        for i in range(size):
            multipliers[members[i]] = solution[i]
    return redundant
