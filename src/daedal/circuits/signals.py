"""Signals of independent sources: constants, sines, pulses and piecewise linear functions, as in SPICE.

Levels and frequencies are parameters of the problem, read by ``value``; times of corners are constants, since they are
break points of runs. All signals are right-continuous.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError

Value = Callable[[str], Any]
MOST_CORNERS = 100_000


@dataclass(frozen=True)
class Constant:
    """A constant value.

    Examples
    --------
    >>> from daedal import circuits
    >>> circuit = circuits.parse("V1 a 0 12\\nR1 a 0 1k")
    >>> print(circuit.elements[0].signal)
    Constant(level=12.0)
    """

    level: float = 0.0

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters by name; the unnamed one has the name of the source."""
        return {"": self.level}

    def at(self, t: Any, value: Value) -> Any:
        """The signal at `t`; ``value(name)`` reads a parameter."""
        return value("")

    def corners(self, t0: float, t1: float) -> list[float]:
        """The times between t0 and t1 at which the signal has a kink or a jump."""
        return []


@dataclass(frozen=True)
class Sine:
    """``offset + amplitude exp(-damping s) sin(2 pi frequency s + phase)`` with s = t - delay; phase in degrees.

    Before `delay`, the value is that at `delay`.

    Examples
    --------
    >>> from daedal import circuits
    >>> circuit = circuits.parse("V1 a 0 SIN(0 1 50)\\nR1 a 0 1k")
    >>> print(circuit.elements[0].signal)
    Sine(offset=0.0, amplitude=1.0, frequency=50.0, delay=0.0, damping=0.0, phase=0.0)
    """

    offset: float
    amplitude: float
    frequency: float
    delay: float = 0.0
    damping: float = 0.0
    phase: float = 0.0

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters by name."""
        names = ("offset", "amplitude", "frequency", "damping", "phase")
        return {name: getattr(self, name) for name in names if name != "damping" or self.damping != 0.0}

    def at(self, t: Any, value: Value) -> Any:
        """The signal at `t`."""
        s = t - self.delay
        if self.delay > 0.0:
            s = np.where(t < self.delay, 0.0, s)
        wave = value("amplitude") * np.sin(2.0 * np.pi * value("frequency") * s + np.pi / 180.0 * value("phase"))
        if self.damping != 0.0:
            wave = wave * np.exp(-value("damping") * s)
        return value("offset") + wave

    def corners(self, t0: float, t1: float) -> list[float]:
        """The end of the delay."""
        return [self.delay] if self.delay > 0.0 and t0 < self.delay < t1 else []


@dataclass(frozen=True)
class Pulse:
    """A pulse that rises from `low` to `high` within `rise`, is constant for `width` and returns within `fall`.

    It is repeated with `period`, if given. A `rise` or `fall` of 0 is a jump.

    Examples
    --------
    >>> from daedal import circuits
    >>> circuit = circuits.parse("V1 a 0 PULSE(0 5 1u 1n 1n 10u)\\nR1 a b 1k\\nC1 b 0 1u")
    >>> print(circuit.elements[0].signal)
    Pulse(low=0.0, high=5.0, delay=1e-06, rise=1e-09, fall=1e-09, width=1e-05, period=inf)
    """

    low: float
    high: float
    delay: float = 0.0
    rise: float = 0.0
    fall: float = 0.0
    width: float = np.inf
    period: float = np.inf

    def __post_init__(self):
        if min(self.delay, self.rise, self.fall, self.width) < 0.0:
            raise InvalidProblemError("delay, rise, fall and width of a pulse must not be negative")
        if not self.rise + self.width + self.fall <= self.period or self.period <= 0.0:
            raise InvalidProblemError(
                f"rise + width + fall of a pulse, {self.rise + self.width + self.fall:g}, must not be longer than its "
                f"period, {self.period:g}"
            )

    @property
    def parameters(self) -> dict[str, float]:
        """The two levels."""
        return {"low": self.low, "high": self.high}

    @property
    def _edges(self) -> tuple[float, float, float]:
        """Ends of rise, plateau and fall."""
        return self.rise, self.rise + self.width, self.rise + self.width + self.fall

    def at(self, t: Any, value: Value) -> Any:
        """The signal at `t`."""
        s = t - self.delay
        if self.period < np.inf:
            s = np.where(s < 0.0, s, s - self.period * np.floor(s / self.period))
        low, high = value("low"), value("high")
        risen, plateau, fallen = self._edges
        course = low
        if plateau < np.inf:
            down = high - (high - low) * (s - plateau) / self.fall if self.fall > 0.0 else low
            course = np.where(s < plateau, high, np.where(s < fallen, down, low))
        else:
            course = high
        if self.rise > 0.0:
            course = np.where(s < risen, low + (high - low) * s / self.rise, course)
        return np.where(s < 0.0, low, course)

    def corners(self, t0: float, t1: float) -> list[float]:
        """Start and end of all edges."""
        found: list[float] = []
        first = max(0.0, np.floor((t0 - self.delay) / self.period)) if self.period < np.inf else 0.0
        last = max(0.0, np.floor((t1 - self.delay) / self.period)) if self.period < np.inf else 0.0
        if last - first > MOST_CORNERS:
            raise InvalidProblemError(
                f"a pulse of period {self.period:g} repeats {last - first:.3g} times between {t0:g} and {t1:g}, more "
                f"than {MOST_CORNERS}; shorten the interval"
            )
        for k in range(int(first), int(last) + 1):
            begin = self.delay + (k * self.period if k else 0.0)
            found += [begin + edge for edge in (0.0, *self._edges) if t0 < begin + edge < t1]
        return sorted(set(found))


@dataclass(frozen=True)
class PiecewiseLinear:
    """Linear interpolation between points (time, value); constant before the first and after the last.

    Examples
    --------
    >>> from daedal import circuits
    >>> circuit = circuits.parse("V1 a 0 PWL(0 0 1m 5)\\nR1 a 0 1k")
    >>> print(circuit.elements[0].signal.corners(0.0, 1.0))
    [0.001]
    """

    times: tuple[float, ...]
    values: tuple[float, ...]
    parameters: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self):
        if len(self.times) < 2 or len(self.times) != len(self.values):
            raise InvalidProblemError("PWL needs at least two pairs of time and value")
        for earlier, later in zip(self.times, self.times[1:]):
            if not later > earlier:
                raise InvalidProblemError(
                    f"the times of PWL must increase, but {earlier:g} is followed by {later:g}; approximate a jump "
                    "by two close times"
                )

    def at(self, t: Any, value: Value) -> Any:
        """The signal at `t`."""
        return np.interp(t, self.times, self.values)

    def corners(self, t0: float, t1: float) -> list[float]:
        """The times of the points."""
        return [t for t in self.times[bisect_left(self.times, t0) :] if t0 < t < t1]


Signal = Constant | Sine | Pulse | PiecewiseLinear
