r"""Collocation for F(t, x, x', x'') = 0 in compiled code: steps, error estimate and output.

The error estimate is the difference to an embedded method, sent through the matrix

    E d = (g/h)^2 F_x'' e,    E = F_x + (g/h) F_x' + (g/h)^2 F_x'',

which takes out what acts along constraint forces or is damped by stiffness.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import announce, inlined, kernel, part
from daedal.kernels.dense import solve_lu
from daedal.kernels.norms import wrms
from daedal.kernels.records import float_rows, floats, integers, record_at
from daedal.kernels.second_order import SECOND_ORDER, gather, scatter
from daedal.kernels.system import HOOK_CHANGED
from daedal.methods.collocation_newton import CONVERGED, DIVERGED, SINGULAR, inside, solve_stages, vectors, weights_at
from daedal.methods.dassl_run import empty_buffers
from daedal.methods.dassl_step import (
    CALLBACK_RAISED,
    ERROR_TEST_FAILED,
    MATRIX_SINGULAR,
    NEWTON_FAILED,
    RESIDUAL_UNEVALUABLE,
    differences,
)
from daedal.methods.one_step import (
    accept,
    backward_differences,
    close_step,
    end_of_step,
    give_to_owner,
    growth_by_memory,
    next_step,
    open_run,
    reject,
    step_to_try,
)
from daedal.methods.thesis_control import extrapolation_error, remember, step_after_failure, step_after_success

_GOOD_RATE = 0.02  # below it the Jacobians are kept for the next step
_NOISE = 2000.0 * np.finfo(np.float64).eps
_TARGET = 0.6
_KEPT_RATIO = 1.2  # steps grow only if it is worth a new factorisation
_MAX_FAILURES = 15
_THESIS_START, _THESIS_ORDER = 3, 2  # steps without error test, and the k of its exponent 1/(k + 1)


@kernel
def advance_collocation(systems, methods, integrators, runs, root_functions):
    """Integrate until the end, a failure, a terminal event, or a full buffer; returns the reason."""
    system, m, w, r, roots = systems[0], methods[0], integrators[0], runs[0], root_functions[0]
    s = record_at(m.second_order, SECOND_ORDER)
    empty_buffers(r)
    if not r.started:
        reason = open_run(system, w, r, roots)
        if reason != 0:
            return reason
    taken = 0
    while True:
        reason = next_step(system, m, w, r, roots, taken, m.s + 2)
        if reason != 0:
            return reason
        reason = _step(system, m, s, w, r)
        if reason != 0:
            return reason
        taken += 1
        close_step(w, r)


@part
def _step(system, m, s, w, r):
    """One accepted step; 0 or the reason to stop."""
    newtons, singular, errors, status = 0, 0, 0, CONVERGED
    while True:
        h = step_to_try(m, w, r)
        if h == 0.0:
            return _reason(status, singular)
        t = end_of_step(m, w, r, h)
        status = solve_stages(system, m, s, w, h)
        size, raw = 0.0, 0.0
        if status == CONVERGED:
            _finish(m, s, h)
            gather(s, floats(m.new_x, s.n), floats(m.new_xp, s.n), floats(w.y, w.n))
            if m.thesis:
                size = extrapolation_error(m, w, t) if w.steps >= _THESIS_START else 0.0
            elif not m.fixed:
                raw = _error(m, s, w, h, 0.0)
                size = raw if raw <= _TARGET else _error(m, s, w, h, _NOISE)
                if not size < np.inf:
                    status = DIVERGED
        if status == CONVERGED and size <= 1.0:
            status = _accept(system, m, s, w, t, h)
            if status == CONVERGED:
                # what round-off explains is no reason to shorten the next step
                _next_step_size(m, w, t, h, size if m.thesis or raw <= _TARGET else max(size, _TARGET))
                m.jacobian_known = 1 if m.rate < _GOOD_RATE and not (m.fixed or m.thesis) else 0
                return 0
        if status == RAISED:
            return CALLBACK_RAISED
        m.jacobian_known = m.jacobian_new
        if status == CONVERGED:
            errors += 1
            reject(m, w, h, size)
            if m.thesis:
                w.h = step_after_failure(h, _THESIS_ORDER, size, errors)
        else:
            newtons += 1
            singular += 1 if status == SINGULAR else 0
            reject(m, w, h, -1.0)
        if m.fixed or newtons >= _MAX_FAILURES or errors >= 2 * _MAX_FAILURES or singular >= 4:
            return _reason(status, singular)


@part
def _reason(status, singular):
    """The failure code."""
    if status == UNEVALUABLE:
        return RESIDUAL_UNEVALUABLE
    return ERROR_TEST_FAILED if status == CONVERGED else MATRIX_SINGULAR if singular > 0 else NEWTON_FAILED


@part
def _next_step_size(m, w, t, h, size):
    """The size of the step after an accepted one."""
    if m.fixed:
        return
    if m.thesis:
        m.successes = 1 if m.rejected else m.successes + 1
        m.rejected = 0
        remember(m, w, t, floats(w.y, w.n))
        if w.steps >= _THESIS_START:
            w.h = step_after_success(h, _THESIS_ORDER, size, m.successes)
        return
    grow = growth_by_memory(m, size)
    w.h = h if 1.0 <= grow <= _KEPT_RATIO else h * grow


@part
def _finish(m, s, h):
    """x, x' and x'' at the end of the step."""
    n, stages = s.n, m.s
    x, xp, _ = vectors(m, n)
    new_x, new_xp, new_xpp = floats(m.new_x, n), floats(m.new_xp, n), floats(m.new_xpp, n)
    z, k, order = float_rows(m.z, stages, n), float_rows(m.k, stages, n), integers(s.order, n)
    theta = float_rows(m.theta, 3, stages)
    weights_at(m, 1.0, theta)
    for j in range(n):
        single, double, value = 0.0, 0.0, 0.0
        for i in range(stages):
            value += theta[0, i] * k[i, j]
            single += theta[1, i] * k[i, j]
            double += theta[2, i] * k[i, j]
        if order[j] == 2:
            new_x[j] = x[j] + h * xp[j] + (z[stages - 1, j] if m.stiffly_accurate else h * h * double)
            new_xp[j] = xp[j] + h * single
            new_xpp[j] = value
        elif order[j] == 1:
            new_x[j] = x[j] + (z[stages - 1, j] if m.stiffly_accurate else h * single)
            new_xp[j] = value
            new_xpp[j] = 0.0
        else:
            new_x[j] = value
            new_xp[j] = 0.0
            new_xpp[j] = 0.0


