"""Batches: members in one compiled loop, with the bits that the driver would give them. What all classes share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.ensembles.columns import Chunk
from daedal.ensembles.lanes import Lanes
from daedal.ensembles.numbers import NumbersOf
from daedal.ensembles.part import EVENT, FINISHED, TIMED_OUT, Part
from daedal.events.event import SwitchingFunctions, named_events, positional_arguments
from daedal.kernels.endings import Ending
from daedal.symbolic import Untraceable
from daedal.tracing.switching_functions import switching_code

_SLICES = 50  # of runs, between two looks at the clock
_EVENTS = 4096  # rows of the table of events, more than one slice of a run can have
_FINISHED, _EVENT_STOP = int(Ending.FINISHED), int(Ending.EVENT_STOP)
_GOOD = (_FINISHED, _EVENT_STOP)
_GIVEN_UP = -1000  # a reason that no run has


class Unsuited(Exception):
    """A request that has no batch kernel, with the reason."""


class Batch(ABC):
    """A compiled loop with its memory, for one thread.

    A batch of a class of problems makes everything ready for one member, with the objects of the driver, and takes an
    *image* of all memory that a run starts with; the loop sets that back for each member.
    """

    request: Any
    lanes: Lanes | None = None  # for eight members at a time

    @abstractmethod
    def starts(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Rows of starts, and of slopes where they are needed; None if starts are not given as vectors."""

    def reasons(self, count: int, slopes: np.ndarray | None) -> np.ndarray:
        """Members that are not zero are left to the driver; starts and parameters are in place, slopes may change."""
        return np.zeros(count, dtype=np.int64)

    def _made_of(self, ready: Any, task: Any, image: Image, own: Any, pointers: dict[str, Any], bridges: list) -> None:
        """Put the record of the loop together; `own` and `pointers` are what the class of problems adds."""
        from daedal.ensembles.batch_kernel import BATCH
        from daedal.kernels.records import Record

        request = self.request
        image.add(*ready.image(task))
        if ready.switching is not None:
            if ready.switching.record["watched"]:
                raise Unsuited("layers around switching functions are monitored")
            bridges = [*bridges, ready.switching.bridge]
        for bridge in bridges:
            bridge.refuses = True
        self._bridges, self._switching = bridges, task.switching
        self._times, self.n = np.ascontiguousarray(request.times), int(task.y0.size)
        targets, read = parameters_of(bridges)
        self._numbers = NumbersOf(request.problem.params, read)
        functions = 0 if task.switching is None else len(task.switching.names)
        self._event_member, self._event_fired = np.zeros(_EVENTS, np.int64), np.zeros((_EVENTS, functions), np.int64)
        self._event_t, rows = np.zeros(_EVENTS), image.rows
        self._alive = image, ready, task, own, pointers
        self.record = Record(
            BATCH,
            slices=_SLICES,
            t0=request.span[0],
            begins_with_start=bool(self._times[0] == request.span[0]),
            n=self.n,
            n_times=self._times.size,
            times=self._times,
            run=ready.record,
            own=own.address,
            **{name: pointer.address for name, pointer in pointers.items()},
            image=rows,
            n_image=len(rows),
            targets=targets,
            n_targets=targets.size,
            event_member=self._event_member,
            event_t=self._event_t,
            event_fired=self._event_fired,
            n_functions=functions,
            event_slots=_EVENTS,
        )

    def run(self, part: Part, chunk: Chunk, stopped: Callable[[], bool]) -> list[int]:
        """Run the members of a chunk; the rows of those that the driver must run."""
        from daedal.ensembles.batch_kernel import run_members

        given, numbers = self.starts(chunk), self._numbers.rows(chunk)
        if given is None or numbers is None:
            return list(range(chunk.count))
        count, record, limit = chunk.count, self.record, self.request.member_timeout
        starts, slopes = given
        states = np.full((count, self._times.size, self.n), np.nan)
        finals, ends = np.empty((count, self.n)), np.empty(count)
        places = {"starts": starts, "slopes": slopes, "numbers": numbers, "states": states}
        for name, array in (places | {"finals": finals, "ends": ends}).items():
            record[name] = 0 if array is None else array.ctypes.data
        record["count"], (record["n_sets"], record["n_numbers"]) = count, numbers.shape
        reasons = self.reasons(count, slopes)
        record["reasons"], record["next"], record["resumed"] = reasons.ctypes.data, 0, 0
        if self.lanes is not None and limit is None:
            self.lanes.run(stopped)
        happened: list[tuple[int, float, np.ndarray]] = []
        member, began = -1, time.monotonic()
        while int(record["next"]) < count and not stopped():
            run_members(record.address)
            for bridge in self._bridges:
                bridge.exception = None
            self._drain_events(happened)
            now = int(record["next"])
            if now != member or not record["resumed"]:
                member, began = now, time.monotonic()
            elif limit is not None and time.monotonic() - began > limit:
                part.fail(now, f"the run took longer than member_timeout = {limit:g} s", TIMED_OUT)
                reasons[now] = _GIVEN_UP
                record["next"], record["resumed"] = now + 1, 0
        if stopped():
            reasons[reasons == 0] = _GIVEN_UP
        done = int(record["next"]) if self.lanes is None else count
        self._keep_events(part, reasons, happened)
        return self._keep(part, reasons[:done], states[:done], finals[:done], ends[:done])

    def _drain_events(self, happened: list[tuple[int, float, np.ndarray]]) -> None:
        """Take the events from the table of the loop."""
        stored = int(self.record["events_stored"])
        if stored and self.request.keeps_events:
            rows = zip(self._event_member[:stored].tolist(), self._event_t[:stored].tolist())
            happened += [(k, t, fired) for (k, t), fired in zip(rows, self._event_fired[:stored].copy())]
        self.record["events_stored"] = 0

    def _keep_events(self, part: Part, reasons: np.ndarray, happened: list[tuple[int, float, np.ndarray]]) -> None:
        """The events of members that came through, as rows."""
        for k, t, fired in happened:
            if reasons[k] in _GOOD:
                part.events += [
                    (part.first + k, t, self._switching.names[i], int(np.sign(fired[i])), abs(int(fired[i])) > 1)
                    for i in np.flatnonzero(fired)
                ]

    def _keep(
        self, part: Part, reasons: np.ndarray, states: np.ndarray, finals: np.ndarray, ends: np.ndarray
    ) -> list[int]:
        """Store the members that came through; the rows of the others."""
        request, good = self.request, (reasons == _FINISHED) | (reasons == _EVENT_STOP)
        rows = np.flatnonzero(good)
        if rows.size:
            part.layout = request.layout
            part.status[rows] = np.where(reasons[rows] == _EVENT_STOP, EVENT, FINISHED)
            part.t_final[rows] = ends[rows]
            self._array(part, "final", (self.n,))[rows] = finals[rows]
            if request.keeps_states and request.n_times:
                values = states[rows, : request.n_times].transpose(0, 2, 1)
                self._array(part, "y", (self.n, request.n_times))[rows] = values
            for name in request.outputs or ():
                column = request.layout.names.index(name)
                shape = (request.n_times,) if request.n_times else ()
                values = states[rows, : request.n_times, column] if request.n_times else finals[rows, column]
                self._array(part, f"output:{name}", shape)[rows] = values
        return [int(row) for row in np.flatnonzero(~good & (reasons != _GIVEN_UP))]

    def _array(self, part: Part, name: str, shape: tuple[int, ...]) -> np.ndarray:
        if name not in part.arrays:
            part.arrays[name] = np.full((part.count, *shape), np.nan)
        return part.arrays[name]


