"""Many runs in one compiled loop, without the interpreter.

For each member all memory is set back to what a run starts with (its *image*), parameters and start are written, and
the method's loop runs to the end: exactly what the driver does for a single run, so that the results are the same bits.
Whatever is not plain sailing (a start that is not consistent, a failure, a hand-over to another method) is handed back
by a code, and the driver runs that member.

What differs between classes of problems is reached through pointers: `begin(batch, k)` makes member k ready to run,
`look(batch, reason)` sees every slice of a run, `finish(batch, k)` the results. All return 0 or a reason to hand the
member back; `look` returns the reason it was given where all is well.

The loop returns every so many slices of a run and goes on where it was, so that interrupts and limits of time are seen,
and before the table of events is full.
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
"""Why a member is handed back, beside the endings of a run."""

BATCH = Struct(
    "BATCH",
    [
        ("next", INTEGER),  # the member that is run, or comes next
        ("resumed", INTEGER),  # whether it is under way
        ("place", INTEGER),  # how many of its points are stored
        ("count", INTEGER),  # of members
        ("slices", INTEGER),  # after which the loop returns
        ("t0", FLOAT),
        ("begins_with_start", INTEGER),  # whether the first output time is t0
        ("n", INTEGER),  # length of a state
        ("n_times", INTEGER),
        ("times", f64["n_times"]),
        ("run", at(RUN)),
        ("own", ADDRESS),  # the record of the class of problems
        ("begin", ADDRESS),
        ("look", ADDRESS),  # or 0
        ("finish", ADDRESS),  # or 0
        ("image", i64["n_image", 3]),  # rows (address, address of the copy, number of 8-byte words)
        ("n_image", INTEGER),
        ("targets", i64["n_targets"]),  # where functions read their parameters
        ("n_targets", INTEGER),
        ("numbers", f64["n_sets", "n_numbers"]),  # parameters, one row for each member
        ("n_sets", INTEGER),
        ("n_numbers", INTEGER),
        ("starts", f64["count", "n"]),
        ("slopes", optional(f64["count", "n"])),
        ("states", f64["count", "n_times", "n"]),  # at the output times
        ("finals", f64["count", "n"]),
        ("ends", f64["count"]),  # the times of these
        ("reasons", i64["count"]),  # how each member ended; those that are not 0 at first are left out
        ("event_member", i64["event_slots"]),  # a table of events: the member, the time, what fired
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
    """Run the members from ``batch.next`` on, until all are done, or it is time to return."""
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
    """Memory, parameters and start of a member; 0, or why it is handed back."""
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
    """All memory as a run has it at its start, and the parameters of a member."""
    image = batch.image
    for i in range(batch.n_image):
        copy(words(image[i, 0], image[i, 2]), words(image[i, 1], image[i, 2]))
    write_numbers(batch, k)


@part
def write_numbers(batch, k):
    """The parameters, for every function that has them."""
    targets, numbers = batch.targets, batch.numbers[k]
    for i in range(batch.n_targets):
        copy(floats(targets[i], numbers.size), numbers)


@part
def _keep_points(run, batch, k):
    """Copy the points that a slice has stored."""
    rows, states = run.out_y, batch.states[k]
    for m in range(run.stored):
        copy(states[batch.place + m], rows[m, : batch.n])
    batch.place += run.stored


@part
def _keep_events(run, batch, k):
    """Copy its events to the table."""
    times, fired = run.event_t, run.event_fired
    for m in range(run.events_stored):
        row = batch.events_stored + m
        batch.event_member[row] = k
        batch.event_t[row] = times[m]
        copy(batch.event_fired[row], fired[m])
    batch.events_stored += run.events_stored


@part
def finish_member(batch, run, k, reason):
    """What is kept of a member that has come to its end; the reason, or another one if that fails."""
    _keep_end(run, batch, k, reason)
    found = _call(batch.finish, address_of(batch), k) if batch.finish != 0 else 0
    return reason if found == 0 else found


@part
def _keep_end(run, batch, k, reason):
    """The state at the end, or at the event that stopped the run: an output time there has its own."""
    times, final = batch.times, batch.finals[k]
    end = times[batch.n_times - 1]
    if reason == _EVENT_STOP:
        last = run.events_stored - 1
        end = run.event_t[last]
        copy(final, run.event_y[last, : batch.n])
    if batch.place > 0 and times[batch.place - 1] == end:
        copy(final, batch.states[k, batch.place - 1])
    batch.ends[k] = end
