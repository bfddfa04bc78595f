"""Batches: members in one compiled loop, bit-identical to the driver. Common base for all problem classes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.analysis.index import are_clearly_index_1
from daedal.common.progress import Progress
from daedal.driver.event_view import with_bounds
from daedal.driver.first_order import FirstOrderPlan, FirstOrderRunState
from daedal.driver.mechanism import MechanismPlan, MechanismRunState
from daedal.driver.request import checked_request
from daedal.ensembles.columns import Chunk, NumbersOf, Vectors
from daedal.ensembles.lane_members import Lanes, lanes_of_first_order, lanes_of_mechanism
from daedal.ensembles.part import EVENT, FINISHED, TIMED_OUT, Part
from daedal.events.event import SwitchingFunctions, standard_functions
from daedal.initial.consistent import linear_slopes
from daedal.initial.unknown_z import solved_for_z
from daedal.kernels.endings import Ending
from daedal.kernels.functions import store_matrix
from daedal.mechanics.setting import missing_derivatives
from daedal.problems.named_inputs import jumps_of
from daedal.problems.symbols import Driven
from daedal.symbolic import Untraceable
from daedal.symbolic.tracing.switching_functions import switching_code

_SLICES = 50  # slices of runs between two checks of the clock
_EVENTS = 4096  # rows of the event table, enough for one slice of a run
_FINISHED, _EVENT_STOP = int(Ending.FINISHED), int(Ending.EVENT_STOP)
_GOOD = (_FINISHED, _EVENT_STOP)
_GIVEN_UP = -1000  # reason of members that timed out or were stopped, so that the driver does not run them


class BatchUnsupported(Exception):
    """A request that no batch kernel supports, with the reason."""


class Batch(ABC):
    """A compiled loop with its memory, for one thread.

    A subclass for a problem class prepares one member, using the driver's objects, and stores an *image* of the initial
    memory of a run; the loop restores it for each member.
    """

    request: Any
    lanes: Lanes | None = None  # lanes for eight members at a time

    @abstractmethod
    def starts(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Rows of starts, and of slopes if needed; None if starts are not given as vectors."""

    def reasons(self, starts: np.ndarray, slopes: np.ndarray | None) -> np.ndarray:
        """Complete starts and slopes in place; return a code for each member, 0 if the loop can run it."""
        return np.zeros(len(starts), dtype=np.int64)

    def _made_of(self, ready: Any, task: Any, image: Image, own: Any, pointers: dict[str, Any], bridges: list) -> None:
        """Build the record of the loop; `own` and `pointers` are specific to the problem class."""
        from daedal.ensembles.batch_kernel import BATCH
        from daedal.kernels.records import Record

        request = self.request
        image.add(*ready.image(task))
        if ready.switching is not None:
            if ready.switching.record["watched"]:
                raise BatchUnsupported("layers around switching functions are monitored")
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
        """Run the members of a chunk; returns the rows that the driver must run."""
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
        reasons = self.reasons(starts, slopes)
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
        """Read the events from the table of the loop."""
        stored = int(self.record["events_stored"])
        if stored and self.request.keeps_events:
            rows = zip(self._event_member[:stored].tolist(), self._event_t[:stored].tolist())
            happened += [(k, t, fired) for (k, t), fired in zip(rows, self._event_fired[:stored].copy())]
        self.record["events_stored"] = 0

    def _keep_events(self, part: Part, reasons: np.ndarray, happened: list[tuple[int, float, np.ndarray]]) -> None:
        """Store the events of successful members."""
        for k, t, fired in happened:
            if reasons[k] in _GOOD:
                part.events += [
                    (part.first + k, t, self._switching.names[i], int(np.sign(fired[i])), abs(int(fired[i])) > 1)
                    for i in np.flatnonzero(fired)
                ]

    def _keep(
        self, part: Part, reasons: np.ndarray, states: np.ndarray, finals: np.ndarray, ends: np.ndarray
    ) -> list[int]:
        """Store the results of the successful members; return the rows of the members that the driver must run."""
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


def direct_plan(runner: Any, params: Any, irregular: bool = False) -> Any:
    """The plan used by all runs of a request, with the given parameters; see :meth:`Plan.direct`.

    Raises :class:`BatchUnsupported` if there is none.
    """
    request, settings = runner.request, runner.request.settings
    if request.is_factory or request.needs_solutions or request.layout is None:
        raise BatchUnsupported("whole solutions are needed")
    if settings.fixed_step is not None or settings.correct_initial:
        raise BatchUnsupported("constant steps, or starts that need correction")
    if getattr(request.problem, "invariants", None) is not None:
        raise BatchUnsupported("steps are projected onto invariants")
    varying = params.inputs.values() if isinstance(params, Driven) else ()
    if jumps_of(request.problem) or any(callable(x) for x in varying):
        raise BatchUnsupported("discontinuous inputs, or functions that vary from member to member")
    solver = runner.solver if params is None else runner.solver.with_params(params)
    plan = solver.plan.direct(irregular)
    if plan is None:
        raise BatchUnsupported("functions are not machine code, or have switches")
    return plan


