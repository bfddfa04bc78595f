"""Checks of problem data shared by several problem classes."""

import inspect
import reprlib
from collections.abc import Iterable, Sequence
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from daedal.common.tabular import plural
from daedal.errors import InvalidProblemError
from daedal.problems.compile import last_argument

# attribute with the size of the first part of the initial values: q of a mechanism, ...
_FIRST = ("n_q", "n_x", "n_y", "n")
_SMALLEST_RTOL = 10.0 * float(np.finfo(float).eps)


def set_checked(problem, **values):
    """Replace the arguments of a (frozen) problem by their checked values."""
    for name, value in values.items():
        object.__setattr__(problem, name, value)


def check_callable(function, name: str):
    if not callable(function):
        raise InvalidProblemError(f"{name} must be a function, got {type(function).__name__}")


def check_functions(params, **functions):
    """Check that all functions are callable and accept the parameters; None entries are omitted functions."""
    for name, function in functions.items():
        if function is not None:
            check_callable(function, name)
            last_argument(function, params)  # raises if a compiled function cannot accept them


def check_arguments(name: str, function, arguments: Sequence[str], params):
    """Check that `function` accepts the `arguments` with which it is called, followed by the parameters."""
    arguments = [*arguments] if params is None else [*arguments, "p"]
    try:
        signature = inspect.signature(getattr(function, "py_func", function))
    except (TypeError, ValueError):  # functions of extension modules may have no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        passed = "params is not given" if params is None else "params is given, as p"
        raise InvalidProblemError(
            f"{name} has the arguments {signature}, but it is called as {name}({', '.join(arguments)}); {passed}"
        ) from None


def check_invariants(function: Any, arguments: Sequence[str], params: Any) -> None:
    """Check the function `invariants` of a problem, unless it is None."""
    if function is not None:
        check_functions(params, invariants=function)
        check_arguments("invariants", function, arguments, params)


def check_structure(n: int, sparsity, bandwidth) -> dict[str, Any]:
    """Check the structure of the iteration matrix, of which at most one of sparsity and bandwidth is given."""
    if sparsity is not None and bandwidth is not None:
        raise InvalidProblemError("give either sparsity or bandwidth, not both")
    return {"sparsity": check_sparsity(sparsity, n), "bandwidth": check_bandwidth(bandwidth, n)}


