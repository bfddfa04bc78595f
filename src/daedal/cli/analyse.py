"""``daedal analyse``."""

import runpy
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

import daedal
from daedal.cli.arguments import Parameters, Plot, assignments, check_ending, check_figure
from daedal.cli.model import find_model
from daedal.cli.output import print_rows, refuse


def analyse(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a problem, as in 'daedal list'; or of a method, such as radau5, gauss2, sdirk4 or bdf3; or a "
            "Python file, FILE.py or FILE.py:NAME, with a tableau or a multistep formula.",
            show_default=False,
        ),
    ],
    plot: Plot = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Of a problem: write the page (.txt, .html), the block-triangular form (.svg) or its graph (.dot)."
        ),
    ] = None,
    settings: Parameters = None,
) -> None:
    """Say what can be known of a problem before it is solved, or of a method from its coefficients.

    Of a problem: structure, index by several notions, hidden constraints, degrees of freedom. Of a method: orders on
    DAEs of index 0 to 3, stability.

    Examples: daedal analyse pendulum --save structure.svg; daedal analyse radau5 --plot radau5.png
    """
    check_figure(plot)
    check_ending("--save", save, ("txt", "html", "svg", "dot"))
    if name in daedal.library.names():
        if plot is not None:
            raise typer.BadParameter("a stability region is that of a method; use --save", param_hint="--plot")
        _analyse_problem(name, assignments(settings, "--set"), save)
        return
    if save is not None or settings:
        option = "--set" if settings else "--save"
        raise typer.BadParameter(f"is for problems of the library, and '{name}' is none", param_hint=option)
    _analyse_method(name, plot)


def _analyse_problem(name: str, parameters: dict[str, Any], save: Path | None) -> None:
    model = find_model(name, parameters)
    try:
        analysis = daedal.analyse(model.problem, at=(model.t_span[0], model.initial))
    except daedal.DaedalError as error:
        refuse(str(error))
    print(analysis)
    if save is not None:
        try:
            analysis.save(save)
        except OSError as error:
            refuse(f"cannot write: {error}")
        print_rows([("written", str(save))])


def _analyse_method(method: str, plot: Path | None) -> None:
    path, _, name = method.partition(":")
    try:
        analysis = daedal.analyse_method(_from_file(Path(path), name) if path.endswith(".py") else method)
    except daedal.DaedalError as error:
        near = get_close_matches(method, daedal.library.names(), 1)
        refuse(f"{error}{f'; or the problem {near[0]!r}' if near else ''}")
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
