"""Drawings of mechanisms: points as functions of the coordinates, and shapes between them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import daedal

Pair = tuple[float, float]


@dataclass(frozen=True)
class Drawing:
    r"""A planar drawing of a mechanism, x to the right and y upwards.

    Parameters
    ----------
    points : dict
        Names and positions: functions ``q -> (x, y)``, ``(t, q) -> (x, y)`` or ``(t, q, p) -> (x, y)`` of coordinates
        and parameters, or pairs of numbers for fixed points. If the problem is not a mechanical system, q denotes its
        variables.
    rods : sequence of tuples of names
        Rigid rods with joints at their ends; a longer tuple is a chain of rods.
    wheels : sequence of (name, radius, angle)
        Circles with spokes about a point. The angle is a function with the arguments of `points` that returns a number,
        or None for a wheel that does not rotate.
    springs : sequence of pairs of names
        Springs between points.
    bodies : sequence of tuples of names
        Filled polygons with these corners.
    curves : sequence of tuples of names
        Thin lines through points: strings, belts, a moving road.
    masses : sequence of names
        Points drawn as point masses.
    ground : sequence of sequences of (x, y)
        Fixed lines: the floor, a rail, the curve of a bead.
    traces : sequence of names
        Points whose paths are drawn.
    text : str or callable
        A caption, or a function with the arguments of `points` that returns one.
    params : object, optional
        Parameters p; by default those of the problem.

    Examples
    --------
    >>> from daedal.viz import Drawing
    >>> pendulum = Drawing(
    ...     points={"pivot": (0.0, 0.0), "bob": lambda q: (q[0], q[1])},
    ...     rods=[("pivot", "bob")],
    ...     masses=["bob"],
    ...     traces=["bob"],
    ... )
    >>> pendulum.fixed
    ('pivot',)
    """

    points: Mapping[str, Any]
    rods: Sequence[Sequence[str]] = ()
    wheels: Sequence[tuple[str, float, Any]] = ()
    springs: Sequence[Sequence[str]] = ()
    bodies: Sequence[Sequence[str]] = ()
    curves: Sequence[Sequence[str]] = ()
    masses: Sequence[str] = ()
    ground: Sequence[Sequence[Pair]] = ()
    traces: Sequence[str] = ()
    text: Any = ""
    params: Any = None

    def __post_init__(self):
        if not isinstance(self.points, Mapping) or not self.points:
            raise daedal.InvalidProblemError(
                f"points must be a dict of functions q -> (x, y) by name, got {type(self.points).__name__}"
            )
        for name, place in self.points.items():
            if not callable(place):
                _pair(place, f"points[{name!r}]")
        for part, least in (("rods", 2), ("springs", 2), ("bodies", 3), ("curves", 2)):
            for names in getattr(self, part):
                self._check_names(part, names, least)
        for part in ("masses", "traces"):
            if isinstance(getattr(self, part), str):
                raise daedal.InvalidProblemError(f"{part} must be a list of names, got {getattr(self, part)!r}")
            for name in getattr(self, part):
                self._check_names(part, (name,), 1)
        for wheel in self.wheels:
            self._check_wheel(wheel)
        for line in self.ground:
            for place in line:
                _pair(place, "ground")

    def _check_names(self, part: str, names, least: int) -> None:
        if isinstance(names, str) or not isinstance(names, Sequence) or len(names) < least:
            raise daedal.InvalidProblemError(f"{part}: {names!r} must name at least {least} points")
        for name in names:
            if name not in self.points:
                raise daedal.InvalidProblemError(
                    f"{part}: there is no point {name!r}; the points are {', '.join(self.points)}"
                )

    def _check_wheel(self, wheel) -> None:
        if isinstance(wheel, str) or not isinstance(wheel, Sequence) or len(wheel) != 3:
            raise daedal.InvalidProblemError(f"wheels: {wheel!r} must be (name, radius, angle)")
        name, radius, angle = wheel
        self._check_names("wheels", (name,), 1)
        if not (isinstance(radius, (int, float)) and np.isfinite(radius) and radius > 0.0):
            raise daedal.InvalidProblemError(f"wheels: the radius {radius!r} of {name!r} must be a positive number")
        if angle is not None and not callable(angle):
            raise daedal.InvalidProblemError(f"wheels: the angle of {name!r} must be a function q -> number, or None")

    @property
    def fixed(self) -> tuple[str, ...]:
        """Names of the fixed points."""
        return tuple(name for name, place in self.points.items() if not callable(place))


def _pair(value: Any, what: str) -> Pair:
    try:
        x, y = (float(part) for part in value)
    except (TypeError, ValueError):
        raise daedal.InvalidProblemError(f"{what} must be two numbers (x, y), got {value!r}") from None
    if not (np.isfinite(x) and np.isfinite(y)):
        raise daedal.InvalidProblemError(f"{what} must be finite, got ({x}, {y})")
    return x, y


def required_arguments(function: Callable[..., Any]) -> int:
    """Number of positional arguments without defaults; 0 for a built-in function without a signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in kinds and one.default is one.empty for one in parameters)


