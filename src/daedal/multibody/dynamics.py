r"""Forces, mass matrices and accelerations of a tree by recursion over bodies: ``rnea``, ``crba`` and ``aba``.

The equations of motion of a tree in the velocities of its joints are :math:`H(q) \dot u + C(q, u) = \tau`. The
recursive Newton-Euler algorithm (``rnea``) computes the forces :math:`\tau` for given accelerations, the
composite-rigid-body algorithm (``crba``) computes H. Both use the results of :mod:`daedal.multibody.kinematics`.

Accelerations are computed in O(n) by elimination from the tips (appendix A of the formalism, Featherstone's ``aba``).
With :math:`\bar M_j`, :math:`\bar g_j` the mass and the load of body j, including contributions of the outer bodies,

.. math::

    D_j = (B_j^T \bar M_j B_j)^{-1}, \quad \Pi_j = I - \bar M_j B_j D_j B_j^T, \quad
    \hat M_i \mathrel{+}= A_j^T \Pi_j \bar M_j A_j, \quad
    \hat g_i \mathrel{+}= A_j^T \Pi_j (\bar g_j - \bar M_j c_j)                                  \qquad (A.7), (A.8)

from the tips to the base, and from there

.. math::

    \ddot q_j = D_j B_j^T \{\bar g_j - \bar M_j (A_j \dot v_i + c_j)\} + D_j \tau_j, \qquad
    \dot v_j = A_j \dot v_i + B_j \ddot q_j + c_j.                                               \qquad (A.2), (A.6)

A joint of several degrees of freedom is eliminated column by column of :math:`B_j`, the last one first: the factors of
:math:`D_j` are then scalars.
"""

from typing import NamedTuple

import numpy as np

from daedal.kernels.compilation import entry, part
from daedal.kernels.signatures import void
from daedal.multibody.kinematics import BodyTree, Placement, Velocities
from daedal.multibody.vectors import (
    MATRICES,
    ROWS,
    VECTOR,
    add,
    dot,
    grouped,
    minus,
    plus,
    product,
    put,
    put_column,
    row,
    times,
    transposed_product,
    vector_product,
)


class Sweep(NamedTuple):
    """Intermediate results of ``rnea``, in the axes of the ground."""

    linear: np.ndarray  # (n, 3) accelerations of the centres of mass
    angular: np.ndarray  # (n, 3) angular accelerations
    pull: np.ndarray  # (n, 3) force that the joint of a body exerts on it
    twist: np.ndarray  # (n, 3) torque of this joint about the centre of mass


Sweep.kinds = (ROWS, ROWS, ROWS, ROWS)  # type: ignore[attr-defined]


class Composite(NamedTuple):
    """Composite bodies, each of which includes all outer bodies."""

    mass: np.ndarray  # (n,)
    moment: np.ndarray  # (n, 3) mass times the vector from the body's centre to that of the composite
    inertia: np.ndarray  # (n, 3, 3) about the body's centre of mass


Composite.kinds = (VECTOR, ROWS, MATRICES)  # type: ignore[attr-defined]


@part
def moment_of_momentum(tree, placed, j, spin):
    """Multiply the inertia of body j about its centre of mass by a vector in the axes of the ground."""
    return product(placed.rotation, j, product(tree.inertia, j, transposed_product(placed.rotation, j, spin)))


@part
def world_inertia(tree, placed, j, target):
    """Write the inertia of body j about its centre of mass, in the axes of the ground, to target[j]."""
    rotation, inertia = placed.rotation, tree.inertia
    for k in range(3):
        turned = product(inertia, j, (rotation[j, k, 0], rotation[j, k, 1], rotation[j, k, 2]))
        for l in range(k + 1):
            value = dot((rotation[j, l, 0], rotation[j, l, 1], rotation[j, l, 2]), turned)
            target[j, k, l] = value
            target[j, l, k] = value


def rnea(tree, placed, moving, accelerations, force, torque):
    """Generalised joint forces for given joint accelerations.

    `force` and `torque` (n, 3) act on the bodies at their centres of mass, in the axes of the ground, in addition to
    gravity.
    """
    return transmission(tree, placed, moving, accelerations, force, torque)[-1]


def transmission(tree, placed, moving, accelerations, force, torque):
    """The arrays of a :class:`Sweep`, and the result of ``rnea``: reaction components along joint velocities."""
    n, result = tree.parent.size, np.zeros(tree.first_v[-1])
    sweep = Sweep(np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)))
    newton_euler(tree, placed, moving, accelerations, force, torque, sweep, result)
    return *sweep, result


