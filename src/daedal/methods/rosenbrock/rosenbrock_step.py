r"""Steps of Rosenbrock methods for F(t, y, y') = 0 in compiled code.

The equations of the stages are defined in :mod:`daedal.symbolic.tracing.linearly_implicit`. For small traced problems,
generated machine code computes a whole step in one call; if its pivots are bad, a value is not finite or a function
raises, and for all other problems, the step is computed stage by stage with the usual matrix and factors.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import CALLBACK, UNEVALUABLE, call, fetch, is_given, nothing
from daedal.kernels.compilation import caller, entry, inlined, part
from daedal.kernels.linear import LINEAR
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE, factor, fill, solve
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, at, data_of, float_rows, floats, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.system import HOOK_CHANGED, residual
from daedal.methods.one_step import ATTEMPT, HOPELESS, give_to_owner, size_of_error
from daedal.methods.run_record import RUN, differences

ROSENBROCK = Struct(
    "ROSENBROCK",
    [
        ("linear", at(LINEAR)),
        ("general", ADDRESS),  # the step without generated code
        ("step", CALLBACK),  # (y, y', h) -> y, increments, defect [, z]
        ("time_derivative", CALLBACK),
        ("slope_product", CALLBACK),
        ("depends_on_time", INTEGER),
        ("quasilinear", INTEGER),  # whether y' = z is solved together with the equations
        ("watched", INTEGER),  # whether dF/dy' must be monitored for changes
        ("changed", INTEGER),  # whether a change was detected
        ("n", INTEGER),
        # the method
        ("stages", INTEGER),
        ("degree", INTEGER),
        ("gamma", FLOAT),
        ("a", f64["stages", "stages"]),
        ("c", f64["stages", "stages"]),
        ("m", f64["stages"]),
        ("nodes", f64["stages"]),
        ("time_weights", f64["stages"]),
        ("differences", f64["degree", "stages"]),  # weights of increments in the polynomial of a step
        ("slope", f64["stages"]),  # weights of increments in h y' at the end of a step
        ("middle", FLOAT),  # point where the polynomial of a step is tested, and weights for y and h y' there
        ("inside", f64["stages"]),
        ("inside_slope", f64["stages"]),
        # y, increments, defect and z of the step, from generated code or not
        ("rows", INTEGER),  # number of rows of the results; z exists only in quasilinear problems
        ("result", ADDRESS),  # location of the results: `own`, or the block of the generated code
        ("own", f64["rows", "n"]),
        ("z", f64["stages", "n"]),  # increments of z
        *[(name, f64["n"]) for name in ("stage_y", "stage_yp", "right", "by_time", "slopes", "probe", "first_y")],
    ],
)

_SHARE, _SPACINGS = 1e-6, 1e3  # increments of the time, relative to h and to the round-off of t
_SPACING = np.finfo(np.float64).eps
# failures of a step after which the defect is attributed to a jump of an input or to inconsistent initial values,
# and ignored
STUBBORN = 3
_EVERY = 8  # steps between two checks of dF/dy'
_SAME = 1e-5  # relative difference of dF/dy' v that counts as zero
_ROUNDOFF = 1e4 * np.finfo(np.float64).eps

_call = caller(ATTEMPT)


@inlined
def _result(method):
    return float_rows(method.result, method.rows, method.n)


@entry(ATTEMPT)
def rosenbrock_attempt(address, t, h):
    """Compute y at the end of the step and its error."""
    run = record_at(address, RUN)
    return _attempt(run.system, run, record_at(run.method, ROSENBROCK), address, t, h)


@entry(ATTEMPT)
def rosenbrock_accept(address, t, h):
    """Store the polynomial of the step."""
    run = record_at(address, RUN)
    return _accept(run.system, run, record_at(run.method, ROSENBROCK), t, h)


@entry(ATTEMPT)
def rosenbrock_general(address, t, h):
    """Compute the step stage by stage."""
    run = record_at(address, RUN)
    method = record_at(run.method, ROSENBROCK)
    return _general(run.system, method.linear.matrix, run, method, t, h)


@part
def _attempt(system, run, method, address, t, h):
    n, s = run.n, method.stages
    run.cj = 1.0 / (h * method.gamma)
    run.order = run.control_order
    status = 1
    if is_given(method.step):
        status = _by_code(system, run, method, h)
    if status != 0:
        status = _call(method.general, address, t, h)
    if status != 0:
        return status
    result, y, error, inside = _result(method), run.y, run.error, run.attempt_error_failures < STUBBORN
    for j in range(n):
        y[j] = result[0, j]
        error[j] = max(abs(result[s, j]), abs(result[s + 1, j])) if inside else result[s, j]
    if not run.fixed:
        run.error_of_step = size_of_error(system, run)
    return 0


@part
def _by_code(system, run, method, h):
    """The step using generated code; nonzero if its result is unusable."""
    n, s = run.n, method.stages
    start, slope, block = differences(run)[0], run.yp, floats(method.step.block, 2 * n + 1)
    for j in range(n):
        block[j] = start[j]
        block[n + j] = slope[j]
    block[2 * n] = h
    system.residuals += s + 1
    system.jacobians += 1
    system.factorisations += 1
    status = call(method.step, run.t)
    method.result = method.step.block + 8 * (2 * n + 1)
    if status == 0:
        check, y = 0.0, _result(method)[0]
        for j in range(n):
            check += y[j] * 0.0
        if check != 0.0:
            status = UNEVALUABLE
    return status


# --- stage by stage ---------------------------------------------------------------------------------------------------


@part
def _general(system, matrix, run, method, t, h):
    n, s = run.n, method.stages
    method.result = data_of(method.own)
    result, u, w, start, z = method.own, method.own[1 : s + 1], method.z, differences(run)[0], run.yp
    a, c, m = method.a, method.c, method.m
    y, yp, right, by_time, slopes = method.stage_y, method.stage_yp, method.right, method.by_time, method.slopes
    nodes, weights = method.nodes, method.time_weights
    status = _linearise(system, matrix, run, method, h)
    if status != 0:
        return status
    for i in range(s):
        for j in range(n):
            y[j] = start[j]
            yp[j] = z[j] if method.quasilinear else 0.0
            slopes[j] = 0.0
        for k in range(i):
            a_k, c_k = a[i, k], c[i, k] / h
            for j in range(n):
                y[j] += a_k * u[k, j]
                slopes[j] += c_k * u[k, j]
                if method.quasilinear:
                    yp[j] += a_k * w[k, j]
        for j in range(n):
            if method.quasilinear:
                slopes[j] += yp[j]
            else:
                yp[j] = -slopes[j]
        status = residual(system, t if nodes[i] == 1.0 else run.t + nodes[i] * h, y, yp, right)
        if status == 0 and method.quasilinear:
            status = fetch(method.slope_product, run.t, start, z, slopes, yp)
        if status != 0:
            return status
        for j in range(n):
            right[j] = -right[j] - weights[i] * h * by_time[j]
            if method.quasilinear:
                right[j] += yp[j]
        status = solve(matrix, t, right)
        if status != 0:
            return status
        for j in range(n):
            u[i, j] = right[j]
            w[i, j] = run.cj * right[j] - slopes[j]
    _end(result[0], m, u, start)
    if method.quasilinear:
        _end(result[s + 2], m, w, z)
    for j in range(n):
        if not abs(result[0, j]) < np.inf:
            return UNEVALUABLE
    return 0 if run.fixed else _defect(system, matrix, run, method, t, h)


@part
def _defect(system, matrix, run, method, t, h):
    """The error of the polynomial inside the step, G^{-1} F there; ignored if F is undefined."""
    n, s = run.n, method.stages
    u, defect = method.own[1 : s + 1], method.own[s + 1]
    y, yp, start = method.stage_y, method.stage_yp, differences(run)[0]
    inside, slope = method.inside, method.inside_slope
    for j in range(n):
        y[j] = start[j]
        yp[j] = 0.0
    for i in range(s):
        for j in range(n):
            y[j] += inside[i] * u[i, j]
            yp[j] += slope[i] / h * u[i, j]
    status = residual(system, run.t + method.middle * h, y, yp, defect)
    if status == UNEVALUABLE:
        for j in range(n):
            defect[j] = 0.0
        return 0
    return status if status != 0 else solve(matrix, t, defect)


@part
def _end(target, m, increments, start):
    """target = start + sum_i m_i increments_i."""
    n = start.size
    for j in range(n):
        target[j] = start[j]
    for i in range(m.size):
        for j in range(n):
            target[j] += m[i] * increments[i, j]


@part
def _linearise(system, matrix, run, method, h):
    """Compute F_t at the start of the step, and factor F_y + F_y' / (h gamma)."""
    start, z, right, by_time = differences(run)[0], run.yp, method.right, method.by_time
    by_differences = method.depends_on_time and not is_given(method.time_derivative)
    if by_differences or not is_given(matrix.jacobian):
        status = residual(system, run.t, start, z, right)
        if status != 0:
            return status
    status = 0
    if by_differences:
        status = _difference_in_time(system, run, method, h)
    elif method.depends_on_time:
        status = fetch(method.time_derivative, run.t, start, z, nothing(), by_time)
    if status != 0:
        return status
    system.jacobians += 1
    status = fill(system, matrix, run.t, start, z, right, run.cj, h, run.inverse_weights)
    if status != 0:
        run.jacobian_unevaluable = status == JACOBIAN_UNEVALUABLE
        return status
    system.factorisations += 1
    return factor(matrix, run.t)


