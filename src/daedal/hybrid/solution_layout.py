"""What a file holds of a run through modes."""

from typing import Any

from daedal.events.table import EventTable
from daedal.hybrid.hybrid_event import HybridEvent
from daedal.hybrid.solution import Chunk, HybridSegment, HybridSolution
from daedal.results.file import AnySolution
from daedal.results.schema import Array, Flag, Integer, ListOf, MappingOf, Number, Optional, Record, Text, names
from daedal.solution_layout import FUNCTIONS, STATISTICS

_CHUNK = Record({"mode": Integer(), "t": Array("f8", ("nt",)), "y": Array("f8", (None, "nt"))}, Chunk)
_SEGMENT = Record(
    {
        "mode": Text(),
        "t0": Number(),
        "t1": Number(),
        "solution": AnySolution(
            "Solution", "SecondOrderSolution", "MechanicalSolution", "HessenbergSolution", "RecognisedSolution"
        ),
        "names": names("n"),
    },
    HybridSegment,
)
_EVENT = Record(
    {
        "t": Number(),
        "name": Text(),
        "kind": Text(),
        "source": Text(),
        "target": Optional(Text()),
        "y": Array("f8", (None,)),
        "y_after": Optional(Array("f8", (None,))),
        "direction": Integer(-1),
    },
    HybridEvent,
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
    "status": Text(),
    "message": Text(),
    "stats": STATISTICS,
    "drift": MappingOf(Number()),
    "functions": MappingOf(FUNCTIONS),
}


def _taken(solution: HybridSolution) -> dict[str, Any]:
    inside = {name: getattr(solution, f"_{name}") for name in ("labels", "n_q", "chunks")}
    return {name: inside[name] if name in inside else getattr(solution, name) for name in _FIELDS}


def _wrong(given: dict[str, Any]) -> str | None:
    modes, labels, chunks, segments = (given[name] for name in ("modes", "labels", "chunks", "segments"))
    for chunk in chunks:
        if chunk.mode >= len(modes) or chunk.y.shape[0] < len(labels[chunk.mode]):
            return "has output of a mode that does not exist, or of other variables"
    for segment in segments:
        if segment.mode not in modes or segment.solution.y.shape[0] < len(segment.names):
            return "has a stretch in a mode that does not exist, or of other variables"
    if segments and len(segments) != len(chunks):
        return "has other stretches than output"
    if any(event.source not in modes or event.target not in (None, *modes) for event in given["events"]):
        return "has events of modes that do not exist"
    return None


def _made(event_names: tuple[str, ...], events: list[HybridEvent], **given) -> HybridSolution:
    table = EventTable(events, dict(zip(given["modes"], given["labels"], strict=True)))
    solution = HybridSolution(events=table, **given)
    solution.event_names = event_names
    return solution


LAYOUTS = {"HybridSolution": Record(_FIELDS, _made, _wrong, _taken)}
