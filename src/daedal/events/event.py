"""Events defined by users, and the vector of switching functions for kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.kernels.functions import is_compiled, parameter_vector
from daedal.problems.arguments import FIRST, PARAMS, SECOND, TIME, WHOLE, StateArguments, in_standard_form, state_split
from daedal.problems.checks import check_callable
from daedal.problems.compile import last_argument
from daedal.problems.named_inputs import in_driven_form
from daedal.problems.symbols import Driven

_LOCATIONS = ("roots", "monitoring", "auto")
_INSIDE = ("ends", "extrema")


@dataclass(frozen=True)
class Event:
    r"""A switching function whose zeros are located during the integration.

    Parameters
    ----------
    function : callable
        ``function(t, y)``, ``function(t, y, yp)``, or ``function(t, y, p)`` and ``function(t, y, yp, p)`` if the
        problem has parameters; (y, z) for :class:`SemiExplicitDAE` and (q, v) for mechanisms instead of (y, yp).
        Arguments are recognised by name, including those of the problem's own functions, and by position if that is
        unambiguous.
        Returns a number, or a vector for several functions at once. Functions compiled with ``numba.njit`` are called
        without the interpreter, if all functions of the run are compiled.
    terminal : bool or int, or a sequence of them
        Whether the event stops the integration, or the number of the occurrence that does. Other events are only
        recorded.
    direction : {0, 1, -1} or sequence
        Sign changes that count: from - to + (1), from + to - (-1), or both (0), in the direction of integration.
    name : str or sequence of str, optional
        Name of the event in ``sol.events``.
    inside : {"extrema", "ends"}
        "extrema" detects pairs of crossings inside a step, at the cost of one more evaluation per step, and a few
        more if the function turns back towards zero; "ends" compares only the signs at the ends of steps.
    touch : bool or sequence of bool
        Whether an extremum closer to zero than `delta`, without a sign change, counts.
    location : {"roots", "monitoring", "auto"} or sequence
        "roots": by root finding on the interpolant. "monitoring": the event is a step that ends with :math:`|s| \le
        \delta`; steps that would jump over this layer are repeated with a smaller step size. "auto": root finding if
        the function is nearly linear from step to step, otherwise monitoring.
    delta : float or sequence, optional
        Half width of the layer, in units of the function; the largest rtol by default.
    tol : float or sequence, optional
        Time resolution of roots; by default round-off, :math:`8 u (|t| + |h|)`, which costs two or three evaluations
        more than a coarse one.

    Notes
    -----
    The rules, for every method:

    * A function that is zero at the start of the run does not fire there; its initial sign is the one that it takes
      immediately afterwards.
    * A zero at the end of the run counts.
    * A zero that is touched but not crossed does not count, unless `touch` is set.
    * Functions with roots closer than the time resolution fire together, at the same time, in the order of the events.
      If one of them is terminal, all of them are recorded.
    * The recorded time lies just after the root: the function has its new sign there.
    * A function that jumps across zero fires at the jump.
    * With monitoring the event is the arrival in the layer: the direction is that of the approach, and there is no
      other event until the function has left the layer. A run that starts in the layer starts after the event.

    Examples
    --------
    >>> import daedal
    >>> ground = daedal.Event(lambda t, y: y[0], terminal=True, direction=-1, name="ground")
    >>> sol = daedal.solve_dae(
    ...     lambda t, y, yp: [yp[0] - y[1], yp[1] + 9.81], (0.0, 10.0), [1.0, 0.0], [0.0, -9.81], events=ground
    ... )
    >>> print(f"{sol.t[-1]:.4f} {sol.status}")
    0.4515 event
    """

    function: Callable[..., Any]
    terminal: bool | int | Sequence[bool | int] = False
    direction: Any = 0
    name: str | Sequence[str] | None = None
    inside: Any = "extrema"
    touch: Any = False
    location: Any = "roots"
    delta: float | Sequence[float | None] | None = None
    tol: float | Sequence[float | None] | None = None


@dataclass(frozen=True)
class GuardEvent(Event):
    """The guards of a mode as an event; see `Guards`.

    Attributes
    ----------
    guards : object, optional
        ``guards.switching(event, sizes, n, params)`` returns the guards as switching functions, or None;
        ``guards.traced(sizes, n, params)`` returns their graph, from which bounds are computed.
    held : tuple
        See :class:`SwitchingFunctions`.
    own : callable
        The function of (t, y, y') that `guards` evaluates; any other `function` is an ordinary event.
    """

    guards: Any = None
    held: tuple[tuple[int, int, float], ...] = ()
    own: Any = None

    @property
    def is_own(self) -> bool:
        """Whether the function is that of the guards."""
        return self.function is self.own


@dataclass(frozen=True)
class EventRecord:
    """A recorded event: time and state, the function, the direction of its change, and whether it ended the run.

    `kind` is "event" for user events, "switch" if the equations change branch, and "slides" or "leaves" if the solution
    begins or ceases to slide along the surface between two branches. `sensitivity` holds the derivatives of the time
    {parameter: dt/dp} in a run with sensitivities. `located` describes the search for zeros: "enclosed" (none is
    missed); "sampled" (at a few points of every step); "known" in advance.

    Examples
    --------
    >>> import daedal
    >>> half = daedal.Event(lambda t, y: y[0] - 0.5, name="half")
    >>> event = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], events=half).events[0]
    >>> print(f"{event.t:.4f} {event.y[0]:.2f}", event.name, event.direction)
    0.6931 0.50 half -1
    """

    t: float
    y: np.ndarray
    yp: np.ndarray
    index: int
    name: str
    direction: int
    terminal: bool
    kind: str = "event"
    sensitivity: Any = None
    located: str = "sampled"
    columns: ClassVar[tuple[str, ...]] = ("t", "name", "kind", "direction", "terminal", "located")  # columns of a table


@dataclass(frozen=True)
class Enclosed:
    """Some of the switching functions of a run, with a program that bounds them over a piece of a step.

    Attributes
    ----------
    program : Enclosure
        See :mod:`daedal.symbolic.tracing.switching_functions`.
    first : int
        Index of the first of these functions.
    read : callable
        ``read(params)`` returns the numbers of the parameters.
    params : object
    """

    program: Any
    first: int
    read: Callable[[Any], np.ndarray] | None = None
    params: Any = None


@dataclass(frozen=True)
class SwitchingFunctions:
    """All switching functions of a run, stacked; ``evaluate(t, y, yp)`` returns the vector of their values.

    The options of :class:`Event` are vectors with one entry for each function. If all functions are compiled,
    ``compiled(t, y, yp[, params])`` computes the same as ``plain``. No sign change of `enclosed` functions, which
    depend on the leading unknowns, is missed.
    """

    evaluate: Callable[[float, np.ndarray, np.ndarray], np.ndarray]
    names: tuple[str, ...]
    initial: np.ndarray  # values at the start
    direction: np.ndarray
    terminal: np.ndarray  # occurrence that ends the run; 0 if none does
    interior: np.ndarray
    touch: np.ndarray
    location: np.ndarray  # 0: roots, 1: monitoring, 2: auto
    delta: np.ndarray  # NaN if determined by the tolerance
    tolerance: np.ndarray
    occurred: np.ndarray  # number of occurrences before this run
    plain: Callable[[float, np.ndarray, np.ndarray], np.ndarray] | None = None
    compiled: Any = None
    params: Any = None
    sizes: tuple[int, ...] = ()  # numbers of values of the user's functions
    enclosed: tuple[Enclosed, ...] = ()
    held: tuple[tuple[int, int, float], ...] = ()
    """Functions with a fixed sign for a time after the start, independent of round-off: (function, sign, time)."""

    @property
    def native(self):
        """The compiled function that can replace `evaluate`, if there is one."""
        return self.compiled if self.evaluate is self.plain else None

    def extended(self, evaluate, names: tuple[str, ...], compiled=None, params=None) -> "SwitchingFunctions":
        """A copy with additional functions appended; these end the run when they change from + to -."""
        tails = {"initial": 1.0, "direction": -1, "terminal": 1, "interior": True, "touch": False, "location": 0}
        tails |= {"delta": np.nan, "tolerance": 0.0, "occurred": 0}
        longer = {
            name: np.append(getattr(self, name), np.full(len(names), value, dtype=getattr(self, name).dtype))
            for name, value in tails.items()
        }
        fields = {"evaluate": evaluate, "plain": evaluate, "names": (*self.names, *names), **longer}
        return replace(self, **fields, compiled=compiled, params=params)

    def with_enclosed(self, *enclosed: Enclosed) -> "SwitchingFunctions":
        """A copy with enclosures for some functions."""
        return replace(self, enclosed=(*self.enclosed, *enclosed))

    def with_parameters(self, params: Any, evaluate: Callable[..., Any]) -> "SwitchingFunctions":
        """A copy with other parameters, which `evaluate` must already use."""
        enclosed = tuple(replace(one, params=params) for one in self.enclosed)
        return replace(self, evaluate=evaluate, plain=evaluate, params=params, enclosed=enclosed)

    def is_like(self, other: "SwitchingFunctions") -> bool:
        """Whether `other` has the same functions and differs only in parameters, directions and signs at the start."""
        if len(self.enclosed) != len(other.enclosed):
            return False
        if self.evaluate is not other.evaluate and (self.native is None or other.native is None):
            return False
        shared = all(getattr(self, name) is getattr(other, name) for name in _SHARED)
        return shared and all(a.program is b.program for a, b in zip(self.enclosed, other.enclosed))

    def checked(self, values: np.ndarray) -> np.ndarray:
        """Values of the compiled functions; raises if one of them is NaN."""
        bad = np.flatnonzero(np.isnan(values))
        if bad.size:
            raise InvalidProblemError(f"events: {self.names[bad[0]]} returned nan; it must return numbers")
        return values


_OWN = {"evaluate", "plain", "params", "enclosed", "direction", "initial", "occurred", "held"}
_SHARED = [item.name for item in fields(SwitchingFunctions) if item.name not in _OWN]


def no_functions() -> SwitchingFunctions:
    """An empty vector of switching functions."""
    kinds: dict[str, Any] = {"direction": int, "terminal": int, "location": int, "interior": bool, "touch": bool}
    arrays: dict[str, Any] = {name: np.zeros(0, dtype=kinds.get(name, float)) for name in vars(_Stack())}
    return SwitchingFunctions(lambda t, y, yp: np.empty(0), (), occurred=np.zeros(0, dtype=np.int64), **arrays)


@dataclass
class _Stack:
    """Accumulates the options of functions."""

    initial: list[float] = field(default_factory=list)
    direction: list[int] = field(default_factory=list)
    terminal: list[int] = field(default_factory=list)
    interior: list[bool] = field(default_factory=list)
    touch: list[bool] = field(default_factory=list)
    location: list[int] = field(default_factory=list)
    delta: list[float] = field(default_factory=list)
    tolerance: list[float] = field(default_factory=list)

    def arrays(self) -> dict[str, Any]:
        """The accumulated options, by name."""
        return {name: np.array(values) for name, values in vars(self).items()}

    def add(self, event: Event, values: np.ndarray, where: str):
        size = values.size
        self.initial += values.reshape(-1).astype(float).tolist()
        self.direction += _spread(event.direction, size, (-1, 0, 1), f"{where}.direction")
        self.terminal += _occurrences(event.terminal, size, f"{where}.terminal")
        self.interior += [_INSIDE.index(v) == 1 for v in _spread(event.inside, size, _INSIDE, f"{where}.inside")]
        self.touch += _spread(event.touch, size, (False, True), f"{where}.touch")
        places = _spread(event.location, size, _LOCATIONS, f"{where}.location")
        self.location += [_LOCATIONS.index(v) for v in places]
        self.delta += _lengths(event.delta, size, np.nan, f"{where}.delta")
        self.tolerance += _lengths(event.tol, size, 0.0, f"{where}.tol")


def gather_events(events, problem, t0: float, y0: np.ndarray, yp0: np.ndarray) -> SwitchingFunctions | None:
    """Check the user's events at the initial point, and stack them; None without events."""
    given = _as_list(events)
    if not given:
        return None
    calls, parts = [], []
    names: list[str] = []
    held: list[tuple[int, int, float]] = []
    stack = _Stack()
    for position, event in enumerate(given):
        event = _as_event(event, position)
        call = _checked(with_state(event.function, problem, f"events[{position}]"), position, _title(event, position))
        values = call(t0, y0.copy(), yp0.copy())
        calls.append((call, values.size))
        parts.append((event.function, values.size if values.ndim else 0))
        stack.add(event, values, f"events[{position}]")
        if isinstance(event, GuardEvent):
            held += [(len(names) + i, side, time) for i, side, time in event.held]
        names += _names(event, position, values.size)
    evaluate = _stacked(calls)
    return SwitchingFunctions(
        evaluate=evaluate,
        plain=evaluate,
        names=tuple(names),
        occurred=np.zeros(len(names), dtype=np.int64),
        compiled=_compiled(parts, problem, y0.size),
        params=problem.params,
        sizes=tuple(size for _, size in calls),
        held=tuple(held),
        **stack.arrays(),
    )


