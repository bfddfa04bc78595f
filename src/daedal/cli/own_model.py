"""A problem of one's own on the command line: ``FILE.py:NAME``."""

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import daedal
from daedal.cli.output import refuse
from daedal.errors import near_names

_PROBLEMS = (
    daedal.ImplicitDAE,
    daedal.SemiExplicitDAE,
    daedal.LinearDAE,
    daedal.SecondOrderDAE,
    daedal.MechanicalSystem,
    daedal.HessenbergDAE,
    daedal.HybridProblem,
)
_WANTED = "a problem, a daedal.library.Model, or a function without further arguments that returns one of them"


def is_own(name: str) -> bool:
    """Whether a name is one of a file, not of the library."""
    path, colon, _ = name.rpartition(":")
    return name.endswith(".py") or (bool(colon) and path.endswith(".py"))


def own_model(name: str, parameters: dict[str, Any], t_span: Any, initial: Any) -> daedal.library.Model:
    """The model that a file defines, with parameters, interval and initial values; what is missing ends the command."""
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
            f"{name} is a problem alone: give {' and '.join(lacks)} as well, or a daedal.library.Model that has them"
        )
    return daedal.library.Model(
        name=wanted, title=title, problem=problem, t_span=t_span, initial=initial, index=index, options=options,
        plot=plot, **extra,
    )  # fmt: skip


def daedal_params(problem: Any, parameters: dict[str, Any]) -> Any:
    """The problem with parameters by name."""
    if getattr(problem, "params", None) is None:
        raise daedal.InvalidProblemError(
            "the problem was stated without params; let a function make it, with arguments"
        )
    return problem.with_params(parameters)


def _loaded(path: Path) -> ModuleType:
    if not path.is_file():
        refuse(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # as for ``python FILE.py``
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
        what = f"say what is to be run, {file}:NAME" if not wanted else f"{file} defines no '{wanted}'"
        refuse(f"{what}; {near_names(wanted, names)}it defines {', '.join(names) or 'nothing that could be run'}")
    return getattr(module, wanted)


def _called(found: Any, name: str, parameters: dict[str, Any]) -> Any:
    if not callable(found):
        refuse(f"{name} is a {type(found).__name__}; wanted is {_WANTED}")
    try:
        inspect.signature(found).bind(**parameters)
    except TypeError as error:
        refuse(f"{name}{inspect.signature(found)} cannot be called with {parameters or 'nothing'} ({error}); use --set")
    made = found(**parameters)
    if not isinstance(made, (daedal.library.Model, *_PROBLEMS)):
        refuse(f"{name} returns a {type(made).__name__}; wanted is {_WANTED}")
    return made
