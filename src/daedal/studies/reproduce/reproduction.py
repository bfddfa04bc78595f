"""Computation of tables: cells with printed values, computed values and verdicts."""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daedal.common.tabular import plural
from daedal.studies.reproduce.printed_table import PrintedTable, Row, find
from daedal.studies.reproduce.verdict import (
    BAND,
    DERIVED,
    DOUBTFUL,
    FAILED,
    INDEPENDENT,
    OBSERVED,
    OPEN,
    ORIGINS,
    PRINTED,
    REPRODUCED,
    VERDICTS,
    describe,
    judge,
)

WORDS = {
    REPRODUCED: "agree in all digits",
    BAND: "within a band",
    OBSERVED: "within an observed band",
    FAILED: "disagree",
    DOUBTFUL: "doubtful",
    OPEN: "open",
}
WHERE_FROM = {
    PRINTED: "printed",
    DERIVED: "derived from the sources",
    INDEPENDENT: "computed independently",
}


@dataclass(frozen=True)
class Cell:
    """A cell: position, printed and computed value, and the verdict with its reason.

    ``computed`` is a number, a text if the printed value is a text, or None if nothing is computed. ``origin`` is
    "printed" or, if the source prints no number, "derived" (``printed`` follows from the source) or "independent"
    (``printed`` was computed independently). ``band`` and ``basis`` are empty without a band. ``missing`` is
    information that the value depends on and the source omits. ``explained`` is whether the data file contains a reason
    if the value is not reproduced.
    """

    document: str
    table: str
    cell: str
    printed: str
    computed: float | str | None
    verdict: str
    reason: str
    row: int
    column: str
    origin: str
    band: str = ""
    basis: str = ""
    missing: str = ""
    explained: bool = True

    @property
    def complete(self) -> bool:
        """Whether the value is printed and not doubtful, and the source provides all data that it depends on."""
        return self.origin == PRINTED and not self.missing and self.verdict != DOUBTFUL

    def as_dict(self) -> dict[str, Any]:
        """Entry of the JSON file; infinite numbers and NaN are written as text."""
        computed = self.computed
        if isinstance(computed, float) and not math.isfinite(computed):
            computed = str(computed)
        return {
            "document": self.document,
            "table": self.table,
            "cell": self.cell,
            "origin": self.origin,
            "printed": self.printed,
            "computed": computed,
            "band": self.band,
            "basis": self.basis,
            "verdict": self.verdict,
            "reason": self.reason,
            "missing": self.missing,
        }


@dataclass(frozen=True)
class Result:
    """A computed table: its cells, and the computing time."""

    table: PrintedTable
    cells: tuple[Cell, ...]
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells with each verdict."""
        return _count(self.cells)

    @property
    def complete(self) -> tuple[int, int]:
        """Number of printed cells with complete data, and how many of these agree or are within a band."""
        return _met(self.cells)


@dataclass(frozen=True)
class Reproduction:
    """The computed tables."""

    results: tuple[Result, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells of all tables."""
        return tuple(cell for result in self.results for cell in result.cells)

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells with each verdict."""
        return _count(self.cells)

    @property
    def holds(self) -> bool:
        """Whether every cell was reproduced or has a reason in the data files."""
        return all(cell.explained for cell in self.cells)

    def summary(self) -> str:
        """Summary of all cells by origin, and of printed cells with complete data."""
        parts = [f"{plural(len(self.results), 'table')}, {len(self.cells)} cells."]
        for origin, words in WHERE_FROM.items():
            cells = [cell for cell in self.cells if cell.origin == origin]
            if cells:
                counts = _count(cells)
                found = ", ".join(f"{counts[verdict]} {WORDS[verdict]}" for verdict in VERDICTS)
                parts.append(f"{len(cells)} are {words}: {found}.")
        complete, met = _met(self.cells)
        if complete:
            share = "agree in all digits or within a band that was set in advance"
            parts.append(
                f"Of the {complete} printed cells without doubt whose data are complete {met} "
                f"({100 * met / complete:.1f} %) {share}."
            )
        return " ".join(parts)

    def causes(self) -> list[tuple[int, str, str, str]]:
        """(number, table, verdict, reason) of printed cells that are not reproduced or open, most frequent first."""
        rest = [cell for cell in self.cells if cell.origin == PRINTED and cell.verdict in (FAILED, OPEN)]
        found = Counter((f"{cell.document}/{cell.table}", cell.verdict, cell.reason) for cell in rest)
        return [(count, *cause) for cause, count in found.most_common()]

    def markdown(self) -> str:
        """A table of the numbers of cells by document, origin and verdict."""
        header = ("document", "tables", "origin", "cells", *VERDICTS)
        lines: list[tuple[Any, ...]] = [header, ("---",) * len(header)]
        for name in dict.fromkeys(result.table.document for result in self.results):
            tables = sum(result.table.document == name for result in self.results)
            for origin in ORIGINS:
                cells = [cell for cell in self.cells if (cell.document, cell.origin) == (name, origin)]
                if cells:
                    lines.append((f"`{name}`", tables, origin, len(cells), *_count(cells).values()))
        return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)

    def to_json(self) -> str:
        """All cells as JSON, ``{"cells": [...]}``."""
        return json.dumps({"cells": [cell.as_dict() for cell in self.cells]}, indent=1, ensure_ascii=False)

    def write_json(self, path: str | Path) -> None:
        """Write the cells to a file."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.to_json() + "\n", encoding="utf-8")


