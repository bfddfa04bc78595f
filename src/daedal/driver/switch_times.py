"""Times of switches that depend on time only, by a formula or by isolation of zeros."""

from __future__ import annotations

from math import inf, isfinite, nan

import numpy as np

from daedal.driver.request import Request
from daedal.events.event import Enclosed, no_functions
from daedal.symbolic.tracing.function import SwitchedParams
from daedal.symbolic.tracing.switched import SwitchedProblem

_NEAR, _MOST_NEAR = (
    1e-10,
    100,
)  # consecutive switches count as round-off if more than _MOST_NEAR are within the fraction _NEAR of the interval


class SwitchTimes:
    """Search for the next switch that depends on time only.

    Parameters
    ----------
    switched : SwitchedProblem
    moded : SwitchedParams
    request : Request
    """

    def __init__(self, switched: SwitchedProblem, moded: SwitchedParams, request: Request):
        self._switched, self._moded, self._request = switched, moded, request
        self._affine = np.flatnonzero(switched.is_affine).tolist()
        others = np.array(switched.in_time, dtype=bool) & ~np.array(switched.is_affine, dtype=bool)
        self.isolated: list[int] = np.flatnonzero(others).tolist()
        self._known: tuple[bytes, float] = b"", nan
        self._rates: np.ndarray | None = None  # rates of all switches, if they do not depend on the modes
        self._near, self._noisy = 0, list[tuple[int, float]]()
        self._search = _ZeroSearch(switched, moded) if self.isolated else None

    def after(self, t: float, end: float) -> float:
        """The first switching time in (t, end), or `end`."""
        end = self._by_formula(t, end) if self._affine else end
        if self._search is None:
            return end
        modes, sign = self._moded.modes.tobytes(), self._request.sign
        known, at = self._known
        if known != modes or not sign * (at - t) > 0.0:
            at = self._search.first(t, end)  # the result is valid for the current branches only
            self._near = self._near + 1 if abs(at - t) <= _NEAR * abs(end - self._request.span[0]) else 0
            if self._near > _MOST_NEAR:
                self._noisy = [(j, t) for j in self.isolated]
            self._known = modes, at
        return at if sign * (end - at) > 0.0 else end

    def doubts(self) -> list[tuple[int, float]]:
        """Switches that may have undetected zeros, each with the earliest time of one."""
        return self._noisy if self._search is None or self._noisy else self._search.doubts()

    def _by_formula(self, t: float, end: float) -> float:
        switched, moded, sign = self._switched, self._moded, self._request.sign
        u = switched.values(t, np.zeros(switched.value_size), moded)
        rates = self._rates
        if rates is None:
            rates = switched.rates(t, np.zeros(switched.rate_size), moded)
            self._rates = rates if switched.has_constant_rates else None
        for j in self._affine:
            rate = float(rates[j])
            bound = float(moded.upper[j] if sign * rate > 0.0 else moded.lower[j])
            if isfinite(bound) and rate != 0.0:
                at = t + (bound - float(u[j])) / rate
                if sign * (at - t) > 0.0 and sign * (end - at) > 0.0:
                    end = at
        return end


class _ZeroSearch:
    """Isolation of zeros of nonaffine switching functions, with its workspace."""

    def __init__(self, switched: SwitchedProblem, moded: SwitchedParams):
        from daedal.events.isolation import MOST_BOXES, WORDS, first_zero
        from daedal.events.record import Switching
        from daedal.kernels.records import Record
        from daedal.kernels.system import SYSTEM

        code, bounds = switched.events(switched.n_state, in_time=True)
        self._names = tuple(f"{j}" for j in range(switched.count) for _ in range(2))
        functions = no_functions().extended(code, self._names, code, moded)
        if bounds is not None:
            functions = functions.with_enclosed(Enclosed(bounds, 0, code.numbers, moded))
        self._switching = Switching(functions, switched.n_state, MOST_BOXES)
        self._system = Record(SYSTEM)
        self._memory = np.zeros(WORDS + 2 * switched.n_state)
        self._first_zero = first_zero

    def first(self, t: float, end: float) -> float:
        self._switching.begin(t, end, 0.0)
        found = self._first_zero(
            self._system.address, self._switching.address, t, end, self._memory.__array_interface__["data"][0]
        )
        return float(self._memory[0]) if found == 1 else inf if end > t else -inf

    def doubts(self) -> list[tuple[int, float]]:
        return [(int(name), at) for name, at in self._switching.doubts]
