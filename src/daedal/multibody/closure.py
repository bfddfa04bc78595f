r"""Conditions on two frames, from which joints that close a loop are made.

Frame A at :math:`p_A` with the axes :math:`a_x, a_y, a_z` and frame B likewise; :math:`d = p_B - p_A`, all in the axes
of the ground. Every condition is one of three,

.. math:: d_k = 0, \qquad a_k \cdot d = 0, \qquad a_k \cdot b_l = 0,

each with its gradient with respect to the virtual displacements and rotations of the two bodies and with what its
second derivative has without accelerations (Haug's basic constraints). They are the :math:`\phi(u_n, u_{n+1})` of
(2.44), (2.45).
"""

from typing import NamedTuple

import numpy as np

from daedal.kernels.compilation import kernel
from daedal.multibody.kinematics import cross

OFFSET, ALONG, ACROSS = 0, 1, 2
"""d_k = 0; a_k . d = 0; a_k . b_l = 0."""


class Closures(NamedTuple):
    """Conditions as arrays: which bodies (-1 is the ground), where the frames are on them, and of what kind."""

    kind: np.ndarray  # (m,)
    k: np.ndarray  # (m,)
    l: np.ndarray  # (m,)
    body: np.ndarray  # (m, 2)
    place: np.ndarray  # (m, 2, 3) from the centre of mass, in the axes of the body
    axes: np.ndarray  # (m, 2, 3, 3) from the axes of the frame to those of the body


@kernel
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def _frame(r, rotation, body, place, axes):
    if body < 0:
        return place + 0.0, place, axes
    turn = rotation[body]
    arm = turn @ place
    return r[body] + arm, arm, turn @ axes


@kernel
def residuals(closures, r, rotation):
    """The value of each condition for bodies at `r`, turned by `rotation`."""
    m = closures.kind.size
    values = np.zeros(m)
    for i in range(m):
        at_a, _, a = _frame(r, rotation, closures.body[i, 0], closures.place[i, 0], closures.axes[i, 0])
        at_b, _, b = _frame(r, rotation, closures.body[i, 1], closures.place[i, 1], closures.axes[i, 1])
        d = at_b - at_a
        k = closures.k[i]
        if closures.kind[i] == OFFSET:
            values[i] = d[k]
        elif closures.kind[i] == ALONG:
            values[i] = _dot(a[:, k], d)
        else:
            l = closures.l[i]
            values[i] = _dot(a[:, k], b[:, l])
    return values


@kernel
def gradients(closures, r, rotation):
    r"""The rows :math:`\phi_u`: shape (m, 2, 6), for (dr, dpi) of the first and the second body of each condition."""
    m = closures.kind.size
    rows = np.zeros((m, 2, 6))
    for i in range(m):
        at_a, arm_a, a = _frame(r, rotation, closures.body[i, 0], closures.place[i, 0], closures.axes[i, 0])
        at_b, arm_b, b = _frame(r, rotation, closures.body[i, 1], closures.place[i, 1], closures.axes[i, 1])
        d = at_b - at_a
        k = closures.k[i]
        if closures.kind[i] == ACROSS:
            turning = cross(a[:, k], b[:, closures.l[i]])  # d(a . b) = (dpi_a x a) . b + a . (dpi_b x b)
            rows[i, 0, 3:] = turning
            rows[i, 1, 3:] = -turning
        else:
            n = np.zeros(3)
            if closures.kind[i] == OFFSET:
                n[k] = 1.0
            else:
                n = n + a[:, k]
                rows[i, 0, 3:] = cross(n, d)
            rows[i, 0, :3] = -n
            rows[i, 0, 3:] -= cross(arm_a, n)
            rows[i, 1, :3] = n
            rows[i, 1, 3:] = cross(arm_b, n)
    return rows


@kernel
def biases(closures, r, rotation, linear, angular):
    r"""gamma of (2.45): minus what the second derivative of each condition has without accelerations of the bodies."""
    m = closures.kind.size
    values = np.zeros(m)
    still = np.zeros(3)
    for i in range(m):
        body_a, body_b = closures.body[i, 0], closures.body[i, 1]
        at_a, arm_a, a = _frame(r, rotation, body_a, closures.place[i, 0], closures.axes[i, 0])
        at_b, arm_b, b = _frame(r, rotation, body_b, closures.place[i, 1], closures.axes[i, 1])
        spin_a, spin_b = still, still
        speed = np.zeros(3)
        if body_a >= 0:
            spin_a = angular[body_a]
            speed = speed - linear[body_a]
        if body_b >= 0:
            spin_b = angular[body_b]
            speed = speed + linear[body_b]
        speed = speed + cross(spin_b, arm_b) - cross(spin_a, arm_a)
        k = closures.k[i]
        if closures.kind[i] == ACROSS:
            one, two = a[:, k], b[:, closures.l[i]]
            rate_one, rate_two = cross(spin_a, one), cross(spin_b, two)
            second = (
                _dot(cross(spin_a, rate_one), two) + 2.0 * _dot(rate_one, rate_two) + _dot(one, cross(spin_b, rate_two))
            )
        else:
            bend = cross(spin_b, cross(spin_b, arm_b)) - cross(spin_a, cross(spin_a, arm_a))
            if closures.kind[i] == OFFSET:
                second = bend[k]
            else:
                n = a[:, k]
                rate = cross(spin_a, n)
                second = _dot(n, bend) + 2.0 * _dot(rate, speed) + _dot(cross(spin_a, rate), at_b - at_a)
        values[i] = -second
    return values
