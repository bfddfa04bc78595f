r"""A step of Radau IIA for F(t, y, y') = 0 in compiled code: stages, error estimate, step size, output.

The unknowns of Newton's method are Z_i = Y_i - y_0; the equations are F(t_i, y_0 + Z_i, (1/h) sum_j w_ij Z_j) = 0.

The estimate is that of Hairer and Wanner (J. Comput. Appl. Math. 111, 1999, 93-111) for implicit equations. Their
embedded method compares y' at the start of the step with the slope of the collocation polynomial u there:

    (F_y + (g/h) F_y') e = F_y' (y'_0 - u'(t_0)),    g the real eigenvalue of A^{-1}.

For y' = f this is their (I - h g_0 J)^{-1} (g_0 h f(y_0) + sum e_i Z_i). Multiplied by a constant of the method it is
the largest error of u inside the step, which is tested together with the defect of u: dense output is as accurate as
the tolerance requires, and the end of the step, where the order is 2s - 1, is far more accurate. Variables of index 2
and 3 are tested by the defect only: the embedded method does not cover them.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import UNEVALUABLE
from daedal.kernels.compilation import caller, entry, inlined, part
from daedal.kernels.convergence import CONVERGED, DIVERGED, SIMPLIFIED, TO_ROUNDOFF, expect
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.matrix import solve
from daedal.kernels.norms import wrms
from daedal.kernels.records import FLOAT, INTEGER, Struct, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK_CHANGED, residual
from daedal.kernels.vectors import largest
from daedal.methods.implicit_rk.stages import SHARPEST, STAGE_FIELDS, share_of_class
from daedal.methods.one_step import ATTEMPT, give_to_owner, size_of_error
from daedal.methods.partial_derivatives import after_first_look
from daedal.methods.run_record import RUN, STEP

MOST_STAGES = 7

RADAU = Struct(
    "RADAU",
    [
        *STAGE_FIELDS,
        # the methods, concatenated; tables use the first rows and columns
        ("stages", i64[3]),
        ("c", f64[3, MOST_STAGES]),
        ("w", f64[3, MOST_STAGES, MOST_STAGES]),
        ("d", f64[3, MOST_STAGES]),
        ("share", f64[3]),
        ("middle", f64[3]),
        ("value", f64[3, MOST_STAGES]),
        ("slope", f64[3, MOST_STAGES]),
        ("lowest", INTEGER),  # bounds of `current`
        ("highest", INTEGER),
        ("deviations", f64[MOST_STAGES, "n"]),  # deviations of the stages from the start
        ("defect", f64["n"]),
        # state
        ("smooth_rate", FLOAT),  # convergence rate of Newton's method, for the choice of the stages
        ("troubled", INTEGER),  # whether Newton's method failed since the last step
        ("since_change", INTEGER),  # steps with this number of stages
        ("h_before", FLOAT),
        ("error_before", FLOAT),
    ],
)

_SAFETY, _SMALLEST, _LARGEST = 0.9, 0.2, 3.0
_FIRST = 0.1  # factor by which a rejected first step is shortened
_ROUNDOFF = 4.0 * np.finfo(np.float64).eps  # round-off of a stage
_SHORT = 10.0  # steps shorter than 1/10 of the time scale of the others reduce the test of index-2 variables
_INHERITED = 2  # number of failures after which the remaining error is attributed to the start of the step
_AGAIN = 0.3  # factor by which a repeatedly rejected step is shortened
_KEPT = 1.2  # the step size, and with it the factors, is kept up to this ratio
_GOOD_RATE = 1e-3  # rate below which the next step reuses F_y and F_y'
_RAISE, _LOWER = 0.05, 0.8  # rates below and above which the number of stages is raised and lowered
_WORTH = 3.0  # the number of stages is not reduced if steps would become shorter by this factor
_SETTLED = 5  # steps before the number of stages is increased
_SHARP = (1e6, 1e9)  # size of y, in units of the tolerance, above which a run starts with 5 and with 7 stages
_LONGER, _SHORTER = 1.2, 0.8  # ratios of steps between which the number of stages may increase

_TOLERANCE = 0.003  # tolerance of Newton's method, in units of the error tolerance
_TIGHT = 3e-4  # with variables of index 2 and 3, which inherit errors of the others divided by h
_TIGHTEST = 1e-7  # for variables of index 3, which inherit constraint residuals divided by h^2 of the next step
# bound of the last correction of these variables, in units of the tolerance: the first ratios may be misleading
_SMALL = 1e-2
_FEWEST, _MORE = 10, 2.5  # largest number of iterations with 3 stages, and its increase for each additional stage
_FURTHER = 2  # additional iterations with the tighter tolerance
_POLISHING = 100  # maximum number of iterations with constant steps, which iterate to round-off
_POLISHED = 1e-2  # size of corrections of constant steps, in units of the tolerance, that may be round-off
_NOISE = 30.0 * np.finfo(np.float64).eps
_ROUNDING = 0.1  # size of corrections, in units of the tolerance, that count as round-off if they stagnate
_PLATEAU = 300.0  # largest size of these stagnating corrections, in units of the round-off of y

_call = caller(ATTEMPT)


@entry(STEP)
def radau_begin(address):
    """Compute the derivatives at the start, from which the run determines the index of the variables if unknown."""
    run = record_at(address, RUN)
    method = record_at(run.method, RADAU)
    method.error_before = 1e-2
    digits = wrms(run.y, run.inverse_weights)
    for limit in _SHARP:
        if digits > limit and method.current < method.highest:
            method.current += 1
    if not method.searches:
        return 0
    n = method.linear.matrix.n
    status = _call(method.linearise, address, run.t, run.h)
    return after_first_look(status, method, method.derivatives[0], method.derivatives[1], n)


@entry(ATTEMPT)
def radau_attempt(address, t, h):
    """Compute the stages, the end of the step and its error."""
    run = record_at(address, RUN)
    method = record_at(run.method, RADAU)
    return _attempt(run.system, method.linear, run, method, address, t, h)


@entry(ATTEMPT)
def radau_accept(address, t, h):
    """Store the polynomial of the step, and choose step size and number of stages of the next one."""
    run = record_at(address, RUN)
    return _accept(run.system, run, record_at(run.method, RADAU), t, h)


@part
def _attempt(system, linear, run, method, address, t, h):
    n, s = run.n, stages_of(method)
    run.cj = gamma_of(method) / h
    run.order = 2 * s - 1
    _expect(run, method, h)
    status = _call(method.solve, address, t, h)
    if status != CONVERGED:
        method.troubled = 1
        if status == DIVERGED:
            _give_up(run, method, h)
        return status
    start, y, last = run.phi[0], run.y, method.deviations[s - 1]
    for j in range(n):
        y[j] = start[j] + last[j]
    if run.fixed:
        return CONVERGED
    status = _estimate(system, linear, run, method, t, h)
    if status == 0 and run.error_of_step > 1.0:
        run.h = h * _FIRST if run.steps == 0 else h / _quotient(run, method)
        if run.attempt_error_failures > 0:
            run.h = h * min(_AGAIN, run.h / h)
    return status


@entry(ATTEMPT)
def radau_predict(address, t, h):
    """Predict Z from the polynomial of the last step, the tangent at the start of a run, or zero."""
    run = record_at(address, RUN)
    method = record_at(run.method, RADAU)
    n, s = run.n, stages_of(method)
    start, z, slope = run.phi[0], method.deviations, method.stage_yp
    c = method.c[method.current]
    for i in range(s):
        if method.flat:
            for j in range(n):
                z[i, j] = 0.0
            continue
        newton_polynomial(run.t + c[i] * h, run.t, run.psi, run.phi, run.degree, z[i], slope)
        for j in range(n):
            z[i, j] -= start[j]
    return 0


@entry(ATTEMPT)
def radau_residuals(address, t, h):
    """Compute r_i = F at the stages."""
    run = record_at(address, RUN)
    return _residuals(run.system, run, record_at(run.method, RADAU), t, h)


@part
def _residuals(system, run, method, t, h):
    n, s = run.n, stages_of(method)
    start, y, yp = run.phi[0], method.stage_y, method.stage_yp
    z, r = method.deviations, method.r
    c, w = method.c[method.current], method.w[method.current]
    for i in range(s):
        for j in range(n):
            y[j] = start[j] + z[i, j]
            yp[j] = 0.0
        for l in range(s):
            weight = w[i, l] / h
            for j in range(n):
                yp[j] += weight * z[l, j]
        status = residual(system, t if i == s - 1 else run.t + c[i] * h, y, yp, r[i])
        if status != 0:
            tried = run.y
            for j in range(n):
                tried[j] = y[j]
            return status
    return 0


@inlined
def stages_of(method):
    return method.stages[method.current]


@inlined
def gamma_of(method):
    return method.gamma[method.current]


@part
def _most_iterations(method):
    """The maximal number of iterations in a step."""
    return _FEWEST + int(_MORE * (stages_of(method) - 3)) + (_FURTHER if method.some_powers else 0)


@part
def _expect(run, method, h):
    """Set the stopping criteria of Newton's method."""
    n, progress = run.n, run.newton
    weights, others = method.weights, method.others
    plain, power = run.inverse_weights, method.power
    share = share_of_class(run, method, h) if method.some_powers else 1.0
    for i in range(n):
        weights[i] = plain[i] if power[i] == 0.0 else plain[i] * share ** power[i]
        others[i] = 0.0 if power[i] == 0.0 else plain[i]
    noise = _NOISE * wrms(run.phi[0], weights)
    tight = _TIGHTEST if largest(power) > 1.0 else _TIGHT
    tolerance = max(tight if method.some_powers else _TOLERANCE, noise)
    if run.fixed:
        expect(progress, TO_ROUNDOFF, _POLISHING, tolerance, noise, _POLISHED)
    else:
        rounding = max(tolerance if method.some_powers else _ROUNDING, _PLATEAU * noise)
        expect(progress, SIMPLIFIED, _most_iterations(method), tolerance, noise, rounding)
    progress.follow_tolerance, progress.follow_below, progress.follow_last = _TOLERANCE, _SMALL, np.inf