@grouped
@entry(void(BodyTree, Placement, Velocities, VECTOR, ROWS, ROWS, Sweep, VECTOR))
def newton_euler(tree, placed, moving, accelerations, force, torque, sweep, result):
    """Run both sweeps of ``rnea``: to the tips for `sweep`, and back to the base for `result`."""
    n = tree.parent.size
    linear, angular, pull, twist = sweep
    for j in range(n):
        i = tree.parent[j]
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
        i, carried, moment = tree.parent[j], row(pull, j), row(twist, j)
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            result[k] = dot(row(placed.linear, k), carried) + dot(row(placed.angular, k), moment)
        if i >= 0:
            add(pull, i, carried)
            add(twist, i, plus(moment, vector_product(row(placed.arm, j), carried)))


def crba(tree, placed):
    """The mass matrix in the joint velocities."""
    n, n_v = tree.parent.size, tree.first_v[-1]
    matrix = np.zeros((n_v, n_v))
    composite_bodies(tree, placed, Composite(np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3, 3))), matrix)
    return matrix


@grouped
@entry(void(BodyTree, Placement, Composite, ROWS))
def composite_bodies(tree, placed, composite, matrix):
    """Compute the composite bodies and the mass matrix."""
    n = tree.parent.size
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
            while tree.parent[i] >= 0:
                twist = plus(twist, vector_product(row(placed.arm, i), pull))
                i = tree.parent[i]
                for l in range(tree.first_v[i], tree.first_v[i + 1]):
                    matrix[k, l] = dot(row(placed.linear, l), pull) + dot(row(placed.angular, l), twist)
                    matrix[l, k] = matrix[k, l]
        i = tree.parent[j]
        if i >= 0:
            arm = row(placed.arm, j)
            mass[i] += heavy
            add(moment, i, plus(lever, times(heavy, arm)))
            # inertia of the composite about the parent's centre (parallel axes): I - (m~ a~ + a~ m~) - m a~ a~
            trace = 2.0 * dot(lever, arm) + heavy * dot(arm, arm)
            for k in range(3):
                inertia[i, k, k] += trace
                for l in range(k + 1):
                    inertia[i, k, l] += inertia[j, k, l] - lever[k] * arm[l] - arm[k] * (lever[l] + heavy * arm[l])
                    inertia[i, l, k] = inertia[i, k, l]


class Elimination(NamedTuple):
    r"""Results of the sweep to the base, by body and by joint velocity."""

    # [[P, Q], [Q^T, S]], the articulated inertia of a body: Mbar, and Pi Mbar after elimination of its joint
    pp: np.ndarray  # (n, 3, 3)
    pq: np.ndarray  # (n, 3, 3)
    qq: np.ndarray  # (n, 3, 3)
    pull: np.ndarray  # (n, 3) gbar, then Pi (gbar - Mbar c)
    twist: np.ndarray  # (n, 3)
    row_pull: np.ndarray  # (n_v, 3) Mbar b for a column b of B, after elimination of the later columns
    row_twist: np.ndarray  # (n_v, 3)
    pivot: np.ndarray  # (n_v,) b^T Mbar b
    drive: np.ndarray  # (n_v,) b^T (gbar - Mbar c) + tau


@part
def eliminate(tree, placed, moving, tau, force, torque, left):
    """Sweep from the tips to the base, (A.7) and (A.8); results in an :class:`Elimination`."""
    for j in range(tree.parent.size):
        spin = row(moving.angular, j)
        gyration = vector_product(spin, moment_of_momentum(tree, placed, j, spin))
        put(left.pull, j, plus(times(tree.mass[j], tree.gravity), row(force, j)))
        put(left.twist, j, minus(row(torque, j), gyration))
        world_inertia(tree, placed, j, left.qq)
        for k in range(3):
            put_column(left.pp, j, k, (0.0, 0.0, 0.0))
            put_column(left.pq, j, k, (0.0, 0.0, 0.0))
            left.pp[j, k, k] = tree.mass[j]
    for j in range(tree.parent.size - 1, -1, -1):
        _without_bias(moving, left, j)
        for k in range(tree.first_v[j + 1] - 1, tree.first_v[j] - 1, -1):
            _eliminate_column(placed, left, j, k, tau[k])
        if tree.parent[j] >= 0:
            _pass_on(left, j, tree.parent[j], row(placed.arm, j))


