"""What the driver for constrained systems works on: the request of the user, and the segments of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.formulations.reduction import Reduction
from daedal.solution import Statistics


@dataclass
class Request:
    """The checked arguments of :func:`daedal.solve`."""

    problem: Any
    span: tuple[float, float]
    initial: Any
    rtol: np.ndarray
    atol: np.ndarray
    times: np.ndarray | None
    events: Any
    progress: Any
    max_steps: int
    first_step: float | None
    max_step: float
    t_stop: float
    fixed_step: float | None
    dense_output: bool | None
    correct_initial: bool
    began: float


@dataclass
class Segment:
    """A stretch of the run with one formulation, method and chart."""

    reduction: Reduction
    outcome: Any
    method: Any
    formulation: Any
    stats: Statistics
    signal: int = 0  # what the hook said when it stopped the run
    singular: Any = None  # the singular configuration in which it ended
    stuck: bool = False  # whether it was the last of several that did not get ahead
