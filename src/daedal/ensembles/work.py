"""The work on a chunk, the same for threads, processes and executors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from daedal.ensembles.columns import Chunk
from daedal.ensembles.member import Runner
from daedal.ensembles.part import EVENT, FINISHED, Part
from daedal.ensembles.request import EnsembleRequest
from daedal.errors import DaedalError
from daedal.hybrid.problem import HybridProblem
from daedal.problems import ImplicitDAE, MechanicalSystem, SemiExplicitDAE

_TRIAL = 8  # runs that are timed


class Worker:
    """Runs chunks; made once in each process, and used by all of its threads."""

    def __init__(self, request: EnsembleRequest):
        self.request = request
        self.runner = Runner(request)
        self._first: tuple[Any, Any] | None = None  # start and parameters of a member that a batch kernel can run
        self._asked = False
        self.is_warm = False
        self._own = threading.local()

    def __call__(self, chunk: Chunk, stopped: Callable[[], bool] = lambda: False) -> Part:
        """The results of a chunk; members behind a stop are not run."""
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
        part.events.sort(key=itemgetter(0))  # those of one member stay in their order
        return part

    def member(self, part: Part, row: int, chunk: Chunk) -> Any:
        """Solve one member of a chunk with the driver."""
        return self.runner.run(part, row, *chunk.member(row))

    def warm_up(self, chunk: Chunk) -> None:
        """Load what runs need before the first of them that has a limit of time."""
        self.is_warm = True
        self.runner.warm_up(*chunk.member(0))

    def adopt(self, request: EnsembleRequest) -> None:
        """Go on with what the first member has shown."""
        self.request = self.runner.request = request

    # --- batches ------------------------------------------------------------------------------------------------------

    def try_batch(self, chunk: Chunk, known: Part | None = None) -> float | None:
        """Whether a batch kernel runs the first member of a chunk as the driver does, bit for bit; then its seconds.

        It is used for all others then, with whatever it cannot do left to the driver.
        """
        self._asked = True
        [first] = chunk.only([0])
        if known is None:
            known = Part.empty(first)
            self.member(known, 0, first)
        if known.status[0] not in (FINISHED, EVENT):
            return None
        member = first.member(0)
        batch = self._made(*member)
        if batch is None:
            return None
        tried = Part.empty(first)
        if batch.run(tried, first, lambda: False) or not _same(tried, known):
            return None
        self._first, self._own.batch = member, batch
        several = replace(first, count=_TRIAL)  # the same member again and again
        began = time.perf_counter()
        batch.run(Part.empty(several), several, lambda: False)
        return (time.perf_counter() - began) / _TRIAL

    def _batch(self) -> Any:
        """The batch kernel of this thread."""
        if not hasattr(self._own, "batch"):
            assert self._first is not None
            self._own.batch = self._made(*self._first)
        return self._own.batch

    def _made(self, start: Any, params: Any) -> Any:
        """A batch kernel for members like this one; None if there is none."""
        from daedal.ensembles.batch import Unsuited
        from daedal.ensembles.batch_first_order import FirstOrderBatch
        from daedal.ensembles.batch_mechanism import MechanismBatch
        from daedal.ensembles.batch_modes import ModesBatch

        problem = self.request.problem
        kinds = {MechanicalSystem: MechanismBatch, ImplicitDAE: FirstOrderBatch, SemiExplicitDAE: FirstOrderBatch}
        kinds[HybridProblem] = ModesBatch
        kind: Any = next((kind for known, kind in kinds.items() if isinstance(problem, known)), None)
        try:
            return None if kind is None else kind(self.runner, start, params)
        except (Unsuited, DaedalError):
            return None


def _same(one: Part, other: Part) -> bool:
    """Whether two parts hold the same bits."""
    if one.events != other.events or not np.array_equal(one.t_final, other.t_final):
        return False
    return one.arrays.keys() == other.arrays.keys() and all(
        np.array_equal(values, other.arrays[name], equal_nan=True) for name, values in one.arrays.items()
    )
