"""The command ``daedal``, which solves problems of the library and checks the installation.

Exit codes: 0 success, 1 a run or a check failed, 2 wrong usage, 130 interrupted.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

import daedal
from daedal.cli import judging, running, showing

app = typer.Typer(
    help="Solve differential-algebraic equations, analyse problems and methods, check the installation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list")(showing.list_problems)
app.command()(showing.show)
app.command()(running.run)
app.command()(running.sweep)
app.command()(judging.advise)
app.command()(judging.compare)
app.command()(judging.analyse)
app.command()(showing.reproduce)
app.command()(running.demo)
app.command()(showing.studio)
app.command()(showing.gallery)
app.command()(showing.doctor)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with `arguments`, by default those of the process, and exit."""
    app(arguments if arguments is None else [*arguments], prog_name="daedal")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"daedal {daedal.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options before the command."""
