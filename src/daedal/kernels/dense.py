"""Dense LU factorisation and solves: short loops for small matrices, LAPACK beyond.

The functions work on any record with the fields `n`, `data` (column by column), `pivots` and `lapack`.
"""

import numpy as np

from daedal.kernels.compilation import caller, entry, inlined, part
from daedal.kernels.externals import dgetrf, dgetrs
from daedal.kernels.records import (
    ADDRESS,
    INTEGER,
    Record,
    Struct,
    address_of,
    data_of,
    float_rows,
    floats,
    record_at,
)
from daedal.kernels.signatures import f64, i64

SINGULAR = 1

# Positions of the integer arguments of LAPACK in matrix.lapack. Both sides read and write 8-byte numbers, of which
# LAPACK uses the lower half.
N, ML, MU, ROWS, ONE, MODE, INFO = 0, 1, 2, 3, 4, 5, 6
ARGUMENTS = 7

SMALL = 16  # size at which these loops and LAPACK take equally long for a factorisation and a few solves

LU = Struct(
    "LU",
    [
        ("n", INTEGER),
        ("data", f64["n", "n"]),  # column by column
        ("pivots", i64["n"]),
        ("lapack", i64[ARGUMENTS]),
        ("factor", ADDRESS),
        ("solve", ADDRESS),
    ],
)
"""A dense matrix, memory for its factors, and addresses of the functions that factor and solve."""


def lapack_arguments(n: int, ml: int = 0, mu: int = 0) -> np.ndarray:
    """The integer arguments of LAPACK's routines, in the order of the constants above."""
    return np.array([n, ml, mu, 2 * ml + mu + 1, 1, ord("N"), 0], dtype=np.int64)


def dense_lu(n: int) -> Record:
    """An LU record for an (n, n) matrix."""
    pointers = {"factor": _factor_pointer.address, "solve": _solve_pointer.address}
    return Record.allocated(LU, n=n, lapack=lapack_arguments(n), **pointers)


@inlined
def argument(matrix, which):
    """The address of an argument of LAPACK."""
    return data_of(matrix.lapack) + 8 * which


@part
def factor_dense(matrix):
    """Replace the columns in `data` by their LU factors; SINGULAR if a pivot vanishes. a[j] is column j."""
    n = matrix.n
    if n > SMALL:
        size = argument(matrix, N)
        dgetrf(size, size, data_of(matrix.data), size, data_of(matrix.pivots), argument(matrix, INFO))
        return SINGULAR if matrix.lapack[INFO] != 0 else 0
    a = float_rows(data_of(matrix.data), n, n)
    pivots = matrix.pivots
    for k in range(n):
        pivot = k
        largest = abs(a[k, k])
        for i in range(k + 1, n):
            if abs(a[k, i]) > largest:
                largest = abs(a[k, i])
                pivot = i
        pivots[k] = pivot
        if largest == 0.0:
            return SINGULAR
        if pivot != k:
            for j in range(n):
                a[j, k], a[j, pivot] = a[j, pivot], a[j, k]
        inverse = 1.0 / a[k, k]
        for i in range(k + 1, n):
            a[k, i] *= inverse
        for j in range(k + 1, n):
            factor = a[j, k]
            if factor != 0.0:
                for i in range(k + 1, n):
                    a[j, i] -= factor * a[k, i]
    return 0


@part
def solve_dense(matrix, b):
    """b := A^{-1} b with the current factors."""
    n = matrix.n
    if n > SMALL:
        size = argument(matrix, N)
        dgetrs(
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
        return
    a = float_rows(data_of(matrix.data), n, n)
    pivots = matrix.pivots
    for k in range(n):
        pivot = pivots[k]
        b[k], b[pivot] = b[pivot], b[k]
    for k in range(n):
        value = b[k]
        for i in range(k + 1, n):
            b[i] -= value * a[k, i]
    for k in range(n - 1, -1, -1):
        b[k] /= a[k, k]
        value = b[k]
        for i in range(k):
            b[i] -= value * a[k, i]


_FACTOR, _SOLVE = i64(i64), i64(i64, i64)


@entry(_FACTOR)
def _factor_pointer(matrix):
    return factor_dense(record_at(matrix, LU))


@entry(_SOLVE)
def _solve_pointer(matrix, b):
    lu = record_at(matrix, LU)
    solve_dense(lu, floats(b, lu.n))
    return 0


_call_factor, _call_solve = caller(_FACTOR), caller(_SOLVE)


@inlined
def factor_lu(lu):
    """Factor an LU record through a pointer: the code is compiled once for all kernels."""
    return _call_factor(lu.factor, address_of(lu))


@inlined
def solve_lu(lu, b):
    """b := A^{-1} b for an LU record through a pointer."""
    return _call_solve(lu.solve, address_of(lu), b.ctypes.data)
