r"""The stages of a collocation step for F(t, x, x', x'') = 0: the simplified Newton method, decoupled by eigenvalues.

The unknowns are the deviations Z of the stage values from the tangent, so that second derivatives lose no digits, and
multipliers are unknowns by their stage values: the matrix stays well conditioned for small steps, where one for second
derivatives of the multipliers (Wunderlich chapter 6) does not.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import inlined, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.norms import wrms
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats, integers
from daedal.kernels.second_order import evaluate_second_order

CONVERGED, DIVERGED, SINGULAR = 0, 3, 4
_MAX_ITERATIONS, _POLISHING = 10, 15
_TOLERANCE = 0.03  # of Newton's method, in units of the error tolerance
_NOISE = 100.0 * np.finfo(np.float64).eps
_INCREMENT = 2.0**-26
_WEIGHT_SHARE = 2.0**-13

COLLOCATION = np.dtype(
    [
        ("second_order", ADDRESS),
        ("s", INTEGER),
        ("known", INTEGER),
        ("stiffly_accurate", INTEGER),
        ("n_real", INTEGER),
        ("n_pairs", INTEGER),
        ("gamma", FLOAT),
        ("position_ratio", FLOAT),
        ("filtered", INTEGER),  # whether errors along constraint forces may be left out of the test
        ("c", ADDRESS),
        ("w", ADDRESS),
        ("w2", ADDRESS),
        ("known_column", ADDRESS),
        ("transform", ADDRESS),
        ("inverse", ADDRESS),
        ("pairs", ADDRESS),
        ("polynomials", ADDRESS),
        ("error_weights", ADDRESS),
        # what all methods with their own loop have
        ("order", INTEGER),
        ("fixed", INTEGER),
        ("t0", FLOAT),
        ("last_step", INTEGER),
        ("rejected", INTEGER),
        ("error_before", FLOAT),
        ("thesis", INTEGER),  # the controller of the thesis
        ("successes", INTEGER),
        ("past_t", ADDRESS),
        ("past_y", ADDRESS),
        # x, x', x'' at the start of the step and at its end
        ("x", ADDRESS),
        ("xp", ADDRESS),
        ("xpp", ADDRESS),
        ("new_x", ADDRESS),
        ("new_xp", ADDRESS),
        ("new_xpp", ADDRESS),
        # stages: deviations, highest derivatives, those of the last step, corrections
        ("z", ADDRESS),
        ("k", ADDRESS),
        ("old_k", ADDRESS),
        ("old_x", ADDRESS),
        ("old_xp", ADDRESS),
        ("old_h", FLOAT),
        ("r", ADDRESS),
        ("hat", ADDRESS),
        ("stage", ADDRESS),
        ("theta", ADDRESS),
        ("weights", ADDRESS),
        ("others", ADDRESS),  # weights of multipliers, and of variables that are only computed along
        # Jacobians and factors
        ("j0", ADDRESS),
        ("j1", ADDRESS),
        ("j2", ADDRESS),
        ("mass", ADDRESS),  # F_x'' of the leading variables, if the residual leaves it somewhere
        ("n_mass", INTEGER),
        ("real_lu", LU),
        ("first_lu", LU),
        ("second_lu", LU),
        ("h_matrix", FLOAT),
        ("jacobian_known", INTEGER),
        ("jacobian_new", INTEGER),
        ("rate", FLOAT),
    ]
)


@inlined
def vectors(m, n):
    return floats(m.x, n), floats(m.xp, n), floats(m.xpp, n)


@part
def _jacobians(system, m, s, w, h):
    """F_x, F_x' and F_x'' at the start of the step, by differences; the mass matrix is known for mechanisms."""
    n = s.n
    x, xp, xpp = vectors(m, n)
    base, value, weights, order = floats(m.stage, n), floats(m.hat, n), floats(m.weights, n), integers(s.order, n)
    others = floats(m.others, n)
    j0, j1, j2 = floats(m.j0, n * n), floats(m.j1, n * n), floats(m.j2, n * n)
    system.jacobians += 1
    system.residuals += 1
    status = evaluate_second_order(s, w.t, x, xp, xpp, base)
    if status != 0:
        return status
    if m.n_mass > 0:
        mass = floats(m.mass, m.n_mass * m.n_mass)
        for j in range(n):
            for i in range(n):
                inside = i < m.n_mass and j < m.n_mass
                j2[j * n + i] = mass[i * m.n_mass + j] if inside else 0.0
    largest = 0.0
    for j in range(n):
        if order[j] > 0:
            largest = max(largest, abs(x[j]))
    for level in range(3):
        if level == 2 and m.n_mass > 0:
            break
        target = j0 if level == 0 else j1 if level == 1 else j2
        vector = x if level == 0 else xp if level == 1 else xpp
        for j in range(n):
            if order[j] < level:
                for i in range(n):
                    target[j * n + i] = 0.0
                continue
            kept, size = vector[j], abs(vector[j])
            if level == 0:
                size = max(size, abs(h * xp[j]))
                if order[j] > 0:  # a position that happens to be zero
                    size = max(size, 1e-3 * largest)
            elif level == 1:
                size = max(size, max(abs(h * xpp[j]), abs(x[j] / h) * 1e-3))
            else:
                size = max(size, max(abs(xp[j] / h), abs(x[j] / (h * h))) * 1e-3)
            delta = max(_INCREMENT * size, _WEIGHT_SHARE / (weights[j] + others[j]) / abs(h) ** level)
            vector[j] = kept + delta
            delta = vector[j] - kept
            system.jacobian_residuals += 1
            system.residuals += 1
            status = evaluate_second_order(s, w.t, x, xp, xpp, value)
            vector[j] = kept
            if status != 0:
                return status
            for i in range(n):
                target[j * n + i] = (value[i] - base[i]) / delta
    return 0


