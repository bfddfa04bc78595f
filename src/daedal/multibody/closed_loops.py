r"""Accelerations of machines with closed loops by reduction of chains to the base, appendix B of the formalism.

The conditions of cut joints, :math:`\phi_{u} \dot v = \gamma` (2.45), are carried along when bodies are eliminated from
the tips (:mod:`daedal.multibody.dynamics`). Initially :math:`\hat\Phi = \phi_u` at the bodies that were cut apart, and
:math:`\hat\psi` and :math:`\hat\gamma` are zero:

.. math::

    \hat\psi &\mathrel{-}= \hat\Phi_j B_j D_j B_j^T \hat\Phi_j^T, \\
    \hat\gamma &\mathrel{-}= \hat\Phi_j c_j + \hat\Phi_j B_j D_j B_j^T (\bar g_j - \bar M_j c_j), \\
    \hat\Phi_i^T &\mathrel{+}= A_j^T \Pi_j \hat\Phi_j^T.

At the ground, where :math:`\dot v_0 = 0`, the system (2.42), (2.46), (2.47) has become :math:`\hat\psi \lambda =
\hat\gamma + \gamma`, one for each set of loops that share bodies. Accelerations then follow from the base to the tips,
with :math:`\hat\Phi_j^T \lambda` among the loads (B.6).

The module also solves systems with a positive semidefinite matrix in the least-norm sense, and computes J and gamma of
the conditions :math:`J u = 0, J \dot u = \gamma` of cut joints in the velocities of the other joints.
"""

from typing import NamedTuple

import numpy as np

from daedal.kernels.compilation import entry, part
from daedal.kernels.records import data_of, float_rows
from daedal.kernels.signatures import void
from daedal.kernels.vectors import copy
from daedal.multibody.closure import Closures, fill_biases, fill_gradients
from daedal.multibody.dynamics import accelerate, eliminate
from daedal.multibody.kinematics import BodyTree, Placement, Velocities
from daedal.multibody.packed import ELIMINATION, MachineSizes, elimination_at, floats_for, rows
from daedal.multibody.vectors import (
    MATRICES,
    ROWS,
    VECTOR,
    add,
    blocks,
    dot,
    grouped,
    matrix,
    numbers,
    plus,
    put,
    row,
    taken,
    times,
    vector,
    vector_product,
    zeros,
)
from daedal.multibody.vectors import matrix as room_for_matrix


class BaseProjection(NamedTuple):
    r"""The conditions after reduction to the base."""

    phi: np.ndarray  # (places, 6) Phihat at each body of each chain; Pi Phihat^T after elimination of its joint
    product: np.ndarray  # Phihat b, for each column b of B
    psi: np.ndarray  # the matrices -psihat by rows, one set after the other
    gamma: np.ndarray  # (m,) -(gammahat + gamma)


def floats_for_solution(sizes: MachineSizes) -> int:
    """Workspace for :func:`reduction_in` and :func:`constrained_solution` together, in words."""
    m, entries = sizes.m, sizes.entries
    reduced = floats_for(sizes.n, sizes.n_v, ELIMINATION) + 6 * sizes.places + sizes.products + entries + 13 * m
    return reduced + 2 * m + floats_for_solutions(m, entries) + 6 * sizes.n


def floats_for_change(sizes: MachineSizes) -> int:
    """Workspace for :func:`shortest_change`, in words."""
    return 6 * sizes.n + sizes.n_v + sizes.m + floats_for_solution(sizes)


@part
def constrained_solution(tree, chains, placed, moving, left, reduced, result, multipliers, room):
    """Compute joint accelerations and the multipliers of the conditions; returns the number of dependent conditions."""
    redundant = solve_at_base(chains, reduced, multipliers, room)
    apply_reactions(tree, chains, reduced, multipliers, left)
    n = tree.parent.size
    accelerate(tree, placed, moving, left, (matrix(room, n, 3), matrix(room, n, 3)), result)
    return redundant