@part
def _difference_in_time(system, run, method, h):
    """F_t by a difference along the step, or in the opposite direction if F is undefined there."""
    start, z, right, by_time = differences(run)[0], run.yp, method.right, method.by_time
    status, delta = 0, max(_SHARE * abs(h), _SPACINGS * _SPACING * abs(run.t))
    for side in range(2):
        t = run.t + (np.copysign(delta, h) if side == 0 else -np.copysign(delta, h))
        system.jacobian_residuals += 1
        status = residual(system, t, start, z, by_time)
        if status != UNEVALUABLE:
            break
    if status == 0:
        for j in range(run.n):
            by_time[j] = (by_time[j] - right[j]) / (t - run.t)
    return status


# --- accepted steps ---------------------------------------------------------------------------------------------------


@part
def _accept(system, run, method, t, h):
    if method.watched and run.steps % _EVERY == 0:
        status = _look_at_mass(system, run, method, t)
        if status != 0:
            return status
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    keep_polynomial(run, method, t, h)
    return 0


@part
def keep_polynomial(run, method, t, h):
    """Backward differences of the polynomial from the increments, and y' at its end; only the secant if no more is
    needed."""
    n, s = run.n, method.stages
    phi, y, yp = differences(run), run.y, run.yp
    seen = run.dense or run.each_step or run.has_roots
    if not seen and run.next_time < run.n_times:
        seen = run.sign * (floats(run.times, run.n_times)[run.next_time] - t) <= 0.0
    degree = method.degree if seen else 1
    if seen:
        u, weights = _result(method)[1 : s + 1], method.differences
        for q in range(degree):
            for j in range(n):
                phi[q + 1, j] = 0.0
            for i in range(s):
                weight = weights[q, i]
                for j in range(n):
                    phi[q + 1, j] += weight * u[i, j]
        if not method.quasilinear:
            slope = method.slope
            for j in range(n):
                yp[j] = 0.0
            for i in range(s):
                weight = slope[i] / h
                for j in range(n):
                    yp[j] += weight * u[i, j]
    else:
        for j in range(n):
            phi[1, j] = y[j] - phi[0, j]
    if method.quasilinear:
        z = _result(method)[s + 2]
        for j in range(n):
            yp[j] = z[j]
    for q in range(degree):
        run.psi[q] = h * (q + 1) / degree
    run.psi[degree] = 2.0 * h
    run.degree = degree
    for j in range(n):
        phi[0, j] = y[j]


