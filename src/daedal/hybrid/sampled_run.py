"""Runs of ``solve(..., sampled=...)``: a controller in discrete time sets the inputs."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from daedal.common.progress import Progress
from daedal.driver.request import Request
from daedal.driver.run_segments import Begun
from daedal.errors import InvalidProblemError
from daedal.hybrid.guards import Instant
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.hybrid.hybrid_run import HybridRun, in_pieces
from daedal.hybrid.hybrid_solution import HybridSolution
from daedal.hybrid.mode_plans import HybridPlan
from daedal.hybrid.mode_state import ModeInitial
from daedal.hybrid.sampled_control import Recording, Sampled
from daedal.problems.named_inputs import Inputs, Signal, require_inputs


class ControlledSignal(Signal):
    """An input that a controller sets during a run, constant between the instants of its calls."""

    def __init__(self, first: Any):
        self.times = np.zeros(0)  # no break points, since the run itself ends its segments at the jumps
        self._search: list[float] = []
        self._values = [first]

    def append(self, t: float, value: Any) -> None:
        """Set the value from t on."""
        self._search.append(t)
        self._values.append(value)

    def course(self, t: float) -> Any:
        """The value at t."""
        return self._values[bisect_right(self._search, float(t))]

    __call__ = course


class SampledRun(HybridRun):
    """A run in which the controller is called at the start of each segment, unless that is another break point."""

    def __init__(self, request: Request, pieces: list[tuple[float, float]], progress: Progress, sampled: Sampled):
        stated = {name: x for name, x in _inputs(request.problem).items() if not callable(x)}
        if not stated:
            raise InvalidProblemError(
                "sampled: all inputs are functions of time or samples; the controller has none to set. Remedy: omit "
                "one from inputs, or pass a number for it, the value before the controller acts"
            )
        self._chosen, self._signals = Inputs(stated), {name: ControlledSignal(value) for name, value in stated.items()}
        self._now_set = dict(stated)
        self._act: Callable[..., Any] = sampled.begin(self._chosen.vector(stated))
        self._dt, self._calls = sampled.dt, 0
        self._end: Instant | None = None
        self._record: list[tuple[float, np.ndarray, np.ndarray]] = []
        request = request.changed(problem=request.problem.with_inputs(self._signals))
        super().__init__(request, pieces, progress, HybridPlan(request.problem))
        self._check_start()
        self._control(self.begin.y)
        self._take_inputs()
        form = self.forms_here[self.mode]
        if form.split is not None or form.implicit:  # algebraic variables follow from the inputs
            self.given = None
            self.begin = self._consistent(self.mode, ModeInitial(self.begin.y, None, True))

    def _check_start(self):
        """Raise for initial values that are inconsistent before the controller acts."""
        request = self._request_of(self.mode).changed(
            span=self.request.span,
            initial=self.given,
            times=np.zeros(0),
            began=time.perf_counter(),
            correct_initial=self.begin.correct,
            begins_only=True,
        )
        with suppress(Begun):
            self.plan.stretch(self.mode, request)

    def _end_piece(self, end: Instant | None):
        self._end = end
        super()._end_piece(end)

    def _take_inputs(self):
        if self._end is not None and self.pieces[self.piece][0] >= self._due():
            self._control(self._end.y)
        super()._take_inputs()

    def _due(self) -> float:
        """The time of the next call, reduced by a small fraction of `dt` to allow for rounding errors."""
        return self.request.span[0] + (self._calls - 1e-6) * self._dt

    def _control(self, y: np.ndarray):
        t = self.pieces[self.piece][0]
        seen = self._seen(y)
        result = self._act(t, seen.copy())
        try:
            given = self._chosen.signals(result)
        except InvalidProblemError as error:
            raise type(error)(f"the result of the controller at t = {t:g}: {error}") from None
        for name, value in given.items():
            if callable(value):
                raise InvalidProblemError(f"the controller returned {value!r} for '{name}' at t = {t:g}, not a number")
        self._now_set |= given
        for name, signal in self._signals.items():
            signal.append(t, self._now_set[name])
        self._calls += 1
        self._record.append((t, seen, self._chosen.vector(self._now_set)))

    @property
    def _labels(self) -> dict[str, int]:
        """Names and indices of the variables that the controller reads, without internal variables of a mode."""
        form, hidden = self.forms[self.mode], self.problem.hidden_names(self.mode)
        labels = form.labels[: form.problem.n] if form.second_order else form.labels
        return {label: i for i, label in enumerate(labels) if label not in hidden}

    def _seen(self, y: np.ndarray) -> np.ndarray:
        return y[list(self._labels.values())]

    def _finish(self, success: bool, status: str, message: str) -> HybridSolution:
        solution = super()._finish(success, status, message)
        t, y, u = zip(*self._record) if self._record else ((), (), ())
        same = len({x.size for x in y}) <= 1
        solution.sampled = Recording(
            np.array(t),
            np.array(y).T if same else np.zeros((0, len(t))),
            np.array(u).T,
            tuple(self._labels),
            self._chosen.labels,
        )
        return solution


def _inputs(problem: Any) -> dict[str, Any]:
    """The inputs of a problem, or of its first mode that has some."""
    holder = getattr(problem, "parameter_holder", None) or problem
    if isinstance(holder, HybridProblem):
        holder = next(mode.problem for mode in holder.modes.values() if getattr(mode.problem, "inputs", None))
    return dict(holder.params.inputs)


def solve_sampled(request: Request, sampled: Any, breakpoints: Any) -> HybridSolution:
    """Solve a problem of any class with a controller in discrete time; see `sampled` of :func:`daedal.solve`."""
    if not isinstance(sampled, Sampled):
        raise InvalidProblemError(
            f"sampled must be a daedal.simulation.Sampled(controller, dt), got {type(sampled).__name__}"
        )
    if request.settings.sensitivities is not None:
        raise InvalidProblemError("sampled and sensitivities exclude each other: a controller is not differentiated")
    t0, t1 = request.span
    if not t1 > t0:
        raise InvalidProblemError(f"sampled: a controller acts forwards only, but t_span is ({t0:g}, {t1:g})")
    instants = t0 + sampled.dt * np.arange(1, int(np.ceil((t1 - t0) / sampled.dt)))
    points = [instants] if breakpoints is None else [instants, *breakpoints]
    require_inputs(request.problem)
    request, pieces = in_pieces(request, points, "sampled")
    progress = Progress(request.progress, request.span)
    try:
        return SampledRun(request, pieces, progress, sampled).to_the_end()
    finally:
        progress.close()
