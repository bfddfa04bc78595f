"""The command ``daedal``: try the problems of the library, check an installation.

Exit codes: 0 success, 1 a run or a check failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import ast
import csv
import inspect
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import typer

import daedal
from daedal.reproduce.cli import reproduce
from daedal.viz.command import gallery

app = typer.Typer(
    help="Differential-algebraic equations: solve the problems of the library, check the installation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(help="Name of a problem, as in 'daedal list'.", show_default=False)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with `arguments`, those of the process by default, and exit."""
    app(None if arguments is None else list(arguments), prog_name="daedal")


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


# --- list, show -------------------------------------------------------------------------------------------------------


@app.command("list")
def list_problems() -> None:
    """List the problems of the library."""
    from rich.console import Console
    from rich.table import Table

    table = Table("name", box=None, pad_edge=False, header_style="bold")
    table.add_column("index", justify="right")
    table.add_column("unknowns", justify="right")
    table.add_column("title")
    for name in daedal.library.names():
        # Uncompiled, so that a list does not have to load Numba
        uncompiled = {"compiled": False} if "compiled" in _parameters(name) else {}
        model = daedal.library.get(name, **uncompiled)
        table.add_row(name, str(model.index), _unknowns(model.problem), model.title)
    Console(highlight=False).print(table)


@app.command()
def show(name: Name) -> None:
    """Describe a problem: what it models, its parameters, its source."""
    model = _get(name, {})
    t0, t1 = model.t_span
    reference = "none"
    if model.reference is not None:
        reference = f"t = {model.reference.t:g}, {model.reference.source}"
    parameters = ", ".join(f"{key}={value.default!r}" for key, value in _parameters(name).items())
    print(f"{model.title}\n")
    _print_rows(
        [
            ("about", model.description),
            ("unknowns", f"{_unknowns(model.problem)}, index {model.index}"),
            ("interval", f"{t0:g} to {t1:g}"),
            ("parameters", parameters or "none"),
            ("options", ", ".join(f"{key}={_short(value)}" for key, value in model.options.items()) or "none"),
            ("reference", reference),
            ("source", model.source),
        ],
        wrap=True,
    )


def _unknowns(problem: Any) -> str:
    """How many there are; the range of them if a problem with modes has different numbers."""
    if not isinstance(problem, daedal.HybridProblem):
        return str(problem.n)
    sizes = {mode.problem.n for mode in problem.modes.values()}
    return str(min(sizes)) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"


def _parameters(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(daedal.library, name)).parameters)


def _get(name: str, parameters: dict[str, Any]) -> daedal.library.Model:
    try:
        return daedal.library.get(name, **parameters)
    except daedal.DaedalError as error:
        _refuse(str(error))
    except (TypeError, ValueError) as error:
        _refuse(f"the parameters {parameters} do not suit '{name}': {error}")


# --- run --------------------------------------------------------------------------------------------------------------


@app.command()
def run(
    name: Name,
    method: Annotated[str | None, typer.Option(help="Method of integration.")] = None,
    rtol: Annotated[float | None, typer.Option(help="Relative tolerance; that of the problem by default.")] = None,
    atol: Annotated[float | None, typer.Option(help="Absolute tolerance; that of the problem by default.")] = None,
    t_end: Annotated[float | None, typer.Option(help="End of the interval; that of the source by default.")] = None,
    compiled: Annotated[bool, typer.Option("--compiled", help="Compile the equations first.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a plot to this file (.png, .pdf, .svg).")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the solution to this file (.npz or .csv).")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PARAMETER=VALUE", help="A parameter of the problem; repeatable."),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="OPTION=VALUE", help="An option of daedal.solve; repeatable.")
    ] = None,
    progress: Annotated[bool, typer.Option("--progress", help="Show a progress bar.")] = False,
) -> None:
    """Solve a problem of the library and say what it cost and how accurate it is.

    Example: daedal run robertson --rtol 1e-8 --set t1=4e10 --plot robertson.png
    """
    _check_ending("--save", save, ("npz", "csv"))
    if plot is not None:
        _check_ending("--plot", plot, _figure_formats())
    model = _get(name, _assignments(set_, "--set"))
    given = {"method": method, "rtol": rtol, "atol": atol}
    options = dict(model.options) | {key: value for key, value in given.items() if value is not None}
    options |= _assignments(option, "--option")
    print(f"{model.title}: {_unknowns(model.problem)} unknowns, index {model.index}", flush=True)
    solution, failure = _solve(model, t_end, compiled, options | {"progress": progress})
    _print_rows([("tolerances", _tolerances(options)), *solution.summary(), *_quality(model, solution)])
    try:
        if plot is not None and solution.t.size:
            solution.plot(title=model.title, save=plot, pyplot=False, **model.plot)
            _print_rows([("plot", str(plot))])
        if save is not None:
            _save(solution, save)
            _print_rows([("saved", str(save))])
    except OSError as error:
        _refuse("\n".join(text for text in (failure and str(failure), f"cannot write: {error}") if text))
    if failure is not None:
        _refuse(str(failure))
    print(solution.message)
    if solution.status == "interrupted":
        raise typer.Exit(130)


