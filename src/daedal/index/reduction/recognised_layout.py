"""What a file holds of a solution that was computed as that of a mechanism."""

from typing import Any

from daedal.events.table import EventTable
from daedal.index.reduction.recognised_solution import RecognisedSolution
from daedal.solution.file import AnySolution
from daedal.solution.schema import ArrayFormat, Integer, Optional, RecordFormat, Text
from daedal.solution.solution_layout import COMMON, PIECES, wrong_sizes

_FIELDS = {name: kind for name, kind in COMMON.items() if name != "dense"} | {
    "yp": ArrayFormat("f8", ("n", "nt")),
    "n_differential": Optional(Integer()),
    "formulation": Text(),
    "mechanical": AnySolution("MechanicalSolution"),
    "stored": Optional(PIECES),
}


def _taken(solution: RecognisedSolution) -> dict[str, Any]:
    dense = solution.mechanical.dense is not None
    return {name: getattr(solution, name, None) for name in _FIELDS} | {"stored": solution.pieces() if dense else None}


def _wrong(given: dict[str, Any]) -> str | None:
    stored, n = given["stored"], len(given["names"])
    if (stored is None) != (given["mechanical"].dense is None):
        return "has dense output in part only"
    if stored is not None and stored.sizes.tolist() != [n, n]:
        return "has dense output of other sizes"
    return wrong_sizes(given | {"dense": None})


def _made(mechanical: Any, stored: Any, **given) -> RecognisedSolution:
    solution = RecognisedSolution.__new__(RecognisedSolution)
    given["events"] = EventTable(given["events"], {None: given["names"]})
    solution.__dict__ |= {
        "_found": None,
        "mechanical": mechanical,
        "_stored": stored,
        "dense": mechanical.dense,
    } | given
    return solution


LAYOUTS = {"RecognisedSolution": RecordFormat(_FIELDS, _made, _wrong, _taken)}
