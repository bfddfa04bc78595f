r"""Explicit Runge-Kutta steps in compiled code, for y' = f(t, y).

    k_i = f(t + c_i h, y + h sum_{j<i} a_ij k_j),    y_1 = y + h sum_i b_i k_i,    error = h || sum_i e_i k_i ||

A tableau is data: one kernel runs them all. A step leaves the polynomial through its values at equidistant points,
in the Newton form that all methods share. It is that of the method, with the stages that it may need, where something
lies inside of the step; that of Hermite where the owner of the equations stops the run. Elsewhere nobody looks at it,
and only y is written.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import FLOAT, INTEGER, Struct, floats, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.system import HOOK_CHANGED, rate
from daedal.kernels.vectors import copy
from daedal.methods.one_step import (
    ATTEMPT,
    HOPELESS,
    close_polynomial,
    combine,
    give_to_owner,
    hermite_polynomial,
    polynomial,
    size_in,
    size_of_error,
    watch_stiffness,
    weighted_sum,
)
from daedal.methods.run_record import RUN, differences

SHARE = 0.01  # of the second error estimate (HNW II.10)
HARMLESS = 0.1  # a projection smaller than this, in units of the tolerance, leaves the last slope usable

TABLEAU = Struct(
    "TABLEAU",
    [
        ("n", INTEGER),
        ("stages", INTEGER),
        ("dense_stages", INTEGER),  # behind them, for dense output
        ("degree", INTEGER),  # of the polynomial of a step
        ("two_errors", INTEGER),
        ("maximum_norm", INTEGER),
        ("stiff_limit", FLOAT),  # of |h lambda|
        ("a", f64["stages", "stages"]),
        ("a_dense", f64["dense_stages", "stages + dense_stages"]),
        ("c", f64["stages + dense_stages"]),
        ("e", f64["stages"]),
        ("e3", f64["stages"]),  # of the second error estimate
        ("inner", f64["degree - 1", "stages + dense_stages"]),  # weights at inner points of the polynomial
        ("k", f64["stages + dense_stages", "n"]),
    ],
)


@entry(ATTEMPT)
def runge_kutta_attempt(address, t, h):
    """The stages from phi_0, y_1 and its error."""
    run = record_at(address, RUN)
    return _attempt(run.system, record_at(run.method, TABLEAU), run, h)


@entry(ATTEMPT)
def runge_kutta_accept(address, t, h):
    """The polynomial of the step; its last slope is the first of the next one."""
    run = record_at(address, RUN)
    return _accept(run.system, record_at(run.method, TABLEAU), run, t, h)


@part
def _attempt(system, tableau, run, h):
    n, s, k = run.n, tableau.stages, tableau.k
    start, y, stage = differences(run)[0], run.y, run.slope
    a, c, e = tableau.a, tableau.c, tableau.e
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
    copy(y, stage)  # the last stage is that at the end of the step
    if not run.fixed:
        size = _size_of_error(system, tableau, run, h, k, e)
        if tableau.two_errors and size > 0.0:
            other = _size_of_error(system, tableau, run, h, k, tableau.e3)
            size *= size / np.sqrt(size * size + SHARE * other * other)
        run.error_of_step = size
    return 0


@part
def _size_of_error(system, tableau, run, h, k, e):
    """The norm of h sum_i e_i k_i in units of the tolerance."""
    n = run.n
    error = run.error
    weighted_sum(e, tableau.stages, k, 0, n, error)
    for i in range(n):
        error[i] *= h
    return size_of_error(system, run, tableau.maximum_norm)


@part
def _is_looked_into(run, t):
    """Whether the polynomial of the step that ends at t is used: for dense output, events, or an output time."""
    if run.dense or run.has_roots or run.sign * (t - run.t_end) > 0.0:
        return True
    if run.each_step or run.next_time >= run.n_times:
        return False
    return run.sign * (t - floats(run.times, run.n_times)[run.next_time]) > 0.0


@part
def dense_stages(system, tableau, run, h, k):
    """The stages that the polynomial of the step needs; 0 or the status of a function that cannot be evaluated."""
    n, s, more = run.n, tableau.stages, tableau.dense_stages
    start, stage = differences(run)[0], run.slope
    a, c = tableau.a_dense, tableau.c
    for i in range(more):
        combine(a[i], s + i, k, start, h, 0, n, stage)
        status = rate(system, run.t + c[s + i] * h, stage, k[s + i])
        if status != 0:
            return status
    return 0


@part
def _accept(system, tableau, run, t, h):
    n, s = run.n, tableau.stages
    nodes, k, y, yp = tableau.degree, tableau.k, run.y, run.yp
    changed, whole = False, _is_looked_into(run, t)
    if whole and tableau.dense_stages > 0:
        status = dense_stages(system, tableau, run, h, k)
        if status != 0:
            return status
    if run.stop_when_stiff:
        watch_stiffness(run, h, k, tableau.a, run.scratch, tableau.stiff_limit)
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status == HOOK_CHANGED:
            change = size_in(tableau.maximum_norm, run.scratch, run.inverse_weights)
            changed = run.fixed != 0 or change > HARMLESS
        elif status != 0:
            return status
    if whole:
        polynomial(run, h, y, k, tableau.inner, n, nodes)
        close_polynomial(run, h, nodes)
    elif system.hook_signal != 0:
        hermite_polynomial(run, h, k[0], k[s - 1])
    else:
        copy(differences(run)[0], y)
    for i in range(n):
        k[0, i] = k[s - 1, i]
        yp[i] = k[s - 1, i]
    run.slope_known = 0 if changed else 1
    return 0