def _solve(model, t_end: float | None, compiled: bool, options: dict[str, Any]):
    """The solution, or the part before a failure together with the failure."""
    span = model.t_span if t_end is None else (model.t_span[0], t_end)
    try:
        problem = model.problem.compiled() if compiled else model.problem
        return daedal.solve(problem, span, model.initial, **options), None
    except daedal.IntegrationError as failure:
        return failure.solution, failure
    except daedal.DaedalError as error:
        _refuse(str(error))


def _assignments(texts: Iterable[str] | None, option: str) -> dict[str, Any]:
    """``["a=1", "b=text"]`` as a dictionary; a value is a Python literal or else a text."""
    values: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"'{text}' has not the form name=value", param_hint=option)
        try:
            values[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            values[name.strip()] = value.strip()
    return values


def _check_ending(option: str, path: Path | None, endings: Sequence[str]) -> None:
    if path is not None and path.suffix.lower().removeprefix(".") not in endings:
        known = ", ".join(f".{ending}" for ending in endings)
        raise typer.BadParameter(f"'{path}' must end in one of {known}", param_hint=option)


def _figure_formats() -> list[str]:
    from matplotlib.backend_bases import FigureCanvasBase

    return sorted(FigureCanvasBase.get_supported_filetypes())


def _tolerances(options: dict[str, Any]) -> str:
    if options.get("fixed_step") is not None:
        return f"none: constant steps of {options['fixed_step']:g}"
    return ", ".join(f"{key} {_short(options[key])}" for key in ("rtol", "atol") if key in options) or "default"


def _short(value: Any) -> str:
    """A value on one line; an array by its smallest and largest entry."""
    if isinstance(value, np.ndarray):
        return f"{value.min():g} to {value.max():g}" if value.min() < value.max() else f"{value.flat[0]:g}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _quality(model: daedal.library.Model, solution: daedal.Solution) -> list[tuple[str, str]]:
    """Rows of the summary that say how good the solution is."""
    rows = []
    if model.reference is not None:
        found = _largest_error(model.reference, solution)
        place = f"the reference at t = {model.reference.t:g}"
        rows.append(("error", f"not known: {place} was not passed" if found is None else f"{found} against {place}"))
    if solution.drift:
        rows.append(("drift", ", ".join(f"{key} {value:.1e}" for key, value in solution.drift.items())))
    return rows


@dataclass(frozen=True)
class _Error:
    """The largest error of a solution, the variable that has it, and whether it is relative."""

    size: float
    name: str
    relative: bool

    def __str__(self) -> str:
        return f"{self.size:.1e} ({'relative' if self.relative else 'absolute'}, largest in {self.name})"


def _largest_error(reference: daedal.library.Reference, solution: daedal.Solution) -> _Error | None:
    """The error at the time of the reference; None if the solution does not reach it."""
    if solution.t.size and np.isclose(solution.t[-1], reference.t, rtol=1e-12, atol=0.0):
        values = solution.y[:, -1]
    elif solution.dense is not None and solution.dense.interval[0] <= reference.t <= solution.dense.interval[1]:
        values = solution(reference.t)
    else:
        return None
    errors = reference.error(values)
    worst = int(np.nanargmax(errors))
    return _Error(float(errors[worst]), solution.names[worst], bool(reference.y[worst] != 0.0))


def _save(solution: daedal.Solution, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".npz":
        np.savez(path, t=solution.t, y=solution.y, yp=solution.yp, names=np.array(solution.names))
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["t", *solution.names])
        writer.writerows(np.column_stack([solution.t, solution.y.T]).tolist())


# --- advise, compare --------------------------------------------------------------------------------------------------

Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PARAMETER=VALUE", help="A parameter of the problem; repeatable."),
]
End = Annotated[float | None, typer.Option(help="End of the interval; that of the source by default.")]


@app.command()
def advise(
    name: Name,
    rtol: Annotated[float, typer.Option(help="Relative tolerance of the run that is planned.")] = 1e-6,
    t_end: End = None,
    set_: Parameters = None,
) -> None:
    """Say which formulation and method suit a mechanical problem of the library, and why.

    Example: daedal advise stability_example3 --set nu=1000
    """
    model = _constrained(name, set_)
    try:
        print(daedal.advise(model.problem, _span(model, t_end), model.initial, rtol=rtol))
    except daedal.DaedalError as error:
        _refuse(str(error))


