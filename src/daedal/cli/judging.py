"""Commands that analyse problems: ``daedal analyse``, ``daedal advise`` and ``daedal compare``."""

import runpy
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import daedal
from daedal.cli.common import (
    End,
    Name,
    Parameters,
    Plot,
    assignments,
    check_ending,
    check_figure,
    find_model,
    print_rows,
    refuse,
    span_of,
)


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
            help="For a problem: write the page (.txt, .html), the block-triangular form (.svg) or its graph (.dot)."
        ),
    ] = None,
    settings: Parameters = None,
) -> None:
    """Analyse a problem before solving it, or a method from its coefficients.

    For a problem: structure, index by several definitions, hidden constraints and degrees of freedom. For a method:
    stability, and orders on DAEs of index 0 to 3.

    Examples: daedal analyse pendulum --save structure.svg; daedal analyse radau5 --plot radau5.png
    """
    check_figure(plot)
    check_ending("--save", save, ("txt", "html", "svg", "dot"))
    if name in daedal.library.names():
        if plot is not None:
            raise typer.BadParameter(
                "--plot draws the stability region of a method; use --save for problems", param_hint="--plot"
            )
        _analyse_problem(name, assignments(settings, "--set"), save)
        return
    if save is not None or settings:
        option = "--set" if settings else "--save"
        raise typer.BadParameter(f"requires a library problem, but '{name}' is not one", param_hint=option)
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
        analysis = daedal.analysis.analyse_method(_from_file(Path(path), name) if path.endswith(".py") else method)
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
    """The coefficients `name` defined in a Python file; without a name, its only coefficients."""
    if not path.is_file():
        refuse(f"there is no file '{path}'", code=2)
    found = runpy.run_path(str(path))
    if name:
        if name not in found:
            refuse(f"'{path}' does not define '{name}'")
        return found[name]
    kinds = (daedal.methods.RungeKuttaTableau, daedal.methods.MultistepFormula)
    listed = {key: value for key, value in found.items() if isinstance(value, kinds)}
    if len(listed) != 1:
        known = f"it defines {', '.join(listed)}; specify one, '{path}:NAME'" if listed else "it defines none"
        refuse(f"'{path}' must define exactly one RungeKuttaTableau or MultistepFormula; {known}")
    return next(iter(listed.values()))


# --- ``daedal advise`` ------------------------------------------------------------------------------------------------


def advise(
    name: Name,
    rtol: Annotated[float, typer.Option(help="Relative tolerance of the planned run.")] = 1e-6,
    t_end: End = None,
    set_: Parameters = None,
) -> None:
    """Recommend a formulation and a method for a mechanical problem of the library, with reasons.

    Example: daedal advise stability_example3 --set nu=1000
    """
    model = constrained_model(name, set_)
    try:
        print(daedal.advise(model.problem, span_of(model, t_end), model.initial, rtol=rtol))
    except daedal.DaedalError as error:
        refuse(str(error))


def constrained_model(name: str, set_: list[str] | None) -> daedal.library.Model:
    """The library model `name`; exits with an error if it does not have several formulations."""
    model = find_model(name, assignments(set_, "--set"))
    kinds = (daedal.MechanicalSystem, daedal.HessenbergDAE)
    if not isinstance(model.problem, kinds):
        others = [other for other in daedal.library.names() if isinstance(find_model(other, {}).problem, kinds)]
        refuse(f"'{name}' has no choice of formulations; the mechanical problems are {', '.join(others)}")
    return model


# --- ``daedal compare`` -----------------------------------------------------------------------------------------------


def compare(
    name: Name,
    formulations: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Formulations, separated by commas; a selection by default.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Methods, separated by commas; dopri5 and dassl by default.")
    ] = None,
    rtol: Annotated[
        str, typer.Option(metavar="R,...", help="Relative tolerance, or several, separated by commas.")
    ] = "1e-6",
    fixed_step: Annotated[float | None, typer.Option(help="Use constant steps of this size instead.")] = None,
    t_end: End = None,
    set_: Parameters = None,
    json: Annotated[Path | None, typer.Option(help="Write the numbers to this file (.json).")] = None,
    plot: Plot = None,
) -> None:
    """Solve a mechanical problem of the library with many formulations and methods; print errors, drift and cost.

    Example: daedal compare planar_pendulum --formulations projection,ggl --rtol 1e-4,1e-6,1e-8 --plot work.png
    """
    check_ending("--json", json, ("json",))
    check_figure(plot)
    model = constrained_model(name, set_)
    span = span_of(model, t_end)
    options: dict[str, Any] = {"rtol": _numbers(rtol, "--rtol"), "fixed_step": fixed_step, "title": model.title}
    for option, text in (("formulations", formulations), ("methods", methods)):
        if text is not None:
            options[option] = [part.strip() for part in text.split(",") if part.strip()]
    try:
        found = daedal.compare(model.problem, span, model.initial, reference=_known_solution(model, span[1]), **options)
    except daedal.DaedalError as error:
        refuse(str(error))
    print(found)
    try:
        if json is not None:
            found.to_json(json)
            print_rows([("numbers", str(json))])
        if plot is not None:
            found.plot(save=plot, pyplot=False)
            print_rows([("plot", str(plot))])
    except OSError as error:
        refuse(f"cannot write: {error}")


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a list of numbers", param_hint=option) from None


def _known_solution(model: daedal.library.Model, t_end: float) -> Any:
    """The exact solution of a model, or the reference at the end of the run; None if neither is known."""
    extra = model.extra
    if "exact" in extra:
        multipliers = extra.get("exact_lam", lambda t: ())
        return lambda t: np.concatenate([extra["exact"](t), multipliers(t)])
    if model.reference is None or model.reference.t != t_end:
        return None
    return daedal.library.Reference(t_end, np.concatenate([model.reference.y, extra.get("lam", ())]), "")
