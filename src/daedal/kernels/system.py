"""The system F(t, y, y') = 0 as kernels see it."""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import CALLBACK, COMPILED_CODE_RAISED, UNEVALUABLE, call, repeat_in_python
from daedal.kernels.compilation import part
from daedal.kernels.records import ADDRESS, INTEGER, floats

COUNTERS = (
    "residuals",
    "jacobian_residuals",
    "jacobians",
    "factorisations",
    "newton_iterations",
    "linear_iterations",
    "preconditioner_solves",
    "linear_failures",
    "event_evaluations",
)

SYSTEM = np.dtype(
    [
        ("n", INTEGER),
        ("own_address", ADDRESS),
        ("residual", CALLBACK),
        ("norm", CALLBACK),
        ("norm_failed", INTEGER),
        ("scaled_rows", INTEGER),
        ("row_power", ADDRESS),  # rows are multiplied by cj**row_power
        ("row_scale", ADDRESS),
        *[(name, INTEGER) for name in COUNTERS],
    ]
)


@part
def residual(system, t, y, yp, result):
    """result = F(t, y, y'), rows scaled; a NaN or an infinity counts as 'cannot be evaluated here'."""
    n = system.n
    block = floats(system.residual.block, 3 * n)
    for i in range(n):
        block[i] = y[i]
        block[n + i] = yp[i]
    system.residuals += 1
    status = call(system.residual, t)
    if status == COMPILED_CODE_RAISED:
        for i in range(n):
            block[i] = y[i]
            block[n + i] = yp[i]
        status = repeat_in_python(system.residual, t)
    if status != 0:
        return status
    check = 0.0
    for i in range(n):
        value = block[2 * n + i]
        result[i] = value
        check += value * 0.0
    if check != 0.0:  # NaN: some entry is not finite
        return UNEVALUABLE
    if system.scaled_rows:
        scale = floats(system.row_scale, n)
        for i in range(n):
            result[i] *= scale[i]
    return 0


@part
def rescale_rows(system, cj, r):
    """Scale row i, and r, by cj**row_power[i]; BCP section 5.4 asks for 1/h on the constraints of index-2 systems."""
    if not system.scaled_rows:
        return
    power, scale = floats(system.row_power, system.n), floats(system.row_scale, system.n)
    for i in range(system.n):
        new = abs(cj) ** power[i]
        r[i] *= new / scale[i]
        scale[i] = new
