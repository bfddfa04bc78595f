"""Commands that solve: ``daedal run``, ``daedal sweep`` and ``daedal demo``."""

from dataclasses import dataclass, replace
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
    RunName,
    assignments,
    check_ending,
    check_figure,
    find_model,
    is_own,
    literal,
    own_model,
    print_rows,
    quality,
    refuse,
    short,
    span_of,
)
from daedal.library.contents import unknowns


def run(
    name: RunName,
    method: Annotated[str | None, typer.Option(help="Method of integration.")] = None,
    rtol: Annotated[float | None, typer.Option(help="Relative tolerance; by default that of the problem.")] = None,
    atol: Annotated[float | None, typer.Option(help="Absolute tolerance; by default that of the problem.")] = None,
    t_end: End = None,
    t_span: Annotated[str | None, typer.Option(metavar="BEGIN,END", help="The interval.")] = None,
    initial: Annotated[
        str | None, typer.Option(metavar="VALUES", help="Initial values: y0, (q0, v0), or {'x': 1.0} by name.")
    ] = None,
    compiled: Annotated[bool, typer.Option("--compiled", help="Compile the equations first.")] = False,
    plot: Plot = None,
    save: Annotated[Path | None, typer.Option(help="Write the solution to this file (.npz or .csv).")] = None,
    animate: Annotated[
        bool, typer.Option("--animate", help="Write an interactive page with the motion of a mechanism, out/NAME.html.")
    ] = False,
    set_: Parameters = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="OPTION=VALUE", help="An option of daedal.solve; may be repeated.")
    ] = None,
    progress: Annotated[bool, typer.Option("--progress", help="Show a progress bar.")] = False,
) -> None:
    """Solve a library problem, or your own problem, and report cost and accuracy.

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
    """The solution, partial after a failure, and the error or None."""
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
    """Write a page with the motion, if the problem is a machine or the library has a drawing for it."""
    path, is_machine = Path("out") / f"{model.name}.html", hasattr(model.problem, "machine")
    try:
        return solution.animate(path, None if is_machine else model, title=model.title)
    except daedal.InvalidProblemError as error:
        refuse(f"--animate: {error}")


def _index(model) -> list[str]:
    """The index of a library problem in words; "unknown" for other problems."""
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


# --- ``daedal sweep`` -------------------------------------------------------------------------------------------------


def sweep(
    name: Name,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PARAMETER=FIRST:LAST:COUNT",
            help="A parameter and its values; several parameters are combined. PARAMETER=VALUE sets a fixed value.",
        ),
    ] = None,
    on: Annotated[str, typer.Option(help="threads, processes or dask.")] = "threads",
    workers: Annotated[int | None, typer.Option(help="Number of workers; by default the number of cores.")] = None,
    rtol: Annotated[float | None, typer.Option(help="Relative tolerance; by default that of the problem.")] = None,
    atol: Annotated[float | None, typer.Option(help="Absolute tolerance; by default that of the problem.")] = None,
    t_end: End = None,
    save: Annotated[
        Path | None, typer.Option(help="Write parameters and final states to this file (.npz or .zarr).")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Store results in this folder, so that an interrupted sweep can be continued.")
    ] = None,
    plot: Plot = None,
) -> None:
    """Solve a library problem for many values of its parameters, on all cores.

    Example: daedal sweep seven_body --set torque=0.02:0.04:1000 --on threads --save sweep.zarr
    """
    check_ending("--save", save, ("npz", "zarr"))
    check_figure(plot)
    fixed, ranges = _ranges(set_)
    model = find_model(name, fixed | {key: float(values[0]) for key, values in ranges.items()})
    given = {"rtol": rtol, "atol": atol}
    options = dict(model.options) | {key: value for key, value in given.items() if value is not None}
    options |= {"on": on, "workers": workers, "checkpoint": checkpoint, "progress": True}
    try:
        ensemble = _solved(name, model, fixed, ranges, span_of(model, t_end), options)
    except daedal.DaedalError as error:
        refuse(str(error))
    print_rows(ensemble.summary())
    for member in ensemble.failed[:3].tolist():
        print_rows([(f"member {member}", ensemble.messages[member])], wrap=True)
    try:
        if save is not None:
            ensemble.save(save)
            print_rows([("saved", str(save))])
        if plot is not None:
            ensemble.plot("scatter", title=model.title, save=plot, pyplot=False)
            print_rows([("plot", str(plot))])
    except (OSError, daedal.DaedalError) as error:
        refuse(f"cannot write: {error}")
    print(ensemble.message)
    if "Interrupted" in ensemble.message:
        raise typer.Exit(130)


def _ranges(texts: list[str] | None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Fixed parameters, and the ranges of the varied ones."""
    fixed, axes = {}, {}
    for key, value in assignments(texts, "--set").items():
        parts = value.split(":") if isinstance(value, str) else []
        if len(parts) != 3:
            fixed[key] = value
            continue
        try:
            first, last, count = float(parts[0]), float(parts[1]), int(parts[2])
        except ValueError:
            raise typer.BadParameter(
                f"'{key}={value}' does not have the form name=first:last:count", param_hint="--set"
            ) from None
        if count < 1:
            raise typer.BadParameter(f"'{key}={value}' has no values", param_hint="--set")
        axes[key] = np.linspace(first, last, count)
    if not axes:
        raise typer.BadParameter(
            "no parameter varies; give one a range, for example --set torque=0.02:0.04:1000", param_hint="--set"
        )
    grids = np.meshgrid(*axes.values(), indexing="ij")
    return fixed, {key: grid.ravel() for key, grid in zip(axes, grids)}


