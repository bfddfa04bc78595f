"""What the driver hands to a method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.events.event import SwitchingFunctions
from daedal.methods.workspace import Workspace

_SPACINGS = 100.0


@dataclass
class Task:
    """An initial value problem with consistent values, checked tolerances and options."""

    workspace: Workspace
    t_span: tuple[float, float]
    y0: np.ndarray
    yp0: np.ndarray
    rtol: np.ndarray
    atol: np.ndarray
    t_eval: np.ndarray | None
    switching: SwitchingFunctions | None
    max_steps: int
    first_step: float | None
    max_step: float
    t_stop: float
    dense: bool
    progress: Any
    excluded: np.ndarray | None = None  # components that the error test leaves out
    rate: Any = None  # y' as a function of (t, y), for explicit methods
    semi_explicit: Any = None  # the problem, if it is semi-explicit

    @property
    def n(self) -> int:
        return self.y0.size

    @property
    def sign(self) -> int:
        return 1 if self.t_span[1] > self.t_span[0] else -1

    def initial_step(self) -> float:
        """The first step size, signed."""
        weights = self.rtol * np.abs(self.y0) + self.atol
        return first_step_size(self.t_span, self.y0, self.yp0, weights, self.first_step, self.max_step)


@dataclass
class Outcome:
    """What a method hands back: the stored values and why it stopped."""

    reason: int
    t: np.ndarray
    y: np.ndarray
    yp: np.ndarray
    history: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    dense: Any
    events: list
    interrupted: bool
    failure: Any
    t_reached: float
    integrator: Any = None
    exception: BaseException | None = None


def first_step_size(t_span, y0, yp0, weights, first_step, max_step) -> float:
    """h_0 = min(1e-3 |t_1 - t_0|, 1/2 ||y'_0||^{-1}), signed, or the user's (BCP section 5.2.4).

    It is not shorter than a hundred spacings of floats at t_0 and t_1.
    """
    length = t_span[1] - t_span[0]
    sign = 1.0 if length > 0.0 else -1.0
    if first_step is not None:
        return sign * first_step
    h = 1e-3 * abs(length)
    if yp0 is not None:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slope = np.linalg.norm(yp0 / weights) / np.sqrt(y0.size)
        if np.isfinite(slope) and slope > 0.5 / h:
            h = 0.5 / slope
    shortest = min(_SPACINGS * float(np.spacing(max(abs(t_span[0]), abs(t_span[1])))), abs(length))
    return sign * min(max(h, shortest), max_step)
