"""Running tables: every cell with its printed and its computed value and a verdict."""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daedal.reproduce.printed_table import PrintedTable, find
from daedal.reproduce.verdict import BAND, DOUBTFUL, FAILED, OPEN, REPRODUCED, VERDICTS, judge

PRINT, INDEPENDENT = "print", "independent computation"
WORDS = {
    REPRODUCED: "agree in all digits",
    BAND: "within a stated band",
    DOUBTFUL: "doubtful",
    FAILED: "disagree",
    OPEN: "open",
}


@dataclass(frozen=True)
class Cell:
    """A cell: where it stands, what is printed, what came out, and the verdict with its reason.

    ``computed`` is a number, a text where the print is one, or None where nothing is computed. ``origin`` is "print",
    or "independent computation" where the source prints no number and ``printed`` is that of such a computation.
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

    def as_dict(self) -> dict[str, Any]:
        """The entry of the JSON file; numbers that JSON has no words for as texts."""
        computed = self.computed
        if isinstance(computed, float) and not math.isfinite(computed):
            computed = str(computed)
        return {
            "document": self.document,
            "table": self.table,
            "cell": self.cell,
            "printed": self.printed,
            "computed": computed,
            "verdict": self.verdict,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Result:
    """A table that was run: its cells, and how long it took."""

    table: PrintedTable
    cells: tuple[Cell, ...]
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """How many cells have each verdict."""
        return _count(self.cells)


@dataclass(frozen=True)
class Reproduction:
    """The tables that were run."""

    results: tuple[Result, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells of all tables."""
        return tuple(cell for result in self.results for cell in result.cells)

    @property
    def counts(self) -> dict[str, int]:
        """How many cells have each verdict."""
        return _count(self.cells)

    @property
    def holds(self) -> bool:
        """Whether every cell that can be reproduced was."""
        return self.counts[FAILED] == 0

    def summary(self) -> str:
        """Two sentences: what became of the printed cells, and of those that are not printed."""
        count = len(self.results)
        parts = [f"{count} table{'' if count == 1 else 's'}, {len(self.cells)} cells."]
        for origin, words in (
            (PRINT, "printed"),
            (INDEPENDENT, "computed independently, where the source prints none"),
        ):
            cells = [cell for cell in self.cells if cell.origin == origin]
            if cells:
                counts = _count(cells)
                found = ", ".join(f"{counts[verdict]} {WORDS[verdict]}" for verdict in VERDICTS)
                parts.append(f"{len(cells)} are {words}: {found}.")
        return " ".join(parts)

    def to_json(self) -> str:
        """``{"cells": [...]}``."""
        return json.dumps({"cells": [cell.as_dict() for cell in self.cells]}, indent=1, ensure_ascii=False)

    def write_json(self, path: str | Path) -> None:
        """Write the cells to a file."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.to_json() + "\n", encoding="utf-8")


def run(identifiers: Iterable[str] = (), *, done: Callable[[Result], None] | None = None) -> Reproduction:
    """Compute tables and compare them with the print.

    Parameters
    ----------
    identifiers : iterable of str
        Tables, such as ``stability/4.4``, or documents; all of them if there are none.
    done : callable, optional
        Called with the result of every table as soon as it is there.

    Returns
    -------
    Reproduction

    Examples
    --------
    >>> from daedal import reproduce
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
    """Compute one table and judge its cells."""
    start = time.perf_counter()
    cells = judged(table, table.compute())
    return Result(table, cells, time.perf_counter() - start)


def judged(table: PrintedTable, computed: Sequence[Mapping[str, Any] | None]) -> tuple[Cell, ...]:
    """The cells of a table with the verdict on what was computed for them, row by row."""
    cells = []
    for i, (row, values) in enumerate(zip(table.rows, computed, strict=True)):
        for key, entry in row.cells.items():
            value = None if values is None else _plain(values.get(key))
            verdict, reason = judge(entry, value)
            name = f"{row.label}: {table.columns[key]}" if len(table.columns) > 1 else row.label
            origin = INDEPENDENT if entry["independent"] else PRINT
            cells.append(
                Cell(table.document, table.number, name, entry["printed"], value, verdict, reason, i, key, origin)
            )
    return tuple(cells)


def _plain(value: Any) -> float | str | None:
    return value if value is None or isinstance(value, str) else float(value)


def _count(cells: Iterable[Cell]) -> dict[str, int]:
    counter = Counter(cell.verdict for cell in cells)
    return {verdict: counter[verdict] for verdict in VERDICTS}
