"""A linear ODE w' = K(t) w + k(t) in compiled code, with a hook that checks the condition of its chart."""

import numpy as np

from daedal.kernels.callbacks import CALLBACK, NATIVE, owner
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, float_rows, floats, record_at
from daedal.kernels.system import HOOK, HOOK_DONE, HOOK_STOP
from daedal.kernels.vectors import add_product
from daedal.mechanics.constrained import CONSTRAINED, JACOBIAN, evaluate, fetch

LINEAR_ODE = Struct(
    "LINEAR_ODE",
    [
        ("n", INTEGER),
        ("system", at(CONSTRAINED)),
        ("limit", FLOAT),
        ("coefficients", CALLBACK),  # K by rows, then k
        ("condition", CALLBACK),
    ],
)


@part
def _rate(e, t, y, target):
    n = e.n
    status = fetch(e.coefficients, t, y, 1, n * n + n)
    matrix, vector = float_rows(e.coefficients.block + 8, n, n), floats(e.coefficients.block + 8 + 8 * n * n, n)
    for i in range(n):
        target[i] = add_product(vector[i], matrix[i], y)
    return status


@entry(NATIVE)
def linear_rate(t, block):
    """w' of (t, w); the block is [w | w']."""
    e = record_at(owner(block), LINEAR_ODE)
    return _rate(e, t, floats(block, e.n), floats(block + 8 * e.n, e.n))


@entry(NATIVE)
def linear_residual(t, block):
    """w' - K w - k; the block is [w | w' | F]."""
    e = record_at(owner(block), LINEAR_ODE)
    n = e.n
    yp, r = floats(block + 8 * n, n), floats(block + 16 * n, n)
    status = _rate(e, t, floats(block, n), r)
    for i in range(n):
        r[i] = yp[i] - r[i]
    return status


@entry(HOOK)
def linear_hook(record, t, h, y):
    """Stop when a new chart is needed; C is stored in the record of the system for further hooks."""
    e = record_at(record, LINEAR_ODE)
    status = evaluate(e.system, t, JACOBIAN)
    if status == 0 and e.limit < np.inf:
        status = fetch(e.condition, t, floats(y, 1), 1, 1)
    if status != 0:
        return status
    return HOOK_STOP if e.limit < np.inf and floats(e.condition.block + 8, 1)[0] > e.limit else HOOK_DONE
