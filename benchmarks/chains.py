"""A chain of planar bodies in absolute coordinates: the mechanism whose size is a number."""

from __future__ import annotations

import numpy as np

from daedal import MechanicalSystem

HALF = 0.5  # of the length of a body
GRAVITY = 9.81


def chain(n: int) -> MechanicalSystem:
    """Bodies of mass and length 1, each hinged to the one before; G and gamma are written by hand for Numba."""
    size, joints = 3 * n, 2 * n

    def force(t, q, v, p):
        f = np.zeros(size)
        for i in range(n):
            f[3 * i + 1] = -GRAVITY
        return f

    def constraint(t, q, p):
        r = np.zeros(joints)
        x, y = 0.0, 0.0
        for i in range(n):
            c, s = HALF * np.cos(q[3 * i + 2]), HALF * np.sin(q[3 * i + 2])
            r[2 * i], r[2 * i + 1] = q[3 * i] - c - x, q[3 * i + 1] - s - y
            x, y = q[3 * i] + c, q[3 * i + 1] + s
        return r

    def jacobian(t, q, p):
        rows = np.zeros((joints, size))
        for i in range(n):
            c, s = HALF * np.cos(q[3 * i + 2]), HALF * np.sin(q[3 * i + 2])
            for k in range(i, min(i + 2, n)):
                side = 1.0 if k == i else -1.0
                rows[2 * k, 3 * i], rows[2 * k + 1, 3 * i + 1] = side, side
                rows[2 * k, 3 * i + 2], rows[2 * k + 1, 3 * i + 2] = s, -c
        return rows

    def bias(t, q, v, p):
        r = np.zeros(joints)
        for i in range(n):
            c, s = HALF * np.cos(q[3 * i + 2]), HALF * np.sin(q[3 * i + 2])
            w = v[3 * i + 2] * v[3 * i + 2]
            for k in range(i, min(i + 2, n)):
                r[2 * k] -= c * w
                r[2 * k + 1] -= s * w
        return r

    return MechanicalSystem(
        np.tile([1.0, 1.0, 1.0 / 12.0], n),
        force,
        constraint,
        n_q=size,
        n_constraints=joints,
        constraint_jacobian=jacobian,
        acceleration_bias=bias,
        params=np.zeros(1),
    )
