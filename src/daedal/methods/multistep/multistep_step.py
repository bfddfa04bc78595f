r"""Steps of linear multistep and one-leg methods with constant size for F(t, y, y') = 0, in compiled code.

Brenan, Campbell, Petzold, section 3.4. With x_n for y and y_n for y', F(t_n, x_n, y_n) = 0 and

    (3.4.20)   P_n {1/h sum_j a_j x_{n-j} - sum_j b_j y_{n-j}} - Q_n y_n = 0,
    (3.4.21)   P_n {1/h sum_j a_j P_{n-j} x_{n-j} - sum_j b_j [P'_{n-j} x_{n-j} + P_{n-j} y_{n-j}]} - Q_n y_n = 0

for multistep methods (the two forms differ if P = I - Q, the projector along the kernel of F_y', depends on t); and

    (3.4.5)    F(sum_j b_j t_{n-j}, sum_j b_j x_{n-j}, 1/h sum_j a_j x_{n-j}) = 0

for one-leg methods. All of them have the form F(tau, z, c (z - s) + r) = 0 with c = a_0 / (b_0 h): since F does not
depend on Q y', y_n is computed after x_n. Sums of a_j x_{n-j} are evaluated as sums of A_j (x_{n-j} - x_{n-j-1}) with
A_j = a_0 + ... + a_j, so that rounded coefficients differentiate constants to zero.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import entry, part
from daedal.kernels.convergence import CONVERGED, DIVERGED
from daedal.kernels.endings import Ending
from daedal.kernels.linear import LINEAR
from daedal.kernels.newton import SINGULAR, newton_to_roundoff
from daedal.kernels.records import INTEGER, Struct, at, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.system import HOOK_CHANGED
from daedal.kernels.vectors import copy
from daedal.methods.derivative_space import SPACE, apply, find_space, look
from daedal.methods.one_step import ending_of, give_to_owner
from daedal.methods.run_record import RUN, STEP, differences
from daedal.methods.step_size import step_to_try

_CALLBACK_RAISED = int(Ending.CALLBACK_RAISED)
_MOST_REPETITIONS = 40
_ROUNDOFF = 1e-14

MULTISTEP = Struct(
    "MULTISTEP",
    [
        ("linear", at(LINEAR)),
        ("n", INTEGER),
        ("k", INTEGER),
        ("one_leg", INTEGER),
        ("slopes", INTEGER),  # whether previous y' are used
        ("of_projection", INTEGER),  # (3.4.21)
        ("degree", INTEGER),  # degree of the polynomials of steps, once enough values are known
        ("known", INTEGER),  # number of known values
        ("a", f64["k"]),  # A_0 = a_0, A_1, ..., A_{k-1}
        ("b", f64["k + 1"]),
        ("u", f64["k", "n"]),  # x_{n-j} or P_{n-j} x_{n-j}, the last one first
        ("w", f64["k", "n"]),  # y_{n-j} or P'_{n-j} x_{n-j} + P_{n-j} y_{n-j}
        ("past", f64["k", "n"]),  # the starting values, the last one first
        *[(name, f64["n"]) for name in ("z", "zp", "r", "s", "delta", "max_change", "part")],
        ("space", SPACE),
    ],
)


@entry(STEP)
def multistep_begin(address):
    """Initialise the stored data from the starting values."""
    run = record_at(address, RUN)
    method = record_at(run.method, MULTISTEP)
    system, linear = run.system, method.linear
    status = _begin(system, linear, run, method)
    if status == RAISED:
        return _CALLBACK_RAISED
    return 0 if status == 0 else ending_of(status, 0)


@entry(STEP)
def multistep_step(address):
    """Take one step; return 0 or the reason to stop."""
    run = record_at(address, RUN)
    method = record_at(run.method, MULTISTEP)
    status = _step(run.system, method.linear, run, method)
    if status == RAISED:
        return _CALLBACK_RAISED
    return 0 if status == CONVERGED else ending_of(status, 1 if status == SINGULAR else 0)


@part
def _begin(system, linear, run, method):
    k, past, z, zp = method.k, method.past, method.z, method.zp
    run.cj = method.a[0] / (method.b[0] * run.h)
    for j in range(k - 1, -1, -1):
        t = run.t - j * run.h
        copy(z, past[j])
        if method.slopes:
            if j == k - 1:
                copy(zp, run.yp)
            status = _find_slope(system, linear, run, method, t, z, zp)
            if status != 0:
                return status
        _remember(run, method, z, zp)
    return 0


@part
def _find_slope(system, linear, run, method, t, z, zp):
    """The minimum-norm y' with F(t, z, y') = 0, in the least-squares sense, and P and P' there."""
    space, projector, solution, change = method.space, method.space.projector, method.space.solution, method.part
    for _ in range(_MOST_REPETITIONS):
        status = find_space(space, system, linear, run, t, z, zp, projector)
        if status != 0:
            return status
        size, largest = 0.0, 0.0
        apply(projector, zp, change)
        for i in range(run.n):
            zp[i] = change[i] + solution[i]
            size, largest = max(size, abs(zp[i])), max(largest, abs(solution[i]))
        if largest <= 1e-12 * size or not largest < np.inf:
            break
    return look(space, system, linear, run, t, z, zp)


