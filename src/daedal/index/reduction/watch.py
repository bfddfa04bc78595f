"""Monitoring of a selection during one run."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.symbolic.tracing.parameters import NAME


class PivotWatch:
    """The hook called after every accepted step of a run, with its own memory.

    Parameters
    ----------
    reduced : ReducedProblem
        Its selection may change between segments; its blocks do not.
    """

    def __init__(self, reduced: ReducedProblem):
        from daedal.index.reduction.pivots import BLOCK, WATCH, watch_hook
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Record

        code = reduced.block_code
        self._memory = np.zeros(code.size)
        self._numbers = self._memory[code.slices[NAME]]
        self.scale, self._rows, self._blocks = np.zeros(reduced.problem.n), [], []
        for k, block in enumerate(reduced.tied):
            n = len(block.columns)
            record = Record.allocated(
                BLOCK,
                columns=n,
                equations=len(block.rows),
                places=reduced.places(block.columns),
                values=self._memory[reduced.block_values(k)],
                matrix=dense_lu(n),
            )
            self._rows.append(record.array("rows"))
            self._blocks.append(record)
        self._record = Record(
            WATCH,
            n=reduced.problem.n,
            code=code.address,
            block=self._memory,
            blocks=len(self._blocks),
            addresses=np.array([record.address for record in self._blocks], dtype=np.int64),
            scale=self.scale,
        )
        self._code = code
        self.hook: tuple[Any, Any] = watch_hook, self._record

    def begin(self, reduced: ReducedProblem, scale: np.ndarray, limit: float) -> None:
        """Monitor a selection; `scale` are the sizes of the unknowns so far."""
        self._numbers[:] = reduced.constraints.numbers
        self.scale[:] = scale
        self._record["limit"] = limit
        chosen = [rows for block, rows in zip(reduced.blocks, reduced.chosen, strict=True) if block.rows and block.free]
        for rows, own in zip(self._rows, chosen, strict=True):
            rows[:] = own
