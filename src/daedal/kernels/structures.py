"""Declared structures: the contents of the records that kernels work on.

A structure lists its fields once. This list defines the memory layout, the views of arrays inside kernels
(``run.y[i]``), and the checks of an interpreted run::

    RUN = Struct(
        "RUN",
        [
            ("n", i64),  # a number
            ("y", f64["n"]),  # the address of an array; `run.y` is a view of it, of n numbers
            ("phi", f64[ROWS, "n"]),
            ("slopes", optional(f64["n"])),  # not every run has it
            ("psi", inline(f64, LENGTH)),  # an array inside the record
            ("matrix", MATRIX),  # a structure inside the record
            ("system", at(SYSTEM)),  # the address of a record; `run.system` is that record
            ("step", ADDRESS),  # an untyped address, such as that of a function
        ],
    )

A length is a number, or an expression of fields in ``+``, ``-`` and ``*``, also of fields of structures inside this one
or at an address in it: ``f64["stages + 2", "system.nx"]``. :func:`daedal.kernels.records.data_of` gives the address of
a view, 0 for an array that was not given. ``Record.allocated(RUN, n=3, ...)`` creates a record with all arrays that are
not optional.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from daedal.kernels.signatures import Kind

ADDRESS = np.int64
NUMPY = {"f64": np.float64, "i64": np.int64}


class Reference(NamedTuple):
    """The kind of a field that holds the address of a record."""

    target: Struct


def at(target: Struct) -> Reference:
    """The kind of a field that holds the address of a record of the structure `target`."""
    return Reference(target)


class Inline(NamedTuple):
    """The kind of a field that contains an array itself."""

    number: Kind
    shape: tuple[int, ...]


def inline(number: Kind, *shape: int) -> Inline:
    """The kind of a field that contains an array itself, not its address."""
    return Inline(number, shape)


def optional(kind: Kind) -> Kind:
    """The kind of a field that holds the address of an array, or 0 if absent."""
    return Kind(kind.name, kind.shape, optional=True)


class Struct:
    """The fields of a record: names and kinds, in memory order.

    Attributes
    ----------
    kinds : dict
        For each field, its kind: a number, an array with a shape, a :class:`Reference`, or a structure.
    dtype : numpy.dtype
        The layout; the structure can be used wherever NumPy accepts a dtype.
    """

    def __init__(self, name: str, fields: Iterable[tuple[str, Any]]):
        self.name, self.kinds = name, dict(fields)
        self.dtype = np.dtype([(field, *_layout(kind)) for field, kind in self.kinds.items()])
        for field, kind in self.kinds.items():
            if is_view(kind):
                for length in kind.shape:
                    _check_length(self, field, length)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(self.kinds)

    @property
    def itemsize(self) -> int:
        """The size of a record in bytes."""
        return self.dtype.itemsize

    def offset(self, field: str) -> int:
        """The offset of a field in bytes."""
        fields: Any = self.dtype.fields
        return fields[field][1]

    def __getitem__(self, field: str) -> np.dtype:
        return self.dtype[field]

    def __repr__(self) -> str:
        return self.name


def is_view(kind: Any) -> bool:
    """Whether a field of this kind holds the address of an array with a declared shape."""
    return isinstance(kind, Kind) and kind.axes > 0


def _layout(kind: Any) -> tuple[Any, ...]:
    if isinstance(kind, Struct):
        return (kind.dtype,)
    if isinstance(kind, Inline):
        return NUMPY[kind.number.name], kind.shape
    if isinstance(kind, Reference) or is_view(kind):
        return (ADDRESS,)
    return (NUMPY[kind.name] if isinstance(kind, Kind) else kind,)


# --- lengths ----------------------------------------------------------------------------------------------------------


@cache
def parsed(length: str) -> ast.expr:
    """The expression of a length."""
    return ast.parse(length, mode="eval").body


_OPERATIONS: Mapping[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}


def evaluate(length: int | str, field: Callable[[tuple[str, ...]], Any], constant, combine) -> Any:
    """The value of a length for any representation of numbers: Python's, or instructions of machine code.

    Parameters
    ----------
    length : int or str
        As declared.
    field : callable
        ``field(path)`` is the value of a field, or of one inside it.
    constant : callable
        ``constant(number)`` is the value of a number.
    combine : callable
        ``combine(name, left, right)`` adds, subtracts or multiplies: "add", "sub", "mul".
    """

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return constant(node.value)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            return combine(_OPERATIONS[type(node.op)], value(node.left), value(node.right))
        return field(_path(node))

    return constant(length) if isinstance(length, int) else value(parsed(length))


def _path(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (*_path(node.value), node.attr)
    raise TypeError(f"{ast.unparse(node)} is not a length: it may contain fields, numbers, +, - and *")


def _check_length(structure: Struct, field: str, length: int | str):
    """Reject a length that refers to missing fields."""

    def look(path: tuple[str, ...]) -> int:
        inside = structure
        for name in path:
            if name not in inside.kinds:
                raise TypeError(f"{structure.name}.{field}: {inside.name} has no field {name!r}")
            kind = inside.kinds[name]
            if name is not path[-1]:
                inside = kind.target if isinstance(kind, Reference) else kind
        return 0

    evaluate(length, look, lambda number: 0, lambda name, left, right: 0)
