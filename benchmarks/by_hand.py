"""Mechanisms reduced to ordinary differential equations by hand, as users of solvers without constraints do it.

From the index-3 statement M(q) q'' = f(q, q') - G(q)^T lam, 0 = g(q) they differentiate the constraints twice and solve

    [ M  G^T ] [ a   ]   [ f     ]
    [ G  0   ] [ lam ] = [ gamma ]

in every evaluation. Each function below fills the upper half of the symmetric matrix, which comes with zeros, and the
right-hand side; sines and cosines are taken once. The operations are those that Python, Numba, JAX and CasADi share:
the same functions are read with the sine, cosine and root of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import cos, sin, sqrt
from types import FunctionType
from typing import Any

import numpy as np

import daedal
from benchmarks.rates import OPTIONS, Equations, rate_of, words_of
from daedal.library import squeezer as data


def planar_pendulum(q, v, p, matrix, right):
    """A point of mass 1; p = (length, weight)."""
    matrix[0, 0] = 1.0
    matrix[1, 1] = 1.0
    matrix[0, 2] = q[0]
    matrix[1, 2] = q[1]
    right[0] = 0.0
    right[1] = -p[1]
    right[2] = -v[0] * v[0] - v[1] * v[1]


def double_pendulum(q, v, p, matrix, right):
    """Two rods with masses 1 and 2 and inertia of half lengths 1 and 2; p = (l1, l2, weight1, weight2)."""
    x1, y1 = p[0] * cos(q[2]), p[0] * sin(q[2])
    x2, y2 = p[1] * cos(q[5]), p[1] * sin(q[5])
    w1, w2 = v[2] * v[2], v[5] * v[5]
    matrix[0, 0] = 1.0
    matrix[1, 1] = 1.0
    matrix[2, 2] = 1.0 / 3.0
    matrix[3, 3] = 2.0
    matrix[4, 4] = 2.0
    matrix[5, 5] = 8.0 / 3.0
    matrix[0, 6] = 1.0
    matrix[1, 7] = 1.0
    matrix[3, 8] = 1.0
    matrix[4, 9] = 1.0
    matrix[2, 6] = y1
    matrix[2, 7] = -x1
    matrix[2, 8] = 2.0 * y1
    matrix[2, 9] = -2.0 * x1
    matrix[5, 8] = y2
    matrix[5, 9] = -x2
    right[0] = p[2]
    right[1] = 0.0
    right[2] = 0.0
    right[3] = p[3]
    right[4] = 0.0
    right[5] = 0.0
    right[6] = -x1 * w1
    right[7] = -y1 * w1
    right[8] = -2.0 * x1 * w1 - x2 * w2
    right[9] = -2.0 * y1 * w1 - y2 * w2


def crank_slider(q, v, p, matrix, right):
    """The double pendulum whose end stays at the height of its pivot: l1 sin(phi1) + l2 sin(phi2) = 0, twice."""
    double_pendulum(q, v, p, matrix, right)
    x1, y1, x2, y2 = -matrix[2, 7], matrix[2, 6], -matrix[5, 9], matrix[5, 8]
    matrix[2, 10] = 2.0 * x1
    matrix[5, 10] = 2.0 * x2
    right[10] = 2.0 * y1 * v[2] * v[2] + 2.0 * y2 * v[5] * v[5]


def seven_body(q, v, p, matrix, right):
    """Andrews' squeezer, p = (torque,); Hairer and Wanner II, section VI.9 (VII.7 of the second edition)."""
    sin_beta, cos_beta = sin(q[0]), cos(q[0])
    sin_theta, cos_theta = sin(q[1]), cos(q[1])
    sin_gamma, cos_gamma = sin(q[2]), cos(q[2])
    sin_phi, cos_phi = sin(q[3]), cos(q[3])
    sin_delta, cos_delta = sin(q[4]), cos(q[4])
    sin_omega, cos_omega = sin(q[5]), cos(q[5])
    sin_epsilon, cos_epsilon = sin(q[6]), cos(q[6])
    sin_bt, cos_bt = sin_beta * cos_theta + cos_beta * sin_theta, cos_beta * cos_theta - sin_beta * sin_theta
    sin_pd, cos_pd = sin_phi * cos_delta + cos_phi * sin_delta, cos_phi * cos_delta - sin_phi * sin_delta
    sin_oe, cos_oe = (
        sin_omega * cos_epsilon + cos_omega * sin_epsilon,
        cos_omega * cos_epsilon - sin_omega * sin_epsilon,
    )
    # The mass matrix
    k, w = data.E - data.EA, data.ZF - data.FA
    crank = data.M2 * data.DA * data.RR
    upper, lower = data.M4 * data.ZT * k, data.M6 * data.U * w
    second, fourth, sixth = data.M2 * data.DA**2 + data.I2, data.M4 * k**2 + data.I4, data.M6 * w**2 + data.I6
    matrix[0, 0] = data.M1 * data.RA**2 + data.M2 * data.RR**2 + data.I1 + second - 2.0 * crank * cos_theta
    matrix[0, 1] = second - crank * cos_theta
    matrix[1, 1] = second
    matrix[2, 2] = data.M3 * (data.SA**2 + data.SB**2) + data.I3
    matrix[3, 3] = fourth
    matrix[3, 4] = fourth + upper * sin_phi
    matrix[4, 4] = fourth + data.M4 * data.ZT**2 + data.M5 * (data.TA**2 + data.TB**2) + data.I5 + 2.0 * upper * sin_phi
    matrix[5, 5] = sixth
    matrix[5, 6] = sixth - lower * sin_omega
    matrix[6, 6] = sixth + data.M6 * data.U**2 + data.M7 * (data.UA**2 + data.UB**2) + data.I7 - 2.0 * lower * sin_omega
    # Forces: the torque, the spring, centrifugal forces
    x = data.SD * cos_gamma + data.SC * sin_gamma + (data.XB - data.XC)
    y = data.SD * sin_gamma - data.SC * cos_gamma + (data.YB - data.YC)
    pull = data.C0 * data.L0 / sqrt(x * x + y * y) - data.C0
    right[0] = p[0] - crank * v[1] * (v[1] + 2.0 * v[0]) * sin_theta
    right[1] = crank * v[0] * v[0] * sin_theta
    right[2] = pull * (
        x * (data.SC * cos_gamma - data.SD * sin_gamma) + y * (data.SD * cos_gamma + data.SC * sin_gamma)
    )
    right[3] = upper * v[4] * v[4] * cos_phi
    right[4] = -upper * v[3] * (v[3] + 2.0 * v[4]) * cos_phi
    right[5] = -lower * v[6] * v[6] * cos_omega
    right[6] = lower * v[5] * (v[5] + 2.0 * v[6]) * cos_omega
    # The loops: columns 7, 9, 11 hold the derivatives of x, columns 8, 10, 12 those of y
    a, b = data.D * sin_bt, -data.D * cos_bt
    a0, b0 = a - data.RR * sin_beta, b + data.RR * cos_beta
    matrix[0, 7] = a0
    matrix[0, 9] = a0
    matrix[0, 11] = a0
    matrix[0, 8] = b0
    matrix[0, 10] = b0
    matrix[0, 12] = b0
    matrix[1, 7] = a
    matrix[1, 9] = a
    matrix[1, 11] = a
    matrix[1, 8] = b
    matrix[1, 10] = b
    matrix[1, 12] = b
    matrix[2, 7] = -data.SS * cos_gamma
    matrix[2, 8] = -data.SS * sin_gamma
    matrix[3, 9] = -data.E * cos_pd
    matrix[3, 10] = -data.E * sin_pd
    matrix[4, 9] = data.ZT * sin_delta - data.E * cos_pd
    matrix[4, 10] = -data.ZT * cos_delta - data.E * sin_pd
    matrix[5, 11] = data.ZF * sin_oe
    matrix[5, 12] = -data.ZF * cos_oe
    matrix[6, 11] = data.ZF * sin_oe - data.U * cos_epsilon
    matrix[6, 12] = -data.ZF * cos_oe - data.U * sin_epsilon
    # gamma: minus the second derivative of the constraints without accelerations
    beta2, bt2 = v[0] * v[0], (v[0] + v[1]) * (v[0] + v[1])
    gamma2, delta2, pd2 = v[2] * v[2], v[4] * v[4], (v[3] + v[4]) * (v[3] + v[4])
    epsilon2, oe2 = v[6] * v[6], (v[5] + v[6]) * (v[5] + v[6])
    a2 = data.RR * cos_beta * beta2 - data.D * cos_bt * bt2
    b2 = data.RR * sin_beta * beta2 - data.D * sin_bt * bt2
    right[7] = a2 - data.SS * sin_gamma * gamma2
    right[8] = b2 + data.SS * cos_gamma * gamma2
    right[9] = a2 - data.E * sin_pd * pd2 - data.ZT * cos_delta * delta2
    right[10] = b2 + data.E * cos_pd * pd2 - data.ZT * sin_delta * delta2
    right[11] = a2 - data.ZF * cos_oe * oe2 - data.U * sin_epsilon * epsilon2
    right[12] = b2 - data.ZF * sin_oe * oe2 + data.U * cos_epsilon * epsilon2


