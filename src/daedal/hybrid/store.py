"""What is kept of a run through modes."""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from daedal.common.tabular import FunctionTable
from daedal.events.table import EventTable
from daedal.hybrid.hybrid_event import HybridEvent
from daedal.hybrid.problem import HybridProblem
from daedal.hybrid.segments import HybridSegment, ModeOutput, add_drift
from daedal.hybrid.solution import HybridSolution
from daedal.hybrid.state_form import StateForm
from daedal.solution.solution import Solution, Statistics

_COUNTERS = tuple(f.name for f in fields(Statistics) if f.name not in ("seconds", "first_use"))


class OutputStore:
    """Output points, solutions of the segments and events, as far as they are asked for; sums of the rest."""

    def __init__(
        self, problem: HybridProblem, forms: Mapping[str, StateForm], keeps_segments: bool, records_events: bool
    ):
        self._forms, self._contacts, self._derived = forms, problem.contact_record(), problem.derived()
        self._hidden = problem.hidden_names
        self._keeps_segments, self._records_events = keeps_segments, records_events
        self._index = {name: i for i, name in enumerate(problem.mode_names)}  # and what is met on the way
        self.segments: list[HybridSegment] = []
        self.chunks: list[ModeOutput] = []
        self.events: list[HybridEvent] = []
        self.n_events = 0
        self._counts = dict.fromkeys(_COUNTERS, 0)
        self._drift: dict[str, float] = {}
        self._functions: dict[str, FunctionTable] = {}

    @property
    def is_empty(self) -> bool:
        return not self.chunks and not self.n_events

    def record(self, event: HybridEvent):
        """Note an event."""
        self.n_events += event.kind in ("transition", "immediate", "zeno")
        if self._records_events:
            self.events.append(event)

    def add(self, mode: str, t0: float, t1: float, solution: Solution, count: int):
        """Keep a stretch in one mode, with the first `count` of its points as output."""
        for name in _COUNTERS:
            self._counts[name] += getattr(solution.stats, name)
        form = self._forms[mode]
        self._functions[mode] = solution.functions
        if self._keeps_segments:
            self.segments.append(HybridSegment(mode, t0, t1, solution, self._labels(mode)))
        else:
            add_drift(self._drift, solution)
        if count or self._keeps_segments:
            index = self._index.setdefault(mode, len(self._index))
            self.chunks.append(ModeOutput(index, solution.t[:count], form.output(solution)[:, :count]))

    def add_point(self, mode: str, t: float, y: np.ndarray):
        """Keep a single output point, at which a run ends that has just passed a break point."""
        index = self._index.setdefault(mode, len(self._index))
        self.chunks.append(ModeOutput(index, np.array([t]), y[:, None].copy()))

    def _labels(self, mode: str) -> tuple[str, ...]:
        """The names of the variables of a mode, without those at its end that are the model's own."""
        hidden = self._hidden(mode)
        return tuple(label for label in self._forms[mode].labels if label not in hidden)

    def drop_last_point(self):
        """Forget the last output point, for which a later state is to come."""
        last = next(i for i in reversed(range(len(self.chunks))) if self.chunks[i].t.size)
        chunk = self.chunks[last]
        self.chunks[last] = ModeOutput(chunk.mode, chunk.t[:-1], chunk.y[:, :-1])

    def finish(self, success: bool, status: str, message: str, seconds: float) -> HybridSolution:
        """The solution, of what there is."""
        forms = [self._forms[name] for name in self._index]
        named = dict.fromkeys([*self._index, *(event.source for event in self.events)])
        return HybridSolution(
            modes=tuple(self._index),
            labels=[self._labels(name) for name in self._index],
            n_q=[getattr(form.problem, "n_q", None) for form in forms],
            chunks=self.chunks,
            segments=self.segments,
            events=EventTable(self.events, {name: self._labels(name) for name in named}),
            n_events=self.n_events,
            success=success,
            status=status,
            message=message,
            stats=Statistics(**self._counts, seconds=seconds),
            drift=self._drift,
            functions=self._functions,
            contacts=self._contacts,
            hidden={name: hidden for name in self._index if (hidden := self._hidden(name))},
            derived=self._derived,
        )
