r"""Projected implicit Runge-Kutta methods for index 2 in Hessenberg form, in compiled code.

U. M. Ascher, L. R. Petzold: Projected implicit Runge-Kutta methods for differential-algebraic equations, SIAM J. Numer.
Anal. 28 (1991) 1097-1120. The end of a step for y' = f(t, y, z), 0 = g(t, y) is replaced by

    y_{n+1} = y^ + f_z(t_{n+1}, y^, z^) lambda,    g(t_{n+1}, y_{n+1}) = 0.

Multipliers z are taken from the stages of their own step: z_{n+1} interpolates the values Z_i, and errors of z_n are
forgotten whatever R(infinity) is.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import caller, part
from daedal.kernels.convergence import CONTINUE, CONVERGED, DIVERGED, TO_ROUNDOFF, UNKNOWN, expect, judge, start
from daedal.kernels.dense import factor_lu, solve_lu
from daedal.kernels.norms import wrms
from daedal.kernels.system import residual
from daedal.methods.run_record import STEP

_MOST = 20
_NOISE = 30.0 * np.finfo(np.float64).eps
_ROUNDING = 1e-2

_call = caller(STEP)


@part
def project(system, run, method, address, t, h, start, k, y):
    """Correct the end y of a step with the slopes k along f_z until the constraints hold."""
    n, s = run.n, method.s
    multiplier, weights = method.multiplier, method.end_value
    point, slope, end_slope = method.stage_y, method.stage_yp, method.end_slope
    for j in range(n):
        if multiplier[j] >= 0:
            value = 0.0
            for i in range(s):
                value += weights[i] * k[i + 1, j]
            y[j] = start[j] + h * value
        point[j] = y[j]
        slope[j] = 0.0
        for i in range(s + 1):
            slope[j] += end_slope[i] * k[i, j]
    method.stage_t, method.slot, method.h = t, s, h
    status = _call(method.linearise_there, address)
    if status == 0:
        status = _directions(method, n)
    if status != 0:
        return status
    return _onto_constraints(system, run, method, t, y)


@part
def _directions(method, n):
    """f_z, and the factors of g_y f_z."""
    entries, n_z = method.entries, method.n_z
    rows, columns = method.rows, method.columns
    multiplier, constraint = method.multiplier, method.constraint
    derivative, f_y = method.derivative, method.f_y[method.s]
    direction, matrix = method.direction, method.lu.data
    direction[:] = 0.0
    matrix[:] = 0.0
    for e in range(entries):
        if derivative[rows[e]] >= 0 and multiplier[columns[e]] >= 0:
            direction[derivative[rows[e]], multiplier[columns[e]]] = -f_y[e]
    for e in range(entries):
        if constraint[rows[e]] >= 0 and multiplier[columns[e]] < 0:
            for l in range(n_z):
                matrix[l, constraint[rows[e]]] += f_y[e] * direction[columns[e], l]
    return factor_lu(method.lu)


@part
def _onto_constraints(system, run, method, t, y):
    """Newton's method for lambda with a constant matrix."""
    n, n_z = run.n, method.n_z
    slope, r, change = method.stage_yp, method.residual, method.stage_y
    rhs, constraint = method.hat, method.constraint
    direction, weights = method.direction, run.inverse_weights
    progress = run.newton
    expect(progress, TO_ROUNDOFF, _MOST, 0.0, _NOISE * wrms(y, weights), _ROUNDING)
    start(progress, UNKNOWN)
    while True:
        status = residual(system, t, y, slope, r)
        if status != 0:
            return status
        for i in range(n):
            if constraint[i] >= 0:
                rhs[constraint[i]] = r[i]
        solve_lu(method.lu, rhs)
        for j in range(n):
            change[j] = 0.0
            for l in range(n_z):
                change[j] -= direction[j, l] * rhs[l]
            y[j] += change[j]
        verdict = judge(progress, wrms(change, weights), 0.0)
        if verdict != CONTINUE:
            return DIVERGED if verdict == DIVERGED else CONVERGED
