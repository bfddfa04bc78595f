"""Input functions given by tables, and runs that step onto known break points exactly."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import fields
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.hybrid.arguments import StateForm
from daedal.hybrid.problem import HybridProblem
from daedal.hybrid.solution import Chunk, HybridSolution
from daedal.hybrid.table import EventTable
from daedal.problems.checks import check_real
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
                f"times must increase, but times[{i}] = {t[i]:g} is followed by {t[i + 1]:g}. Remedy: sort the table; "
                "a jump is had by kind='previous'"
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
    right, as tables are, are never evaluated on the wrong side. The method begins anew with every piece, with order 1.
    """
    from daedal.solve import _check_span, _check_times, solve

    began = time.perf_counter()
    span = _check_span(t_span)
    for name in ("t_stop", "fixed_step"):
        if options[name] is not None:
            raise InvalidProblemError(f"{name} and breakpoints exclude each other; leave one of them out")
    times = _check_times(options.pop("t_eval"), span)
    hybrid = problem if isinstance(problem, HybridProblem) else HybridProblem({_MODE: problem})
    state = initial if hybrid is problem else (_MODE, initial)
    parts: list[HybridSolution] = []
    bar = Progress(progress, span)
    try:
        for piece in _pieces(span, _checked_breakpoints(breakpoints, span)):
            wanted, needs_end = _times_within(times, piece)
            part: Any = solve(hybrid, piece, state, t_eval=wanted, **options, **method_options)
            bar.update(piece[1])
            state, mechanical = _state_at_end(hybrid, part)
            parts.append(_without_end(part) if needs_end and part.status == "finished" else part)
            if part.status != "finished":
                break
            options |= {"first_step": None, "correct_initial": not mechanical}
    except Exception as error:
        partial = getattr(error, "solution", None)
        if isinstance(partial, HybridSolution):
            error.solution = _joined([*parts, partial], time.perf_counter() - began)  # type: ignore[attr-defined]
        raise
    finally:
        bar.close()
    return _joined(parts, time.perf_counter() - began)


def _checked_breakpoints(breakpoints, span: tuple[float, float]) -> list[float]:
    """All break points inside the interval, in the order of increasing time."""
    given = breakpoints if isinstance(breakpoints, (list, tuple)) else [breakpoints]
    found = [np.empty(0)]
    for item in given:
        points = check_real(item.times if isinstance(item, Table) else item, "breakpoints", "be tables or times")
        if not np.isfinite(points).all():
            raise InvalidProblemError("breakpoints holds values that are not finite")
        found.append(points.reshape(-1))
    points = np.unique(np.concatenate(found))
    return points[(points > min(span)) & (points < max(span))].tolist()


def _pieces(span: tuple[float, float], points: list[float]) -> list[tuple[float, float]]:
    """The intervals between break points, in the order of the run; points that are too close count as one."""
    low, high = min(span), max(span)
    shortest = _FEWEST_SPACINGS * float(np.spacing(max(abs(low), abs(high))))
    begins = [low]
    for point in points:
        if point - begins[-1] > shortest and high - point > shortest:
            begins.append(point)
    ends = [float(np.nextafter(point, -np.inf)) for point in begins[1:]] + [high]
    pieces = list(zip(begins, ends, strict=True))
    return pieces if span[1] > span[0] else [(b, a) for a, b in reversed(pieces)]


def _times_within(times: np.ndarray | None, piece: tuple[float, float]) -> tuple[np.ndarray | None, bool]:
    """Those of the output times that lie in a piece, and its end, which is needed; whether it was not asked for."""
    if times is None:
        return None, False
    inside = times[(times >= min(piece)) & (times <= max(piece))]
    if inside.size and inside[-1] == piece[1]:
        return inside, False
    return np.append(inside, piece[1]), True


def _state_at_end(hybrid: HybridProblem, part: HybridSolution) -> tuple[tuple[str, Any], bool]:
    """(mode, initial values) for the next piece, and whether the mode is a mechanical system."""
    if not part._chunks or not part._chunks[-1].t.size:
        return ("", None), False
    mode = part.modes[part._chunks[-1].mode]
    form = StateForm(hybrid.modes[mode].problem)
    return (mode, form.initial(part._chunks[-1].y[:, -1], None)), form.mechanical


def _without_end(part: HybridSolution) -> HybridSolution:
    last = part._chunks[-1]
    part._chunks[-1] = Chunk(last.mode, last.t[:-1], last.y[:, :-1])
    return part


def _joined(parts: list[HybridSolution], seconds: float) -> HybridSolution:
    """One solution of the pieces."""
    last = parts[-1]
    counts = {f.name: sum(getattr(part.stats, f.name) for part in parts) for f in fields(Statistics)}
    drifts = [part.drift for part in parts]
    return HybridSolution(
        modes=last.modes,
        labels=last._labels,
        n_q=last._n_q,
        chunks=[chunk for part in parts for chunk in part._chunks],
        segments=[segment for part in parts for segment in part.segments],
        events=EventTable([event for part in parts for event in part.events]),
        n_events=sum(part.n_events for part in parts),
        success=last.success,
        status=last.status,
        message=last.message,
        stats=Statistics(**counts | {"seconds": seconds}),
        drift={name: max(d.get(name, 0.0) for d in drifts) for name in {k: None for d in drifts for k in d}},
    )
