"""Batches of models with modes: mechanisms whose guards, resets and decisions can be traced."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from daedal.common.progress import Progress
from daedal.driver.request import checked_request
from daedal.ensembles.batch import Batch, BatchUnsupported, MechanismBatch
from daedal.ensembles.columns import Chunk, NumbersOf, Vectors
from daedal.ensembles.inputs import EnsembleRequest
from daedal.ensembles.part import TIMED_OUT, Part, StateLayout
from daedal.errors import DaedalError
from daedal.events.event import Enclosed, Event
from daedal.hybrid.hybrid_problem import Decision, GuardOfRun, HybridProblem
from daedal.hybrid.hybrid_run import HybridRun
from daedal.hybrid.mode_plans import HybridPlan, RunSettings
from daedal.kernels.endings import Ending
from daedal.kernels.functions import store_vector
from daedal.problems.arguments import (
    FIRST,
    PARAMS,
    SECOND,
    TIME,
    StateArguments,
    in_standard_form,
    positional_names,
)
from daedal.symbolic import Untraceable
from daedal.symbolic.tracing.switching_functions import guard_code, state_code

_SLICES = 500  # slices of runs between two checks of the clock
_MOST_ROWS = 4096  # maximum number of rows of the transition table
_LEAST_HOPELESS = 10**6  # smallest number of transitions after which a run is hopeless, see `events.accumulation`
_GOOD = int(Ending.FINISHED), int(Ending.EVENT_STOP)
_COLUMNS = "event_member", "event_t", "event_name", "event_direction", "event_ends"


class ModesBatch(Batch):
    """Batch of members that start in a mode given by name.

    Parameters
    ----------
    runner : Runner
    start, params : object
        Start and parameters of a successful member; modes are prepared from the states at which it entered them.
    """

    def __init__(self, runner: Any, start: Any, params: Any):
        self.request = request = runner.request
        solver = runner.solver if params is None else runner.solver.with_params(params)
        problem: HybridProblem = solver.problem
        if not isinstance(solver.plan, HybridPlan):
            raise BatchUnsupported("sensitivities are computed")
        self._check(problem, start)
        one = checked_request(
            problem, request.settings, request.span, start, t_eval=request.times, t_stop=request.t_stop
        )
        run = _Recorded(one, [request.span], Progress(False, request.span), solver.plan)
        run.to_the_end()
        names = [name for name in problem.mode_names if name in run.entered]
        names += [name for name in problem.mode_names if name not in run.entered]
        self._names = _Numbered()
        self._modes: dict[str, _ModeBatch] = {}
        for name in names:
            try:
                self._modes[name] = _ModeBatch(self, run, name, run.entered.get(name) or self._elsewhere(run, name))
            except (BatchUnsupported, Untraceable, DaedalError) as reason:
                if name in run.entered:
                    raise BatchUnsupported(f"mode {name!r}: {reason}") from reason
        self._start = start[0]
        self._made_record(run, {name: k for k, name in enumerate(self._modes)})

    def _check(self, problem: HybridProblem, start: Any) -> None:
        """Raise if the problem or the start cannot run in the loop, whatever the mode."""
        request = self.request
        if request.needs_solutions or request.layout is None or request.settings.events is not None:
            raise BatchUnsupported("solutions or events are requested")
        if request.layout.n_q is None or problem._source is not None:
            raise BatchUnsupported("modes have different variables, or guards that hold parameters")
        if request.span[1] < request.span[0] or request.settings.correct_initial or request.settings.max_steps:
            raise BatchUnsupported("the run goes backwards, its start is corrected, or its steps are limited")
        named = isinstance(start, tuple) and len(start) == 2 and isinstance(start[0], str)
        if not named or not isinstance(start[1], tuple) or any(values is None for values in start[1]):
            raise BatchUnsupported("starts do not specify their mode and all of its variables")
        own_entry = type(problem).entry is not HybridProblem.entry
        if own_entry and problem.start_formula(start[0]) is None:
            raise BatchUnsupported("the start of a run is decided in Python")

    def _elsewhere(self, run: _Recorded, name: str) -> tuple[float, np.ndarray]:
        """A state for a mode that the first member did not enter: the state of another mode, projected onto its
        constraints."""
        t, y = next(iter(run.entered.values()))
        form, k = run.forms[name], self.request.layout.n_q
        if not form.mechanical or k is None or form.problem.n_q != k:
            raise BatchUnsupported("a different type of state")
        state = np.concatenate([y[: 2 * k], np.zeros(form.n - 2 * k)])
        found = run.plan.settled(name, run.settings[name].request, t, state)
        if found is None:
            raise BatchUnsupported("no state is known")
        return t, found

    def _made_record(self, run: _Recorded, numbers: dict[str, int]) -> None:
        from daedal.ensembles.guards_kernel import HYBRID
        from daedal.kernels.records import Record

        request, modes = self.request, list(self._modes.values())
        assert request.layout is not None
        self.n, self._times = request.layout.n, np.ascontiguousarray(request.times)
        read = [mode.read for mode in modes if mode.read is not None]
        for mode in modes:
            mode.connect(numbers, self._names)
            if mode.read is not None and not _are_same(mode.params, run.problem.params):
                raise BatchUnsupported("modes have separate parameters")
        self._numbers = NumbersOf(request.problem.params, read[0] if read else None)
        settings = RunSettings.of(request.settings)
        self.record = Record.allocated(
            HYBRID,
            longest=max(mode.n for mode in modes),
            most_guards=max(mode.m for mode in modes),
            modes=np.array([mode.own.address for mode in modes], dtype=np.int64),
            n_modes=len(modes),
            first_mode=numbers[self._start],
            n_first=self._modes[self._start].n,
            first_typical_step=run.first_typical_step,
            t_begin=request.span[0],
            t_end=request.span[1],
            shortest=run.shortest,
            first_step=request.settings.first_step or 0.0,
            rtol=settings.rtol,
            records_idle=run.problem.records_idle,
            slices=_SLICES,
            times=self._times,
            n_times=self._times.size,
            n=self.n,
            max_events=settings.max_events,
            hopeless=float(max(settings.max_events, _LEAST_HOPELESS)),
            most_rows=_MOST_ROWS,
            n_names=max(len(self._names), 1),
        )

    def starts(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Rows (q, v, r) of the initial mode."""
        if not isinstance(chunk.starts, Vectors) or chunk.starts.mode != self._start:
            return None
        return self._modes[self._start].starts(Chunk(chunk.number, chunk.first, chunk.count, chunk.starts, None))

    def run(self, part: Part, chunk: Chunk, stopped: Callable[[], bool]) -> list[int]:
        """Run the members of a chunk; returns the rows that the driver must run."""
        from daedal.ensembles.modes_kernel import run_through_modes

        given, numbers = self.starts(chunk), self._numbers.rows(chunk)
        if given is None or numbers is None:
            return list(range(chunk.count))
        count, record, limit = chunk.count, self.record, self.request.member_timeout
        states, reasons = np.full((count, self._times.size, self.n), np.nan), np.zeros(count, dtype=np.int64)
        finals, ends = np.empty((count, self.n)), np.empty(count)
        for mode in self._modes.values():
            mode.record["numbers"] = numbers.ctypes.data
            mode.record["n_sets"], mode.record["n_numbers"] = numbers.shape
        places = {"starts": given[0], "states": states, "finals": finals, "ends": ends, "reasons": reasons}
        for name, array in places.items():
            record[name] = array.ctypes.data
        record["count"], record["member"], record["under_way"] = count, 0, 0
        events: list[tuple[Any, ...]] = []
        given_up: list[int] = []
        member, began = -1, time.monotonic()
        while int(record["member"]) < count and not stopped():
            run_through_modes(record.address)
            self._drain(events)
            now = int(record["member"])
            if now != member or not record["under_way"]:
                member, began = now, time.monotonic()
            elif limit is not None and time.monotonic() - began > limit:
                part.fail(now, f"the run took longer than member_timeout = {limit:g} s", TIMED_OUT)
                given_up.append(now)
                record["member"], record["under_way"] = now + 1, 0
        done = int(record["member"])
        part.events += [(part.first + k, *row) for k, *row in events if reasons[k] in _GOOD]
        left = self._keep(part, reasons[:done], states[:done], finals[:done], ends[:done])
        return [row for row in left if row not in given_up]

    def _drain(self, events: list[tuple[Any, ...]]) -> None:
        """Read the transitions from the table of the loop, and clear exceptions, which the driver reports."""
        rows = int(self.record["n_rows"])
        if self.request.keeps_events:
            found = zip(*(self.record.array(name)[:rows].tolist() for name in _COLUMNS))
            events += [(k, t, self._names[i], side, bool(ends)) for k, t, i, side, ends in found]
        self.record["n_rows"] = 0
        for mode in self._modes.values():
            mode.forget_exceptions()