@app.command()
def compare(
    name: Name,
    formulations: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Formulations; a selection by default.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Methods; dopri5 and dassl by default.")
    ] = None,
    rtol: Annotated[str, typer.Option(metavar="R,...", help="Relative tolerance, or several.")] = "1e-6",
    fixed_step: Annotated[float | None, typer.Option(help="Constant steps of this size instead.")] = None,
    t_end: End = None,
    set_: Parameters = None,
    json: Annotated[Path | None, typer.Option(help="Write the numbers to this file (.json).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a plot to this file (.png, .pdf, .svg).")] = None,
) -> None:
    """Solve a mechanical problem of the library with many formulations and methods; print errors, drift and cost.

    Example: daedal compare planar_pendulum --formulations projection,ggl --rtol 1e-4,1e-6,1e-8 --plot work.png
    """
    _check_ending("--json", json, ("json",))
    if plot is not None:
        _check_ending("--plot", plot, _figure_formats())
    model = _constrained(name, set_)
    span = _span(model, t_end)
    options: dict[str, Any] = {"rtol": _numbers(rtol, "--rtol"), "fixed_step": fixed_step, "title": model.title}
    for option, text in (("formulations", formulations), ("methods", methods)):
        if text is not None:
            options[option] = [part.strip() for part in text.split(",") if part.strip()]
    try:
        found = daedal.compare(model.problem, span, model.initial, reference=_known_solution(model, span[1]), **options)
    except daedal.DaedalError as error:
        _refuse(str(error))
    print(found)
    try:
        if json is not None:
            found.to_json(json)
            _print_rows([("numbers", str(json))])
        if plot is not None:
            found.plot(save=plot, pyplot=False)
            _print_rows([("plot", str(plot))])
    except OSError as error:
        _refuse(f"cannot write: {error}")


def _constrained(name: str, set_: list[str] | None) -> daedal.library.Model:
    """A problem whose formulation is a choice."""
    model = _get(name, _assignments(set_, "--set"))
    kinds = (daedal.MechanicalSystem, daedal.HessenbergDAE)
    if not isinstance(model.problem, kinds):
        others = [other for other in daedal.library.names() if isinstance(_get(other, {}).problem, kinds)]
        _refuse(
            f"'{name}' is solved as it stands, there are no formulations to choose from; "
            f"mechanical problems are {', '.join(others)}"
        )
    return model


def _span(model: daedal.library.Model, t_end: float | None) -> tuple[float, float]:
    return model.t_span if t_end is None else (model.t_span[0], t_end)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a list of numbers", param_hint=option) from None


def _known_solution(model: daedal.library.Model, t_end: float) -> Any:
    """The closed solution of a model, or the reference at its end; None where there is neither."""
    extra = model.extra
    if "exact" in extra:
        multipliers = extra.get("exact_lam", lambda t: ())
        return lambda t: np.concatenate([extra["exact"](t), multipliers(t)])
    if model.reference is None or model.reference.t != t_end:
        return None
    return daedal.library.Reference(t_end, np.concatenate([model.reference.y, extra.get("lam", ())]), "")


app.command()(reproduce)


# --- demo -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stop:
    """A stop of the tour: a problem, how long to follow it, and what to look at."""

    name: str
    shows: str
    t_end: float | None = None


_TOUR = (
    _Stop(
        "robertson",
        "Three species, rate constants that differ by nine orders of magnitude, eleven decades of time. The mass "
        "balance is an algebraic equation.",
    ),
    _Stop(
        "transistor_amplifier",
        "Eight node voltages whose derivatives occur only in five combinations: 0.1 V at 100 Hz is amplified and "
        "distorted, from U1 at the entry to U8 at the exit.",
    ),
    _Stop(
        "pendulum",
        "A point mass on a rod in Cartesian coordinates, with the rod force lambda as unknown. In the stabilised form "
        "of index 2 the length of the rod stays what it is.",
        t_end=20.0,
    ),
    _Stop(
        "crank_slider",
        "Masses, forces and five constraints of index 3, as they are written on paper: positions, velocities and joint "
        "forces come out, the constraints hold to round-off.",
    ),
)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plots.")] = Path("out"),
) -> None:
    """Solve four problems, compare them with their references and plot them."""
    for stop in (_TOUR[0], _TOUR[-1]):  # so that the times below are not those of loading or compiling
        warm_up = _get(stop.name, {})
        _solve(warm_up, None, False, dict(warm_up.options))
    for number, stop in enumerate(_TOUR, 1):
        model = _get(stop.name, {})
        print(f"{number}. {model.title} (index {model.index})", flush=True)
        solution, failure = _solve(model, stop.t_end, False, dict(model.options))
        if failure is not None:
            _refuse(str(failure))
        rows = [("shows", stop.shows), *_cost(solution), *_quality(model, solution)]
        if "constraints" in model.extra:
            length = np.max(np.abs(model.extra["constraints"](solution.y)[0]))
            rows.append(("constraint", f"z1² + z2² = 1 holds to {length:.1e} over the whole run"))
        path = out / f"{stop.name}.png"
        try:
            solution.plot(title=model.title, save=path, pyplot=False, **model.plot)
        except OSError as error:
            _refuse(f"cannot write: {error}")
        _print_rows([*rows, ("plot", str(path))], wrap=True)
        print()
    print("More: 'daedal list' names all problems, 'daedal run NAME' solves one.")


