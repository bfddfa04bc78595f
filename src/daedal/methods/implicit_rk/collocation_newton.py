r"""The stages of a collocation step for F(t, x, x', x'') = 0: their residuals, Jacobians, prediction and tests.

The unknowns are the deviations Z of the stage values from the tangent, which avoids loss of digits in second
derivatives. Multipliers are represented by their stage values. The matrix then stays well conditioned for small steps,
unlike that for second derivatives of the multipliers (Wunderlich chapter 6). Newton's method is that of `stages`, with
the systems F_x + (g/h) F_x' + (g/h)^2 F_x'' for the eigenvalues g of A^{-1}.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import UNEVALUABLE, is_given
from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.convergence import SIMPLIFIED, TO_ROUNDOFF, expect
from daedal.kernels.norms import wrms
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, data_of, float_rows, optional, record_at
from daedal.kernels.second_order import SECOND_ORDER, evaluate_matrix, evaluate_second_order
from daedal.kernels.signatures import f64
from daedal.kernels.vectors import power
from daedal.methods.bdf.modified_bdf_control import POINTS
from daedal.methods.implicit_rk.stages import STAGE_FIELDS
from daedal.methods.one_step import ATTEMPT
from daedal.methods.run_record import RUN

_MAX_ITERATIONS, _POLISHING = 10, 50  # maximum number of iterations: to the tolerance; to round-off
_TOLERANCE = 0.03  # tolerance of Newton's method, in units of the error tolerance
_ROUNDING = 1e-3  # size of corrections, in units of the tolerance, that may be round-off if the iteration must reach it
_NOISE = 100.0 * np.finfo(np.float64).eps
_INCREMENT = 2.0**-26
_WEIGHT_SHARE = 2.0**-13

COLLOCATION = Struct(
    "COLLOCATION",
    [
        *STAGE_FIELDS,
        ("second_order", at(SECOND_ORDER)),
        ("s", INTEGER),
        ("known", INTEGER),
        ("stiffly_accurate", INTEGER),
        ("position_ratio", FLOAT),
        ("filtered", INTEGER),  # whether errors along constraint forces may be excluded from the test
        ("c", f64["s"]),
        ("w", f64["s - known", "s - known"]),
        ("w2", f64["s - known", "s - known"]),
        ("known_column", f64["s - known"]),
        ("polynomials", f64["3 * s", "s + 2"]),
        ("error_weights", f64["s + 1"]),
        ("thesis", INTEGER),  # the controller of the thesis
        ("successes", INTEGER),
        ("past_t", f64[POINTS]),
        ("past_y", f64[POINTS, "second_order.n_y"]),
        # x, x', x'' at the start of the step and at its end
        *[(name, f64["second_order.n"]) for name in ("x", "xp", "xpp", "new_x", "new_xp", "new_xpp")],
        # stages: deviations, highest derivatives, those of the last step
        ("deviations", f64["s", "second_order.n"]),
        ("k", f64["s", "second_order.n"]),
        ("old_k", f64["s", "second_order.n"]),
        ("old_x", f64["second_order.n"]),
        ("old_xp", f64["second_order.n"]),
        ("old_h", FLOAT),
        ("stage", f64[3, "second_order.n"]),
        ("theta", f64[3, "s"]),
        ("n_mass", INTEGER),
        ("mass", optional(f64["n_mass", "n_mass"])),  # F_x'' of the leading variables, if the residual omits it
    ],
)


@inlined
def jacobian(method, level):
    """F_x, F_x' or F_x'', column by column."""
    return float_rows(data_of(method.derivatives[level]), method.n, method.n)


@entry(ATTEMPT)
def collocation_linearise(address, t, h):
    """Compute the Jacobians at the start of the step."""
    run = record_at(address, RUN)
    method = record_at(run.method, COLLOCATION)
    method.jacobian_known = 0
    method.factored[:] = 0.0
    status = _jacobians(run.system, method, method.second_order, run, h)
    if status == 0:
        method.jacobian_known = 1
        method.jacobian_fresh = 1
    return status


