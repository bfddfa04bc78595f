r"""Collocation for F(t, x, x', x'') = 0 in compiled code: steps, error estimate and output.

The error estimate is the difference from an embedded method, filtered by the matrix

    E d = (g/h)^2 F_x'' e,    E = F_x + (g/h) F_x' + (g/h)^2 F_x'',

which removes components along constraint forces and those damped by stiffness.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import caller, entry, inlined, part
from daedal.kernels.convergence import CONVERGED, DIVERGED
from daedal.kernels.matrix import solve
from daedal.kernels.norms import wrms
from daedal.kernels.records import record_at
from daedal.kernels.second_order import gather, scatter
from daedal.kernels.system import HOOK_CHANGED
from daedal.methods.bdf.modified_bdf_control import (
    extrapolation_error,
    remember,
    step_after_failure,
    step_after_success,
)
from daedal.methods.implicit_rk.collocation_newton import (
    COLLOCATION,
    evaluate_stages,
    expect_stages,
    inside,
    jacobian,
    weights_at,
)
from daedal.methods.one_step import ATTEMPT, close_polynomial, give_to_owner
from daedal.methods.run_record import RUN

_GOOD_RATE = 0.02  # rate below which the next step reuses the Jacobians
_NOISE = 2000.0 * np.finfo(np.float64).eps
_TARGET = 0.6
_THESIS_START, _THESIS_ORDER = 3, 2  # number of steps without error test; k of the exponent 1/(k + 1) in the step size

_call = caller(ATTEMPT)


@entry(ATTEMPT)
def collocation_attempt(address, t, h):
    """Compute the stages, the end of the step and its error."""
    run = record_at(address, RUN)
    method = record_at(run.method, COLLOCATION)
    return _attempt(run.system, method, method.second_order, run, address, t, h)


@entry(ATTEMPT)
def collocation_accept(address, t, h):
    """Store the polynomial of the step, and initial data of the next one."""
    run = record_at(address, RUN)
    method = record_at(run.method, COLLOCATION)
    return _accept(run.system, method, method.second_order, run, t, h)


@part
def _attempt(system, method, form, run, address, t, h):
    if run.attempt_error_failures + run.attempt_newton_failures > 0:
        method.jacobian_known = method.jacobian_fresh
    else:
        method.jacobian_fresh = 0
    expect_stages(method, form, run, h)
    status = _call(method.solve, address, t, h)
    if status == CONVERGED and not (run.fixed or method.thesis):
        status = evaluate_stages(system, method, form, run, h)  # the last correction changes the highest derivatives
    if status != CONVERGED:
        return status
    _finish(method, form, h)
    gather(form, method.new_x, method.new_xp, run.y)
    if method.thesis:
        if run.steps >= _THESIS_START:
            run.error_of_step = extrapolation_error(method, run, t)
        if run.error_of_step > 1.0:
            run.h = step_after_failure(h, _THESIS_ORDER, run.error_of_step, run.attempt_error_failures + 1)
    elif not run.fixed:
        error = _error(method, form, run, h, 0.0)
        run.least_error = 0.0
        if not error <= _TARGET:
            # errors explained by round-off do not fail the step or shorten the next one
            error = _error(method, form, run, h, _NOISE)
            run.least_error = _TARGET
        if not error < np.inf:
            return DIVERGED
        run.error_of_step = error
    return CONVERGED


@part
def _thesis_rules(method, run, t, h):
    """The step after an accepted one, by the controller of the thesis."""
    method.successes = 1 if run.rejected else method.successes + 1
    remember(method, run, t, run.y)
    if run.steps + 1 >= _THESIS_START:
        run.h = step_after_success(h, _THESIS_ORDER, run.error_of_step, method.successes)


@part
def _finish(method, form, h):
    """x, x' and x'' at the end of the step."""
    n, stages = form.n, method.s
    x, xp = method.x, method.xp
    new_x, new_xp, new_xpp = method.new_x, method.new_xp, method.new_xpp
    z, k, order = method.deviations, method.k, form.order
    theta = method.theta
    weights_at(method, 1.0, theta)
    for j in range(n):
        single, double, value = 0.0, 0.0, 0.0
        for i in range(stages):
            value += theta[0, i] * k[i, j]
            single += theta[1, i] * k[i, j]
            double += theta[2, i] * k[i, j]
        if order[j] == 2:
            new_x[j] = x[j] + h * xp[j] + (z[stages - 1, j] if method.stiffly_accurate else h * h * double)
            new_xp[j] = xp[j] + h * single
            new_xpp[j] = value
        elif order[j] == 1:
            new_x[j] = x[j] + (z[stages - 1, j] if method.stiffly_accurate else h * single)
            new_xp[j] = value
            new_xpp[j] = 0.0
        else:
            new_x[j] = value
            new_xp[j] = 0.0
            new_xpp[j] = 0.0