def _cost(solution: daedal.Solution) -> list[tuple[str, str]]:
    stats = solution.stats
    rows = [("cost", f"{stats.steps} steps, {stats.residual_evaluations} residuals, {stats.seconds:.2g} s")]
    if solution.history is not None:
        h = np.abs(solution.history.h)
        rows.append(("step size", f"{h.min():.1e} to {h.max():.1e}, order up to {solution.history.order.max()}"))
    return rows


app.command()(gallery)


# --- doctor -----------------------------------------------------------------------------------------------------------

_SELF_TEST_ERROR = 1e-4  # a hundred times the relative tolerance of the problem


@app.command()
def doctor() -> None:
    """Check the installation: versions, the cache of compiled code, a problem solved and compared."""
    print(f"Daedal {daedal.__version__}")
    _print_rows(
        [
            ("python", f"{platform.python_version()} ({platform.system()} {platform.machine()})"),
            *((package, _version_of(package)) for package in ("numpy", "scipy", "numba", "matplotlib")),
            ("cores", str(_cores())),
        ]
    )
    try:
        rows, healthy = _self_test()
    except Exception as error:  # whatever is broken, the report has to be finished
        rows, healthy = [("self-test", f"failed with {type(error).__name__}: {error}")], False
    _print_rows([*_cache_report(), *rows])
    if not healthy:
        _refuse("the self-test failed; reinstall Daedal and what it needs, or report this output")
    print("All is well.")


def _version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _self_test() -> tuple[list[tuple[str, str]], bool]:
    """Solve Robertson's reaction with interpreted and with compiled equations, and compare with the reference."""
    model = daedal.library.robertson()
    assert model.reference is not None
    rows, healthy = [], True
    for kind, problem in (("self-test", model.problem), ("compiled", model.problem.compiled())):
        first = daedal.solve(problem, model.t_span, model.initial, **model.options)
        again = daedal.solve(problem, model.t_span, model.initial, **model.options)
        error = _largest_error(model.reference, again)
        right = error is not None and error.size < _SELF_TEST_ERROR and np.array_equal(first.y, again.y)
        seconds = f"first {first.stats.seconds:.2f} s, again {again.stats.seconds:.4f} s"
        rows.append((kind, f"robertson {seconds}, error {error}: {'right' if right else 'WRONG'}"))
        healthy = healthy and right
    return rows, healthy


def _cache_report() -> list[tuple[str, str]]:
    """Where Numba keeps the compiled kernels, according to the kernels loaded so far."""
    folders = sorted(
        {
            Path(value.stats.cache_path)
            for name, module in list(sys.modules.items())
            if name.startswith("daedal.")
            for value in vars(module).values()
            if getattr(getattr(value, "stats", None), "cache_path", None) and hasattr(value, "py_func")
        }
    )
    if not folders:
        return [("cache", "none found: every process compiles anew")]
    files = [
        path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.suffix in (".nbi", ".nbc")
    ]
    size = sum(path.stat().st_size for path in files)
    writable = all(os.access(folder, os.W_OK) for folder in folders if folder.is_dir())
    remedy = "writable" if writable else "NOT writable: set NUMBA_CACHE_DIR to a folder that is"
    return [
        ("cache", f"{len(files)} files, {size / 1e6:.1f} MB, {remedy}"),
        *(("", str(folder)) for folder in folders),
    ]


# --- printing ---------------------------------------------------------------------------------------------------------


def _print_rows(rows: Iterable[tuple[str, str]], wrap: bool = False) -> None:
    import shutil
    import textwrap

    width = max(40, min(shutil.get_terminal_size().columns, 120))
    for name, value in rows:
        start = f"  {name:<11} "
        if wrap:
            print(textwrap.fill(value, width, initial_indent=start, subsequent_indent=" " * len(start)))
        else:
            print(start + value)


def _refuse(message: str) -> NoReturn:
    """End with an error."""
    sys.stdout.flush()
    print(f"daedal: {message}", file=sys.stderr)
    raise typer.Exit(1)