@part
def _give_up(run, method, h):
    """Store the last correction for messages, and shorten the step."""
    n, last = run.n, stages_of(method) - 1
    r, correction, y = method.r, run.correction, run.y
    z, start = method.deviations, run.phi[0]
    for j in range(n):
        correction[j] = r[last, j]
        y[j] = start[j] + z[last, j]
    run.h = run.newton.shorter * h
    run.cj = gamma_of(method) / h


@part
def _estimate(system, linear, run, method, t, h):
    """The error in units of the tolerance, filtered again if it is too large initially or after a failure."""
    n, s = run.n, stages_of(method)
    z, d, share = method.deviations, method.d[method.current], method.share
    yp, slope, change = run.yp, method.stage_yp, method.stage_y
    error, power, correction = run.error, method.power, run.correction
    factor = share_of_class(run, method, h) if method.some_powers else 1.0
    start, roundoff, noise = run.phi[0], method.roundoff, 0.0
    for j in range(n):
        slope[j] = yp[j]
    for i in range(s):
        weight = d[i] / h
        noise += abs(weight)
        for j in range(n):
            slope[j] -= weight * z[i, j]
    if method.some_powers:  # round-off, divided by h once more
        for j in range(n):
            of_stage = max(_ROUNDOFF * abs(start[j]), roundoff[j])
            slope[j] = np.copysign(max(abs(slope[j]) - noise * of_stage, 0.0), slope[j])
    status = _defect(system, linear, run, method, t, h)
    if status != 0:
        return status
    # The defect of variables of index 2 and 3 excludes round-off, errors at the start, which are divided by a shorter
    # h, and the remaining error of Newton's method, which is divided by h.
    defect, digits = method.defect, wrms(start, run.inverse_weights)
    inherited = method.h_before == 0.0 or run.attempt_error_failures >= _INHERITED
    shorter = 0.0 if inherited else min(1.0, abs(h / method.h_before), _SHORT * factor)
    for again in range(2):
        _slope_times(method, linear.matrix.n, n, slope, change)
        status = solve(linear.matrix, t, change)
        if status != 0:
            return status
        for j in range(n):
            if power[j] == 0.0:
                error[j] = max(abs(change[j]) * share[method.current], abs(defect[j]))
            elif not again:  # components determined by constraints are not stiff components
                scaled = factor ** power[j]
                seen = min(shorter ** power[j], scaled * SHARPEST / digits)
                beyond = max(abs(defect[j]) - roundoff[j], 0.0)
                error[j] = max(abs(change[j]) * scaled, beyond * max(scaled, seen))
            correction[j] = error[j]
        run.error_of_step = size_of_error(system, run)
        if run.error_of_step <= 1.0 or not (run.steps == 0 or run.rejected):
            return 0
        for j in range(n):
            slope[j] = run.cj * change[j]
    return 0


