"""Quantities of a solution by name: groups of rows over time, and the search for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.common.tabular import derivative_name
from daedal.errors import InvalidProblemError


@dataclass(frozen=True)
class Quantity:
    """Rows of one kind over time, computed when they are asked for.

    Attributes
    ----------
    kind : str
        How an xarray dataset calls it: ``"y"``, ``"lam"``, ...
    dimension : str
        What its rows are counted by: ``"variable"``, ``"constraint"``, ...; empty for a single row.
    names : tuple of str
        The names of the rows.
    labels : tuple of str
        The names along the dimension; those of the rows by default.
    rows : callable
        ``rows() -> array (len(names), nt)``.
    in_tables : bool
        Whether tables show it unless columns are chosen.
    """

    kind: str
    dimension: str
    names: tuple[str, ...]
    rows: Callable[[], np.ndarray]
    labels: tuple[str, ...] = ()
    in_tables: bool = True


def values_and_slopes(names: Sequence[str], values: Callable[[], Any], slopes: Callable[[], Any]) -> list[Quantity]:
    """Variables and their derivatives; a derivative that is a variable itself is not named again."""
    names = tuple(names)
    return [
        Quantity("y", "variable", names, values),
        Quantity("yp", "variable", tuple(derivative_name(name, 1) for name in names), slopes, labels=names),
    ]


def row_named(quantities: Iterable[Quantity], name: Any) -> np.ndarray:
    """The row of that name; the first one, if a derivative is called as a variable is."""
    known: list[str] = []
    for quantity in quantities:
        if name in quantity.names:
            return np.asarray(quantity.rows())[quantity.names.index(name)]
        known += quantity.names
    raise unknown_name(name, known)


class NamedValues(np.ndarray):
    """An array whose rows have names: ``values["x"]``. What is computed from it is a plain array."""

    _find: Callable[[str], np.ndarray] | None

    @classmethod
    def of(cls, values: np.ndarray, find: Callable[[str], np.ndarray]) -> NamedValues:
        """The same array; ``find(name)`` gives a row."""
        named = values.view(cls)
        named._find = find
        return named

    def __array_finalize__(self, source):
        self._find = None

    def __getitem__(self, key):
        if not isinstance(key, str):
            return self.view(np.ndarray)[key]
        if self._find is None:
            raise InvalidProblemError(f"names belong to sol(t) as it is; take sol(t)[{key!r}] first")
        return self._find(key)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [np.asarray(part) if isinstance(part, NamedValues) else part for part in inputs]
        if out is not None:
            options["out"] = tuple(np.asarray(part) if isinstance(part, NamedValues) else part for part in out)
        return getattr(ufunc, method)(*plain, **options)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __reduce__(self):
        return self.view(np.ndarray).__reduce__()
