r"""Complex-step derivatives of compiled constraints: exact to round-off, without subtraction.

.. math:: \partial g_i / \partial q_j = \operatorname{Im} g_i(t, q + i \varepsilon e_j) / \varepsilon

Requires an analytic function that Numba compiles for complex arguments; analyticity is checked by comparison with
differences.
"""

import numpy as np

from daedal.kernels.five_point import DIVISOR, PLACES, WEIGHTS

_STEP = 1e-30


def complex_derivatives(constraint, n_q: int, n_g: int, n_p: int):
    r"""Compiled ``jacobian(t, q, tuning)``, ``partial_t(t, q, tuning)`` and ``bias(t, q, v, tuning)`` of a constraint.

    The bias is :math:`\gamma = -d^2/ds^2\, g(t + s, q + s v)`: a fourth-order difference of complex-step slopes.
    `tuning` holds the `n_p` parameters of the constraint (-1 if it takes none), followed by the increments of the
    coordinates and of time.
    """
    import numba

    if n_p < 0:

        @numba.njit
        def complex_constraint(t, x, tuning):
            return constraint(t, x)

    else:

        @numba.njit
        def complex_constraint(t, x, tuning):
            return constraint(t, x, tuning[:n_p])

    first = max(n_p, 0)

    @numba.njit
    def imaginary(values):
        result = np.empty(n_g)
        for i in range(n_g):
            result[i] = values[i].imag / _STEP
        return result

    @numba.njit
    def jacobian(t, q, tuning):
        result = np.empty((n_g, n_q))
        x = q.astype(np.complex128)
        for j in range(n_q):
            x[j] = complex(q[j], _STEP)
            column = imaginary(complex_constraint(complex(t, 0.0), x, tuning))
            x[j] = q[j]
            for i in range(n_g):
                result[i, j] = column[i]
        return result

    @numba.njit
    def partial_t(t, q, tuning):
        return imaginary(complex_constraint(complex(t, _STEP), q.astype(np.complex128), tuning))

    @numba.njit
    def bias(t, q, v, tuning):
        speed = 1.0 / tuning[first + n_q]
        for j in range(n_q):
            speed = max(speed, abs(v[j]) / tuning[first + j])
        result = np.zeros(n_g)
        x = np.empty(n_q, dtype=np.complex128)
        for side in range(4):
            move = PLACES[side] / speed
            weight = WEIGHTS[side] / DIVISOR * speed
            for j in range(n_q):
                x[j] = complex(q[j] + move * v[j], _STEP * v[j])
            slope = imaginary(complex_constraint(complex(t + move, _STEP), x, tuning))
            for i in range(n_g):
                result[i] -= weight * slope[i]
        return result

    return jacobian, partial_t, bias