@part
def _error(method, form, run, h, noise):
    """The filtered error of the step in units of the tolerance, minus the effect of errors `noise` |x| of x."""
    n, stages = form.n, method.s
    x, xp, xpp = method.x, method.xp, method.xpp
    k, order = method.k, form.order
    weights = method.error_weights
    j1, j2 = jacobian(method, 1), jacobian(method, 2)
    e, d = method.stage[0], method.residual
    g = method.gamma[0] / h
    for j in range(n):
        first = xpp[j] if order[j] == 2 else xp[j]
        value = weights[0] * first
        for i in range(stages):
            value += weights[i + 1] * k[i, j]
        # in units of positions: (h/g) times the error of the velocity
        e[j] = h * value / g if order[j] == 2 else h * value if order[j] == 1 else 0.0
        e[j] = np.copysign(max(abs(e[j]) - noise * abs(x[j]), 0.0), e[j])
    for i in range(n):
        d[i] = 0.0
    for j in range(n):
        if order[j] == 2:
            for i in range(n):
                d[i] += g * g * j2[j, i] * e[j]
        elif order[j] == 1:
            for i in range(n):
                d[i] += g * j1[j, i] * e[j]
    solve(method.linear.matrix, run.t, d)
    _differentiation_error(method, form, h, e)
    if method.filtered:
        _along_stiff_forces(method, form, run.t, g, e)
    source, vector = form.source, run.scratch
    y, start = run.y, run.phi[0]
    rtol, atol, scale = run.rtol, run.atol, run.scale
    included = run.included
    for j in range(form.n_y):
        i = source[j]
        if i >= n:
            vector[j] = max(abs(g * d[i - n]), abs(e[i - n]) - noise * abs(g * x[i - n]))
        else:
            position = d[i] * abs(method.gamma[0]) * method.position_ratio
            vector[j] = position if order[i] == 2 else d[i] if order[i] == 1 else 0.0
        scale[j] = included[j] / (rtol[j] * max(abs(y[j]), abs(start[j])) + atol[j])
    return wrms(vector, scale)


@inlined
def _node(method, c, h, j):
    """Points for differentiating x, relative to t_n: t_{n-1}, t_n, and the stages after it."""
    return -method.old_h if j == 0 else 0.0 if j == 1 else c[method.known + j - 2] * h


@part
def _along_stiff_forces(method, form, t, g, e):
    """The component S^2 e along stiff forces of the differentiation error e of velocities.

    S = (g^2 M + g C + K)^{-1} (g C + K) is 1 along stiff forces. Other components of the error are corrected: along
    constraint forces by the projection, elsewhere, where S is about (h omega)^2, by the equations of motion.
    Constraints are the rows without accelerations.
    """
    n = form.n
    j0, j1, j2 = jacobian(method, 0), jacobian(method, 1), jacobian(method, 2)
    order, stiff = form.order, method.stage[1]
    for _ in range(2):
        for i in range(n):
            stiff[i], moves = 0.0, False
            for j in range(n):
                moves = moves or j2[j, i] != 0.0
            if moves:
                for j in range(n):
                    if order[j] == 2:
                        stiff[i] += (g * j1[j, i] + j0[j, i]) * e[j]
        solve(method.linear.matrix, t, stiff)
        for i in range(n):
            e[i] = stiff[i]


