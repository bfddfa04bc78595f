"""Forces of this package that differ in nothing but where they act: one of them is traced for all.

A beam of a thousand segments has a thousand equal springs. What a force reads and drives belongs to the bodies of its
frames and to the coordinates of its joints; for another force that is its equal, these are exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daedal.multibody.body import Frame
from daedal.multibody.forces.force import Force
from daedal.multibody.joint_coordinates import coordinate_of

_NAMES = ("name", "joint", "joints")  # attributes that say which, not how


class Likeness(NamedTuple):
    """What a force has in common with others, and the rows of arrays that are its own."""

    key: tuple
    rows: dict[str, list[int]]  # of bodies, coordinates and velocities


def likeness(force: Force, layout: Any) -> Likeness | None:
    """None for a force with functions, states, or joints whose coordinates are found from frames."""
    rows: dict[str, list[int]] = {"body": [], "q": [], "v": []}
    key: list[Any] = [type(force)]
    if force.initial:
        return None
    for joint in force.joints:
        one = coordinate_of(layout, joint, force.which)
        if one.q < 0 or one.v < 0:
            return None
        rows["q"].append(one.q)
        rows["v"].append(one.v)
    for name, value in vars(force).items():
        if name in _NAMES:
            continue
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Frame):
                body = layout.index[part.body.name]
                if body >= 0 and body not in rows["body"]:
                    rows["body"].append(body)
                place = rows["body"].index(body) if body >= 0 else -1
                key.append((name, place, part.body.mass, (part.position - part.body.center).tobytes()))
                key.append(part.rotation.tobytes())
            elif part is None or isinstance(part, (bool, int, float, str)):
                key.append((name, part))
            elif isinstance(part, np.ndarray):
                key.append((name, part.shape, part.tobytes()))
            else:
                return None
    return Likeness(tuple(key), rows)


class ForceEntry(NamedTuple):
    """An entry of an array, in terms of the rows of a force: first + width * row + component."""

    kind: str
    place: int  # among the rows of this kind
    first: int
    width: int
    component: int


def entries(
    indices: Sequence[int], arrays: Sequence[tuple[str, int, int, int]], rows: Mapping[str, list[int]]
) -> list[ForceEntry] | None:
    """What indices stand for; None where one of them belongs to none of the rows.

    `arrays` says of each array which kind of rows it has, where it begins, how many rows there are and how long.
    """
    found = [_entry(index, arrays, rows) for index in indices]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _entry(index: int, arrays, rows: Mapping[str, list[int]]) -> ForceEntry | None:
    for kind, first, count, width in arrays:
        row, component = divmod(index - first, width)
        if 0 <= row < count:
            return ForceEntry(kind, rows[kind].index(row), first, width, component) if row in rows[kind] else None
    return None


def exchanged(found: list[ForceEntry], likenesses: Sequence[Likeness]) -> np.ndarray:
    """The indices of these entries for each of several equal forces, in rows."""
    columns = [
        [one.first + one.width * like.rows[one.kind][one.place] + one.component for like in likenesses] for one in found
    ]
    return np.array(columns, dtype=np.int64).reshape(len(found), len(likenesses)).T