@part
def _factor(system, m, s, h):
    """E for the real eigenvalue (or the gamma of the error estimate) and for the pairs."""
    n = s.n
    j0, j1, j2 = floats(m.j0, n * n), floats(m.j1, n * n), floats(m.j2, n * n)
    g = m.gamma / h
    real = floats(m.real_lu.data, n * n)
    for i in range(n * n):
        real[i] = j0[i] + g * (j1[i] + g * j2[i])
    system.factorisations += 1
    if factor_lu(m.real_lu) != 0:
        return SINGULAR
    pairs = float_rows(m.pairs, max(m.n_pairs, 1), 2)
    for p in range(m.n_pairs):
        lu = m.first_lu if p == 0 else m.second_lu
        data = floats(lu.data, 4 * n * n)
        re, im = pairs[p, 0] / h, pairs[p, 1] / h
        re2, im2 = re * re - im * im, 2.0 * re * im
        for j in range(n):
            for i in range(n):
                a = j * n + i
                er = j0[a] + re * j1[a] + re2 * j2[a]
                ei = im * j1[a] + im2 * j2[a]
                data[j * 2 * n + i] = er
                data[j * 2 * n + n + i] = ei
                data[(n + j) * 2 * n + i] = -ei
                data[(n + j) * 2 * n + n + i] = er
        system.factorisations += 1
        if factor_lu(lu) != 0:
            return SINGULAR
    return 0


@part
def _predict(m, s, h):
    """Z from the polynomial of the last step, or from the first two derivatives at the start."""
    n, stages, known = s.n, m.s, m.known
    x, xp, xpp = vectors(m, n)
    z, c, order = float_rows(m.z, stages, n), floats(m.c, stages), integers(s.order, n)
    old_x, old_xp, old_k = floats(m.old_x, n), floats(m.old_xp, n), float_rows(m.old_k, stages, n)
    theta = float_rows(m.theta, 3, stages)
    for i in range(known, stages):
        if m.old_h == 0.0:
            d = c[i] * h
            for j in range(n):
                z[i, j] = 0.5 * d * d * xpp[j] if order[j] == 2 else d * xp[j] if order[j] == 1 else 0.0
            continue
        a = 1.0 + c[i] * h / m.old_h
        weights_at(m, a, theta)
        for j in range(n):
            value = inside(order[j], theta, old_k, j, stages, a, m.old_h, old_x[j], old_xp[j])
            z[i, j] = value - x[j] - (c[i] * h * xp[j] if order[j] == 2 else 0.0)


@part
def weights_at(m, a, theta):
    """L_j, its integral and its double integral at theta = a."""
    stages = m.s
    table = floats(m.polynomials, 3 * stages * (stages + 2))
    for level in range(3):
        for j in range(stages):
            at = (level * stages + j) * (stages + 2)
            value = 0.0
            for p in range(stages + 1, -1, -1):
                value = value * a + table[at + p]
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
def _stage_weights(m, s, w, h):
    """Corrections are judged by what they mean for x and x'; those of multipliers when x has converged."""
    n, source, inverse = s.n, integers(s.source, s.n_y), floats(w.inverse_weights, w.n)
    weights, order, included = floats(m.weights, n), integers(s.order, n), floats(w.included, w.n)
    others, g = floats(m.others, n), abs(m.gamma / h)
    for j in range(s.n_y):
        i = source[j]
        if i < s.n:
            others[i] = 0.0 if order[i] > 0 and included[j] != 0.0 else inverse[j]
            weights[i] = inverse[j] - others[i]
    for j in range(s.n_y):
        i = source[j] - s.n
        if i >= 0 and included[j] != 0.0:
            weights[i] = max(weights[i], g * inverse[j])


