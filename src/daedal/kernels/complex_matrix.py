"""Complex matrices a + i b, dense, banded or sparse: factorisation and solution, as in `kernels.matrix`.

A pair of complex conjugate eigenvalues of an implicit Runge-Kutta method leads to one complex system of n unknowns. Its
factorisation takes half the operations of a real system of 2n unknowns. `data` and vectors have the layout of real
matrices and vectors, with real and imaginary parts interleaved.
"""

from __future__ import annotations

from daedal.kernels.callbacks import CALLBACK, call
from daedal.kernels.compilation import part
from daedal.kernels.dense import ARGUMENTS, INFO, ML, MODE, MU, ONE, ROWS, SINGULAR, N, argument
from daedal.kernels.externals import zgbtrf, zgbtrs, zgetrf, zgetrs
from daedal.kernels.matrix import BANDED, SPARSE
from daedal.kernels.records import INTEGER, Struct, data_of, float_rows, floats
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import copy

SMALL = 12  # size at which these loops and LAPACK take equally long for a factorisation and a few solves

COMPLEX_MATRIX = Struct(
    "COMPLEX_MATRIX",
    [
        ("kind", INTEGER),
        ("n", INTEGER),
        ("total", INTEGER),  # number of unknowns of the system: n, or a multiple of it
        ("ml", INTEGER),
        ("mu", INTEGER),
        ("size", INTEGER),  # number of complex numbers
        ("data", f64["2 * size"]),
        ("pivots", i64["n"]),
        ("lapack", i64[ARGUMENTS]),
        ("factor", CALLBACK),
        ("solve", CALLBACK),
    ],
)


@part
def factor_complex(matrix, t):
    """Factor the matrix in `data`; returns 0, a callback status, or SINGULAR."""
    n = matrix.n
    if matrix.kind == SPARSE:
        return call(matrix.factor, t)
    if matrix.kind == BANDED:
        zgbtrf(
            argument(matrix, N),
            argument(matrix, N),
            argument(matrix, ML),
            argument(matrix, MU),
            data_of(matrix.data),
            argument(matrix, ROWS),
            data_of(matrix.pivots),
            argument(matrix, INFO),
        )
        return SINGULAR if matrix.lapack[INFO] != 0 else 0
    if n > SMALL:
        size = argument(matrix, N)
        zgetrf(size, size, data_of(matrix.data), size, data_of(matrix.pivots), argument(matrix, INFO))
        return SINGULAR if matrix.lapack[INFO] != 0 else 0
    return _factor_small(matrix)


@part
def _factor_small(matrix):
    """Gaussian elimination with partial pivoting; a[j] is column j."""
    n, pivots = matrix.n, matrix.pivots
    a = float_rows(data_of(matrix.data), n, 2 * n)
    for k in range(n):
        pivot = k
        largest = abs(a[k, 2 * k]) + abs(a[k, 2 * k + 1])
        for i in range(k + 1, n):
            size = abs(a[k, 2 * i]) + abs(a[k, 2 * i + 1])
            if size > largest:
                largest, pivot = size, i
        pivots[k] = pivot
        if largest == 0.0:
            return SINGULAR
        if pivot != k:
            for j in range(n):
                for q in range(2):
                    a[j, 2 * k + q], a[j, 2 * pivot + q] = a[j, 2 * pivot + q], a[j, 2 * k + q]
        re, im = a[k, 2 * k], a[k, 2 * k + 1]
        square = re * re + im * im
        re, im = re / square, -im / square
        for i in range(k + 1, n):
            x, y = a[k, 2 * i], a[k, 2 * i + 1]
            a[k, 2 * i] = re * x - im * y
            a[k, 2 * i + 1] = re * y + im * x
        for j in range(k + 1, n):
            re, im = a[j, 2 * k], a[j, 2 * k + 1]
            if re != 0.0 or im != 0.0:
                for i in range(k + 1, n):
                    x, y = a[k, 2 * i], a[k, 2 * i + 1]
                    a[j, 2 * i] -= re * x - im * y
                    a[j, 2 * i + 1] -= re * y + im * x
    return 0


@part
def solve_complex(matrix, t, b):
    """b := G^{-1} b with the current factors, copy by copy; returns 0 or a callback status."""
    n = matrix.n
    for k in range(matrix.total // n):
        status = _solve_once(matrix, t, b[2 * n * k : 2 * n * (k + 1)])
        if status != 0:
            return status
    return 0


@part
def _solve_once(matrix, t, b):
    n = matrix.n
    if matrix.kind == SPARSE:
        block = floats(matrix.solve.block, 2 * n)
        copy(block, b)
        status = call(matrix.solve, t)
        copy(b, block)
        return status
    if matrix.kind == BANDED:
        zgbtrs(
            argument(matrix, MODE),
            argument(matrix, N),
            argument(matrix, ML),
            argument(matrix, MU),
            argument(matrix, ONE),
            data_of(matrix.data),
            argument(matrix, ROWS),
            data_of(matrix.pivots),
            b.ctypes.data,
            argument(matrix, N),
            argument(matrix, INFO),
        )
        return 0
    if n > SMALL:
        size = argument(matrix, N)
        zgetrs(
            argument(matrix, MODE),
            size,
            argument(matrix, ONE),
            data_of(matrix.data),
            size,
            data_of(matrix.pivots),
            b.ctypes.data,
            size,
            argument(matrix, INFO),
        )
        return 0
    _solve_small(matrix, b)
    return 0


@part
def _solve_small(matrix, b):
    n, pivots = matrix.n, matrix.pivots
    a = float_rows(data_of(matrix.data), n, 2 * n)
    for k in range(n):
        pivot = pivots[k]
        for q in range(2):
            b[2 * k + q], b[2 * pivot + q] = b[2 * pivot + q], b[2 * k + q]
    for k in range(n):
        re, im = b[2 * k], b[2 * k + 1]
        for i in range(k + 1, n):
            x, y = a[k, 2 * i], a[k, 2 * i + 1]
            b[2 * i] -= re * x - im * y
            b[2 * i + 1] -= re * y + im * x
    for k in range(n - 1, -1, -1):
        x, y = a[k, 2 * k], a[k, 2 * k + 1]
        re, im, square = b[2 * k], b[2 * k + 1], x * x + y * y
        re, im = (re * x + im * y) / square, (im * x - re * y) / square
        b[2 * k], b[2 * k + 1] = re, im
        for i in range(k):
            x, y = a[k, 2 * i], a[k, 2 * i + 1]
            b[2 * i] -= re * x - im * y
            b[2 * i + 1] -= re * y + im * x
