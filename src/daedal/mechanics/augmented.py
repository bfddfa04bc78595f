r"""The augmented system [[M, B], [K, 0]] (z_m', lam) = (f, -bias): accelerations and multipliers at a point."""

from daedal.kernels.callbacks import UNEVALUABLE
from daedal.kernels.compilation import entry, part
from daedal.kernels.dense import factor_lu, solve_lu
from daedal.kernels.records import floats, record_at
from daedal.kernels.vectors import copy, transpose
from daedal.mechanics.constrained import ACCELERATION, ALGEBRAIC, CONSTRAINED, EVALUATION, FORCE, LEVELS, evaluate


@part
def _damped_bias(c, damping, i):
    """bias + sum_l alpha_l g^(l): the terms besides K z_m' at acceleration level, with Baumgarte's.

    The polynomial of a velocity constraint is tau + alpha, where alpha is the last of the coefficients.
    """
    value = c.bias[i]
    if damping == 0:
        return value
    alpha, level = floats(damping, c.m + 1), c.level
    if i < c.n_g:
        for order in range(c.m):
            value += alpha[order] * level[order, i]
    else:
        value += alpha[c.m] * level[c.m - 1, i]
    return value


@part
def factor_augmented(c):
    """Factor [[M, B], [K, 0]] with the latest values."""
    nx, by_columns = c.nx, c.kkt.data
    transpose(by_columns, c.mass)
    transpose(by_columns[:, nx:], c.jacobian)
    transpose(by_columns[nx:], c.columns)
    by_columns[nx:, nx:] = 0.0
    return factor_lu(c.kkt)


@part
def solve_augmented(c, damping=0):
    """Solve [[M, B], [K, 0]] (z_m', lam) = (f, -bias - sum alpha_l g^(l)) with existing factors."""
    nx, solution = c.nx, c.solution
    copy(solution, c.force)
    for i in range(c.n_c):
        solution[nx + i] = -_damped_bias(c, damping, i)
    solve_lu(c.kkt, solution)
    copy(c.acceleration, solution[:nx])
    copy(c.multipliers, solution[nx:])


@entry(EVALUATION)
def accelerator(system, t, damping):
    """Kernel for accelerations and multipliers.

    Forces that depend on lam, and algebraic variables w, make the augmented system nonlinear: Newton's method on (lam,
    w). Its matrix is that of the index test, G M^{-1} (G^T - f_lam + f_w d_w^{-1} d_lam).
    """
    c = record_at(system, CONSTRAINED)
    status = evaluate(c, t, ACCELERATION | (LEVELS if damping != 0 else 0)) or factor_augmented(c)
    if status != 0:
        return status
    if c.uses_multipliers or c.n_w > 0:
        return accelerate_coupled(c, t, damping)
    solve_augmented(c, damping)
    return 0


@part
def _coupled_residual(c, t, damping, u, residual):
    """lam_augmented(lam, w) - lam and d(lam, w) for u = (lam, w)."""
    n, n_c = c.m * c.nx + c.n_r, c.n_c
    state, rows = c.state, c.rows
    copy(state[n:], u[n_c : n_c + c.n_w])
    if c.uses_multipliers:
        for i in range(n_c):
            state[n + c.n_w + rows[i]] = u[i]
    status = evaluate(c, t, FORCE | ALGEBRAIC)
    if status != 0:
        return status
    solve_augmented(c, damping)
    multipliers = c.multipliers
    for i in range(n_c):
        residual[i] = multipliers[i] - u[i]
    copy(residual[n_c:], c.algebraic)
    return 0


@part
def accelerate_coupled(c, t, damping=0):
    """Newton's method on (lam, w) with existing factors of the augmented matrix."""
    n, n_c, size = c.m * c.nx + c.n_r, c.n_c, c.n_c + c.n_w
    state, rows = c.state, c.rows
    u, residual, shifted = c.inner[0], c.inner[1], c.inner[2]
    matrix = c.inner_matrix.data
    for i in range(n_c):
        u[i] = state[n + c.n_w + rows[i]] if c.uses_multipliers else c.multipliers[i]
    copy(u[n_c:], state[n : n + c.n_w])
    for _ in range(25):
        status = _coupled_residual(c, t, damping, u, residual)
        if status != 0:
            return status
        largest = 0.0
        for i in range(size):
            largest = max(largest, abs(u[i]), abs(residual[i]))
        for j in range(size):
            kept, delta = u[j], 1e-7 * max(abs(u[j]), 1e-3 * largest, 1e-8)
            u[j] = kept + delta
            status = _coupled_residual(c, t, damping, u, shifted)
            u[j] = kept
            if status != 0:
                return status
            for i in range(size):
                matrix[j, i] = (shifted[i] - residual[i]) / delta
        if factor_lu(c.inner_matrix) != 0:
            return 1
        solve_lu(c.inner_matrix, residual)
        change = 0.0
        for i in range(size):
            u[i] -= residual[i]
            change = max(change, abs(residual[i]))
        if change <= 1e-13 * (largest + 1e-300):
            return _coupled_residual(c, t, damping, u, shifted)
    return UNEVALUABLE