def check_size(value, name: str, minimum: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise InvalidProblemError(f"{name} must be an integer of at least {minimum}, got {value!r}")
    return int(value)


def check_real(values, name: str, expected: str) -> np.ndarray:
    """`values` as a new float array; complex numbers, strings and masked entries raise."""
    if hasattr(values, "mask") and np.ma.is_masked(values):  # importing np.ma is slow
        raise InvalidProblemError(f"{name} must {expected}, got a masked array with masked entries; fill them first")
    try:
        array = np.array(values)
        if array.dtype.kind in "fiub" or (array.dtype.kind == "O" and not _holds_text(array)):
            return array.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidProblemError(f"{name} must {expected}, got {reprlib.repr(values)}")


def _holds_text(array: np.ndarray) -> bool:
    """Whether an object array holds strings, which NumPy would convert to numbers."""
    return any(isinstance(entry, (str, bytes)) for entry in array.flat)


def check_number(value, name: str, expected: str = "be a number") -> float:
    if value is None:
        raise InvalidProblemError(f"{name} must {expected}, got None")
    array = check_real(value, name, expected)
    if array.ndim:
        raise InvalidProblemError(f"{name} must {expected}, got an array of shape {array.shape}")
    return float(array)


def check_finite(value, name: str) -> float:
    number = check_number(value, name)
    if not np.isfinite(number):
        raise InvalidProblemError(f"{name} must be finite, got {number}")
    return number


def check_positive(value, name: str) -> float:
    number = check_number(value, name, "be a positive number")
    if not number > 0.0:
        raise InvalidProblemError(f"{name} must be positive, got {number:g}")
    return number


def check_flag(value, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidProblemError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_weight(weight, n: int, expected: str) -> np.ndarray:
    """Convert a weight, a symmetric positive definite matrix or its diagonal, to a checked matrix."""
    matrix = check_real(weight, "weight", expected)
    if matrix.shape == (n,):
        matrix = np.diag(matrix)
    if matrix.ndim != 2:
        raise InvalidProblemError(f"weight must {expected}, got {reprlib.repr(weight)}")
    if matrix.shape != (n, n):
        raise InvalidProblemError(f"weight has shape {matrix.shape}; expected ({n}, {n})")
    if not np.all(np.isfinite(matrix)):
        raise InvalidProblemError("weight holds values that are not finite")
    if np.max(np.abs(matrix - matrix.T)) > 1e-8 * np.max(np.abs(matrix)):
        raise InvalidProblemError("weight must be symmetric")
    matrix = 0.5 * (matrix + matrix.T)
    scale = np.sqrt(np.abs(np.diag(matrix)))
    if not (np.all(scale > 0.0) and np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0] > 1e-14):
        raise InvalidProblemError("weight must be positive definite")
    return matrix


def paired(problem: Any, initial: Any) -> Any:
    """(y0, None) if `initial` is y0 alone, recognised by its length; otherwise `initial` unchanged."""
    size = next((getattr(problem, name) for name in _FIRST if isinstance(getattr(problem, name, None), int)), None)
    if size is None or initial is None or isinstance(initial, str):
        return initial
    if not isinstance(initial, np.ndarray) and not all(isinstance(entry, Real) for entry in _entries(initial)):
        return initial
    values = np.asarray(initial)
    if values.shape == (size,) or (values.shape == () and size == 1):
        return initial, None
    return initial


def _entries(initial: Any) -> Iterable[Any]:
    """The entries of a list or tuple; a scalar becomes a one-entry list."""
    return initial if isinstance(initial, (list, tuple)) else [initial]


def check_names(names: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    try:
        result = tuple(str(name) for name in names)
    except TypeError:
        raise InvalidProblemError(f"names must be a sequence of {plural(n, 'string')}, got {names!r}") from None
    if len(result) != n:
        raise InvalidProblemError(f"names has {len(result)} entries for {plural(n, 'variable')}")
    if len(set(result)) != n:
        twice = next(name for name in result if result.count(name) > 1)
        raise InvalidProblemError(f"names must be unique, but {twice!r} occurs more than once")
    return result


def is_pair(initial) -> bool:
    """Whether `initial` is a pair of vectors (the second may be None) rather than a vector of two entries."""
    return isinstance(initial, (tuple, list)) and len(initial) == 2 and any(x is None or np.ndim(x) for x in initial)


def check_mask(mask, n: int, name: str, names: Sequence[str] | None = None) -> np.ndarray:
    """Convert a mask, a list of indices or a list of variable names to a boolean mask."""
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


def check_vector(
    values, n: int, name: str, *, finite: bool = True, names: Sequence[str] | None = None, label=None
) -> np.ndarray:
    """Convert to a float vector of length n; messages name its entries by `names` or ``label(i)``."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        array = values.copy()
    else:
        array = check_real(values, name, f"hold {plural(n, 'real number')}")
    if array.shape == () and n == 1:
        array = array.reshape(1)
    if array.shape != (n,):
        raise InvalidProblemError(f"{name} has shape {array.shape}; expected ({n},)")
    if finite and not isfinite(float(array.sum())) and not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        if label is None:
            label = (names or [f"{name}[{i}]" for i in range(n)]).__getitem__
        raise InvalidProblemError(f"{name} is not finite: {label(bad)} = {array[bad]}")
    return array


def check_sparsity(sparsity, n: int):
    """Structure of the iteration matrix as a sorted boolean CSC array, or None."""
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
        ml, mu = bandwidth
    except (TypeError, ValueError):
        raise InvalidProblemError(f"bandwidth must be a pair (ml, mu), got {bandwidth!r}") from None
    ml, mu = check_size(ml, "bandwidth ml", 0), check_size(mu, "bandwidth mu", 0)
    if ml >= n or mu >= n:
        raise InvalidProblemError(f"bandwidth {(ml, mu)} must lie between 0 and {n - 1}")
    return ml, mu


def check_tolerances(n: int, rtol, atol) -> tuple[np.ndarray, np.ndarray]:
    """Tolerances of all components as vectors."""
    relative, smallest = _check_tolerance(n, rtol, "rtol")
    absolute, _ = _check_tolerance(n, atol, "atol")
    if smallest < _SMALLEST_RTOL:
        raise InvalidProblemError(
            f"rtol = {smallest:g} is below the resolution of double precision; use {1.05 * _SMALLEST_RTOL:.2g} or more"
        )
    return relative, absolute


def _check_tolerance(n: int, value, name: str) -> tuple[np.ndarray, float]:
    """The tolerance of every component, and the smallest one."""
    array = check_real(value, name, "be a number or a vector of numbers")
    if array.shape not in ((), (n,)):
        raise InvalidProblemError(f"{name} has shape {array.shape}; expected a number or ({n},)")
    smallest, largest = (array.min(), array.max()) if array.ndim else (float(array),) * 2
    if not (smallest >= 0.0 and largest < np.inf):
        raise InvalidProblemError(f"{name} must be finite and not negative, got {value!r}")
    return (array if array.ndim else np.full(n, array)), smallest


def full_matrix(problem, values) -> np.ndarray:
    """Convert the matrix that a function of the problem returned, in any supported structure, to a dense array."""
    if hasattr(values, "toarray"):
        return values.toarray()
    values, n = np.asarray(values, dtype=float), problem.n // getattr(problem, "copies", 1)
    if problem.sparsity is not None:
        from scipy.sparse import csc_array

        return csc_array((values, problem.sparsity.indices, problem.sparsity.indptr), shape=(n, n)).toarray()
    if problem.bandwidth is None:
        return values
    full = np.zeros((n, n))
    rows, columns = np.indices(values.shape)
    rows = rows + columns - problem.bandwidth[1]
    inside = (rows >= 0) & (rows < n)
    full[rows[inside], columns[inside]] = values[inside]
    return full
