"""Sensitivities attached to a solution, for each problem class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real
from daedal.sensitivity.variational_motion import VariationalMotion, evaluated, projected
from daedal.solution.solution import DenseOutput


def column_of(names: tuple[str, ...], parameter: Any) -> int:
    """Column of a parameter, given by name or by position among the requested parameters."""
    if isinstance(parameter, (int, np.integer)) and not isinstance(parameter, bool):
        if -len(names) <= parameter < len(names):
            return int(parameter) % len(names)
    elif str(parameter) in names:
        return names.index(str(parameter))
    raise unknown_name(parameter, names, "sensitivity to")


@dataclass(frozen=True)
class FirstOrderSensitivities:
    """The derivatives of a solution with respect to parameters and initial values.

    Attributes
    ----------
    names : tuple of str
        Names of the parameters and initial values.
    t : numpy.ndarray, shape (nt,)
        Output times.
    values, slopes : numpy.ndarray, shape (m, n, nt)
        Derivatives of y and y' at these times, one block per name.
    dense : DenseOutput or None
        Polynomials of all steps, with m n components.
    starts : numpy.ndarray, shape (m, n)
        Consistent sensitivities at the start of the run.
    """

    names: tuple[str, ...]
    t: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    dense: DenseOutput | None
    starts: np.ndarray

    def at(self, parameter: Any, t: Any = None, *, derivative: bool = False) -> np.ndarray:
        """Sensitivity to a parameter at the output times (n, nt), or at `t`: (n,) for a number, (n, len(t))."""
        k = column_of(self.names, parameter)
        if t is None:
            return (self.slopes if derivative else self.values)[k]
        times = check_real(t, "t", "be a number or a vector")
        found = self.all_at(np.atleast_1d(times), derivative=derivative)[k]
        return found[:, 0].copy() if times.ndim == 0 else found

    def all_at(self, times: np.ndarray, *, derivative: bool = False) -> np.ndarray:
        """All blocks (m, n, len(times)) from the dense output."""
        if self.dense is None:
            raise InvalidProblemError("the solution has no dense output; call solve with dense_output=True")
        low, high = self.dense.interval
        slack = 1e-9 * (high - low) + 1e-14 * max(abs(low), abs(high))
        if not np.all((times >= low - slack) & (times <= high + slack)):
            raise InvalidProblemError(f"t must lie in the integrated interval [{low}, {high}]")
        found = self.dense.evaluate(times)[int(derivative)]
        m, n = self.starts.shape
        return np.ascontiguousarray(found.reshape(times.size, m, n).transpose(1, 2, 0))


# --- of mechanisms ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MechanicalSensitivity:
    """Derivatives of a motion with respect to one parameter; ``numpy.asarray`` of it is `y`.

    Attributes
    ----------
    q, v, a, lam, r, reaction : numpy.ndarray
        Derivatives of the attributes of :class:`MechanicalSolution` with the same names and shapes.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    r: np.ndarray
    reaction: np.ndarray

    @property
    def y(self) -> np.ndarray:
        """Derivatives of (q, v, r), stacked."""
        return np.concatenate([self.q, self.v, self.r])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.y, dtype=dtype)


