"""What can be said of a user's function without Numba: whether it is compiled, and whether its result is usable."""

from __future__ import annotations

import numpy as np

from daedal.errors import InvalidProblemError


def is_compiled(function) -> bool:
    """Whether `function` is a Numba-compiled function."""
    return hasattr(type(function), "nopython_signatures")


def store_vector(name: str, size: int):
    """A check for vector results: returns ``store(result, target)`` with messages that name the function."""

    def store(result, target):
        if type(result) is np.ndarray and result.shape == (size,) and result.dtype.kind == "f":
            target[:] = result
            return
        if type(result) is list and len(result) == size:
            try:
                target[:] = result
                return
            except (TypeError, ValueError):
                pass
        if result is None:
            raise InvalidProblemError(f"{name} returned None; it must return {size} numbers (is a return missing?)")
        values = real_array(result, name, f"{size} real numbers")
        if values.shape != (size,):
            raise InvalidProblemError(f"{name} returned an array of shape {values.shape}; expected ({size},)")
        target[:] = values

    return store


def store_matrix(name: str, rows: int, columns: int):
    """A check for dense matrix results, written column by column."""

    def store(result, target):
        if result is None:
            raise InvalidProblemError(f"{name} returned None; it must return a ({rows}, {columns}) array")
        if hasattr(result, "toarray"):
            result = result.toarray()
        values = real_array(result, name, f"a real ({rows}, {columns}) array")
        if values.shape != (rows, columns):
            raise InvalidProblemError(f"{name} returned an array of shape {values.shape}; expected ({rows}, {columns})")
        target.reshape(columns, rows)[...] = values.T

    return store


def store_sparse(name: str, pattern):
    """A check for sparse matrix results: the entries in the order of the CSC `pattern`."""
    from scipy.sparse import csc_array, issparse

    n = pattern.shape[0]
    columns = np.repeat(np.arange(n), np.diff(pattern.indptr))
    keys = np.append(columns * n + pattern.indices, n * n)  # the last one is beyond all entries

    def store(result, target):
        if isinstance(result, np.ndarray) and result.shape == (pattern.nnz,):
            target[:] = real_array(result, name, "real entries")
            return
        if not issparse(result):
            raise InvalidProblemError(
                f"{name} returned {type(result).__name__}; with sparsity it must return a scipy.sparse matrix "
                f"or the vector of its {pattern.nnz} entries in CSC order"
            )
        if result.shape != pattern.shape:
            raise InvalidProblemError(f"{name} returned a matrix of shape {result.shape}; expected {pattern.shape}")
        matrix = csc_array(result)
        real_array(matrix.data, name, "a real matrix")
        matrix.sum_duplicates()
        matrix.sort_indices()
        if matrix.nnz == pattern.nnz and np.array_equal(matrix.indices, pattern.indices):
            if np.array_equal(matrix.indptr, pattern.indptr):
                target[:] = matrix.data
                return
        given = np.repeat(np.arange(n), np.diff(matrix.indptr)) * n + matrix.indices
        place = np.searchsorted(keys, given)
        kept = matrix.data != 0.0
        outside = kept & (keys[place] != given)
        if np.any(outside):
            column, row = divmod(int(given[np.flatnonzero(outside)[0]]), n)
            raise InvalidProblemError(
                f"{name} has an entry in row {row}, column {column}, where sparsity has none; complete sparsity"
            )
        target[:] = 0.0
        target[place[kept]] = matrix.data[kept]

    return store


def norm_value(result) -> float:
    """The result of a user's norm, checked."""
    value = real_array(result, "norm", "a number >= 0")
    if value.ndim or not value >= 0.0:
        raise InvalidProblemError(f"norm returned {result!r}; it must return a number >= 0")
    return float(value)


def parameter_vector(params) -> np.ndarray:
    """Parameters as the vector of floats that compiled functions get."""
    try:
        values = np.asarray(params)
        if values.dtype.kind in "fiub":
            return np.ascontiguousarray(values, dtype=float).reshape(-1)
        reason = f"got {type(params).__name__} with entries of type '{values.dtype}'"
    except ValueError as error:
        reason = str(error)
    raise InvalidProblemError(f"compiled functions need params as an array of floats: {reason}")


def real_array(result, name: str, expected: str) -> np.ndarray:
    """`result` as a real array, or an error that says what was expected."""
    try:
        values = np.asarray(result)
    except ValueError as error:
        raise InvalidProblemError(f"{name} returned something that is not an array of numbers: {error}") from error
    if values.dtype.kind not in "fiub":
        raise InvalidProblemError(
            f"{name} returned {type(result).__name__} with entries of type '{values.dtype}'; it must return {expected}"
        )
    return values
