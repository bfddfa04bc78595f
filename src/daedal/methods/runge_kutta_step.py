r"""Explicit Runge-Kutta steps in compiled code, for y' = f(t, y).

    k_i = f(t + c_i h, y + h sum_{j<i} a_ij k_j),    y_1 = y + h sum_i b_i k_i,    error = h || sum_i e_i k_i ||

A tableau is data: one kernel runs them all. Every step leaves the polynomial through its values at five equidistant
points, in the Newton form that all methods share.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import announce, part, pointer
from daedal.kernels.records import ADDRESS, INTEGER, float_rows, floats, record_at
from daedal.kernels.system import HOOK_CHANGED, SYSTEM, rate
from daedal.methods.one_step import (
    ATTEMPT,
    HOPELESS,
    close_polynomial,
    combine,
    give_to_owner,
    polynomial,
    size_in,
    size_of_error,
    watch_stiffness,
    weighted_sum,
)
from daedal.methods.run_record import RUN, differences

_NODES = 4  # intervals between the points that define the polynomial of a step
_STIFF_LIMIT = 1.0  # of |h lambda|, where vibrations become unstable; suspicions are looked into
HARMLESS = 0.1  # a projection smaller than this, in units of the tolerance, leaves the last slope usable

TABLEAU = np.dtype(
    [
        ("stages", INTEGER),
        ("maximum_norm", INTEGER),
        ("a", ADDRESS),
        ("b", ADDRESS),
        ("c", ADDRESS),
        ("e", ADDRESS),
        ("inner", ADDRESS),  # weights of the slopes at the inner points of the polynomial
        ("k", ADDRESS),
    ]
)


@pointer(ATTEMPT)
def runge_kutta_attempt(address, t, h):
    """The stages from phi_0, y_1 and its error."""
    run = record_at(address, RUN)
    return _attempt(record_at(run.system, SYSTEM), record_at(run.method, TABLEAU), run, h)


@pointer(ATTEMPT)
def runge_kutta_accept(address, t, h):
    """The polynomial of the step; its last slope is the first of the next one."""
    run = record_at(address, RUN)
    return _accept(record_at(run.system, SYSTEM), record_at(run.method, TABLEAU), run, t, h)


@part
def _attempt(system, tableau, run, h):
    n, s = run.n, tableau.stages
    start, k, y, stage = differences(run)[0], float_rows(tableau.k, s, n), floats(run.y, n), floats(run.slope, n)
    a, b, c, e = float_rows(tableau.a, s, s), floats(tableau.b, s), floats(tableau.c, s), floats(tableau.e, s)
    if not run.slope_known:
        status = rate(system, run.t, start, k[0])
        if status != 0:
            return status if status == RAISED else HOPELESS
        run.slope_known = 1
    for i in range(1, s):
        combine(a[i], i, k, start, h, 0, n, stage)
        status = rate(system, run.t + c[i] * h, stage, k[i])
        if status != 0:
            return status
    error = floats(run.error, n)
    combine(b, s, k, start, h, 0, n, y)
    weighted_sum(e, s, k, 0, n, error)
    for i in range(n):
        error[i] *= h
    if not run.fixed:
        run.error_of_step = size_of_error(system, run, tableau.maximum_norm)
    return 0


@part
def _accept(system, tableau, run, t, h):
    n, s = run.n, tableau.stages
    k, y, yp = float_rows(tableau.k, s, n), floats(run.y, n), floats(run.yp, n)
    changed = False
    if run.stop_when_stiff:
        watch_stiffness(run, h, k, float_rows(tableau.a, s, s), floats(run.scratch, n), _STIFF_LIMIT)
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status == HOOK_CHANGED:
            change = size_in(tableau.maximum_norm, floats(run.scratch, n), floats(run.inverse_weights, n))
            changed = run.fixed != 0 or change > HARMLESS
        elif status != 0:
            return status
    polynomial(run, h, y, k, float_rows(tableau.inner, _NODES - 1, s), n, _NODES)
    close_polynomial(run, h, _NODES)
    for i in range(n):
        k[0, i] = k[s - 1, i]
        yp[i] = k[s - 1, i]
    run.slope_known = 0 if changed else 1
    return 0


announce(_attempt, "the explicit Runge-Kutta methods")