def _solved(name: str, model: Any, fixed: dict, ranges: dict[str, np.ndarray], span, options) -> daedal.Ensemble:
    """The ensemble: one problem with varied parameters if these are numbers only, otherwise a problem per member."""
    count = len(next(iter(ranges.values())))
    rows = [{key: float(values[k]) for key, values in ranges.items()} for k in range(count)]
    models = (find_model(name, fixed | row) for row in rows)
    if getattr(model.problem, "params", None) is None or not _has_the_same_functions(name, model, fixed, rows[-1]):
        return daedal.solve_many(_Builder(name, fixed), span, None, params=ranges, **options)
    if isinstance(model.problem, daedal.hybrid.HybridProblem):
        ensemble = _through_modes(model, list(models), span, options)
        ensemble.varied = ranges
        return ensemble
    starts, params = zip(*[(other.initial, np.asarray(other.problem.params, dtype=float)) for other in models])
    parts = [
        None if any(start[k] is None for start in starts) else np.array([start[k] for start in starts], dtype=float)
        for k in range(len(starts[0]))
    ]
    ensemble = daedal.solve_many(model.problem, span, tuple(parts), params=np.array(params), **options)
    ensemble.varied = ranges
    return ensemble


def _through_modes(model: Any, models: list[Any], span, options) -> daedal.Ensemble:
    """Solve models with modes, with the parameters and starts of all members."""
    params = {key: np.array([one.problem.params[key] for one in models]) for key in model.problem.params}
    starts: Any = [one.initial for one in models]
    if len({mode for mode, _ in starts}) == 1:
        starts = starts[0][0], tuple(np.array(part) for part in zip(*(values for _, values in starts)))
    return daedal.solve_many(model.problem, span, starts, params=params, **options)


class _Builder:
    """Picklable function that creates a library problem with given parameters."""

    def __init__(self, name: str, fixed: dict[str, Any]):
        self._name, self._fixed = name, fixed

    def __call__(self, **parameters: Any) -> tuple[Any, Any]:
        model = daedal.library.get(self._name, **self._fixed, **parameters)
        return model.problem, model.initial


def _has_the_same_functions(name: str, model: Any, fixed: dict, row: dict[str, float]) -> bool:
    """Whether varied parameters change numbers only, so that the functions of the problem are identical objects."""
    other = find_model(name, fixed | row).problem
    if isinstance(other, daedal.hybrid.Friction):
        return _is_same_friction(model.problem, other)
    if isinstance(other, daedal.hybrid.HybridProblem):
        return False
    return _are_same(model.problem, other)


