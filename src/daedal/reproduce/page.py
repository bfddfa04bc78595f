"""The web page of a report: one section for each document and table, self-contained."""

from __future__ import annotations

import html
from collections import Counter
from importlib import resources
from pathlib import Path

from daedal.reproduce.figures import pictures
from daedal.reproduce.printed_table import document, names
from daedal.reproduce.reproduction import Cell, Reproduction, Result
from daedal.reproduce.verdict import BAND, DOUBTFUL, FAILED, OPEN, REPRODUCED, VERDICTS
from daedal.reproduce.wording import MEANINGS, SYMBOLS, written

CLASSES = {REPRODUCED: "yes", BAND: "band", DOUBTFUL: "doubt", FAILED: "no", OPEN: "open"}


def write_page(report: Reproduction, folder: Path) -> Path:
    """Write ``index.html`` into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(page(report), encoding="utf-8")
    return path


def page(report: Reproduction) -> str:
    """The page as HTML; everything it shows is in it."""
    groups: dict[str, list[Result]] = {}
    for result in report.results:
        groups.setdefault(result.table.document, []).append(result)
    selection = "" if len(report.results) == len(names()) else f"<p>A selection of {len(report.results)} tables.</p>"
    style = (resources.files("daedal.reproduce") / "data" / "page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>Daedal: the reproduction book</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        "<header><h1>The reproduction book</h1>\n"
        "<p>The printed tables of five sources on differential-algebraic equations and constrained mechanisms, "
        "computed again by Daedal and compared cell by cell. In every cell the printed value stands above the "
        "computed one.</p>"
        f'{selection}\n<p class="summary">{html.escape(report.summary())}</p>\n'
        f"{_bar(report.counts)}\n{_legend()}\n"
        f"{_contents(groups)}</header>\n<main>\n"
        + "\n".join(_document(name, results) for name, results in groups.items())
        + "\n</main>\n</body>\n</html>\n"
    )


def _legend() -> str:
    entries = "".join(
        f'<li><span class="mark {CLASSES[v]}">{SYMBOLS[v]}</span> <b>{v}</b>: {MEANINGS[v]}</li>' for v in VERDICTS
    )
    return f'<ul class="legend">{entries}</ul>'


def _bar(counts: dict[str, int]) -> str:
    """The shares of the verdicts as one bar."""
    parts = "".join(
        f'<span class="{CLASSES[v]}" style="flex-grow: {n}" title="{n} {v}"></span>' for v, n in counts.items() if n
    )
    return f'<div class="bar" role="img" aria-label="shares of the verdicts">{parts}</div>'


def _contents(groups: dict[str, list[Result]]) -> str:
    lines = []
    for name, results in groups.items():
        links = " ".join(f'<a href="#{_anchor(result)}">{html.escape(result.table.number)}</a>' for result in results)
        lines.append(f'<li><a href="#{name}"><b>{html.escape(name)}</b></a> {links}</li>')
    return f'<nav aria-label="tables"><ul>{"".join(lines)}</ul></nav>'


def _document(name: str, results: list[Result]) -> str:
    source = document(name)
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result.counts)
    ordered = {verdict: counts[verdict] for verdict in VERDICTS}
    return (
        f'<section class="document" id="{name}">\n<h2>{html.escape(source.title)}</h2>\n'
        f"<p>{html.escape(source.source)}</p>\n{_bar(ordered)}<p>{_counts(ordered)}</p>\n"
        + "\n".join(_table(result) for result in results)
        + "\n</section>"
    )


def _counts(counts: dict[str, int]) -> str:
    return " ".join(
        f'<span class="count"><span class="mark {CLASSES[v]}">{SYMBOLS[v]}</span> {n} {v}</span>'
        for v, n in counts.items()
        if n
    )


def _table(result: Result) -> str:
    table = result.table
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in table.notes)
    figures = "".join(
        f'<figure><img src="{uri}" alt="{html.escape(title)}: {html.escape(table.caption)}" loading="lazy">'
        f"<figcaption>{html.escape(title)}</figcaption></figure>"
        for title, uri in pictures(result)
    )
    return (
        f'<section class="table" id="{_anchor(result)}">\n'
        f"<h3>{html.escape(table.title)} <code>{html.escape(table.identifier)}</code></h3>\n"
        f"<p>{html.escape(table.caption)}</p>\n{notes}<p>{_counts(result.counts)}</p>\n"
        f"{_grid(result)}\n{_reasons(result)}\n{figures}</section>"
    )


def _grid(result: Result) -> str:
    table = result.table
    cells = {(cell.row, cell.column): cell for cell in result.cells}
    head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in table.columns.values())
    body = "".join(
        f'<tr><th scope="row">{html.escape(row.label)}</th>'
        + "".join(_cell(cells.get((i, key))) for key in table.columns)
        + "</tr>\n"
        for i, row in enumerate(table.rows)
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr><td></td>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    hint = html.escape(f"{cell.verdict}. {cell.reason}" if cell.reason else cell.verdict)
    return (
        f'<td class="{CLASSES[cell.verdict]}" title="{hint}"><span class="printed">{html.escape(cell.printed)}</span>'
        f'<span class="computed"><span class="mark {CLASSES[cell.verdict]}" aria-label="{cell.verdict}">'
        f"{SYMBOLS[cell.verdict]}</span> {html.escape(written(cell))}</span></td>"
    )


def _reasons(result: Result) -> str:
    """Every reason once, with the number of cells it holds for."""
    reasons = Counter((cell.verdict, cell.reason) for cell in result.cells if cell.reason)
    if not reasons:
        return ""
    entries = "".join(
        f'<li><span class="mark {CLASSES[v]}">{SYMBOLS[v]}</span> {html.escape(reason)} ({n})</li>'
        for (v, reason), n in reasons.items()
    )
    opened = " open" if any(verdict in (DOUBTFUL, FAILED) for verdict, _ in reasons) else ""
    return f"<details{opened}><summary>Reasons</summary><ul>{entries}</ul></details>"


def _anchor(result: Result) -> str:
    return result.table.identifier.replace("/", "-")