def named_events(events) -> list[Event]:
    """The user's events as a list, each with a distinct name."""
    checked = [_as_event(event, i) for i, event in enumerate(_as_list(events))]
    return [event if event.name else replace(event, name=_title(event, i)) for i, event in enumerate(checked)]


def functions_of(event: Event, position: int, size: int) -> list[tuple[str, int, int]]:
    """Name, direction, and terminal occurrence (0 for none) of each of an event's `size` functions."""
    directions = _spread(event.direction, size, (-1, 0, 1), f"events[{position}].direction")
    terminal = _occurrences(event.terminal, size, f"events[{position}].terminal")
    return list(zip(_names(event, position, size), directions, terminal, strict=True))


def _as_list(events) -> list:
    if events is None:
        return []
    if isinstance(events, Event) or callable(events):
        return [events]
    try:
        return list(events)
    except TypeError:
        raise InvalidProblemError(
            f"events must be a function, an Event or a list of them, got {type(events).__name__}"
        ) from None


def _as_event(event, position) -> Event:
    if isinstance(event, Event):
        check_callable(event.function, f"events[{position}].function")
        return event
    if not callable(event):
        raise InvalidProblemError(f"events[{position}] must be a function or an Event, got {type(event).__name__}")
    # SciPy's convention: attributes on the function.
    direction = getattr(event, "direction", 0)
    if isinstance(direction, Real):
        direction = int(float(direction) > 0.0) - int(float(direction) < 0.0)
    return Event(event, getattr(event, "terminal", False), direction)


