"""``daedal reproduce``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import daedal
from daedal.cli.output import refuse

if TYPE_CHECKING:
    from daedal.reproduce import PrintedTable, Reproduction, Result


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(help="Tables, such as stability/4.4, or documents; all by default.", show_default=False),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the tables and do nothing else.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the cells as JSON, or write them to a FILE.json that is named.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the web page.")] = Path("out/reproduction"),
    page: Annotated[bool, typer.Option("--page/--no-page", help="Whether to write the web page.")] = True,
    summary: Annotated[bool, typer.Option("--summary", help="Print one line for each table, not every cell.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table of the documentation, with a line for each document.")
    ] = False,
) -> None:
    """Compute the printed tables of the sources again and compare them cell by cell.

    Example: daedal reproduce stability/4.4 half-explicit

    The exit code is 1 if a cell is not reproduced and the data files do not say why.
    """
    from rich.console import Console

    from daedal.reproduce import find
    from daedal.reproduce.terminal import print_list

    identifiers, files = _split(tables or [], json)
    try:
        wanted = find(identifiers)
    except daedal.InvalidProblemError as error:
        refuse(str(error), code=2)
    if list_:
        print_list(Console(highlight=False), wanted)
        return
    report = _run(wanted, quiet=(json and not files) or markdown, summary=summary)
    if json and not files:
        print(report.to_json())
    if markdown:
        print(f"{report.summary()}\n\n{report.markdown()}")
    try:
        for file in files:
            report.write_json(file)
        written = [str(file) for file in files]
        if page:
            from daedal.reproduce.page import write_page

            written.append(str(write_page(report, out)))
    except OSError as error:
        refuse(f"cannot write: {error}")
    for path in written:
        print(f"written: {path}", file=sys.stderr if json and not files else sys.stdout)
    if not report.holds:
        raise typer.Exit(1)


def _split(arguments: list[str], json: bool) -> tuple[list[str], list[Path]]:
    """Identifiers, and the files that ``--json`` is to write."""
    files = [text for text in arguments if json and text.endswith(".json")]
    return [text for text in arguments if text not in files], [Path(file) for file in files]


def _run(tables: list[PrintedTable], quiet: bool, summary: bool) -> Reproduction:
    """Every table as soon as it is computed, then the summary."""
    from rich.console import Console

    from daedal.reproduce import run
    from daedal.reproduce.terminal import print_cells, print_overview

    if quiet:
        return run([table.identifier for table in tables])
    console = Console(highlight=False)

    def done(result: Result) -> None:
        if not summary:
            print_cells(console, result)

    report = run([table.identifier for table in tables], done=done)
    if summary or len(tables) > 1:
        print_overview(console, report)
    console.print(f"\n[bold]{report.summary()}[/bold]", soft_wrap=True)
    return report
