"""Many runs in one compiled loop, without the interpreter.

For each member, all memory is reset to the initial state of a run (its *image*), parameters and start are written, and
the method's loop runs to the end. This is exactly what the driver does for a single run, so the results are
bit-identical. Members that need special handling (an inconsistent start, a failure, a change of the method) are
returned with a code, and the driver runs them.

Parts specific to problem classes are called through pointers: `begin(batch, k)` prepares member k, `look(batch,
reason)` is called after every slice of a run, `finish(batch, k)` processes the results. All return 0 or a reason to
leave the member to the driver; `look` normally returns the reason that was passed to it.

The loop returns after a number of slices and later resumes, so that interrupts and time limits are noticed, and before
the event table is full.
"""

from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.endings import Ending
from daedal.kernels.records import (
    ADDRESS,
    FLOAT,
    INTEGER,
    Struct,
    address_of,
    at,
    floats,
    optional,
    record_at,
    words,
)
from daedal.kernels.signatures import f64, i64, void
from daedal.kernels.vectors import copy
from daedal.methods.advance import advance
from daedal.methods.run_record import RUN

_FINISHED, _EVENT_STOP, _BUFFER_FULL = int(Ending.FINISHED), int(Ending.EVENT_STOP), int(Ending.BUFFER_FULL)
NOT_READY, NOT_PROJECTED, NOT_PLAIN, TROUBLED, SIGN_LOST = 101, 102, 104, 105, 106
"""Reasons to leave a member to the driver, in addition to the endings of a run."""

BATCH = Struct(
    "BATCH",
    [
        ("next", INTEGER),  # the current or next member
        ("resumed", INTEGER),  # whether the current member has started
        ("place", INTEGER),  # number of stored points of the current member
        ("count", INTEGER),  # number of members
        ("slices", INTEGER),  # number of slices after which the loop returns
        ("t0", FLOAT),
        ("begins_with_start", INTEGER),  # whether the first output time is t0
        ("n", INTEGER),  # length of a state
        ("n_times", INTEGER),
        ("times", f64["n_times"]),
        ("run", at(RUN)),
        ("own", ADDRESS),  # the record of the problem class
        ("begin", ADDRESS),
        ("look", ADDRESS),  # 0 if unused
        ("finish", ADDRESS),  # 0 if unused
        ("image", i64["n_image", 3]),  # rows (address, address of the copy, number of 8-byte words)
        ("n_image", INTEGER),
        ("targets", i64["n_targets"]),  # addresses from which functions read their parameters
        ("n_targets", INTEGER),
        ("numbers", f64["n_sets", "n_numbers"]),  # parameters, one row for each member
        ("n_sets", INTEGER),
        ("n_numbers", INTEGER),
        ("starts", f64["count", "n"]),
        ("slopes", optional(f64["count", "n"])),
        ("states", f64["count", "n_times", "n"]),  # states at the output times
        ("finals", f64["count", "n"]),
        ("ends", f64["count"]),  # times of the final states
        ("reasons", i64["count"]),  # how each member ended; members with a nonzero initial value are skipped
        ("event_member", i64["event_slots"]),  # event table: member, time, event
        ("event_t", f64["event_slots"]),
        ("event_fired", i64["event_slots", "n_functions"]),
        ("n_functions", INTEGER),
        ("event_slots", INTEGER),
        ("events_stored", INTEGER),
    ],
)

MEMBER = i64(i64, i64)
"""The C signature of `begin` and `finish`, with the member, and of `look`, with the reason."""
_call = caller(MEMBER)


@entry(void(i64))
def run_members(address):
    """Run the members from ``batch.next`` onwards, until all are done or the loop must return."""
    batch = record_at(address, BATCH)
    run, reasons, slices = batch.run, batch.reasons, 0
    while batch.next < batch.count and slices < batch.slices:
        k = batch.next
        if not batch.resumed:
            reasons[k] = reasons[k] if reasons[k] != 0 else begin_member(batch, k)
            if reasons[k] != 0:
                batch.next += 1
                continue
        if batch.n_functions > 0 and batch.event_slots - batch.events_stored < run.event_slots:
            return
        reason = advance(address_of(run))
        slices += 1
        _keep_points(run, batch, k)
        _keep_events(run, batch, k)
        if batch.look != 0:
            reason = _call(batch.look, address, reason)
        if reason == _BUFFER_FULL:
            continue
        if reason == _FINISHED or reason == _EVENT_STOP:
            reason = finish_member(batch, run, k, reason)
        reasons[k] = reason
        batch.resumed = 0
        batch.next += 1


@part
def begin_member(batch, k):
    """Set memory, parameters and start of a member; returns 0, or why the member is left to the driver."""
    restore(batch, k)
    found = _call(batch.begin, address_of(batch), k)
    if found != 0:
        return found
    batch.resumed, batch.place = 1, 0
    if batch.begins_with_start:
        copy(batch.states[k, 0], batch.starts[k])
        batch.place = 1
    return 0


@part
def restore(batch, k):
    """Restore all memory to the initial state of a run, and write the parameters of a member."""
    image = batch.image
    for i in range(batch.n_image):
        copy(words(image[i, 0], image[i, 2]), words(image[i, 1], image[i, 2]))
    write_numbers(batch, k)


@part
def write_numbers(batch, k):
    """Write the parameters of every function that has parameters."""
    targets, numbers = batch.targets, batch.numbers[k]
    for i in range(batch.n_targets):
        copy(floats(targets[i], numbers.size), numbers)


@part
def _keep_points(run, batch, k):
    """Copy the points stored by a slice."""
    rows, states = run.out_y, batch.states[k]
    for m in range(run.stored):
        copy(states[batch.place + m], rows[m, : batch.n])
    batch.place += run.stored


@part
def _keep_events(run, batch, k):
    """Copy the events of a slice to the table."""
    times, fired = run.event_t, run.event_fired
    for m in range(run.events_stored):
        row = batch.events_stored + m
        batch.event_member[row] = k
        batch.event_t[row] = times[m]
        copy(batch.event_fired[row], fired[m])
    batch.events_stored += run.events_stored


@part
def finish_member(batch, run, k, reason):
    """Store the results of a finished member; returns the reason, or another reason if this fails."""
    _keep_end(run, batch, k, reason)
    found = _call(batch.finish, address_of(batch), k) if batch.finish != 0 else 0
    return reason if found == 0 else found


@part
def _keep_end(run, batch, k, reason):
    """Store the state at the end or at the stopping event, also for an output time at the same point."""
    times, final = batch.times, batch.finals[k]
    end = times[batch.n_times - 1]
    if reason == _EVENT_STOP:
        last = run.events_stored - 1
        end = run.event_t[last]
        copy(final, run.event_y[last, : batch.n])
    if batch.place > 0 and times[batch.place - 1] == end:
        copy(final, batch.states[k, batch.place - 1])
    batch.ends[k] = end
