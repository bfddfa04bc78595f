"""The first member: run in this process, it shows what states look like, how long a run takes and what it needs."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from daedal.ensembles.alarm import Alarm
from daedal.ensembles.columns import Chunk
from daedal.ensembles.part import Part
from daedal.ensembles.request import EnsembleRequest
from daedal.ensembles.work import Worker
from daedal.errors import InvalidProblemError
from daedal.hybrid.problem import HybridProblem

_LOADING = 60.0  # seconds that compiling and loading may take, before a function is taken to hang at the start


@dataclass
class Probe:
    """What the first member showed.

    Attributes
    ----------
    request : EnsembleRequest
        With the layout of states, if that was not known before.
    worker : Worker
        Ready for the other members.
    part : Part
        The result of the first member.
    seconds : float
        What one of the others will take, about.
    interpreter : str
        Why runs need the interpreter, so that threads would wait for each other; empty if they do not.
    is_batch : bool
        Whether members run in a batch kernel.
    """

    request: EnsembleRequest
    worker: Worker
    part: Part
    seconds: float
    interpreter: str
    is_batch: bool

    def again(self, chunk: Chunk) -> Part:
        """Run a second member, whose time is not that of compiling and loading; it stands in for one that failed."""
        failed = not self.worker.was_asked
        part, solution, self.seconds = _timed(self.worker, chunk)
        if failed:
            self._learn(chunk, part, solution)
        return part

    def _learn(self, chunk: Chunk, part: Part, solution: Any) -> None:
        """What a member shows: the layout of states, whether a batch kernel runs it, and what it needs if not."""
        if self.request.layout is None and part.layout is not None and not self.request.is_factory:
            self.request = replace(self.request, layout=part.layout)
            self.worker.adopt(self.request)
        fast = self.worker.try_batch(chunk, part)
        self.is_batch, self.seconds = fast is not None, fast or self.seconds
        self.interpreter = "" if self.is_batch else interpreter_needed(self.request, solution)


def probe(request: EnsembleRequest, chunk: Chunk) -> Probe:
    """Run the first member."""
    worker = Worker(request)
    if request.member_timeout is not None:
        with Alarm(max(request.member_timeout, _LOADING)):
            worker.warm_up(chunk)
    part, solution, seconds = _timed(worker, chunk)
    message = part.messages.get(chunk.first, "")
    if message.startswith("outputs: "):
        raise InvalidProblemError(message)
    found = Probe(request, worker, part, seconds, "", False)
    found._learn(chunk, part, solution)
    return found


def _timed(worker: Worker, chunk: Chunk) -> tuple[Part, Any, float]:
    """The first member of a chunk, run in this thread: its result, its solution and the seconds it took."""
    part, limit, began = Part.empty(chunk), worker.request.member_timeout, time.perf_counter()
    with nullcontext() if limit is None else Alarm(limit):
        solution = worker.member(part, 0, chunk)
    return part, solution, time.perf_counter() - began


def interpreter_needed(request: EnsembleRequest, solution: Any) -> str:
    """Why runs of a request hold the interpreter most of the time."""
    if request.is_factory:
        return "each member builds its problem in Python"
    if isinstance(request.problem, HybridProblem):
        return "runs through modes are led by Python"
    functions = getattr(solution, "functions", None)
    called = [name for name, words in (functions or {}).items() if words == "Python" or words.startswith("Python")]
    if called:
        return f"{', '.join(called)} {'is' if len(called) == 1 else 'are'} called in Python"
    if callable(request.outputs):
        return "outputs is a function in Python"
    return ""
