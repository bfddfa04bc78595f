"""Variables of differentiation: parameters and initial values by name or index, as columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.driver.options import Sensitivities
from daedal.driver.plan_stages import Plan
from daedal.driver.request import Settings
from daedal.errors import InvalidProblemError, UnknownNameError
from daedal.kernels.functions import is_compiled
from daedal.problems import HessenbergDAE
from daedal.problems.checks import check_vector
from daedal.problems.symbols import Driven
from daedal.symbolic.tracing.parameters import ParameterLayout, is_internal


@dataclass(frozen=True)
class Column:
    """One sensitivity: with respect to a parameter, given by its position among the numbers, or to a variable's initial
    value."""

    name: str
    position: int | None = None
    variable: int | None = None


class ParameterNumbers:
    """The numbers in parameters of any structure, by position and by name; with integers if `all_numbers`."""

    def __init__(self, params: Any, all_numbers: bool = False):
        self._params = params
        self.layout = None if params is None else ParameterLayout(params, all_numbers)
        self.values = np.zeros(0) if self.layout is None else self.layout.numbers(params)

    @classmethod
    def of(cls, problem: Any) -> ParameterNumbers:
        """The numbers in a problem's parameters, in the order of its traced functions."""
        return cls(problem.params, any(map(is_compiled, vars(problem).values())))

    @cached_property
    def labels(self) -> list[str]:
        """Names of the numbers."""
        return [] if self.layout is None else self.layout.labels(self._params)

    def changed(self, changes: Mapping[int, float]) -> Any:
        """The parameters with the numbers at the given positions replaced."""
        numbers = self.values.copy()
        for position, value in changes.items():
            numbers[position] = value
        return None if self.layout is None else self.layout.rebuilt(self._params, numbers.tolist())


@dataclass(frozen=True, eq=False)
class Differentiation:
    """A problem, its variables of differentiation, and its plan without sensitivities."""

    problem: Any  # the problem with parameters as floats
    wanted: Sensitivities
    settings: Settings  # settings without sensitivities
    make_plan: Callable[[Any, Settings], Plan]  # the driver's function ``make_plan(problem, settings)``
    primal: Plan  # plan of the problem without sensitivities
    columns: tuple[Column, ...]
    starts: np.ndarray  # shape (m, n): d(initial values) / d(column) as given

    @classmethod
    def of(cls, problem: Any, settings: Settings, make_plan: Callable[[Any, Settings], Plan]) -> Differentiation:
        """Create the differentiation requested in `settings`."""
        wanted = settings.sensitivities
        assert wanted is not None
        problem, bare = with_floats(problem), replace(settings, sensitivities=None)
        primal, columns = make_plan(problem, bare), columns_of(wanted, problem)
        starts = given_starts(wanted, columns, problem.n)
        return cls(problem, wanted, bare, make_plan, primal, tuple(columns), starts)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def with_problem(self, problem: Any) -> Differentiation | None:
        """A copy for a problem with other parameters; None if its plan must be rebuilt."""
        problem = with_floats(problem)
        shared = self.primal.with_problem(problem)
        return None if shared is None else replace(self, problem=problem, primal=shared)

    # --- properties of the plan ---------------------------------------------------------------------------------------

    @property
    def words(self) -> dict[str, str]:
        """Description of how functions are evaluated."""
        traced = self.primal.traced
        return {} if traced is None else dict(traced.words)

    def switches(self, settings: Settings) -> int:
        """Number of hidden switches that are tracked during a run."""
        traced = self.primal.traced
        return traced.n_switches if traced is not None and settings.switches != "never" else 0