FILLS: dict[str, Callable[..., None]] = {
    "planar_pendulum": planar_pendulum,
    "double_pendulum": double_pendulum,
    "crank_slider": crank_slider,
    "seven_body": seven_body,
}


def read(function: Callable[..., None], names: Mapping[str, Any]) -> Callable[..., None]:
    """The function, with these names instead of those of this module."""
    return FunctionType(function.__code__, {**function.__globals__, **names})


def elimination(size: int, differs: Callable[[Any], bool]) -> Callable[..., None]:
    """Gaussian elimination of a symmetric matrix; entries that do not differ from zero have nothing to eliminate."""

    def eliminate(matrix, right):
        """Solve in place, from the upper half of the matrix.

        No pivots are looked for: M is positive definite, what its elimination leaves, -G M^-1 G^T, negative definite.
        """
        for k in range(size):
            inverse = 1.0 / matrix[k, k]
            for i in range(k + 1, size):
                if differs(matrix[k, i]):
                    factor = matrix[k, i] * inverse
                    for j in range(i, size):
                        matrix[i, j] -= factor * matrix[k, j]
                    right[i] -= factor * right[k]
        for k in range(size - 1, -1, -1):
            total = right[k]
            for j in range(k + 1, size):
                total -= matrix[k, j] * right[j]
            right[k] = total / matrix[k, k]

    return eliminate


