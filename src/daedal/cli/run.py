"""``daedal run``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import daedal
from daedal.cli.accuracy import quality
from daedal.cli.arguments import End, Parameters, Plot, RunName, assignments, check_ending, check_figure, literal
from daedal.cli.model import find_model, short, span_of
from daedal.cli.output import print_rows, refuse
from daedal.cli.own_model import is_own, own_model
from daedal.library.contents import unknowns


def run(
    name: RunName,
    method: Annotated[str | None, typer.Option(help="Method of integration.")] = None,
    rtol: Annotated[float | None, typer.Option(help="Relative tolerance; that of the problem by default.")] = None,
    atol: Annotated[float | None, typer.Option(help="Absolute tolerance; that of the problem by default.")] = None,
    t_end: End = None,
    t_span: Annotated[str | None, typer.Option(metavar="BEGIN,END", help="The interval.")] = None,
    initial: Annotated[
        str | None, typer.Option(metavar="VALUES", help="Initial values: y0, (q0, v0), or {'x': 1.0} by name.")
    ] = None,
    compiled: Annotated[bool, typer.Option("--compiled", help="Compile the equations first.")] = False,
    plot: Plot = None,
    save: Annotated[Path | None, typer.Option(help="Write the solution to this file (.npz or .csv).")] = None,
    animate: Annotated[
        bool, typer.Option("--animate", help="Write the motion of a mechanism to out/NAME.html, a page to play.")
    ] = False,
    set_: Parameters = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="OPTION=VALUE", help="An option of daedal.solve; repeatable.")
    ] = None,
    progress: Annotated[bool, typer.Option("--progress", help="Show a progress bar.")] = False,
) -> None:
    """Solve a problem of the library, or one of your own, and say what it cost and how accurate it is.

    Examples: daedal run robertson --rtol 1e-8 --set t1=4e10 --plot robertson.png;
    daedal run my_model.py:pendulum --t-span 0,10 --initial "[1.0, 0.0]" --set g=1.62 --save moon.npz
    """
    check_ending("--save", save, ("npz", "csv"))
    check_figure(plot)
    span, start = literal(t_span, "--t-span"), literal(initial, "--initial")
    if is_own(name):
        model = own_model(name, assignments(set_, "--set"), span or (t_end and (0.0, t_end)), start)
    else:
        found = find_model(name, assignments(set_, "--set"))
        model = replace(found, t_span=span or found.t_span, initial=found.initial if start is None else start)
    given = {"method": method, "rtol": rtol, "atol": atol}
    options = dict(model.options) | {key: value for key, value in given.items() if value is not None}
    options |= assignments(option, "--option")
    print(", ".join([f"{model.title}: {unknowns(model.problem)} unknowns", *_index(model)]), flush=True)
    solution, failure = solve_model(model, t_end, compiled, options | {"progress": progress})
    print_rows([("tolerances", _tolerances(options)), *solution.summary(), *quality(model, solution)])
    try:
        if plot is not None and solution.t.size:
            solution.plot(title=model.title, save=plot, pyplot=False, **model.plot)
            print_rows([("plot", str(plot))])
        if animate and solution.t.size:
            print_rows([("animation", str(_animated(model, solution)))])
        if save is not None:
            _save(solution, save)
            print_rows([("saved", str(save))])
    except OSError as error:
        refuse("\n".join(text for text in (failure and str(failure), f"cannot write: {error}") if text))
    if failure is not None:
        refuse(str(failure))
    print(solution.message)
    if solution.status == "interrupted":
        raise typer.Exit(130)


def solve_model(model, t_end: float | None, compiled: bool, options: dict[str, Any]):
    """The solution, or the part before a failure together with the failure."""
    try:
        problem = model.problem.compiled() if compiled else model.problem
        return daedal.solve(problem, span_of(model, t_end), model.initial, **options), None
    except daedal.IntegrationError as failure:
        return failure.solution, failure
    except KeyboardInterrupt as interrupt:
        if getattr(interrupt, "solution", None) is None:
            raise
        return interrupt.solution, None  # type: ignore[attr-defined]
    except daedal.DaedalError as error:
        refuse(str(error))


def _animated(model, solution) -> Path:
    """The page with the motion; machines of bodies and joints show themselves, others need a drawing of the library."""
    path, is_machine = Path("out") / f"{model.name}.html", hasattr(model.problem, "machine")
    try:
        return solution.animate(path, None if is_machine else model, title=model.title)
    except daedal.InvalidProblemError as error:
        refuse(f"--animate: {error}")


def _index(model) -> list[str]:
    """The index of a problem of the library in words; that of one's own is not known."""
    return [model.index_in_words] if model.source or model.index is not None else []


def _tolerances(options: dict[str, Any]) -> str:
    if options.get("fixed_step") is not None:
        return f"none: constant steps of {options['fixed_step']:g}"
    return ", ".join(f"{key} {short(options[key])}" for key in ("rtol", "atol") if key in options) or "default"


def _save(solution: Any, path: Path) -> None:
    if path.suffix.lower() == ".npz":
        solution.save(path)
    else:
        solution.to_csv(path, solution.names)
