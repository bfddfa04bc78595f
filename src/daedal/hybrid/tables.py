"""Input functions given by tables, and runs that step onto known break points exactly."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import fields
from typing import Any

import numpy as np

from daedal.errors import DaedalError, IntegrationError, InvalidProblemError
from daedal.hybrid.arguments import StateForm
from daedal.hybrid.problem import HybridProblem
from daedal.hybrid.solution import Chunk, HybridSolution
from daedal.hybrid.table import EventTable
from daedal.problems.checks import check_flag, check_real
from daedal.progress import Progress
from daedal.solution import Statistics

KINDS = ("previous", "linear", "cubic")
_FEWEST_SPACINGS = 1.1e4  # of floats between break points; closer ones are passed in one jump
_MODE = "problem"


class Table:
    r"""A function of time given by values at points: piecewise constant, piecewise linear, or a cubic spline.

    Parameters
    ----------
    times : array, shape (n,)
        Increasing; these are the break points, see `breakpoints` of :func:`daedal.solve`.
    values : array, shape (n,) or (n, m)
        Numbers, or vectors, at these times.
    kind : {"linear", "previous", "cubic"}
        "previous" keeps each value until the next point, and has the new one there; "cubic" is the natural spline.

    Notes
    -----
    Before the first and behind the last point the value is constant. All kinds are piecewise polynomials,
    :math:`\sum_k c_{ik} (t - t_i)^k`. In functions that are compiled use ``table.compiled()``. Values with jumps belong
    into forces; a jump of a prescribed position is an impact.

    Examples
    --------
    >>> import daedal
    >>> ramp = daedal.Table([0.0, 1.0, 3.0], [0.0, 2.0, 2.0])
    >>> ramp(0.5), ramp(2.0), ramp(10.0)
    (1.0, 2.0, 2.0)
    """

    def __init__(self, times, values, kind: str = "linear"):
        t = check_real(times, "times", "be a vector of increasing numbers")
        if t.ndim != 1 or t.size < 2 or not np.isfinite(t).all():
            raise InvalidProblemError(f"times must be a vector of at least 2 finite numbers, got {times!r}")
        if not np.all(np.diff(t) > 0.0):
            i = int(np.flatnonzero(np.diff(t) <= 0.0)[0])
            raise InvalidProblemError(
                f"times must increase, but times[{i}] = {t[i]:g} is followed by {t[i + 1]:g}. Remedy: sort the table; a "
                "jump is had by kind='previous'"
            )
        x = check_real(values, "values", "be an array with one row for each time")
        if x.ndim not in (1, 2) or x.shape[0] != t.size or not np.isfinite(x).all():
            raise InvalidProblemError(
                f"values must be finite, of shape ({t.size},) or ({t.size}, m) as there are {t.size} times, got shape "
                f"{x.shape}"
            )
        if kind not in KINDS:
            raise InvalidProblemError(f"unknown kind {kind!r} of a table; known: {', '.join(KINDS)}")
        self.times, self.values, self.kind = t.copy(), x.copy(), kind
        self._begins = np.concatenate([t[:1], t])
        self._coefficients = _coefficients(t, x, kind)
        self._search, self._rows = t.tolist(), self._coefficients.tolist() if x.ndim == 1 else None

    def __call__(self, t: float):
        """The value at `t`: a number, or a vector."""
        i = bisect_right(self._search, t)
        s = t - self._begins[i]
        if self._rows is not None:
            value = 0.0
            for c in reversed(self._rows[i]):
                value = value * s + c
            return float(value)
        vector = np.zeros(self.values.shape[1])
        for c in self._coefficients[i][::-1]:
            vector = vector * s + c
        return vector

    def compiled(self):
        """The table as a function that compiled functions can call."""
        import numba

        times, begins, coefficients = self.times, self._begins, self._coefficients
        degree = coefficients.shape[1] - 1

        @numba.njit
        def table(t):
            i = np.searchsorted(times, t, side="right")
            s = t - begins[i]
            value = coefficients[i, degree]
            for k in range(degree - 1, -1, -1):
                value = value * s + coefficients[i, k]
            return value

        return table

    def __repr__(self) -> str:
        return f"Table({self.times.size} points from t = {self.times[0]:g} to {self.times[-1]:g}, kind='{self.kind}')"


def _coefficients(t: np.ndarray, x: np.ndarray, kind: str) -> np.ndarray:
    """c[i, k] of the pieces: the one before the first point, those between points, the one behind the last."""
    degree = KINDS.index(kind) if kind != "cubic" else 3
    c = np.zeros((t.size + 1, degree + 1, *x.shape[1:]))
    c[0, 0], c[1:, 0] = x[0], x
    if kind == "linear":
        c[1:-1, 1] = (np.diff(x, axis=0).T / np.diff(t)).T
    elif kind == "cubic":
        from scipy.interpolate import CubicSpline

        c[1:-1] = np.moveaxis(CubicSpline(t, x, bc_type="natural").c[::-1], 0, 1)
    return c


def solve_between(problem, t_span, initial, *, breakpoints, progress, method_options, **options) -> HybridSolution:
    """Solve a problem of any class piece by piece, between break points; see `breakpoints` of :func:`daedal.solve`.

    Each piece ends one float before a break point, and the next begins on it: functions that are continuous from the
    right, as tables are, are never evaluated on the wrong side. The method begins anew with every piece.
    """
    from daedal.solve import _check_span, _check_times

    began = time.perf_counter()
    hybrid = problem if isinstance(problem, HybridProblem) else HybridProblem({_MODE: problem})
    state = initial if hybrid is problem else (_MODE, initial)
    span = _check_span(t_span)
    times = _check_times(options.pop("t_eval"), span)
    if options["t_stop"] is not None:
        raise InvalidProblemError("t_stop and breakpoints exclude each other: every break point is such a time")
    correct = check_flag(options.pop("correct_initial"), "correct_initial")
    first_step = options.pop("first_step")
    wants_dense = options.pop("dense_output")
    join = _Join(hybrid, keeps_segments=times is None or wants_dense is not False)
    pieces = _pieces(span, _checked_breakpoints(breakpoints, span))
    bar = Progress(progress, span)
    try:
        for i, piece in enumerate(pieces):
            wanted = None if times is None else _within(times, piece, last=i == len(pieces) - 1)
            join.wanted = wanted
            part = _solve_piece(
                hybrid,
                piece,
                state,
                join,
                dict(options, dense_output=True, first_step=first_step if i == 0 else None, **method_options),
                correct or i > 0,
                began,
            )
            bar.update(piece[1])
            if part.status != "finished":
                break
            if i + 1 < len(pieces):
                state = _state_at_end(hybrid, part)
    finally:
        bar.close()
    return join.finish(part.success, part.status, part.message, time.perf_counter() - began)


def _solve_piece(hybrid, piece, state, join: _Join, options: dict[str, Any], correct: bool, began: float):
    from daedal.solve import solve

    try:
        part: Any = solve(hybrid, piece, state, correct_initial=correct, **options)
    except IntegrationError as error:
        join.add(error.solution)
        message = str(error)
        raise IntegrationError(
            message, join.finish(False, error.solution.status, message, time.perf_counter() - began)
        ) from error
    join.add(part)
    return part


def _checked_breakpoints(breakpoints, span: tuple[float, float]) -> np.ndarray:
    """All break points inside the interval, in the order of increasing time."""
    given = breakpoints if isinstance(breakpoints, (list, tuple)) else [breakpoints]
    parts = []
    for item in given:
        points = check_real(item.times if isinstance(item, Table) else item, "breakpoints", "be tables or times")
        if not np.isfinite(points).all():
            raise InvalidProblemError("breakpoints holds values that are not finite")
        parts.append(points.reshape(-1))
    points = np.unique(np.concatenate(parts)) if parts else np.empty(0)
    return points[(points > min(span)) & (points < max(span))]


def _pieces(span: tuple[float, float], points: np.ndarray) -> list[tuple[float, float]]:
    """The intervals between break points; each ends one float before the next point, in the order of the run."""
    low, high = min(span), max(span)
    shortest = _FEWEST_SPACINGS * float(np.spacing(max(abs(low), abs(high))))
    pieces, begin = [], low
    for point in points.tolist():
        if point - begin > shortest:
            pieces.append((begin, float(np.nextafter(point, -np.inf))))
        begin = point
    if high - begin > shortest or not pieces:
        pieces.append((begin, high))
    return pieces if span[1] > span[0] else [(b, a) for a, b in reversed(pieces)]


def _within(times: np.ndarray, piece: tuple[float, float], last: bool) -> np.ndarray:
    raise NotImplementedError


def _state_at_end(hybrid: HybridProblem, part: HybridSolution):
    raise NotImplementedError
