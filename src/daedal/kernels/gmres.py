"""SPIGMR: scaled, left-preconditioned, incomplete and restarted GMRES, as in DASPK (BCP section 7.5).

Solves G x = b for the Newton correction without forming G. With D = sqrt(n) diag(w), the iteration uses D^{-1} P^{-1} G
D, so that basis vectors have a weighted RMS norm of one: they are perturbations that the local error test accepts, so
difference quotients may use the increment sigma = 1.
"""

from math import isfinite, sqrt

from daedal.kernels import matrix as iteration_matrix
from daedal.kernels.callbacks import CALLBACK, call, is_given
from daedal.kernels.compilation import part
from daedal.kernels.records import FLOAT, INTEGER, Struct, floats
from daedal.kernels.signatures import f64
from daedal.kernels.system import rescale_rows, residual
from daedal.kernels.vectors import add_product, copy, squares

NOT_CONVERGED = 2

KRYLOV = Struct(
    "KRYLOV",
    [
        ("n", INTEGER),
        ("basis_size", INTEGER),
        ("orthogonal_to", INTEGER),
        ("restarts", INTEGER),
        ("use_matrix", INTEGER),
        ("tolerance", FLOAT),
        ("setup", CALLBACK),
        ("solve", CALLBACK),
        ("basis", f64["basis_size + 1", "n"]),
        ("hessenberg", f64["basis_size + 1", "basis_size"]),
        ("givens", f64["basis_size", 2]),
        ("rhs", f64["basis_size + 1"]),
        ("start", f64["n"]),
        ("shifted_y", f64["n"]),
        ("shifted_yp", f64["n"]),
        ("shifted_r", f64["n"]),
        ("direction", f64["n"]),
    ],
)


@part
def prepare(system, krylov, matrix, t, y, yp, r, cj, h, inverse_weights):
    """Set up the preconditioner P at (t, y, y'); `r` is the residual there."""
    if krylov.use_matrix:
        return iteration_matrix.form(system, matrix, t, y, yp, r, cj, h, inverse_weights)
    rescale_rows(system, cj, r)
    if not is_given(krylov.setup):
        return 0
    n = krylov.n
    system.jacobians += 1
    block = floats(krylov.setup.block, 2 * n + 1)
    copy(block, y)
    copy(block[n:], yp)
    block[2 * n] = cj
    return call(krylov.setup, t)


@part
def _precondition(system, krylov, matrix, t, cj, v):
    """v := P^{-1} v."""
    system.preconditioner_solves += 1
    if krylov.use_matrix:
        return iteration_matrix.solve(matrix, t, v)
    n = krylov.n
    block = floats(krylov.solve.block, 2 * n + 1)
    block[0] = cj
    copy(block[1:], v)
    status = call(krylov.solve, t)
    copy(v, block[1 + n :])
    return status


@part
def _product(system, krylov, matrix, t, y, yp, r, cj, x, result):
    """result = P^{-1} G x, G x = F(t, y + x, y' + cj x) - F(t, y, y')."""
    n = krylov.n
    shifted_y, shifted_yp = krylov.shifted_y, krylov.shifted_yp
    for i in range(n):
        shifted_y[i] = y[i] + x[i]
        shifted_yp[i] = yp[i] + cj * x[i]
    status = residual(system, t, shifted_y, shifted_yp, result)
    if status != 0:
        return status
    for i in range(n):
        result[i] -= r[i]
    return _precondition(system, krylov, matrix, t, cj, result)