class _Recorded(HybridRun):
    """A run that stores the state at which it first entered each mode."""

    def __init__(self, *arguments: Any):
        self.entered: dict[str, tuple[float, np.ndarray]] = {}
        super().__init__(*arguments)
        self.first_typical_step = self.typical_step

    def _integrate(self, events):
        self.entered.setdefault(self.mode, (self.t, self.begin.y.copy()))
        return super()._integrate(events)


class _Numbered:
    """Names and their numbers."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def number(self, name: str) -> int:
        """The number of a name, assigned on first use."""
        if name not in self._names:
            self._names.append(name)
        return self._names.index(name)

    def __getitem__(self, i: int) -> str:
        return self._names[i]

    def __len__(self) -> int:
        return len(self._names)


class _ModeBatch(MechanismBatch):
    """Batch of mechanisms for one mode, with the guards as terminal events."""

    def __init__(self, owner: ModesBatch, run: _Recorded, name: str, entered: tuple[float, np.ndarray]):
        self._run, self._name, (t, y) = run, name, entered
        form, guards, outer = run.forms[name], run.guards[name], owner.request
        if not form.mechanical:
            raise BatchUnsupported("not a mechanism")
        guards.prepare(t, y, None)
        self.m, self.params = len(guards), form.problem.params
        layout = outer.layout
        assert layout is not None
        if not self.m or form.labels[: layout.n] != layout.names:
            raise BatchUnsupported("a mode without guards, or with its own variables")
        self._functions = [_traceable(bound.transition.guard, form.problem) for bound in guards.transitions]
        settings = run.settings[name].request.settings
        events = [Event(function, terminal=True, name=f"guard {i}") for i, (function, _) in enumerate(self._functions)]
        request = EnsembleRequest(
            problem=form.problem,
            settings=replace(settings, events=events, first_step=None),
            span=(t, outer.span[1]),
            t_stop=outer.t_stop,
            layout=StateLayout(form.labels, form.problem.n_q),
        )
        plan = run.plan.plan(name, form.problem, settings)
        super().__init__(
            SimpleNamespace(request=request, solver=SimpleNamespace(plan=plan)), form.initial(y, None), None
        )

    def _made_of(self, ready, task, image, own, pointers, bridges) -> None:
        """Replace plain guards by guards that initially hold their sign; add resets and decisions."""
        from daedal.kernels.callbacks import Bridge

        self._system = system = self._used[0].plan.problem
        assembly = self._used[0].assembly
        code = guard_code(system, self._functions, task.switching.evaluate)
        guards, n_q = self._run.guards[self._name], system.n_q
        bounds = guards.traced({"y": n_q, "z": n_q}, 2 * n_q, self.params)  # same layout as in `solve`
        enclosed = (
            () if bounds is None or bounds.program is None else (Enclosed(bounds.program, 0, bounds.read, self.params),)
        )
        task.switching = replace(task.switching, compiled=code, enclosed=enclosed)
        self._further, self._projector = Bridge(), assembly.projector("M")
        transitions = [bound.transition for bound in self._run.guards[self._name].transitions]
        self._made = [(self._reset(t), self._decision(t)) for t in transitions]
        start = self._run.problem.start_formula(self._name)
        self._start = None if start is None else self._callback("start", start, 1)[0]
        super()._made_of(ready, task, image, own, pointers, [*bridges, self._further])
        self._first_state = np.zeros(self.n)
        self.record["starts"], self.record["count"] = self._first_state.ctypes.data, 1

    @property
    def read(self) -> Callable[[Any], np.ndarray] | None:
        """The function that converts parameters to numbers for machine code; None if the mode has no parameters."""
        return self._numbers._read

    def _callback(self, name: str, function: Callable[..., Any], size: int | None = None) -> tuple[Any, int]:
        """Convert a function of (t, q, v[, p]) to a callback of the state; also returns its number of results."""
        function, count = _traceable(function, self._system)
        code, found = state_code(self._system, name, function, count)
        if size is not None and found != size:
            raise BatchUnsupported(f"{name} has {found} results")
        store = store_vector(name, found)
        return self._further.function(code, (self._system.n,), (found,), store, self._system.params), found

    def _reset(self, transition) -> tuple[Any, int] | None:
        if transition.reset is None:
            return None
        if isinstance(transition.reset, Mapping) or hasattr(transition.reset, "with_params"):
            raise BatchUnsupported("several resets, or one that holds parameters")
        function, count = _traceable(transition.reset, self._system)
        return self._callback(f"reset of {transition.name}", _flat(function, count))

    def _decision(self, transition) -> Any:
        target = transition.target
        if isinstance(target, Decision):
            return self._callback(f"target of {transition.name}", target.number, 1)[0]
        if target is not None and not isinstance(target, str):
            raise BatchUnsupported("targets are named in Python")
        return None

    def connect(self, numbers: Mapping[str, int], names: _Numbered) -> None:
        """Build the record of the mode when the numbers of all modes are known."""
        from daedal.ensembles.guards_kernel import MODE
        from daedal.kernels.records import Record

        run, guards = self._run, self._run.guards[self._name]
        rtol, atol = (np.full(self.n, value) for value in run.settings[self._name].tolerances((self.n,)))
        self._transitions = [
            self._transition(bound, *made, numbers, names) for bound, made in zip(guards.transitions, self._made)
        ]
        self.own = Record.allocated(
            MODE,
            batch=self.record,
            n=self.n,
            n_q=self._system.n_q,
            m=self.m,
            direction=guards.direction.copy(),
            immediate=guards.immediate.astype(np.int64),
            owner=np.array(guards.owner, dtype=np.int64),
            transition_names=np.array([names.number(guards.transitions[i].name) for i in guards.owner], dtype=np.int64),
            names=np.array([names.number(name) for name in guards.names], dtype=np.int64),
            transitions=np.array([record.address for record in self._transitions], dtype=np.int64),
            n_transitions=len(self._transitions),
            rtol=rtol,
            atol=atol,
            projector=self._projector,
            **({} if self._start is None else {"start": self._start}),
        )

    def _transition(self, bound, reset, decision, numbers: Mapping[str, int], names: _Numbered):
        from daedal.ensembles.modes_kernel import ENDS, TRANSITION
        from daedal.kernels.records import Record

        transition, forms, size = bound.transition, self._run.forms, 0 if reset is None else reset[1]
        targets = transition.target.modes if decision is not None else (transition.target,)
        for other in (forms[name] for name in targets if name in numbers):
            if reset is None and other.labels != forms[self._name].labels:
                raise BatchUnsupported("states are matched by name")
            if reset is not None and size not in (2 * other.problem.n_q, other.n):
                raise BatchUnsupported("a reset returns a different number of values")
        callbacks = {} if reset is None else {"reset": reset[0]}
        return Record(
            TRANSITION,
            name=names.number(bound.name),
            targets=np.array([ENDS if name is None else numbers.get(name, -1) for name in targets], dtype=np.int64),
            n_targets=len(targets),
            n_reset=size,
            projects=bool(transition.project),
            **callbacks,
            **({} if decision is None else {"decision": decision}),
        )

    def forget_exceptions(self) -> None:
        """Clear exceptions of functions; the driver reports them."""
        for bridge in self._bridges:
            bridge.exception = None


def _are_same(params: Any, others: Any) -> bool:
    """Whether parameters are equal and in the same order."""
    if isinstance(params, Mapping) and isinstance(others, Mapping):
        return list(params) == list(others) and all(np.array_equal(params[name], others[name]) for name in params)
    return np.array_equal(params, others)


def _traceable(function: Any, problem: Any) -> tuple[Any, int]:
    """Check that a function takes (t, q, v) and possibly the parameters; also returns its number of arguments."""
    if isinstance(function, GuardOfRun) or positional_names(function) is None:
        raise BatchUnsupported("a function with unknown arguments")
    places = StateArguments(problem, problem.params is not None, True, ("lam", "r")).of(function, "a function")
    if not {TIME, FIRST, SECOND, PARAMS}.issuperset(places):
        raise BatchUnsupported("a function with arguments other than (t, q, v) and the parameters")
    return in_standard_form(function, places, True)


def _flat(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Make a reset return one vector."""
    if count == 4:
        return lambda t, q, v, p: np.concatenate([np.asarray(part) for part in function(t, q, v, p)])
    return lambda t, q, v: np.concatenate([np.asarray(part) for part in function(t, q, v)])