def machine_events(
    switching: SwitchingFunctions | None, events: Any, stated: Any, problem: Any
) -> SwitchingFunctions | None:
    """Switching functions that are called without the interpreter: compiled by the user, or traced.

    Events are those of the problem as `stated`; their code refers to the `problem` that is solved.
    """
    if switching is None or switching.native is not None:
        return switching
    if switching.evaluate is not switching.plain:
        raise BatchUnsupported("events depend on other variables than the integrated ones")
    functions = standard_functions(events, stated)
    try:
        return replace(switching, compiled=switching_code(problem, functions, switching.evaluate))
    except Untraceable as reason:
        raise BatchUnsupported("events are Python functions") from reason


class Image:
    """Memory and its stored contents: rows (address, address of the copy, number of words) for the loop."""

    def __init__(self) -> None:
        self._alive: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, *arrays: np.ndarray) -> None:
        """Add the current contents of arrays of 8-byte numbers."""
        self._alive += [(array, array.copy()) for array in arrays]

    @property
    def rows(self) -> np.ndarray:
        """The table, of shape (number of arrays, 3)."""
        return np.array([(a.ctypes.data, b.ctypes.data, a.size) for a, b in self._alive], dtype=np.int64)


def parameters_of(bridges: Sequence[Any]) -> tuple[np.ndarray, Any]:
    """The addresses from which bridges read their parameters, and the function that converts parameters to numbers."""
    entries = [entry for bridge in bridges for entry in bridge.parameters]
    values = [read(cell[0]) for _, cell, read in entries]
    if any(not np.array_equal(values[0], other) for other in values):
        raise BatchUnsupported("functions use different numbers of the parameters")
    addresses = np.array([target.ctypes.data for target, *_ in entries], dtype=np.int64)
    return addresses, entries[0][2] if entries else None


# --- batches of small first-order problems: stiff ones with compiled Rosenbrock steps, and plain ODEs -----------------

_LARGE = 2.0**30  # the factor cj for which `exact_partials` separates dF/dy' from dF/dy


