"""Interface between driver and methods: input and output of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from daedal.events.event import EventRecord, SwitchingFunctions
from daedal.kernels.endings import Ending
from daedal.solution.solution import DenseOutput, Statistics

ALIKE = 1e-2
"""Fraction by which y' may change within a step without being a jump."""
ARC_NUMBERS = 3
"""Number of entries of a row of `Task.arcs` before the parameters."""


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations to integrate, in all available forms; a method uses the one that it supports.

    Attributes
    ----------
    n : int
        Length of y.
    problem : ImplicitDAE, optional
        F(t, y, y') = 0: residual, jacobian, sparsity, names.
    rate : NativeFunction or callable, optional
        y' = f(t, y).
    mechanism : SystemWorkspace, optional
        The constrained system whose (q, v, r) is y.
    semi_explicit : SemiExplicitDAE, optional
        y' = f(t, y, z), 0 = g(t, y, z).
    second_order : SecondOrderForm, optional
        F(t, x, x', x'') = 0, and the composition of y from x and x'.
    hook : (Pointer, Record), optional
        Called after every accepted step with the record; it may change y, and stop the run.
    bridge : Bridge, optional
        Owner of the user's functions and their exceptions; a new one by default.
    params : object, optional
        Parameters of `rate`, if it is separate machine code.
    """

    n: int
    problem: Any = None
    rate: Any = None
    mechanism: Any = None
    semi_explicit: Any = None
    second_order: Any = None
    hook: tuple[Any, Any] | None = None
    bridge: Any = None
    params: Any = None


class Watch(Protocol):
    """Monitor of a run, called at intervals, which may stop it."""

    due: int  # number of steps at which the watch is called next

    def stops(self, steps: int, failures: int, degree: int, size: float) -> bool:
        """Whether to stop the run, given the numbers of steps and failures, and the last step."""


@dataclass
class Task:
    """The data of one run: an interval, consistent values, checked tolerances and limits."""

    t_span: tuple[float, float]
    y0: np.ndarray
    yp0: np.ndarray
    rtol: np.ndarray
    atol: np.ndarray
    t_eval: np.ndarray | None = None
    switching: SwitchingFunctions | None = None
    max_steps: int | None = None  # None: no limit, provided that the steps advance
    first_step: float | None = None
    max_step: float = np.inf
    t_stop: float | None = None  # None: the end of t_span
    dense: bool = True
    progress: Any = None
    excluded: np.ndarray | None = None  # components excluded from the error test
    # whether the problem is known to have index 2, if the method may choose the tested components
    index_2: bool = False
    fixed_step: float | None = None  # constant step size, without error control
    watch: Watch | None = None
    resume: Callable[[], bool] | None = None  # called if the hook has stopped the run; returns whether to continue
    suspect: Callable[[float, np.ndarray, float], int] | None = None
    """Called with t, y and the last step if steps seem to be limited by stability: returns the number of further
    such steps before the next call; 0 stops the run."""
    guess: np.ndarray | None = None  # initial guess of w and lambda, if a mechanism's forces depend on them
    arcs: np.ndarray | None = None
    """The arcs after ``t_span``, one row for each: its end, 1 if a small change of y' at its start ends the run there,
    the parameters of the rate, and y' at the start of the previous arc. In the row of each arc that it starts, the run
    stores the number of earlier steps after the first two entries, and y and the previous y' at the start of the arc at
    the end of the row. For explicit methods and one rate in machine code."""

    @property
    def n(self) -> int:
        return self.y0.size

    @property
    def sign(self) -> int:
        return 1 if self.t_span[1] > self.t_span[0] else -1


@dataclass
class Outcome:
    """The result of a method: stored values and the reason for stopping. Later runs do not reuse its memory."""

    reason: Ending
    t: np.ndarray
    y: np.ndarray
    yp: np.ndarray
    history: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    dense: DenseOutput | None
    events: list[EventRecord]
    interrupted: bool
    failure: Any
    t_reached: float
    y_reached: np.ndarray  # y at the end of the last step, which may be beyond the last output
    h_last: float
    steps: int
    error_test_failures: int
    newton_failures: int
    signal: int  # the signal with which the hook stopped the run
    counts: np.ndarray  # counters of the SYSTEM record
    exception: BaseException | None = None
    doubts: tuple[tuple[str, float], ...] = ()  # switching functions that may have a zero close to a given time
    last_step: DenseOutput | None = None  # dense output; if the hook stopped the run, it includes the last step
    arcs: int = 0  # number of arcs of the task that were started

    def statistics(self, seconds: float = 0.0) -> Statistics:
        """The counters of the run."""
        return statistics(self.counts, self.steps, self.error_test_failures, self.newton_failures, seconds)


def statistics(
    counts: np.ndarray, steps: int = 0, error_failures: int = 0, newton_failures: int = 0, seconds: float = 0.0
) -> Statistics:
    """Counters of a run in the form shown to users; `counts` are the last fields of the SYSTEM record."""
    further = (steps, error_failures + newton_failures, newton_failures, error_failures, seconds)
    return Statistics(*_as_statistics()((*counts.tolist(), *further)))


@cache
def _as_statistics() -> itemgetter:
    """The values in the order of Statistics, from the counters of the SYSTEM record and those of the run."""
    from daedal.kernels.system import CHANGING

    given = (*CHANGING, "steps", "rejected", "newton_failures", "error_failures", "seconds")
    wanted = (
        *("steps", "rejected", "residuals", "jacobian_residuals", "jacobians", "factorisations", "newton_iterations"),
        *("newton_failures", "error_failures", "linear_iterations", "linear_failures", "preconditioner_solves"),
        *("event_evaluations", "seconds"),
    )
    return itemgetter(*map(given.index, wanted))