def state_arguments_of(problem: Any) -> StateArguments:
    """The arguments that event functions of `problem`, which may also be a view of a problem, can have."""
    shown = getattr(problem, "shown_by", problem)
    return StateArguments(shown, problem.params is not None, state_split(shown) is not None)


def standard_functions(events, problem, names: Sequence[str] | None = None) -> list[tuple[Any, int]]:
    """Event functions in the form called by traced code, (t, y[, second[, params]]), and their numbers of arguments.

    Messages refer to them by `names`, by default as entries of ``events``.
    """
    arguments = state_arguments_of(problem)
    functions = [in_driven_form(event.function, problem.params) for event in named_events(events)]
    return [
        in_standard_form(function, arguments.of(function, names[i] if names else f"events[{i}]"), arguments.is_split)
        for i, function in enumerate(functions)
    ]


def with_state(function, problem, name: str):
    """Convert ``function`` to the form function(t, y, yp), whatever its arguments; messages refer to it by `name`."""
    arguments, n_y = state_arguments_of(problem), getattr(problem, "n_y", None)
    function = in_driven_form(function, problem.params)
    places = arguments.of(function, name)
    extra = last_argument(function, problem.params) if PARAMS in places else ()
    if places == (TIME, WHOLE):
        return lambda t, y, yp: function(t, y)
    if places == (TIME, WHOLE, PARAMS):
        return lambda t, y, yp: function(t, y, *extra)
    if places[:3] == (TIME, FIRST, SECOND):
        if n_y is not None:
            return lambda t, y, yp: function(t, y[:n_y], y[n_y:], *extra)
        return lambda t, y, yp: function(t, y, yp, *extra)

    def in_another_order(t, y, yp):
        first, second = (y, yp) if n_y is None else (y[:n_y], y[n_y:])
        given = {TIME: t, WHOLE: y, FIRST: first, SECOND: second, PARAMS: extra and extra[0]}
        return function(*[given[place] for place in places])

    return in_another_order


