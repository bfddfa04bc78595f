"""The self-contained web page of a report, with a section for each document and table."""

import base64
import io
import math
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from daedal.studies.reproduce.printed_table import document, names
from daedal.studies.reproduce.reproduction import Cell, Reproduction, Result
from daedal.studies.reproduce.terminal import MEANINGS, SYMBOLS, written
from daedal.studies.reproduce.verdict import (
    BAND,
    DOUBTFUL,
    FAILED,
    OBSERVED,
    OPEN,
    PRINTED,
    REPRODUCED,
    VERDICTS,
    number,
)
from daedal.viz.figure import FAINT, LINES, STYLE
from daedal.viz.pages import render


def pictures(result: Result) -> list[tuple[str, str]]:
    """Titles and data URIs of the pictures of a table."""
    import matplotlib
    from matplotlib.figure import Figure

    found = []
    with matplotlib.rc_context(STYLE | {"svg.fonttype": "none"}):
        own = _own_figures(result.table.document).get(result.table.number)
        if own is not None:
            title, draw = own
            figure = Figure(figsize=(7.0, 3.6), layout="constrained")
            draw(figure, result)
            found.append((title, _data_uri(figure)))
        comparison = _comparison(result, Figure)
        if comparison is not None:
            found.append(("Printed (rings) and computed (dots)", _data_uri(comparison)))
    return found


def _own_figures(document: str) -> Any:
    return getattr(import_module(f"daedal.studies.reproduce.tables_{document.replace('-', '_')}"), "FIGURES", {})


def _comparison(result: Result, Figure: Any) -> Any:
    """Plot the sizes of printed and computed values by row; None if there are too few values."""
    from matplotlib.ticker import NullFormatter

    points = []
    for cell in result.cells:
        if isinstance(cell.computed, float) and math.isfinite(cell.computed):
            printed = abs(number(cell.printed))
            if 0.0 < printed < math.inf and cell.computed != 0.0:
                points.append((cell.row, cell.column, printed, abs(cell.computed)))
    if len(points) < 6 or max(p[2] for p in points) < 100.0 * min(p[2] for p in points):
        return None
    rows = sorted({p[0] for p in points})
    place = {row: i for i, row in enumerate(rows)}
    figure = Figure(figsize=(7.0, 1.1 + 0.19 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    columns = [key for key in result.table.columns if any(p[1] == key for p in points)]
    for i, key in enumerate(columns):
        colour = LINES[i % len(LINES)][0]
        mine = [p for p in points if p[1] == key]
        shift = 0.5 * (i / max(len(columns) - 1, 1) - 0.5)
        height = [place[p[0]] + shift for p in mine]
        style: dict[str, Any] = {"marker": "os"[i // len(LINES) % 2], "color": colour}
        axes.scatter([p[2] for p in mine], height, s=30, linewidths=1.0, **(style | {"facecolors": "none"}))
        axes.scatter([p[3] for p in mine], height, s=7, label=result.table.columns[key], **style)
    axes.set_xscale("log")
    # plain labels, since mathtext would take most of the time for a page
    axes.xaxis.set_major_formatter(lambda value, place: f"1e{math.log10(value):.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(rows)), [result.table.rows[row].label for row in rows], fontsize=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0, labelcolor=FAINT)
    if len(columns) > 1:
        longest = max(len(result.table.columns[key]) for key in columns)
        figure.legend(loc="outside upper center", ncols=max(1, min(len(columns), 90 // (longest + 6))), fontsize=7.5)
    return figure


def _data_uri(figure: Any) -> str:
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


# --- the page ---------------------------------------------------------------------------------------------------------

CLASSES = {REPRODUCED: "yes", BAND: "band", OBSERVED: "seen", FAILED: "no", DOUBTFUL: "doubt", OPEN: "open"}


def write_page(report: Reproduction, folder: Path) -> Path:
    """Write ``index.html`` into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(page(report), encoding="utf-8")
    return path


def page(report: Reproduction) -> str:
    """Create the self-contained page."""
    chapters: dict[str, list[Result]] = {}
    for result in report.results:
        chapters.setdefault(result.table.document, []).append(result)
    return render(
        "book.html",
        "daedal.studies.reproduce",
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
