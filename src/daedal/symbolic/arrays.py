"""Arrays of symbols: object arrays on which NumPy's universal functions act entrywise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from daedal.symbolic.expression import Expression, as_numpy, choose, from_array, node_of
from daedal.symbolic.kinds import BOOL, FLOAT64, INT, NUMPY, Number
from daedal.symbolic.untraceable import Untraceable, asked_by_user, note_text, refuse_caught

_NATIVE = {"add", "subtract", "multiply", "negative", "matmul", "vecdot", "matvec", "vecmat"}
"""Methods of NumPy's object loops that are correct for both numbers and expressions."""
_WHOLE = {"locate", "floor", "ceil", "trunc", "rint"}


_dtype = np.ndarray.dtype.__get__
_FROM_ARRAY = (float, bool, int)


def holds_objects(array: np.ndarray) -> bool:
    """Whether an array has an object dtype, as arrays of symbols have."""
    return _dtype(array).hasobject


class Array(np.ndarray):
    """An array of expressions and numbers; replaces every float array created in a trace."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return apply_ufunc(ufunc, method, inputs, options)

    @property
    def dtype(self):
        """The dtype that the array would have outside the trace."""
        if not holds_objects(self) or not asked_by_user():
            return _dtype(self)
        return np.dtype(bool if is_mask(self) else float)

    def tobytes(self, *arguments):
        """Raise an error, since symbols have no bytes."""
        raise Untraceable("reads the bytes of an array")

    def tolist(self):
        """Convert to Python numbers."""
        found = plain(self).tolist()
        return _each_entry(lambda x: x.item() if type(x) is Expression else x, found)

    def item(self, *arguments):
        """One entry, converted to a Python number."""
        found = plain(self).item(*arguments)
        return found.item() if type(found) is Expression else found

    def searchsorted(self, v, side="left", sorter=None):
        return np.searchsorted(self, v, side, sorter)

    def __array_function__(self, function, types, arguments, options):
        from daedal.symbolic.numpy_functions import apply_function

        return apply_function(function, arguments, options)

    def __getitem__(self, index):
        parts = index if type(index) is tuple else (index,)
        if any(type(part) is Expression for part in parts):
            return _picked(self, parts)
        if type(index) is Array and holds_objects(index) and not is_mask(index):
            return _picked_each(self, index)
        found = super().__getitem__(index)
        if type(found) is Expression:
            found.graph.reads += 1
        elif type(found) in _FROM_ARRAY:
            return from_array(found)
        return found

    def __setitem__(self, index, value):
        if not self.flags.writeable:
            raise Untraceable("stores into an array defined outside it", memory="an array")
        if is_symbolic(value) and self.size and holds_objects(self):
            value = _as_stored(value, is_mask(self))
        if isinstance(index, Array) and holds_objects(index) and index.shape == self.shape and np.ndim(value) == 0:
            value, index = np.frompyfunc(choose, 3, 1)(plain(index), value, plain(self)), ...
        super().__setitem__(index, value)

    def astype(self, dtype, *arguments, **options):
        """Convert the dtype; symbols may only become floats."""
        if real_type(dtype):
            return _as_numbers(self)
        return plain(self).astype(dtype, *arguments, **options)

    def __str__(self) -> str:
        for entry in self.flat:
            if type(entry) is Expression:
                note_text(entry.graph.origin(entry.node))
                break
        return np.array_repr(plain(self))

    __repr__ = __str__

    def __format__(self, _: str) -> str:
        return str(self)


def real_type(dtype) -> bool:
    """Whether symbols can represent the entries of arrays of this dtype; raise for floats other than float64."""
    if dtype is None or dtype is float:
        return True
    kind = np.dtype(dtype)
    if kind.kind in "fc" and kind != np.float64:
        raise Untraceable(f"uses numbers of type {kind}", remedy="use ordinary floats")
    return kind.kind in "fO"


def _is_truth(value: Any) -> bool:
    kind = type(value)
    return value.kind & 3 == 0 if kind is Expression else kind is bool or kind is np.bool_


def is_mask(array: np.ndarray) -> bool:
    """Whether an array of symbols is Boolean."""
    return array.size > 0 and all(map(_is_truth, array.flat))


def _as_number(value: Any) -> Any:
    if not _is_truth(value):
        return value
    if type(value) is not Expression:
        return float(value)
    return Expression(value.graph, value.graph.number(value.node), NUMPY + INT)


def _as_numbers(values: np.ndarray) -> Array:
    """Copy with truth values converted to 0 and 1."""
    made = np.empty(values.shape, dtype=object)
    made.reshape(-1)[:] = [_as_number(value) for value in plain(values).flat]
    return made.view(Array)


def _as_stored(value: Any, mask: bool) -> Any:
    """The value to store: truth values in a Boolean array, otherwise numbers."""
    if isinstance(value, (list, tuple)):
        value = array_of(value)
    if isinstance(value, np.ndarray):
        if mask and not is_mask(value):
            raise Untraceable("stores numbers in an array of truth values")
        return value if mask or not any(map(_is_truth, value.flat)) else _as_numbers(value)
    if mask and not _is_truth(value):
        raise Untraceable("stores numbers in an array of truth values")
    return from_array(value) if mask else _as_number(from_array(value))


def settled(array: np.ndarray) -> np.ndarray:
    """Convert entries to NumPy types; truth values become numbers unless all entries are truth values."""
    entries = array.reshape(-1)
    others = [k for k, x in enumerate(entries) if (type(x) is Expression and x.kind != FLOAT64) or type(x) is bool]
    if not others:
        return array
    mask = len(others) == len(entries) and is_mask(entries)
    for k in others:
        entries[k] = from_array(entries[k]) if mask else _as_number(from_array(entries[k]))
    return entries.reshape(array.shape)


def _each_entry(function, values):
    return [_each_entry(function, value) for value in values] if isinstance(values, list) else function(values)


def array_of(values) -> Array:
    """Create an array of symbols from a (nested) sequence of scalars and arrays."""
    return settled(np.array(_unpacked(values), dtype=object)).view(Array)


def _unpacked(values):
    """Nested lists with zero-dimensional arrays replaced by their entries."""
    if isinstance(values, (list, tuple)):
        return [_unpacked(value) for value in values]
    if isinstance(values, np.ndarray):
        return values.view(np.ndarray).tolist() if not holds_objects(values) or values.ndim == 0 else plain(values)
    return values


def plain(value: Any) -> Any:
    """Convert to arguments that NumPy's functions accept: object arrays of the base class."""
    if type(value) is Expression:
        box = np.empty((), dtype=object)
        box[()] = value
        return box
    if isinstance(value, Array):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)) and is_symbolic(value):
        return plain(array_of(value))
    return value


