"""Quantities that a model computes from the states of its modes, such as the force of friction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.solution.quantities import Quantity


@dataclass(frozen=True)
class Derived:
    """Quantities that ``sol[name]`` gives in all modes.

    Attributes
    ----------
    names : tuple of str
    function : callable or None
        ``function(mode, t, q, v, lam)`` returns their values; None of a solution that was stored.
    values : numpy.ndarray or None
        Their values at the output points, of a solution that was stored.
    """

    names: tuple[str, ...]
    function: Callable[..., Sequence[float]] | None = None
    values: np.ndarray | None = None

    def quantities(self, solution: Any, t: Any = None) -> list[Quantity]:
        """The quantities at the output points or at given times; none if too little was kept to compute them."""
        if self.values is None and (self.function is None or not solution.segments):
            return []
        known = t is None or self.function is not None
        return [Quantity("derived", "quantity", self.names, partial(self._rows, solution, t), (), known)]

    def _rows(self, solution: Any, t: Any) -> np.ndarray:
        if t is None and self.values is not None:
            return self.values
        if self.function is None:
            raise InvalidProblemError(
                f"{', '.join(self.names)}: the functions of the model were not stored; known at the output points only"
            )
        count = solution.t.size if t is None else np.size(t)
        rows = np.full((len(self.names), count), np.nan)
        for segment, here, times, q, v, lam in solution.each_segment(t):
            found = [self.function(segment.mode, *point) for point in zip(times.tolist(), q.T, v.T, lam.T)]
            rows[:, here] = np.array(found, dtype=float).reshape(len(found), len(self.names)).T
        return rows

    def stored(self, solution: Any) -> Derived:
        """The same without the function."""
        if self.function is None:
            return self
        return Derived(self.names, None, self._rows(solution, None) if solution.segments else None)
