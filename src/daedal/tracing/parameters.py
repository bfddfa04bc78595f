"""Parameters of any structure as a vector of numbers, so that machine code needs no change for others.

Floats and arrays of them are symbols of a trace, wherever they stand in lists, tuples, dictionaries and objects.
Everything else (strings, whole numbers, functions, tables) is a constant of the trace.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from daedal.symbolic import Graph, vector_argument

_DEEPEST = 8
NAME = "p"
"""What parameters are called in a graph."""


class ParameterLayout:
    """Where the numbers of parameters stand in their structure.

    Attributes
    ----------
    fixed : dict
        Numbers that a trace had to know: {position: number}. For others it must be repeated.

    Examples
    --------
    >>> from daedal.tracing.parameters import ParameterLayout
    >>> layout = ParameterLayout({"mass": 2.0, "springs": [3.0, 4.0], "kind": "linear"})
    >>> layout.numbers({"mass": 1.0, "springs": [5.0, 6.0], "kind": "linear"})
    array([1., 5., 6.])
    >>> layout.fits({"mass": 1.0, "springs": [5.0], "kind": "linear"})
    False
    """

    def __init__(self, params: Any):
        numbers: list[float] = []
        self._signature = _read(params, numbers, 0)
        self._alive = params  # constants are compared by identity
        self.count = len(numbers)
        self.fixed: dict[int, float] = {}

    def fits(self, params: Any) -> bool:
        """Whether machine code for this layout may be used with these parameters."""
        numbers: list[float] = []
        if _read(params, numbers, 0) != self._signature:
            return False
        return all(numbers[k] == value for k, value in self.fixed.items())

    def numbers(self, params: Any) -> np.ndarray:
        """The numbers of parameters that fit, in order."""
        if type(params) is np.ndarray and params.dtype == np.float64 and params.ndim == 1:
            return params
        numbers: list[float] = []
        _read(params, numbers, 0)
        return np.array(numbers, dtype=float)

    def symbols(self, graph: Graph, params: Any) -> Any:
        """The same structure with symbols in place of its numbers."""
        numbers = self.numbers(params).tolist()
        entries = iter(list(vector_argument(graph, NAME, self.count, numbers)))
        return _rebuilt(params, entries, graph, 0)


def _read(value: Any, numbers: list[float], depth: int) -> Any:
    """The structure of a value, as something that can be compared; its numbers are appended."""
    kind = type(value)
    if kind is float or kind is np.float64:
        numbers.append(float(value))
        return kind
    if kind is np.ndarray:
        if value.dtype == np.float64:
            numbers += value.ravel().tolist()
            return kind, value.shape
        return kind, value.shape, value.dtype.str, value.tobytes()
    if value is None or kind in (bool, int, str, bytes, complex):
        return kind, value
    parts = _parts(value) if depth < _DEEPEST else None
    if parts is None:
        return kind, id(value)
    names, entries = parts
    if kind in (list, tuple) and _is_vector(entries):
        numbers += map(float, entries)
        return kind, len(entries)
    return kind, names, tuple(_read(entry, numbers, depth + 1) for entry in entries)


def _is_vector(entries: tuple) -> bool:
    """Whether there are floats and nothing but numbers: whole ones among them stand for floats."""
    kinds = set(map(type, entries))
    return kinds <= {float, np.float64, int} and kinds != {int} and bool(kinds)


def _parts(value: Any) -> tuple[tuple, tuple] | None:
    """Names and entries of something that holds others, or None for a constant."""
    kind = type(value)
    if kind in (list, tuple):
        return (), tuple(value)
    if kind is dict:
        return tuple(value), tuple(value.values())
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return kind._fields, tuple(value)
    if _holds_attributes(value):
        return tuple(vars(value)), tuple(vars(value).values())
    return None


def _holds_attributes(value: Any) -> bool:
    """Whether an object is a mere bundle of attributes, of a user's class or a namespace."""
    kind = type(value)
    if kind is SimpleNamespace:
        return True
    if isinstance(value, (type, ModuleType)) or callable(value) or not hasattr(value, "__dict__"):
        return False
    package = kind.__module__.split(".")[0]
    return package not in _FOREIGN and (package == "__main__" or package not in sys.stdlib_module_names)


_FOREIGN = {"numpy", "scipy", "numba", "daedal", "pandas"}


def _rebuilt(value: Any, symbols, graph: Graph, depth: int) -> Any:
    kind = type(value)
    if kind is float or kind is np.float64:
        return next(symbols)
    if kind is np.ndarray and value.dtype == np.float64:
        vector = vector_argument(graph, NAME, 0)
        if value.size:
            vector = np.array([next(symbols) for _ in range(value.size)], dtype=object).view(type(vector))
        return vector.reshape(value.shape)
    parts = _parts(value) if depth < _DEEPEST and kind not in (bool, int, str) else None
    if parts is None:
        return value
    names, entries = parts
    if kind in (list, tuple) and _is_vector(entries):
        return kind(next(symbols) for _ in entries)
    made = [_rebuilt(entry, symbols, graph, depth + 1) for entry in entries]
    if kind in (list, tuple):
        return kind(made)
    if kind is dict:
        return dict(zip(names, made, strict=True))
    if isinstance(value, tuple):
        return kind(*made)
    bundle = SimpleNamespace() if kind is SimpleNamespace else object.__new__(kind)
    vars(bundle).update(zip(names, made, strict=True))
    return bundle
