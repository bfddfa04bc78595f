"""``daedal sweep``."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import daedal
from daedal.cli.arguments import End, Name, Plot, assignments, check_ending, check_figure
from daedal.cli.model import find_model, span_of
from daedal.cli.output import print_rows, refuse


def sweep(
    name: Name,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PARAMETER=FIRST:LAST:COUNT",
            help="A parameter and its values; several are combined. PARAMETER=VALUE keeps one as it is.",
        ),
    ] = None,
    on: Annotated[str, typer.Option(help="threads, processes or dask.")] = "threads",
    workers: Annotated[int | None, typer.Option(help="How many; the number of cores by default.")] = None,
    rtol: Annotated[float | None, typer.Option(help="Relative tolerance; that of the problem by default.")] = None,
    atol: Annotated[float | None, typer.Option(help="Absolute tolerance; that of the problem by default.")] = None,
    t_end: End = None,
    save: Annotated[Path | None, typer.Option(help="Write parameters and final states: .npz or .zarr.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Keep results in this folder, to go on after a stop.")] = None,
    plot: Plot = None,
) -> None:
    """Solve a problem of the library for many values of its parameters, on all cores.

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
    """Parameters that stay as they are, and the values of those that vary, in all combinations."""
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
                f"'{key}={value}' has not the form name=first:last:count", param_hint="--set"
            ) from None
        if count < 1:
            raise typer.BadParameter(f"'{key}={value}' has no values", param_hint="--set")
        axes[key] = np.linspace(first, last, count)
    if not axes:
        raise typer.BadParameter("nothing varies; give for example --set torque=0.02:0.04:1000", param_hint="--set")
    grids = np.meshgrid(*axes.values(), indexing="ij")
    return fixed, {key: grid.ravel() for key, grid in zip(axes, grids)}


def _solved(name: str, model: Any, fixed: dict, ranges: dict[str, np.ndarray], span, options) -> daedal.Ensemble:
    """The ensemble: with the numbers of one problem where its parameters are numbers, else with problems built anew."""
    count = len(next(iter(ranges.values())))
    rows = [{key: float(values[k]) for key, values in ranges.items()} for k in range(count)]
    models = (find_model(name, fixed | row) for row in rows)
    if getattr(model.problem, "params", None) is None or not _has_the_same_functions(name, model, fixed, rows[-1]):
        return daedal.solve_many(_Builder(name, fixed), span, None, params=ranges, **options)
    if isinstance(model.problem, daedal.HybridProblem):
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
    """Runs through modes, with the parameters and the starts of all members."""
    params = {key: np.array([one.problem.params[key] for one in models]) for key in model.problem.params}
    starts: Any = [one.initial for one in models]
    if len({mode for mode, _ in starts}) == 1:
        starts = starts[0][0], tuple(np.array(part) for part in zip(*(values for _, values in starts)))
    return daedal.solve_many(model.problem, span, starts, params=params, **options)


class _Builder:
    """Builds a problem of the library with given parameters; it pickles."""

    def __init__(self, name: str, fixed: dict[str, Any]):
        self._name, self._fixed = name, fixed

    def __call__(self, **parameters: Any) -> tuple[Any, Any]:
        model = daedal.library.get(self._name, **self._fixed, **parameters)
        return model.problem, model.initial


def _has_the_same_functions(name: str, model: Any, fixed: dict, row: dict[str, float]) -> bool:
    """Whether another value changes numbers only: the functions of the problem are the same objects."""
    other = find_model(name, fixed | row).problem
    if isinstance(other, daedal.Friction):
        return _is_same_friction(model.problem, other)
    if isinstance(other, daedal.HybridProblem):
        return False
    return _are_same(model.problem, other)


def _is_same_friction(one: daedal.Friction, other: daedal.Friction) -> bool:
    """Whether laws and systems are the same but for the numbers of the parameters."""
    first, second = dict(one.given), dict(other.given)
    systems = first.pop("system"), second.pop("system")
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