@entry(ATTEMPT)
def collocation_predict(address, t, h):
    """Predict Z from the polynomial of the last step, or from the first two derivatives at the start."""
    run = record_at(address, RUN)
    method = record_at(run.method, COLLOCATION)
    _predict(method, method.second_order, h)
    return 0


@entry(ATTEMPT)
def collocation_residuals(address, t, h):
    """Compute R_i = F at the stages from Z."""
    run = record_at(address, RUN)
    method = record_at(run.method, COLLOCATION)
    return evaluate_stages(run.system, method, method.second_order, run, h)


@part
def _jacobians(system, method, form, run, h):
    """F_x, F_x' and F_x'' at the start of the step, by differences; the mass matrix is known for mechanisms."""
    if is_given(form.jacobian):
        status = _given_jacobians(system, method, form, run, h)
        if status != UNEVALUABLE:
            return status
    n = form.n
    x, xp, xpp = method.x, method.xp, method.xpp
    base, value = method.stage[0], method.residual
    weights, others, order = method.weights, method.others, form.order
    j0, j1, j2 = jacobian(method, 0), jacobian(method, 1), jacobian(method, 2)
    system.jacobians += 1
    system.residuals += 1
    status = evaluate_second_order(form, run.t, x, xp, xpp, base)
    if status != 0:
        return status
    if method.n_mass > 0:
        mass = method.mass
        for j in range(n):
            for i in range(n):
                inside = i < method.n_mass and j < method.n_mass
                j2[j, i] = mass[i, j] if inside else 0.0
    largest = 0.0
    for j in range(n):
        if order[j] > 0:
            largest = max(largest, abs(x[j]))
    for level in range(3):
        if level == 2 and method.n_mass > 0:
            break
        target = j0 if level == 0 else j1 if level == 1 else j2
        vector = x if level == 0 else xp if level == 1 else xpp
        for j in range(n):
            if order[j] < level:
                for i in range(n):
                    target[j, i] = 0.0
                continue
            kept, size = vector[j], abs(vector[j])
            if level == 0:
                size = max(size, abs(h * xp[j]))
                if order[j] > 0:  # the position may be accidentally zero
                    size = max(size, 1e-3 * largest)
            elif level == 1:
                size = max(size, max(abs(h * xpp[j]), abs(x[j] / h) * 1e-3))
            else:
                size = max(size, max(abs(xp[j] / h), abs(x[j] / (h * h))) * 1e-3)
            delta = max(_INCREMENT * size, _WEIGHT_SHARE / (weights[j] + others[j]) / power(abs(h), level))
            vector[j] = kept + delta
            delta = vector[j] - kept
            system.jacobian_residuals += 1
            system.residuals += 1
            status = evaluate_second_order(form, run.t, x, xp, xpp, value)
            vector[j] = kept
            if status != 0:
                return status
            for i in range(n):
                target[j, i] = (value[i] - base[i]) / delta
    return 0


@part
def _given_jacobians(system, method, form, run, h):
    """F_x, F_x' and F_x'' from F_x + c1 F_x' + c2 F_x'', scaled by the step size to avoid loss of digits."""
    n, g = form.n, method.gamma[0] / h
    x, xp, xpp = method.x, method.xp, method.xpp
    size = n * n
    j0, j1, j2 = method.derivatives[0], method.derivatives[1], method.derivatives[2]
    system.jacobians += 1
    status = evaluate_matrix(form, run.t, x, xp, xpp, 0.0, 0.0, j0)
    if status == 0:
        status = evaluate_matrix(form, run.t, x, xp, xpp, g, 0.0, j1)
    if status == 0:
        status = evaluate_matrix(form, run.t, x, xp, xpp, 0.0, g * g, j2)
    for e in range(size):
        j1[e] = (j1[e] - j0[e]) / g
        j2[e] = (j2[e] - j0[e]) / (g * g)
    return status


