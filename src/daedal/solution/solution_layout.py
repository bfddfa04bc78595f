"""File layout of solutions, with strict checks: compiled code reads these arrays without further checks."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from daedal.common.tabular import FunctionTable
from daedal.events.event import EventRecord
from daedal.events.table import EventTable
from daedal.solution.constrained_solution import HessenbergSolution, RawOutput
from daedal.solution.machine_record import MACHINE, RecordedMachine, wrong_times
from daedal.solution.mechanical_solution import MechanicalSolution
from daedal.solution.pieces import Pieces
from daedal.solution.schema import (
    ArrayFormat,
    Flag,
    Format,
    Integer,
    ListOf,
    MappingOf,
    NumberFormat,
    Optional,
    RecordFormat,
    StatusText,
    Text,
    finite,
    names,
)
from daedal.solution.solution import DenseOutput, History, SecondOrderSolution, Solution, Statistics

STATISTICS = RecordFormat(
    {f.name: NumberFormat() if f.name in ("seconds", "first_use") else Integer() for f in fields(Statistics)},
    Statistics,
)
FUNCTIONS = MappingOf(Text(), FunctionTable)
DRIFT = Optional(MappingOf(NumberFormat()))
_HISTORY = RecordFormat(
    {"t": ArrayFormat("f8", ("steps",)), "h": ArrayFormat("f8", ("steps",)), "order": ArrayFormat("i8", ("steps",))},
    History,
)


def _wrong_dense(given: dict[str, Any]) -> str | None:
    """Error message for inconsistent polynomials in Newton form, or None; kernels/interpolation.py has the format."""
    ends, orders, starts, psi = (given[name] for name in ("ends", "orders", "starts", "psi"))
    if not ends.size or not finite([ends, np.array(given["t0"])]):
        return "has no steps, or times that are not finite"
    if orders.min() < 0 or psi.shape[1] < orders.max() + 1:
        return "has polynomials of an inconsistent degree"
    if starts.min() < 0 or np.any(starts > given["coefficients"].shape[0] - orders - 1):
        return "has polynomials that lie outside their array"
    steps = np.diff(ends, prepend=given["t0"])
    if np.any(steps < 0.0) and np.any(steps > 0.0):
        return "has times that are not monotone"
    return None


DENSE = RecordFormat(
    {
        "t0": NumberFormat(),
        "ends": ArrayFormat("f8", ("steps",)),
        "orders": ArrayFormat("i8", ("steps",)),
        "starts": ArrayFormat("i8", ("steps",)),
        "psi": ArrayFormat("f8", ("steps", None)),
        "coefficients": ArrayFormat("f8", (None, None)),
        "t_end": Optional(NumberFormat()),
    },
    DenseOutput,
    _wrong_dense,
)


def _wrong_pieces(given: dict[str, Any]) -> str | None:
    ends, sizes, values = given["ends"], given["sizes"], given["values"]
    if ends.size < 2 or not finite([ends]) or np.any(np.diff(ends) <= 0.0):
        return "has steps that do not increase"
    if values.shape[1] != ends.size - 1 or not values.shape[2] or sizes.min(initial=0) < 0:
        return "has polynomials that are inconsistent with its steps"
    return None if sizes.sum() == values.shape[0] else "has blocks that are inconsistent with its rows"


PIECES = RecordFormat(
    {
        "ends": ArrayFormat("f8", (None,)),
        "forward": Flag(),
        "sizes": ArrayFormat("i8", (None,)),
        "values": ArrayFormat("f8", (None, None, None)),
    },
    Pieces,
    _wrong_pieces,
)

_EVENT = RecordFormat(
    {
        "t": NumberFormat(),
        "y": ArrayFormat("f8", (None,)),
        "yp": ArrayFormat("f8", (None,)),
        "index": Integer(-1),
        "name": Text(),
        "direction": Integer(-1),
        "terminal": Flag(),
        "kind": Text(),
        "located": Text(),
    },
    EventRecord,
    newer=frozenset({"located"}),
)

COMMON: dict[str, Format] = {
    "t": ArrayFormat("f8", ("nt",)),
    "y": ArrayFormat("f8", ("n", "nt")),
    "names": names("n"),
    "success": Flag(),
    "status": StatusText(),
    "message": Text(),
    "stats": STATISTICS,
    "method": Text(),
    "drift": DRIFT,
    "events": ListOf(_EVENT),
    "event_names": ListOf(Text(), None, tuple),
    "history": Optional(_HISTORY),
    "dense": Optional(DENSE),
    "functions": FUNCTIONS,
}
"""Fields common to all solutions except those with modes."""


def wrong_sizes(given: dict[str, Any]) -> str | None:
    """Error message for inconsistent fields of a solution, or None."""
    n, dense = len(given["names"]), given["dense"]
    if dense is not None and dense.coefficients.shape[1] != n:
        return f"has dense output of {dense.coefficients.shape[1]} variables, but {n} names"
    first = given.get("n_differential")
    if first is not None and first > n:
        return f"has {first} differential variables, but only {n} variables"
    if any(event.index >= len(given["event_names"]) for event in given["events"] if event.kind == "event"):
        return "has events of unnamed functions"
    return None


def completed(kind: type, **fields) -> Any:
    """A first-order solution of class `kind` with these fields; `event_names` is not an argument of the class."""
    own, event_names = dict(fields), fields["event_names"]
    del own["event_names"]
    solution = kind(**own)
    solution.event_names = event_names
    return solution


_FIRST_ORDER = COMMON | {
    "yp": ArrayFormat("f8", ("n", "nt")),
    "n_differential": Optional(Integer()),
    "formulation": Optional(Text()),
}


def _taken(solution: Any, wanted: dict[str, Format]) -> dict[str, Any]:
    return {name: getattr(solution, name, None) for name in wanted}


def _solution(formulation: str | None, **fields) -> Solution:
    solution = completed(Solution, **fields)
    if formulation is not None:
        solution.formulation = formulation
    return solution


# --- of second order ------------------------------------------------------------------------------------------------

_SECOND_ORDER = {k: v for k, v in _FIRST_ORDER.items() if k not in ("n_differential", "formulation")} | {
    "order": ArrayFormat("i8", ("n_x",)),
    "source": ArrayFormat("i8", ("n",)),
}


def _wrong_second_order(given: dict[str, Any]) -> str | None:
    order, source = given["order"], given["source"]
    if np.any((order < 0) | (order > 2)) or np.any((source < 0) | (source >= 2 * order.size)):
        return "has variables of an invalid order; orders are 0, 1 and 2"
    return wrong_sizes(given)


# --- constrained systems --------------------------------------------------------------------------------------------

_CONSTRAINED = COMMON | {
    "formulation": Text(),
    "notes": ListOf(Text(), None, tuple),
    "ending": Text(),
    "raw": Optional(
        RecordFormat(
            {"t": ArrayFormat("f8", ("nt",)), "y": ArrayFormat("f8", ("n", "nt")), "names": names("n")}, RawOutput
        )
    ),
    "constraints": names("n_lambda"),
    "lam": ArrayFormat("f8", ("n_lambda", "nt")),
    "drifts": Optional(ArrayFormat("f8", (None, "nt"))),
    "stored": Optional(PIECES),
}
_MECHANICAL = _CONSTRAINED | {
    "n_q": Integer(1, "n_q"),
    "n_w": Integer(0, "n_w"),
    "a": ArrayFormat("f8", ("n_q", "nt")),
    "rate": ArrayFormat("f8", (None, "nt")),
    "w": ArrayFormat("f8", ("n_w", "nt")),
    "reaction": ArrayFormat("f8", ("n_q", "nt")),
    "s": Optional(ArrayFormat("f8", (None, "nt"))),
    "residuals": Optional(ArrayFormat("f8", ("n_lambda", "nt"))),
    "energies": Optional(ArrayFormat("f8", (3, "nt"))),
    "machine": Optional(MACHINE),
}
_HESSENBERG = _CONSTRAINED | {"a": ArrayFormat("f8", ("n_x", "nt"))}
# fields stored with a leading underscore
_LATE = ("constraints", "drifts", "stored", "residuals", "energies", "ending", "n_w", "n_q")


def _of_constrained(solution: Any, wanted: dict[str, Format]) -> dict[str, Any]:
    kept = solution.__getstate__()  # all computed quantities, without the functions
    given = {name: kept.get(f"_{name}" if name in _LATE else name) for name in wanted}
    given["events"], given["names"] = kept["events"], solution.names
    given["event_names"] = solution.event_names
    if given.get("machine") is not None and not isinstance(given["machine"], RecordedMachine):
        given["machine"] = given["machine"].recorded(solution)
    a, lam, *further = kept["_augmented"]
    given |= {"a": a, "lam": lam} | dict(zip(("rate", "w", "reaction"), further))
    return given | ({"s": None} if np.size(kept.get("s", ())) == 0 and "s" in wanted else {})


def _wrong_constrained(given: dict[str, Any]) -> str | None:
    if given["drifts"] is not None and given["drifts"].shape[0] not in (1, 2):
        return "has drift on an invalid number of constraint levels"
    if (given["dense"] is None) != (given["stored"] is None):
        return "has incomplete dense output"
    if given["raw"] is not None and len(given["raw"].names) != given["raw"].y.shape[0]:
        return "has raw output without names"
    return wrong_sizes(given)


def _wrong_mechanical(given: dict[str, Any]) -> str | None:
    n, n_q = len(given["names"]), given["n_q"]
    if n < 2 * n_q or given["rate"].shape[0] != n - 2 * n_q:
        return f"has {n_q} coordinates, but {n} names"
    n_lambda = len(given["constraints"])
    if given["stored"] is not None and given["stored"].sizes.tolist() != [
        n,
        n_q,
        n_lambda,
        n - 2 * n_q,
        given["n_w"],
        n_q,
    ]:
        return "has dense output of inconsistent sizes"
    return wrong_times(given["machine"], given["t"].size) or _wrong_constrained(given)


def _wrong_hessenberg(given: dict[str, Any]) -> str | None:
    n_lambda, n_x = len(given["constraints"]), given["a"].shape[0]
    if not 0 < n_x <= len(given["names"]):
        return "has sizes that are inconsistent with its names"
    if given["stored"] is not None and given["stored"].sizes.tolist() != [n_lambda]:
        return "has dense output of inconsistent sizes"
    return _wrong_constrained(given)


def _stored(kind: Any, augmented: tuple[str, ...], given: dict[str, Any]) -> Any:
    own = {f"_{name}" if name in _LATE else name: value for name, value in given.items() if name not in augmented}
    own = {
        name: value for name, value in own.items() if value is not None or name in ("history", "dense", "raw", "drift")
    }
    own["_augmented"] = tuple(given[name] for name in augmented)
    own["events"] = EventTable(given["events"], {None: given["names"]})
    return kind.stored(**own)


_AUGMENTED = ("a", "lam", "rate", "w", "reaction")
LAYOUTS = {
    "Solution": RecordFormat(_FIRST_ORDER, _solution, wrong_sizes, lambda sol: _taken(sol, _FIRST_ORDER)),
    "SecondOrderSolution": RecordFormat(
        _SECOND_ORDER,
        lambda **given: completed(SecondOrderSolution, **given),
        _wrong_second_order,
        lambda sol: _taken(sol, _SECOND_ORDER),
    ),
    "MechanicalSolution": RecordFormat(
        _MECHANICAL,
        lambda **given: _stored(MechanicalSolution, _AUGMENTED, given),
        _wrong_mechanical,
        lambda sol: _of_constrained(sol, _MECHANICAL),
    ),
    "HessenbergSolution": RecordFormat(
        _HESSENBERG,
        lambda **given: _stored(HessenbergSolution, ("a", "lam"), given),
        _wrong_hessenberg,
        lambda sol: _of_constrained(sol, _HESSENBERG),
    ),
}
