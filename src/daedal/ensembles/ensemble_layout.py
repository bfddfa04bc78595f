"""What a file holds of an ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.ensembles.ensemble import Ensemble
from daedal.ensembles.layout import StateLayout
from daedal.ensembles.part import EVENT_FIELDS, STATUS
from daedal.results.schema import Array, Integer, ListOf, MappingOf, Number, Optional, Plain, Record, Text

_OUTPUT = "output:"
_EVENTS = Record(
    {
        "member": Array("i8", ("events",)),
        "t": Array("f8", ("events",)),
        "name": ListOf(Text(), "events"),
        "direction": Array("i8", ("events",)),
        "terminal": Array("i8", ("events",)),
    },
    dict,
    take=dict,
)
_FIELDS = {
    "members": Integer(),
    "code": Array("i8", (None,)),
    "failed": Array("i8", (None,)),
    "t": Optional(Array("f8", (None,))),
    "t_final": Array("f8", (None,)),
    "final": Optional(Array("f8", (None, None))),
    "y": Optional(Array("f8", (None, None, None))),
    "outputs": Plain(),
    "reduced": Plain(),
    "varied": Plain(),
    "messages": MappingOf(Text()),
    "message": Text(),
    "seconds": Number(),
    "names": Optional(ListOf(Text(), None, tuple)),
    "n_q": Optional(Integer(1)),
    "events": _EVENTS,
}


def _taken(ensemble: Ensemble) -> dict[str, Any]:
    arrays, layout = ensemble.arrays, ensemble.layout
    same = ("members", "code", "failed", "t", "t_final", "messages", "message", "seconds", "events")
    return {name: getattr(ensemble, name) for name in same} | {
        "final": arrays.get("final"),
        "y": arrays.get("y"),
        "outputs": ensemble.outputs,
        "reduced": ensemble.reduced,
        "varied": ensemble.parameters(),
        "names": None if layout is None else layout.names,
        "n_q": None if layout is None else layout.n_q,
    }


def _wrong(given: dict[str, Any]) -> str | None:
    """What is wrong with the sizes of the parts, or with what they point at."""
    members, code, names = given["members"], given["code"], given["names"]
    if code.size and not 0 <= code.min() <= code.max() < len(STATUS):
        return "has members that ended in an unknown way"
    rows = [given["failed"], given["events"]["member"]]
    if any(row.size and not 0 <= row.min() <= row.max() < members for row in rows):
        return "names members that do not exist"
    if not all(text.isdecimal() and int(text) < members for text in given["messages"]):
        return "has messages of members that do not exist"
    kept = [array for array in (given["final"], given["y"]) if array is not None]
    if kept and names is None:
        return "has states without names"
    if any(array.shape[0] != members or array.shape[1] != len(names) for array in kept):
        return "has states of other members or variables"
    if given["y"] is not None and (given["t"] is None or given["y"].shape[2] != given["t"].size):
        return "has states at other times"
    if given["n_q"] is not None and (names is None or 2 * given["n_q"] > len(names)):
        return "has more coordinates than names"
    if not all(isinstance(given[name], dict) for name in ("outputs", "reduced", "varied")):
        return "has outputs, reductions or parameters without names"
    for name in ("outputs", "varied"):
        if not all(isinstance(array, np.ndarray) and array.shape[:1] == (members,) for array in given[name].values()):
            return f"has {name} of other members"
    return None


def _made(outputs, final, y, names, n_q, events, messages, code, **given) -> Ensemble:
    arrays = {name: array for name, array in (("final", final), ("y", y)) if array is not None}
    return Ensemble(
        arrays=arrays | {f"{_OUTPUT}{name}": array for name, array in outputs.items()},
        code=code,
        messages={int(member): text for member, text in messages.items()},
        layout=None if names is None else StateLayout(names, n_q),
        event_rows=[(*row[:-1], bool(row[-1])) for row in zip(*(list(events[name]) for name in EVENT_FIELDS))],
        **given,
    )


LAYOUTS = {"Ensemble": Record(_FIELDS, _made, _wrong, _taken)}
