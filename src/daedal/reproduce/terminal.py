"""Tables on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid
from rich.text import Text

from daedal.reproduce.printed_table import PrintedTable
from daedal.reproduce.reproduction import Reproduction, Result
from daedal.reproduce.verdict import BAND, DOUBTFUL, FAILED, OPEN, REPRODUCED, VERDICTS
from daedal.reproduce.wording import SYMBOLS, written

STYLES = {REPRODUCED: "blue", BAND: "cyan", DOUBTFUL: "yellow", FAILED: "bold red", OPEN: "dim"}


def print_list(console: Console, tables: list[PrintedTable]) -> None:
    """The identifiers, with the number of cells and what they show."""
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", no_wrap=True)
    grid.add_column("cells", justify="right")
    grid.add_column("shows")
    for table in tables:
        grid.add_row(table.identifier, str(sum(len(row.cells) for row in table.rows)), escape(table.caption))
    console.print(grid)


def print_cells(console: Console, result: Result) -> None:
    """All cells of a table: printed value, computed value, verdict."""
    table = result.table
    console.print(f"\n[bold]{table.identifier}[/bold]  {escape(table.caption)}")
    for note in table.notes:
        console.print(f"[dim]{escape(note)}[/dim]")
    grid = Grid("cell", box=None, pad_edge=False, header_style="bold")
    for heading in ("printed", "computed"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("reason", style="dim", ratio=1)
    for cell in result.cells:
        verdict = Text(f"{SYMBOLS[cell.verdict]} {cell.verdict}", style=STYLES[cell.verdict])
        grid.add_row(escape(cell.cell), escape(cell.printed), escape(written(cell)), verdict, escape(cell.reason))
    console.print(grid)


def print_overview(console: Console, report: Reproduction) -> None:
    """A line for each table, how many cells have each verdict."""
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", no_wrap=True)
    for heading in ("cells", *(SYMBOLS[verdict] for verdict in VERDICTS), "seconds"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for result in report.results:
        counts = [Text(str(count) if count else "", style=STYLES[verdict]) for verdict, count in result.counts.items()]
        grid.add_row(result.table.identifier, str(len(result.cells)), *counts, f"{result.seconds:.1f}")
    console.print()
    console.print(grid)
    console.print("[dim]" + ", ".join(f"{SYMBOLS[verdict]} {verdict}" for verdict in VERDICTS) + "[/dim]")
