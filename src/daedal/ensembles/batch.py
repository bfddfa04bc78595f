"""Batches: members in one compiled loop, with the bits that the driver would give them. What all classes share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.ensembles.columns import Chunk
from daedal.ensembles.numbers import NumbersOf
from daedal.ensembles.part import FINISHED, TIMED_OUT, Part
from daedal.kernels.endings import Ending

SLICES = 50  # of runs, between two looks at the clock
_FINISHED = int(Ending.FINISHED)
_GIVEN_UP = -1000  # a reason that no run has


class Unsuited(Exception):
    """A request that has no batch kernel, with the reason."""


class Batch(ABC):
    """A compiled loop with its memory, for one thread.

    A batch of a class of problems makes everything ready for one member, with the objects of the driver, and takes an
    *image* of all memory that a run starts with; its loop sets that back for each member.
    """

    request: Any
    n: int  # length of a state
    record: Any  # of the loop: where it is
    times: np.ndarray
    numbers: NumbersOf
    bridge: Any

    @abstractmethod
    def starts(self, chunk: Chunk) -> tuple[np.ndarray, ...] | None:
        """Arrays with a row for each member; None if starts are not given as vectors."""

    @abstractmethod
    def advance(
        self, starts: tuple[np.ndarray, ...], numbers: np.ndarray, states: np.ndarray, reasons: np.ndarray
    ) -> None:
        """Run the compiled loop from where it is, until all members are done or a number of slices is over."""

    def run(self, part: Part, chunk: Chunk, stopped: Callable[[], bool]) -> list[int]:
        """Run the members of a chunk; the rows of those that the driver must run."""
        starts = self.starts(chunk)
        numbers = None if starts is None else self.numbers.rows(chunk)
        if starts is None or numbers is None:
            return list(range(chunk.count))
        count, record = chunk.count, self.record
        states = np.empty((count, self.times.size, self.n))
        reasons = self.reasons(starts, numbers)
        record["next"], record["resumed"] = 0, 0
        limit, member, began = self.request.member_timeout, -1, time.monotonic()
        while int(record["next"]) < count and not stopped():
            self.advance(starts, numbers, states, reasons)
            self.bridge.exception = None
            now = int(record["next"])
            if now != member or not record["resumed"]:
                member, began = now, time.monotonic()
            elif limit is not None and time.monotonic() - began > limit:
                part.fail(now, f"the run took longer than member_timeout = {limit:g} s", TIMED_OUT)
                reasons[now] = _GIVEN_UP
                record["next"], record["resumed"] = now + 1, 0
        done = int(record["next"])
        return self._keep(part, reasons[:done], states[:done])

    def reasons(self, starts: tuple[np.ndarray, ...], numbers: np.ndarray) -> np.ndarray:
        """How each member ended; members that are not zero at first are left to the driver."""
        return np.zeros(len(numbers), dtype=np.int64)

    def _keep(self, part: Part, reasons: np.ndarray, states: np.ndarray) -> list[int]:
        """Store the members that came through; the rows of the others."""
        request, good = self.request, reasons == _FINISHED
        rows = np.flatnonzero(good)
        if rows.size:
            part.layout = request.layout
            part.status[rows], part.t_final[rows] = FINISHED, request.span[1]
            self._array(part, "final", (self.n,))[rows] = states[rows, -1]
            if request.keeps_states and request.n_times:
                values = states[rows, : request.n_times].transpose(0, 2, 1)
                self._array(part, "y", (self.n, request.n_times))[rows] = values
            for name in request.outputs or ():
                column = states[rows, :, request.layout.names.index(name)]
                shape = (request.n_times,) if request.n_times else ()
                values = column[:, : request.n_times] if request.n_times else column[:, -1]
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
    if request.is_factory or request.needs_solutions or request.keeps_events or request.layout is None:
        raise Unsuited("solutions are needed")
    if settings.events is not None or settings.fixed_step is not None or settings.correct_initial:
        raise Unsuited("events, constant steps or starts that are corrected")
    solver = runner.solver if params is None else runner.solver.with_params(params)
    plan = solver.plan.direct() if isinstance(solver.plan, TracedPlan) else None
    if plan is None:
        raise Unsuited("functions are not machine code, or have switches")
    return plan


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


def parameters_of(bridge: Any, params: Any) -> tuple[np.ndarray, Any]:
    """Where the functions of a bridge read their parameters, and the function that turns these into numbers."""
    entries = bridge._parameters
    readers = [read for _, _, read in entries]
    values = [read(params) for read in readers]
    if any(not np.array_equal(values[0], other) for other in values):
        raise Unsuited("functions take different numbers of the parameters")
    addresses = np.array([target.ctypes.data for target, *_ in entries], dtype=np.int64)
    return addresses, readers[0] if readers else None