@part
def _residuals(system, m, s, w, h):
    """R_i = F at the stages, from Z; the highest derivatives are left in k."""
    n, stages, known = s.n, m.s, m.known
    x, xp, xpp = vectors(m, n)
    z, k, r = float_rows(m.z, stages, n), float_rows(m.k, stages, n), float_rows(m.r, stages, n)
    count = stages - known
    w1, w2, first = float_rows(m.w, count, count), float_rows(m.w2, count, count), floats(m.known_column, count)
    c, order = floats(m.c, stages), integers(s.order, n)
    work = float_rows(m.stage, 3, n)
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
        status = evaluate_second_order(s, w.t + c[i] * h, work[0], work[1], work[2], r[i])
        if status != 0:
            return status
    if known:
        for j in range(n):
            k[0, j] = xpp[j] if order[j] == 2 else xp[j] if order[j] == 1 else x[j]
    return 0


@part
def _correction(m, s):
    """r := the correction of Z, by the decoupled systems."""
    n, known = s.n, m.known
    count = m.s - known
    r, hat = float_rows(m.r, m.s, n), floats(m.hat, count * n)
    transform, inverse = float_rows(m.transform, count, count), float_rows(m.inverse, count, count)
    for i in range(count):
        for j in range(n):
            value = 0.0
            for l in range(count):
                value += inverse[i, l] * r[known + l, j]
            hat[i * n + j] = value
    if m.n_real > 0:
        solve_lu(m.real_lu, hat[:n])
    for p in range(m.n_pairs):
        at = (m.n_real + 2 * p) * n
        solve_lu(m.first_lu if p == 0 else m.second_lu, hat[at : at + 2 * n])
    for i in range(count):
        for j in range(n):
            value = 0.0
            for l in range(count):
                value += transform[i, l] * hat[l * n + j]
            r[known + i, j] = value


@part
def solve_stages(system, m, s, w, h):
    """The simplified Newton method for all stages; with old Jacobians a failure leads to a second try."""
    n, known = s.n, m.known
    _stage_weights(m, s, w, h)
    while True:
        m.jacobian_new = 0
        if not m.jacobian_known:
            status = _jacobians(system, m, s, w, h)
            if status != 0:
                return status
            m.jacobian_new = 1
            m.h_matrix = 0.0
        if m.h_matrix != h:
            status = _factor(system, m, s, h)
            if status != 0:
                m.h_matrix = 0.0
                if m.jacobian_new:
                    return status
                m.jacobian_known = 0
                continue
            m.h_matrix = h
        _predict(m, s, h)
        status = _iterate(system, m, s, w, h, n, known)
        if status == DIVERGED and not m.jacobian_new:
            m.jacobian_known = 0
            continue
        return status


@part
def _iterate(system, m, s, w, h, n, known):
    stages, exact = m.s, m.fixed or m.thesis
    z, r, weights = float_rows(m.z, stages, n), float_rows(m.r, stages, n), floats(m.weights, n)
    others = floats(m.others, n)
    before, rate, rest = np.inf, 0.0, np.inf
    m.rate = 0.0
    noise = _NOISE * wrms(floats(m.x, n), weights)  # corrections that round-off explains
    for iteration in range(_POLISHING if exact else _MAX_ITERATIONS):
        status = _residuals(system, m, s, w, h)
        if status != 0:
            return status
        _correction(m, s)
        system.newton_iterations += 1
        total, rest_before, rest = 0.0, rest, 0.0
        for i in range(known, stages):
            size, other = wrms(r[i], weights), wrms(r[i], others)
            total += size * size
            rest += other * other
        size, rest = np.sqrt(total / (stages - known)), np.sqrt(rest / (stages - known))
        if not size < np.inf:
            return DIVERGED
        if exact and iteration > 1 and size >= 0.5 * before and before < 1e-3:
            return CONVERGED  # round-off
        if iteration > 0:
            rate = size / before
            m.rate = max(m.rate, rate) if iteration > 1 else rate
            if rate >= 0.99 and size > max(noise, _TOLERANCE) and not (exact and iteration < 4):
                return DIVERGED
        for i in range(known, stages):
            for j in range(n):
                z[i, j] -= r[i, j]
        factor = rate / (1.0 - rate) if 0.0 < rate < 0.99 else 1.0
        followed = rest <= 1.0 or rest >= 0.5 * rest_before  # the latter is noise
        if not exact and followed and (size * factor <= _TOLERANCE or size <= noise):
            if iteration > 0 or size <= max(noise, 1e-3 * _TOLERANCE):
                return _residuals(system, m, s, w, h)
        before = size
    return CONVERGED if exact and before < 1.0 else DIVERGED
