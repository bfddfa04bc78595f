"""Monitoring of the selection during a run, in compiled code after every accepted step.

For each block of derivatives the matrix B of its equations and the rows S of integrated unknowns give the tangents X
with B X = 0, S X = 1: the dependence of the other derivatives on the integrated ones. In units of the sizes of the
variables, X is of order 1 for a good selection and grows without bound as the selection becomes singular; the run then
stops and continues with another selection.
"""

import numpy as np

from daedal.kernels.callbacks import NATIVE
from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, data_of, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK, HOOK_DONE, HOOK_STOP

BLOCK = Struct(
    "BLOCK",
    [
        ("columns", INTEGER),
        ("equations", INTEGER),
        ("places", i64["columns"]),  # indices of the columns in y
        ("values", f64["equations", "columns"]),  # B, row by row
        ("rows", f64["columns - equations", "columns"]),  # S
        ("matrix", LU),
        ("work", f64["columns"]),
    ],
)

WATCH = Struct(
    "WATCH",
    [
        ("n", INTEGER),
        ("code", ADDRESS),  # code for the matrices B
        ("block", f64["n"]),
        ("blocks", INTEGER),
        ("addresses", i64["blocks"]),
        ("scale", f64["n"]),  # the largest sizes of y so far
        ("limit", FLOAT),
    ],
)

_call = caller(NATIVE)


@entry(HOOK)
def watch_hook(record, t, h, y):
    """Stop if dependent derivatives change too much with the integrated ones."""
    watch = record_at(record, WATCH)
    n = watch.n
    point, scale, given = floats(y, n), watch.scale, watch.block
    for i in range(n):
        given[i] = point[i]
        scale[i] = max(scale[i], abs(point[i]))
    if _call(watch.code, t, data_of(watch.block)) != 0:
        return HOOK_STOP
    addresses = watch.addresses
    for k in range(watch.blocks):
        if not _amplification(record_at(addresses[k], BLOCK), scale) <= watch.limit:
            return HOOK_STOP
    return HOOK_DONE


@part
def _amplification(block, scale):
    """The largest entry of X, in units of `scale`; infinite if undetermined."""
    n, m = block.columns, block.equations
    places, work = block.places, block.work
    values, rows = block.values, block.rows
    by_columns = block.matrix.data
    for j in range(n):
        size = scale[places[j]]
        for i in range(m):
            by_columns[j, i] = values[i, j] * size
        for i in range(n - m):
            by_columns[j, m + i] = rows[i, j] * size
    for i in range(n):  # rows of equal size, for pivoting
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(by_columns[j, i]))
        for j in range(n):
            by_columns[j, i] /= largest if largest > 0.0 else 1.0
    if factor_lu(block.matrix) != 0:
        return np.inf
    found = 0.0
    for k in range(m, n):
        for i in range(n):
            work[i] = 1.0 if i == k else 0.0
        solve_lu(block.matrix, work)
        for j in range(n):
            if not abs(work[j]) < np.inf:
                return np.inf
            found = max(found, abs(work[j]))
    return found
