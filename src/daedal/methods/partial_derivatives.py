r"""F_y and F_y' of F(t, y, y') = 0, entry by entry, in compiled code, with a quick index check at the start of a run.

Functions and differences give G = F_y + c F_y' for any c. With c = 0 this is F_y itself, for any step size. F_y' is
then (G - F_y) / c, for c of about 1/h, which loses no more digits than Newton's matrix. Zero entries of F_y' are
computed as zero.

At the start of a run, F_y and F_y' may show quickly that the index is 0 or 1. Other cases are decided in Python.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED, is_given
from daedal.kernels.compilation import part
from daedal.kernels.endings import Ending
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE, fill
from daedal.kernels.records import float_rows, integer_rows
from daedal.kernels.system import residual

_CALLBACK_RAISED, _TROUBLED = int(Ending.CALLBACK_RAISED), int(Ending.TROUBLED)
_RANK = 1e-7  # relative size below which pivots count as zero, after scaling
LARGEST = 2000
"""Number of unknowns up to which a matrix is checked in compiled code."""


@part
def separate(system, matrix, run, t, y, yp, r, cj, h, place, f_y, f_yp):
    """Compute F_y and F_y' at (t, y, y') from F_y and F_y + cj F_y'; r is memory for F, and h the size of a step."""
    data, weights = matrix.data, run.inverse_weights
    if not is_given(matrix.jacobian):
        status = residual(system, t, y, yp, r)
        if status != 0:
            return status
    system.jacobians += 1
    for second in range(2):
        status = fill(system, matrix, t, y, yp, r, cj * second, h, weights)
        if status != 0:
            run.jacobian_unevaluable = status == JACOBIAN_UNEVALUABLE
            return status
        for e in range(place.size):
            if second:
                f_yp[e] = (data[place[e]] - f_y[e]) / cj
            else:
                f_y[e] = data[place[e]]
    return 0


def room_for_look(n: int) -> np.ndarray:
    """Working memory for checking n unknowns."""
    return np.zeros(4 * n + n * n if n <= LARGEST else 0)


@part
def after_first_look(status, method, f_y, f_yp, n):
    """Check F_y and F_y' at the start, given the status of their evaluation; return 0, or the reason why the run
    cannot start immediately.

    TROUBLED leaves the decision to Python. If F_y and F_y' cannot be evaluated, the first step reports the error.
    """
    if status == 0:
        return 0 if _is_plain(method, f_y, f_yp, n) else _TROUBLED
    return _CALLBACK_RAISED if status == RAISED else 0


@part
def _is_plain(method, f_y, f_yp, n):
    """Whether equations without derivatives determine the variables without derivatives, and equations with
    derivatives determine the derivatives."""
    rows, columns = method.rows, method.columns
    if n > LARGEST:
        return False
    flags = integer_rows(method.look, 4, n)
    # 1 for equations that contain derivatives, and for variables whose derivative occurs
    equation, variable = flags[0], flags[1]
    for i in range(n):
        equation[i], variable[i] = 0, 0
    for e in range(method.entries):
        if f_yp[e] != 0.0:
            equation[rows[e]] = 1
            variable[columns[e]] = 1
    count, row, column = 0, flags[2], flags[3]
    for i in range(n):
        count += equation[i]
        count -= variable[i]
    if count != 0:
        return False
    plain = True
    for kind in range(2):
        size = _place(equation, kind, row)
        _place(variable, kind, column)
        block = float_rows(method.look + 32 * n, size, size)
        block[:, :] = 0.0
        for e in range(method.entries):
            if equation[rows[e]] == kind and variable[columns[e]] == kind:
                block[row[rows[e]], column[columns[e]]] = f_yp[e] if kind == 1 else f_y[e]
        plain = plain and _is_regular(block)
    return plain


@part
def _place(flags, kind, places):
    """Number the equations or variables whose flag is `kind`; return their count."""
    count = 0
    for i in range(flags.size):
        places[i] = count
        count += 1 if flags[i] == kind else 0
    return count


@part
def _is_regular(a):
    """Whether a matrix has full rank, by elimination with pivoting after scaling of rows and columns."""
    n = a.shape[0]
    for by_columns in range(2):
        for i in range(n):
            line = a[:, i] if by_columns else a[i, :]
            size = 0.0
            for j in range(n):
                if not abs(line[j]) < np.inf:
                    return False
                size = max(size, abs(line[j]))
            if size == 0.0:
                return False
            for j in range(n):
                line[j] /= size
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if not abs(a[pivot, k]) > _RANK:
            return False
        for j in range(k, n):
            a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            if factor != 0.0:
                for j in range(k, n):
                    a[i, j] -= factor * a[k, j]
    return True
