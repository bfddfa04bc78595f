"""The options of a run, each defined once with its type, default, check and description.

A `TypedDict` is the table. Type checkers take the types of keywords from it; :func:`checked` validates values, and
:func:`takes` generates the signature and the docstring of `solve`, `prepare` and `solve_many`.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict, TypeVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import CORRECTORS
from daedal.problems.checks import check_flag, check_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from daedal.events.event import Event
    from daedal.mechanics.formulations.formulation import Formulation
    from daedal.methods.base import Method

Function = TypeVar("Function", bound=Callable[..., Any])


class Option(NamedTuple):
    """Default, check and description of an option; its type is in the table."""

    group: str
    default: Any
    kind: str  # description of the type
    about: str
    check: Callable[[Any, str], Any] | None = None  # function of (value, name), returns the value for the driver


# --- checks -----------------------------------------------------------------------------------------------------------


def _count(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidProblemError(f"{name} must be a positive integer, got {value!r}")
    return int(value)


def _positive(value: Any, name: str) -> float | None:
    return None if value is None else check_positive(value, name)


def _largest(value: Any, name: str) -> float:
    return inf if value is None else check_positive(value, name)


def _flag(value: Any, name: str) -> bool | None:
    return None if value is None else check_flag(value, name)


def _one_of(*known: str) -> Callable[[Any, str], str]:
    def check(value: Any, name: str) -> str:
        if value not in known:
            raise InvalidProblemError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
        return value

    return check


# --- values that combine several options ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steps:
    """Step size options of a run in one object, for ``daedal.solve(..., steps=Steps(...))``.

    Parameters
    ----------
    first_step, max_step : float, optional
        First and largest step size.
    max_steps : int, optional
        Largest number of steps.
    fixed_step : float, optional
        Constant step size, without error control.
    t_stop : float, optional
        The time beyond which the equations are never evaluated.

    Examples
    --------
    >>> import daedal
    >>> careful = daedal.Steps(first_step=1e-6, max_step=0.05)
    >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], steps=careful)
    >>> bool(max(sol.history.h) <= 0.05)
    True
    """

    first_step: float | None = None
    max_step: float | None = None
    max_steps: int | None = None
    fixed_step: float | None = None
    t_stop: float | None = None


@dataclass(frozen=True, eq=False)
class Sensitivities:
    """Sensitivity options of a run in one object, for ``daedal.solve(..., sensitivities=Sensitivities(...))``.

    Parameters
    ----------
    names : True, name, index, or sequence of them
        Parameters, and initial values such as ``"x(0)"``; True for all parameters.
    initial : mapping, optional
        Derivatives {name: array (n,)} of initial values that depend on a parameter.
    errors : bool
        Whether to control the errors of sensitivities too.
    method : {"auto", "simultaneous", "staggered", "staggered direct"}
        How a step of DASSL or Radau computes them.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 2.0})
    >>> wanted = daedal.Sensitivities("k", errors=False)
    >>> sol = daedal.solve(decay, (0.0, 1.0), ([1.0], [-2.0]), sensitivities=wanted)
    >>> print(f"{sol.sensitivity('k')[0, -1]:.4f}")  # -exp(-2)
    -0.1353
    """

    names: Any = True
    initial: Mapping[str, Any] | None = None
    errors: bool = True
    method: str = "auto"

    def __post_init__(self) -> None:
        names = self.names
        if not isinstance(names, (bool, str, int, np.integer)):
            if not isinstance(names, Iterable):
                raise InvalidProblemError(
                    f"sensitivities must be True, or names or indices of parameters, got {names!r}"
                )
            object.__setattr__(self, "names", tuple(names))
        if self.method not in ("auto", *CORRECTORS):
            raise InvalidProblemError(f"unknown sensitivity_method {self.method!r}; known: {', '.join(CORRECTORS)}")
        check_flag(self.errors, "sensitivity_errors")

    @property
    def key(self) -> tuple[Any, ...]:
        return "sensitivities", self.names, self.initial, self.errors, self.method


# --- the table --------------------------------------------------------------------------------------------------------

_METHOD, _STEPS, _OUTPUT = "Method", "Accuracy and steps", "Output"
_EVENTS, _RUN, _DERIVATIVES = "Events and switches", "Values of this run", "Sensitivities"


class MethodOptions(TypedDict, total=False):
    """Options of a method given by name; the classes of :mod:`daedal.methods` describe them."""

    columns: int
    controller: Any
    corrector: str
    error_test: Any
    family: Any
    formula: Any
    grid: Any
    increment: Any
    kind: str
    linear_solver: Any
    max_newton_change: Any
    max_order: int | None
    newton_weights: Any
    nonnegative: Any
    norm: Any
    order: int
    orders: Any
    preconditioner: Any
    projection: Any
    remember_rate: bool
    row_scaling: Any
    scheme: Any
    sequence: Any
    stages: Any
    starting_values: Any
    stop_when_stiff: bool
    tableau: Any
    variable_index: Any
    variant: Any
    max_events: int  # of a hybrid problem
    record_events: bool


class SolverOptions(MethodOptions, total=False):
    """Options of `solve`, `prepare` and `solve_many`."""

    method: Annotated[
        "str | Method | type[Method]",
        Option(
            _METHOD,
            "auto",
            'str or method, such as "dassl" or ``daedal.methods.DASSL(max_order=2)``',
            (
                "The integration method. The automatic choice depends on structure, size and stiffness, and may "
                "change during the run (``sol.method``): :doc:`/methods/which-method`. Options of a method given by "
                "name, such as ``max_order=2``, are passed as keywords."
            ),
        ),
    ]
    formulation: Annotated[
        "str | Formulation | type[Formulation]",
        Option(
            _METHOD,
            "auto",
            'str or formulation, such as "ggl" or ``daedal.formulations.Baumgarte(gamma=5.0)``',
            "How a mechanism, or a problem of higher index, is rewritten first: :doc:`/guide/formulations`. Ways of "
            ':func:`daedal.reduce_index` apply to equations; "none" leaves them unchanged.',
        ),
    ]
    compile: Annotated[
        str,
        Option(
            _METHOD,
            "auto",
            '{"auto", "never", "always"}',
            (
                "Whether to compile functions to machine code with exact derivatives: those that can be traced, "
                "none, or all, with an error if impossible: :doc:`/tracing`."
            ),
            _one_of("auto", "never", "always"),
        ),
    ]
    rtol: Annotated["ArrayLike", Option(_STEPS, 1e-6, "float or array (n,)", "")]
    atol: Annotated[
        "ArrayLike",
        Option(
            _STEPS,
            1e-9,
            "float or array (n,)",
            "The local error of component i is kept below rtol[i] \\|y_i\\| + atol[i]: :doc:`/guide/tolerances`.",
        ),
    ]
    first_step: Annotated[float | None, Option(_STEPS, None, "float, optional", "", _positive)]
    max_step: Annotated[float | None, Option(_STEPS, None, "float, optional", "", _largest)]
    fixed_step: Annotated[
        float | None,
        Option(
            _STEPS,
            None,
            "float, optional",
            "First and largest step size; constant step size, without error control.",
            _positive,
        ),
    ]
    max_steps: Annotated[
        int | None,
        Option(
            _STEPS,
            None,
            "int, optional",
            "Largest number of steps. By default unlimited, as long as the run makes progress.",
            _count,
        ),
    ]
    steps: Annotated[
        Steps | None,
        Option(_STEPS, None, "daedal.Steps, optional", "Several of these options in one object."),
    ]
    dense_output: Annotated[
        bool | None,
        Option(_OUTPUT, None, "bool, optional", "Keep data for ``sol(t)``. By default up to 1000 unknowns.", _flag),
    ]
    events: Annotated[
        "Event | Callable[..., Any] | Sequence[Event | Callable[..., Any]] | None",
        Option(
            _EVENTS,
            None,
            "Event, callable or list",
            "Functions whose zeros are located: :doc:`/guide/events`.",
        ),
    ]
    switches: Annotated[
        str,
        Option(
            _EVENTS,
            "auto",
            '{"auto", "never"}',
            (
                "Whether to locate conditions, absolute values and tables in traced functions and restart the run "
                "there: :doc:`/guide/hidden-switches`."
            ),
            _one_of("auto", "never"),
        ),
    ]
    correct_initial: Annotated[
        bool,
        Option(
            _RUN,
            False,
            "bool",
            "Correct inconsistent initial values instead of rejecting them: :doc:`/guide/initial-values`.",
            check_flag,
        ),
    ]
    sensitivities: Annotated[
        "Sensitivities | bool | str | int | Sequence[str | int] | None",
        Option(
            _DERIVATIVES,
            None,
            "True, name, index, or list",
            'Parameters and initial values (``"x(0)"``) with respect to which ``sol.sensitivity(name)`` is computed, '
            ":doc:`/guide/sensitivities`. Or a :class:`daedal.Sensitivities`.",
        ),
    ]
    initial_sensitivities: Annotated[
        "Mapping[str, ArrayLike] | None",
        Option(_DERIVATIVES, None, "mapping, optional", ""),
    ]
    sensitivity_errors: Annotated[bool, Option(_DERIVATIVES, True, "bool", "")]
    sensitivity_method: Annotated[
        str,
        Option(
            _DERIVATIVES,
            "auto",
            "optional",
            "The fields `initial`, `errors` and `method` of a :class:`daedal.Sensitivities`, as options.",
        ),
    ]


class DAEOptions(SolverOptions, total=False):
    """Options of `solve_dae`, including those of a single run."""

    t_stop: Annotated[
        float | None,
        Option(
            _STEPS,
            None,
            "float, optional",
            "The equations are never evaluated beyond this time, by default the end of `t_span`.",
        ),
    ]
    t_eval: Annotated[
        "ArrayLike | None", Option(_OUTPUT, None, "array, optional", "Output times. By default every step is stored.")
    ]
    progress: Annotated[bool, Option(_OUTPUT, False, "bool", "Show a progress bar with the model time.")]
    breakpoints: Annotated[
        Any,
        Option(
            _EVENTS,
            None,
            "Table, array, or list",
            "Times of kinks and jumps of right-hand sides: the run stops there and restarts, and the result is a "
            ":class:`HybridSolution`: :doc:`/guide/discontinuities`.",
        ),
    ]
    inputs: Annotated[
        "Mapping[str, Any] | None",
        Option(
            _RUN,
            None,
            "mapping, optional",
            "",
        ),
    ]
    hold: Annotated[
        str,
        Option(
            _RUN,
            "zero",
            "optional",
            'Inputs by name, and how samples are held, "zero" or "first" order: :doc:`/guide/problems`.',
        ),
    ]


class RunOptions(DAEOptions, total=False):
    """Options of `solve`."""

    params: Annotated[
        Any,
        Option(
            _RUN,
            None,
            "object, optional",
            "Parameters that replace the problem's; a mapping replaces the given entries.",
        ),
    ]
    sampled: Annotated[
        Any,
        Option(
            _RUN,
            None,
            "daedal.simulation.Sampled, optional",
            "A controller in discrete time that sets inputs, recorded in ``sol.sampled``: :doc:`/guide/control-loop`.",
        ),
    ]


def table(options: "type[SolverOptions]") -> dict[str, Option]:
    """The options of a table by name, in groups."""
    found = {
        name: hint.__metadata__[0] for name, hint in options.__annotations__.items() if hasattr(hint, "__metadata__")
    }
    groups = list(dict.fromkeys(option.group for option in found.values()))
    return dict(sorted(found.items(), key=lambda item: groups.index(item[1].group)))


def split(
    given: Mapping[str, Any], options: "type[SolverOptions]" = SolverOptions
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The checked options of a table, with defaults, and the remaining options, which are those of a method."""
    shown, known, rest = _TABLES[options], dict(_DEFAULTS[options]), {}
    for name, value in {**given, **_within(given.get("steps"), given)}.items():
        if name not in shown:
            rest[name] = value
        else:
            check = shown[name].check
            known[name] = value if check is None else check(value, name)
    del known["steps"]
    known["sensitivities"] = _sensitivities(known)
    return known, rest