def direct_plan(runner: Any, params: Any) -> Any:
    """The plan that every run of a request takes, set to these parameters."""
    from daedal.drive.traced import TracedPlan

    request, settings = runner.request, runner.request.settings
    if request.is_factory or request.needs_solutions or request.layout is None:
        raise Unsuited("solutions are needed")
    if settings.fixed_step is not None or settings.correct_initial:
        raise Unsuited("constant steps or starts that are corrected")
    solver = runner.solver if params is None else runner.solver.with_params(params)
    plan = solver.plan.direct() if isinstance(solver.plan, TracedPlan) else None
    if plan is None:
        raise Unsuited("functions are not machine code, or have switches")
    return plan


def machine_events(switching: SwitchingFunctions | None, events: Any, problem: Any) -> SwitchingFunctions | None:
    """Switching functions that are called without the interpreter: compiled by the user, or traced."""
    if switching is None or switching.native is not None:
        return switching
    if switching.evaluate is not switching.plain:
        raise Unsuited("events are functions of other variables than those that are integrated")
    functions = [(event.function, positional_arguments(event.function)) for event in named_events(events)]
    try:
        return replace(switching, compiled=switching_code(problem, functions, switching.evaluate))
    except Untraceable as reason:
        raise Unsuited("events are called in Python") from reason


class Image:
    """Memory and what stood in it: rows (address, address of the copy, number of words) for the loop."""

    def __init__(self) -> None:
        self._alive: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, *arrays: np.ndarray) -> None:
        """Take arrays of 8-byte numbers as they are now."""
        self._alive += [(array, array.copy()) for array in arrays]

    @property
    def rows(self) -> np.ndarray:
        """The table."""
        return np.array([(a.ctypes.data, b.ctypes.data, a.size) for a, b in self._alive], dtype=np.int64)


def parameters_of(bridges: Sequence[Any]) -> tuple[np.ndarray, Any]:
    """Where the functions of bridges read their parameters, and the function that turns these into numbers."""
    entries = [entry for bridge in bridges for entry in bridge.parameters]
    values = [read(cell[0]) for _, cell, read in entries]
    if any(not np.array_equal(values[0], other) for other in values):
        raise Unsuited("functions take different numbers of the parameters")
    addresses = np.array([target.ctypes.data for target, *_ in entries], dtype=np.int64)
    return addresses, entries[0][2] if entries else None