@part
def shortest_change(tree, closures, chains, placed, gap, change, room):
    """Compute the coordinate change, smallest in the norm of H, that changes the conditions by -gap; returns the number
    of dependent conditions.

    This is the acceleration of a machine at rest and without loads, with -gap instead of gamma.
    """
    n = tree.parent.size
    still, weight = rows(data_of(zeros(room, 3 * n)), n), matrix(room, n, 3)
    for j in range(n):
        put(weight, j, times(-tree.mass[j], tree.gravity))
    moving = Velocities(still, still, still, still)
    tau = zeros(room, change.size)
    left, reduced = reduction_in(room, tree, closures, chains, placed, moving, tau, weight, still)
    for i in range(gap.size):
        reduced.gamma[i] += gap[i]
    return constrained_solution(tree, chains, placed, moving, left, reduced, change, vector(room, gap.size), room)


@part
def reduction_in(room, tree, closures, chains, placed, moving, tau, force, torque):
    """Eliminate bodies and carry conditions to the base, in a given workspace."""
    n, n_v = tree.parent.size, tau.size
    left = elimination_at(taken(room, floats_for(n, n_v, ELIMINATION)), n, n_v)
    eliminate(tree, placed, moving, tau, force, torque, left)
    return left, reduce(tree, placed, moving, closures, chains, left, room)


@part
def reduce(tree, placed, moving, closures, chains, left, room):
    """Carry the conditions to the base after an elimination."""
    n, m, places = tree.parent.size, closures.kind.size, chains.condition.size
    reduced = BaseProjection(
        matrix(room, places, 6),
        vector(room, chains.first_product[n]),
        zeros(room, chains.first_entry[chains.first_entry.size - 1]),
        vector(room, m),
    )
    reduced.phi[:, :] = 0.0
    fill_biases(closures, placed.r, placed.rotation, moving.linear, moving.angular, reduced.gamma)
    for i in range(m):
        reduced.gamma[i] = -reduced.gamma[i]
    start = blocks(room, m, 2, 6)
    fill_gradients(closures, placed.r, placed.rotation, start)
    for i in range(m):
        for side in range(2):
            if chains.side[i, side] >= 0:
                for k in range(6):
                    reduced.phi[chains.side[i, side], k] += start[i, side, k]
    for j in range(tree.parent.size - 1, -1, -1):
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
            # index within its set; conditions at one body belong to one set
            column = chains.within[chains.condition[other]]
            reduced.psi[line + column] += share * reduced.product[at + other - first]


@part
def apply_reactions(tree, chains, reduced, multipliers, left):
    """Add the reactions of the conditions to the joint drives (B.6)."""
    for j in range(tree.parent.size):
        first, end = chains.first_place[j], chains.first_place[j + 1]
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            at = chains.first_product[j] + (k - tree.first_v[j]) * (end - first)
            for place in range(first, end):
                left.drive[k] -= reduced.product[at + place - first] * multipliers[chains.condition[place]]


@part
def solve_at_base(chains, reduced, multipliers, room):
    """Compute the multipliers of all sets; returns the number of dependent conditions."""
    redundant = 0
    for group in range(chains.first_entry.size - 1):
        members = chains.member[chains.first_member[group] : chains.first_member[group + 1]]
        size = members.size
        entries = float_rows(data_of(reduced.psi) + 8 * chains.first_entry[group], size, size)
        right, solution = vector(room, size), vector(room, size)
        for i in range(size):
            right[i] = reduced.gamma[members[i]]
        redundant += size - least_norm_solution(entries, right, solution, room)
        for i in range(size):
            multipliers[members[i]] = solution[i]
    return redundant


DEPENDENT = 1e-12
"""A row is dependent if elimination leaves less than this fraction of its diagonal entry."""


def floats_for_solutions(total: int, entries: int) -> int:
    """Workspace, in words, for systems with the given total numbers of unknowns and entries."""
    return 3 * total + 2 * entries


