r"""Accelerations of a tree in O(n): elimination from the tips, appendix A of the formalism, Featherstone's ``aba``.

With :math:`\bar M_j`, :math:`\bar g_j` the mass and the load of body j and of what the bodies behind it pass on,

.. math::

    D_j = (B_j^T \bar M_j B_j)^{-1}, \quad \Pi_j = I - \bar M_j B_j D_j B_j^T, \quad
    \hat M_i \mathrel{+}= A_j^T \Pi_j \bar M_j A_j, \quad
    \hat g_i \mathrel{+}= A_j^T \Pi_j (\bar g_j - \bar M_j c_j)                                  \qquad (A.7), (A.8)

from the tips to the base, and from there

.. math::

    \ddot q_j = D_j B_j^T \{\bar g_j - \bar M_j (A_j \dot v_i + c_j)\} + D_j \tau_j, \qquad
    \dot v_j = A_j \dot v_i + B_j \ddot q_j + c_j.                                               \qquad (A.2), (A.6)

A joint of several degrees of freedom is eliminated column by column of :math:`B_j`, the last one first: what would
otherwise be the factors of :math:`D_j` are then numbers.
"""

from typing import NamedTuple

import numpy as np

from daedal.kernels.compilation import part
from daedal.multibody.dynamics import moment_of_momentum, world_inertia
from daedal.multibody.vectors import add, dot, minus, plus, product, put, put_column, row, times, vector_product


class Elimination(NamedTuple):
    r"""What the sweep to the base leaves behind: for each body, and for each velocity of a joint."""

    # [[P, Q], [Q^T, S]], the articulated inertia of a body: Mbar, and Pi Mbar when its joint has been eliminated
    pp: np.ndarray  # (n, 3, 3)
    pq: np.ndarray  # (n, 3, 3)
    qq: np.ndarray  # (n, 3, 3)
    pull: np.ndarray  # (n, 3) gbar, then Pi (gbar - Mbar c)
    twist: np.ndarray  # (n, 3)
    row_pull: np.ndarray  # (n_v, 3) Mbar b, for a column b of B, when the columns behind it have been eliminated
    row_twist: np.ndarray  # (n_v, 3)
    pivot: np.ndarray  # (n_v,) b^T Mbar b
    drive: np.ndarray  # (n_v,) b^T (gbar - Mbar c) + tau


@part
def eliminate(tree, placed, moving, tau, force, torque, left):
    """Sweep from the tips to the base, (A.7) and (A.8), into an :class:`Elimination`."""
    for j in range(tree.father.size):
        spin = row(moving.angular, j)
        gyration = vector_product(spin, moment_of_momentum(tree, placed, j, spin))
        put(left.pull, j, plus(times(tree.mass[j], tree.gravity), row(force, j)))
        put(left.twist, j, minus(row(torque, j), gyration))
        world_inertia(tree, placed, j, left.qq)
        for k in range(3):
            put_column(left.pp, j, k, (0.0, 0.0, 0.0))
            put_column(left.pq, j, k, (0.0, 0.0, 0.0))
            left.pp[j, k, k] = tree.mass[j]
    for j in range(tree.father.size - 1, -1, -1):
        _without_bias(moving, left, j)
        for k in range(tree.first_v[j + 1] - 1, tree.first_v[j] - 1, -1):
            _eliminate_column(placed, left, j, k, tau[k])
        if tree.father[j] >= 0:
            _pass_on(left, j, tree.father[j], row(placed.arm, j))


@part
def _without_bias(moving, left, j):
    """gbar - Mbar c."""
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
    """Mbar - u u^T / d and gbar - u (b^T gbar + tau) / d with u = Mbar b, d = b^T u."""
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
    r"""Add A^T (Pi Mbar) A and A^T Pi (gbar - Mbar c) to the father: with :math:`\tilde R` of the arm,
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
    """Sweep from the base to the tips, (A.2) and (A.6); `work` has room for the accelerations of the bodies."""
    linear, angular = work
    for j in range(tree.father.size):
        i = tree.father[j]
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