class FirstOrderBatch(Batch):
    """Batch of ODEs, implicit problems of index 0 or 1, or semi-explicit problems of index 1.

    Starts are y, and for implicit problems optionally a consistent y'. Semi-explicit problems start from y, and
    optionally a consistent z; (y, z) are the unknowns of the implicit form.

    Parameters
    ----------
    runner : Runner
    start, params : object
        Start and parameters of a successful member; the batch supports members with the same requirements.
    """

    _unknown_z = False  # whether z is computed at the start

    def __init__(self, runner: Any, start: Any, params: Any):
        # only implicit methods need derivatives, which are checked at the start of each member
        plan = direct_plan(runner, params, irregular=True)
        self.request = request = runner.request
        if not isinstance(plan, FirstOrderPlan):
            raise BatchUnsupported("not a first-order problem")
        if request.settings.dense_output is False or request.settings.max_steps is not None:
            raise BatchUnsupported("steps are limited, or not stored")
        y0, yp0 = (*start, None)[:2] if isinstance(start, tuple) else (start, None)
        self._plan, self._semi_explicit = plan, plan.semi_explicit is not None
        if self._semi_explicit:
            self._unknown_z = yp0 is None
            y0, yp0 = y0 if yp0 is None else np.concatenate([y0, yp0]), None
        self._y_alone = yp0 is None
        one = checked_request(
            plan.problem, request.settings, request.span, start, t_eval=request.times, t_stop=request.t_stop
        )
        run_state = FirstOrderRunState(plan, one)
        given = np.array_equal(run_state.y0[: np.size(y0)], y0) and (yp0 is None or np.array_equal(run_state.yp0, yp0))
        if run_state.excluded is not None or plan.nonnegative is not None or not given:
            raise BatchUnsupported("signs are constrained, or the start was modified")
        method = run_state.choice.method
        self._ordinary = method.supports("rate") and plan.ordinary is not None
        if self._ordinary and not self._y_alone:
            raise BatchUnsupported("y' of an ODE is given")
        if not self._ordinary and method.name != "rosenbrock":
            raise BatchUnsupported("another method")
        problem = plan.implicit
        dense_matrix = problem.sparsity is None and problem.bandwidth is None
        if not self._ordinary and not (dense_matrix and getattr(problem.jacobian, "is_derivative", False)):
            raise BatchUnsupported("matrices are not dense")
        self._made_ready(run_state)

    def _made_ready(self, run_state: FirstOrderRunState) -> None:
        """Store the state of the representative member before its first step as an image."""
        from daedal.ensembles.first_order_kernel import FIRST_ORDER, begin_implicit, begin_ordinary, look_at_slice
        from daedal.events.event import gather_events
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.records import Record

        request, plan, ready = self.request, self._plan, run_state.ready
        problem, n, events = plan.implicit, plan.implicit.n, self.request.settings.events
        switching = gather_events(events, plan.problem, request.span[0], run_state.y0, run_state.yp0)
        if switching is not None:
            switching = with_bounds(switching, events, plan.problem, n)
        task = run_state.task(machine_events(switching, events, plan.problem, problem), Progress(False, request.span))
        if ready.system["scaled_rows"] or not task.dense:
            raise BatchUnsupported("rows are scaled, or steps are not stored")
        bridges, jacobian = [ready.bridge], {}
        if not self._ordinary:
            bridges.append(Bridge())
            shape = (n, n)
            store = store_matrix("jacobian", n, n)
            jacobian["jacobian"] = bridges[1].function(problem.jacobian, shape, shape, store, problem.params, scalars=1)
        own = Record.allocated(
            FIRST_ORDER,
            system=ready.system,
            atol=np.ascontiguousarray(plan.atol),
            first_look=0 if task.watch is None else task.watch.due,
            **jacobian,
        )
        self._used = run_state
        pointers = {"begin": begin_ordinary if self._ordinary else begin_implicit, "look": look_at_slice}
        self._made_of(ready, task, Image(), own, pointers, bridges)
        self.lanes = lanes_of_first_order(self.record, own, plan, ready)

    def starts(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Rows of y and of y'; zero where z or y' are to be computed."""
        if not isinstance(chunk.starts, Vectors) or chunk.starts.scalar:
            return None
        y, yp = (*chunk.starts.arrays(chunk.count), None)[:2]
        if self._semi_explicit and y is not None:
            if (yp is None) != self._unknown_z:
                return None
            z = np.zeros((len(y), self.n - y.shape[1])) if yp is None else yp  # zero is the first guess
            y, yp = np.concatenate([y, z], axis=1), None
        if y is None or (yp is None) != self._y_alone or not np.isfinite(y).all():
            return None
        if yp is not None and not np.isfinite(yp).all():
            return None
        y = np.ascontiguousarray(y, dtype=float)
        slopes = np.zeros(y.shape) if yp is None else np.ascontiguousarray(yp, dtype=float)
        return y, None if self._ordinary else slopes

    def reasons(self, starts: np.ndarray, slopes: np.ndarray | None) -> np.ndarray:
        """Complete starts and slopes in place; return 0 for members whose index at the start is clearly 0 or 1.

        The driver analyses and runs the others.
        """
        from daedal.ensembles.batch_kernel import NOT_PLAIN

        count = len(starts)
        if slopes is None:
            return np.zeros(count, dtype=np.int64)
        plain = np.ones(count, dtype=bool)
        if self._unknown_z:
            n_y = self.request.problem.n_y
            evaluable = np.isfinite(self._values(np.zeros(1))[0]).all(axis=1)  # other members need another guess of z

            def values(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                starts[:] = rows
                residuals, [matrices] = self._values(np.zeros(1))
                return residuals, matrices

            starts[:], plain = solved_for_z(values, starts, n_y)
            plain &= evaluable
        residuals, (of_y, both) = self._values(np.array([0.0, _LARGE]))
        plain &= np.isfinite(residuals).all(axis=1) & np.isfinite(both).all(axis=(1, 2))
        of_slope = (both - of_y) / _LARGE
        plain[plain] = are_clearly_index_1(of_slope[plain], of_y[plain])
        if self._y_alone:
            rows = np.flatnonzero(plain)
            changes, plain[rows] = linear_slopes(self._plan.implicit, of_slope[rows], of_y[rows], residuals[rows])
            slopes[rows] += changes
        return np.where(plain, 0, NOT_PLAIN)

    def _values(self, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F at all starts, and dF/dy + cj dF/dy' for each factor cj; NaN if they cannot be computed."""
        from daedal.ensembles.first_order_kernel import values_at_starts

        count = int(self.record["count"])
        residuals, matrices = np.empty((count, self.n)), np.empty((factors.size, count, self.n, self.n))
        values_at_starts(self.record.address, factors, residuals, matrices)
        return residuals, matrices


# --- batches of mechanisms with traced or compiled functions ----------------------------------------------------------


class MechanismBatch(Batch):
    """Batch of mechanisms that start from values consistent to round-off, for explicit methods in q and v.

    Parameters
    ----------
    runner : Runner
    start, params : object
        Start and parameters of a successful member; the batch supports members with the same requirements.
    """

    def __init__(self, runner: Any, start: Any, params: Any):
        plan = direct_plan(runner, params)
        if not isinstance(plan, MechanismPlan):
            raise BatchUnsupported("not a mechanism")
        self.request = runner.request
        self._settings = replace(self.request.settings, dense_output=False)
        self._made_ready(self._begun(plan, start))

    def _begun(self, plan: MechanismPlan, start: Any) -> MechanismRunState:
        request, system = self.request, plan.problem
        if not isinstance(start, tuple) or len(start) < 2:
            raise BatchUnsupported("starts are not vectors")
        if system.contact is not None or system.n_w or system.force_uses_multipliers or start[1] is None:
            raise BatchUnsupported("multipliers or algebraic variables must be computed")
        nonholonomic = system.velocity_jacobian, system.velocity_bias
        if missing_derivatives(system) or (system.velocity_constraint is not None and None in nonholonomic):
            raise BatchUnsupported("derivatives of constraints are finite differences")
        one = checked_request(
            plan.problem, self._settings, request.span, start, t_eval=request.times, t_stop=request.t_stop
        )
        run_state = plan.begin(one)
        if run_state.assembly.is_sparse or run_state.notes:
            raise BatchUnsupported("matrices are sparse, or the start was modified")
        return run_state

    def _made_ready(self, run_state: MechanismRunState) -> None:
        """Store the state of the representative member before its first step as an image."""
        from daedal.ensembles.mechanism_kernel import MECHANISMS, begin_mechanism, finish_mechanism
        from daedal.kernels.records import Record
        from daedal.mechanics.readiness import READY_IN_MASS_NORM, is_ready

        request, assembly, start, image = self.request, run_state.assembly, run_state.start, Image()
        expected = int(is_ready(assembly.address, start.t, start.z, start.r))
        if not expected or ("M" if expected == READY_IN_MASS_NORM else "I") != assembly.output_weight:
            raise BatchUnsupported("the start is not clearly consistent")
        assembly.adopt(assembly.setting)
        image.add(_block(assembly.record.array("state")), assembly.record.data.view(np.int64))
        reduction, ready, task = run_state.made_ready([], Progress(False, request.span))
        state, slope = np.concatenate([start.z, start.r]), np.concatenate([start.slope, start.rate])
        if reduction.recover is not None or not (
            np.array_equal(reduction.y0, state) and np.array_equal(reduction.yp0, slope)
        ):
            raise BatchUnsupported("the formulation has different unknowns")
        if task.guess is not None or ready.workspace is not None:
            raise BatchUnsupported("the method is implicit")
        if reduction.inspection is not None:
            image.add(reduction.inspection.data.view(np.int64), _block(reduction.inspection.array("q")))
        monitor = reduction.monitor
        if monitor is not None:
            monitor.array("norms")[:] = 0.0
            image.add(monitor.data.view(np.int64), _block(monitor.array("norms")))
        task.switching = machine_events(
            task.switching, self._settings.events, run_state.plan.problem, run_state.plan.problem
        )
        projector = assembly.projector(assembly.output_weight)
        own = Record(
            MECHANISMS,
            system=assembly.record,
            monitor=0 if monitor is None else monitor,
            projector=projector,
            expected=expected,
        )
        self._used = run_state, reduction, projector
        pointers = {"begin": begin_mechanism, "finish": finish_mechanism}
        self._made_of(ready, task, image, own, pointers, [assembly.bridge])
        self.lanes = lanes_of_mechanism(self.record, run_state, reduction, ready)

    def starts(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Rows (q, v, r)."""
        if not isinstance(chunk.starts, Vectors):
            return None
        arrays = chunk.starts.arrays(chunk.count)[:3]
        if any(array is None for array in arrays):
            return None
        rows = np.concatenate([array for array in arrays if array is not None], axis=1)
        missing = self.n - rows.shape[1]  # r is zero if not given
        if missing > 0:
            rows = np.concatenate([rows, np.zeros((chunk.count, missing))], axis=1)
        return (np.ascontiguousarray(rows), None) if np.isfinite(rows).all() else None


def _block(array: np.ndarray) -> np.ndarray:
    """The block of memory that contains an array, as integers."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.view(np.int64)