def is_symbolic(value: Any) -> bool:
    """Whether a scalar, array or nested sequence contains expressions."""
    if type(value) is Expression:
        return True
    if isinstance(value, np.ndarray):
        return holds_objects(value) and any(type(entry) is Expression for entry in value.flat)
    return isinstance(value, (list, tuple)) and any(is_symbolic(entry) for entry in value)


def numbers(value: Any) -> Any:
    """Convert an object array of plain numbers to floats."""
    if isinstance(value, np.ndarray) and holds_objects(value):
        if any(entry is None for entry in value.flat):
            raise Untraceable("reads entries of an array made by np.empty before they are set")
        mask = is_mask(value)
        return value.view(np.ndarray).astype(bool if mask else float)
    return value


def wrapped(result: Any) -> Any:
    """Convert the result of a function to arrays that can store expressions."""
    if isinstance(result, np.ndarray):
        if holds_objects(result):
            return from_array(result.item()) if result.ndim == 0 else settled(plain(result)).view(Array)
        if _dtype(result).kind == "f":
            return Number(result) if result.ndim == 0 else result.astype(object).view(Array)
        return result
    if type(result) is tuple or type(result) is list:
        return type(result)(wrapped(entry) for entry in result)
    if type(result) is Expression:
        return from_array(result)
    return Number(result) if isinstance(result, np.floating) else result


def apply_ufunc(ufunc, method: str, inputs, options) -> Any:
    """Apply a universal function, or one of its methods, to arrays with expressions."""
    target = options.pop("out", (None,))[0]
    if isinstance(target, Array) and not target.flags.writeable:
        raise Untraceable("changes an array defined outside it", memory="an array")
    real_type(options.get("dtype"))
    operands = [plain(value) for value in inputs]
    where, symbolic = options.get("where", True), any(map(is_symbolic, operands))
    with np.errstate(all="ignore"):  # constant folding must not emit floating-point warnings
        if not symbolic and not is_symbolic(where):
            result = getattr(ufunc, method)(*(numbers(value) for value in operands), **options)
        elif method == "reduce":
            result = _reduced(ufunc, *operands, **options)
        elif where is not True and (target is None or method != "__call__"):
            raise Untraceable("uses where= of a universal function without out=", remedy="use np.where")
        else:
            result = _on_symbols(ufunc, method, operands, {k: v for k, v in options.items() if k not in _OPTIONS})
    if where is not True and target is not None and method == "__call__":
        result = np.frompyfunc(choose, 3, 1)(plain(_array_like(where)), plain(wrapped(result)), plain(target))
    if target is None:
        return wrapped(result)
    target[...] = wrapped(result)
    return target


