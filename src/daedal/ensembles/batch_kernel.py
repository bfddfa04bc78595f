"""Many runs in one compiled loop, without the interpreter.

For each member all memory is set back to what a run starts with (its *image*), parameters and start are written, and
the method's loop runs to the end: exactly what the driver does for a single run, so that the results are the same bits.
Whatever is not plain sailing (a start that is not consistent, a failure, a hand-over to another method) is handed back
by a code, and the driver runs that member.

The loop returns every so many slices of a run and goes on where it was, so that interrupts and limits of time are seen.
"""

import numpy as np

from daedal.formulations.monitor import begin_watch
from daedal.kernels.compilation import announce, kernel, part
from daedal.kernels.endings import Ending
from daedal.kernels.records import FLOAT, INTEGER, float_rows, floats, integers, record_at
from daedal.mechanics.manifold import load_point, project_points
from daedal.mechanics.readiness import is_ready
from daedal.methods.advance import advance
from daedal.methods.run_record import RUN

_FINISHED, _BUFFER_FULL = int(Ending.FINISHED), int(Ending.BUFFER_FULL)
NOT_READY, NOT_PROJECTED, NOT_DONE = 101, 102, 103
"""Why a member is handed back, beside the endings of a run."""

BATCH = np.dtype(
    [
        ("next", INTEGER),  # the member that is run, or comes next
        ("resumed", INTEGER),  # whether it is under way
        ("place", INTEGER),  # how many of its points are stored
        ("expected", INTEGER),  # what `is_ready` must say
        ("t0", FLOAT),
        ("begins_with_start", INTEGER),  # whether the first output time is t0
        ("slices", INTEGER),  # after which the loop returns
    ]
)


@part
def restore(image):
    """All memory as it was: rows (address, address of the copy, number of 8-byte words)."""
    for i in range(image.shape[0]):
        target, source = integers(image[i, 0], image[i, 2]), integers(image[i, 1], image[i, 2])
        for k in range(target.size):
            target[k] = source[k]


@part
def write_numbers(targets, numbers):
    """The parameters, for every function that has them."""
    for i in range(targets.size):
        block = floats(targets[i], numbers.size)
        for k in range(numbers.size):
            block[k] = numbers[k]


@part
def collect(run, batch, states):
    """Copy the points that a slice has stored."""
    rows = float_rows(run.out_y, run.slots, run.n)
    for m in range(run.stored):
        for i in range(states.shape[1]):
            states[batch.place + m, i] = rows[m, i]
    batch.place += run.stored


@kernel
def run_mechanisms(
    batches, address, image, targets, monitors, systems, projectors, times, starts, numbers, states, reasons
):
    """Run the members from ``batch.next`` on; returns how many are done.

    `starts` has rows (q, v, r), `states` the shape (members, times, n); `reasons` says for each member how it ended.
    """
    batch, c = batches[0], systems[0]
    run = record_at(address, RUN)
    n, slices, statuses = 2 * c.nx, 0, np.zeros(times.size, dtype=np.int64)
    nothing = np.zeros(0)
    while batch.next < reasons.size:
        k = batch.next
        if not batch.resumed:
            restore(image)
            write_numbers(targets, numbers[k])
            z, r = starts[k, :n], starts[k, n:]
            if is_ready(systems.ctypes.data, batch.t0, z, r) != batch.expected:
                reasons[k] = NOT_READY
                batch.next += 1
                continue
            _begin(c, run, z, r)
            if monitors.size > 0:
                begin_watch(monitors, systems, batch.t0, z, r, nothing, floats(c.multipliers, c.n_c).copy())
            else:
                load_point(systems, z, r, nothing, floats(c.multipliers, c.n_c).copy())
            batch.resumed, batch.place = 1, 0
            if batch.begins_with_start:
                states[k, 0, :] = starts[k]
                batch.place = 1
        reason = advance(address)
        collect(run, batch, states[k])
        slices += 1
        if reason == _BUFFER_FULL:
            if slices >= batch.slices:
                return k
            continue
        if reason == _FINISHED and batch.place == times.size and c.n_c > 0:
            project_points(projectors, systems, times, states[k], statuses)
            for i in range(times.size):
                if statuses[i] != 0:
                    reason = NOT_PROJECTED
        reasons[k] = reason
        batch.resumed = 0
        batch.next += 1
        if slices >= batch.slices:
            break
    return batch.next


@part
def _begin(c, run, z, r):
    """y = (q, v, r) and its derivative."""
    nx = c.nx
    y, yp = floats(run.y, run.n), floats(run.yp, run.n)
    acceleration, rate = floats(c.acceleration, nx), floats(c.rate, c.n_r)
    for i in range(2 * nx):
        y[i] = z[i]
    for i in range(nx):
        yp[i] = z[nx + i]
        yp[nx + i] = acceleration[i]
    for i in range(r.size):
        y[2 * nx + i] = r[i]
        yp[2 * nx + i] = rate[i]


announce(run_mechanisms, "the loop over many runs of a mechanism")
