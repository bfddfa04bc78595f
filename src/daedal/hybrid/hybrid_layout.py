"""File format of runs through modes."""

from __future__ import annotations

from typing import Any

from daedal.events.table import EventTable
from daedal.hybrid.hybrid_solution import HybridSolution
from daedal.hybrid.models.contact_modes import Readings, StoredContacts
from daedal.hybrid.segments import Derived, HybridEvent, HybridSegment, ModeOutput
from daedal.solution.file import AnySolution
from daedal.solution.schema import (
    ArrayFormat,
    Flag,
    Integer,
    ListOf,
    MappingOf,
    NumberFormat,
    Optional,
    RecordFormat,
    StatusText,
    Text,
    names,
)
from daedal.solution.solution_layout import FUNCTIONS, STATISTICS

_CHUNK = RecordFormat(
    {"mode": Integer(), "t": ArrayFormat("f8", ("nt",)), "y": ArrayFormat("f8", (None, "nt"))}, ModeOutput
)
_SEGMENT = RecordFormat(
    {
        "mode": Text(),
        "t0": NumberFormat(),
        "t1": NumberFormat(),
        "solution": AnySolution(
            "Solution", "SecondOrderSolution", "MechanicalSolution", "HessenbergSolution", "RecognisedSolution"
        ),
        "names": names("n"),
    },
    HybridSegment,
)
_EVENT = RecordFormat(
    {
        "t": NumberFormat(),
        "name": Text(),
        "kind": Text(),
        "source": Text(),
        "target": Optional(Text()),
        "y": ArrayFormat("f8", (None,)),
        "y_after": Optional(ArrayFormat("f8", (None,))),
        "direction": Integer(-1),
        "located": Text(),
    },
    HybridEvent,
    newer=frozenset({"located"}),
)
_READINGS = RecordFormat(
    {
        "gap": ArrayFormat("f8", ("contacts", "nt")),
        "normal": ArrayFormat("f8", ("contacts", "nt")),
        "friction": ListOf(ArrayFormat("f8", (None, "nt")), "contacts"),
        "slip": ListOf(ArrayFormat("f8", (None, "nt")), "contacts"),
    },
    Readings,
)
_WORDS = ListOf(Text(), None, tuple)
_CONTACTS = RecordFormat(
    {"names": _WORDS, "states": MappingOf(_WORDS), "readings": Optional(_READINGS)}, StoredContacts
)
_DERIVED = RecordFormat(
    {"names": names("derived"), "values": Optional(ArrayFormat("f8", ("derived", None)))},
    lambda names, values: Derived(names, None, values),
)
_FIELDS = {
    "modes": names("modes"),
    "labels": ListOf(ListOf(Text(), None, tuple), "modes"),
    "n_q": ListOf(Optional(Integer(1)), "modes"),
    "chunks": ListOf(_CHUNK),
    "segments": ListOf(_SEGMENT),
    "events": ListOf(_EVENT),
    "event_names": ListOf(Text(), None, tuple),
    "n_events": Integer(),
    "success": Flag(),
    "status": StatusText(),
    "message": Text(),
    "stats": STATISTICS,
    "drift": MappingOf(NumberFormat()),
    "functions": MappingOf(FUNCTIONS),
    "contacts": Optional(_CONTACTS),
    "hidden": MappingOf(_WORDS),
    "derived": Optional(_DERIVED),
}


def _taken(solution: HybridSolution) -> dict[str, Any]:
    inside = {name: getattr(solution, f"_{name}") for name in ("labels", "n_q", "chunks", "hidden")}
    inside |= {"contacts": solution.stored_contacts(), "derived": solution.stored_derived()}
    return {name: inside[name] if name in inside else getattr(solution, name) for name in _FIELDS}


def _wrong(given: dict[str, Any]) -> str | None:
    modes, labels, chunks, segments = (given[name] for name in ("modes", "labels", "chunks", "segments"))
    for chunk in chunks:
        if chunk.mode >= len(modes) or chunk.y.shape[0] < len(labels[chunk.mode]):
            return "has output of a mode that does not exist, or output that lacks variables of its mode"
    for segment in segments:
        if segment.mode not in modes or segment.solution.y.shape[0] < len(segment.names):
            return "has an arc in a mode that does not exist, or with other variables"
    if segments and len(segments) != len(chunks):
        return "has arcs that do not match its output"
    if any(event.source not in modes or event.target not in (None, *modes) for event in given["events"]):
        return "has events of modes that do not exist"
    points = sum(chunk.t.size for chunk in chunks)
    if given["derived"] is not None and given["derived"].values is not None:
        if given["derived"].values.shape[1] != points:
            return "has derived quantities at other points"
    return _wrong_contacts(given["contacts"], {segment.mode for segment in segments}, points)


def _wrong_contacts(contacts: StoredContacts | None, modes: set[str], points: int) -> str | None:
    """Errors in the contacts of a run through `modes`."""
    if contacts is None:
        return None
    count, readings = len(contacts.names), contacts.readings
    if not modes <= set(contacts.states) or any(len(states) != count for states in contacts.states.values()):
        return "has contacts without a state in each mode"
    if readings is not None and readings.gap.shape != (count, points):
        return "has contacts at other points"
    if readings is not None and not all(part.shape[0] for part in (*readings.friction, *readings.slip)):
        return "has contacts without a direction of friction"
    return None


def _made(event_names: tuple[str, ...], events: list[HybridEvent], **given) -> HybridSolution:
    table = EventTable(events, dict(zip(given["modes"], given["labels"], strict=True)))
    solution = HybridSolution(events=table, **given)
    solution.event_names = event_names
    return solution


LAYOUTS = {"HybridSolution": RecordFormat(_FIELDS, _made, _wrong, _taken)}
