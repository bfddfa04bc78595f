r"""A step of an implicit Runge-Kutta method for F(t, y, y') = 0 in compiled code: its end, its error, its polynomial.

The error is that of an embedded method, h sum (b_i - b^_i) Y'_i, where the tableau has one. Otherwise the step is
repeated with two halves (Hairer, Norsett and Wanner I, II.4): the difference, divided by 2^q - 1 for the lowest order q
that is to be expected, is the error of the halves, with which the run goes on.
"""

from __future__ import annotations

from daedal.kernels.compilation import announce, part, pointer
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.newton import CONVERGED
from daedal.kernels.records import float_rows, floats, record_at
from daedal.kernels.system import HOOK_CHANGED, SYSTEM
from daedal.methods.implicit_runge_kutta_newton import IRK, solve_stages
from daedal.methods.one_step import ATTEMPT, close_polynomial, combine, give_to_owner, size_of_error, weighted_sum
from daedal.methods.run_record import RUN, differences

_GOOD_RATE = 0.05  # below it F_y and F_y' are kept for the next step


@pointer(ATTEMPT)
def irk_attempt(address, t, h):
    """The stages, the end of the step and its error."""
    run = record_at(address, RUN)
    return _attempt(record_at(run.system, SYSTEM), run, record_at(run.method, IRK), address, t, h)


@pointer(ATTEMPT)
def irk_accept(address, t, h):
    """The polynomial of the step."""
    run = record_at(address, RUN)
    return _accept(record_at(run.system, SYSTEM), run, record_at(run.method, IRK), t, h)


@part
def _attempt(system, run, method, address, t, h):
    n, s = run.n, method.s
    start, y, whole = differences(run)[0], floats(run.y, n), float_rows(method.whole, s + 1, n)
    run.cj = 1.0 / h
    method.slowest = 0.0
    if run.attempt_error_failures + run.attempt_newton_failures == 0:
        method.jacobian_fresh = 0
    _predict(run, method, h)
    method.level = 0
    status = solve_stages(system, run, method, address, run.t, t, h, start, whole)
    if status != CONVERGED:
        return status
    _end(method, n, h, start, whole, y)
    if run.fixed:
        return CONVERGED
    if method.doubling:
        return _halves(system, run, method, address, t, h)
    weighted_sum(floats(method.embedded, s + 1), s + 1, whole, 0, n, floats(run.error, n))
    error = floats(run.error, n)
    for j in range(n):
        error[j] *= h
    run.error_of_step = size_of_error(system, run)
    return CONVERGED


@part
def _end(method, n, h, start, k, y):
    """y_n + h sum_i b_i Y'_i."""
    combine(floats(method.b, method.s), method.s, k[1:], start, h, 0, n, y)


@part
def _predict(run, method, h):
    """Slopes from the polynomial of the last step, or its chord; at the start of a run from the tangent."""
    n, s = run.n, method.s
    whole, c, values = float_rows(method.whole, s + 1, n), floats(method.c, s), floats(method.stage_y, n)
    slope = floats(run.yp, n)
    for j in range(n):
        whole[0, j] = slope[j]
    if method.straight:
        _follow(s, n, floats(method.secant, n) if run.steps > 0 else slope, whole)
        return
    for i in range(s):
        time = run.t + c[i] * h
        newton_polynomial(time, run.t, run.psi, differences(run), run.degree, values, whole[i + 1])


@part
def _follow(s, n, slope, k):
    """The same slope for all stages."""
    for i in range(s):
        for j in range(n):
            k[i + 1, j] = slope[j]


@part
def _halves(system, run, method, address, t, h):
    """The step once more in two halves, and the error of these."""
    n, s, middle_t = run.n, method.s, run.t + 0.5 * h
    start, y, middle = differences(run)[0], floats(run.y, n), floats(method.middle, n)
    whole, error = float_rows(method.whole, s + 1, n), floats(run.error, n)
    first, second = float_rows(method.first, s + 1, n), float_rows(method.second, s + 1, n)
    weights = float_rows(method.halves, 2 * s, s + 1)
    secant = floats(method.secant, n)
    for j in range(n):
        error[j] = y[j]
        first[0, j] = whole[0, j]
        secant[j] = (y[j] - start[j]) / h
    method.level = 1
    if method.straight:
        _follow(s, n, secant, first)
        _follow(s, n, secant, second)
    else:
        for i in range(s):
            weighted_sum(weights[i], s + 1, whole, 0, n, first[i + 1])
            weighted_sum(weights[s + i], s + 1, whole, 0, n, second[i + 1])
    status = solve_stages(system, run, method, address, run.t, middle_t, 0.5 * h, start, first)
    if status != CONVERGED:
        return status
    _end(method, n, 0.5 * h, start, first, middle)
    weighted_sum(floats(method.end_slope, s + 1), s + 1, first, 0, n, second[0])
    status = solve_stages(system, run, method, address, middle_t, t, 0.5 * h, middle, second)
    if status != CONVERGED:
        return status
    _end(method, n, 0.5 * h, middle, second, y)
    for j in range(n):
        error[j] = (y[j] - error[j]) / method.divisor
    run.error_of_step = size_of_error(system, run)
    return CONVERGED


@part
def _accept(system, run, method, t, h):
    n, s = run.n, method.s
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    halved = method.doubling and not run.fixed
    start, y, secant = differences(run)[0], floats(run.y, n), floats(method.secant, n)
    for j in range(n):
        secant[j] = (y[j] - start[j]) / h
    whole, second = float_rows(method.whole, s + 1, n), float_rows(method.second, s + 1, n)
    _keep_polynomial(run, method, h, halved)
    weighted_sum(floats(method.end_slope, s + 1), s + 1, second if halved else whole, 0, n, floats(run.yp, n))
    method.jacobian_known = 1 if method.slowest <= _GOOD_RATE and not run.fixed else 0
    return 0


@part
def _keep_polynomial(run, method, h, halved):
    """Values inside of the step, of the polynomials of both halves where there are two, and at its ends.

    In the first step the slope of the start is left out: of algebraic variables it need not be known.
    """
    n, s = run.n, method.s
    degree = 2 * method.degree if halved else method.degree
    phi, y, middle = differences(run), floats(run.y, n), floats(method.middle, n)
    whole = float_rows(method.whole, s + 1, n)
    first, second = float_rows(method.first, s + 1, n), float_rows(method.second, s + 1, n)
    count = degree // 2 - 1 if halved else degree - 1  # in one half
    inner = float_rows(method.inner + (0 if run.steps > 0 else 8 * (s + 1) * (method.degree - 1)), method.degree - 1, s + 1)
    for q in range(degree - 1):
        target = phi[q + 1]
        if not halved:
            combine(inner[q], s + 1, whole, phi[0], h, 0, n, target)
        elif q < count:
            combine(inner[q], s + 1, second, middle, 0.5 * h, 0, n, target)
        elif q == count:
            for j in range(n):
                target[j] = middle[j]
        else:
            combine(inner[q - count - 1], s + 1, first, phi[0], 0.5 * h, 0, n, target)
    for j in range(n):
        phi[degree, j] = phi[0, j]
        phi[0, j] = y[j]
    close_polynomial(run, h, degree)


announce(_attempt, "the steps of implicit Runge-Kutta methods")
