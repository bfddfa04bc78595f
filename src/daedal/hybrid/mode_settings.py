"""The settings of a run through modes: those of the run itself, and those of each mode."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from daedal.driver.request import Request, Settings, checked_settings
from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_flag

_MAX_EVENTS = 10**6


@dataclass(frozen=True)
class RunSettings:
    """What holds for the whole run; `common` are the settings of modes that say nothing themselves."""

    max_events: int
    record_events: bool
    common: Settings

    @classmethod
    def of(cls, settings: Settings) -> RunSettings:
        """From the settings of a request, whose options hold those of hybrid runs too."""
        options = dict(settings.options)
        max_events = _check_count(options.pop("max_events", _MAX_EVENTS))
        record_events = check_flag(options.pop("record_events", True), "record_events")
        return cls(max_events, record_events, replace(settings, options=options, events=None))

    @property
    def rtol(self) -> float:
        """The smallest relative tolerance."""
        return float(np.min(_numbers(self.common.rtol, "rtol")))


class ModeSettings:
    """The request of the stretches in a mode, but for time, state and events."""

    def __init__(self, request: Request, common: Settings, name: str):
        mode = request.problem.modes[name]
        own = checked_settings(**mode.options)
        shared = {option: request.problem.tolerance(name, getattr(common, option)) for option in ("rtol", "atol")}
        settings = replace(common, **shared | {option: getattr(own, option) for option in mode.options})
        self.request = request.changed(problem=mode.problem, settings=settings, progress=False, event_names=[])
        self._rtol, self._atol = _numbers(settings.rtol, "rtol"), _numbers(settings.atol, "atol")

    def weights(self, y: np.ndarray) -> np.ndarray:
        """rtol |y| + atol; tolerances that are given for other unknowns count with their extremes."""
        rtol, atol = self.tolerances(y.shape)
        return np.maximum(rtol * np.abs(y) + atol, 1e-300)

    def tolerances(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Those of a state: a number or one for each entry."""
        rtol = self._rtol if self._rtol.shape in ((), shape) else self._rtol.min()
        atol = self._atol if self._atol.shape in ((), shape) else self._atol.max()
        return rtol, atol


def _numbers(value, name: str) -> np.ndarray:
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if not numbers.size:
        raise InvalidProblemError(f"{name} must be a number or a vector of numbers, got {value!r}")
    return numbers


def _check_count(value) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidProblemError(f"max_events must be a positive integer, got {value!r}")
    return int(value)