@part
def least_norm_solution(matrix, right, x, room):
    """Compute the smallest x with A x = b for a positive semidefinite A; returns the rank.

    Only the lower triangle of A is read. By Cholesky factorisation with diagonal pivoting, A = L L^T with as many
    columns as the rank; if rank-deficient, L = Q R and x = Q R^{-T} R^{-1} Q^T b.
    """
    n = right.size
    factor, order, left = room_for_matrix(room, n, n), numbers(room, n), vector(room, n)
    factor[:, :] = 0.0
    left[:] = 1.0  # remaining fraction of the diagonal entries
    for i in range(n):
        order[i] = i
    rank = 0
    while rank < n:
        best = rank
        for i in range(rank + 1, n):
            if left[order[i]] > left[order[best]]:
                best = i
        order[rank], order[best] = order[best], order[rank]
        p = order[rank]
        if not left[p] * matrix[p, p] > 0.0 or not left[p] > DEPENDENT:
            break
        pivot = np.sqrt(left[p] * matrix[p, p])
        factor[p, rank] = pivot
        for i in range(rank + 1, n):
            r = order[i]
            value = matrix[max(r, p), min(r, p)]
            for k in range(rank):
                value -= factor[r, k] * factor[p, k]
            factor[r, rank] = value / pivot
            rest = matrix[r, r]
            for k in range(rank + 1):
                rest -= factor[r, k] * factor[r, k]
            left[r] = rest / matrix[r, r] if matrix[r, r] > 0.0 else 0.0
        rank += 1
    if rank < n:
        _by_orthogonal_factor(factor, rank, right, x, room)
        return rank
    copy(x, right)
    for i in range(n):
        for k in range(i):
            x[order[i]] -= factor[order[i], k] * x[order[k]]
        x[order[i]] /= factor[order[i], i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[order[i]] -= factor[order[k], i] * x[order[k]]
        x[order[i]] /= factor[order[i], i]
    return rank


@part
def _by_orthogonal_factor(factor, rank, right, x, room):
    """Q R^{-T} R^{-1} Q^T b for L = Q R with `rank` columns: modified Gram-Schmidt, twice."""
    n = right.size
    r, y = room_for_matrix(room, rank, rank), vector(room, rank)
    r[:, :] = 0.0
    x[:] = 0.0
    for k in range(rank):
        for _ in range(2):
            for l in range(k):
                share = _product(factor, l, factor[:, k])
                r[l, k] += share
                for i in range(n):
                    factor[i, k] -= share * factor[i, l]
        r[k, k] = np.sqrt(_product(factor, k, factor[:, k]))
        for i in range(n):
            factor[i, k] /= r[k, k]
        y[k] = _product(factor, k, right)
    for k in range(rank - 1, -1, -1):
        for l in range(k + 1, rank):
            y[k] -= r[k, l] * y[l]
        y[k] /= r[k, k]
    for k in range(rank):
        for l in range(k):
            y[k] -= r[l, k] * y[l]
        y[k] /= r[k, k]
        for i in range(n):
            x[i] += factor[i, k] * y[k]


@part
def _product(matrix, k, v):
    """Column k of the matrix times a vector."""
    value = 0.0
    for i in range(v.size):
        value += matrix[i, k] * v[i]
    return value


@grouped
@entry(void(BodyTree, Placement, Closures, MATRICES, ROWS))
def fill_loop_jacobian(tree, placed, closures, rows, matrix):
    """Compute J, shape (m, n_v): the gradients of the conditions, carried from the cut bodies to the base.

    `rows` is workspace for the gradients at the cut bodies.
    """
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
                j = tree.parent[j]


@grouped
@entry(void(BodyTree, Placement, Velocities, Closures, ROWS, ROWS, MATRICES, VECTOR))
def fill_loop_bias(tree, placed, moving, closures, linear, angular, rows, values):
    r"""Compute :math:`\gamma`, (m,).

    `linear`, `angular` and `rows` are workspace: body accelerations at zero joint accelerations, and gradients.
    """
    for j in range(tree.parent.size):
        i = tree.parent[j]
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
