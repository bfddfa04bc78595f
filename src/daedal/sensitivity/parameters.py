"""Which sensitivities are asked for: parameters and initial values by name or index, as columns."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.driver.request import SensitivityRequest
from daedal.errors import InvalidProblemError
from daedal.kernels.functions import is_compiled
from daedal.problems.checks import check_vector
from daedal.symbolic.tracing.parameters import ParameterLayout


@dataclass(frozen=True)
class Column:
    """One sensitivity: of a parameter, by its position among the numbers, or of an initial value, by its variable."""

    name: str
    position: int | None = None
    variable: int | None = None


def columns_of(wanted: SensitivityRequest, problem: Any) -> list[Column]:
    """What was asked for as columns, in the same order."""
    layout = layout_of(problem)
    known = [] if layout is None else layout.labels(problem.params)
    labels = [problem.label(i) for i in range(problem.n)]
    names = wanted.names
    if names is True:
        _require_parameters(known)
        names = known
    elif isinstance(names, (str, int, np.integer)):
        names = [names]
    found = [column for name in names for column in _found(name, known, labels)]
    if not found:
        raise InvalidProblemError("sensitivities names no parameter: give their names, or True for all of them")
    if len({column.name for column in found}) < len(found):
        raise InvalidProblemError(f"sensitivities names a parameter twice: {', '.join(c.name for c in found)}")
    return found


def require_known(names: list[Any], known: list[str]) -> tuple[str, ...]:
    """Names of parameters that there are, for problems that have no initial values among them."""
    found = [column.name for name in names for column in _found(name, known, [])]
    if not found:
        raise InvalidProblemError("sensitivities names no parameter: give their names, or True for all of them")
    return tuple(dict.fromkeys(found))


def given_starts(wanted: SensitivityRequest, columns: list[Column], n: int) -> np.ndarray:
    """d(initial values) / d(parameter) as they were given, one row for each column."""
    start = np.zeros((len(columns), n))
    for row, column in zip(start, columns, strict=True):
        if column.variable is not None:
            row[column.variable] = 1.0
    given = wanted.initial or {}
    if not isinstance(given, Mapping):
        raise InvalidProblemError(
            "initial_sensitivities must be a mapping {parameter: d(initial values) / d(parameter)}, "
            f"got {type(given).__name__}"
        )
    names = [column.name for column in columns]
    for name, value in given.items():
        if name not in names:
            raise unknown_name(
                name, names, "parameter or initial value among the sensitivities", "initial_sensitivities"
            )
        stacked = np.concatenate([np.atleast_1d(part) for part in value]) if isinstance(value, tuple) else value
        start[names.index(name)] = check_vector(stacked, n, f"initial_sensitivities[{name!r}]")
    return start


def scales(columns: list[Column], numbers: np.ndarray, y0: np.ndarray) -> np.ndarray:
    """The sizes of parameters, in which their sensitivities are measured: 1 where a parameter vanishes."""
    sizes = [abs(numbers[c.position]) if c.position is not None else abs(y0[c.variable]) for c in columns]
    return np.array([size or 1.0 for size in sizes])


def layout_of(problem: Any) -> ParameterLayout | None:
    """The numbers of a problem's parameters, as a trace of its functions has them."""
    params = problem.params
    return None if params is None else ParameterLayout(params, any(map(is_compiled, vars(problem).values())))


def with_floats(problem: Any) -> Any:
    """The problem with parameters that can be varied."""
    params = as_floats(problem.params)
    return problem if params is problem.params else problem.with_params(params)


def as_floats(params: Any) -> Any:
    """Parameters whose whole numbers are floats, so that they can be varied; other structures stay as they are."""
    if isinstance(params, bool) or params is None:
        return params
    if isinstance(params, (int, np.integer)):
        return float(params)
    if isinstance(params, np.ndarray) and params.dtype.kind in "iu":
        return params.astype(float)
    if type(params) is dict:
        found = {name: as_floats(value) for name, value in params.items()}
        return params if all(found[name] is value for name, value in params.items()) else found
    if type(params) in (list, tuple):
        entries = [as_floats(value) for value in params]
        return params if all(map(operator.is_, entries, params)) else type(params)(entries)
    return params


def _require_parameters(known: list[str]):
    if not known:
        raise InvalidProblemError(
            "sensitivities are asked for, but the problem was stated without parameters: state it with params=..., as "
            "the last argument of its functions, or name initial values such as 'x(0)'"
        )


def _found(name: Any, known: list[str], labels: list[str]) -> list[Column]:
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        _require_parameters(known)
        if not -len(known) <= name < len(known):
            raise InvalidProblemError(f"sensitivities: there is no parameter {name}; there are {len(known)}")
        position = int(name) % len(known)
        return [Column(known[position], position)]
    text = str(name)
    if text in known:
        return [Column(text, known.index(text))]
    if text.endswith("(0)") and text[:-3] in labels:
        return [Column(text, variable=labels.index(text[:-3]))]
    parts = [k for k, label in enumerate(known) if label.startswith((f"{text}[", f"{text}."))]
    if parts:
        return [Column(known[k], k) for k in parts]
    if not text.endswith("(0)"):
        _require_parameters(known)
    everything = [*known, *(f"{label}(0)" for label in labels)]
    raise unknown_name(text, everything, "parameter or initial value", "sensitivities")