@part
def _predict(method, form, h):
    n, stages, known = form.n, method.s, method.known
    x, xp, xpp = method.x, method.xp, method.xpp
    z, c, order = method.deviations, method.c, form.order
    old_x, old_xp, old_k = method.old_x, method.old_xp, method.old_k
    theta = method.theta
    for i in range(known, stages):
        if method.old_h == 0.0:
            d = c[i] * h
            for j in range(n):
                z[i, j] = 0.5 * d * d * xpp[j] if order[j] == 2 else d * xp[j] if order[j] == 1 else 0.0
            continue
        a = 1.0 + c[i] * h / method.old_h
        weights_at(method, a, theta)
        for j in range(n):
            value = inside(order[j], theta, old_k, j, stages, a, method.old_h, old_x[j], old_xp[j])
            z[i, j] = value - x[j] - (c[i] * h * xp[j] if order[j] == 2 else 0.0)


@part
def weights_at(method, a, theta):
    """L_j, its integral and its double integral at theta = a."""
    stages = method.s
    table = method.polynomials
    for level in range(3):
        for j in range(stages):
            value = 0.0
            for p in range(stages + 1, -1, -1):
                value = value * a + table[level * stages + j, p]
            theta[level, j] = value


@inlined
def inside(order, theta, k, j, stages, a, h, x, xp):
    """The collocation polynomial of variable j at theta = a."""
    value = 0.0
    for i in range(stages):
        value += theta[order, i] * k[i, j]
    if order == 2:
        return x + a * h * xp + h * h * value
    return x + h * value if order == 1 else value


@part
def expect_stages(method, form, run, h):
    """Set the stopping criteria of Newton's method.

    Corrections are measured by their effect on x and x'; those of multipliers are checked after x has converged.
    """
    source, inverse, g, progress = form.source, run.inverse_weights, abs(method.gamma[0] / h), run.newton
    weights, others, order, included = method.weights, method.others, form.order, run.included
    for j in range(form.n_y):
        i = source[j]
        if i < form.n:
            others[i] = 0.0 if order[i] > 0 and included[j] != 0.0 else inverse[j]
            weights[i] = inverse[j] - others[i]
    for j in range(form.n_y):
        i = source[j] - form.n
        if i >= 0 and included[j] != 0.0:
            weights[i] = max(weights[i], g * inverse[j])
    noise = _NOISE * wrms(method.x, weights)  # corrections explained by round-off
    if run.fixed or method.thesis:
        expect(progress, TO_ROUNDOFF, _POLISHING, _TOLERANCE, 0.0, _ROUNDING)
        progress.slowest, progress.stalls_to_stop, progress.stalls_to_fail = 0.5, 1, _POLISHING
        progress.wildest = np.inf
    else:
        expect(progress, SIMPLIFIED, _MAX_ITERATIONS, _TOLERANCE, noise, max(noise, _TOLERANCE))
    progress.follow_tolerance, progress.follow_below, progress.follow_last = np.inf, np.inf, 1.0


@part
def evaluate_stages(system, method, form, run, h):
    """Compute R_i = F at the stages from Z; store the highest derivatives in k."""
    n, stages, known = form.n, method.s, method.known
    x, xp, xpp = method.x, method.xp, method.xpp
    z, k, r = method.deviations, method.k, method.r
    count = stages - known
    w1, w2 = method.w, method.w2
    first = method.known_column
    c, order = method.c, form.order
    work = method.stage
    for i in range(known, stages):
        for j in range(n):
            single, double = 0.0, 0.0
            for l in range(count):
                single += w1[i - known, l] * z[known + l, j]
                double += w2[i - known, l] * z[known + l, j]
            work[0, j] = x[j] + z[i, j]
            work[1, j] = single / h
            work[2, j] = 0.0
            if order[j] == 2:
                work[0, j] += c[i] * h * xp[j]
                work[1, j] += xp[j]
                work[2, j] = double / (h * h) - first[i - known] * xpp[j]
                k[i, j] = work[2, j]
            elif order[j] == 1:
                work[1, j] -= first[i - known] * xp[j]
                k[i, j] = work[1, j]
            else:
                k[i, j] = work[0, j]
        system.residuals += 1
        status = evaluate_second_order(form, run.t + c[i] * h, work[0], work[1], work[2], r[i - known])
        if status != 0:
            return status
    if known:
        for j in range(n):
            k[0, j] = xpp[j] if order[j] == 2 else xp[j] if order[j] == 1 else x[j]
    return 0
