"""The web page of a report: one section for each document and table, self-contained."""

from collections import Counter
from pathlib import Path
from typing import Any

from daedal.reproduce.figures import pictures
from daedal.reproduce.printed_table import document, names
from daedal.reproduce.reproduction import Cell, Reproduction, Result
from daedal.reproduce.verdict import BAND, DOUBTFUL, FAILED, OBSERVED, OPEN, PRINTED, REPRODUCED, VERDICTS
from daedal.reproduce.wording import MEANINGS, SYMBOLS, written
from daedal.viz.pages import render

CLASSES = {REPRODUCED: "yes", BAND: "band", OBSERVED: "seen", FAILED: "no", DOUBTFUL: "doubt", OPEN: "open"}


def write_page(report: Reproduction, folder: Path) -> Path:
    """Write ``index.html`` into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(page(report), encoding="utf-8")
    return path


def page(report: Reproduction) -> str:
    """The page as HTML; everything it shows is in it."""
    chapters: dict[str, list[Result]] = {}
    for result in report.results:
        chapters.setdefault(result.table.document, []).append(result)
    return render(
        "book.html",
        "daedal.reproduce",
        report=report,
        selection=len(report.results) != len(names()),
        chapters=[_chapter(name, results) for name, results in chapters.items()],
        classes=CLASSES,
        symbols=SYMBOLS,
        meanings={verdict: MEANINGS[verdict] for verdict in VERDICTS},
        written=written,
        printed_origin=PRINTED,
    )


def _chapter(name: str, results: list[Result]) -> dict[str, Any]:
    counts = {verdict: sum(result.counts[verdict] for result in results) for verdict in VERDICTS}
    return {"document": document(name), "counts": counts, "sections": [_section(result) for result in results]}


def _section(result: Result) -> dict[str, Any]:
    table = result.table
    cells: dict[Any, Cell] = {(cell.row, cell.column): cell for cell in result.cells}
    reasons = Counter((cell.verdict, cell.reason) for cell in result.cells if cell.reason)
    return {
        "table": table,
        "anchor": table.identifier.replace("/", "-"),
        "counts": result.counts,
        "rows": [(row.label, [cells.get((i, key)) for key in table.columns]) for i, row in enumerate(table.rows)],
        "reasons": reasons,
        "missing": Counter(cell.missing for cell in result.cells if cell.missing),
        "alarming": any(verdict in (DOUBTFUL, FAILED) for verdict, _ in reasons),
        "pictures": list(pictures(result)),
    }
