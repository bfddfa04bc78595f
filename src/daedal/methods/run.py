"""The Python part of a run: a method prepared for its equations, buffers, slices, progress, stored output.

A :class:`Run` is expensive to create and cheap to use. Every call of ``integrate`` starts with all memory in its
initial state, so that its result does not depend on earlier runs. A run is not thread-safe.
"""

from __future__ import annotations

import struct
import time
from typing import Any

import numpy as np

from daedal.analysis.index import LocalIndex
from daedal.analysis.wording import Failure
from daedal.events.event import EventRecord
from daedal.events.record import Switching, no_functions
from daedal.kernels.endings import Ending
from daedal.kernels.signatures import f64
from daedal.methods.task import Equations, Outcome, Task, Watch
from daedal.methods.workspace import Workspace
from daedal.solution.solution import DenseOutput

_FLOATS_PER_SLICE = 250_000  # size of the buffers between two returns to Python
_SLOTS = 1000
_LARGE = 100  # number of unknowns above which the first slices are short
_BUFFER_FULL, _TROUBLED, _HOOK_STOPPED = int(Ending.BUFFER_FULL), int(Ending.TROUBLED), int(Ending.HOOK_STOPPED)
_STIFF = int(Ending.STIFF)
_TIME = struct.Struct("=d")  # the first field of a RUN record


