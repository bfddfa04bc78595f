"""Sensitivities of a run through modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.sensitivity.result import column_of


class HybridSensitivities:
    """The sensitivities of all stretches; nan where a mode does not have a variable, or no derivative exists.

    Attributes
    ----------
    names : tuple of str
        Parameters with respect to which the solution was differentiated.
    parts : list
        For each segment of the solution its own solution with sensitivities, or None.
    """

    def __init__(self, names: tuple[str, ...], solution: Any, parts: list[Any]):
        self.names, self._solution, self.parts = names, solution, parts

    def at(self, parameter: Any, t: Any = None) -> np.ndarray:
        """The derivative of the variables `sol.names` at the output points, (n, nt), or at the times `t`."""
        k, solution = column_of(self.names, parameter), self._solution
        if t is None:
            return self._at_output(k)
        times = np.atleast_1d(np.asarray(t, dtype=float))
        numbers = solution.segment_numbers(times)
        result = np.full((len(solution.names), times.size), np.nan)
        for i in np.unique(numbers):
            here = np.flatnonzero(numbers == i)
            self._write(result, here, int(i), k, times[here])
        return result[:, 0] if np.ndim(t) == 0 else result

    def _at_output(self, k: int) -> np.ndarray:
        solution = self._solution
        result, begin = np.full((len(solution.names), solution.t.size), np.nan), 0
        for i, count in enumerate(solution.points_of_segments):
            self._write(result, np.arange(begin, begin + count), i, k, solution.t[begin : begin + count])
            begin += count
        return result

    def _write(self, result: np.ndarray, columns: np.ndarray, segment: int, k: int, times: np.ndarray):
        part, solution = self.parts[segment], self._solution
        if part is None or not times.size:
            return
        rows = solution.rows_of(solution.segments[segment].mode)
        low, high = sorted((part.t[0], part.t[-1]))
        values = np.asarray(part.sensitivity(k, np.clip(times, low, high)))
        result[np.ix_(rows, columns)] = values[: len(rows)]
