"""Types of the arguments and results of compiled functions: numbers, addresses and contiguous arrays.

>>> from daedal.kernels.signatures import f64, i64
>>> i64(i64, f64[:, :])
i64(i64, f64[:, :])
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Kind:
    """The type of a number; with axes, that of a C-contiguous array of such numbers.

    Calling a kind with the kinds of arguments gives a :class:`Signature`.
    """

    def __init__(self, name: str, shape: tuple[Any, ...] = (), optional: bool = False):
        self.name, self.shape, self.optional = name, shape, optional

    @property
    def axes(self) -> int:
        """The number of axes of an array; 0 for a number."""
        return len(self.shape)

    def __getitem__(self, shape) -> Kind:
        return Kind(self.name, shape if isinstance(shape, tuple) else (shape,))

    def __call__(self, *arguments: Kind | type) -> Signature:
        return Signature(self, arguments)

    def __repr__(self) -> str:
        return self.name + (f"[{', '.join(':' * self.axes)}]" if self.axes else "")


class Signature(NamedTuple):
    """Kinds of the result and of the arguments; a named tuple of arrays is expanded into its fields."""

    result: Kind
    arguments: tuple[Kind | type[Any], ...]

    @property
    def is_plain(self) -> bool:
        """Whether all arguments are numbers, as for functions that kernels call by address."""
        return all(isinstance(kind, Kind) and not kind.axes for kind in self.arguments)

    def __repr__(self) -> str:
        names = (kind.__name__ if isinstance(kind, type) else repr(kind) for kind in self.arguments)
        return f"{self.result}({', '.join(names)})"


f64, i64, i32, boolean, void = Kind("f64"), Kind("i64"), Kind("i32"), Kind("boolean"), Kind("void")


def fields_of(group: type[Any]) -> dict[str, Kind]:
    """The kinds of the fields of a named tuple argument, from its attribute ``kinds``."""
    return dict(zip(group._fields, group.kinds, strict=True))
