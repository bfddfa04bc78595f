r"""Equations of second order, F(t, x, x', x'') = 0, as kernels see them.

A method for such equations works on x alone. Where it says how derivatives follow from x at the end of a step,

    x' = x'_0 + c_1 e,    x'' = x''_0 + c_2 e,    e = x - x_0,

the equations become a nonlinear system for x. Newton's method sees it as a residual with the block [x | e | F] and
with cj = 1: both x and e move with a correction. That e is kept beside x saves the digits of x'' that the difference of
nearly equal values would lose.

What is stored, interpolated and tested is y: components of x and of x', in the order of `source`.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import (
    CALLBACK,
    COMPILED_CODE_RAISED,
    NATIVE,
    UNEVALUABLE,
    call,
    owner,
    repeat_in_python,
)
from daedal.kernels.compilation import part, pointer
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats, integers, record_at

SECOND_ORDER = np.dtype(
    [
        ("n", INTEGER),
        ("n_y", INTEGER),
        ("residual", CALLBACK),  # block [x | x' | x'' | F]
        ("source", ADDRESS),  # component j of y is x_i with i = source_j < n, or x'_i with n + i = source_j
        ("order", ADDRESS),  # highest derivative of each variable
        ("c1", FLOAT),
        ("c2", FLOAT),
        ("base", ADDRESS),  # x_0, x'_0, x''_0
    ]
)


@part
def _fill(block, x, xp, xpp, n):
    for i in range(n):
        block[i] = x[i]
        block[n + i] = xp[i]
        block[2 * n + i] = xpp[i]


@part
def evaluate_second_order(s, t, x, xp, xpp, result):
    """result = F(t, x, x', x''); a NaN or an infinity counts as 'cannot be evaluated here'."""
    n = s.n
    block = floats(s.residual.block, 4 * n)
    _fill(block, x, xp, xpp, n)
    status = call(s.residual, t)
    if status == COMPILED_CODE_RAISED:
        _fill(block, x, xp, xpp, n)
        status = repeat_in_python(s.residual, t)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    check = 0.0
    for i in range(n):
        result[i] = block[3 * n + i]
        check += result[i] * 0.0
    return 0 if check == 0.0 else UNEVALUABLE


@part
def derivatives(s, e, xp, xpp):
    """x' and x'' that belong to e."""
    base = float_rows(s.base, 3, s.n)
    for i in range(s.n):
        xp[i] = base[1, i] + s.c1 * e[i]
        xpp[i] = base[2, i] + s.c2 * e[i]


@pointer(NATIVE)
def discretised_residual(t, block):
    """F with the derivatives that belong to e; the block is [x | e | F]."""
    s = record_at(owner(block), SECOND_ORDER)
    n = s.n
    x, e, result = floats(block, n), floats(block + 8 * n, n), floats(block + 16 * n, n)
    inner = floats(s.residual.block, 4 * n)
    xp, xpp = inner[n : 2 * n], inner[2 * n : 3 * n]
    derivatives(s, e, xp, xpp)
    for i in range(n):
        inner[i] = x[i]
    status = call(s.residual, t)
    if status == COMPILED_CODE_RAISED:
        derivatives(s, e, xp, xpp)
        for i in range(n):
            inner[i] = x[i]
        status = repeat_in_python(s.residual, t)
    for i in range(n):
        result[i] = inner[3 * n + i]
    return UNEVALUABLE if status > 0 else status


@part
def gather(s, x, xp, y):
    """y from x and x'."""
    source = integers(s.source, s.n_y)
    for j in range(s.n_y):
        i = source[j]
        y[j] = x[i] if i < s.n else xp[i - s.n]


@part
def scatter(s, y, x, xp):
    """x and x' from y, as far as they are part of it."""
    source = integers(s.source, s.n_y)
    for j in range(s.n_y):
        i = source[j]
        if i < s.n:
            x[i] = y[j]
        else:
            xp[i - s.n] = y[j]