def run(identifiers: Iterable[str] = (), *, done: Callable[[Result], None] | None = None) -> Reproduction:
    """Compute tables and compare them with the printed values.

    Parameters
    ----------
    identifiers : iterable of str
        Tables, such as ``stability/4.4``, or documents; by default all.
    done : callable, optional
        Called with the result of every table when available.

    Returns
    -------
    Reproduction

    Examples
    --------
    >>> from daedal.studies import reproduce
    >>> report = reproduce.run(["half-explicit/2"])
    >>> report.holds, report.counts["reproduced"] == len(report.cells)
    (True, True)
    """
    results = []
    for table in find(identifiers):
        result = run_table(table)
        results.append(result)
        if done is not None:
            done(result)
    return Reproduction(tuple(results))


def run_table(table: PrintedTable) -> Result:
    """Compute one table and determine the verdicts on its cells."""
    start = time.perf_counter()
    cells = judged(table, table.compute())
    return Result(table, cells, time.perf_counter() - start)


def judged(table: PrintedTable, computed: Sequence[Mapping[str, Any] | None]) -> tuple[Cell, ...]:
    """Compare computed values with the cells of a table, row by row."""
    return tuple(
        _cell(table, i, row, key, None if values is None else _plain(values.get(key)))
        for i, (row, values) in enumerate(zip(table.rows, computed, strict=True))
        for key in row.cells
    )


def _cell(table: PrintedTable, i: int, row: Row, key: str, computed: float | str | None) -> Cell:
    entry = row.cells[key]
    value = None if entry.get("tag") == OPEN else computed
    verdict, reason = judge(entry, value)
    name = f"{row.label}: {table.columns[key]}" if len(table.columns) > 1 else row.label
    return Cell(
        table.document,
        table.number,
        name,
        entry["printed"],
        value,
        verdict,
        reason,
        i,
        key,
        entry["origin"],
        describe(entry["band"]) if "band" in entry else "",
        entry.get("basis", ""),
        entry.get("missing", ""),
        explained=(verdict, entry.get("tag")) not in ((FAILED, None), (FAILED, DOUBTFUL), (OPEN, None)),
    )


def _plain(value: Any) -> float | str | None:
    return value if value is None or isinstance(value, str) else float(value)


def _met(cells: Iterable[Cell]) -> tuple[int, int]:
    complete = [cell for cell in cells if cell.complete]
    return len(complete), sum(cell.verdict in (REPRODUCED, BAND) for cell in complete)


def _count(cells: Iterable[Cell]) -> dict[str, int]:
    counter = Counter(cell.verdict for cell in cells)
    return {verdict: counter[verdict] for verdict in VERDICTS}
