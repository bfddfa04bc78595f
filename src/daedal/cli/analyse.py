"""``daedal analyse``."""

import runpy
from pathlib import Path
from typing import Annotated, Any

import typer

import daedal
from daedal.cli.arguments import Plot, check_figure
from daedal.cli.output import print_rows, refuse


def analyse(
    method: Annotated[
        str,
        typer.Argument(
            help="Name of a method, such as radau5, gauss2, sdirk4 or bdf3, or a Python file, FILE.py or FILE.py:NAME, "
            "with a tableau or a multistep formula.",
            show_default=False,
        ),
    ],
    plot: Plot = None,
) -> None:
    """Say what follows from the coefficients of a method: its orders on DAEs of index 0 to 3, and its stability.

    Example: daedal analyse radau5 --plot radau5.png
    """
    check_figure(plot)
    path, _, name = method.partition(":")
    try:
        analysis = daedal.analyse_method(_from_file(Path(path), name) if path.endswith(".py") else method)
    except daedal.DaedalError as error:
        refuse(str(error))
    print(analysis)
    if plot is not None:
        try:
            analysis.plot(save=plot, pyplot=False)
        except OSError as error:
            refuse(f"cannot write: {error}")
        print_rows([("plot", str(plot))])


def _from_file(path: Path, name: str) -> Any:
    """The coefficients that a Python file defines: those of a name, or the only ones there are."""
    if not path.is_file():
        refuse(f"there is no file '{path}'", code=2)
    found = runpy.run_path(str(path))
    if name:
        if name not in found:
            refuse(f"'{path}' does not define '{name}'")
        return found[name]
    kinds = (daedal.RungeKuttaTableau, daedal.MultistepFormula)
    listed = {key: value for key, value in found.items() if isinstance(value, kinds)}
    if len(listed) != 1:
        known = f"defines {', '.join(listed)}" if listed else "defines none"
        refuse(
            f"'{path}' must define one RungeKuttaTableau or MultistepFormula, or name one: '{path}:NAME'; it {known}"
        )
    return next(iter(listed.values()))
