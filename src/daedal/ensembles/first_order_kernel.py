"""Members that are first-order problems, solved by Rosenbrock methods if stiff, otherwise by explicit methods.

See :mod:`daedal.ensembles.batch_kernel`.
"""

import numpy as np

from daedal.analysis.thresholds import MOST_REJECTED
from daedal.ensembles.batch_kernel import BATCH, MEMBER, NOT_READY, SIGN_LOST, TROUBLED, write_numbers
from daedal.kernels.callbacks import CALLBACK, call
from daedal.kernels.compilation import entry, part
from daedal.kernels.endings import Ending
from daedal.kernels.records import INTEGER, Struct, address_of, at, floats, record_at
from daedal.kernels.signatures import f64, i64, void
from daedal.kernels.system import SYSTEM, rate, residual
from daedal.kernels.vectors import copy
from daedal.methods.evaluation import residual_is_roundoff

_FINISHED, _EVENT_STOP, _BUFFER_FULL = int(Ending.FINISHED), int(Ending.EVENT_STOP), int(Ending.BUFFER_FULL)
_LONG = 5  # consecutive points below atol after which the driver examines a change of sign

FIRST_ORDER = Struct(
    "FIRST_ORDER",
    [
        ("system", at(SYSTEM)),
        ("jacobian", CALLBACK),  # dF/dy + cj dF/dy', with the arguments y, y' and cj
        ("atol", f64["system.n"]),
        # the last step at which each variable exceeded its atol, then its sign at this step
        ("signs", i64[2, "system.n"]),
        ("first_look", INTEGER),  # number of steps at the first check for too many failures; 0 for no checks
        ("due", INTEGER),
        ("steps_seen", INTEGER),
        ("failures_seen", INTEGER),
        ("points", INTEGER),  # steps of this member so far
        ("suspicious", INTEGER),
        ("memory", f64[4, "system.n"]),
    ],
)


@entry(void(i64, f64[:], f64[:, :], f64[:, :, :, :]))
def values_at_starts(address, factors, residuals, matrices):
    """F at all starts, and dF/dy + cj dF/dy' for each of the factors cj; NaN where they cannot be computed."""
    batch = record_at(address, BATCH)
    own, n = record_at(batch.own, FIRST_ORDER), batch.n
    system, block = own.system, floats(own.jacobian.block, 2 * n + 1 + n * n)
    for k in range(batch.count):
        y, slope = batch.starts[k], batch.slopes[k]
        write_numbers(batch, k)
        if residual(system, batch.t0, y, slope, residuals[k]) != 0:
            residuals[k] = np.nan
        for which in range(factors.size):
            copy(block, y)
            copy(block[n:], slope)
            block[2 * n] = factors[which]
            if call(own.jacobian, batch.t0) != 0:
                matrices[which, k] = np.nan
                continue
            for j in range(n):
                for i in range(n):
                    matrices[which, k, i, j] = block[2 * n + 1 + j * n + i]


@entry(MEMBER)
def begin_implicit(address, k):
    """Set y and y' of F(t, y, y') = 0; a member that is not consistent to round-off is left to the driver."""
    batch = record_at(address, BATCH)
    own, run, y, slope = record_at(batch.own, FIRST_ORDER), batch.run, batch.starts[k], batch.slopes[k]
    if not residual_is_roundoff(address_of(own.system), batch.t0, y, slope, own.memory):
        return NOT_READY
    copy(run.y, y)
    copy(run.yp, slope)
    begin_watch(own)
    return 0


@entry(MEMBER)
def begin_ordinary(address, k):
    """Set y and y' = f(t, y)."""
    batch = record_at(address, BATCH)
    own, run, y = record_at(batch.own, FIRST_ORDER), batch.run, batch.starts[k]
    if rate(own.system, batch.t0, y, run.yp) != 0:
        return NOT_READY
    copy(run.y, y)
    begin_watch(own)
    return 0


@part
def begin_watch(own):
    """Reset the checks of a member before its first step."""
    own.points, own.suspicious = 0, 0
    own.due, own.steps_seen, own.failures_seen = own.first_look, 0, 0
    own.signs[:] = 0


@entry(MEMBER)
def look_at_slice(address, reason):
    """Repeat the checks of the driver after a slice; return `reason`, or why the member is left to the driver."""
    batch = record_at(address, BATCH)
    own, run = record_at(batch.own, FIRST_ORDER), batch.run
    _watch_signs(run, own)
    if reason == _BUFFER_FULL and is_troubled(run, own):
        return TROUBLED
    done = reason == _FINISHED or reason == _EVENT_STOP
    return SIGN_LOST if done and own.suspicious else reason


@part
def is_troubled(run, own):
    """Whether more attempts failed than steps were accepted, after the same numbers of steps as in the driver."""
    if own.first_look == 0:
        return False
    if run.steps >= own.due:
        failures = run.error_test_failures + run.newton_failures
        taken, failed = run.steps - own.steps_seen, failures - own.failures_seen
        own.steps_seen, own.failures_seen, own.due = run.steps, failures, 2 * run.steps
        if failed > MOST_REJECTED * taken:
            return True
    run.slice = min(run.slots, own.due - run.steps)
    return False


@part
def _watch_signs(run, own):
    """Track the signs at the ends of the steps of a slice."""
    rows, first = run.coefficients, run.step_start
    for m in range(run.steps_stored):
        watch_sign(own, rows[first[m] - run.rows_before])


@part
def watch_sign(own, y):
    """Mark the run as suspicious if a variable has the opposite sign after more than _LONG points below its atol."""
    atol, last_large, last_sign = own.atol, own.signs[0], own.signs[1]
    own.points += 1
    for i in range(y.size):
        if abs(y[i]) > atol[i]:
            sign = 1 if y[i] > 0.0 else -1
            if last_sign[i] * sign < 0 and own.points - last_large[i] > _LONG:
                own.suspicious = 1
            last_large[i], last_sign[i] = own.points, sign