@part
def _remember(run, method, x, slope):
    """Store u and w, the terms of the formula, for a new value x and its slope."""
    space, u, w, value = method.space, method.u, method.w, method.part
    for j in range(method.k - 1, 0, -1):
        copy(u[j], u[j - 1])
        copy(w[j], w[j - 1])
    copy(u[0], x)
    if not method.slopes:
        return
    apply(space.projector, slope, w[0])
    if method.of_projection:
        apply(space.projector, x, u[0])
        apply(space.rate, x, value)
        for i in range(run.n):
            w[0, i] += value[i]


@part
def _step(system, linear, run, method):
    n, phi, b, u = run.n, differences(run), method.b, method.u
    y, z, zp, s = run.y, method.z, method.zp, method.s
    h, t = step_to_try(run)
    run.cj = method.a[0] / (b[0] * h)
    tau = _collect(run, method, t, h)
    for i in range(n):
        value = 0.0
        for j in range(run.degree + 1):
            value += phi[j, i]
        z[i] = s[i] + b[0] * (value - u[0, i]) if method.one_leg else value
    status = _solve(system, linear, run, method, tau, h)
    if status != CONVERGED:
        return status
    for i in range(n):
        y[i] = u[0, i] + (z[i] - s[i]) / b[0] if method.one_leg else z[i]
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    _remember(run, method, y, zp)
    _keep_polynomial(run, method, h)
    _output_slope(run, method, h)
    run.t = t
    run.h_last = h
    run.steps += 1
    return CONVERGED


@part
def _collect(run, method, t, h):
    """r and s with F(tau, z, c (z - s) + r) = 0, z = s + b_0 (y_n - y_{n-1}) for one-leg methods; returns tau."""
    n, k = run.n, method.k
    a, b, r, s = method.a, method.b, method.r, method.s
    u, w, tau = method.u, method.w, t
    for i in range(n):
        value, leg = 0.0, b[0] * u[0, i]
        for j in range(1, k + 1):
            if j < k:
                value += a[j] / h * (u[j - 1, i] - u[j, i])
            if method.one_leg:
                leg += b[j] * u[j - 1, i]
            elif method.slopes:
                value -= b[j] * w[j - 1, i]
        s[i] = leg if method.one_leg else u[0, i]
        r[i] = value if method.one_leg else value / b[0]
    if method.one_leg:
        for j in range(1, k + 1):
            tau -= b[j] * j * h
    return tau


@part
def _solve(system, linear, run, method, t, h):
    """z and its slope; if P' is nonzero, F(t, z, c (z - s) + r - P' z) = 0 by fixed-point iteration on P' z."""
    n, space = run.n, method.space
    z, zp, r, s, turned = method.z, method.zp, method.r, method.s, method.part
    correction = run.correction
    for i in range(n):
        zp[i] = run.cj * (z[i] - s[i]) + r[i]
    if method.slopes:
        status = look(space, system, linear, run, t, z, zp)
        if status != 0:
            return status
    turns = method.slopes and method.of_projection and space.varies
    before = np.inf
    for _ in range(_MOST_REPETITIONS):
        if turns:
            apply(space.rate, z, turned)
            for i in range(n):
                zp[i] = run.cj * (z[i] - s[i]) + r[i] - turned[i]
        for i in range(n):
            correction[i] = 0.0
        delta, weights, most = method.delta, run.inverse_weights, method.max_change
        status = newton_to_roundoff(system, linear, run.newton, t, z, zp, run.cj, h, weights, delta, correction, most)
        if status != CONVERGED or not turns:
            return status
        change, size = 0.0, 0.0
        for i in range(n):
            change, size = max(change, abs(correction[i])), max(size, abs(z[i]))
        if change <= _ROUNDOFF * size or (change <= 1e-10 * size and change >= 0.3 * before):
            return CONVERGED
        before = change
    return DIVERGED


@part
def _keep_polynomial(run, method, h):
    """Backward differences of the new value: the polynomial through the last values."""
    n, phi, y = run.n, differences(run), run.y
    method.known += 1
    run.degree = min(method.degree, method.known - 1)
    for i in range(n):
        new = y[i]
        for j in range(run.degree + 1):
            last = phi[j, i]
            phi[j, i] = new
            new -= last
    for j in range(run.degree + 1):
        run.psi[j] = (j + 1) * h


@part
def _output_slope(run, method, h):
    """y' at the end of the step: from the method for components contained in F, otherwise from the polynomial."""
    n, phi, yp, zp = run.n, differences(run), run.yp, method.zp
    for i in range(n):
        yp[i] = 0.0
        for j in range(run.degree, 0, -1):
            yp[i] += phi[j, i] / (j * h)
    if method.one_leg:
        return
    if not method.slopes:
        copy(yp, zp)
        return
    difference, value = method.delta, method.part
    for i in range(n):
        difference[i] = zp[i] - yp[i]
    apply(method.space.projector, difference, value)
    for i in range(n):
        yp[i] += value[i]
