"""The work on a chunk, the same for threads, processes and executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daedal.ensembles.columns import Chunk
from daedal.ensembles.member import Runner
from daedal.ensembles.part import Part
from daedal.ensembles.request import EnsembleRequest


class Worker:
    """Runs chunks; made once in each process, and used by all of its threads."""

    def __init__(self, request: EnsembleRequest):
        self.request = request
        self.runner = Runner(request)

    def __call__(self, chunk: Chunk, stopped: Callable[[], bool] = lambda: False) -> Part:
        """The results of a chunk; members behind a stop are not run."""
        part = Part.empty(chunk)
        for row in range(chunk.count):
            if stopped():
                break
            self.member(part, row, chunk)
        return part

    def adopt(self, request: EnsembleRequest) -> None:
        """Go on with what the first member has shown."""
        self.request = self.runner.request = request

    def batch(self, part: Part, chunk: Chunk, solution: Any) -> float | None:
        """Make a batch kernel ready where there is one; the seconds that it takes for a member."""
        return None

    def member(self, part: Part, row: int, chunk: Chunk) -> Any:
        """Solve one member of a chunk."""
        return self.runner.run(part, row, *chunk.member(row))