def _of_state(function: Callable[..., Any], params: Any) -> Callable[[float, np.ndarray], Any]:
    """Convert a function of q, (t, q) or (t, q, p) to a function of (t, q)."""
    count = required_arguments(function)
    if count == 3:
        return lambda t, q: function(t, q, params)
    return function if count == 2 else lambda t, q: function(q)


@dataclass(frozen=True)
class MovingDrawing:
    """A drawing evaluated along a motion: at the times `t`, with the states q in columns."""

    drawing: Drawing
    t: np.ndarray
    q: np.ndarray

    @cached_property
    def places(self) -> dict[str, np.ndarray]:
        """Positions (2, nt) of all points by name."""
        found = {}
        for name, place in self.drawing.points.items():
            if not callable(place):
                found[name] = np.repeat(np.array(place, dtype=float)[:, None], self.t.size, axis=1)
                continue
            function = _of_state(place, self.drawing.params)
            pairs = [_pair(function(t, q), f"points[{name!r}] at t = {t:g}") for t, q in zip(self.t, self.q.T)]
            found[name] = np.array(pairs).T
        return found

    @cached_property
    def angles(self) -> list[np.ndarray | None]:
        """Angles (nt,) of the wheels; None for wheels that do not rotate."""
        found: list[np.ndarray | None] = []
        for name, _, angle in self.drawing.wheels:
            if angle is None:
                found.append(None)
                continue
            function = _of_state(angle, self.drawing.params)
            values = np.array([float(function(t, q)) for t, q in zip(self.t, self.q.T)])
            if not np.all(np.isfinite(values)):
                t = self.t[np.argmin(np.isfinite(values))]
                raise daedal.InvalidProblemError(f"wheels: the angle of {name!r} is not finite at t = {t:g}")
            found.append(values)
        return found

    @cached_property
    def captions(self) -> list[str]:
        """Captions at all times."""
        text = self.drawing.text
        if not callable(text):
            return [str(text)] * self.t.size
        function = _of_state(text, self.drawing.params)
        return [str(function(t, q)) for t, q in zip(self.t, self.q.T)]

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top over all times."""
        corners = [place for place in self.places.values()]
        corners += [np.array(line, dtype=float).T for line in self.drawing.ground if len(line)]
        for name, radius, _ in self.drawing.wheels:
            corners += [self.places[name] - radius, self.places[name] + radius]
        x, y = np.concatenate(corners, axis=1)
        return float(x.min()), float(x.max()), float(y.min()), float(y.max())

    @property
    def extent(self) -> float:
        """Longer side of the bounds; 1 if the bounds are a single point."""
        left, right, bottom, top = self.bounds
        return max(right - left, top - bottom) or 1.0

    def window(self, flattest: float, steepest: float, margin: float = 0.08) -> tuple[float, float, float, float]:
        """The bounds with a margin, extended so that height/width is between `flattest` and `steepest`."""
        left, right, bottom, top = self.bounds
        gap = margin * self.extent
        width, height = right - left + 2.0 * gap, top - bottom + 2.0 * gap
        wide, high = max(width, height / steepest), max(height, width * flattest)
        return (
            left - gap - 0.5 * (wide - width),
            right + gap + 0.5 * (wide - width),
            bottom - gap - 0.5 * (high - height),
            top + gap + 0.5 * (high - height),
        )

    @property
    def longest_move(self) -> float:
        """Largest displacement of a point between two times, relative to the extent."""
        moves = [np.hypot(*np.diff(place, axis=1)).max(initial=0.0) for place in self.places.values()]
        return float(max(moves)) / self.extent