_OPTIONS = ("dtype", "where", "casting", "subok")


def _array_like(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) or type(value) is Expression else np.asarray(value)


_NEUTRAL = {"add": 0.0, "multiply": 1.0, "logical_or": False, "logical_and": True}


def _reduced(ufunc, values, axis=0, dtype=None, out=None, keepdims=False, initial=np._NoValue, where=True) -> Any:
    """``ufunc.reduce`` along one or several axes."""
    name, values = ufunc.__name__, np.asarray(plain(values), dtype=object)
    if name in ("add", "multiply") and is_mask(values):
        values = plain(_as_numbers(values))
    axes = tuple(range(values.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(k % values.ndim for k in axes) if values.ndim else ()
    if where is not True:
        neutral = _NEUTRAL.get(name, initial)
        if neutral is np._NoValue:
            raise ValueError(f"{name}.reduce with where= needs initial=")
        mask = np.broadcast_to(plain(_array_like(where)), values.shape)
        values = np.asarray(np.frompyfunc(choose, 3, 1)(mask, values, neutral), dtype=object)
    kept = [k for k in range(values.ndim) if k not in axes]
    shape = tuple(1 if k in axes else n for k, n in enumerate(values.shape)) if keepdims else None
    rows = values.transpose(kept + list(axes)).reshape([values.shape[k] for k in kept] + [-1])
    native = ufunc if name in _NATIVE else np.frompyfunc(partial(scalar, ufunc), 2, 1)
    if not rows.shape[-1] and initial is np._NoValue and name in _NEUTRAL:
        initial = _NEUTRAL[name]
    if initial is not np._NoValue:
        first = np.empty((*rows.shape[:-1], 1), dtype=object)
        first[...] = _item(initial)
        rows = np.concatenate([first, rows], axis=-1)
    result = native.reduce(rows, axis=-1)
    return result if shape is None else np.asarray(result, dtype=object).reshape(shape)


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


def _on_symbols(ufunc, method: str, operands: list, options: dict) -> Any:
    name = ufunc.__name__
    if name in ("divmod", "modf"):
        return _pair(name, operands)
    if name in ("add", "multiply") and method != "__call__" and any(map(_is_truth, np.asarray(operands[0]).flat)):
        operands = [plain(_as_numbers(np.asarray(operands[0]))), *operands[1:]]
    if name == "matmul" and method == "__call__":
        left, right = (np.asarray(operand) for operand in operands)
        if _is_sparse(left) and all(map(_is_regular, right.flat)):
            return _sparse_product(numbers(left), right)
        if _is_sparse(right) and all(map(_is_regular, left.flat)):
            return _sparse_product(numbers(right).T, left.T).T
    if name in _NATIVE:
        return getattr(ufunc, method)(*operands, **options)
    elementwise = np.frompyfunc(partial(scalar, ufunc), ufunc.nin, 1)
    return getattr(elementwise, method)(*operands, **options)


def _is_sparse(matrix: np.ndarray) -> bool:
    return matrix.ndim == 2 and not is_symbolic(matrix) and bool(4 * np.count_nonzero(matrix) < matrix.size)


def _is_regular(value: Any) -> bool:
    if type(value) is Expression:
        return value.graph.regular[value.node]
    return value is not None and bool(np.isfinite(value))


def _sparse_product(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A @ x for an array A of numbers; products with its zeros are omitted."""
    product = np.full((len(matrix), *values.shape[1:]), 0.0, dtype=object)
    for i, row in enumerate(matrix):
        places = np.flatnonzero(row)
        if places.size:
            product[i] = row[places].astype(object) @ values[places]
    return product


def _pair(name: str, operands: list) -> Any:
    if name == "divmod":
        return apply_ufunc(np.floor_divide, "__call__", operands, {}), apply_ufunc(
            np.remainder, "__call__", operands, {}
        )
    whole = apply_ufunc(np.trunc, "__call__", operands, {})
    return apply_ufunc(np.subtract, "__call__", [*operands, whole], {}), whole


def scalar(ufunc, *values):
    """Apply a universal function to scalars: numerically for numbers, as a node for expressions."""
    if any(type(value) is Expression for value in values):
        return as_numpy(ufunc.__name__, *values)
    if None in values:
        raise Untraceable("reads entries of an array made by np.empty before they are set")
    with np.errstate(all="ignore"):
        return ufunc(*values).item()


def _picked(array: Array, index: tuple) -> Any:
    """array[i] for an array of known numbers and a symbolic integer i."""
    place = next(k for k, part in enumerate(index) if type(part) is Expression)
    chosen = index[place]
    graph = chosen.graph
    is_whole = chosen.kind & 3 == INT or (chosen.kind & 3 != BOOL and _is_whole(graph, chosen.node))
    if is_symbolic(array) or not is_whole or place != 0:
        return array.view(np.ndarray)[index]  # Expression.__index__ raises Untraceable
    refuse_caught()
    table = numbers(array)
    if not all(isinstance(part, (int, np.integer, slice)) for part in index[1:]):
        raise Untraceable("uses two values as indices of an array")
    columns = table[(slice(None), *index[1:])]
    if columns.ndim == 1:
        return Expression(graph, graph.pick(chosen.node, columns))
    entries = [Expression(graph, graph.pick(chosen.node, column)) for column in columns.reshape(len(columns), -1).T]
    return array_of(entries).reshape(columns.shape[1:])


def _picked_each(array: Array, index: Array) -> Any:
    """array[i] for an array of symbolic integers."""
    if not is_symbolic(index):
        return array[numbers(index).astype(int)]
    rows = [array[i] for i in plain(index).reshape(-1)]
    return array_of(rows).reshape(index.shape + array.shape[1:])


def _is_whole(graph, node: int) -> bool:
    operation = graph.operations[node]
    if operation == "constant":
        return float(graph.data[node]).is_integer()
    if operation in ("add", "subtract", "multiply", "negative", "minimum", "maximum"):
        return all(_is_whole(graph, i) for i in graph.operands[node])
    return operation in _WHOLE


def nodes_of(graph, values: Any) -> list[int]:
    """Nodes of all entries of an array, in C order."""
    nodes = []
    for value in np.asarray(plain(values), dtype=object).ravel():
        node = node_of(graph, value)
        if node is None:
            what = "entries that were never set" if value is None else f"{type(value).__name__} among its values"
            raise Untraceable(f"returns {what}", "")
        nodes.append(graph.number(node))
    return nodes


class SparseConstant:
    """A scipy.sparse matrix defined outside a traced function; it can be multiplied and read but not changed."""

    __array_ufunc__ = None  # products ``array @ matrix`` then call the methods of this class

    def __init__(self, matrix: Any):
        self._matrix = matrix

    def __matmul__(self, other):
        if isinstance(other, SparseConstant):
            return SparseConstant(self._matrix @ other._matrix)
        if not is_symbolic(other):
            return wrapped(self._matrix @ numbers(plain(other)))
        vectors = array_of(other) if isinstance(other, (list, tuple)) else other
        columns = vectors.reshape(len(vectors), -1)
        rows = self._matrix.tocsr()
        entries = [
            [_product(rows.data[a:b], columns[rows.indices[a:b], k]) for k in range(columns.shape[1])]
            for a, b in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist())
        ]
        return array_of(entries).reshape(len(entries), *vectors.shape[1:])

    dot = __matmul__

    def __rmatmul__(self, other):
        return (self.T @ other.T).T if isinstance(other, Array) else wrapped(other @ self._matrix)

    def __mul__(self, other):
        if np.isscalar(other) and not is_symbolic(other):
            return SparseConstant(self._matrix * other)
        if type(self._matrix).__name__.endswith("_matrix"):  # for spmatrix, * is the matrix product
            return self @ other
        raise Untraceable("multiplies a sparse matrix by values, entry by entry", remedy="use @, or a dense matrix")

    def __rmul__(self, other):
        if np.isscalar(other) and not is_symbolic(other):
            return SparseConstant(self._matrix * other)
        raise Untraceable("multiplies a sparse matrix by a value", remedy="multiply the product with the vector")

    def __add__(self, other):
        if isinstance(other, SparseConstant):
            return SparseConstant(self._matrix + other._matrix)
        raise Untraceable("adds values to a sparse matrix", remedy="use a dense matrix")

    def __sub__(self, other):
        return self + -other

    def __neg__(self):
        return SparseConstant(-self._matrix)

    @property
    def T(self) -> SparseConstant:
        return SparseConstant(self._matrix.T)

    def transpose(self) -> SparseConstant:
        return self.T

    @property
    def shape(self) -> tuple[int, ...]:
        return self._matrix.shape

    def toarray(self):
        return wrapped(self._matrix.toarray())

    def __getattr__(self, name: str):
        raise Untraceable(f"uses '{name}' of a sparse matrix")


def _product(data: np.ndarray, values: np.ndarray):
    """Products with the rows, summed in the order of the entries; 0 for an empty row."""
    return sum((float(a) * x for a, x in zip(data, values.tolist())), start=0.0)