def _within(steps: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options set by `steps`."""
    if steps is None:
        return {}
    if not isinstance(steps, Steps):
        raise InvalidProblemError(f"steps must be a daedal.Steps, got {steps!r}")
    found = {field.name: getattr(steps, field.name) for field in fields(steps)}
    found = {name: value for name, value in found.items() if value is not None}
    for name in found:
        if given.get(name) is not None:
            raise InvalidProblemError(f"{name} is given both in steps and as an option; omit one")
    return found


def _sensitivities(known: dict[str, Any]) -> Sensitivities | None:
    names, initial = known["sensitivities"], known.pop("initial_sensitivities")
    errors, method = known.pop("sensitivity_errors"), known.pop("sensitivity_method")
    if isinstance(names, Sensitivities):
        if initial is not None or errors is not True or method != "auto":
            raise InvalidProblemError(
                "initial_sensitivities, sensitivity_errors and sensitivity_method are fields of "
                "daedal.Sensitivities; set them there"
            )
        return names
    if names is None or names is False:
        if initial is not None:
            raise InvalidProblemError("initial_sensitivities is given, but no sensitivities are requested")
        return None
    return Sensitivities(names, initial, errors, method)


_TABLES = {options: table(options) for options in (SolverOptions, DAEOptions, RunOptions)}
_DEFAULTS = {
    options: {name: one.default if one.check is None else one.check(one.default, name) for name, one in shown.items()}
    for options, shown in _TABLES.items()
}


# --- signatures and docstrings ----------------------------------------------------------------------------------------


def takes(options: "type[SolverOptions]", *, rest: str = "method_options") -> Callable[[Function], Function]:
    """Decorate a function of ``**options``: list all options in its signature, and describe them in its docstring.

    The descriptions replace ``{options}``.
    """
    shown = _TABLES[options]

    def decorated(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        known = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default)
            for name, option in shown.items()
            if name not in signature.parameters
        ]
        others = inspect.Parameter(rest, inspect.Parameter.VAR_KEYWORD)
        function.__signature__ = signature.replace(parameters=[*own, *known, others])  # type: ignore[attr-defined]
        if function.__doc__ is not None:
            function.__doc__ = function.__doc__.replace("    {options}\n", textwrap.indent(_described(shown), "    "))
        return function

    return decorated


def _described(shown: Mapping[str, Option]) -> str:
    """Docstring sections, one per group; an option without a description shares that of the next one."""
    text, names, group = "", [], ""
    for name, option in shown.items():
        if option.group != group:
            group = option.group
            text += f"\n{option.group}\n{'-' * len(option.group)}\n"
        names.append(name)
        if not option.about:
            continue
        text += f"{', '.join(names)} : {option.kind}\n"
        text += textwrap.indent(textwrap.fill(option.about, 112, break_on_hyphens=False), "    ") + "\n"
        names = []
    return text.lstrip("\n")
