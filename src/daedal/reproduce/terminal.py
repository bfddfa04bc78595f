"""Tables on the terminal."""

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from daedal.reproduce.printed_table import PrintedTable
from daedal.reproduce.reproduction import Reproduction, Result
from daedal.reproduce.verdict import BAND, DOUBTFUL, FAILED, OBSERVED, OPEN, PRINTED, REPRODUCED, VERDICTS
from daedal.reproduce.wording import SYMBOLS, written
from daedal.tabular import Tabular

STYLES = {
    REPRODUCED: "blue",
    BAND: "cyan",
    OBSERVED: "magenta",
    FAILED: "bold red",
    DOUBTFUL: "yellow",
    OPEN: "dim",
}


def print_list(console: Console, tables: list[PrintedTable]) -> None:
    """The identifiers, with the number of cells and what they show."""
    rows = [(table.identifier, sum(len(row.cells) for row in table.rows), table.caption) for table in tables]
    console.print(Tabular("lrl", rows, ("table", "cells", "shows")))


def print_cells(console: Console, result: Result) -> None:
    """All cells of a table: value and where it comes from, computed value, verdict and why."""
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
    """A line for each table: how many cells have each verdict, and how many of those with complete data are met.

    Then why printed cells are not reproduced or open.
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
