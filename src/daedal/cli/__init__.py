"""The command ``daedal``: try the problems of the library, check an installation. One file for each command.

Exit codes: 0 success, 1 a run or a check failed, 2 wrong usage, 130 interrupted.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

import daedal
from daedal.cli import advise, analyse, compare, demo, doctor, gallery, list, reproduce, run, show, sweep

app = typer.Typer(
    help="Differential-algebraic equations: solve the problems of the library, check the installation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list")(list.list_problems)
app.command()(show.show)
app.command()(run.run)
app.command()(sweep.sweep)
app.command()(advise.advise)
app.command()(compare.compare)
app.command()(analyse.analyse)
app.command()(reproduce.reproduce)
app.command()(demo.demo)
app.command()(gallery.gallery)
app.command()(doctor.doctor)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with `arguments`, those of the process by default, and exit."""
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
    """Options that stand before the command."""
