"""The system F(t, y, y') = 0 as kernels see it."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

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
        ("hook", ADDRESS),  # called after every accepted step, with the record of its owner
        ("hook_record", ADDRESS),
        ("hook_signal", INTEGER),
        *[(name, INTEGER) for name in COUNTERS],
    ]
)

HOOK = types.int64(types.int64, types.float64, types.float64, types.int64)
"""signal = hook(record, t, h, y): may change y; negative for a callback status."""
HOOK_DONE, HOOK_CHANGED, HOOK_STOP = 0, 1, 2


@intrinsic
def call_hook(typingctx, address, record, t, h, y):
    """Call the hook at an address."""
    function_type = ir.FunctionType(ir.IntType(64), [ir.IntType(64), ir.DoubleType(), ir.DoubleType(), ir.IntType(64)])

    def codegen(context, builder, signature, args):
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), args[1:])

    return types.int64(types.int64, *HOOK.args), codegen


@part
def after_step(system, t, h, y):
    """Let the owner of the problem look at an accepted step; 0, HOOK_CHANGED, or the status of a callback.

    A wish to stop is kept in ``hook_signal``, for the run to see once the step is processed.
    """
    signal = call_hook(system.hook, system.hook_record, t, h, y.ctypes.data)
    if signal >= HOOK_STOP:
        system.hook_signal = signal
        return HOOK_DONE
    return signal


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
