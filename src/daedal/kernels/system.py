"""The equations F(t, y, y') = 0, or y' = f(t, y), in kernels, with the hook and the counters of a run."""

from daedal.kernels.callbacks import CALLBACK, fetch, nothing
from daedal.kernels.compilation import caller, part
from daedal.kernels.records import ADDRESS, INTEGER, Struct
from daedal.kernels.signatures import f64, i64

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

SYSTEM = Struct(
    "SYSTEM",
    [
        ("n", INTEGER),
        ("residual", CALLBACK),
        ("rate", CALLBACK),
        ("norm", CALLBACK),
        ("scaled_rows", INTEGER),
        ("row_power", f64["n"]),  # rows are multiplied by cj**row_power
        ("row_scale", f64["n"]),
        ("hook", ADDRESS),  # called after every accepted step, with its own record
        ("hook_record", ADDRESS),
        # changed during a run
        ("norm_failed", INTEGER),
        ("hook_signal", INTEGER),
        *[(name, INTEGER) for name in COUNTERS],
    ],
)

CHANGING = ("norm_failed", "hook_signal", *COUNTERS)
"""The fields at the end of a SYSTEM record, which change during a run."""

HOOK = i64(i64, f64, f64, i64)
"""signal = hook(record, t, h, y): may change y; the signal is one of the following, or a negative callback status."""
HOOK_DONE, HOOK_CHANGED, HOOK_STOP = 0, 1, 2

call_hook = caller(HOOK)


@part
def after_step(system, t, h, y):
    """Pass an accepted step to the hook; returns 0, HOOK_CHANGED, or the status of a callback.

    A request to stop is stored in ``hook_signal``, and read by the run after processing the step.
    """
    signal = call_hook(system.hook, system.hook_record, t, h, y.ctypes.data)
    if signal >= HOOK_STOP:
        system.hook_signal = signal
        return HOOK_DONE
    return signal


@part
def residual(system, t, y, yp, result):
    """result = F(t, y, y'), rows scaled; NaN and infinity count as 'cannot be evaluated here'."""
    system.residuals += 1
    status = fetch(system.residual, t, y, yp, nothing(), result)
    if status == 0 and system.scaled_rows:
        scale = system.row_scale
        for i in range(system.n):
            result[i] *= scale[i]
    return status


@part
def rate(system, t, y, result):
    """result = f(t, y); NaN and infinity count as 'cannot be evaluated here'."""
    system.residuals += 1
    return fetch(system.rate, t, y, nothing(), nothing(), result)


@part
def rescale_rows(system, cj, r):
    """Scale row i, and r, by cj**row_power[i]; BCP section 5.4 recommends 1/h on the constraints of index-2 systems."""
    if not system.scaled_rows:
        return
    power, scale = system.row_power, system.row_scale
    for i in range(system.n):
        new = abs(cj) ** power[i]
        r[i] *= new / scale[i]
        scale[i] = new
