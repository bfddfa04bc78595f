r"""The polynomial of a step of an implicit Runge-Kutta method, and its defect, in compiled code.

The polynomial u is stored by its values at equidistant points of the step: those of the method's own interpolation, or,
if the step was taken in two halves, of the interpolation of each half. In either case, the error of u is about

    (F_y + (g/h) F_y')^{-1} F(t, u, u'),

which is the error itself for components determined by algebraic equations or stiffness, and h/g times the error of the
slope for other variables. With g = d + 1, where d is the degree of u, the latter is the error of u between the
interpolation points. Methods whose step does not end with a stage (Gauss) propagate errors of algebraic variables,
which shorter steps cannot reduce; the contribution of the error at the start of the step is therefore subtracted.
"""

from __future__ import annotations

from daedal.kernels.callbacks import UNEVALUABLE
from daedal.kernels.compilation import caller, entry, inlined, part
from daedal.kernels.convergence import CONVERGED
from daedal.kernels.matrix import BANDED, factor, solve
from daedal.kernels.norms import wrms
from daedal.kernels.records import record_at
from daedal.kernels.system import residual
from daedal.methods.implicit_rk.implicit_runge_kutta_newton import IRK
from daedal.methods.implicit_rk.implicit_stages import PLACES
from daedal.methods.one_step import close_polynomial, combine, weighted_sum
from daedal.methods.run_record import RUN, STEP

_SHARPEST = 2e10  # size of y, in units of the tolerance, above which the defect may be round-off

_call = caller(STEP)


@entry(STEP)
def irk_factor_defect(address):
    """Factor F_y + (g/h) F_y'."""
    run = record_at(address, RUN)
    method = record_at(run.method, IRK)
    return _factor(run.system, method.linear, method, run.t)


@part
def _factor(system, linear, method, t):
    matrix, entries, weight = linear.matrix, method.entries, method.g / method.factored[method.count]
    f_y, f_yp, place = method.derivatives[0], method.derivatives[1], method.place
    data = matrix.data
    if matrix.kind == BANDED:
        data[:] = 0.0
    for e in range(entries):
        data[place[e]] = f_y[e] + weight * f_yp[e]
    system.factorisations += 1
    return factor(matrix, t)


@inlined
def is_halved(run, method):
    """Whether the run continues from the two halves of a step."""
    return method.doubling and not run.fixed


@inlined
def _degree(run, method):
    """Degree of the polynomial of a step."""
    return 2 * method.degree if is_halved(run, method) else method.degree


@part
def find_points(run, method, h):
    """Values inside the step, from the polynomials of both halves if there are two, and at its ends.

    The first step does not use the slope at the start, which may be unknown for algebraic variables.
    """
    n, s, halved, degree = run.n, method.s, is_halved(run, method), _degree(run, method)
    start, y, middle = run.phi[0], run.y, method.middle
    points, whole, first, second = method.points, method.whole, method.first, method.second
    count = degree // 2 - 1 if halved else degree - 1  # number of points in one half
    rows = method.degree - 1
    inner = method.inner[0 if run.steps > 0 else rows :]
    for q in range(degree - 1):
        target = points[q + 1]
        if not halved:
            combine(inner[q], s + 1, whole, start, h, 0, n, target)
        elif q < count:
            combine(inner[q], s + 1, second, middle, 0.5 * h, 0, n, target)
        elif q == count:
            for j in range(n):
                target[j] = middle[j]
        else:
            combine(inner[q - count - 1], s + 1, first, start, 0.5 * h, 0, n, target)
    for j in range(n):
        points[0, j] = y[j]
        points[degree, j] = start[j]


@part
def add_defect(system, linear, run, method, address, t, h):
    """run.error := the larger of itself and the defect of the polynomial at some points inside the step.

    The defect is ignored if F is undefined, or if the tolerance is so tight that the defect may be round-off; also for
    variables of index 2 or 3, where round-off and errors at the start are divided by h.
    """
    n, rows = run.n, _degree(run, method) + 1
    error, r = run.error, method.residual
    y, yp, points = method.stage_y, method.stage_yp, method.points
    value, slope = method.inside_value, method.inside_slope
    inherited, share = method.inherited, method.inside_inherited
    if method.some_powers or wrms(run.phi[0], run.inverse_weights) > _SHARPEST:
        return CONVERGED
    factored, own = method.factored, method.count
    if factored[own] != h:
        factored[own] = h
        status = _call(method.factor_defect, address)
        if status != 0:
            factored[own] = 0.0
            return status
    if method.inherits:
        status = _find_inherited(system, linear, run, method, t)
        if status != 0:
            return status
        for j in range(n):
            error[j] -= method.of_halves * inherited[j]
    for k in range(PLACES):
        weighted_sum(value[k], rows, points, 0, n, y)
        weighted_sum(slope[k], rows, points, 0, n, yp)
        for j in range(n):
            yp[j] /= h
        status = residual(system, run.t + method.inside[k] * h, y, yp, r)
        if status == UNEVALUABLE:
            continue
        if status == 0:
            status = solve(linear.matrix, t, r)
        if status != 0:
            return status
        for j in range(n):
            error[j] = max(abs(error[j]), abs(r[j] - share[k] * inherited[j]))
    return CONVERGED


@part
def _find_inherited(system, linear, run, method, t):
    """The error at the start, in components determined by algebraic equations or stiffness.

    With M = F_y + (g/h) F_y' it is M^{-1} F_y M^{-1} F(t_n, y_n, y'_n): where F_y is small relative to M, the residual
    is an error of the slope.
    """
    n, entries = run.n, method.entries
    inherited, r = method.inherited, method.residual
    rows, columns, f_y = method.rows, method.columns, method.derivatives[0]
    for j in range(n):
        inherited[j] = 0.0
    status = residual(system, run.t, run.phi[0], run.yp, r)
    if status == UNEVALUABLE:
        return 0
    if status == 0:
        status = solve(linear.matrix, t, r)
    if status != 0:
        return status
    for e in range(entries):
        inherited[rows[e]] += f_y[e] * r[columns[e]]
    return solve(linear.matrix, t, inherited)


@part
def keep_polynomial(run, method, h):
    """The polynomial in Newton form; the run continues from its end."""
    n, degree = run.n, _degree(run, method)
    phi, points, y = run.phi, method.points, run.y
    for j in range(n):
        phi[0, j] = y[j]
        for q in range(1, degree + 1):
            phi[q, j] = points[q, j]
    close_polynomial(run, h, degree)