def columns_of(wanted: Sensitivities, problem: Any) -> list[Column]:
    """The requested quantities as columns, in the same order."""
    known = ParameterNumbers.of(problem).labels
    labels = [problem.label(i) for i in range(problem.n)]
    names = wanted.names
    if names is True:
        if isinstance(problem, HessenbergDAE):
            raise InvalidProblemError(
                "sensitivities=True requests all parameters, and a HessenbergDAE has none: name initial values, "
                f"such as '{labels[0]}(0)'"
            )
        names = [label for label in known if not is_internal(label)]
        _require_parameters(names)
    elif isinstance(names, (str, int, np.integer)):
        names = [names]
    found = [column for name in names for column in _found(name, known, labels)]
    _require_some(found)
    if len({column.name for column in found}) < len(found):
        raise InvalidProblemError(f"sensitivities names a parameter twice: {', '.join(c.name for c in found)}")
    return found


def require_known(names: list[Any], known: list[str], starts: list[str]) -> tuple[str, ...]:
    """Check that all names are parameters or initial values of a problem with modes, and remove duplicates."""
    variables = [name.removesuffix("(0)") for name in starts]
    found = [column.name for name in names for column in _found(name, known, variables)]
    _require_some(found)
    return tuple(dict.fromkeys(found))


def given_starts(wanted: Sensitivities, columns: list[Column], n: int) -> np.ndarray:
    """d(initial values) / d(parameter) as given, one row per column."""
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


def scales(columns: Sequence[Column], numbers: np.ndarray, y0: np.ndarray) -> np.ndarray:
    """Sizes of the parameters, the units of their sensitivities; 1 for zero parameters."""
    return np.array([_size(column, numbers, y0) or 1.0 for column in columns])


def _size(column: Column, numbers: np.ndarray, y0: np.ndarray) -> float:
    if column.position is not None:
        return float(abs(numbers[column.position]))
    return 0.0 if column.variable is None else float(abs(y0[column.variable]))


def with_floats(problem: Any) -> Any:
    """The problem with integer parameters converted to floats, so that they can be varied."""
    params = as_floats(problem.params)
    return problem if params is problem.params else problem.with_params(params)


def as_floats(params: Any) -> Any:
    """Parameters with integers converted to floats, so that they can be varied; other structures are unchanged."""
    if isinstance(params, bool) or params is None:
        return params
    if isinstance(params, Driven):
        given = as_floats(params.given)
        return params if given is params.given else params._replace(given=given)
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


def _require_some(found: Sequence[Any]):
    if not found:
        raise InvalidProblemError("sensitivities names no parameter: give their names, or True for all of them")


def _require_parameters(known: list[str]):
    if not known:
        raise InvalidProblemError(
            "sensitivities are requested, but the problem has no parameters: define it with params=..., as the "
            "last argument of its functions, or name initial values such as 'x(0)'"
        )


def entries_of(name: str, labels: Sequence[str]) -> list[str]:
    """Positions of the numbers selected by a name: its own number, or those of the vector or mapping of that name."""
    if name in labels:
        return [name]
    return [label for label in labels if label.startswith((f"{name}[", f"{name}.")) and not is_internal(label)]


def _found(name: Any, known: list[str], labels: list[str]) -> list[Column]:
    if isinstance(name, Column):
        return [name]
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        _require_parameters(known)
        if not -len(known) <= name < len(known):
            raise InvalidProblemError(
                f"sensitivities: there is no parameter {name}; the problem has {len(known)}, numbered from 0"
            )
        position = int(name) % len(known)
        return [Column(known[position], position)]
    text = str(name)
    if text not in known and text.endswith("(0)") and text[:-3] in labels:
        return [Column(text, variable=labels.index(text[:-3]))]
    entries = entries_of(text, known)
    if entries:
        return [Column(entry, known.index(entry)) for entry in entries]
    if not text.endswith("(0)"):
        _require_parameters(known)
    raise unknown_quantity(text, known, labels, "sensitivities")


def unknown_quantity(name: str, known: Sequence[str], variables: Sequence[str], where: str) -> UnknownNameError:
    """Error about a name that is neither a parameter nor an initial value ``"x(0)"``."""
    return unknown_name(name, [*known, *(f"{one}(0)" for one in variables)], "parameter or initial value", where)