@part
def _defect(system, linear, run, method, t, h):
    """The error of u inside the step: (F_y + (g/h) F_y')^{-1} F(t, u, u') at points of poor interpolation.

    Components determined by algebraic equations or stiffness are exact at the ends of steps, and the embedded method
    does not detect their errors; inside, they are fully visible. The defect is ignored if F is undefined, or if the
    tolerance is so tight that the defect may be round-off. At a step of any length it contains l_0 F(t_0, y_0, y'_0),
    where l_0 is the Lagrange polynomial of the start; after a rejection this inherited defect is subtracted.
    """
    n, s = run.n, stages_of(method)
    z, start = method.deviations, run.phi[0]
    y, yp, defect = method.stage_y, method.residual, method.defect
    value, slope = method.value[method.current], method.slope[method.current]
    for j in range(n):
        y[j] = start[j]
        yp[j] = 0.0
        defect[j] = 0.0
    if wrms(start, run.inverse_weights) > SHARPEST:
        return 0
    weight = 1.0
    for i in range(s):
        weight -= value[i]
        for j in range(n):
            y[j] += value[i] * z[i, j]
            yp[j] += slope[i] / h * z[i, j]
    status = residual(system, run.t + method.middle[method.current] * h, y, yp, defect)
    if status == 0 and run.rejected:
        status = residual(system, run.t, start, run.yp, y)
        for j in range(n):
            defect[j] -= weight * y[j]
    if status == UNEVALUABLE:
        for j in range(n):
            defect[j] = 0.0
        return 0
    return status if status != 0 else solve(linear.matrix, t, defect)


