"""Computation of a chunk, common to threads, processes and executors."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from types import FrameType
from typing import Any

import numpy as np

from daedal.driver.solver import Solver
from daedal.ensembles.columns import Chunk
from daedal.ensembles.inputs import EnsembleRequest
from daedal.ensembles.part import EVENT, FINISHED, TIMED_OUT, Part, layout_of_solution
from daedal.errors import DaedalError, InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.problems import ImplicitDAE, MechanicalSystem, SemiExplicitDAE


class MemberTimeout(DaedalError):
    """A run has exceeded its time limit."""


class Deadline:
    """Checks the clock whenever a run reports its progress."""

    def __init__(self, seconds: float):
        self._seconds, self._end = seconds, time.monotonic() + seconds

    def __call__(self, t: float) -> None:
        if time.monotonic() > self._end:
            raise MemberTimeout(
                f"the run took longer than member_timeout = {self._seconds:g} s; it had reached t = {t:g}"
            )


_WARM = 1e-3  # fraction of the interval covered by a run that only loads code


class Runner:
    """Solves members one at a time, from any thread."""

    def __init__(self, request: EnsembleRequest):
        self.request = request
        self.solver: Solver[Any] | None = None if request.is_factory else Solver(request.problem, request.settings)

    def solution(self, start: Any, params: Any) -> Any:
        """The solution of one run."""
        request, solver = self.request, self.solver
        if solver is None:
            made = request.problem(**(params or {}))
            problem, start = made if isinstance(made, tuple) else (made, start)
            solver, params = Solver(problem, request.settings), None
        progress: Any = False if request.member_timeout is None else Deadline(request.member_timeout)
        whole = callable(request.outputs)
        times = request.t_eval if whole else request.times
        return solver.solve(request.span, start, params, t_eval=times, t_stop=request.t_stop, progress=progress)

    def warm_up(self, start: Any, params: Any) -> None:
        """Load code by a short run, so that the time limit of a member does not include loading."""
        request, (t0, t1) = self.request, self.request.span
        short = replace(
            request,
            span=(t0, t0 + _WARM * (t1 - t0)),
            t_eval=None,
            t_stop=None,
            outputs=None,
            member_timeout=None,
            settings=replace(request.settings, first_step=None, fixed_step=None),
        )
        with suppress(Exception):  # the member itself reports the error
            self.request = short
            try:
                self.solution(start, params)
            finally:
                self.request = request

    def run(self, part: Part, row: int, start: Any, params: Any) -> Any:
        """Solve one member and store its results; returns its solution, or None."""
        solution = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                solution = self.solution(start, params)
            store(self.request, part, row, solution)
            return solution
        except MemberTimeout as error:
            part.fail(row, str(error), TIMED_OUT)
        except Exception as error:  # user functions may raise anything
            part.fail(row, in_words(error))
            _salvage(self.request, part, row, getattr(error, "solution", None))
        return solution


def in_words(error: BaseException) -> str:
    """The message of a member; exceptions raised outside Daedal include their type."""
    text = str(error)
    return text if isinstance(error, DaedalError) and text else f"{type(error).__name__}: {text}".rstrip(": ")


def store(request: EnsembleRequest, part: Part, row: int, solution: Any) -> None:
    """Store the requested quantities of a successful solution."""
    if not solution.success:
        raise DaedalError(solution.message)
    layout = request.layout or part.layout or layout_of_solution(request.problem, solution)
    part.layout = layout
    ended_by_event = solution.status == "event"
    last = _final(layout, solution, ended_by_event)
    if not np.all(np.isfinite(last[1])) and not np.any(np.isfinite(last[1])):
        raise DaedalError("the run ended without a finite state")
    part.t_final[row] = last[0]
    part.write("final", row, last[1])
    if request.keeps_states and request.n_times:
        part.write("y", row, _at_times(request, layout, solution))
    for name, values in _outputs(request, layout, solution, last[1]).items():
        part.write(f"output:{name}", row, values)
    part.status[row] = EVENT if ended_by_event else FINISHED
    if request.keeps_events:
        part.events += events_of(part.first + row, solution)


def _final(layout: Any, solution: Any, ended_by_event: bool) -> tuple[float, np.ndarray]:
    """Time and state at the end of a run."""
    if ended_by_event:
        record = next(r for r in reversed(list(solution.events)) if getattr(r, "terminal", True))
        if not solution.t.size or solution.t[-1] != record.t:
            return float(record.t), layout.state(solution, record)
    return float(solution.t[-1]), layout.rows(solution)[:, -1]


def _at_times(request: EnsembleRequest, layout: Any, solution: Any) -> np.ndarray:
    """States at t_eval; NaN after the end of the run."""
    result = np.full((layout.n, request.n_times), np.nan)
    count = min(solution.t.size, request.n_times)
    if callable(request.outputs) or np.array_equal(solution.t[:count], request.t_eval[:count]):  # type: ignore[index]
        result[:, :count] = layout.rows(solution)[:, :count]
    return result


def _outputs(request: EnsembleRequest, layout: Any, solution: Any, final: np.ndarray) -> dict[str, Any]:
    """The outputs of one run by name; `final` is the state at its end."""
    outputs = request.outputs
    if outputs is None:
        return {}
    if not callable(outputs):
        ends = {} if request.n_times else dict(zip(layout.names, final))
        return {name: ends[name] if name in ends else _named_output(request, solution, name) for name in outputs}
    values = outputs(solution)
    if isinstance(values, Mapping):
        return {str(name): value for name, value in values.items()}
    return {getattr(outputs, "__name__", "output").strip("<>"): values}


def _named_output(request: EnsembleRequest, solution: Any, name: str) -> Any:
    """A variable at t_eval, or at the end if no times were given."""
    try:
        values = np.asarray(solution[name])
    except KeyError as error:
        raise InvalidProblemError(f"outputs: {error.args[0]}") from None
    if not request.n_times:
        return values[-1]
    result = np.full(request.n_times, np.nan)
    count = min(values.size, request.n_times)
    result[:count] = values[:count]
    return result


def events_of(member: int, solution: Any) -> list[tuple[Any, ...]]:
    """The events of a run as rows."""
    return [
        (
            member,
            float(r.t),
            str(r.name),
            int(r.direction),
            bool(getattr(r, "terminal", getattr(r, "target", 0) is None)),
        )
        for r in solution.events
    ]


def _salvage(request: EnsembleRequest, part: Part, row: int, solution: Any) -> None:
    """Store the results of a failed run up to the failure."""
    if solution is None or not solution.t.size:
        return
    part.t_final[row] = float(solution.t[-1])
    try:
        layout = request.layout or part.layout or layout_of_solution(request.problem, solution)
        if request.keeps_states and request.n_times:
            part.write("y", row, _at_times(request, layout, solution))
            part.layout = layout
    except Exception:  # the results may have any shape; the message is kept
        return


# --- a time limit that interrupts user functions, in the main thread of a process -------------------------------------

_AGAIN = 0.05  # seconds to the next check, if no user function is running
_ENTRY = ("callbacks.py", "entry")  # the frame through which kernels call a user's function


class Alarm:
    """Raises :class:`MemberTimeout` in a user's function that exceeds a time limit in seconds.

    The error is raised only in user functions, since an exception during an import would leave a partial module.
    Compiled loops check the clock themselves. An alarm has no effect outside the main thread or without signals.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._before: Any = None
        self._set = hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._set:
            self._before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, self._seconds, _AGAIN)

    def __exit__(self, *exception: Any) -> None:
        if self._set:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_name == _ENTRY[1] and frame.f_code.co_filename.endswith(_ENTRY[0]):
                raise MemberTimeout(f"the run took longer than member_timeout = {self._seconds:g} s")
            frame = frame.f_back


