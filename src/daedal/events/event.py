"""What a user says about an event, and the vector of switching functions a kernel works on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError


@dataclass(frozen=True)
class Event:
    """A switching function whose zeros are located during the integration.

    Parameters
    ----------
    function : callable
        ``function(t, y)`` or ``function(t, y, yp)`` (and the parameters last, when the problem has some); for
        :class:`SemiExplicitDAE` ``function(t, y, z)``. Returns a number, or a vector for several functions at once.
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
    if events is None:
        return None
    given = [events] if isinstance(events, Event) or callable(events) else list(events)
    if not given:
        return None
    calls, directions, terminals, names, sizes = [], [], [], [], []
    for position, event in enumerate(given):
        event = _as_event(event, position)
        function = _with_state(event.function, problem, position)
        size = _size(function(t0, y0.copy(), yp0.copy()), position)
        calls.append(function)
        sizes.append(size)
        directions.append(_spread(event.direction, size, f"events[{position}].direction"))
        terminals.append(_spread(event.terminal, size, f"events[{position}].terminal"))
        names += _names(event, position, size)
    direction = np.concatenate(directions).astype(np.int64)
    if not np.all(np.isin(direction, (-1, 0, 1))):
        raise InvalidProblemError("the direction of an event must be -1, 0 or 1")
    return SwitchingFunctions(
        _stacked(calls, sizes), direction, np.concatenate(terminals).astype(bool), tuple(str(name) for name in names)
    )


def _as_event(event, position) -> Event:
    if isinstance(event, Event):
        return event
    if not callable(event):
        raise InvalidProblemError(f"events[{position}] must be a function or an Event, got {type(event).__name__}")
    # SciPy's convention: attributes on the function.
    direction = int(np.sign(getattr(event, "direction", 0)))
    return Event(event, bool(getattr(event, "terminal", False)), direction, getattr(event, "__name__", None))


def _with_state(function, problem, position):
    """Bring ``function`` to the form function(t, y, yp), whatever of its arguments the user left out."""
    n_y = getattr(problem, "n_y", None)
    tail = () if problem.params is None else (problem.params,)
    count = _positional_arguments(function)
    with_tail = 3 + len(tail)
    if count not in (2, 3, with_tail):
        raise InvalidProblemError(
            f"events[{position}] takes {count} arguments; expected (t, y), (t, y, {'z' if n_y else 'yp'})"
            + (" or with the parameters last" if tail else "")
        )
    if count == 2:
        return lambda t, y, yp: function(t, y)
    extra = tail if count == with_tail else ()
    if n_y is not None:
        return lambda t, y, yp: function(t, y[:n_y], y[n_y:], *extra)
    return lambda t, y, yp: function(t, y, yp, *extra)


def _positional_arguments(function) -> int:
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    except (TypeError, ValueError):
        return 3
    return sum(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters
    )


def _size(value, position) -> int:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.ndim > 1 or array.size == 0:
        raise InvalidProblemError(f"events[{position}] must return a real number or a vector, returned {value!r}")
    return array.size


def _spread(value, size: int, name: str) -> np.ndarray:
    array = np.atleast_1d(np.asarray(value))
    if array.shape not in ((1,), (size,)):
        raise InvalidProblemError(f"{name} has shape {array.shape}; expected a single value or ({size},)")
    return np.broadcast_to(array, (size,)).copy()


def _names(event: Event, position: int, size: int) -> Sequence[str]:
    name = event.name if event.name is not None else getattr(event.function, "__name__", None)
    if name is None or name == "<lambda>":
        name = f"event {position}"
    if isinstance(name, str):
        return [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]
    if len(name) != size:
        raise InvalidProblemError(f"events[{position}].name has {len(name)} entries for {size} functions")
    return list(name)


def _stacked(calls, sizes):
    ends = np.cumsum(sizes)

    def evaluate(t, y, yp):
        values = np.empty(ends[-1])
        for call, end, size in zip(calls, ends, sizes, strict=True):
            values[end - size : end] = call(t, y, yp)
        return values

    return evaluate
