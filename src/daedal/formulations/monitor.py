r"""A watch over the constraints during a run, after every accepted step.

The rows of K are orthonormalised. Rows that nearly depend on the others announce a singular configuration; a change of
sign of det(K_n Q_{n-1}^T), with the basis Q of the step before, that one was passed. For forms that impose constraints
through :math:`B = M^{-1} G^T` the amplification

    a_B = || (I - B (K B)^{-1} K)(t_n) S(t_{n-1}) ||_2

of vectors S along the manifold shows when they have become unstable (Ascher and Petzold section 4): it is 1 for slow
constraints, and the steps behave as those of an explicit method where it grows.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import part, pointer
from daedal.kernels.dense import LU, SMALL, factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, floats, integers, record_at
from daedal.kernels.system import HOOK, HOOK_DONE, HOOK_STOP, call_hook
from daedal.mechanics.augmented import factor_augmented
from daedal.mechanics.constrained import CONSTRAINED, JACOBIAN, MASS, evaluate, load_state

PASSED_SINGULAR, NEARLY_SINGULAR, AMPLIFYING = HOOK_STOP + 1, HOOK_STOP + 2, HOOK_STOP + 3

_VANISHING = 1e-7  # part of its usual norm below which a row is zero
_SUSPICIOUS = 0.2  # for steps in which the constraints turn less than about a radian
_LARGEST_AMPLIFICATION, _STEPS_OF_AMPLIFICATION = 1.05, 5

MONITOR = np.dtype(
    [
        ("system", ADDRESS),
        ("inner", ADDRESS),  # another hook, which comes first
        ("inner_record", ADDRESS),
        ("amplification", INTEGER),  # whether a_B is watched
        ("started", INTEGER),
        ("basis", ADDRESS),  # Q of the last step, by rows
        ("rows", ADDRESS),
        ("norms", ADDRESS),  # the largest norms that the rows have had
        ("independence", FLOAT),
        ("smallest", FLOAT),
        ("t_before", FLOAT),
        ("t", FLOAT),
        ("amplifying_steps", INTEGER),
        ("largest_amplification", FLOAT),
        ("gram", LU),
        ("work", ADDRESS),
    ]
)


@pointer(HOOK)
def monitor_hook(record, t, h, y):
    """The inner hook, then the watch."""
    w = record_at(record, MONITOR)
    c = record_at(w.system, CONSTRAINED)
    signal = HOOK_DONE
    if w.inner != 0:
        signal = call_hook(w.inner, w.inner_record, t, h, y)
        if signal < 0:
            return signal
    else:
        n = c.m * c.nx
        load_state(c, floats(y, n), floats(y + 8 * n, c.n_r))
        status = evaluate(c, t, JACOBIAN | (MASS if w.amplification else 0))
        if status != 0:
            return status
    found = _watch(w, c, t)
    return found if found != HOOK_DONE else signal


@part
def _watch(w, c, t):
    nx, n_c = c.nx, c.n_c
    jacobian, rows, basis = floats(c.jacobian, n_c * nx), floats(w.rows, n_c * nx), floats(w.basis, n_c * nx)
    norms, vanishing = floats(w.norms, n_c), 1.0
    for i in range(n_c):
        norm = 0.0
        for j in range(nx):
            norm += jacobian[i * nx + j] ** 2
        norm = np.sqrt(norm)
        norms[i] = max(norms[i], norm)
        vanishing = min(vanishing, norm / norms[i] if norms[i] > 0.0 else 1.0)
        for j in range(nx):
            rows[i * nx + j] = jacobian[i * nx + j] / (norm if norm > 0.0 else 1.0)
    determinant = _determinant(w, rows, basis, nx, n_c) if w.started else 1.0
    if w.started and w.amplification:
        _watch_amplification(w, c, basis)
    w.t_before = w.t
    w.t = t
    w.independence, volume = _orthonormalise(rows, basis, nx, n_c)
    # Divided by the volume of the rows, the determinant is the cosine of the angle by which they have turned: near zero
    # they have turned away, as they do when a branch is changed.
    if w.started and determinant < _SUSPICIOUS * volume:
        w.started = 1
        return PASSED_SINGULAR
    w.started = 1
    if w.independence < w.smallest or vanishing < _VANISHING:
        return NEARLY_SINGULAR
    if w.amplifying_steps >= _STEPS_OF_AMPLIFICATION:
        return AMPLIFYING
    return HOOK_DONE


@part
def _determinant(w, rows, basis, nx, n_c):
    """det(K_n Q_{n-1}^T), between -1 and 1."""
    data = floats(w.gram.data, n_c * n_c)
    for i in range(n_c):
        for k in range(n_c):
            value = 0.0
            for j in range(nx):
                value += rows[i * nx + j] * basis[k * nx + j]
            data[k * n_c + i] = value
    if factor_lu(w.gram) != 0:
        return 0.0
    value = 1.0 * determinant_sign(w.gram)
    for i in range(n_c):
        value *= abs(data[i * n_c + i])
    return value


@part
def determinant_sign(lu):
    """The sign of the determinant of a factored matrix."""
    n = lu.n
    data, pivots = floats(lu.data, n * n), integers(lu.pivots, n)
    sign = 1
    lapack = n > SMALL  # then pivots are 4-byte numbers that begin with 1
    for i in range(n):
        if data[i * n + i] < 0.0:
            sign = -sign
        pivot = pivots[i]
        if lapack:
            word = pivots[i // 2]
            pivot = ((word >> 32) if i % 2 else (word & 0xFFFFFFFF)) - 1
        if pivot != i:
            sign = -sign
    return sign


@part
def _orthonormalise(rows, basis, nx, n_c):
    """Gram and Schmidt, twice for every row: the smallest part of a row that the others do not explain, the volume."""
    smallest, volume = 1.0, 1.0
    for i in range(n_c):
        for j in range(nx):
            basis[i * nx + j] = rows[i * nx + j]
        rest = 1.0
        for _ in range(2):
            for k in range(i):
                product = 0.0
                for j in range(nx):
                    product += basis[i * nx + j] * basis[k * nx + j]
                for j in range(nx):
                    basis[i * nx + j] -= product * basis[k * nx + j]
            norm = 0.0
            for j in range(nx):
                norm += basis[i * nx + j] ** 2
            norm = np.sqrt(norm)
            rest *= norm
            for j in range(nx):
                basis[i * nx + j] /= norm if norm > 0.0 else 1.0
        smallest = min(smallest, rest)
        volume *= rest
    return smallest, volume


@part
def _watch_amplification(w, c, basis):
    """a_B^2 from below, by H_B applied to random-like vectors along the last kernel: two steps of the power method."""
    nx, n_c = c.nx, c.n_c
    if factor_augmented(c) != 0:
        return
    work, mass = floats(w.work, 2 * nx + n_c), floats(c.mass, nx * nx)
    s, x = work[:nx], work[nx : 2 * nx + n_c]
    largest = 0.0
    for trial in range(2):
        norm = 0.0
        for j in range(nx):
            s[j] = np.cos(1.0 + 2.3 * j + 1.7 * trial)
        for k in range(n_c):
            product = 0.0
            for j in range(nx):
                product += basis[k * nx + j] * s[j]
            for j in range(nx):
                s[j] -= product * basis[k * nx + j]
        for j in range(nx):
            norm += s[j] * s[j]
        if norm <= 0.0:
            return
        for i in range(nx):
            x[i] = 0.0
            for j in range(nx):
                x[i] += mass[i * nx + j] * s[j]
        for i in range(n_c):
            x[nx + i] = 0.0
        solve_lu(c.kkt, x)
        image = 0.0
        for i in range(nx):
            image += x[i] * x[i]
        largest = max(largest, np.sqrt(image / norm))
    w.largest_amplification = max(w.largest_amplification, largest)
    if largest > _LARGEST_AMPLIFICATION:
        w.amplifying_steps += 1
    else:
        w.amplifying_steps = 0
