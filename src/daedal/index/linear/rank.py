"""Numerical ranks from singular values, with the gap on which each decision is based.

A numerical rank is a decision: singular values below a threshold are taken as zero. It is reliable if no singular value
lies near the threshold. All structures in this package depend on such decisions and store them, so that users can
inspect the gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from daedal.common.tabular import Tabular
from daedal.errors import DaedalError, InvalidProblemError

TOLERANCE = 1e-10  # singular values below this fraction of the size of the matrix count as zero
_SHOWN = 10  # maximum number of decisions in a table
MARGIN = 30.0  # a decision is clear if no singular value lies within this factor of the threshold


class UnclearRankError(DaedalError, ValueError):
    """A requested structure depends on a rank that cannot be decided numerically.

    Attributes
    ----------
    decisions : tuple of RankDecision
        The ambiguous decisions.

    Examples
    --------
    >>> from daedal import linear
    >>> doubtful = linear.Pencil([[1, 1], [1, 1 + 4e-10]], [[0, 1], [1, 1]])
    >>> try:
    ...     doubtful.weierstrass()
    ... except linear.UnclearRankError:
    ...     print("unclear")
    unclear
    """

    def __init__(self, message: str, decisions: Iterable[RankDecision] = ()):
        super().__init__(message)
        self.decisions = tuple(decisions)


@dataclass(frozen=True, eq=False)
class RankDecision:
    """The numerical rank of a matrix, see :func:`rank_decision`.

    Attributes
    ----------
    what : str
        Name of the matrix.
    rank : int
        The number of singular values above the threshold.
    singular_values : numpy.ndarray
        All singular values, largest first.
    threshold : float
        The threshold used.
    lowest, highest : int
        The possible ranks if ambiguous; equal otherwise.

    Examples
    --------
    >>> from daedal import linear
    >>> decision = linear.rank_decision([[1.0, 2.0], [2.0, 4.0]])
    >>> print(decision.rank, decision.clear)
    1 True
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
        """The smallest nonzero singular value; infinity if there is none."""
        return float(self.singular_values[self.rank - 1]) if self.rank else np.inf

    @property
    def dropped(self) -> float:
        """The largest singular value taken as zero; 0 if there is none."""
        return float(self.singular_values[self.rank]) if self.rank < self.singular_values.size else 0.0

    @property
    def gap(self) -> float:
        """The ratio of `kept` to `dropped`."""
        return self.kept / self.dropped if self.dropped > 0.0 else np.inf

    @property
    def distance(self) -> float:
        """The factor between the threshold and the nearest singular value."""
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
    """The numerical rank of a matrix, and whether it is unambiguous.

    Parameters
    ----------
    matrix : array_like
        Two-dimensional; or its singular values, largest first.
    scale : float, optional
        The reference size for singular values, such as the norm of the matrix from which this one was derived; the
        largest singular value by default.
    tolerance : float
        The threshold is ``tolerance * scale``. The decision is unambiguous if no singular value lies within a factor of
        30 of it, which ensures a gap of almost three digits.
    what : str
        A description of the matrix.

    Examples
    --------
    >>> from daedal.index import linear
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
        values = np.abs(np.linalg.svd(array, compute_uv=False))  # avoids -0
    size = (values[0] if values.size else 0.0) if scale is None else scale
    threshold = tolerance * float(size)
    if threshold == 0.0:
        threshold = np.finfo(float).tiny

    def above(line: float) -> int:
        return int(np.sum(values > line))

    return RankDecision(what, above(threshold), values, threshold, above(threshold * MARGIN), above(threshold / MARGIN))


def decision_table(decisions: Iterable[RankDecision]) -> Tabular:
    """Table of the decisions about nonzero matrices; if there are many, only those nearest to thresholds."""
    header = ("rank of", "rank", "smallest kept", "largest dropped", "threshold", "decision")
    some = [decision for decision in decisions if np.any(decision.singular_values > 0.0)]
    nearest = sorted(some, key=lambda decision: decision.distance)[:_SHOWN]
    rows: list = [decision.row() for decision in some if decision in nearest]
    if len(some) > _SHOWN:
        rows.append(f"and {len(some) - _SHOWN} more, farther from their thresholds")
    return Tabular("lrrrrl", rows, header)


def require_clear(decisions: Iterable[RankDecision], what: str) -> None:
    """Raise an error if a rank needed for a result is ambiguous."""
    unclear = [decision for decision in decisions if not decision.clear]
    if unclear:
        raise UnclearRankError(
            (
                f"{what} depends on a rank that cannot be decided numerically: {unclear[0]}. Set the small numbers in "
                "the data to zero if they are errors, or use a `tolerance` well below them if they are significant."
            ),
            unclear,
        )


# --- units of equations, unknowns and time in which the entries of a pencil are near 1 --------------------------------

_WEIGHT_B = 0.1  # weight of B relative to A, whose ranks are decisive
# entries below this fraction of the other entries in their row and column count as rounding errors, and are ignored
_NOISE = 1e-13


class ScaledPair(NamedTuple):
    """``A * rows[:, None] * columns * time`` and ``B * rows[:, None] * columns``, with powers of 2 as factors."""

    A: np.ndarray
    B: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    time: Any  # a float, or an array of them for stacks of matrices


def scale_pencil(A: np.ndarray, B: np.ndarray) -> ScaledPair:
    """Scale equations, unknowns and time such that the nonzero entries of A and B are near 1.

    Least squares for the logarithms of the entries (A. R. Curtis, J. K. Reid, J. Inst. Maths Applics 10, 1972). Powers
    of 2 preserve all digits of the entries. Time is an additional unit, unlike for a single matrix, which
    :func:`daedal.index.structure.equilibration.equilibrate` scales. In stacks of matrices each pair is scaled
    separately.
    """
    m, n = A.shape[-2:]
    in_A, in_B = _present(A), _present(B)
    weight = in_A + _WEIGHT_B * in_B
    log_A = np.log2(np.abs(A), where=in_A > 0.0, out=np.zeros_like(A))
    log_B = np.log2(np.abs(B), where=in_B > 0.0, out=np.zeros_like(B))
    total = log_A + _WEIGHT_B * log_B
    normal = np.zeros((*A.shape[:-2], m + n + 1, m + n + 1))
    diagonal = np.arange(m + n)
    normal[..., diagonal, diagonal] = np.concatenate([weight.sum(axis=-1), weight.sum(axis=-2)], axis=-1)
    normal[..., :m, m:-1], normal[..., m:-1, :m] = weight, np.swapaxes(weight, -1, -2)
    normal[..., -1, :-1] = np.concatenate([in_A.sum(axis=-1), in_A.sum(axis=-2)], axis=-1)
    normal[..., :-1, -1] = normal[..., -1, :-1]
    normal[..., -1, -1] = in_A.sum(axis=(-1, -2))
    last = log_A.sum(axis=(-1, -2))[..., None]
    right = np.concatenate([total.sum(axis=-1), total.sum(axis=-2), last], axis=-1)
    # Factors not determined by the entries (a common factor of rows and columns, empty rows) stay near 1.
    logs = np.linalg.solve(normal + 1e-8 * np.eye(m + n + 1), right[..., None])[..., 0]
    powers = np.exp2(-np.round(logs))
    rows, columns, time = powers[..., :m], powers[..., m : m + n], powers[..., -1]
    factors = rows[..., :, None] * columns[..., None, :]
    scaled = A * factors * time[..., None, None]
    return ScaledPair(scaled, B * factors, rows, columns, float(time) if time.ndim == 0 else time)


def _present(matrix: np.ndarray) -> np.ndarray:
    """1 for entries that affect the scale, 0 for zeros and rounding errors."""
    size = np.abs(matrix)
    if size.size == 0:
        return np.zeros(size.shape)
    beside = np.minimum(size.max(axis=-1, keepdims=True), size.max(axis=-2, keepdims=True))
    return (size > _NOISE * beside).astype(float)


# --- descriptions of linear systems ----------------------------------------------------------------------------------

_LINE = 118


def combination(coefficients: np.ndarray, names: Sequence[str], *, digits: int = 4) -> str:
    """A linear combination as text: ``x1 - 2 x3``. Coefficients at round-off level are omitted."""
    size = np.max(np.abs(coefficients), initial=0.0)
    text = ""
    for value, name in zip(coefficients, names):
        if abs(value) <= 1e-9 * size:
            continue
        sign = "-" if value < 0.0 else "+"
        factor = "" if abs(abs(value) - 1.0) < 1e-12 else f"{abs(value):.{digits}g} "
        text += f" {sign} {factor}{name}" if text else f"{'-' if value < 0.0 else ''}{factor}{name}"
    return text or "0"


def numbers(values: Iterable[complex], limit: int = 12) -> str:
    """Numbers as text, complex ones in pairs; long lists are truncated."""
    shown = []
    for value in sorted(np.atleast_1d(np.asarray(list(values))), key=lambda z: (round(z.real, 9), abs(z.imag))):
        if value.imag < 0.0:
            continue
        shown.append(f"{value.real:.6g}" + (f" ± {value.imag:.6g}i" if value.imag > 0.0 else ""))
    if len(shown) > limit:
        return ", ".join(shown[:limit]) + f", ... ({len(shown)} in all)"
    return ", ".join(shown) if shown else "none"


def check_names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """The names of the unknowns, ``x[0]``, ``x[1]``, ... by default."""
    if names is None:
        return tuple(f"x[{j}]" for j in range(n))
    if isinstance(names, str) or len(names) != n:
        raise InvalidProblemError(f"names must be a sequence of {n} names, one for each unknown")
    return tuple(str(name) for name in names)


def check_matrix(value: Any, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """A real matrix with finite entries, of the given shape."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"{name} must be a real matrix: {error}") from None
    if array.ndim != 2 or (shape is not None and array.shape != shape):
        wanted = "a matrix" if shape is None else f"a matrix of shape {shape}"
        raise InvalidProblemError(f"{name} must be {wanted}, but its shape is {array.shape}")
    if not np.all(np.isfinite(array)):
        i, j = np.argwhere(~np.isfinite(array))[0]
        raise InvalidProblemError(f"{name}[{i}, {j}] is {array[i, j]}, not a finite number")
    return array


class TitledTables:
    """Mixin for objects displayed as a title and tables, as text and in notebooks."""

    def title(self) -> str:
        """First line of the display."""
        raise NotImplementedError

    def tables(self) -> Sequence[Tabular]:
        """Tables below the title."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join([self.title(), *(_indented(table) for table in self.tables())])

    def __repr__(self) -> str:
        return f"<{self.title()}>"

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        body = Markup("<p></p>").join(table.__html__() for table in self.tables())
        return str(Markup("<p><b>{}</b></p>{}").format(self.title(), body))


def _indented(table: Tabular) -> str:
    width = _LINE if not table.header else None
    return str(Tabular(table.columns, table.rows, table.header, indent=2, width=width))
