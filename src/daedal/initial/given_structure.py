"""What a user says of the structure of an implicit problem, held against its equations where a run starts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.initial.initial_structure import evaluate_or_nan
from daedal.kernels.patterns import band_pattern, sparse_groups

_SHIFTS = (1.0, 1e12)  # of y', so that a term with y' is felt beside others, whatever the unit of time
_SEEN = 1e-6  # part of a directional derivative that entries left out must make to be looked for
_MOST_LOOKED_AT = 5  # equations


def refuse_wrong_algebraic(problem: Any, t: float, y: np.ndarray, yp: np.ndarray) -> None:
    """Refuse variables that are said to be algebraic, and whose derivatives occur."""
    said = np.flatnonzero(problem.algebraic)
    base = evaluate_or_nan(problem, t, y, yp)
    for factor in _SHIFTS if said.size else ():
        shift = factor * np.maximum(1.0, np.abs(yp))
        if not _changed(problem, t, y, yp, base, said, shift).any():
            continue
        for j in said:
            changed = np.flatnonzero(_changed(problem, t, y, yp, base, np.array([j]), shift))
            if changed.size:
                name = problem.label(int(j))
                raise InvalidProblemError(
                    f"algebraic: {name} is said to be algebraic, but equation {changed[0]} contains its derivative. "
                    f"Remedy: take {name} out of algebraic, or leave algebraic out, then it is found"
                )


def _changed(problem, t, y, yp, base, columns, shift) -> np.ndarray:
    """The equations that change with the derivatives of some variables; none where functions remember or draw."""
    moved = yp.copy()
    moved[columns] += shift[columns]
    changed = (evaluate_or_nan(problem, t, y, moved) != base) & np.isfinite(base)
    if changed.any() and (evaluate_or_nan(problem, t, y, yp) != base)[changed].any():
        return np.zeros_like(changed)
    return changed


def missing_entry(problem: Any, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[int, int] | None:
    """Row and column of an entry that iteration matrices have, and `sparsity` or `bandwidth` has not; None without.

    A derivative along a random direction that is put together from the entries, which are found by groups of columns as
    in a run, differs from a difference along it where one is left out. What is told is then seen in the bits: the
    equation changes with variables that it is said not to contain.
    """
    pattern = _pattern(problem)
    start, order = sparse_groups(pattern)
    step = np.sqrt(np.finfo(float).eps) * np.maximum(np.abs(y), np.maximum(np.abs(yp), 1.0))
    base = evaluate_or_nan(problem, t, y, yp)

    def difference(direction: np.ndarray) -> np.ndarray:
        return evaluate_or_nan(problem, t, y + step * direction, yp + step * direction) - base

    def responds(i: int, columns: np.ndarray) -> bool:
        direction = np.zeros(y.size)
        direction[columns] = 1.0
        return any(difference(factor * direction)[i] != 0.0 for factor in (1.0, 1e4))  # beside large terms

    if difference(np.zeros(y.size)).any():  # not finite, or of a function that remembers or draws
        return None
    along = np.random.default_rng(0).uniform(0.5, 1.5, y.size)
    told, size = np.zeros(y.size), np.zeros(y.size)
    for columns in (order[a:b] for a, b in pairwise(start)):
        unit = np.zeros(y.size)
        unit[columns] = 1.0
        change = difference(unit)
        for j in columns:
            rows = pattern.indices[pattern.indptr[j] : pattern.indptr[j + 1]]
            told[rows] += change[rows] * along[j]
            size[rows] += np.abs(change[rows]) * along[j]
    wrong = np.abs(difference(along) - told)
    suspicious = np.flatnonzero(wrong > _SEEN * size)
    by_rows = pattern.tocsr()
    for i in suspicious[np.argsort(-wrong[suspicious])][:_MOST_LOOKED_AT]:
        outside = np.ones(y.size, dtype=bool)
        outside[by_rows.indices[by_rows.indptr[i] : by_rows.indptr[i + 1]]] = False
        columns = np.flatnonzero(outside)
        if columns.size and responds(i, columns):
            while columns.size > 1:
                half = columns[: columns.size // 2]
                columns = half if responds(i, half) else columns[half.size :]
            if responds(i, columns):
                return int(i), int(columns[0])
    return None


def _pattern(problem: Any) -> Any:
    """The structure that was given, as a CSC array."""
    if problem.sparsity is not None:
        return problem.sparsity
    from scipy.sparse import csc_array

    start, rows = band_pattern(problem.n, *problem.bandwidth)
    return csc_array((np.ones(rows.size), rows, start), shape=(problem.n, problem.n))