def _compiled(parts, problem, n: int):
    """The compiled stack of all functions, for a state that begins with n variables; None unless all are compiled."""
    if isinstance(problem.params, Driven) or not all(is_compiled(function) for function, _ in parts):
        return None
    from daedal.events.compiled import CompiledPart, stacked

    known, n_y = state_arguments_of(problem), getattr(problem, "n_y", None)
    if known.has_params:
        parameter_vector(problem.params)
    first, second = (f"y[:{n}]", f"yp[:{n}]") if n_y is None else (f"y[:{n_y}]", f"y[{n_y}:{n}]")
    text = {TIME: "t", WHOLE: f"y[:{n}]", FIRST: first, SECOND: second, PARAMS: "p"}
    spelt = [
        CompiledPart(f, ", ".join(text[place] for place in known.of(f, f"events[{i}]")), size)
        for i, (f, size) in enumerate(parts)
    ]
    return stacked(tuple(spelt), known.has_params)


def _title(event: Event, position: int) -> str:
    """Name of the event in messages."""
    name = event.name if isinstance(event.name, str) else getattr(event.function, "__name__", "<lambda>")
    return f"event {position}" if name == "<lambda>" else name


def _checked(function, position: int, title: str):
    """``function(t, y, yp, size=None)`` with a check of its result, which must have length `size` if that is given."""

    def call(t, y, yp, size=None):
        try:
            value = function(t, y, yp)
        except Unevaluable as error:
            message = f"events[{position}] ({title}) cannot be evaluated at t = {t:g}: {error}"
            raise InvalidProblemError(message.rstrip(": ")) from error
        if size == 1 and isinstance(value, float) and value == value:
            return value
        try:
            array = np.asarray(value)
        except ValueError:  # nested sequences of different lengths
            array = np.empty(0)
        if (
            array.dtype.kind in "fiub"
            and array.ndim <= 1
            and (array.size == size if size else array.size > 0)
            and not np.isnan(array).any()
        ):
            return array
        expected = (
            f"numbers other than NaN, as many as at the start ({size})"
            if size
            else "a number other than NaN, or a vector"
        )
        raise InvalidProblemError(f"events[{position}] must return {expected}; {title} returned {value!r} at t = {t:g}")

    return call


