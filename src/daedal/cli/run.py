"""``daedal run``."""

import csv
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import daedal
from daedal.cli.accuracy import quality
from daedal.cli.arguments import End, Name, Parameters, Plot, assignments, check_ending, check_figure
from daedal.cli.model import find_model, short, span_of, unknowns
from daedal.cli.output import print_rows, refuse


def run(
    name: Name,
    method: Annotated[str | None, typer.Option(help="Method of integration.")] = None,
    rtol: Annotated[float | None, typer.Option(help="Relative tolerance; that of the problem by default.")] = None,
    atol: Annotated[float | None, typer.Option(help="Absolute tolerance; that of the problem by default.")] = None,
    t_end: End = None,
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
    """Solve a problem of the library and say what it cost and how accurate it is.

    Example: daedal run robertson --rtol 1e-8 --set t1=4e10 --plot robertson.png
    """
    check_ending("--save", save, ("npz", "csv"))
    check_figure(plot)
    model = find_model(name, assignments(set_, "--set"))
    given = {"method": method, "rtol": rtol, "atol": atol}
    options = dict(model.options) | {key: value for key, value in given.items() if value is not None}
    options |= assignments(option, "--option")
    print(f"{model.title}: {unknowns(model.problem)} unknowns, {model.index_in_words}", flush=True)
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
    except daedal.DaedalError as error:
        refuse(str(error))


def _animated(model, solution) -> Path:
    """The page with the motion; machines of bodies and joints show themselves, others need a drawing of the library."""
    path, is_machine = Path("out") / f"{model.name}.html", hasattr(model.problem, "machine")
    try:
        return solution.animate(path, None if is_machine else model, title=model.title)
    except daedal.InvalidProblemError as error:
        refuse(f"--animate: {error}")


def _tolerances(options: dict[str, Any]) -> str:
    if options.get("fixed_step") is not None:
        return f"none: constant steps of {options['fixed_step']:g}"
    return ", ".join(f"{key} {short(options[key])}" for key in ("rtol", "atol") if key in options) or "default"


def _save(solution: daedal.Solution, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".npz":
        np.savez(path, t=solution.t, y=solution.y, yp=solution.yp, names=np.array(solution.names))
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["t", *solution.names])
        writer.writerows(np.column_stack([solution.t, solution.y.T]).tolist())