# --- workers ----------------------------------------------------------------------------------------------------------

_TRIAL = 8  # number of runs whose time is measured


class Worker:
    """Runs chunks; created once in each process, and shared by its threads."""

    def __init__(self, request: EnsembleRequest):
        self.request = request
        self.runner = Runner(request)
        self._first: tuple[Any, Any] | None = None  # start and parameters of a member that a batch kernel supports
        self._asked = False
        self.is_warm = False
        self._own = threading.local()

    def __call__(self, chunk: Chunk, stopped: Callable[[], bool] = lambda: False) -> Part:
        """Run the members of a chunk; those after a stop are not run."""
        part = Part.empty(chunk)
        if not self._asked:
            self.try_batch(chunk)
        rows: Any = range(chunk.count)
        if self._first is not None:
            rows = self._batch().run(part, chunk, stopped)
            part.fell_back = len(rows)
        for row in rows:
            if stopped():
                break
            self.member(part, row, chunk)
        part.events.sort(key=itemgetter(0))  # a stable sort: events of one member remain in order
        return part

    def member(self, part: Part, row: int, chunk: Chunk) -> Any:
        """Solve one member of a chunk with the driver."""
        return self.runner.run(part, row, *chunk.member(row))

    def warm_up(self, chunk: Chunk) -> None:
        """Load the code for runs before the first member with a time limit."""
        self.is_warm = True
        self.runner.warm_up(*chunk.member(0))

    def adopt(self, request: EnsembleRequest) -> None:
        """Use the results of the first member."""
        self.request = self.runner.request = request

    # --- batches ------------------------------------------------------------------------------------------------------

    def try_batch(self, chunk: Chunk, known: Part | None = None) -> float | None:
        """Time of the first member in a batch kernel; None if it does not run there bit-identically to the driver.

        The batch kernel then runs the other members; members that it does not support are left to the driver.
        """
        self._asked = True
        [first] = chunk.only([0])
        if known is None:
            known = Part.empty(first)
            self.member(known, 0, first)
        if known.status[0] not in (FINISHED, EVENT):
            self._asked = False  # a failed member does not show whether a batch kernel applies; try another member
            return None
        member = first.member(0)
        batch = self._made(*member)
        if batch is None:
            return None
        tried = Part.empty(first)
        if batch.run(tried, first, lambda: False) or not _same(tried, known):
            return None
        self._first, self._own.batch = member, batch
        several = replace(first, count=_TRIAL)  # repeats one member
        began = time.perf_counter()
        batch.run(Part.empty(several), several, lambda: False)
        return (time.perf_counter() - began) / _TRIAL

    @property
    def was_asked(self) -> bool:
        """Whether it is known if a batch kernel applies, from a successful member."""
        return self._asked

    def _batch(self) -> Any:
        """The batch kernel of this thread."""
        if not hasattr(self._own, "batch"):
            assert self._first is not None
            self._own.batch = self._made(*self._first)
        return self._own.batch

    def _made(self, start: Any, params: Any) -> Any:
        """A batch kernel for members with starts and parameters of this form; None if unavailable."""
        from daedal.ensembles.batch import BatchUnsupported, FirstOrderBatch, MechanismBatch
        from daedal.ensembles.batch_modes import ModesBatch

        problem = self.request.problem
        kinds: dict[Any, Any] = {
            MechanicalSystem: MechanismBatch,
            ImplicitDAE: FirstOrderBatch,
            SemiExplicitDAE: FirstOrderBatch,
        }
        kinds[HybridProblem] = ModesBatch
        kind: Any = next((kind for known, kind in kinds.items() if isinstance(problem, known)), None)
        try:
            return None if kind is None else kind(self.runner, start, params)
        except (BatchUnsupported, DaedalError):
            return None


def _same(one: Part, other: Part) -> bool:
    """Whether two parts are bit-identical."""
    if one.events != other.events or not np.array_equal(one.t_final, other.t_final):
        return False
    return one.arrays.keys() == other.arrays.keys() and all(
        np.array_equal(values, other.arrays[name], equal_nan=True) for name, values in one.arrays.items()
    )
