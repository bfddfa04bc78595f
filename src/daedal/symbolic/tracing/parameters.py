"""Parameters of any structure as a vector of numbers, so that machine code can be reused for other values.

Floats and float arrays become symbols of a trace, at any depth of lists, tuples, dictionaries and objects. Everything
else (strings, integers, functions, tables) is a constant of the trace.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from daedal.problems.named_inputs import Course, SampledCourse
from daedal.problems.symbols import Driven
from daedal.symbolic import Graph, vector_argument
from daedal.symbolic.expression import Expression

_DEEPEST = 8
NAME = "p"
"""Name of parameters in a graph."""


class ParameterLayout:
    """Places of the numbers in a parameter structure.

    Parameters
    ----------
    params : object
    all_numbers : bool
        Whether integers are symbols as well: compiled functions receive all numbers as one vector of floats.

    Attributes
    ----------
    fixed : dict
        Numbers that a trace has used: {position: number}. Other values require a new trace.

    Examples
    --------
    >>> from daedal.symbolic.tracing.parameters import ParameterLayout
    >>> layout = ParameterLayout({"mass": 2.0, "springs": [3.0, 4.0], "kind": "linear"})
    >>> layout.numbers({"mass": 1.0, "springs": [5.0, 6.0], "kind": "linear"})
    array([1., 5., 6.])
    >>> layout.fits({"mass": 1.0, "springs": [5.0], "kind": "linear"})
    False
    """

    def __init__(self, params: Any, all_numbers: bool = False):
        numbers: list[float] = []
        self._all_numbers = all_numbers
        self._signature = self._read(params, numbers)
        self._alive = params  # constants are compared by identity
        self.count = len(numbers)
        self.fixed: dict[int, float] = {}

    def fits(self, params: Any) -> bool:
        """Whether machine code for this layout is valid for these parameters."""
        if type(params) is np.ndarray and params.dtype == np.float64 and not self.fixed:
            return self._signature == (np.ndarray, params.shape)
        numbers: list[float] = []
        if self._read(params, numbers) != self._signature:
            return False
        return all(numbers[k] == value for k, value in self.fixed.items())

    def numbers(self, params: Any) -> np.ndarray:
        """Numbers of parameters of this structure, in order."""
        if type(params) is np.ndarray and params.dtype == np.float64 and params.ndim == 1:
            return params
        numbers: list[float] = []
        self._read(params, numbers)
        return np.array(numbers, dtype=float)

    def labels(self, params: Any) -> list[str]:
        """Names of the numbers, in order: ``mass``, ``springs[1]``, ``p[0]``."""
        return self._labels(params, "")

    def _labels(self, value: Any, path: str, depth: int = 0) -> list[str]:
        if self._is_number(value):
            return [path or NAME]
        if isinstance(value, np.ndarray):
            places = np.ndindex(value.shape) if self._is_numbers(value) else ()
            return [f"{path or NAME}[{', '.join(map(str, place))}]" for place in places]
        if value is None or isinstance(value, (bool, int, str, bytes, complex)):
            return []
        parts = _parts(value) if depth < _DEEPEST else None
        if parts is None:
            return []
        names, entries = parts
        if type(value) in (list, tuple) and _is_vector(entries):
            return [f"{path or NAME}[{k}]" for k in range(len(entries))]
        inner = [f"{path}.{name}" if path and name else path or str(name) for name in names]
        inner = inner or [f"{path or NAME}[{k}]" for k in range(len(entries))]
        return [label for name, entry in zip(inner, entries) for label in self._labels(entry, name, depth + 1)]

    def symbols(self, graph: Graph, params: Any) -> tuple[Any, Any]:
        """`params` with symbols instead of numbers, and the vector of these symbols."""
        vector = vector_argument(graph, NAME, self.count, self.numbers(params).tolist())
        return self._rebuilt(params, iter(list(vector)), type(vector)), vector

    def rebuilt(self, params: Any, numbers: list[float]) -> Any:
        """`params` with other numbers.

        Examples
        --------
        >>> from daedal.symbolic.tracing.parameters import ParameterLayout
        >>> params = {"mass": 2.0, "springs": [3.0, 4.0]}
        >>> ParameterLayout(params).rebuilt(params, [1.0, 5.0, 6.0])
        {'mass': 1.0, 'springs': [5.0, 6.0]}
        """
        return self._rebuilt(params, iter(numbers), np.ndarray, dtype=float)

    def _read(self, value: Any, numbers: list[float], depth: int = 0) -> Any:
        """Structure of a value as a comparable object; its numbers are appended to a list."""
        kind = type(value)
        if self._is_number(value):
            numbers.append(float(value))
            return float
        if kind is np.ndarray:
            if self._is_numbers(value):
                numbers += value.astype(float).ravel().tolist()
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
        return kind, names, tuple(self._read(entry, numbers, depth + 1) for entry in entries)

    def _is_number(self, value: Any) -> bool:
        kind = type(value)
        if kind is float or kind is np.float64:
            return True
        return self._all_numbers and isinstance(value, (int, np.integer, np.floating, np.bool_))

    def _is_numbers(self, array: np.ndarray) -> bool:
        return array.dtype == np.float64 or (self._all_numbers and array.dtype.kind in "fiub")

    def _rebuilt(self, value: Any, symbols, array_type, depth: int = 0, dtype: Any = object) -> Any:
        kind = type(value)
        if self._is_number(value):
            return _as_python(next(symbols)) if kind is float else next(symbols)
        if kind is np.ndarray and self._is_numbers(value):
            vector = np.empty(value.size, dtype=dtype)
            vector[:] = [next(symbols) for _ in range(value.size)]
            return vector.view(array_type).reshape(value.shape)
        parts = _parts(value) if depth < _DEEPEST else None
        if parts is None:
            return value
        names, entries = parts
        if kind in (list, tuple) and _is_vector(entries):
            return kind(_as_python(next(symbols)) if type(entry) is float else next(symbols) for entry in entries)
        made = [self._rebuilt(entry, symbols, array_type, depth + 1, dtype) for entry in entries]
        if kind in (list, tuple):
            return kind(made)
        if kind is dict:
            return dict(zip(names, made, strict=True))
        if isinstance(value, tuple):
            return kind(*made)
        bundle: Any = SimpleNamespace() if kind is SimpleNamespace else object.__new__(kind)
        vars(bundle).update(zip(names, made, strict=True))
        return bundle


def _as_python(symbol: Any) -> Any:
    """Symbol of a Python number."""
    return symbol.item() if type(symbol) is Expression else symbol


def _is_vector(entries: tuple) -> bool:
    """Whether an array is numeric with at least one float; its integers then also represent floats."""
    kinds = set(map(type, entries))
    return kinds <= {float, np.float64, int} and kinds != {int} and bool(kinds)


def _parts(value: Any) -> tuple[tuple, tuple] | None:
    """Names and entries of a container, or None for a constant."""
    kind = type(value)
    if kind in (list, tuple):
        return (), tuple(value)
    if kind is dict:
        return tuple(value), tuple(value.values())
    if kind in _NAMES:
        return _NAMES[kind], tuple(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return kind._fields, tuple(value)
    if _holds_attributes(value):
        return tuple(vars(value)), tuple(vars(value).values())
    return None


_NAMES: dict[type, tuple[str, ...]] = {
    Driven: ("", ""),  # parameters and inputs keep their own names
    SampledCourse: ("", "_weights", "_since"),  # samples u[0], u[1], ...
    Course: ("_coefficients", "_since"),
}
"""Labels of the entries of Daedal's tuples; a leading underscore marks numbers that are not for the user."""


def is_internal(label: str) -> bool:
    """Whether a label of :meth:`ParameterLayout.labels` names a number that is not for the user."""
    return "._" in label


def _holds_attributes(value: Any) -> bool:
    """Whether an object is a plain collection of attributes, of a user class or a namespace."""
    kind = type(value)
    if kind is SimpleNamespace:
        return True
    if isinstance(value, (type, ModuleType)) or callable(value) or not hasattr(value, "__dict__"):
        return False
    package = kind.__module__.split(".")[0]
    return package not in _FOREIGN and (package == "__main__" or package not in sys.stdlib_module_names)


_FOREIGN = {"numpy", "scipy", "numba", "daedal", "pandas"}