class Run:
    """A method with its equations, ready to integrate.

    Parameters
    ----------
    method : Method
    equations : Equations
    step : Pointer
        ``reason = step(run)``, one accepted step; see :mod:`daedal.methods.advance`.
    begin : Pointer, optional
        Called once at the start of every run, after weights and first step are set.
    record : Record, optional
        Data of the method, in addition to the RUN record.
    restored : bool
        Whether the arrays of `record` must be restored at the start of every run, as they are read before they are
        written.
    workspace : Workspace, optional
        For implicit methods. Without one, a record is created for the rate, or only for hook and counters.
    **fields
        Further fields of the RUN record: orders, controllers, limits.
    """

    constant_order: int | None = None  # degree of the polynomials, if it differs from the order
    reusable = True  # whether another run is possible: no data of earlier runs are kept
    projection: Any = None  # imposes invariants; its functions have a separate bridge
    notes: tuple[str, ...] = ()  # notes on the last run, for the message of the solution

    def __init__(
        self,
        method: Any,
        equations: Equations,
        *,
        step,
        begin=None,
        record=None,
        restored: bool = False,
        workspace: Workspace | None = None,
        **fields,
    ):
        from daedal.kernels.builders import build_system
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.records import Record
        from daedal.kernels.system import CHANGING
        from daedal.methods.advance import advance
        from daedal.methods.run_record import RESULT, RUN, TASK

        n = equations.n
        self.method, self.equations, self.workspace, self.own = method, equations, workspace, record
        self._made_of = equations
        if workspace is None:
            self.bridge = equations.bridge or getattr(equations.rate, "bridge", None) or Bridge()
            params = equations.params
            if params is None:
                params = getattr(_caller(equations), "params", None)
            self.system = build_system(self.bridge, n, rate=equations.rate, params=params, hook=equations.hook)
        else:
            self.bridge, self.system = workspace.bridge, workspace.system
        self._no_roots = no_functions()
        self.record = Record.allocated(
            RUN,
            n=n,
            roots=self._no_roots,
            system=self.system,
            method=0 if record is None else record.address,
            begin=0 if begin is None else begin.address,
            step=step.address,
            **fields,
        )
        self._advance, self._address = advance, self.record.address
        self._bytes = self.record.data.view(np.uint8).data
        self._counters = self.system.data.view(np.int64)[-len(CHANGING) :]
        self._vectors, self._included = self.record.block, self.record.array("included")
        self._included[:] = 1.0
        self._memory: list[tuple[np.ndarray, Any]] = []
        for memory in map(record.array, record.made) if restored else ():
            constant = memory.size and bool(np.all(memory == memory.flat[0]))
            self._memory.append((memory, memory.flat[0] if constant else memory.copy()))
        if record is not None:
            self._memory.append((record.data.view(np.int64), record.data.view(np.int64).copy()))
        self._signal = CHANGING.index("hook_signal")
        self._pack, self._unpack = _layout(TASK), _layout(RESULT)
        self._y, self._yp, self._rtol, self._atol = (self.record.array(name) for name in ("y", "yp", "rtol", "atol"))
        self._phi = self.record.array("phi")
        self._first = self.record.data.copy()
        self._buffers: dict[tuple[bool, int], tuple[Any, bytes]] = {}
        self._switching: Switching | None = None
        self._entered: Switching | None = None  # the switching functions whose layers are observed, until `leave`

    # --- one run ------------------------------------------------------------------------------------------------------

    def integrate(self, task: Task) -> Outcome:
        """Integrate from the given values. The result depends on the task alone."""
        self.open(task)
        try:
            ended = self.proceed(task)
        finally:
            self.leave()
        return self.close(task, *ended)

    def open(self, task: Task) -> None:
        """Begin a task: initialise all memory. :meth:`proceed` integrates."""
        switching = self._begin(task)
        self._entered = switching
        if switching is not None:
            switching.watch_layers(self.system, self._yp)

    def proceed(self, task: Task, reason: int | None = None) -> tuple[int, bool]:
        """Integrate to the end of the task or of the run; returns the reason for stopping and whether the user
        interrupted it.

        If the caller has entered the compiled loop, `reason` is its result.
        """
        try:
            while True:
                began = time.perf_counter()
                if reason is None:
                    reason = self._advance(self._address)
                ended, reason = reason, None
                if ended == _TROUBLED:
                    self._keep_slice(task)
                    ended = self.reconsider(task)
                    if ended == 0:
                        continue
                if ended == _HOOK_STOPPED and task.resume is not None:
                    self._keep_slice(task)
                    if task.resume():
                        self._counters[self._signal] = 0
                        continue
                if ended == _STIFF and task.suspect is not None:
                    self._keep_slice(task)
                    if self._is_false_alarm(task.suspect):
                        continue
                if ended != _BUFFER_FULL:
                    return ended, False
                self._keep_slice(task)
                self._adapt_slice(time.perf_counter() - began)
                if task.progress is not None:
                    task.progress.update(self._time())
                if task.watch is not None and self._is_stopped_by(task.watch):
                    return _TROUBLED, False
        except KeyboardInterrupt:
            return 0, True

    def leave(self) -> None:
        """Stop observing the layers of the switching functions of the task."""
        switching, self._entered = self._entered, None
        if switching is not None:
            switching.leave_layers(self.system)

    def close(self, task: Task, reason: int, interrupted: bool) -> Outcome:
        """The outcome of a task, after :meth:`leave`."""
        switching = self._switching_of(task)
        exception, self.bridge.exception = self.bridge.exception, None
        if task.arcs is not None:
            self.bridge.forget_parameters()
        for other in (switching, self.projection):
            if other is not None and exception is None:
                exception, other.bridge.exception = other.bridge.exception, None
        if isinstance(exception, KeyboardInterrupt):
            exception, interrupted = None, True
        if task.progress is not None:
            task.progress.update(self._time())
        return self._outcome(task, Ending.INTERRUPTED if interrupted else Ending(reason), exception)

    def _is_false_alarm(self, suspect) -> bool:
        """Whether `suspect` lets the run continue despite a possible stability limit; its exceptions end the run."""
        try:
            patience = suspect(*self.reached(), abs(self._results()[-1]))
        except Exception as error:
            self.bridge.exception, patience = error, 0
        self.record["stiff_count"] = 1 - patience
        return patience > 0

    @property
    def address(self) -> int:
        """The address of the RUN record."""
        return self._address

    @property
    def switching(self) -> Switching | None:
        """The record of the switching functions of the last task."""
        return self._switching

    def image(self, task: Task) -> list[np.ndarray]:
        """Start a task, and return all memory that was written: the initial state of a run."""
        switching = self._begin(task)
        further = [] if switching is None else switching.image()
        own = [memory for memory, _ in self._memory]
        return [self.record.data.view(np.int64), self._vectors, self._counters, *own, *further]

    def adopt(self, equations: Equations) -> None:
        """Use other parameters for the same equations."""
        made_of, given = _caller(self._made_of), _caller(equations)
        if self.workspace is None and made_of is not None and given is not None:
            self.bridge.replace(made_of.params, given.params)
        self.equations = equations

    def load(self, task: Task) -> None:
        """Write data of the start that a method needs in addition to y and y'. The default writes nothing."""

    def reconsider(self, task: Task) -> int:
        """Called if steps fail repeatedly: apply a remedy and return 0, or return the reason to stop."""
        return int(Ending.TROUBLED)

    def local_index(self, task: Task) -> LocalIndex | None:
        """The index of the linearised equations at the current point; uses the quick test if it is conclusive."""
        from daedal.analysis.causes import Case
        from daedal.analysis.index import is_clearly_index_1

        case = Case(self.equations.problem, self._failure(task, Ending.TROUBLED))
        if case.exact is not None and is_clearly_index_1(*case.exact):
            return LocalIndex(1)
        return case.index

    def _begin(self, task: Task) -> Switching | None:
        """Restore all memory to its state at creation, and write the values of the task."""
        switching = self._switching_of(task)
        self._collected: dict[int, tuple[np.ndarray, ...]] = {}
        self._events: dict[int, list[EventRecord]] = {}
        self._dense, times = task.dense, task.t_eval
        roots = self._no_roots if switching is None else switching.record
        self._slots, template = self._buffers_for(task.dense, roots)
        self._vectors.fill(0.0)
        self._included.fill(1.0)
        for memory, at_first in self._memory:
            memory[:] = at_first
        (t0, t1), sign, fixed = task.t_span, 1 if task.t_span[1] > task.t_span[0] else -1, task.fixed_step
        h = task.first_step or 0.0 if fixed is None else fixed
        self._bytes[:] = template
        self._pack.pack_into(
            self._bytes,
            0,
            t0,
            sign * h,
            t0,
            t1,
            t1 if task.t_stop is None else task.t_stop,
            task.max_step,
            sign,
            task.max_steps or 0,
            fixed is not None,
            0 if fixed is None else round((t1 - t0) / (sign * fixed)),
            times is None,
            0 if times is None else times.size,
            1 if times is not None and times.size and times[0] == t0 else 0,
            0 if times is None else times.ctypes.data,
            roots.address,
            switching is not None,
        )
        self._y[:], self._yp[:], self._rtol[:], self._atol[:] = task.y0, task.yp0, task.rtol, task.atol
        if task.excluded is not None:
            self.record.array("included")[task.excluded] = 0.0
        if task.arcs is not None:
            [(parameters, _, _)] = self.bridge.parameters
            self.record["arcs"], self.record["n_parameters"] = task.arcs.shape[0], parameters.size
            self.record["arc_rows"], self.record["parameters"] = task.arcs.ctypes.data, parameters.ctypes.data
        if self.workspace is not None:
            self.workspace.begin()
        else:
            if self.equations.mechanism is None:  # the assembly has been updated by its owner
                self.bridge.refresh()
            self._counters.fill(0)
        if switching is not None:
            switching.begin(t0, t1, float(task.rtol.max()))
        if task.watch is not None:
            self.record["slice"] = min(int(self.record["slice"]), task.watch.due)
        self.load(task)
        return switching

    def _switching_of(self, task: Task) -> Switching | None:
        """The record of the switching functions, created once while they are unchanged."""
        if task.switching is None:
            return None
        if self._switching is None or not self._switching.takes(task.switching):
            self._switching = Switching(task.switching, self.equations.n)
        return self._switching

    def _buffers_for(self, dense: bool, roots) -> tuple[Any, bytes]:
        """Buffers of one slice, and the initial state of the RUN record with them."""
        m = int(roots["n"])
        if (dense, m) not in self._buffers:
            buffers, fields = _buffers(self.equations.n, dense, roots), self._first.copy()
            for name in buffers.data.dtype.names:
                fields[0][name] = buffers[name]
            self._buffers[dense, m] = buffers, fields.tobytes()
        return self._buffers[dense, m]

    def _adapt_slice(self, seconds: float):
        """Size of a slice, small enough for interrupts to be noticed."""
        steps = int(self.record["slice"])
        if seconds > 0.2:
            self.record["slice"] = max(1, steps // 2)
        elif seconds < 0.05:
            self.record["slice"] = min(2 * steps, int(self.record["slots"]))

    def _is_stopped_by(self, watch: Watch) -> bool:
        """Call the watch at fixed step numbers, independent of the slices, so that its answer does not depend on
        timing."""
        *_, steps, error_failures, newton_failures, size = self._results()
        if steps >= watch.due:
            if watch.stops(steps, error_failures + newton_failures, int(self.record["degree"]), abs(size)):
                return True
        self.record["slice"] = min(int(self.record["slice"]), watch.due - steps)
        return False

    # --- stored output ------------------------------------------------------------------------------------------------

    def slope(self) -> np.ndarray:
        """y' at the end of the last step, from its polynomial."""
        degree = int(self.record["degree"])
        return (self._phi[1 : degree + 1] / self.record["psi"][:degree, None]).sum(axis=0)

    def reached(self) -> tuple[float, np.ndarray]:
        """The end of the last step, and y there."""
        return self._time(), self._phi[0].copy()

    def _results(self) -> tuple:
        """The fields RESULT of the record."""
        return self._unpack.unpack_from(self._bytes, self._pack.size)

    def _time(self) -> float:
        return _TIME.unpack_from(self._bytes, 0)[0]

    def _views(self) -> tuple[np.ndarray, ...]:
        """The data that the kernel stored in this slice."""
        _, points, steps, rows, *_ = self._results()
        array, psi = self._slots.array, steps if self._dense else 0
        return (
            array("out_t")[:points],
            array("out_y")[:points],
            array("out_yp")[:points],
            array("step_t")[:steps],
            array("step_h")[:steps],
            array("step_order")[:steps],
            array("step_start")[:steps],
            array("step_psi")[:psi],
            array("coefficients")[:rows],
        )

    def _keep_slice(self, task: Task):
        """Copy a slice before the kernel continues. Slices are numbered, so that repeated calls are harmless."""
        number, points, steps, *_ = self._results()
        if points or steps:
            self._collected[number] = tuple(view.copy() for view in self._views())
        self._keep_events(task)

    def _keep_events(self, task: Task):
        number, _, _, _, events, *_ = self._results()
        if events:
            self._events[number] = [record for m in range(events) for record in self._event_records(task, m)]

    def take_events(self, task: Task) -> list[EventRecord]:
        """The events since the last call, for callers that interrupt a task and continue it."""
        self._keep_events(task)
        found = [event for i in sorted(self._events) for event in self._events[i]]
        self._events.clear()
        self._collected.clear()
        self.record["events_stored"] = 0
        return found

    def return_events(self, events: list[EventRecord]) -> None:
        """Include the collected events in the outcome."""
        self._events[int(self.record["number"])] = events

    def _event_records(self, task: Task, m: int) -> list[EventRecord]:
        """The functions that fired at the m-th event of this slice."""
        array, switching = self._slots.array, task.switching
        assert switching is not None and self._switching is not None
        fired, t = array("event_fired")[m], float(array("event_t")[m])
        return [
            EventRecord(
                t=t,
                y=array("event_y")[m].copy(),
                yp=array("event_yp")[m].copy(),
                index=int(i),
                name=switching.names[i],
                direction=int(np.sign(fired[i])),
                terminal=abs(int(fired[i])) > 1,
                located=self._switching.located(int(i), t),
            )
            for i in np.flatnonzero(fired)
        ]

    def _last_step(self) -> DenseOutput | None:
        """The polynomial of the last step only, for a hook that stopped the run and examines the step."""
        degree, t = int(self.record["degree"]), self._time()
        if not degree or not int(self.record["steps"]):
            return None
        psi = self.record["psi"][: degree + 1][None, :].copy()
        begin = t - float(self.record["h_last"])
        coefficients = self._phi[: degree + 1].copy()
        return DenseOutput(begin, np.array([t]), np.array([degree]), np.array([0]), psi, coefficients)

    def orders_of(self, degrees: np.ndarray) -> np.ndarray:
        """The order of every step from the degree of its polynomial."""
        return degrees if self.constant_order is None else np.full(degrees.size, self.constant_order)

    def start_points(self, task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """t, y and y' at the starting values after the first, which are written to the output; none by default."""
        return None

    def _outcome(self, task: Task, reason: Ending, exception) -> Outcome:
        number, *_, steps, error_failures, newton_failures, h_last = self._results()
        self._collected[number] = self._views()
        self._keep_events(task)
        slices = [self._collected[i] for i in sorted(self._collected)]
        t, y, yp = self._points(task, [part[:3] for part in slices])
        history = dense = None
        if any([len(part[3]) for part in slices]):
            if len(slices) == 1:
                ends, sizes, degrees, starts, psi, coefficients = [view.copy() for view in slices[0][3:]]
            else:
                parts = zip(*[part[3:] for part in slices], strict=True)
                ends, sizes, degrees, starts, psi, coefficients = [np.concatenate(part) for part in parts]
            history = ends, sizes, self.orders_of(degrees)
            if task.dense:
                dense = DenseOutput(task.t_span[0], ends, degrees, starts, psi, coefficients)
        counts = self.counts()
        return Outcome(
            reason=reason,
            t=t,
            y=y,
            yp=yp,
            history=history,
            dense=dense,
            last_step=dense if task.dense or reason is not Ending.HOOK_STOPPED else self._last_step(),
            events=[event for i in sorted(self._events) for event in self._events[i]],
            interrupted=reason is Ending.INTERRUPTED,
            failure=self._failure(task, reason) if reason < 0 and exception is None else None,
            t_reached=self._time(),
            y_reached=self._phi[0].copy(),
            h_last=h_last,
            steps=steps,
            error_test_failures=error_failures,
            newton_failures=newton_failures,
            signal=counts.item(self._signal),
            counts=counts,
            exception=exception,
            doubts=() if task.switching is None or self._switching is None else self._switching.doubts,
            arcs=0 if task.arcs is None else int(self.record["arc"]),
        )

    def counts(self) -> np.ndarray:
        """A copy of the counters."""
        return self._counters.copy() if self.workspace is None else self.workspace.counts()

    def _points(self, task: Task, parts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The output: the start if requested, starting values, and the values stored by the kernel."""
        times = task.t_eval
        with_start = times is None or (times.size > 0 and times[0] == task.t_span[0])
        if times is None and (behind := self.start_points(task)) is not None:
            parts.insert(0, behind)
        count, n = with_start + sum([len(part[0]) for part in parts]), task.y0.size
        t, y, yp = np.empty(count), np.empty((n, count)), np.empty((n, count))
        first = 0
        if with_start:
            t[0], y[:, 0], yp[:, 0] = task.t_span[0], task.y0, task.yp0
            first = 1
        for part_t, part_y, part_yp in parts:
            last = first + len(part_t)
            t[first:last], y[:, first:last], yp[:, first:last] = part_t, part_y.T, part_yp.T
            first = last
        return t, y, yp

    def _failure(self, task: Task, code: Ending) -> Failure:
        record = self.record
        steps = int(record["steps"])
        with np.errstate(all="ignore"):
            weights = 1.0 / record.array("inverse_weights")
            slope = self._phi[1] / record["psi"][0]
        return Failure(
            code=code,
            t=float(record["t"]),
            h=float(record["h"]),
            order=int(record["order"]),
            y=task.y0.copy() if code == Ending.ZERO_WEIGHT and steps == 0 else self._phi[0].copy(),
            yp=task.yp0.copy() if steps == 0 else slope,
            tried_y=record.array("y").copy(),
            correction=record.array("correction").copy(),
            weights=weights,
            cj=float(record["cj"]),
            steps=steps,
            error_test_failures=int(record["error_test_failures"]),
            newton_failures=int(record["newton_failures"]),
            attempt_error_failures=int(record["attempt_error_failures"]),
            attempt_newton_failures=int(record["attempt_newton_failures"]),
            first_step_failures=int(record["first_step_failures"]),
            t_span=task.t_span,
            component=int(record["zero_weight"]) if code == Ending.ZERO_WEIGHT else -1,
            included=record.array("included").copy(),
            jacobian_unevaluable=bool(record["jacobian_unevaluable"]),
        )


class OneStepRun(Run):
    """A run of a one-step method.

    Parameters
    ----------
    attempt : Pointer
        ``status = attempt(run, t, h)``; see :mod:`daedal.methods.one_step`.
    accept : Pointer, optional
        Called for a step that is accurate enough; cubic Hermite interpolation by default.
    order : int
        Order of the method; `control_order` is that of the error estimate plus one, the same by default.
    """

    def __init__(
        self, method, equations: Equations, *, attempt, accept=None, order: int, control_order=None, **options
    ):
        from daedal.methods.one_step import accept_with_hermite, one_step

        mechanism = equations.mechanism
        fields = {
            "attempt": attempt.address,
            "accept": (accept_with_hermite if accept is None else accept).address,
            "control_order": control_order or order,
            "start_order": control_order or order,
            "order": order,
            "positions": positions_of(mechanism, equations.n),
            "kept_ratio": 1.0,
            "error_before": 1e-4,
        }
        self.constant_order = order
        super().__init__(method, equations, step=one_step, **(fields | options))

    def open(self, task: Task) -> None:
        """Begin a task; a method without an error estimate needs a fixed step size."""
        self.method.require_error_estimate(task.fixed_step)
        super().open(task)


def _caller(equations: Equations) -> Any:
    """The problem whose functions and parameters are called by a run without workspace; None for mechanisms."""
    return None if equations.mechanism is not None else equations.semi_explicit or equations.problem


def positions_of(mechanism, n: int) -> int:
    """The number of coordinates of a mechanism, if y starts with (q, v); otherwise 0."""
    if mechanism is None or mechanism.m != 2 or n < mechanism.n_state:
        return 0
    return mechanism.nx


def _layout(fields) -> struct.Struct:
    """The layout of adjacent fields of a record."""
    return struct.Struct("=" + "".join("d" if kind is f64 else "q" for _, kind in fields))


def _buffers(n: int, dense: bool, roots):
    from daedal.kernels.differences import ROWS
    from daedal.kernels.records import Record
    from daedal.methods.run_record import BUFFERS

    slots = min(max(_FLOATS_PER_SLICE // max(n, 1), 8), _SLOTS)
    return Record.allocated(
        BUFFERS,
        n=n,
        roots=roots,
        dense=dense,
        slots=slots,
        slice=min(slots, 16) if n > _LARGE else slots,
        rows=slots * ROWS if dense else 1,
        event_slots=slots if roots["n"] else 1,
    )