def _each(value, size: int) -> list:
    """`value` for each of `size` functions; a single value is repeated."""
    return list(value) if np.iterable(value) and not isinstance(value, str) else [value] * size


def _spread(value, size: int, allowed: tuple, name: str) -> list:
    """One of the allowed values for each of `size` functions."""
    values = _each(value, size)
    if len(values) != size or not all(any(v is a or v == a for a in allowed) for v in values):
        raise InvalidProblemError(f"{name} must be one of {allowed}, or one for each function ({size}), got {value!r}")
    return values


def _occurrences(value, size: int, name: str) -> list[int]:
    """For each function the number of the occurrence that ends the run, or 0."""
    values = _each(value, size)
    if len(values) != size or not all(isinstance(v, (bool, int, np.bool_, np.integer)) and v >= 0 for v in values):
        raise InvalidProblemError(
            f"{name} must be True, False or the number of the occurrence that ends the run, or one for each function "
            f"({size}), got {value!r}"
        )
    return [int(v) for v in values]


def _is_number(value) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _lengths(value, size: int, default: float, name: str) -> list[float]:
    """A positive number for each of `size` functions; None is replaced by `default`."""
    values = _each(value, size)
    good = [v is None or (_is_number(v) and 0.0 < float(v) < np.inf) for v in values]
    if len(values) != size or not all(good):
        raise InvalidProblemError(f"{name} must be a positive number, or one for each function ({size}), got {value!r}")
    return [default if v is None else float(v) for v in values]


def _names(event: Event, position: int, size: int) -> Sequence[str]:
    name = _title(event, position) if event.name is None else event.name
    if isinstance(name, str):
        return [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]
    if not isinstance(name, Sequence) or len(name) != size or not all(isinstance(entry, str) for entry in name):
        raise InvalidProblemError(
            f"events[{position}].name must be a string, or one for each function ({size}), got {name!r}"
        )
    return name


def _stacked(calls):
    """All functions, stacked; the result of a single function need not be an array."""
    if len(calls) == 1:
        [(only, count)] = calls
        return lambda t, y, yp: only(t, y, yp, count)
    ends = np.cumsum([size for _, size in calls])

    def evaluate(t, y, yp):
        values = np.empty(ends[-1])
        for (call, size), end in zip(calls, ends, strict=True):
            values[end - size : end] = call(t, y, yp, size)
        return values

    return evaluate
