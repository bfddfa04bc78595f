r"""Reductions: statistics of many runs without storing the runs.

Members are reduced in blocks of :data:`BLOCK`, independent of chunks and workers, and the summaries of blocks are
merged in order, so that results are bit-identical on every backend. Failed members and NaN entries are ignored.

Means and variances are merged by the formulas of Chan, Golub and LeVeque (The American Statistician 37, 1983).
Quantiles of up to `exact` members are those of NumPy; for more members they are computed from counts in geometric bins
:math:`(\gamma^{i-1}, \gamma^i]`, :math:`\gamma = (1 + \alpha)/(1 - \alpha)` (Masson, Rim, Lee: DDSketch, VLDB 2019):
each quantile has a relative error of at most :math:`\alpha` from a value of the correct rank. Counts are integers, so
that the order of merging is irrelevant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError

BLOCK = 1024
"""Members per block; fixed, so that sums are always evaluated in the same order."""

_OFFSET = 1 << 21  # offset of the bins of a quantity, larger than any bin number of a float at the finest alpha
_WIDTH = 1 << 23


class Aggregator(ABC):
    """A summary of many members, computed while they run.

    Custom reductions derive from it and define a `name` and the three functions below; summaries may be any picklable
    objects.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.ensembles import Aggregator
    >>> class Largest(Aggregator):
    ...     name = "largest"
    ...     def summary(self, values):
    ...         return values.max(axis=0)
    ...     def merge(self, first, second):
    ...         return np.maximum(first, second)
    """

    name: str

    @abstractmethod
    def summary(self, values: np.ndarray) -> Any:
        """Summary of a block of members, shape (members, ...)."""

    @abstractmethod
    def merge(self, first: Any, second: Any) -> Any:
        """The summary of two blocks, the first before the second."""

    def result(self, summary: Any) -> Any:
        """The final result; the summary by default."""
        return summary


class Moments(Aggregator):
    """Count, mean and sum of squared deviations; the result is one of them."""

    def __init__(self, name: str):
        self.name = name

    def summary(self, values: np.ndarray) -> Any:
        """(count, mean, M2) of the entries."""
        known = np.isfinite(values)
        count = known.sum(axis=0)
        filled = np.where(known, values, 0.0)
        mean = filled.sum(axis=0) / np.maximum(count, 1)
        squares = np.where(known, (filled - mean) ** 2, 0.0).sum(axis=0)
        return count, mean, squares

    def merge(self, first: Any, second: Any) -> Any:
        """Merge by Chan, Golub and LeVeque (1.5)."""
        (n, mean, squares), (m, other, more) = first, second
        total = np.maximum(n + m, 1)
        change = other - mean
        return n + m, mean + change * (m / total), squares + more + change**2 * (n * m / total)

    def result(self, summary: Any) -> np.ndarray:
        """The chosen moment; NaN if there are too few members."""
        count, mean, squares = summary
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.where(count > 1, squares / np.maximum(count - 1, 1), np.nan)
            found = {"mean": np.where(count > 0, mean, np.nan), "var": variance, "std": np.sqrt(variance)}
        return (found | {"count": count})[self.name]


class Extreme(Aggregator):
    """The smallest or largest values."""

    def __init__(self, name: str):
        self.name = name
        self._of: Any = np.fmin if name == "min" else np.fmax

    def summary(self, values: np.ndarray) -> np.ndarray:
        """Extremes of one block."""
        return self._of.reduce(values, axis=0)

    def merge(self, first: Any, second: Any) -> np.ndarray:
        """Extremes of both summaries."""
        return self._of(first, second)


class Quantiles(Aggregator):
    r"""Quantiles, exact for few members and with a bounded relative error for many.

    Parameters
    ----------
    levels : sequence of float
        Between 0 and 1.
    alpha : float
        Relative error of the values if there are more than `exact` members.
    exact : int
        Number of members up to which values are stored, and quantiles are those of :func:`numpy.quantile`.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.ensembles import Quantiles
    >>> median = Quantiles([0.5], alpha=1e-3, exact=0)
    >>> values = np.arange(1.0, 1002.0)
    >>> bool(abs(median.result(median.summary(values))[0] - 501.0) < 0.6)
    True
    """

    name = "quantiles"

    def __init__(
        self, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95), alpha: float = 1e-3, exact: int = 10_000
    ):
        self.levels = np.atleast_1d(np.asarray(levels, dtype=float))
        if not (self.levels.size and np.all((self.levels >= 0.0) & (self.levels <= 1.0))):
            raise InvalidProblemError(f"levels of quantiles must lie between 0 and 1, got {levels!r}")
        if not 1e-5 <= alpha < 0.5:
            raise InvalidProblemError(f"alpha of quantiles must lie between 1e-5 and 0.5, got {alpha!r}")
        self.alpha, self.exact = float(alpha), int(exact)
        self._rate = np.log1p(self.alpha) - np.log1p(-self.alpha)  # log gamma

    def summary(self, values: np.ndarray) -> Any:
        """The values themselves, or counts by bin."""
        return values.copy() if values.shape[0] <= self.exact else self._binned(values)

    def merge(self, first: Any, second: Any) -> Any:
        """Concatenated values while there are few, otherwise sums of counts."""
        if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
            both = np.concatenate([first, second])
            return both if both.shape[0] <= self.exact else self._binned(both)
        shape, *one = first if isinstance(first, tuple) else self._binned(first)
        _, *other = second if isinstance(second, tuple) else self._binned(second)
        keys, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
        counts = np.zeros(keys.size, dtype=np.int64)
        np.add.at(counts, places, np.concatenate([one[1], other[1]]))
        return shape, keys, counts

    def _binned(self, values: np.ndarray) -> tuple:
        """(shape, keys, counts): a key encodes the entry and its signed bin."""
        flat = values.reshape(values.shape[0], -1)
        entry = np.broadcast_to(np.arange(flat.shape[1]), flat.shape)
        known = np.isfinite(flat)
        x, entry = flat[known], entry[known]
        size = np.abs(x)
        with np.errstate(divide="ignore"):
            bins = np.where(size > 1e-300, np.ceil(np.log(np.maximum(size, 1e-300)) / self._rate), 0).astype(np.int64)
        signed = np.where(size > 1e-300, np.sign(x).astype(np.int64) * (bins + _OFFSET), 0)
        keys, counts = np.unique(entry.astype(np.int64) * _WIDTH + signed + (_WIDTH >> 1), return_counts=True)
        return values.shape[1:], keys, counts

    def result(self, summary: Any) -> np.ndarray:
        """Shape (levels, ...)."""
        if isinstance(summary, np.ndarray):
            with np.errstate(invalid="ignore"):
                values = np.where(np.isfinite(summary), summary, np.nan)
                return np.stack([_nan_quantile(values, level) for level in self.levels])
        shape, keys, counts = summary
        entries = int(np.prod(shape, dtype=np.int64))
        result = np.full((self.levels.size, entries), np.nan)
        ends = np.searchsorted(keys, np.arange(entries + 1) * _WIDTH)
        for k in range(entries):
            own, number = keys[ends[k] : ends[k + 1]] - k * _WIDTH - (_WIDTH >> 1), counts[ends[k] : ends[k + 1]]
            if own.size:
                ranks = np.floor(self.levels * (number.sum() - 1))
                result[:, k] = self._value(own[np.searchsorted(np.cumsum(number), ranks, side="right")])
        return result.reshape(self.levels.size, *shape)

    def _value(self, signed: np.ndarray) -> np.ndarray:
        """The value that minimises the relative error over a bin: 2 gamma^i / (gamma + 1)."""
        bins = np.abs(signed) - _OFFSET
        middle = np.exp((bins - 1) * self._rate) * (1.0 + self.alpha)
        return np.where(signed == 0, 0.0, np.sign(signed) * middle)


def _nan_quantile(values: np.ndarray, level: float) -> np.ndarray:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # entries that are NaN in all members
        return np.nanquantile(values, level, axis=0)


class Histogram(Aggregator):
    """Counts in given bins; values outside are counted in ``below`` and ``above``.

    Parameters
    ----------
    edges : array
        Edges of the bins, increasing; or (first, last, number of bins).

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0})
    >>> rates = {"k": np.linspace(0.1, 2.0, 50)}
    >>> counts = daedal.ensembles.Histogram(np.linspace(0.0, 1.0, 5))
    >>> runs = daedal.solve_many(decay, (0.0, 1.0), ([1.0], None), params=rates, reduce=counts)
    >>> print(runs.reduced["histogram"]["y"]["counts"].ravel())
    [16 18 11  5]
    """

    name = "histogram"

    def __init__(self, edges: Any):
        if isinstance(edges, tuple) and len(edges) == 3 and isinstance(edges[2], int):
            edges = np.linspace(edges[0], edges[1], edges[2] + 1)
        self.edges = np.asarray(edges, dtype=float)
        if self.edges.ndim != 1 or self.edges.size < 2 or not np.all(np.diff(self.edges) > 0.0):
            raise InvalidProblemError("edges of a histogram must be increasing, or (first, last, number of bins)")

    def summary(self, values: np.ndarray) -> np.ndarray:
        """Counts, shape (bins + 2, ...): below, the bins, above."""
        flat = values.reshape(values.shape[0], -1)
        places = np.searchsorted(self.edges, flat, side="right")
        places[flat == self.edges[-1]] -= 1  # the last bin is closed, as in NumPy
        counts = np.zeros((self.edges.size + 1, flat.shape[1]), dtype=np.int64)
        known = np.isfinite(flat)
        np.add.at(counts, (places[known], np.broadcast_to(np.arange(flat.shape[1]), flat.shape)[known]), 1)
        return counts.reshape(-1, *values.shape[1:])

    def merge(self, first: Any, second: Any) -> np.ndarray:
        """Add the counts."""
        return first + second

    def result(self, summary: Any) -> dict[str, np.ndarray]:
        """Counts and edges."""
        return {"counts": summary[1:-1], "edges": self.edges, "below": summary[0], "above": summary[-1]}


class Merged(Aggregator):
    """A reduction from two user functions: a summary of a block, and a function that merges two summaries."""

    def __init__(
        self, function: Callable[[np.ndarray], Any], merge: Callable[[Any, Any], Any], name: str | None = None
    ):
        self.name = name or getattr(function, "__name__", "reduction").strip("<>")
        self._function, self._merge = function, merge

    def summary(self, values: np.ndarray) -> Any:
        """Summary of one block."""
        return self._function(values)

    def merge(self, first: Any, second: Any) -> Any:
        """Merge two summaries."""
        return self._merge(first, second)


_NAMED: dict[str, Callable[[], Aggregator]] = {
    **{name: partial(Moments, name) for name in ("mean", "var", "std", "count")},
    **{name: partial(Extreme, name) for name in ("min", "max")},
    "median": lambda: _median(),
    "quantiles": Quantiles,
}


def _median() -> Aggregator:
    made = Quantiles([0.5])
    made.name = "median"
    return made


def named_reductions(reduce: Any) -> list[Aggregator]:
    """`reduce` of :func:`daedal.solve_many` as a list: names, reductions, or (function, merge)."""
    if reduce is None:
        return []
    given = [reduce] if isinstance(reduce, (str, Aggregator)) or _is_pair(reduce) else reduce
    if isinstance(given, Mapping):
        return [_renamed(_one(value), str(name)) for name, value in given.items()]
    if not isinstance(given, (list, tuple)) or not given:
        raise InvalidProblemError(f"reduce must be a name, a reduction, (function, merge) or several, got {reduce!r}")
    made = [_one(entry) for entry in given]
    if len({entry.name for entry in made}) < len(made):
        raise InvalidProblemError("reduce has two reductions of the same name; give a mapping of names to reductions")
    return made


def _is_pair(reduce: Any) -> bool:
    return isinstance(reduce, tuple) and len(reduce) == 2 and all(callable(f) for f in reduce)


def _one(entry: Any) -> Aggregator:
    if isinstance(entry, Aggregator):
        return entry
    if _is_pair(entry):
        return Merged(*entry)
    if isinstance(entry, str) and entry in _NAMED:
        return _NAMED[entry]()
    hint = "; a histogram needs its bins: daedal.ensembles.Histogram(edges)" if entry == "histogram" else ""
    raise InvalidProblemError(
        f"unknown reduction {entry!r}; known: {', '.join(_NAMED)}, an Aggregator, (function, merge){hint}"
    )


def _renamed(reduction: Aggregator, name: str) -> Aggregator:
    from copy import copy

    other = copy(reduction)
    other.name = name
    return other
