"""Infinite sequences of transitions: accumulation at a point (Zeno) and chattering."""

from collections import deque

import numpy as np

INTERVALS = 6  # number of intervals that must shrink by nearly the same factor
EVEN = 0.2  # largest deviation of the ratios of intervals from that factor c, relative to max(c, 1 - c)
SHRINKING = 0.5  # largest last interval, as a fraction of the first
RESOLUTION = 1e3 * float(np.finfo(float).eps)  # smallest distinguishable relative distance of times
CLOSE = 100.0  # distance from the accumulation point, in units of RESOLUTION, below which the run stops
FEW = 30  # number of transitions that count as chattering if they are on average less than RESOLUTION apart
WINDOW = 500  # number of transitions over which chattering is measured
# the run chatters if the rest of the interval would take more than this multiple of the maximum number of transitions
HOPELESS = 10.0
_MANY = 10**6  # a smaller maximum number of transitions is replaced by this number in the test for chattering


class AccumulationWatch:
    """Records the times of transitions."""

    def __init__(self, span: tuple[float, float], rtol: float, max_events: int):
        self._t0, self._t1 = span
        self._rtol, self._most = rtol, max(max_events, _MANY)
        self._times: dict[str, deque[float]] = {}
        self._recent: deque[float] = deque(maxlen=WINDOW)

    def add(self, name: str, t: float) -> float | None:
        """Add a transition; return the point at which those of this name accumulate if `t` is near it, otherwise None.

        Intervals d_k that shrink by the factor c have the limit t* = t_k + d_k c / (1 - c).
        """
        self._recent.append(t)
        times = self._times.setdefault(name, deque(maxlen=INTERVALS + 1))
        times.append(t)
        if len(times) <= INTERVALS:
            return None
        first, last = abs(times[1] - times[0]), abs(times[-1] - times[-2])
        if last >= first or first <= RESOLUTION * abs(t):
            return None
        if last == 0.0:
            return t
        factor = (last / first) ** (1.0 / (INTERVALS - 1))
        steps = np.abs(np.diff(times))
        if factor == 1.0 or not steps.all():  # periodic up to round-off, or indistinguishable intervals
            return None
        factors = steps[1:] / steps[:-1]
        rest = last * factor / (1.0 - factor)
        if np.max(np.abs(factors - factor)) > max(EVEN * (1.0 - factor), EVEN * factor):
            return None
        if rest > max(self._rtol * abs(t - self._t0), CLOSE * RESOLUTION * abs(t)):
            return None
        sign = 1.0 if self._t1 > self._t0 else -1.0
        return t + sign * rest

    def is_shrinking(self, name: str) -> bool:
        """Whether intervals between transitions of this name shrink as if towards an accumulation point."""
        times = list(self._times.get(name, ()))
        return len(times) > INTERVALS and abs(times[-1] - times[-2]) < SHRINKING * abs(times[1] - times[0])

    def forget(self):
        """Clear the recorded times after an accumulation has been handled."""
        self._times.clear()
        self._recent.clear()

    def is_chattering(self, t: float) -> bool:
        """Whether transitions are so frequent that the end of the interval cannot be reached."""
        if len(self._recent) >= FEW and abs(t - self._recent[-FEW]) < FEW * RESOLUTION * abs(t):
            return True
        if len(self._recent) < WINDOW:
            return False
        speed = abs(t - self._recent[0]) / (WINDOW - 1)
        return abs(self._t1 - t) > HOPELESS * self._most * speed
