"""Batches: members of traced mechanisms in one compiled loop, with the bits that the driver would give them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.drive.mechanism import MechanismCourse, MechanismPlan
from daedal.drive.request import checked_request
from daedal.drive.traced import TracedPlan
from daedal.ensembles.columns import Chunk, Vectors
from daedal.ensembles.numbers import NumbersOf
from daedal.ensembles.part import FINISHED, TIMED_OUT, Part
from daedal.kernels.endings import Ending
from daedal.mechanics.probes import asks_for_time
from daedal.mechanics.setting import missing_derivatives
from daedal.problems import MechanicalSystem
from daedal.progress import Progress

_SLICES = 50  # of runs, between two looks at the clock
_FINISHED = int(Ending.FINISHED)


class Unsuited(Exception):
    """A request that has no batch kernel, with the reason."""


class MechanismBatch:
    """The compiled loop with its memory, for one thread.

    Parameters
    ----------
    runner : Runner
    start, params : object
        Of a member that came through, which shows what all of them need.
    """

    def __init__(self, runner: Any, start: Any, params: Any):
        request = runner.request
        settings = request.settings
        if request.is_factory or not isinstance(request.problem, MechanicalSystem) or request.needs_solutions:
            raise Unsuited("not a mechanism, or outputs need the solution")
        if settings.events is not None or settings.fixed_step is not None or settings.correct_initial:
            raise Unsuited("events, constant steps or starts that are corrected")
        solver = runner.solver if params is None else runner.solver._with_params(params)
        plan = solver._plan.direct() if isinstance(solver._plan, TracedPlan) else None
        if not isinstance(plan, MechanismPlan):
            raise Unsuited("functions are not machine code, or have switches")
        if runner.request.keeps_events:
            raise Unsuited("events are kept")
        self.request, self._plan = request, plan
        self._settings = replace(settings, dense_output=False)
        self._course = self._begun(start)
        self._made_ready()
        self.numbers = NumbersOf(request.problem.params, self._read)

    def _begun(self, start: Any) -> MechanismCourse:
        request, plan, system = self.request, self._plan, self._plan.problem
        if system.contact is not None or system.n_w or system.force_uses_multipliers or start[1] is None:
            raise Unsuited("multipliers or algebraic variables are searched for")
        if missing_derivatives(system) or asks_for_time(system):
            raise Unsuited("derivatives of constraints are differences")
        one = checked_request(
            plan.problem, self._settings, request.span, start, t_eval=request.times, t_stop=request.t_stop
        )
        course = plan.begin(one)
        if course.assembly.is_sparse or course.notes:
            raise Unsuited("matrices are sparse, or the start was not taken as it is")
        return course

    def _made_ready(self) -> None:
        """Everything that a run of the representative member has before its first step, as an image."""
        from daedal.ensembles.batch_kernel import BATCH
        from daedal.kernels.records import Record
        from daedal.mechanics.readiness import is_ready

        course, request = self._course, self.request
        assembly, start = course.assembly, course.start
        self._times = np.ascontiguousarray(request.times)
        expected = is_ready(assembly.address, start.t, start.z, start.r)
        weights = {1: "I", 2: "M"}
        if weights.get(int(expected)) != assembly.output_weight:
            raise Unsuited("the start is not plainly consistent")
        assembly.adopt(assembly.setting)
        parts = [_block(assembly.record.array("state")).copy(), assembly.record.data.view(np.int64).copy()]
        live = [_block(assembly.record.array("state")), assembly.record.data.view(np.int64)]
        reduction, ready, task = course.made_ready([], Progress(False, request.span))
        state = np.concatenate([start.z, start.r])
        slope = np.concatenate([start.slope, start.rate])
        if not (reduction.n == reduction.n_state == state.size and reduction.recover is None):
            raise Unsuited("the unknowns of the formulation are others")
        if not (np.array_equal(reduction.y0, state) and np.array_equal(reduction.yp0, slope)):
            raise Unsuited("the unknowns of the formulation are others")
        if task.guess is not None or ready.workspace is not None:
            raise Unsuited("the method is implicit")
        memory = ready.image(task)
        self._monitors = np.zeros(0, dtype=_monitor_dtype())
        if reduction.monitor is not None:
            if reduction.inspection is not None:
                raise Unsuited("constraints are compared with their derivatives")
            self._monitors = reduction.monitor.data
            reduction.monitor.array("norms")[:] = 0.0
            memory += [reduction.monitor.data.view(np.int64), _block(reduction.monitor.array("norms"))]
        live += memory
        parts += [array.copy() for array in memory]
        self._alive = reduction, ready, task, live, parts
        self._image = np.array([(a.ctypes.data, b.ctypes.data, a.size) for a, b in zip(live, parts)], dtype=np.int64)
        self._projector = assembly.projector(assembly.output_weight)
        self._address, self._systems = ready.record.address, assembly.record.data
        entries = assembly.bridge._parameters
        self._targets = np.array([target.ctypes.data for target, _, _ in entries], dtype=np.int64)
        self._read = _common_reader(entries, self._plan.problem.params)
        self._record = Record(
            BATCH,
            expected=int(expected),
            t0=request.span[0],
            begins_with_start=bool(self._times[0] == request.span[0]),
            slices=_SLICES,
        )
        self.n = state.size

    # --- a chunk ----------------------------------------------------------------------------------------------------

    def run(self, part: Part, chunk: Chunk, stopped: Callable[[], bool]) -> list[int]:
        """Run the members of a chunk; the rows of those that the driver must run."""
        from daedal.ensembles.batch_kernel import run_mechanisms

        starts = self._starts(chunk)
        numbers = None if starts is None else self.numbers.rows(chunk)
        if starts is None or numbers is None:
            return list(range(chunk.count))
        count, record = chunk.count, self._record
        states = np.empty((count, self._times.size, self.n))
        reasons = np.zeros(count, dtype=np.int64)
        record["next"], record["resumed"] = 0, 0
        limit, member, began = self.request.member_timeout, -1, time.monotonic()
        bridge = self._course.assembly.bridge
        while int(record["next"]) < count and not stopped():
            run_mechanisms(
                record.data,
                self._address,
                self._image,
                self._targets,
                self._monitors,
                self._systems,
                self._projector.data,
                self._times,
                starts,
                numbers,
                states,
                reasons,
            )
            bridge.exception = None
            now = int(record["next"])
            if now != member or not record["resumed"]:
                member, began = now, time.monotonic()
            elif limit is not None and time.monotonic() - began > limit:
                part.fail(now, f"the run took longer than member_timeout = {limit:g} s", TIMED_OUT)
                reasons[now] = _TIMED_OUT
                record["next"], record["resumed"] = now + 1, 0
        done = int(record["next"])
        return self._keep(part, reasons[:done], states[:done])

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
                assert request.layout is not None
                column = states[rows, :, request.layout.names.index(name)]
                shape = (request.n_times,) if request.n_times else ()
                values = column[:, : request.n_times] if request.n_times else column[:, -1]
                self._array(part, f"output:{name}", shape)[rows] = values
        return [int(row) for row in np.flatnonzero(~good & (reasons != _TIMED_OUT))]

    def _array(self, part: Part, name: str, shape: tuple[int, ...]) -> np.ndarray:
        if name not in part.arrays:
            part.arrays[name] = np.full((part.count, *shape), np.nan)
        return part.arrays[name]

    def _starts(self, chunk: Chunk) -> np.ndarray | None:
        """Rows (q, v, r) of the members; None if they are not given as such."""
        if not isinstance(chunk.starts, Vectors):
            return None
        arrays = chunk.starts.arrays(chunk.count)[:3]
        if any(array is None for array in arrays):
            return None
        rows = np.concatenate([a for a in arrays if a is not None], axis=1)
        missing = self.n - rows.shape[1]
        if missing > 0:
            rows = np.concatenate([rows, np.zeros((chunk.count, missing))], axis=1)
        if not np.isfinite(rows).all():
            return None
        return np.ascontiguousarray(rows)


_TIMED_OUT = -1000  # a reason that no run has


def _block(array: np.ndarray) -> np.ndarray:
    """The block of memory from which an array was cut, as whole numbers."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.view(np.int64)


def _monitor_dtype() -> np.dtype:
    from daedal.formulations.monitor import MONITOR

    return MONITOR


def _common_reader(entries: list, params: Any) -> Any:
    """The function that turns parameters into numbers, the same for all functions; None if there are none."""
    readers = [read for _, _, read in entries]
    if not readers:
        return None
    values = [read(params) for read in readers]
    if any(not np.array_equal(values[0], other) for other in values):
        raise Unsuited("functions take different numbers of the parameters")
    return readers[0]


