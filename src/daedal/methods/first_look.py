"""How a run begins: whether F(t, y, y') = 0 shows an index of 0 or 1 at first sight, in compiled code.

All else is judged in Python, by the owner of the run.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import part
from daedal.kernels.endings import Ending
from daedal.kernels.records import floats, integers

_CALLBACK_RAISED, _TROUBLED = int(Ending.CALLBACK_RAISED), int(Ending.TROUBLED)
_RANK = 1e-7  # pivots below it count as zero, after scaling


@part
def after_first_look(status, method, n):
    """0, or why a run does not begin at once, by F_y and F_y' at the start and the status of their evaluation.

    The owner of the run is asked by TROUBLED. Where they cannot be evaluated the first step will say what is wrong.
    """
    if status == 0:
        return 0 if _is_plain(method, n) else _TROUBLED
    return _CALLBACK_RAISED if status == RAISED else 0


@part
def _is_plain(method, n):
    """Whether equations without derivatives determine as many variables without, and the others their derivatives."""
    rows, columns = integers(method.rows, method.entries), integers(method.columns, method.entries)
    f_y, f_yp = floats(method.f_y, method.entries), floats(method.f_yp, method.entries)
    equation, variable = np.zeros(n, np.int64), np.zeros(n, np.int64)  # 1: a derivative occurs in it, or of it
    for e in range(method.entries):
        if f_yp[e] != 0.0:
            equation[rows[e]] = 1
            variable[columns[e]] = 1
    if equation.sum() != variable.sum():
        return False
    plain = True
    for kind in range(2):
        size = equation.sum() if kind == 1 else n - equation.sum()
        block = np.zeros((size, size))
        row, column = _places(equation, kind), _places(variable, kind)
        for e in range(method.entries):
            if equation[rows[e]] == kind and variable[columns[e]] == kind:
                block[row[rows[e]], column[columns[e]]] = f_yp[e] if kind == 1 else f_y[e]
        plain = plain and _is_regular(block)
    return plain


@part
def _places(flags, kind):
    """The place of each member of a kind among its like."""
    places, count = np.zeros(flags.size, np.int64), 0
    for i in range(flags.size):
        places[i] = count
        count += 1 if flags[i] == kind else 0
    return places


@part
def _is_regular(a):
    """Whether a matrix has full rank, by elimination with pivots after rows and columns have been scaled."""
    n = a.shape[0]
    for by_columns in range(2):
        for i in range(n):
            line = a[:, i] if by_columns else a[i, :]
            largest = np.max(np.abs(line))
            if not 0.0 < largest < np.inf:
                return False
            for j in range(n):
                line[j] /= largest
    for k in range(n):
        pivot = k + np.argmax(np.abs(a[k:, k]))
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
