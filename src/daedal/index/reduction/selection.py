"""Selection of the integrated derivatives, block by block; its monitoring; points on all equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr

from daedal.index.reduction.prolongation import Block
from daedal.initial.jet import consistent_jet
from daedal.symbolic.tracing.parameters import NAME

if TYPE_CHECKING:
    from daedal.index.reduction.reduced_problem import ReducedProblem

_SINGULAR = 1e-11  # ratio of pivots below which the equations of a block are rank deficient


class SingularBlock(Exception):
    """The equations of a block are rank deficient at this point."""

    def __init__(self, block: Block):
        super().__init__("singular")
        self.block = block


Choice = Callable[[np.ndarray], np.ndarray | None]
"""Function that selects the rows S of a block, given the matrix of its equations in units of the sizes of its unknowns;
it returns None if no selection is possible."""


def choose(
    blocks: Sequence[Block], matrices: Sequence[np.ndarray], scale: np.ndarray, choice: Choice
) -> list[np.ndarray]:
    """For each block, the rows S that define S u' = S (next derivatives); `scale` are the sizes of u."""
    return [_rows(block, matrix, scale[block.places], choice) for block, matrix in zip(blocks, matrices, strict=True)]


def _rows(block: Block, matrix: np.ndarray, scale: np.ndarray, choice: Choice) -> np.ndarray:
    if not block.rows:
        return np.eye(len(block.columns))
    matrix = matrix * scale
    norms = np.abs(matrix).max(axis=1, keepdims=True)
    if not np.isfinite(matrix).all() or np.any(norms == 0.0):
        raise SingularBlock(block)
    rows = choice(matrix / norms)
    if rows is None:
        raise SingularBlock(block)
    rows = rows / scale
    return rows / np.abs(rows).max(axis=1, keepdims=True, initial=0.0)


def unit_vectors(matrix: np.ndarray) -> np.ndarray | None:
    """Unit vectors that select all derivatives except the dummy derivatives, the first pivots of QR.

    Mattsson and Soederlind, section 3, with numerical column pivoting. None if the equations are rank deficient.
    """
    count, n = matrix.shape
    triangle, order = qr(matrix, mode="r", pivoting=True)
    pivots = np.abs(np.diag(triangle))
    return None if pivots[count - 1] <= _SINGULAR * pivots[0] else np.eye(n)[np.sort(order[count:])]


def tangents(matrix: np.ndarray) -> np.ndarray | None:
    """Rows S that form an orthonormal basis of the tangent space of the equations; None if they are rank deficient."""
    return kernel(matrix, len(matrix))


def kernel(matrix: np.ndarray, rank: int) -> np.ndarray | None:
    """Orthonormal rows N with `matrix` N^T = 0, for a matrix of this rank; None if its rank is smaller."""
    found = _decomposed(matrix, rank)
    return None if found is None else found[rank:]


def row_space(matrix: np.ndarray, rank: int) -> np.ndarray | None:
    """Orthonormal rows that span the row space of a matrix of this rank; None if its rank is smaller."""
    found = _decomposed(matrix, rank)
    return None if found is None else found[:rank]


def _decomposed(matrix: np.ndarray, rank: int) -> np.ndarray | None:
    if rank == 0:
        return np.eye(matrix.shape[1])
    _, values, right = np.linalg.svd(matrix)
    return right if values[rank - 1] > _SINGULAR * values[0] else None


def amplification(
    blocks: Sequence[Block], matrices: Sequence[np.ndarray], chosen: Sequence[np.ndarray], scale: np.ndarray
) -> float:
    """The largest change of a dependent derivative with an integrated one, both in units of their sizes.

    It is at most of order 1 for the best selection, and infinite for a singular one.
    """
    largest = 0.0
    for block, matrix, rows in zip(blocks, matrices, chosen, strict=True):
        if 0 < len(rows) < len(block.columns):
            size = scale[block.places]
            whole = np.concatenate([matrix, rows]) * size
            right = np.concatenate([np.zeros((len(matrix), len(rows))), np.diag(np.abs(rows * size).max(axis=1))])
            try:
                largest = max(largest, float(np.abs(np.linalg.solve(whole, right)).max()))
            except np.linalg.LinAlgError:
                return np.inf
    return largest


def stacked(blocks: Sequence[Block], chosen: Sequence[np.ndarray], n: int, dense: bool) -> tuple[Any, Any]:
    """The rows S of all blocks as one matrix on u, and the same rows on the derivatives of the selected unknowns."""
    count, first = sum(map(len, chosen)), 0
    kind = np.zeros if dense else sp.lil_array
    fixed, following = kind((count, n)), kind((count, n))
    for block, rows in zip(blocks, chosen, strict=True):
        i, k = np.nonzero(rows)
        fixed[first + i, block.places[k]] = rows[i, k]
        following[first + i, block.next_places[k]] = rows[i, k]
        first += len(rows)
    return (fixed, following) if dense else (sp.csr_array(fixed), sp.csr_array(following))


# --- monitoring of a selection during one run -------------------------------------------------------------------------