@part
def _slope_times(method, n, total, v, result):
    """result = F_y' v, for all copies of n unknowns."""
    f_yp, rows, columns = method.derivatives[1], method.rows, method.columns
    for i in range(total):
        result[i] = 0.0
    for k in range(total // n):
        first = k * n
        for e in range(method.entries):
            result[first + rows[e]] += f_yp[e] * v[first + columns[e]]


@part
def _quotient(run, method):
    """h / h_new from the error of the step; more cautious if Newton's method took many iterations (IV.8)."""
    most = _most_iterations(method)
    factor = min(_SAFETY, _SAFETY * (1 + 2 * most) / (run.newton.iterations + 2 * most))
    quotient = max(run.error_of_step, 1e-12) ** (1.0 / (stages_of(method) + 1)) / factor
    return max(1.0 / _LARGEST, min(1.0 / _SMALLEST, quotient))


@part
def _accept(system, run, method, t, h):
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    _keep_polynomial(run, method, h)
    method.jacobian_fresh = 0
    method.jacobian_known = 1 if run.newton.rate <= _GOOD_RATE and not run.fixed else 0
    if not run.fixed:
        _next_step(run, method, t, h)
    return 0


@part
def _next_step(run, method, t, h):
    """Size and stages of the next step: Gustafsson's predictive controller (IV.8), Hairer and Wanner 1999."""
    quotient = _quotient(run, method)
    if method.h_before != 0.0:
        ratio = run.error_of_step * run.error_of_step / method.error_before
        predicted = method.h_before / h * max(ratio, 1e-12) ** (1.0 / (stages_of(method) + 1)) / _SAFETY
        quotient = max(quotient, max(1.0 / _LARGEST, min(1.0 / _SMALLEST, predicted)))
    if run.rejected:
        quotient = max(quotient, 1.0)
    method.h_before = h
    method.error_before = max(1e-2, run.error_of_step)
    _choose_stages(run, method, 1.0 / quotient)
    run.h = h if 1.0 <= 1.0 / quotient <= _KEPT else h / quotient
    rest = run.t_stop - t
    if method.some_powers and abs(run.h) < abs(rest) < 2.0 * abs(run.h):
        run.h = 0.5 * rest  # a much shorter last step would amplify the errors of variables of index 2 and 3


@part
def _choose_stages(run, method, grow):
    """Use more stages if Newton's method converges fast, fewer if it is slow or has failed.

    A step with s stages is about tol^(1/(s+1)) times the time scale of y: with two more stages it will be longer, and
    the convergence rate, which is proportional to it, larger.
    """
    method.since_change += 1
    method.smooth_rate = min(10.0, max(run.newton.rate, 0.5 * method.smooth_rate))
    scheme, s = method.current, stages_of(method)
    digits = max(wrms(run.y, run.inverse_weights), 1.0)
    rate = method.smooth_rate * digits ** (1.0 / (s + 1) - 1.0 / (s + 3))
    if method.troubled or method.smooth_rate >= _LOWER:
        if digits ** (1.0 / (s - 1) - 1.0 / (s + 1)) < _WORTH:
            scheme = max(method.lowest, scheme - 1)
    elif rate <= _RAISE and _SHORTER < grow < _LONGER and method.since_change > _SETTLED:
        scheme = min(method.highest, scheme + 1)
    if scheme != method.current:
        method.current = scheme
        method.since_change = 0
    method.troubled = 0


@part
def _keep_polynomial(run, method, h):
    """The polynomial through the end of the step, the earlier stages and the start, in Newton form; y' at the end."""
    n, s = run.n, stages_of(method)
    phi, psi, y, yp = run.phi, run.psi, run.y, run.yp
    z, c, w = method.deviations, method.c[method.current], method.w[method.current]
    for j in range(n):
        yp[j] = 0.0
    for l in range(s):
        weight = w[s - 1, l] / h
        for j in range(n):
            yp[j] += weight * z[l, j]
    for q in range(s):
        psi[q] = 1.0 - (c[s - 2 - q] if q < s - 1 else 0.0)
    for j in range(n):
        start = phi[0, j]
        phi[0, j] = y[j] - start
        for q in range(1, s):
            phi[q, j] = z[s - 1 - q, j]
        phi[s, j] = 0.0
    for order in range(1, s + 1):
        for q in range(s, order - 1, -1):
            distance = psi[q - 1] - (psi[q - order - 1] if q > order else 0.0)
            for j in range(n):
                phi[q, j] = (phi[q - 1, j] - phi[q, j]) / distance
    product = 1.0
    for q in range(s):
        product *= psi[q]
        psi[q] *= h
        for j in range(n):
            phi[q + 1, j] *= product
    psi[s] = 2.0 * h
    for j in range(n):
        phi[0, j] = y[j]
    run.degree = s