@dataclass(frozen=True)
class ByHand(Equations):
    """q' = v and the accelerations of a mechanism."""

    name: str
    n_q: int
    n_constraints: int

    @property
    def size(self) -> int:
        return self.n_q + self.n_constraints

    def fill(self, words: Mapping[str, Any]) -> Callable[..., None]:
        """The function of the mechanism with the sine, cosine and root of a package."""
        return read(FILLS[self.name], {**words, "double_pendulum": read(double_pendulum, words)})

    def compiled(self) -> Callable[..., None]:
        """An elimination of fixed size is quicker than LAPACK: in a third of its time for seven bodies."""
        import numba

        n, size, through = self.n_q, self.size, numba.njit(**OPTIONS)
        fill = through(read(FILLS[self.name], {"double_pendulum": through(double_pendulum)}))
        eliminate = through(elimination(size, through(lambda entry: entry != 0.0)))

        def rate(t, y, slope, p):
            matrix, right = np.zeros((size, size)), np.empty(size)
            fill(y[:n], y[n:], p, matrix, right)
            eliminate(matrix, right)
            for i in range(n):
                slope[i] = y[n + i]
                slope[n + i] = right[i]

        return through(rate)

    def in_jax(self) -> Callable[..., Any]:
        """Arrays of expressions: under `vmap` quicker than `jax.numpy.linalg.solve`, whose factors are LAPACK's."""
        from jax import numpy as jnp

        n, size = self.n_q, self.size
        fill = self.fill(words_of(jnp))
        eliminate = elimination(size, lambda entry: not isinstance(entry, float) or entry != 0.0)

        def rate(t, y, p):
            matrix, right = np.full((size, size), 0.0, dtype=object), np.full(size, 0.0, dtype=object)
            fill(y[:n], y[n:], p, matrix, right)
            eliminate(matrix, right)
            return jnp.concatenate([y[n:], jnp.stack(list(right[:n]))])

        return rate

    def augmented(self, y: Any, p: Any) -> tuple[Any, Any]:
        """Matrix and right-hand side in symbols of CasADi."""
        import casadi

        n = self.n_q
        matrix, right = casadi.SX(self.size, self.size), casadi.SX(self.size, 1)
        self.fill(words_of(casadi))(y[:n], y[n:], p, matrix, right)
        return casadi.triu2symm(matrix), right

    def in_casadi(self) -> Callable[..., Any]:
        """CasADi's own factors L D L^T in symbols, which are sparse."""
        import casadi

        def rate(t, y, p):
            matrix, right = self.augmented(y, p)
            solution = casadi.ldl_solve(right, *casadi.ldl(matrix, False))
            return casadi.vertcat(y[self.n_q :], solution[: self.n_q])

        return rate


@cache
def by_hand(name: str) -> Equations:
    """A mechanism of the library, or Robertson's reaction, which needs no derivation."""
    if name == "robertson":
        return rate_of(name)
    system = daedal.library.get(name).problem
    return ByHand(name, system.n_q, system.n_constraints)