class PivotWatch:
    """The hook called after every accepted step of a run, with its own memory.

    The selection of `reduced` may change between segments; its blocks do not.
    """

    def __init__(self, reduced: ReducedProblem):
        from daedal.index.reduction.step_hooks import BLOCK, WATCH, watch_hook
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Record

        code = reduced.block_code
        self._memory = np.zeros(code.size)
        self._numbers = self._memory[code.slices[NAME]]
        self.scale, self._rows, self._blocks = np.zeros(reduced.problem.n), [], []
        for k, block in enumerate(reduced.tied):
            n = len(block.columns)
            record = Record.allocated(
                BLOCK,
                columns=n,
                equations=len(block.rows),
                places=reduced.places(block.columns),
                values=self._memory[reduced.block_values(k)],
                matrix=dense_lu(n),
            )
            self._rows.append(record.array("rows"))
            self._blocks.append(record)
        self._record = Record(
            WATCH,
            n=reduced.problem.n,
            code=code.address,
            block=self._memory,
            blocks=len(self._blocks),
            addresses=np.array([record.address for record in self._blocks], dtype=np.int64),
            scale=self.scale,
        )
        self._code = code
        self.hook: tuple[Any, Any] = watch_hook, self._record

    def begin(self, reduced: ReducedProblem, scale: np.ndarray, limit: float) -> None:
        """Monitor a selection; `scale` are the sizes of the unknowns so far."""
        self._numbers[:] = reduced.constraints.numbers
        self.scale[:] = scale
        self._record["limit"] = limit
        chosen = [rows for block, rows in zip(reduced.blocks, reduced.chosen, strict=True) if block.rows and block.free]
        for rows, own in zip(self._rows, chosen, strict=True):
            rows[:] = own


# --- values of a problem lifted to a point on all equations of a prolonged system -------------------------------------

# in the search for derivatives at given values: maximum number of corrections, and residual, relative to its terms, up
# to which an equation counts as satisfied
_MOST_CORRECTIONS, _ROUNDOFF = 5, 1e-13


def lift(reduced: ReducedProblem, t: float, y: np.ndarray, yp: np.ndarray | None = None) -> np.ndarray:
    """A point u that satisfies all equations, near values of the original problem and, if known, their derivatives.

    Values y that satisfy all equations are unchanged; NaN denotes unknown values.
    """
    known = np.isfinite(y)
    around = reduced.around(np.where(known, y, 0.0), np.zeros(reduced.n) if yp is None else yp)
    u = _completed(reduced, t, around) if known.all() else None
    if u is None:
        u = _with_others(reduced, t, around, known & ~reduced.is_highest[: reduced.n])
    if u is not None:
        return u
    jet = np.full((3, reduced.equations.n), np.nan)
    for (j, k), value, slope in zip(reduced.prolongation.leading, y, y if yp is None else yp, strict=True):
        jet[k, j] = value
        if yp is not None and (j, k + 1) not in reduced.prolongation.leading:
            jet[k + 1, j] = slope
    given = jet[: 1 + max(np.flatnonzero(np.isfinite(jet).any(axis=1)), default=0)]
    return reduced.from_jet(consistent_jet(reduced.equations, t, given, offsets=reduced.prolongation.c))


def _completed(reduced: ReducedProblem, t: float, u: np.ndarray) -> np.ndarray | None:
    """u with y fixed, by Gauss-Newton iteration for the derivatives; None if residuals exceed round-off."""
    for _ in range(_MOST_CORRECTIONS):
        if _is_satisfied(reduced, t, u):
            return u
        f, matrix, _ = reduced.constraints.values(t, u)
        if not (np.isfinite(f).all() and np.isfinite(matrix.data).all()):
            return None
        u = u.copy()
        u[reduced.n :] -= np.linalg.lstsq(matrix[:, reduced.n :].toarray(), f, rcond=None)[0]
    return None


def _with_others(reduced: ReducedProblem, t: float, u: np.ndarray, kept: np.ndarray) -> np.ndarray | None:
    """u with modified highest derivatives and unknown values, by Newton's method; None if other values must change."""
    start = u[: reduced.n].copy()
    for _ in range(2):  # the size of zero values is unknown
        sizes = np.where(u == 0.0, np.inf, np.abs(u))
        try:
            selected = reduced.selected(t, u, np.where(u == 0.0, 1.0, sizes))
        except SingularBlock:
            return None
        [u], _, [found] = selected.exact(np.array([t]), u[None, :], sizes)
        if not found:
            return None
    moved = np.abs(u[: reduced.n] - start) > _ROUNDOFF * np.abs(start)
    return None if np.any(moved & kept) or not _is_satisfied(reduced, t, u) else u


def _is_satisfied(reduced: ReducedProblem, t: float, u: np.ndarray) -> bool:
    """Whether all equations hold to round-off of their terms."""
    f, matrix, _ = reduced.constraints.values(t, u)
    return bool(np.all(np.abs(f) <= _ROUNDOFF * (abs(matrix) @ np.abs(u))))
