"""The linear solves of Newton's method for any matrix type: a small interface, called through pointers.

A linear solver consists of two functions,

    prepare(system, linear, t, y, y', r, cj, h, weights)              form and factor G (or set up P)
    solve(system, linear, t, y, y', r, cj, cj_matrix, weights, b)     b := G^{-1} b

which return 0, a status of a callback, SINGULAR or NOT_CONVERGED. They are compiled once and called by every
integrator through their addresses in the LINEAR record.
"""

from daedal.kernels import gmres as krylov_solver
from daedal.kernels import matrix as iteration_matrix
from daedal.kernels.compilation import caller, entry, inlined
from daedal.kernels.records import ADDRESS, INTEGER, Struct, address_of, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import SYSTEM

LINEAR = Struct(
    "LINEAR",
    [
        ("prepare", ADDRESS),
        ("solve", ADDRESS),
        ("use_krylov", INTEGER),
        ("matrix", iteration_matrix.MATRIX),
        ("krylov", krylov_solver.KRYLOV),
        ("solution", f64["krylov.n"]),
    ],
)
"""A direct solver, or GMRES with the direct solver as its preconditioner."""

_A, _F = i64, f64
PREPARE = i64(_A, _A, _F, _A, _A, _A, _F, _F, _A)
SOLVE = i64(_A, _A, _F, _A, _A, _A, _F, _F, _A, _A)


@entry(PREPARE)
def direct_prepare(system, linear, t, y, yp, r, cj, h, weights):
    """Form and factor the iteration matrix."""
    s, n = record_at(system, SYSTEM), record_at(system, SYSTEM).n
    matrix = record_at(linear, LINEAR).matrix
    return iteration_matrix.form(s, matrix, t, floats(y, n), floats(yp, n), floats(r, n), cj, h, floats(weights, n))


@entry(SOLVE)
def direct_solve(system, linear, t, y, yp, r, cj, cj_matrix, weights, b):
    """b := c G^{-1} b; an old matrix is corrected by c = 2 / (1 + cj / cj_matrix), BCP (5.2.12)."""
    n = record_at(system, SYSTEM).n
    rhs = floats(b, n)
    correction = 2.0 / (1.0 + cj / cj_matrix)
    for i in range(n):
        rhs[i] *= correction
    return iteration_matrix.solve(record_at(linear, LINEAR).matrix, t, rhs)


@entry(PREPARE)
def krylov_prepare(system, linear, t, y, yp, r, cj, h, weights):
    """Set up the preconditioner."""
    s, k, n = record_at(system, SYSTEM), record_at(linear, LINEAR), record_at(system, SYSTEM).n
    return krylov_solver.prepare(
        s, k.krylov, k.matrix, t, floats(y, n), floats(yp, n), floats(r, n), cj, h, floats(weights, n)
    )


@entry(SOLVE)
def krylov_solve(system, linear, t, y, yp, r, cj, cj_matrix, weights, b):
    """b := G^{-1} b by GMRES. It uses the current G and needs no correction for an outdated preconditioner."""
    s, k, n = record_at(system, SYSTEM), record_at(linear, LINEAR), record_at(system, SYSTEM).n
    rhs, solution = floats(b, n), k.solution
    status = krylov_solver.gmres(
        s, k.krylov, k.matrix, t, floats(y, n), floats(yp, n), floats(r, n), cj, floats(weights, n), rhs, solution
    )
    if status == krylov_solver.NOT_CONVERGED:
        s.linear_failures += 1
    for i in range(n):
        rhs[i] = solution[i]
    return status


_call_prepare, _call_solve = caller(PREPARE), caller(SOLVE)


@inlined
def prepare_matrix(system, linear, t, y, yp, r, cj, h, inverse_weights):
    """Form and factor the iteration matrix, or set up the preconditioner, at (t, y, y')."""
    return _call_prepare(
        linear.prepare,
        address_of(system),
        address_of(linear),
        t,
        y.ctypes.data,
        yp.ctypes.data,
        r.ctypes.data,
        cj,
        h,
        inverse_weights.ctypes.data,
    )


@inlined
def solve_linear(system, linear, t, y, yp, r, cj, cj_matrix, inverse_weights, b):
    """b := G^{-1} b with the current matrix, formed for cj_matrix."""
    return _call_solve(
        linear.solve,
        address_of(system),
        address_of(linear),
        t,
        y.ctypes.data,
        yp.ctypes.data,
        r.ctypes.data,
        cj,
        cj_matrix,
        inverse_weights.ctypes.data,
        b.ctypes.data,
    )
