r"""Constrained systems of order m as seen by kernels, and their evaluation and linearisation.

    M(t, z) z_m' = f(t, z, r, w, lam) - B lam,   z_j' = z_{j+1} (j < m),   g(t, z_1) = 0,   c(t, z_{m-1}, z_m) = 0

A mechanism has m = 2, z = (q, v) and B = K^T; a linear Hessenberg DAE any m. The rows of K are the gradients of the
holonomic constraints g (n_g of them, on all levels) and of the velocity constraints c (on the two highest levels only).
Level l of a constraint is its l-th derivative,

    g^(l) = K z_{l+1} + ...,    g^(m) = K z_m' + bias.

Derivatives not given by the user are formed by differences with about ten accurate digits (:mod:`.differences`).

For Newton's method, a traced mechanism has one function that computes the matrix of

    rows      M a + K^T lam - f (nx) | -f_d (n_r) | d (n_w) | all constraints, velocity level | ... acceleration level
    columns   q | v | r | w | lam, where forces depend on it

for given a and lam. A quantity that depends on q, v and a, which in turn depend on an unknown with the factors fq, fv
and fa, has the derivative fq (..)_q + fv (..)_v + fa (..)_a, where (..)_a is M or K.
"""

from math import comb

import numpy as np

from daedal.kernels.callbacks import CALLBACK, fetch_at
from daedal.kernels.compilation import caller, inlined, part
from daedal.kernels.dense import LU, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, address_of, data_of, float_rows, floats
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import copy

MECHANICAL, LINEAR = 0, 1

# Flags: quantities to evaluate.
MASS, FORCE, POSITION, JACOBIAN, VELOCITY, BIAS, RATE, ALGEBRAIC = 1, 2, 4, 8, 16, 32, 64, 128
ACCURATE = 256  # G to sixth order, for single evaluations
LEVELS = POSITION | VELOCITY
DYNAMICS = MASS | FORCE | JACOBIAN
ACCELERATION = DYNAMICS | BIAS

FUNCTIONS = (
    "mass_function",
    "force_function",
    "constraint",
    "constraint_jacobian",
    "constraint_t",
    "acceleration_bias",
    "velocity_constraint",
    "velocity_jacobian",
    "velocity_bias",
    "state_rate",
    "algebraic_equation",
    "coefficients",
    "accelerations",  # straight-line code, if available
    "position_correction",
    "velocity_correction",
    "stage",
)
PROBES = 8
"""Number of vectors of all constraints used as workspace by differences."""
SIZES = ("kind", "m", "nx", "n_g", "n_c", "n_r", "n_w", "all_g", "all_v", "n_arguments", "n_coefficients")


CONSTRAINED = Struct(
    "CONSTRAINED",
    [
        *[(name, INTEGER) for name in SIZES],
        ("n_state", INTEGER),  # m nx + n_r + n_w + all_g + all_v: z, r, w and all multipliers
        ("autonomous", INTEGER),
        ("constant_mass", INTEGER),
        ("uses_multipliers", INTEGER),
        ("length", FLOAT),  # typical length of a machine, the scale for positions near zero; 0 if unknown
        ("time_increment", FLOAT),
        ("t_first", FLOAT),  # start of the run for which increments are chosen
        ("t_last", FLOAT),
        ("searches", INTEGER),  # number of increment searches in this run
        ("patience", INTEGER),  # number of evaluations before the next search is allowed
        *[(name, CALLBACK) for name in FUNCTIONS],
        ("rows", i64["n_c"]),
        ("state", f64["n_state"]),
        ("shifted", f64["n_state"]),
        ("mass", f64["nx", "nx"]),
        ("force", f64["nx"]),
        ("columns", f64["nx", "n_c"]),
        ("jacobian", f64["n_c", "nx"]),
        ("level", f64["m", "n_c"]),
        ("bias", f64["n_c"]),
        ("rate", f64["n_r"]),
        ("algebraic", f64["n_w"]),
        ("all_position", f64["all_g"]),
        ("all_velocity", f64["all_g + all_v"]),
        ("all_bias", f64["all_g + all_v"]),
        ("all_jacobian", f64["all_g + all_v", "nx"]),
        ("increments", f64[2, "nx"]),  # increments for derivatives along a line, and for single coordinates
        ("probes", f64[PROBES, "all_g + all_v"]),
        ("acceleration", f64["nx"]),
        ("multipliers", f64["n_c"]),
        ("solution", f64["nx + n_c"]),
        ("inner", f64[3, "n_c + n_w"]),
        ("binomials", f64["m + 1", "m + 1"]),
        ("given", f64["nx"]),  # workspace for checking a start: positions as given,
        ("guesses", f64["n_w + n_c"]),
        ("factors", f64[2, "nx", "nx"]),  # factors of M, and of M + sum_i m K_i^T K_i / |K_i|^2
        ("gradients", f64["n_c", "nx"]),
        ("products", f64[2, "n_c", "n_c"]),
        ("unit", f64["n_c"]),
        ("compared", f64[2, "all_g + all_v"]),
        ("kkt", LU),
        ("projection", LU),
        ("inner_matrix", LU),
        ("evaluations", INTEGER),
        ("evaluator", ADDRESS),
        ("accelerator", ADDRESS),
    ],
)


