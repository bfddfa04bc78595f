"""Input functions given by a table of values."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real
from daedal.problems.compile import numba_module

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


KINDS = ("previous", "linear", "cubic")


class Table:
    r"""A function of time given by values at points: piecewise constant, piecewise linear, or a cubic spline.

    Parameters
    ----------
    times : array, shape (n,)
        Increasing times; these are break points, see `breakpoints` of :func:`daedal.solve`.
    values : array, shape (n,) or (n, m)
        Numbers, or vectors, at these times.
    kind : {"linear", "previous", "cubic"}
        "previous" keeps each value until the next point, where the new one applies; "cubic" is the natural spline.

    Notes
    -----
    Before the first and after the last point the value is constant. All kinds are piecewise polynomials,
    :math:`\sum_k c_{ik} (t - t_i)^k`. In compiled functions use ``table.compiled()``. Use tables with jumps for forces
    only; a jump of a prescribed position is an impact.

    Examples
    --------
    >>> import daedal
    >>> ramp = daedal.Table([0.0, 1.0, 3.0], [0.0, 2.0, 2.0])
    >>> ramp(0.5), ramp(2.0), ramp(10.0)
    (1.0, 2.0, 2.0)
    """

    def __init__(self, times: ArrayLike, values: ArrayLike, kind: str = "linear") -> None:
        t = check_real(times, "times", "be a vector of increasing numbers")
        if t.ndim != 1 or t.size < 2 or not np.isfinite(t).all():
            raise InvalidProblemError(f"times must be a vector of at least 2 finite numbers, got {times!r}")
        if not np.all(np.diff(t) > 0.0):
            i = int(np.flatnonzero(np.diff(t) <= 0.0)[0])
            raise InvalidProblemError(
                f"times must increase, but times[{i}] = {t[i]:g} is followed by {t[i + 1]:g}. Remedy: sort the "
                "table; use kind='previous' for jumps"
            )
        x = check_real(values, "values", "be an array with one row for each time")
        if x.ndim not in (1, 2) or x.shape[0] != t.size or not np.isfinite(x).all():
            raise InvalidProblemError(
                f"values must be finite, of shape ({t.size},) or ({t.size}, m) for {t.size} times, got shape {x.shape}"
            )
        if kind not in KINDS:
            raise InvalidProblemError(f"unknown kind {kind!r} of a table; known: {', '.join(KINDS)}")
        self.times, self.values, self.kind = t.copy(), x.copy(), kind
        self._begins = np.concatenate([t[:1], t])
        self._coefficients = _coefficients(t, x, kind)
        self._search, self._rows = t.tolist(), self._coefficients.tolist() if x.ndim == 1 else None

    def __call__(self, t: float) -> Any:
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

    def polynomial_pieces(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The times, and the beginning and coefficients of each piece between, before and after them."""
        return self.times, self._begins, self._coefficients

    def compiled(self) -> Any:
        """The table as a function for compiled functions."""
        numba = numba_module()
        times, begins, coefficients = self.times, self._begins, self._coefficients
        degree = coefficients.shape[1] - 1

        @numba.njit
        def table(t: float) -> Any:
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
    """c[i, k] of the pieces: one before the first point, those between points, one after the last."""
    degree = KINDS.index(kind) if kind != "cubic" else 3
    c = np.zeros((t.size + 1, degree + 1, *x.shape[1:]))
    c[0, 0], c[1:, 0] = x[0], x
    if kind == "linear":
        c[1:-1, 1] = (np.diff(x, axis=0).T / np.diff(t)).T
    elif kind == "cubic":
        from scipy.interpolate import CubicSpline

        c[1:-1] = np.moveaxis(CubicSpline(t, x, bc_type="natural").c[::-1], 0, 1)
    return c
