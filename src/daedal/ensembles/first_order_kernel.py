"""Many runs of a small stiff problem in one compiled loop; see :mod:`daedal.ensembles.batch_kernel`."""

import numpy as np

from daedal.analysis.thresholds import MOST_REJECTED
from daedal.ensembles.batch_kernel import NOT_READY, collect, restore, write_numbers
from daedal.kernels.callbacks import call
from daedal.kernels.compilation import announce, kernel, part
from daedal.kernels.endings import Ending
from daedal.kernels.records import FLOAT, INTEGER, float_rows, floats, integers, record_at
from daedal.methods.advance import advance
from daedal.methods.evaluation import residual_is_roundoff
from daedal.methods.run_record import RUN

_FINISHED, _BUFFER_FULL = int(Ending.FINISHED), int(Ending.BUFFER_FULL)
NOT_PLAIN, TROUBLED, SIGN_LOST = 104, 105, 106
"""Why a member is handed back, beside the endings of a run."""
_LONG = 5  # points below atol, one after the other, behind which a change of sign is looked into by the driver

FIRST_ORDER_BATCH = np.dtype(
    [
        ("next", INTEGER),  # the member that is run, or comes next
        ("resumed", INTEGER),  # whether it is under way
        ("place", INTEGER),  # how many of its points are stored
        ("t0", FLOAT),
        ("begins_with_start", INTEGER),
        ("slices", INTEGER),  # after which the loop returns
        ("first_look", INTEGER),  # steps after which failures are counted; 0 for never
        ("due", INTEGER),
        ("steps_seen", INTEGER),
        ("failures_seen", INTEGER),
        ("points", INTEGER),  # steps of this member so far
        ("suspicious", INTEGER),
    ]
)


@kernel
def partials_at_starts(callbacks, targets, t0, starts, slopes, numbers, factors, matrices):
    """dF/dy + cj dF/dy' at all starts, for each of the factors cj; False where it cannot be evaluated."""
    callback, n = callbacks[0], starts.shape[1]
    block = floats(callback.block, 2 * n + 1 + n * n)
    for k in range(starts.shape[0]):
        write_numbers(targets, numbers[k])
        for which in range(factors.size):
            for i in range(n):
                block[i] = starts[k, i]
                block[n + i] = slopes[k, i]
            block[2 * n] = factors[which]
            if call(callback, t0) != 0:
                return False
            for j in range(n):
                for i in range(n):
                    matrices[which, k, i, j] = block[2 * n + 1 + j * n + i]
    return True


@kernel
def run_first_order(batches, address, system, image, targets, atol, starts, slopes, numbers, states, reasons, signs):
    """Run the members from ``batch.next`` on; those whose reason is not 0 are left out.

    `signs` has for each variable the last step at which it exceeded its atol, and its sign there.
    """
    batch, run = batches[0], record_at(address, RUN)
    slices, last_large, last_sign = 0, signs[0], signs[1]
    while batch.next < reasons.size:
        k = batch.next
        if not batch.resumed:
            if reasons[k] != 0 or not _begin(batch, run, system, image, targets, starts[k], slopes[k], numbers[k]):
                reasons[k] = reasons[k] if reasons[k] != 0 else NOT_READY
                batch.next += 1
                continue
            if batch.begins_with_start:
                states[k, 0, :] = starts[k]
                batch.place = 1
            signs[:] = 0
        reason = advance(address)
        collect(run, batch, states[k])
        _watch_signs(run, batch, atol, last_large, last_sign)
        slices += 1
        if reason == _BUFFER_FULL:
            if _is_troubled(run, batch):
                reason = TROUBLED
            elif slices >= batch.slices:
                return k
            else:
                continue
        if reason == _FINISHED and batch.suspicious:
            reason = SIGN_LOST
        reasons[k] = reason
        batch.resumed = 0
        batch.next += 1
        if slices >= batch.slices:
            break
    return batch.next


@part
def _begin(batch, run, system, image, targets, y0, yp0, numbers):
    """Memory, parameters and start of a member; False if the start is not consistent to round-off."""
    restore(image)
    write_numbers(targets, numbers)
    if not residual_is_roundoff(system, batch.t0, y0, yp0):
        return False
    y, yp = floats(run.y, run.n), floats(run.yp, run.n)
    for i in range(run.n):
        y[i] = y0[i]
        yp[i] = yp0[i]
    batch.resumed, batch.place, batch.points, batch.suspicious = 1, 0, 0, 0
    batch.due, batch.steps_seen, batch.failures_seen = batch.first_look, 0, 0
    return True


@part
def _is_troubled(run, batch):
    """What the watch of the automatic choice asks, at the steps at which it asks: more attempts failed than steps."""
    if batch.first_look == 0:
        return False
    if run.steps >= batch.due:
        failures = run.error_test_failures + run.newton_failures
        taken, failed = run.steps - batch.steps_seen, failures - batch.failures_seen
        batch.steps_seen, batch.failures_seen, batch.due = run.steps, failures, 2 * run.steps
        if failed > MOST_REJECTED * taken:
            return True
    run.slice = min(run.slots, batch.due - run.steps)
    return False


@part
def _watch_signs(run, batch, atol, last_large, last_sign):
    """Whether a variable has come out of a stretch below its atol with the other sign, at the ends of steps."""
    rows, first = float_rows(run.coefficients, run.rows, run.n), integers(run.step_start, run.slots)
    for m in range(run.steps_stored):
        batch.points += 1
        row = first[m] - run.rows_before
        for i in range(run.n):
            value = rows[row, i]
            if abs(value) > atol[i]:
                sign = 1 if value > 0.0 else -1
                if last_sign[i] * sign < 0 and batch.points - last_large[i] > _LONG:
                    batch.suspicious = 1
                last_large[i], last_sign[i] = batch.points, sign


announce(run_first_order, "the loop over many runs of a stiff problem")
