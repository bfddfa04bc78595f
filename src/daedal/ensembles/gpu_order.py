"""The order in which runs of an ensemble begin on a GPU: alike ones side by side.

Threads of a warp go through the same instructions. Runs with nearly the same starts and parameters accept and reject
their steps together and end together, so that no thread waits: docs/guide/ensembles-gpu.md has the figures.
"""

from __future__ import annotations

from typing import Any

FEWEST_OPERATIONS = 100
"""Operations of the accelerations from which sorting takes less time than it saves. Linearly implicit methods reject
few steps; their runs stay as they are."""
_MOST_COLUMNS = 8
_BITS = 48  # of the key


def order_of_runs(xp: Any, code: Any, arrays: list[Any]) -> Any:
    """The order for a problem in C; None where the given one will do."""
    if not code.positions or code.operations < FEWEST_OPERATIONS:
        return None
    return neighbours_together(xp, arrays, max(map(len, arrays)))


def neighbours_together(xp: Any, arrays: list[Any], count: int) -> Any:
    """An order of members along which starts and parameters change little; None if nothing varies.

    It goes along the curve of Morton through the ranks of what varies: with one quantity, that is its order.

    Parameters
    ----------
    xp : module
        CuPy or NumPy.
    arrays : list of array
        With rows for the members, or one for all.
    count : int
        How many members there are.
    """
    varying: list[Any] = []
    for array in arrays:
        if len(array) == count and count > 1:
            changes = xp.any(array != array[:1], axis=0)
            varying += [array[:, k] for k in range(array.shape[1]) if bool(changes[k])]
    columns = varying[:_MOST_COLUMNS]
    if not columns:
        return None
    if len(columns) == 1:
        return xp.argsort(columns[0]).astype(xp.int32)
    bits = _BITS // len(columns)
    key = xp.zeros(count, dtype=xp.int64)
    for place, column in enumerate(columns):
        rank = xp.empty(count, dtype=xp.int64)
        rank[xp.argsort(column)] = xp.arange(count)
        level = rank * (1 << bits) // count
        for bit in range(bits):
            key |= ((level >> bit) & 1) << (bit * len(columns) + place)
    return xp.argsort(key).astype(xp.int32)
