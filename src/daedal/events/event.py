"""What a user says about an event, and the vector of switching functions a kernel works on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.problems.checks import check_callable
from daedal.problems.compile import last_argument


@dataclass(frozen=True)
class Event:
    """A switching function whose zeros are located during the integration.

    Parameters
    ----------
    function : callable
        ``function(t, y)`` or ``function(t, y, yp)`` (and the parameters last, when the problem has some); for
        :class:`SemiExplicitDAE` ``function(t, y, z)``. Returns a number, or a vector for several functions at
        once.
    terminal : bool or sequence of bool
        Whether the integration stops there.
    direction : {0, 1, -1} or sequence
        Only changes from - to + (1), only from + to - (-1), or both (0), in the direction of integration.
    name : str or sequence of str, optional
        How the event is called in ``sol.events``.

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
    terminal: Any = False
    direction: Any = 0
    name: Any = None


@dataclass(frozen=True)
class EventRecord:
    """An event that happened: when, with the state there, which function, and the direction of its change."""

    t: float
    y: np.ndarray
    yp: np.ndarray
    index: int
    name: str
    direction: int
    terminal: bool


@dataclass(frozen=True)
class SwitchingFunctions:
    """All switching functions of a run, stacked; ``evaluate(t, y, yp)`` returns the vector of their values."""

    evaluate: Callable[[float, np.ndarray, np.ndarray], np.ndarray]
    direction: np.ndarray
    terminal: np.ndarray
    names: tuple[str, ...]


def gather_events(events, problem, t0: float, y0: np.ndarray, yp0: np.ndarray) -> SwitchingFunctions | None:
    """Check the user's events at the initial point and stack them; None without events."""
    given = _as_list(events)
    if not given:
        return None
    calls = []
    directions: list[int] = []
    terminals: list[bool] = []
    names: list[str] = []
    for position, event in enumerate(given):
        event = _as_event(event, position)
        call = _checked(_with_state(event.function, problem, position), position, _title(event, position))
        size = call(t0, y0.copy(), yp0.copy()).size
        calls.append((call, size))
        directions += _spread(event.direction, size, (-1, 0, 1), f"events[{position}].direction")
        terminals += _spread(event.terminal, size, (False, True), f"events[{position}].terminal")
        names += _names(event, position, size)
    direction, terminal = np.array(directions, dtype=np.int64), np.array(terminals, dtype=bool)
    return SwitchingFunctions(_stacked(calls), direction, terminal, tuple(names))


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
    return Event(event, bool(getattr(event, "terminal", False)), direction)


def _with_state(function, problem, position):
    """Bring ``function`` to the form function(t, y, yp), whatever of its arguments the user left out."""
    n_y = getattr(problem, "n_y", None)
    has_params = problem.params is not None
    count = _positional_arguments(function)
    if count not in (2, 3, 3 + has_params):
        raise InvalidProblemError(
            f"events[{position}] takes {count} arguments; expected (t, y), (t, y, {'z' if n_y else 'yp'})"
            + (" or with the parameters last" if has_params else "")
        )
    if count == 2:
        return lambda t, y, yp: function(t, y)
    extra = last_argument(function, problem.params) if count == 4 else ()
    if n_y is not None:
        return lambda t, y, yp: function(t, y[:n_y], y[n_y:], *extra)
    return lambda t, y, yp: function(t, y, yp, *extra)


def _positional_arguments(function) -> int:
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    except (TypeError, ValueError):
        return 3
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)


def _title(event: Event, position: int) -> str:
    """What the event is called in messages."""
    name = event.name if isinstance(event.name, str) else getattr(event.function, "__name__", "<lambda>")
    return f"event {position}" if name == "<lambda>" else name


def _checked(function, position: int, title: str):
    """``function(t, y, yp)`` with its result as an array: of any size, or of the `size` that it had at the start."""

    def call(t, y, yp, size=None) -> np.ndarray:
        try:
            value = function(t, y, yp)
        except Unevaluable as error:
            message = f"events[{position}] ({title}) cannot be evaluated at t = {t:g}: {error}"
            raise InvalidProblemError(message.rstrip(": ")) from error
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


def _spread(value, size: int, allowed: tuple, name: str) -> list:
    """`value` for each of `size` functions, where a single one counts for all."""
    values = list(value) if np.iterable(value) else [value] * size
    if len(values) != size or not all(v in allowed for v in values):
        raise InvalidProblemError(f"{name} must be one of {allowed}, or one for each function ({size}), got {value!r}")
    return values


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
    ends = np.cumsum([size for _, size in calls])

    def evaluate(t, y, yp):
        values = np.empty(ends[-1])
        for (call, size), end in zip(calls, ends, strict=True):
            values[end - size : end] = call(t, y, yp, size)
        return values

    return evaluate