@part
def _error(m, s, w, h, noise):
    """The error of the step in units of the tolerance, filtered, less what errors `noise` |x| of x make."""
    n, stages = s.n, m.s
    x, xp, xpp = vectors(m, n)
    k, weights, order = float_rows(m.k, stages, n), floats(m.error_weights, stages + 1), integers(s.order, n)
    j1, j2, e, d = floats(m.j1, n * n), floats(m.j2, n * n), floats(m.stage, n), floats(m.hat, n)
    g = m.gamma / h
    for j in range(n):
        first = xpp[j] if order[j] == 2 else xp[j]
        value = weights[0] * first
        for i in range(stages):
            value += weights[i + 1] * k[i, j]
        # in units of a position: (h/g) times the error of the velocity
        e[j] = h * value / g if order[j] == 2 else h * value if order[j] == 1 else 0.0
        e[j] = np.copysign(max(abs(e[j]) - noise * abs(x[j]), 0.0), e[j])
    for i in range(n):
        d[i] = 0.0
    for j in range(n):
        if order[j] == 2:
            for i in range(n):
                d[i] += g * g * j2[j * n + i] * e[j]
        elif order[j] == 1:
            for i in range(n):
                d[i] += g * j1[j * n + i] * e[j]
    solve_lu(m.real_lu, d)
    if not m.filtered:
        _differentiation_error(m, s, h, e)
    source, vector, y, start = integers(s.source, s.n_y), floats(w.scratch, w.n), floats(w.y, w.n), differences(w)[0]
    rtol, atol, scale = floats(w.rtol, w.n), floats(w.atol, w.n), floats(w.error_weights, w.n)
    included = floats(w.included, w.n)
    for j in range(s.n_y):
        i = source[j]
        if i >= n:
            vector[j] = g * d[i - n]
            if not m.filtered:
                vector[j] = max(abs(vector[j]), abs(e[i - n]) - noise * abs(g * x[i - n]))
        else:
            vector[j] = d[i] * abs(m.gamma) * m.position_ratio if order[i] == 2 else d[i] if order[i] == 1 else 0.0
        scale[j] = included[j] / (rtol[j] * max(abs(y[j]), abs(start[j])) + atol[j])
    return wrms(vector, scale)


@inlined
def _node(m, c, h, j):
    """The points through which x is differentiated, from t_n: t_{n-1}, t_n, and the stages after it."""
    return -m.old_h if j == 0 else 0.0 if j == 1 else c[m.known + j - 2] * h


