"""Entries whose arguments are named tuples of arrays, as Python calls them."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.kernels.compilation import MODE, Entry
from daedal.kernels.signatures import Kind, fields_of

_TYPES = {"f64": np.float64, "i64": np.int64}


class Grouped:
    """An entry that Python calls as kernels call it: with named tuples, and with arrays of any layout and type.

    The compiled function gets the fields of named tuples one after the other. Traces run the function as it is written.

    Attributes
    ----------
    entry : Entry
        The compiled function.
    py_func : callable
        The function as it is written.
    """

    def __init__(self, entry: Entry):
        self.entry, self.py_func = entry, entry.py_func
        self.__name__, self.__doc__ = entry.__name__, entry.__doc__

    def __call__(self, *arguments: Any) -> Any:
        if MODE == "python":
            return self.py_func(*arguments)
        flat: list[Any] = []
        for argument in arguments:
            if isinstance(argument, tuple) and hasattr(argument, "_fields"):
                flat += argument
            else:
                flat.append(argument)
        try:
            return self.entry.call(*flat)
        except TypeError:  # results are arrays as they have to be, so that only what is read is converted
            return self.entry.call(*(np.require(a, _TYPES[k.name], ["C", "A"]) for a, k in zip(flat, self._kinds())))

    def _kinds(self) -> list[Kind]:
        """Those of the arguments, with the fields of named tuples."""
        given = self.entry.signature.arguments
        return [one for kind in given for one in (fields_of(kind).values() if isinstance(kind, type) else (kind,))]


def grouped(entry: Any) -> Any:
    """Decorator for an entry: :class:`Grouped`; for the compiler, the entry itself."""
    return entry if MODE == "build" else Grouped(entry)
