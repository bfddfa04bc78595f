"""Functions shared by the commands: problem names, parameters, files, output."""

import ast
import importlib.util
import inspect
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NoReturn

import numpy as np
import typer

import daedal
from daedal.common.tabular import Tabular
from daedal.errors import near_names

Name = Annotated[str, typer.Argument(help="Name of a problem, as in 'daedal list'.", show_default=False)]
RunName = Annotated[
    str,
    typer.Argument(help="Name of a problem, as in 'daedal list', or FILE.py:NAME for your own.", show_default=False),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PARAMETER=VALUE", help="A parameter of the problem; may be repeated."),
]
End = Annotated[
    float | None, typer.Option(help="End of the interval; by default that given by the source of the problem.")
]
Plot = Annotated[Path | None, typer.Option(help="Write a plot to this file (.png, .pdf, .svg).")]


def assignments(texts: Iterable[str] | None, option: str) -> dict[str, Any]:
    """``["a=1", "b=text"]`` as a dictionary; values that are not Python literals are strings."""
    values: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"'{text}' does not have the form name=value", param_hint=option)
        try:
            values[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            values[name.strip()] = value.strip()
    return values


def literal(text: str | None, option: str) -> Any:
    """Value of a Python literal, such as a list of numbers; None for an empty option."""
    if text is None:
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise typer.BadParameter(
            f"cannot read '{text}'; give a list of numbers, a pair or a mapping", param_hint=option
        ) from None


def check_ending(option: str, path: Path | None, endings: Sequence[str]) -> None:
    if path is not None and path.suffix.lower().removeprefix(".") not in endings:
        known = ", ".join(f".{ending}" for ending in endings)
        raise typer.BadParameter(f"'{path}' must end in one of {known}", param_hint=option)


def check_figure(path: Path | None) -> None:
    """Exit if Matplotlib cannot write a plot to `path`."""
    if path is not None:
        from matplotlib.backend_bases import FigureCanvasBase

        check_ending("--plot", path, sorted(FigureCanvasBase.get_supported_filetypes()))


# --- output and errors of commands ------------------------------------------------------------------------------------

_NAMES = 10  # width of the first column, in characters; the same in all tables of a command


def print_rows(rows: Sequence[tuple[str, str]], wrap: bool = False) -> None:
    """Print names and values in two columns."""
    width = max(40, min(shutil.get_terminal_size().columns, 120)) if wrap else None
    print(Tabular("ll", rows, indent=2, width=width, least=_NAMES))


def refuse(message: str, code: int = 1) -> NoReturn:
    """Exit with an error."""
    sys.stdout.flush()
    print(f"daedal: {message}", file=sys.stderr)
    raise typer.Exit(code)


# --- library problems -------------------------------------------------------------------------------------------------


def find_model(name: str, parameters: dict[str, Any]) -> daedal.library.Model:
    """The library model with the given parameters; exits for an invalid name or value."""
    try:
        return daedal.library.get(name, **parameters)
    except daedal.DaedalError as error:
        refuse(str(error))
    except (TypeError, ValueError) as error:
        refuse(f"invalid parameters {parameters} for '{name}': {error}")


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of the factory of a library model."""
    return dict(inspect.signature(getattr(daedal.library, name)).parameters)


def span_of(model: daedal.library.Model, t_end: float | None) -> tuple[float, float]:
    """The interval of a model, with another end if `t_end` is given."""
    return model.t_span if t_end is None else (model.t_span[0], t_end)


def short(value: Any) -> str:
    """A value on one line; an array is shown by its smallest and largest entries."""
    if isinstance(value, np.ndarray):
        return f"{value.min():g} to {value.max():g}" if value.min() < value.max() else f"{value.flat[0]:g}"
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- accuracy of a solution -------------------------------------------------------------------------------------------


def quality(model: daedal.library.Model, solution: daedal.Solution) -> list[tuple[str, str]]:
    """Rows of the summary that describe the accuracy of a solution."""
    rows = []
    if model.reference is not None:
        found = largest_error(model.reference, solution)
        place = f"the reference at t = {model.reference.t:g}"
        rows.append(
            ("error", f"unknown: the run ended before {place}" if found is None else f"{found} against {place}")
        )
    return rows


@dataclass(frozen=True)
class _Error:
    """Largest error of a solution, its variable, and whether the error is relative."""

    size: float
    name: str
    relative: bool

    def __str__(self) -> str:
        return f"{self.size:.1e} ({'relative' if self.relative else 'absolute'}, largest in {self.name})"


def largest_error(reference: daedal.library.Reference, solution: daedal.Solution) -> _Error | None:
    """The error at the time of the reference; None if the solution ends earlier."""
    if solution.t.size and np.isclose(solution.t[-1], reference.t, rtol=1e-12, atol=0.0):
        values = solution.y[:, -1]
    elif solution.dense is not None and solution.dense.interval[0] <= reference.t <= solution.dense.interval[1]:
        values = solution(reference.t)
    else:
        return None
    errors = reference.error(values)
    worst = int(np.nanargmax(errors))
    return _Error(float(errors[worst]), solution.names[worst], bool(reference.y[worst] != 0.0))


# --- user problems on the command line: ``FILE.py:NAME`` --------------------------------------------------------------

_PROBLEMS = (
    daedal.ImplicitDAE,
    daedal.SemiExplicitDAE,
    daedal.LinearDAE,
    daedal.SecondOrderDAE,
    daedal.MechanicalSystem,
    daedal.HessenbergDAE,
    daedal.hybrid.HybridProblem,
)
_WANTED = "a problem, a daedal.library.Model, or a function without required arguments that returns one of them"


def is_own(name: str) -> bool:
    """Whether a name refers to a file, not to the library."""
    path, colon, _ = name.rpartition(":")
    return name.endswith(".py") or (bool(colon) and path.endswith(".py"))


def own_model(name: str, parameters: dict[str, Any], t_span: Any, initial: Any) -> daedal.library.Model:
    """The model defined in a file, with parameters, interval and initial values; exits if one of these is missing."""
    file, _, wanted = name.rpartition(":") if not name.endswith(".py") else (name, "", "")
    module = _loaded(Path(file))
    found = _defined(module, file, wanted)
    if not isinstance(found, (daedal.library.Model, *_PROBLEMS)):
        found, parameters = _called(found, f"{file}:{wanted}", parameters), {}
    if isinstance(found, daedal.library.Model):
        problem, title = found.problem, found.title or wanted
        t_span, initial = t_span or found.t_span, found.initial if initial is None else initial
        index, options, plot = found.index, found.options, found.plot
        extra: dict[str, Any] = {"reference": found.reference if not parameters else None, "extra": found.extra}
    else:
        problem, title, index, options, plot, extra = found, wanted, None, {}, {}, {}
    if parameters:
        try:
            problem = daedal_params(problem, parameters)
        except daedal.DaedalError as error:
            refuse(f"--set: {error}")
    if t_span is None or initial is None:
        lacks = [
            text for text, value in (("--t-span 0,10", t_span), ("--initial '[1.0, 0.0]'", initial)) if value is None
        ]
        refuse(
            f"{name} is only a problem; also give {' and '.join(lacks)}, or define a daedal.library.Model that has them"
        )
    return daedal.library.Model(
        name=wanted, title=title, problem=problem, t_span=t_span, initial=initial, index=index, options=options,
        plot=plot, **extra,
    )  # fmt: skip


def daedal_params(problem: Any, parameters: dict[str, Any]) -> Any:
    """The problem with parameters replaced by name."""
    if getattr(problem, "params", None) is None:
        raise daedal.InvalidProblemError("the problem has no params; define a function with arguments that creates it")
    return problem.with_params(parameters)


def _loaded(path: Path) -> ModuleType:
    if not path.is_file():
        refuse(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # as ``python FILE.py`` does
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _defined(module: ModuleType, file: str, wanted: str) -> Any:
    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(value, (daedal.library.Model, *_PROBLEMS))
            or getattr(value, "__module__", None) == module.__name__
        )
    ]
    if not wanted or not hasattr(module, wanted):
        what = f"name the object to run, {file}:NAME" if not wanted else f"{file} defines no '{wanted}'"
        refuse(f"{what}; {near_names(wanted, names)}it defines {', '.join(names) or 'nothing that can be run'}")
    return getattr(module, wanted)


def _called(found: Any, name: str, parameters: dict[str, Any]) -> Any:
    if not callable(found):
        refuse(f"{name} is a {type(found).__name__}; expected {_WANTED}")
    try:
        inspect.signature(found).bind(**parameters)
    except TypeError as error:
        refuse(f"{name}{inspect.signature(found)} cannot be called with {parameters or 'nothing'} ({error}); use --set")
    made = found(**parameters)
    if not isinstance(made, (daedal.library.Model, *_PROBLEMS)):
        refuse(f"{name} returns a {type(made).__name__}; expected {_WANTED}")
    return made