@part
def gmres(system, krylov, matrix, t, y, yp, r, cj, inverse_weights, b, x):
    """x ~ G^{-1} b with ||P^{-1}(b - G x)||_WRMS <= tolerance. Returns 0, NOT_CONVERGED or a callback status."""
    n = krylov.n
    root_n = sqrt(float(n))
    start, direction, preconditioned = krylov.start, krylov.direction, krylov.shifted_r
    copy(start, b)
    x[:] = 0.0
    status = _precondition(system, krylov, matrix, t, cj, start)
    if status != 0:
        return status
    for i in range(n):
        start[i] *= inverse_weights[i] / root_n
    rho = sqrt(squares(start))
    if not isfinite(rho) or (rho == 0.0 and squares(b) != 0.0):
        return NOT_CONVERGED  # not a preconditioner, since it maps a residual to zero or to NaN
    if rho <= krylov.tolerance:
        for i in range(n):
            x[i] = start[i] * root_n / inverse_weights[i]
        return 0
    for cycle in range(krylov.restarts + 1):
        if cycle > 0:
            # The residual of the last cycle, recomputed: P^{-1}(b - G x).
            copy(direction, x)
            status = _product(system, krylov, matrix, t, y, yp, r, cj, direction, start)
            if status != 0:
                return status
            copy(preconditioned, b)
            status = _precondition(system, krylov, matrix, t, cj, preconditioned)
            if status != 0:
                return status
            for i in range(n):
                start[i] = (preconditioned[i] - start[i]) * inverse_weights[i] / root_n
            rho = sqrt(squares(start))
            if rho <= krylov.tolerance:
                return 0
        rho, status = _cycle(system, krylov, matrix, t, y, yp, r, cj, inverse_weights, rho, x)
        if status != 0:
            return status
        if rho <= krylov.tolerance:
            return 0
    return NOT_CONVERGED


@part
def _cycle(system, krylov, matrix, t, y, yp, r, cj, inverse_weights, beta, x):
    """One cycle of at most `basis_size` iterations from the scaled residual in ``krylov.start`` of norm `beta`."""
    n = krylov.n
    root_n = sqrt(float(n))
    basis, hess = krylov.basis, krylov.hessenberg
    givens, rhs = krylov.givens, krylov.rhs
    start, direction = krylov.start, krylov.direction
    for i in range(n):
        basis[0, i] = start[i] / beta
    rhs[:] = 0.0
    rhs[0] = beta
    used = 0
    rho = beta
    for m in range(krylov.basis_size):
        system.linear_iterations += 1
        for i in range(n):
            direction[i] = basis[m, i] * root_n / inverse_weights[i]
        w = basis[m + 1]
        status = _product(system, krylov, matrix, t, y, yp, r, cj, direction, w)
        if status != 0:
            return rho, status
        for i in range(n):
            w[i] *= inverse_weights[i] / root_n
        first = max(0, m - krylov.orthogonal_to + 1)
        hess[:first, m] = 0.0
        for j in range(first, m + 1):
            product = hess[j, m] = add_product(0.0, w, basis[j])
            for i in range(n):
                w[i] -= product * basis[j, i]
        length = sqrt(squares(w))
        hess[m + 1, m] = length
        if length > 0.0:
            for i in range(n):
                w[i] /= length
        for j in range(m):
            upper, lower = hess[j, m], hess[j + 1, m]
            hess[j, m] = givens[j, 0] * upper + givens[j, 1] * lower
            hess[j + 1, m] = -givens[j, 1] * upper + givens[j, 0] * lower
        radius = sqrt(hess[m, m] ** 2 + hess[m + 1, m] ** 2)
        if radius == 0.0:
            return rho, NOT_CONVERGED
        givens[m, 0] = hess[m, m] / radius
        givens[m, 1] = hess[m + 1, m] / radius
        hess[m, m] = radius
        rhs[m + 1] = -givens[m, 1] * rhs[m]
        rhs[m] *= givens[m, 0]
        used = m + 1
        rho = abs(rhs[m + 1])  # = beta |s_1 ... s_m|
        if krylov.orthogonal_to < krylov.basis_size and m >= krylov.orthogonal_to:
            rho *= _residual_direction_length(krylov, m)
        if rho <= krylov.tolerance or length == 0.0:
            break
    for j in range(used - 1, -1, -1):
        value = rhs[j]
        for i in range(j + 1, used):
            value -= hess[j, i] * rhs[i]
        rhs[j] = value / hess[j, j]
    for j in range(used):
        for i in range(n):
            x[i] += rhs[j] * basis[j, i] * root_n / inverse_weights[i]
    return rho, 0


@part
def _residual_direction_length(krylov, m):
    """The length of the true residual direction, since with incomplete orthogonalisation the basis is not
    orthonormal."""
    n = krylov.n
    basis, givens = krylov.basis, krylov.givens
    direction = krylov.direction
    copy(direction, basis[0])
    for j in range(m + 1):
        c, s = givens[j, 0], givens[j, 1]
        for i in range(n):
            direction[i] = -s * direction[i] + c * basis[j + 1, i]
    return sqrt(squares(direction))