@part
def _look_at_mass(system, run, method, t):
    """Check, for one v, that F(t, y, v) - F(t, y, 0) is the same as at the start of the run."""
    n = run.n
    y, first, slopes = run.y, method.first_y, run.yp
    v, zero, value, other = method.slopes, method.stage_yp, method.right, method.stage_y
    probe, size = method.probe, method.by_time
    for j in range(n):
        zero[j] = 0.0
        v[j] = (1.0 + 0.3 * np.sin(1.0 + j)) * max(abs(slopes[j]), abs(y[j] - first[j]) / abs(t - run.t0))
        v[j] = v[j] if v[j] > 0.0 else 1.0
        probe[j] = 0.0
        size[j] = 0.0
    for place in range(2):
        sign = 1.0 if place == 0 else -1.0
        at, time = (y, t) if place == 0 else (first, run.t0)
        status = residual(system, time, at, v, value)
        if status == 0:
            status = residual(system, time, at, zero, other)
        if status != 0:
            return 0 if status == UNEVALUABLE else status
        for j in range(n):
            probe[j] += sign * (value[j] - other[j])
            size[j] += _SAME * abs(value[j] - other[j]) + _ROUNDOFF * (abs(value[j]) + abs(other[j]))
    for j in range(n):
        if abs(probe[j]) > size[j]:
            method.changed = 1
            return HOPELESS
    return 0