@part
def _differentiation_error(m, s, h, e):
    r"""The error of velocities along constraint forces, which no projection corrects.

    There x is given at all stages, and x' is the derivative of the polynomial through x_n and the stages. Its error is
    the divided difference of x over these points and one more, x_{n-1}, or in the first step x'_0, times the derivative
    of prod (t - t_j), without that one, at t_{n+1}.
    """
    n, count = s.n, m.s - m.known + 2
    x, xp, _ = vectors(m, n)
    z, c, old_x = float_rows(m.z, m.s, n), floats(m.c, m.s), floats(m.old_x, n)
    begin = 0 if m.old_h != 0.0 else 1
    slope = 0.0
    for i in range(1, count):
        product = 1.0
        for l in range(1, count):
            if l != i:
                product *= h - _node(m, c, h, l)
        slope += product
    for j in range(n):
        e[j] = 0.0
    if begin == 0:
        weight = slope
        for l in range(1, count):
            weight /= -m.old_h - _node(m, c, h, l)
        for j in range(n):
            e[j] = weight * (old_x[j] - x[j])
    for i in range(2, count):
        p, weight = _node(m, c, h, i), slope
        for l in range(begin, count):
            if l != i:
                weight /= p - _node(m, c, h, l)
        if begin == 1:
            weight /= p  # t_0 counts twice
        for j in range(n):
            e[j] += weight * (z[m.known + i - 2, j] + p * xp[j])
    if begin == 1:
        weight = slope
        for l in range(2, count):
            weight /= -_node(m, c, h, l)
        for j in range(n):
            e[j] += weight * xp[j]


@part
def _accept(system, m, s, w, t, h):
    """Let the owner look at the step, then keep its polynomial."""
    n, stages = s.n, m.s
    x, xp, xpp = vectors(m, n)
    new_x, new_xp, new_xpp = floats(m.new_x, n), floats(m.new_xp, n), floats(m.new_xpp, n)
    if system.hook != 0:
        status = give_to_owner(system, w, t, h)
        if status == HOOK_CHANGED:
            scatter(s, floats(w.y, w.n), new_x, new_xp)
        elif status != 0:
            return status
    _keep_polynomial(m, s, w, h)
    k, old_k = float_rows(m.k, stages, n), float_rows(m.old_k, stages, n)
    old_x, old_xp = floats(m.old_x, n), floats(m.old_xp, n)
    for j in range(n):
        for i in range(stages):
            old_k[i, j] = k[i, j]
        old_x[j], old_xp[j] = x[j], xp[j]
        x[j], xp[j], xpp[j] = new_x[j], new_xp[j], new_xpp[j]
    m.old_h = h
    yp, source = floats(w.yp, w.n), integers(s.source, s.n_y)
    for j in range(s.n_y):
        i = source[j]
        yp[j] = xpp[i - n] if i >= n else xp[i]
    accept(m, w, t, h, stages + 1)
    return CONVERGED


@part
def _keep_polynomial(m, s, w, h):
    """The collocation polynomial and its derivative, as values at equidistant points of the step."""
    n, stages = s.n, m.s
    degree = stages + 1
    phi, source, order = differences(w), integers(s.source, s.n_y), integers(s.order, n)
    x, xp, _ = vectors(m, n)
    k, theta, y = float_rows(m.k, stages, n), float_rows(m.theta, 3, stages), floats(w.y, w.n)
    for q in range(degree):
        w.c.psi[q] = h * (q + 1) / degree
    w.c.psi[degree] = 2.0 * h
    for q in range(1, degree):
        a = 1.0 - q / degree
        weights_at(m, a, theta)
        for j in range(s.n_y):
            i = source[j]
            if i < n:
                phi[q, j] = inside(order[i], theta, k, i, stages, a, h, x[i], xp[i])
            else:
                value = 0.0
                for l in range(stages):
                    value += theta[1, l] * k[l, i - n]
                phi[q, j] = xp[i - n] + h * value
    for j in range(s.n_y):
        i = source[j]
        phi[degree, j] = x[i] if i < n else xp[i - n]
        if i < n and order[i] == 0 and m.old_h == 0.0:
            weights_at(m, 0.0, theta)
            phi[degree, j] = inside(0, theta, k, i, stages, 0.0, h, 0.0, 0.0)
        phi[0, j] = y[j]
        backward_differences(phi, j, degree)


announce(advance_collocation, "the collocation methods")
