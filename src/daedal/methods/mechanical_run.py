"""Common base of runs of half-explicit methods on mechanisms: the initial guess of the multipliers."""

from __future__ import annotations

from daedal.methods.run import OneStepRun
from daedal.methods.task import Equations, Task


class MechanicalRun(OneStepRun):
    """A run on a mechanism, with forces that may depend on w and on the multipliers."""

    def __init__(self, method, equations: Equations, **options):
        super().__init__(method, equations, **options)
        mechanism = equations.mechanism
        first = mechanism.m * mechanism.nx + mechanism.n_r
        coupled = mechanism.n_w or bool(mechanism.record["uses_multipliers"])
        self._guess = mechanism.record.array("state")[first:] if coupled else None
        self._rows = mechanism.rows

    def load(self, task: Task) -> None:
        """Load the initial guess of w and the multipliers."""
        if self._guess is not None:
            n_w = self.equations.mechanism.n_w
            self._guess[:] = 0.0
            if task.guess is not None:
                self._guess[:n_w] = task.guess[:n_w]
                self._guess[n_w + self._rows] = task.guess[n_w:]
