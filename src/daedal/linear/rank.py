"""Ranks by singular values, with the gap on which the decision rests.

A rank in floating-point numbers is a decision: singular values above a threshold count, those below are taken for zero.
It can be trusted if no singular value lies near the threshold. Every structure in this room rests on such decisions,
and keeps them, so that a user can see on which gap it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from daedal.errors import DaedalError
from daedal.tabular import Tabular

TOLERANCE = 1e-10  # singular values below this part of the size of the matrix count as zero
_SHOWN = 10  # decisions in a table
MARGIN = 30.0  # no singular value may lie within this factor of the threshold, on either side


class UnclearRankError(DaedalError, ValueError):
    """A structure was asked for that rests on a rank which the numbers do not decide.

    Attributes
    ----------
    decisions : tuple of RankDecision
        Those that are not clear.
    """

    def __init__(self, message: str, decisions: Iterable[RankDecision] = ()):
        super().__init__(message)
        self.decisions = tuple(decisions)


@dataclass(frozen=True, eq=False)
class RankDecision:
    """The rank of a matrix as a decision, see :func:`rank_decision`.

    Attributes
    ----------
    what : str
        Of which matrix.
    rank : int
        The number of singular values above the threshold.
    singular_values : numpy.ndarray
        All of them, largest first.
    threshold : float
        Where the line was drawn.
    lowest, highest : int
        The ranks between which the numbers do not decide; equal if the decision is clear.
    """

    what: str
    rank: int
    singular_values: np.ndarray = field(repr=False)
    threshold: float
    lowest: int
    highest: int

    @property
    def clear(self) -> bool:
        """Whether no singular value lies near the threshold."""
        return self.lowest == self.highest

    @property
    def kept(self) -> float:
        """The smallest singular value that counts; infinity if there is none."""
        return float(self.singular_values[self.rank - 1]) if self.rank else np.inf

    @property
    def dropped(self) -> float:
        """The largest singular value that was taken for zero; 0 if there is none."""
        return float(self.singular_values[self.rank]) if self.rank < self.singular_values.size else 0.0

    @property
    def gap(self) -> float:
        """The ratio of these two."""
        return self.kept / self.dropped if self.dropped > 0.0 else np.inf

    @property
    def distance(self) -> float:
        """The factor by which the nearest singular value is away from the threshold."""
        return min(self.kept / self.threshold, self.threshold / self.dropped if self.dropped > 0.0 else np.inf)

    def row(self) -> tuple[str, str, str, str, str, str]:
        """The cells of a table of decisions."""
        kept = f"{self.kept:.2g}" if self.rank else "-"
        dropped = f"{self.dropped:.2g}" if self.rank < self.singular_values.size else "-"
        verdict = "clear" if self.clear else f"unclear between {self.lowest} and {self.highest}"
        return self.what, str(self.rank), kept, dropped, f"{self.threshold:.2g}", verdict

    def __str__(self) -> str:
        name, _, kept, dropped, threshold, _ = self.row()
        if self.clear:
            return f"{name}: rank {self.rank} (smallest kept {kept}, largest dropped {dropped}, threshold {threshold})"
        near = self.singular_values[self.lowest : self.highest]
        values = ", ".join(f"{value:.2g}" for value in near)
        return (
            f"{name}: rank decision unclear between {self.lowest} and {self.highest}, because of singular values "
            f"{values} near the threshold {threshold}"
        )


def rank_decision(
    matrix: np.ndarray, *, scale: float | None = None, tolerance: float = TOLERANCE, what: str = "matrix"
) -> RankDecision:
    """The rank of a matrix, and whether it is clear.

    Parameters
    ----------
    matrix : array_like
        Two-dimensional; or its singular values, largest first.
    scale : float, optional
        The size with which singular values are compared, such as the norm of the matrix from which this one was
        derived; the largest singular value by default.
    tolerance : float
        The threshold is ``tolerance * scale``. The decision is clear if no singular value lies within a factor of 30 of
        it; that leaves a gap of almost three digits.
    what : str
        What the matrix is, in words.

    Examples
    --------
    >>> from daedal import linear
    >>> print(linear.rank_decision([[1.0, 2.0], [2.0, 4.0]]))
    matrix: rank 1 (smallest kept 5, largest dropped ..., threshold 5e-10)
    >>> print(linear.rank_decision([[1.0, 0.0], [0.0, 3e-10]]))
    matrix: rank decision unclear between 1 and 2, because of singular values 3e-10 near the threshold 1e-10
    """
    array = np.asarray(matrix)
    if array.ndim == 1:
        values = np.abs(array.astype(float))
    elif 0 in array.shape:
        values = np.zeros(0)
    else:
        values = np.abs(np.linalg.svd(array, compute_uv=False))  # no -0
    size = (values[0] if values.size else 0.0) if scale is None else scale
    threshold = tolerance * float(size)
    if threshold == 0.0:
        threshold = np.finfo(float).tiny

    def above(line: float) -> int:
        return int(np.sum(values > line))

    return RankDecision(what, above(threshold), values, threshold, above(threshold * MARGIN), above(threshold / MARGIN))


def decision_table(decisions: Iterable[RankDecision]) -> Tabular:
    """Decisions one below the other: of many the nearest to the threshold; none about zero matrices."""
    header = ("rank of", "rank", "smallest kept", "largest dropped", "threshold", "decision")
    some = [decision for decision in decisions if np.any(decision.singular_values > 0.0)]
    nearest = sorted(some, key=lambda decision: decision.distance)[:_SHOWN]
    rows: list = [decision.row() for decision in some if decision in nearest]
    if len(some) > _SHOWN:
        rows.append(f"and {len(some) - _SHOWN} more, farther from their thresholds")
    return Tabular("lrrrrl", rows, header)


def require_clear(decisions: Iterable[RankDecision], what: str) -> None:
    """Refuse to build something on a rank that the numbers do not decide."""
    unclear = [decision for decision in decisions if not decision.clear]
    if unclear:
        raise UnclearRankError(
            f"{what} rests on a rank that the numbers do not decide: {unclear[0]}. Set the small numbers in the data "
            "to zero if they are errors, or give a `tolerance` well below them if they count.",
            unclear,
        )
