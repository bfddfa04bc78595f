"""Exact derivatives of a mechanism for Newton's method: evaluation and layout.

A traced mechanism has one function that computes the matrix of

    rows      M a + K^T lam - f (nx) | -f_d (n_r) | d (n_w) | all constraints, velocity level | ... acceleration level
    columns   q | v | r | w | lam, where forces depend on it

for given a and lam. A quantity that depends on q, v and a, which in turn depend on an unknown with the factors fq, fv
and fa, has the derivative fq (..)_q + fv (..)_v + fa (..)_a, where (..)_a is M or K.
"""

from daedal.kernels.callbacks import CALLBACK
from daedal.kernels.compilation import inlined, part
from daedal.kernels.dense import solve_lu
from daedal.kernels.records import INTEGER, Struct, float_rows, floats
from daedal.kernels.vectors import copy
from daedal.mechanics.constrained import fetch

LINEARISATION = Struct(
    "LINEARISATION", [("function", CALLBACK), ("rows", INTEGER), ("columns", INTEGER), ("n_arguments", INTEGER)]
)


@part
def linearise(lin, c, t, a, lam):
    """Evaluate the derivatives at the variables in ``c.state``; 0 or a status."""
    n, total = 2 * c.nx + c.n_r + c.n_w, c.all_g + c.all_v
    arguments, rows = floats(lin.function.block, lin.n_arguments), c.rows
    copy(arguments, c.state[:n])
    for i in range(total):
        arguments[n + i] = 0.0
    for i in range(c.n_c):
        arguments[n + rows[i]] = lam[i]
    copy(arguments[n + total :], a[: c.nx])
    return fetch(lin.function, t, arguments, lin.n_arguments, lin.rows * lin.columns)


@inlined
def derivatives(lin):
    """The matrix, by columns."""
    return float_rows(lin.function.block + 8 * lin.n_arguments, lin.columns, lin.rows)


@inlined
def balance_by(c, found, i, j, fq, fv, fa):
    """The derivative of row i of M a + K^T lam - f with respect to coordinate j."""
    value = fq * found[j, i] + fv * found[c.nx + j, i]
    return value + fa * c.mass[i, j] if fa != 0.0 else value


@inlined
def level_by(c, found, level, k, j, fq, fv, fa):
    """Derivative of a level of constraint k with respect to coordinate j, with the latest K."""
    gradient = c.jacobian[k, j]
    if level == 0:
        return fq * gradient
    row = c.nx + c.n_r + c.n_w + c.rows[k]
    if level == 1:
        return fq * found[j, row] + fv * gradient
    row += c.all_g + c.all_v
    return fq * found[j, row] + fv * found[c.nx + j, row] + fa * gradient


@part
def acceleration_by(c, found, damping, column, target):
    """Minus the derivative of the accelerations, with existing factors of the augmented matrix.

    The augmented system M a + K^T lam = f, K a + bias + sum_l alpha_l g^(l) = 0 is differentiated with the system's
    current a and lam; `damping` is the address of Baumgarte's coefficients. Forces must not depend on lam or w.
    """
    nx, n_g, solution = c.nx, c.n_g, c.solution
    of_q, of_v, j = column < nx, nx <= column < 2 * nx, column % nx
    fq, fv = 1.0 if of_q else 0.0, 1.0 if of_v else 0.0
    for i in range(nx):
        solution[i] = found[column, i]
    for k in range(c.n_c):
        value = 0.0
        if of_q or of_v:
            value = level_by(c, found, 2, k, j, fq, fv, 0.0)
            if damping != 0:
                alpha = floats(damping, 3)
                if k < n_g:
                    value += alpha[0] * level_by(c, found, 0, k, j, fq, fv, 0.0)
                    value += alpha[1] * level_by(c, found, 1, k, j, fq, fv, 0.0)
                else:
                    value += alpha[2] * level_by(c, found, 1, k, j, fq, fv, 0.0)
        solution[nx + k] = value
    solve_lu(c.kkt, solution)
    copy(target, solution[:nx])
