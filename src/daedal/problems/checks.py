"""Checks of problem data that more than one problem class needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from daedal.errors import InvalidProblemError


def check_callable(function, name: str):
    if not callable(function):
        raise InvalidProblemError(f"{name} must be a function, got {type(function).__name__}")


def check_size(value, name: str, minimum: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise InvalidProblemError(f"{name} must be an integer of at least {minimum}, got {value!r}")
    return int(value)


def check_names(names: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    result = tuple(str(name) for name in names)
    if len(result) != n:
        raise InvalidProblemError(f"names has {len(result)} entries for {n} variables")
    if len(set(result)) != n:
        raise InvalidProblemError("names must be different from each other")
    return result


def check_mask(mask, n: int, name: str, names: tuple[str, ...] | None = None) -> np.ndarray:
    """A boolean mask from a mask, a list of indices, or a list of variable names."""
    values = np.asarray(mask)
    if values.dtype == bool:
        if values.shape != (n,):
            raise InvalidProblemError(f"{name} is a mask of shape {values.shape}; expected ({n},)")
        return values.copy()
    result = np.zeros(n, dtype=bool)
    for entry in np.atleast_1d(values).tolist():
        if isinstance(entry, str):
            if names is None or entry not in names:
                raise InvalidProblemError(f"{name} names the unknown variable '{entry}'")
            result[names.index(entry)] = True
        elif isinstance(entry, int) and -n <= entry < n:
            result[entry] = True
        else:
            raise InvalidProblemError(f"{name} has the entry {entry!r}; expected an index below {n} or a boolean mask")
    return result


def check_vector(values, n: int, name: str, *, finite: bool = True, names: tuple[str, ...] | None = None) -> np.ndarray:
    """A float vector of length n."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"{name} must hold {n} real numbers: {error}") from error
    if array.shape == () and n == 1:
        array = array.reshape(1)
    if array.shape != (n,):
        raise InvalidProblemError(f"{name} has shape {array.shape}; expected ({n},)")
    if finite and not np.all(np.isfinite(array)):
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        label = names[bad] if names else f"{name}[{bad}]"
        raise InvalidProblemError(f"{name} is not finite: {label} = {array[bad]}")
    return array


def check_sparsity(sparsity, n: int):
    """The structure of the iteration matrix as a boolean CSC array, sorted, or None."""
    if sparsity is None:
        return None
    from scipy.sparse import csc_array

    try:
        pattern = csc_array(sparsity)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"sparsity must be a scipy.sparse matrix or a 2-D array: {error}") from error
    if pattern.shape != (n, n):
        raise InvalidProblemError(f"sparsity has shape {pattern.shape}; expected ({n}, {n})")
    pattern = csc_array((np.ones(pattern.nnz), pattern.indices, pattern.indptr), shape=(n, n))
    pattern.sum_duplicates()
    pattern.sort_indices()
    return pattern


def check_bandwidth(bandwidth, n: int) -> tuple[int, int] | None:
    if bandwidth is None:
        return None
    try:
        ml, mu = (int(b) for b in bandwidth)
    except (TypeError, ValueError):
        raise InvalidProblemError(f"bandwidth must be a pair (ml, mu), got {bandwidth!r}") from None
    if not (0 <= ml < n and 0 <= mu < n):
        raise InvalidProblemError(f"bandwidth {(ml, mu)} must lie between 0 and {n - 1}")
    return ml, mu
