r"""Explicit Runge-Kutta steps in compiled code, for y' = f(t, y).

    k_i = f(t + c_i h, y + h sum_{j<i} a_ij k_j),    y_1 = y + h sum_i b_i k_i,    error = h || sum_i e_i k_i ||

A tableau is data: one kernel executes all of them. :func:`explicit_steps` defines the step once, for single runs and
for ensemble lanes (:mod:`daedal.kernels.arithmetic`). A step provides the polynomial through its values at equidistant
points, in the Newton form shared by all methods. It is the method's continuous extension, with its additional stages,
if output or events lie inside the step, and the Hermite cubic if the hook stops the run. Otherwise only y is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from daedal.kernels.arithmetic import ONE, NumberOperations
from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.records import FLOAT, INTEGER, Struct, floats, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.system import HOOK_CHANGED, rate
from daedal.kernels.vectors import copy
from daedal.methods.one_step import (
    ATTEMPT,
    HOPELESS,
    close_polynomial,
    count_stiff,
    give_to_owner,
    hermite_polynomial,
    polynomial,
    size_in,
    size_of_error,
    stiffness,
    sums_of,
)
from daedal.methods.run_record import RUN, differences

SHARE = 0.01  # weight of the second error estimate (HNW II.10)
HARMLESS = 0.1  # size of a projection, in units of the tolerance, below which the last slope is reused

TABLEAU = Struct(
    "TABLEAU",
    [
        ("n", INTEGER),
        ("stages", INTEGER),
        ("dense_stages", INTEGER),  # additional stages for dense output
        ("degree", INTEGER),  # degree of the polynomial of a step
        ("two_errors", INTEGER),
        ("maximum_norm", INTEGER),
        ("stiff_limit", FLOAT),  # stability limit of |h lambda|
        ("a", f64["stages", "stages"]),
        ("a_dense", f64["dense_stages", "stages + dense_stages"]),
        ("c", f64["stages + dense_stages"]),
        ("e", f64["stages"]),
        ("e3", f64["stages"]),  # weights of the second error estimate
        ("inner", f64["degree - 1", "stages + dense_stages"]),  # weights at inner points of the polynomial
        ("k", f64["stages + dense_stages", "n"]),
    ],
)


class StepAccess(NamedTuple):
    """Access functions for the arrays of a step, for a single run or eight lanes; their argument is the record.

    The record has n, error, and phi, whose first row is y at the start of the step.
    """

    tableau: Any
    """The TABLEAU record."""
    slopes: Any
    """The slopes of the stages."""
    stage: Any
    """The vector that receives y of a stage."""
    evaluate: Any
    """``evaluate(run, t, i)``: the slope of stage i at the stored y; nonzero to abort."""
    size_of_error: Any
    """``size_of_error(run, maximum)``: the norm of ``run.error`` in units of the tolerance."""


class ExplicitSteps(NamedTuple):
    """The functions created by :func:`explicit_steps`."""

    stages: Any
    dense_stages: Any
    size_of_estimate: Any


def explicit_steps(number: NumberOperations, access: StepAccess) -> ExplicitSteps:
    """Define the functions of a step: its stages, the stages for dense output, and the error norms."""
    spread, get, put, root, where_less = number.spread, number.get, number.put, number.root, number.where_less
    combine, weighted_sum, *_ = sums_of(number)
    tableau_of, slopes_of, stage_of, evaluate, size_of_error = access

    @part
    def stages(run, t, h):
        """All stages but the first; the last is y at the end of the step."""
        tableau = tableau_of(run)
        a, c, k, start, stage = tableau.a, tableau.c, slopes_of(run), run.phi[0], stage_of(run)
        for i in range(1, tableau.stages):
            combine(a[i], i, k, start, h, 0, run.n, stage)
            status = evaluate(run, t + c[i] * h, i)
            if status != 0:
                return status
        return 0

    @part
    def dense_stages(run, t, h):
        """The stages needed for the polynomial of the step."""
        tableau = tableau_of(run)
        a, c, k, start, stage = tableau.a_dense, tableau.c, slopes_of(run), run.phi[0], stage_of(run)
        for i in range(tableau.stages, tableau.stages + tableau.dense_stages):
            combine(a[i - tableau.stages], i, k, start, h, 0, run.n, stage)
            status = evaluate(run, t + c[i] * h, i)
            if status != 0:
                return status
        return 0

    @part
    def size_of(run, tableau, weights, h):
        """The norm of h sum_i e_i k_i in units of the tolerance."""
        error = run.error
        weighted_sum(weights, tableau.stages, slopes_of(run), 0, run.n, error)
        for i in range(run.n):
            put(error, i, get(error, i) * h)
        return size_of_error(run, tableau.maximum_norm)

    @part
    def size_of_estimate(run, h):
        """The error norm, combining two estimates if the method has two (HNW II.10)."""
        tableau = tableau_of(run)
        size = size_of(run, tableau, tableau.e, h)
        if tableau.two_errors:
            other = size_of(run, tableau, tableau.e3, h)
            squared = size * size + SHARE * other * other
            size = size * (size / root(where_less(spread(0.0), squared, squared, spread(1.0))))
        return size

    return ExplicitSteps(stages, dense_stages, size_of_estimate)


# --- single runs ------------------------------------------------------------------------------------------------------


@inlined
def _tableau(run):
    return record_at(run.method, TABLEAU)


@inlined
def _slopes(run):
    return record_at(run.method, TABLEAU).k


@inlined
def _stage(run):
    return run.slope


@part
def _evaluate(run, t, i):
    return rate(run.system, t, run.slope, record_at(run.method, TABLEAU).k[i])


@part
def _size_of_error(run, maximum):
    return size_of_error(run.system, run, maximum)


_stages, dense_stages, _size_of_estimate = explicit_steps(
    ONE, StepAccess(_tableau, _slopes, _stage, _evaluate, _size_of_error)
)


@entry(ATTEMPT)
def runge_kutta_attempt(address, t, h):
    """Compute the stages from phi_0, y_1 and its error."""
    run = record_at(address, RUN)
    return _attempt(run.system, record_at(run.method, TABLEAU), run, h)


@entry(ATTEMPT)
def runge_kutta_accept(address, t, h):
    """Store the polynomial of the step; its last slope is the first of the next step."""
    run = record_at(address, RUN)
    return _accept(run.system, record_at(run.method, TABLEAU), run, t, h)


@part
def _attempt(system, tableau, run, h):
    if not run.slope_known:
        status = rate(system, run.t, differences(run)[0], tableau.k[0])
        if status != 0:
            return status if status == RAISED else HOPELESS
        run.slope_known = 1
    status = _stages(run, run.t, h)
    if status != 0:
        return status
    copy(run.y, run.slope)  # the last stage is at the end of the step
    if not run.fixed:
        run.error_of_step = _size_of_estimate(run, h)
    return 0


@part
def _is_looked_into(run, t):
    """Whether the polynomial of the step ending at t is used: for dense output, events, or an output time."""
    if run.dense or run.has_roots or run.sign * (t - run.t_end) > 0.0:
        return True
    if run.each_step or run.next_time >= run.n_times:
        return False
    return run.sign * (t - floats(run.times, run.n_times)[run.next_time]) > 0.0


@part
def _accept(system, tableau, run, t, h):
    n, s = run.n, tableau.stages
    nodes, k, y, yp = tableau.degree, tableau.k, run.y, run.yp
    changed, whole = False, _is_looked_into(run, t)
    if whole and tableau.dense_stages > 0:
        status = dense_stages(run, run.t, h)
        if status != 0:
            return status
    if run.stop_when_stiff:
        count_stiff(run, h, stiffness(run, h, k, tableau.a, run.scratch), tableau.stiff_limit)
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
