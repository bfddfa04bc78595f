"""Display of tables on the terminal."""

import math

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from daedal.common.tabular import Tabular
from daedal.studies.reproduce.printed_table import PrintedTable
from daedal.studies.reproduce.reproduction import Cell, Reproduction, Result
from daedal.studies.reproduce.verdict import BAND, DOUBTFUL, FAILED, OBSERVED, OPEN, PRINTED, REPRODUCED, VERDICTS

SYMBOLS = {REPRODUCED: "✓", BAND: "≈", OBSERVED: "∼", FAILED: "✗", DOUBTFUL: "?", OPEN: "○"}
MEANINGS = {
    REPRODUCED: "the computed value has the printed digits",
    BAND: "within a justified band around the printed value: digits, machine, algorithm",
    OBSERVED: "within a band that was chosen after the value was computed",
    FAILED: "the computed value differs, for the reason given",
    DOUBTFUL: "the printed value contradicts the source or is illegible, for the reason given",
    OPEN: "not computed, for the reason given",
}


def written(cell: Cell) -> str:
    """The computed value in the notation of the printed one, with two additional digits.

    Examples
    --------
    >>> like(".26e+79", 2.5818e78), like("2.6E-3", 2.6123e-3), like("43", 40.0), like("0", 2.5e-16)
    ('.2582e+79', '2.612E-3', '40', '2.5e-16')
    """
    if cell.computed is None:
        return "–"
    return cell.computed if isinstance(cell.computed, str) else like(cell.printed, cell.computed)


def like(printed: str, value: float) -> str:
    """Format a number in the notation of a printed one."""
    if not math.isfinite(value):
        return str(value).replace("inf", "∞")
    mantissa, letter, exponent = printed.partition("e") if "e" in printed else printed.partition("E")
    scaled = value / 10.0 ** int(exponent) if exponent else value
    if "." not in mantissa and not exponent and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if not 1e-3 <= abs(scaled) < 1e4 or "/" in printed or "∞" in printed:
        return f"{value:.4g}"
    decimals = min(len(mantissa.partition(".")[2]) + 2, 16)
    text = f"{scaled:.{decimals}f}"
    if mantissa.lstrip("-").startswith("."):
        text = text.replace("0.", ".", 1)
    return text + letter + exponent


# --- tables on the terminal -------------------------------------------------------------------------------------------

STYLES = {
    REPRODUCED: "blue",
    BAND: "cyan",
    OBSERVED: "magenta",
    FAILED: "bold red",
    DOUBTFUL: "yellow",
    OPEN: "dim",
}


def print_list(console: Console, tables: list[PrintedTable]) -> None:
    """Print identifiers, numbers of cells and captions."""
    rows = [(table.identifier, sum(len(row.cells) for row in table.rows), table.caption) for table in tables]
    console.print(Tabular("lrl", rows, ("table", "cells", "shows")))


def print_cells(console: Console, result: Result) -> None:
    """Print all cells of a table with origin, computed value, verdict and reason."""
    table = result.table
    console.print(f"\n[bold]{table.identifier}[/bold]  {escape(table.caption)}")
    for note in table.notes:
        console.print(f"[dim]{escape(note)}[/dim]")
    rows = [
        (
            cell.cell,
            cell.printed,
            Text("" if cell.origin == PRINTED else cell.origin, style="dim"),
            written(cell),
            Text(f"{SYMBOLS[cell.verdict]} {cell.verdict}", style=STYLES[cell.verdict]),
            Text(cell.reason, style="dim"),
        )
        for cell in result.cells
    ]
    console.print(Tabular("lrlrll", rows, ("cell", "printed", "origin", "computed", "verdict", "why")))


def print_overview(console: Console, report: Reproduction) -> None:
    """Print one line per table with the number of cells for each verdict.

    Reasons for printed cells that are not reproduced or open follow.
    """
    rows = []
    for result in report.results:
        counts = [Text(str(count) if count else "", style=STYLES[verdict]) for verdict, count in result.counts.items()]
        complete, met = result.complete
        share = f"{met} of {complete}" if complete else ""
        rows.append((result.table.identifier, len(result.cells), *counts, share, f"{result.seconds:.1f}"))
    header = ("table", "cells", *(SYMBOLS[verdict] for verdict in VERDICTS), "data complete", "seconds")
    console.print()
    console.print(Tabular("l" + "r" * (len(header) - 1), rows, header))
    console.print("[dim]" + ", ".join(f"{SYMBOLS[verdict]} {verdict}" for verdict in VERDICTS) + "[/dim]")
    causes = [(count, table, SYMBOLS[verdict], reason) for count, table, verdict, reason in report.causes()]
    if causes:
        console.print("\n[bold]Printed cells that are not reproduced or open[/bold]")
        console.print(Tabular("rlll", causes, ("cells", "table", "", "why")))
