"""One member: the ordinary solver, with a limit of time, and what is kept of its solution."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.drive.solver import Solver
from daedal.ensembles.layout import layout_of_solution
from daedal.ensembles.part import EVENT, FINISHED, TIMED_OUT, Part
from daedal.ensembles.request import EnsembleRequest
from daedal.errors import DaedalError, InvalidProblemError


class MemberTimeout(DaedalError):
    """A run has taken longer than it may."""


class Deadline:
    """Looks at the clock whenever a run reports its progress."""

    def __init__(self, seconds: float):
        self._seconds, self._end = seconds, time.monotonic() + seconds

    def __call__(self, t: float) -> None:
        if time.monotonic() > self._end:
            raise MemberTimeout(
                f"the run took longer than member_timeout = {self._seconds:g} s; it had come to t = {t:g}"
            )


_WARM = 1e-3  # part of the interval


class Runner:
    """Solves members one at a time, from any thread."""

    def __init__(self, request: EnsembleRequest):
        self.request = request
        self.solver = None if request.is_factory else Solver(request.problem, request.settings)

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
        """Load what a run needs, by a short one, so that members with a limit of time do not wait for it."""
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
        with suppress(Exception):  # the member itself will say what is wrong
            self.request = short
            try:
                self.solution(start, params)
            finally:
                self.request = request

    def run(self, part: Part, row: int, start: Any, params: Any) -> Any:
        """Solve one member and store what is kept of it; its solution, or None."""
        solution = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                solution = self.solution(start, params)
            store(self.request, part, row, solution)
            return solution
        except MemberTimeout as error:
            part.fail(row, str(error), TIMED_OUT)
        except Exception as error:  # anything may be raised by the user's functions
            part.fail(row, in_words(error))
            _salvage(self.request, part, row, getattr(error, "solution", None))
        return solution


def in_words(error: BaseException) -> str:
    """The message of a member; of exceptions that are not Daedal's with their type."""
    text = str(error)
    return text if isinstance(error, DaedalError) and text else f"{type(error).__name__}: {text}".rstrip(": ")


def store(request: EnsembleRequest, part: Part, row: int, solution: Any) -> None:
    """Keep what was asked for of a solution that came through."""
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
    """States at t_eval; nan behind the end of the run."""
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
    """A variable at t_eval, or at the end where there is none."""
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
    """Keep what a run that failed had computed."""
    if solution is None or not solution.t.size:
        return
    part.t_final[row] = float(solution.t[-1])
    try:
        layout = request.layout or part.layout or layout_of_solution(request.problem, solution)
        if request.keeps_states and request.n_times:
            part.write("y", row, _at_times(request, layout, solution))
            part.layout = layout
    except Exception:  # what was computed may be of any shape; the message stands
        return
