"""Sensitivities of a solution, as it holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real
from daedal.solution.solution import DenseOutput


def column_of(names: tuple[str, ...], parameter: Any) -> int:
    """The block of a parameter, by name or by its place among those that were asked for."""
    if isinstance(parameter, (int, np.integer)) and not isinstance(parameter, bool):
        if -len(names) <= parameter < len(names):
            return int(parameter) % len(names)
    elif str(parameter) in names:
        return names.index(str(parameter))
    raise unknown_name(parameter, names, "sensitivity to")


@dataclass(frozen=True)
class Sensitivities:
    """The derivatives of a solution with respect to parameters and initial values.

    Attributes
    ----------
    names : tuple of str
        What they are taken with respect to.
    t : numpy.ndarray, shape (nt,)
        The output times.
    values, slopes : numpy.ndarray, shape (m, n, nt)
        Derivatives of y and of y' there, one block for each name.
    dense : DenseOutput or None
        The polynomials of all steps, of m n components.
    starts : numpy.ndarray, shape (m, n)
        At the start, where they are consistent.
    """

    names: tuple[str, ...]
    t: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    dense: DenseOutput | None
    starts: np.ndarray

    def at(self, parameter: Any, t: Any = None, *, derivative: bool = False) -> np.ndarray:
        """The block of a parameter at the output times (n, nt), or at `t`: (n,) for a number, (n, len(t))."""
        k = column_of(self.names, parameter)
        if t is None:
            return (self.slopes if derivative else self.values)[k]
        times = check_real(t, "t", "be a number or a vector")
        found = self.all_at(np.atleast_1d(times), derivative=derivative)[k]
        return found[:, 0].copy() if times.ndim == 0 else found

    def all_at(self, times: np.ndarray, *, derivative: bool = False) -> np.ndarray:
        """All blocks (m, n, len(times)) from the dense output."""
        if self.dense is None:
            raise InvalidProblemError("no dense output was kept; call solve with dense_output=True")
        low, high = self.dense.interval
        slack = 1e-9 * (high - low) + 1e-14 * max(abs(low), abs(high))
        if not np.all((times >= low - slack) & (times <= high + slack)):
            raise InvalidProblemError(f"t must lie in the integrated interval [{low}, {high}]")
        found = self.dense.evaluate(times)[int(derivative)]
        m, n = self.starts.shape
        return np.ascontiguousarray(found.reshape(times.size, m, n).transpose(1, 2, 0))
