"""Results that stay with the workers of a Dask cluster: arrays in pieces, one for each chunk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.ensembles.part import Part


def left_there(client: Any, future: Any) -> Part:
    """A part whose arrays are dask arrays; all else of it is fetched."""
    from dask.array import from_delayed

    part, shapes = client.submit(_without_arrays, future, pure=False).result()
    part.arrays = {
        name: from_delayed(client.submit(_array, future, name, pure=False), shape, float)
        for name, shape in shapes.items()
    }
    return part


def _without_arrays(part: Part) -> tuple[Part, dict[str, tuple[int, ...]]]:
    return replace(part, arrays={}), {name: values.shape for name, values in part.arrays.items()}


def _array(part: Part, name: str) -> np.ndarray:
    return part.arrays[name]


class Pieces:
    """Arrays of parts in any order, which are put together at the end."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[int, dict[str, Any]]] = {}

    def take(self, part: Part) -> Part:
        """Keep the arrays of a part; what is left of it."""
        self._parts[part.first] = part.count, part.arrays
        return replace(part, arrays={})

    def joined(self, members: int) -> dict[str, Any]:
        """One dask array for each quantity, nan where members have none."""
        from dask import array

        shapes = {name: values.shape[1:] for _, arrays in self._parts.values() for name, values in arrays.items()}
        pieces: dict[str, list[Any]] = {name: [] for name in shapes}
        place = 0
        for first, (count, arrays) in [*sorted(self._parts.items()), (members, (0, {}))]:
            for name, shape in shapes.items():
                if first > place:  # not run
                    pieces[name].append(array.full((first - place, *shape), np.nan))
                values = arrays.get(name)
                pieces[name].append(array.full((count, *shape), np.nan) if values is None else array.asarray(values))
            place = first + count
        return {name: array.concatenate(parts) for name, parts in pieces.items()}