@part
def _without_bias(moving, left, j):
    """Replace gbar of body j by gbar - Mbar c."""
    linear, angular = row(moving.linear_bias, j), row(moving.angular_bias, j)
    pull, twist = articulated_product(left, j, linear, angular)
    put(left.pull, j, minus(row(left.pull, j), pull))
    put(left.twist, j, minus(row(left.twist, j), twist))


@part
def articulated_product(left, j, linear, angular):
    """The articulated inertia of body j times (linear, angular)."""
    pq = left.pq
    along = (
        pq[j, 0, 0] * linear[0] + pq[j, 1, 0] * linear[1] + pq[j, 2, 0] * linear[2],
        pq[j, 0, 1] * linear[0] + pq[j, 1, 1] * linear[1] + pq[j, 2, 1] * linear[2],
        pq[j, 0, 2] * linear[0] + pq[j, 1, 2] * linear[1] + pq[j, 2, 2] * linear[2],
    )
    return plus(product(left.pp, j, linear), product(pq, j, angular)), plus(along, product(left.qq, j, angular))


@part
def _eliminate_column(placed, left, j, k, tau):
    """Replace Mbar by Mbar - u u^T / d and gbar by gbar - u (b^T gbar + tau) / d, with u = Mbar b, d = b^T u."""
    linear, angular = row(placed.linear, k), row(placed.angular, k)
    u, w = articulated_product(left, j, linear, angular)
    pull, twist = row(left.pull, j), row(left.twist, j)
    pivot = dot(linear, u) + dot(angular, w)
    drive = dot(linear, pull) + dot(angular, twist) + tau
    put(left.row_pull, k, u)
    put(left.row_twist, k, w)
    left.pivot[k], left.drive[k] = pivot, drive
    a, b = times(1.0 / pivot, u), times(1.0 / pivot, w)
    for l in range(3):
        for m in range(3):
            left.pp[j, l, m] -= u[l] * a[m]
            left.pq[j, l, m] -= u[l] * b[m]
            left.qq[j, l, m] -= w[l] * b[m]
    put(left.pull, j, minus(pull, times(drive, a)))
    put(left.twist, j, minus(twist, times(drive, b)))


@part
def _pass_on(left, j, i, arm):
    r"""Add A^T (Pi Mbar) A and A^T Pi (gbar - Mbar c) to the parent: with :math:`\tilde R` of the arm,
    :math:`Q - P \tilde R` and :math:`S + \tilde R (Q - P \tilde R) - Q^T \tilde R`."""
    pull = row(left.pull, j)
    add(left.pull, i, pull)
    add(left.twist, i, plus(row(left.twist, j), vector_product(arm, pull)))
    pp, pq, qq = left.pp, left.pq, left.qq
    rows = (_row_shifted(pp, pq, j, 0, arm), _row_shifted(pp, pq, j, 1, arm), _row_shifted(pp, pq, j, 2, arm))
    for l in range(3):
        # column l of R~ (Q - P R~), and row l of Q^T R~, which is (column l of Q) x R
        moved = vector_product(arm, (rows[0][l], rows[1][l], rows[2][l]))
        turned = vector_product((pq[j, 0, l], pq[j, 1, l], pq[j, 2, l]), arm)
        for m in range(3):
            pp[i, l, m] += pp[j, l, m]
            pq[i, l, m] += rows[l][m]
            qq[i, l, m] += qq[j, l, m] - turned[m]
            qq[i, m, l] += moved[m]


@part
def _row_shifted(pp, pq, j, l, arm):
    """Row l of Q - P R~; a row of P R~ is (row of P) x R."""
    turned = vector_product((pp[j, l, 0], pp[j, l, 1], pp[j, l, 2]), arm)
    return minus((pq[j, l, 0], pq[j, l, 1], pq[j, l, 2]), turned)


@part
def accelerate(tree, placed, moving, left, work, result):
    """Sweep from the base to the tips, (A.2) and (A.6); `work` is workspace for the accelerations of the bodies."""
    linear, angular = work
    for j in range(tree.parent.size):
        i = tree.parent[j]
        speeding, turning = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if i >= 0:
            turning = row(angular, i)
            speeding = plus(row(linear, i), vector_product(turning, row(placed.arm, j)))
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            held = dot(row(left.row_pull, k), speeding) + dot(row(left.row_twist, k), turning)
            value = (left.drive[k] - held) / left.pivot[k]
            result[k] = value
            speeding = plus(speeding, times(value, row(placed.linear, k)))
            turning = plus(turning, times(value, row(placed.angular, k)))
        put(linear, j, plus(speeding, row(moving.linear_bias, j)))
        put(angular, j, plus(turning, row(moving.angular_bias, j)))