class MechanicalSensitivities:
    """The sensitivities of a solution, projected and completed on access."""

    def __init__(
        self,
        names: tuple[str, ...],
        motion: VariationalMotion,
        params: Any,
        solution: Any,
        raw,
        dense: DenseOutput | None,
    ):
        self.names, self._motion, self._params, self._solution = names, motion, params, solution
        self._raw, self.dense = raw, dense

    @cached_property
    def _stored(self) -> list[MechanicalSensitivity]:
        return self._completed(self._solution.t, self._solution.y, self._raw)

    @property
    def values(self) -> np.ndarray:
        """Derivatives of (q, v, r) at the output points, shape (m, n, nt)."""
        return np.array([part.y for part in self._stored])

    def at(self, parameter: Any, t: Any = None) -> MechanicalSensitivity:
        """The sensitivity to a parameter at the output points, or at the times `t`."""
        k = column_of(self.names, parameter)
        if t is None:
            return self._stored[k]
        times = check_real(t, "t", "be a number or a vector")
        found = self._between(np.atleast_1d(times).astype(float))[k]
        if times.ndim:
            return found
        parts = (getattr(found, name)[:, 0].copy() for name in MechanicalSensitivity.__annotations__)
        return MechanicalSensitivity(*parts)

    def all_at(self, times: np.ndarray) -> np.ndarray:
        """Derivatives of (q, v, r), shape (m, n, len(times)), from the dense output."""
        return np.array([part.y for part in self._between(times)])

    def _between(self, times: np.ndarray) -> list[MechanicalSensitivity]:
        if self.dense is None:
            raise InvalidProblemError("the solution has no dense output; call solve with dense_output=True")
        return self._completed(times, self._solution.states(times), self.dense.evaluate(times)[0].T)

    def _completed(self, times: np.ndarray, states: np.ndarray, raw: np.ndarray) -> list[MechanicalSensitivity]:
        """Sensitivities of (q, v, r), projected onto the differentiated constraints at `states`, and of a, lam and
        reactions."""
        motion, params = self._motion, self._params
        n, n_q, m = motion.n, motion.system.n_q, len(self.names)
        n_c = motion.system.n_lambda
        found = np.empty((m, n, times.size))
        further = np.empty((m, 2 * n_q + n_c, times.size))
        for i, t in enumerate(times):
            y = projected(motion, params, float(t), np.concatenate([states[:, i], raw[:, i]]))
            found[:, :, i] = y[n:].reshape(m, n)
            further[:, :, i] = evaluated(motion.dynamics, params, float(t), y).reshape(m, -1)
        return [
            MechanicalSensitivity(
                q=s[:n_q],
                v=s[n_q : 2 * n_q],
                a=x[:n_q],
                lam=x[n_q : n_q + n_c],
                r=s[2 * n_q :],
                reaction=x[n_q + n_c :],
            )
            for s, x in zip(found, further, strict=True)
        ]

    def __getstate__(self) -> dict[str, Any]:
        """The computed values, without machine code and without sensitivities between the output points."""
        return {"names": self.names, "_stored": self._stored, "dense": None, "_solution": None, "_raw": self._raw}


# --- sensitivities of linear problems ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearSensitivity:
    """Derivatives with respect to one initial value; ``numpy.asarray`` of it is `y`.

    Attributes
    ----------
    y, lam : numpy.ndarray
        Derivatives of the solution's attributes with the same names and shapes.
    """

    y: np.ndarray
    lam: np.ndarray

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.y, dtype=dtype)


@dataclass(frozen=True)
class LinearSensitivities:
    """Derivatives of a solution, which solve the homogeneous problem."""

    names: tuple[str, ...]
    solutions: tuple[Any, ...]

    @property
    def values(self) -> np.ndarray:
        """Derivatives of z = (x, x', ...) at the output points, shape (m, n, nt)."""
        return np.array([solution.y for solution in self.solutions])

    def at(self, parameter: Any, t: Any = None) -> LinearSensitivity:
        """The sensitivity to an initial value at the output points, or at the times `t`."""
        found = self.solutions[column_of(self.names, parameter)]
        if t is None:
            return LinearSensitivity(found.y, found.lam)
        times = check_real(t, "t", "be a number or a vector")
        y, lam = np.asarray(found(times)), found.multipliers(np.atleast_1d(times).astype(float))
        return LinearSensitivity(y, lam[:, 0] if times.ndim == 0 else lam)


# --- sensitivities of runs through modes ------------------------------------------------------------------------------


class HybridSensitivities:
    """Sensitivities of all arcs; NaN if a mode lacks a variable, or no derivative exists.

    Attributes
    ----------
    names : tuple of str
        Names of the parameters.
    parts : list
        For each segment of the solution a separate solution with sensitivities, or None.
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