def _is_same_friction(one: daedal.hybrid.Friction, other: daedal.hybrid.Friction) -> bool:
    """Whether two friction problems have equal laws and systems, except for the values of parameters."""
    first, second = dict(one.given), dict(other.given)
    systems = first.pop("problem"), second.pop("problem")
    same = [x is second[key] or (not callable(x) and np.array_equal(x, second[key])) for key, x in first.items()]
    return all(same) and isinstance(systems[0].params, dict) and _are_same(*systems)


def _are_same(problem: Any, other: Any) -> bool:
    """Whether two problems of a class have the same functions and constants."""
    fields = type(problem).__dataclass_fields__
    functions = [key for key in fields if callable(getattr(problem, key, None))]
    constants = [key for key in fields if isinstance(getattr(problem, key, None), np.ndarray) and key != "params"]
    return all(getattr(problem, key) is getattr(other, key) for key in functions) and all(
        np.array_equal(getattr(problem, key), getattr(other, key)) for key in constants
    )


# --- ``daedal demo`` --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StopRun:
    """A problem of the tour, its duration, and the variables to plot."""

    name: str
    shows: str
    t_end: float | None = None


_TOUR = (
    _StopRun(
        "robertson",
        "Three species, rate constants that differ by nine orders of magnitude, eleven decades of time. The mass "
        "balance is an algebraic equation.",
    ),
    _StopRun(
        "transistor_amplifier",
        "Eight node voltages whose derivatives occur only in five combinations: a signal of 0.1 V at 100 Hz is "
        "amplified and distorted between the input U1 and the output U8.",
    ),
    _StopRun(
        "pendulum",
        "A point mass on a rod in Cartesian coordinates, with the rod force lambda as unknown. In the stabilised "
        "form of index 2 the length of the rod is preserved.",
        t_end=20.0,
    ),
    _StopRun(
        "crank_slider",
        "Masses, forces and five constraints of index 3, as written on paper. The results are positions, "
        "velocities and joint forces that satisfy the constraints to round-off.",
    ),
)


def demo(out: Annotated[Path, typer.Option(help="Folder for the plots.")] = Path("out")) -> None:
    """Solve four problems, compare them with their references and plot them."""
    for stop in (_TOUR[0], _TOUR[-1]):  # so that the times below exclude loading and compilation
        warm_up = find_model(stop.name, {})
        solve_model(warm_up, None, False, dict(warm_up.options))
    for number, stop in enumerate(_TOUR, 1):
        model = find_model(stop.name, {})
        print(f"{number}. {model.title} (index {model.index})", flush=True)
        solution, failure = solve_model(model, stop.t_end, False, dict(model.options))
        if failure is not None:
            refuse(str(failure))
        rows = [("shows", stop.shows), *_cost(solution), *quality(model, solution)]
        if "constraints" in model.extra:
            length = np.max(np.abs(model.extra["constraints"](solution.y)[0]))
            rows.append(("constraint", f"z1² + z2² = 1 holds to {length:.1e} over the whole run"))
        path = out / f"{stop.name}.png"
        try:
            solution.plot(title=model.title, save=path, pyplot=False, **model.plot)
        except OSError as error:
            refuse(f"cannot write: {error}")
        print_rows([*rows, ("plot", str(path))], wrap=True)
        print()
    print("More: 'daedal list' names all problems, 'daedal run NAME' solves one.")


def _cost(solution: daedal.Solution) -> list[tuple[str, str]]:
    stats = solution.stats
    rows = [("cost", f"{stats.steps} steps, {stats.residual_evaluations} residuals, {solution.cost_in_words}")]
    if solution.history is not None:
        h = np.abs(solution.history.h)
        rows.append(("step size", f"{h.min():.1e} to {h.max():.1e}, order up to {solution.history.order.max()}"))
    return rows
