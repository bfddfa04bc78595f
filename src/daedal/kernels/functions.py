"""Checks of user functions without Numba: whether they are compiled, and whether their results are valid."""

import ctypes
from abc import ABC, abstractmethod

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable

_PLAIN = frozenset((float, int, np.float64))  # types that need no further check; NumPy would also convert some strings


def is_compiled(function) -> bool:
    """Whether a function was compiled by Numba."""
    return hasattr(type(function), "nopython_signatures")


class CodedFunction(ABC):
    """A user's function with its own machine code, in the calling convention of compiled functions.

    The code is a C function ``int (double t, double* block)`` with the block [ arguments | scalars | result, column by
    column | numbers | workspace ]; it returns 0, or 1 if the function must be called from Python, which is always
    possible.

    Attributes
    ----------
    address : int
        Address of the machine code.
    workspace : int
        Number of floats required after the numbers.
    size : int
        Total number of floats in its block; the code would overrun a smaller one.
    """

    address: int
    workspace: int
    size: int

    @property
    def reads(self) -> object:
        """The reader of the parameters; functions with the same reader use the same numbers."""
        return self

    @abstractmethod
    def numbers(self, params) -> np.ndarray:
        """The parameter values used by the code; their number is fixed."""

    @abstractmethod
    def evaluate(self, t: float, *arguments) -> tuple[int, np.ndarray]:
        """Status and result of the machine code; parameters are the last argument."""

    @abstractmethod
    def __call__(self, t: float, *arguments):
        """Call the function from Python; parameters are its last argument, as passed by the user."""


class NativeFunction:
    """A residual F(t, y, y') computed by Daedal in compiled code from the data of a record.

    Parameters
    ----------
    kernel : Pointer
        ``status = kernel(t, block)`` with the block [y | y' | F]; it is preceded by the address of `record`.
    record : Record
        The data for the kernel.
    bridge : Bridge
        Owner of the user functions called by the kernel, and of their exceptions.
    n : int
        Number of equations.
    linear : pair of Pointer, optional
        `prepare` and `solve` of a linear solver for this residual.
    hook : (Pointer, Record), optional
        Called after every accepted step, with the record.
    keep : object, optional
        Objects that must outlive the function, because the record points to them.
    """

    def __init__(self, kernel, record, bridge, n: int, linear=None, hook=None, keep=None):
        self.kernel, self.record, self.bridge, self.n = kernel, record, bridge, n
        self.linear, self.hook, self.keep = linear, hook, keep

    def __call__(self, t: float, *arguments) -> np.ndarray:
        """F(t, y, y') or F(t, x, x', x''), from Python."""
        return self.evaluate_block(t, arguments)

    def evaluate_block(self, t: float, arguments, size: int | None = None) -> np.ndarray:
        """The result of the kernel, `size` numbers (n by default), for a block that starts with these vectors."""
        values = np.concatenate(arguments)
        memory = np.zeros(1 + values.size + (self.n if size is None else size))
        memory[:1].view(np.int64)[0] = self.record.data.ctypes.data
        memory[1 : values.size + 1] = values
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_int64)(self.kernel.address)
        status = function(float(t), memory.ctypes.data + 8)
        self.bridge.raise_pending()
        if status != 0:
            raise Unevaluable("a function of the model cannot be evaluated here")
        return memory[values.size + 1 :].copy()


class NativeMatrix(NativeFunction):
    """A matrix dF/dy + cj dF/dy', or dF/dx + c1 dF/dx' + c2 dF/dx'', of a native residual.

    The block is [vectors | factors | matrix, column by column].
    """

    def __call__(self, t: float, *arguments) -> np.ndarray:
        """The dense matrix, from Python."""
        vectors = [np.atleast_1d(argument) for argument in arguments]
        return self.evaluate_block(t, vectors, self.n**2).reshape(self.n, self.n).T


def store_vector(name: str, size: int):
    """A check for vector results: returns ``store(result, target)`` with messages that name the function."""

    def store(result, target):
        if type(result) is np.ndarray and result.shape == (size,) and result.dtype.kind == "f":
            target[:] = result
            return
        if type(result) is list and len(result) == size and _PLAIN.issuperset(map(type, result)):
            try:
                target[:] = result
                return
            except OverflowError:  # an integer outside the floating-point range
                pass
        if result is None:
            numbers = f"{size} number{'s' * (size != 1)}"
            raise InvalidProblemError(f"{name} returned None; it must return {numbers} (is a return missing?)")
        values = real_array(result, name, f"{size} real number{'s' * (size != 1)}")
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
    keys = np.append(columns * n + pattern.indices, n * n)  # the last entry is larger than all others

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
                f"{name} has an entry in row {row}, column {column}, where sparsity has none. Remedy: add it to "
                "sparsity"
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
    """Parameters as the vector of floats for compiled functions."""
    if type(params) is np.ndarray and params.dtype == np.float64 and params.ndim == 1:
        return params
    try:
        values = np.asarray(params)
        if values.dtype.kind in "fiub":
            return np.ascontiguousarray(values, dtype=float).reshape(-1)
        reason = f"got {type(params).__name__} with entries of type '{values.dtype}'"
    except ValueError as error:
        reason = str(error)
    raise InvalidProblemError(f"compiled functions need params as an array of floats: {reason}")


def real_array(result, name: str, expected: str) -> np.ndarray:
    """`result` as a real array; otherwise an error that states what was expected."""
    try:
        values = np.asarray(result)
    except ValueError as error:
        raise InvalidProblemError(f"{name} returned something that is not an array of numbers: {error}") from error
    if np.ma.is_masked(result):
        raise InvalidProblemError(f"{name} returned a masked array with masked entries; it must return {expected}")
    if values.dtype.kind not in "fiub":
        raise InvalidProblemError(
            f"{name} returned {type(result).__name__} with entries of type '{values.dtype}'; it must return {expected}"
        )
    return values
