"""Arrays of symbols: object arrays on which NumPy's universal functions act entry by entry."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from daedal.symbolic.expression import Expression, apply, choose, node_of
from daedal.symbolic.untraceable import Untraceable

_NATIVE = {"add", "subtract", "multiply", "negative", "matmul", "vecdot", "matvec", "vecmat"}
"""What NumPy's own loops over objects do correctly for numbers and expressions alike."""
_WHOLE = {"locate", "floor", "ceil", "trunc", "rint"}


class Array(np.ndarray):
    """An array of expressions and numbers; everything made in a trace that would be a float array is one."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return apply_ufunc(ufunc, method, inputs, options)

    def tobytes(self, *arguments):
        """The bytes of symbols are not those of numbers."""
        raise Untraceable("asks for the bytes of an array")

    def __array_function__(self, function, types, arguments, options):
        from daedal.symbolic.numpy_functions import apply_function

        return apply_function(function, arguments, options)

    def __getitem__(self, index):
        parts = index if type(index) is tuple else (index,)
        if any(type(part) is Expression for part in parts):
            return _picked(self, parts)
        found = super().__getitem__(index)
        if type(found) is Expression:
            found.graph.reads += 1
        return found

    def __setitem__(self, index, value):
        if not self.flags.writeable:
            raise Untraceable("stores into an array that lives outside of it")
        if isinstance(index, Array) and index.dtype == object and index.shape == self.shape and np.ndim(value) == 0:
            value, index = np.frompyfunc(choose, 3, 1)(plain(index), value, plain(self)), ...
        super().__setitem__(index, value)

    def astype(self, dtype, *arguments, **options):
        """Floats stay symbols; other kinds only where there are no symbols."""
        if np.dtype(dtype).kind in "fO":
            return self.copy()
        return plain(self).astype(dtype, *arguments, **options)


def array_of(values) -> Array:
    """An array of symbols from a (nested) sequence of scalars and arrays."""
    return np.array(_unpacked(values), dtype=object).view(Array)


def _unpacked(values):
    """Nested lists without arrays of no dimension, which NumPy would keep as entries."""
    if isinstance(values, (list, tuple)):
        return [_unpacked(value) for value in values]
    if isinstance(values, np.ndarray):
        return values.tolist() if values.dtype != object or values.ndim == 0 else plain(values)
    return values


def plain(value: Any) -> Any:
    """A value as NumPy's own functions take it: expressions in base arrays of objects."""
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
    """Whether there are expressions in a scalar, array or nested sequence."""
    if type(value) is Expression:
        return True
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(type(entry) is Expression for entry in value.flat)
    return isinstance(value, (list, tuple)) and any(is_symbolic(entry) for entry in value)


def numbers(value: Any) -> Any:
    """An array of objects that are all numbers as floats."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        if any(entry is None for entry in value.flat):
            raise Untraceable("reads entries of an array made by np.empty before they are set")
        return value.view(np.ndarray).astype(float)
    return value


def wrapped(result: Any) -> Any:
    """What a function returns, as a trace sees it: arrays that expressions can be stored to."""
    if isinstance(result, np.ndarray):
        if result.dtype == object:
            return result.item() if result.ndim == 0 else result.view(Array)
        if result.dtype.kind == "f":
            return float(result) if result.ndim == 0 else result.astype(object).view(Array)
        return result
    if type(result) is tuple or type(result) is list:
        return type(result)(wrapped(entry) for entry in result)
    return float(result) if isinstance(result, np.floating) else result


def apply_ufunc(ufunc, method: str, inputs, options) -> Any:
    """A universal function, or one of its methods, on arrays with expressions."""
    target = options.pop("out", (None,))[0]
    if target is not None and isinstance(target, Array) and not target.flags.writeable:
        raise Untraceable("changes an array that lives outside of it")
    operands = [plain(value) for value in inputs]
    with np.errstate(all="ignore"):  # constants are folded without the warnings that the function itself may give
        if not any(is_symbolic(value) for value in operands):
            result = getattr(ufunc, method)(*(numbers(value) for value in operands), **options)
        elif options.pop("where", True) is not True:
            raise Untraceable("uses where= of a universal function", remedy="use np.where")
        else:
            options.pop("dtype", None)
            result = _on_symbols(ufunc, method, operands, options)
    if target is None:
        return wrapped(result)
    target[...] = result
    return target


def _on_symbols(ufunc, method: str, operands: list, options: dict) -> Any:
    name = ufunc.__name__
    if name in ("divmod", "modf"):
        return _pair(name, operands)
    if name in _NATIVE:
        return getattr(ufunc, method)(*operands, **options)
    elementwise = np.frompyfunc(partial(scalar, ufunc), ufunc.nin, 1)
    if method == "__call__":
        options.pop("casting", None)
        return elementwise(*operands, **options)
    if method == "reduce":
        values, axis = np.asarray(operands[0]), operands[1] if len(operands) > 1 else options.get("axis", 0)
        if axis is None or values.ndim == 1:
            values, axis = values.ravel(), 0
        return elementwise.reduce(values, axis=axis, keepdims=bool(options.get("keepdims", False)))
    return getattr(elementwise, method)(*operands, **options)


def _pair(name: str, operands: list) -> Any:
    if name == "divmod":
        return apply_ufunc(np.floor_divide, "__call__", operands, {}), apply_ufunc(
            np.remainder, "__call__", operands, {}
        )
    whole = apply_ufunc(np.trunc, "__call__", operands, {})
    return apply_ufunc(np.subtract, "__call__", [*operands, whole], {}), whole


def scalar(ufunc, *values):
    """A universal function of scalars: of numbers as NumPy has it, with an expression as a node."""
    if any(type(value) is Expression for value in values):
        return apply(ufunc.__name__, *values)
    if None in values:
        raise Untraceable("reads entries of an array made by np.empty before they are set")
    with np.errstate(all="ignore"):
        return ufunc(*values).item()


def _picked(array: Array, index: tuple) -> Any:
    """array[i] with a whole number i that depends on values, of an array of known numbers."""
    place = next(k for k, part in enumerate(index) if type(part) is Expression)
    chosen = index[place]
    graph = chosen.graph
    if is_symbolic(array) or not _is_whole(graph, chosen.node) or place != 0:
        return array.view(np.ndarray)[index]  # refused by Expression.__index__
    table = numbers(array)
    if not all(isinstance(part, (int, np.integer, slice)) for part in index[1:]):
        raise Untraceable("uses two values as indices of an array")
    columns = table[(slice(None), *index[1:])]
    if columns.ndim == 1:
        return Expression(graph, graph.pick(chosen.node, columns))
    entries = [Expression(graph, graph.pick(chosen.node, column)) for column in columns.reshape(len(columns), -1).T]
    return array_of(entries).reshape(columns.shape[1:])


def _is_whole(graph, node: int) -> bool:
    operation = graph.operations[node]
    if operation == "constant":
        return float(graph.data[node]).is_integer()
    if operation in ("add", "subtract", "multiply", "negative", "minimum", "maximum"):
        return all(_is_whole(graph, i) for i in graph.operands[node])
    return operation in _WHOLE


def nodes_of(graph, values: Any) -> list[int]:
    """The nodes of all entries of an array, in C order."""
    nodes = []
    for value in np.asarray(plain(values), dtype=object).ravel():
        node = node_of(graph, value)
        if node is None:
            what = "entries that were never set" if value is None else f"{type(value).__name__} among its values"
            raise Untraceable(f"returns {what}", "")
        nodes.append(graph.number(node))
    return nodes