@part
def _differentiation_error(method, form, h, e):
    r"""The error of velocities along constraint forces, if no projection corrects it, and along stiff forces.

    In this component, x is given at all stages, and x' is the derivative of the polynomial through x_n and the stages.
    Its error is the divided difference of x over these points and x_{n-1} (x'_0 in the first step), times the
    derivative of prod (t - t_j), without t_{n-1}, at t_{n+1}.
    """
    n, count = form.n, method.s - method.known + 2
    x, xp = method.x, method.xp
    z, c, old_x = method.deviations, method.c, method.old_x
    begin = 0 if method.old_h != 0.0 else 1
    slope = 0.0
    for i in range(1, count):
        product = 1.0
        for l in range(1, count):
            if l != i:
                product *= h - _node(method, c, h, l)
        slope += product
    for j in range(n):
        e[j] = 0.0
    if begin == 0:
        weight = slope
        for l in range(1, count):
            weight /= -method.old_h - _node(method, c, h, l)
        for j in range(n):
            e[j] = weight * (old_x[j] - x[j])
    for i in range(2, count):
        p, weight = _node(method, c, h, i), slope
        for l in range(begin, count):
            if l != i:
                weight /= p - _node(method, c, h, l)
        if begin == 1:
            weight /= p  # t_0 counts twice
        for j in range(n):
            e[j] += weight * (z[method.known + i - 2, j] + p * xp[j])
    if begin == 1:
        weight = slope
        for l in range(2, count):
            weight /= -_node(method, c, h, l)
        for j in range(n):
            e[j] += weight * xp[j]


@part
def _accept(system, method, form, run, t, h):
    """Pass the step to the hook, then store its polynomial."""
    n, stages = form.n, method.s
    x, xp, xpp = method.x, method.xp, method.xpp
    new_x, new_xp, new_xpp = method.new_x, method.new_xp, method.new_xpp
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status == HOOK_CHANGED:
            scatter(form, run.y, new_x, new_xp)
        elif status != 0:
            return status
    _keep_polynomial(method, form, run, h)
    k, old_k, old_x, old_xp = method.k, method.old_k, method.old_x, method.old_xp
    for j in range(n):
        for i in range(stages):
            old_k[i, j] = k[i, j]
        old_x[j], old_xp[j] = x[j], xp[j]
        x[j], xp[j], xpp[j] = new_x[j], new_xp[j], new_xpp[j]
    method.old_h = h
    yp, source = run.yp, form.source
    for j in range(form.n_y):
        i = source[j]
        yp[j] = xpp[i - n] if i >= n else xp[i]
    if method.thesis and not run.fixed:
        _thesis_rules(method, run, t, h)
    method.jacobian_known = 1 if run.newton.worst < _GOOD_RATE and not (run.fixed or method.thesis) else 0
    return CONVERGED


@part
def _keep_polynomial(method, form, run, h):
    """The collocation polynomial and its derivative, as values at equidistant points of the step."""
    n, stages = form.n, method.s
    degree = stages + 1
    phi, source, order = run.phi, form.source, form.order
    x, xp = method.x, method.xp
    k, theta, y = method.k, method.theta, run.y
    for q in range(1, degree):
        a = 1.0 - q / degree
        weights_at(method, a, theta)
        for j in range(form.n_y):
            i = source[j]
            if i < n:
                phi[q, j] = inside(order[i], theta, k, i, stages, a, h, x[i], xp[i])
            else:
                value = 0.0
                for l in range(stages):
                    value += theta[1, l] * k[l, i - n]
                phi[q, j] = xp[i - n] + h * value
    for j in range(form.n_y):
        i = source[j]
        phi[degree, j] = x[i] if i < n else xp[i - n]
        if i < n and order[i] == 0 and method.old_h == 0.0:
            weights_at(method, 0.0, theta)
            phi[degree, j] = inside(0, theta, k, i, stages, 0.0, h, 0.0, 0.0)
        phi[0, j] = y[j]
    close_polynomial(run, h, degree)
