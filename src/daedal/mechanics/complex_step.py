r"""Derivatives of compiled constraints by the complex step: exact to round-off, without subtraction.

.. math:: \partial g_i / \partial q_j = \operatorname{Im} g_i(t, q + i \varepsilon e_j) / \varepsilon

It needs a function that Numba compiles for complex arguments and that is analytic; whether it is, shows by comparison
with differences.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.five_point import DIVISOR, PLACES, WEIGHTS

_STEP = 1e-30


def complex_derivatives(constraint, n_q: int, n_g: int, increments: np.ndarray, time_increment: float):
    r"""Compiled ``jacobian(t, q)``, ``partial_t(t, q)`` and ``bias(t, q, v)`` of a compiled ``constraint(t, q)``.

    The bias is :math:`\gamma = -d^2/ds^2\, g(t + s, q + s v)`: a fourth-order difference of complex-step slopes.
    Parameters are passed on.
    """
    import numba

    @numba.njit
    def imaginary(values):
        result = np.empty(n_g)
        for i in range(n_g):
            result[i] = values[i].imag / _STEP
        return result

    @numba.njit
    def jacobian(t, q, *p):
        result = np.empty((n_g, n_q))
        x = q.astype(np.complex128)
        for j in range(n_q):
            x[j] = complex(q[j], _STEP)
            column = imaginary(constraint(complex(t, 0.0), x, *p))
            x[j] = q[j]
            for i in range(n_g):
                result[i, j] = column[i]
        return result

    @numba.njit
    def partial_t(t, q, *p):
        return imaginary(constraint(complex(t, _STEP), q.astype(np.complex128), *p))

    @numba.njit
    def bias(t, q, v, *p):
        speed = 1.0 / time_increment
        for j in range(n_q):
            speed = max(speed, abs(v[j]) / increments[j])
        result = np.zeros(n_g)
        x = np.empty(n_q, dtype=np.complex128)
        for side in range(4):
            move = PLACES[side] / speed
            weight = WEIGHTS[side] / DIVISOR * speed
            for j in range(n_q):
                x[j] = complex(q[j] + move * v[j], _STEP * v[j])
            slope = imaginary(constraint(complex(t + move, _STEP), x, *p))
            for i in range(n_g):
                result[i] -= weight * slope[i]
        return result

    return jacobian, partial_t, bias