def binomials(m: int) -> np.ndarray:
    """The binomial coefficients (i over j), i, j = 0..m."""
    return np.array([[comb(i, j) for j in range(m + 1)] for i in range(m + 1)], dtype=float)


@part
def fetch(callback, t, state, n_arguments, n_result):
    """Call a user function with the first entries of `state`; the block holds these entries, followed by the result."""
    return fetch_at(callback, t, data_of(state), n_arguments, 0, 0, 0, 0, callback.block + 8 * n_arguments, n_result)


@part
def load_state(c, z, r):
    """Write z and r, which may be columns of matrices, to ``c.state``; w and lam remain as initial guesses."""
    n, state = c.m * c.nx, c.state
    for i in range(min(n, z.size)):
        state[i] = z[i]
    for i in range(min(c.n_r, r.size)):
        state[n + i] = r[i]


@part
def load(c, z, r, w, lam):
    """Write the variables to ``c.state``; multipliers of redundant rows are zero."""
    load_state(c, z, r)
    n = c.m * c.nx
    state, rows = c.state, c.rows
    copy(state[n + c.n_r :], w[: c.n_w])
    if c.uses_multipliers:
        for i in range(c.n_c):
            state[n + c.n_r + c.n_w + rows[i]] = lam[i]


@part
def load_start(c, z, r, w, lam):
    """Write the variables of a start; its multipliers become the initial guess."""
    load(c, z, r, w, lam)
    copy(c.multipliers, lam[: c.n_c])


EVALUATION = i64(i64, f64, i64)
"""C signature of evaluator and accelerator: status = f(system, t, what), f(system, t, damping)."""

_call_evaluator = caller(EVALUATION)


@inlined
def evaluate(c, t, what):
    """Evaluate `what` at the variables in ``c.state``; returns 0 or the status of a user's function."""
    return _call_evaluator(c.evaluator, address_of(c), t, what)


@inlined
def accelerate(c, t, damping=0):
    """Accelerations and multipliers at the variables in ``c.state``, evaluating all prerequisites.

    `damping` is the address of Baumgarte's coefficients alpha_0 .. alpha_{m-1}, followed by the coefficient of velocity
    constraints; 0 if there is no damping.
    """
    return _call_evaluator(c.accelerator, address_of(c), t, damping)


LINEARISATION = Struct(
    "LINEARISATION", [("function", CALLBACK), ("rows", INTEGER), ("columns", INTEGER), ("n_arguments", INTEGER)]
)


@part
def linearise(lin, c, t, a, lam):
    """Evaluate the derivatives at the variables in ``c.state``; returns 0 or a status."""
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
    """The matrix of derivatives computed by :func:`linearise`, by columns."""
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
    """Write to `target` minus the derivative of the accelerations with respect to the unknown with index `column`.

    The augmented system M a + K^T lam = f, K a + bias + sum_l alpha_l g^(l) = 0 is differentiated with the system's
    current a and lam, and solved with the existing factors; `damping` is the address of Baumgarte's coefficients.
    Forces must not depend on lam or w.
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
