"""What the driver hands to a method, and what it gets back."""

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


@dataclass(frozen=True, eq=False)
class Equations:
    """What is to be integrated, in every form that is at hand; a method takes the one it works on.

    Attributes
    ----------
    n : int
        Length of y.
    problem : ImplicitDAE, optional
        F(t, y, y') = 0: residual, jacobian, sparsity, names.
    rate : NativeFunction or callable, optional
        y' = f(t, y).
    mechanism : Assembly, optional
        The constrained system whose (q, v, r) is y.
    semi_explicit : SemiExplicitDAE, optional
        y' = f(t, y, z), 0 = g(t, y, z).
    second_order : SecondOrderForm, optional
        F(t, x, x', x'') = 0, and how y is made of x and x'.
    hook : (Pointer, Record), optional
        Called after every accepted step with the record; it may change y, and stop the run.
    bridge : Bridge, optional
        Keeps the user's functions and their exceptions; a new one by default.
    params : object, optional
        Parameters of `rate`, where it is machine code of its own.
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
    """One who looks at a run now and then, and may stop it."""

    due: int  # the number of steps at which it is asked next

    def stops(self, steps: int, failures: int, degree: int, size: float) -> bool:
        """Whether the run is to stop, by the numbers of steps and of failed attempts, and by the last step."""


@dataclass
class Task:
    """What changes from run to run: an interval, consistent values, checked tolerances and limits."""

    t_span: tuple[float, float]
    y0: np.ndarray
    yp0: np.ndarray
    rtol: np.ndarray
    atol: np.ndarray
    t_eval: np.ndarray | None = None
    switching: SwitchingFunctions | None = None
    max_steps: int | None = None  # None: as many as it takes, as long as they advance
    first_step: float | None = None
    max_step: float = np.inf
    t_stop: float | None = None  # the end of t_span if it is None
    dense: bool = True
    progress: Any = None
    excluded: np.ndarray | None = None  # components that the error test leaves out
    index_2: bool = False  # whether the problem is known to have index 2, where the method may choose what it tests
    fixed_step: float | None = None  # a constant step size, without error control
    watch: Watch | None = None
    resume: Callable[[], bool] | None = None  # asked where the hook has stopped the run: whether it goes on
    suspect: Callable[[float, np.ndarray, float], int] | None = None
    """Asked with t, y and the last step where steps seem to be limited by stability: how many more have to seem so
    before it is asked again; 0 stops the run."""
    guess: np.ndarray | None = None  # w and lambda near the start, where a mechanism's forces depend on them

    @property
    def n(self) -> int:
        return self.y0.size

    @property
    def sign(self) -> int:
        return 1 if self.t_span[1] > self.t_span[0] else -1


@dataclass
class Outcome:
    """What a method hands back: the stored values and why it stopped. Nothing of it is used by later runs."""

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
    y_reached: np.ndarray  # at the end of the last step, which may lie beyond the last output
    h_last: float
    steps: int
    error_test_failures: int
    newton_failures: int
    signal: int  # with which the hook has stopped the run
    counts: np.ndarray  # the counters of the SYSTEM record
    exception: BaseException | None = None
    doubts: tuple[tuple[str, float], ...] = ()  # switching functions that may have a zero next to a time
    last_step: DenseOutput | None = None  # dense output whose last step is that of the run, where its owner stopped it

    def statistics(self, seconds: float = 0.0) -> Statistics:
        """The counters of the run."""
        return statistics(self.counts, self.steps, self.error_test_failures, self.newton_failures, seconds)


def statistics(
    counts: np.ndarray, steps: int = 0, error_failures: int = 0, newton_failures: int = 0, seconds: float = 0.0
) -> Statistics:
    """Counters of a run, as users see them; `counts` are the last fields of the SYSTEM record."""
    further = (steps, error_failures + newton_failures, newton_failures, error_failures, seconds)
    return Statistics(*_as_statistics()((*counts.tolist(), *further)))


@cache
def _as_statistics() -> itemgetter:
    """The numbers in the order of Statistics, from the counters of the SYSTEM record and those of the run."""
    from daedal.kernels.system import CHANGING

    given = (*CHANGING, "steps", "rejected", "newton_failures", "error_failures", "seconds")
    wanted = (
        *("steps", "rejected", "residuals", "jacobian_residuals", "jacobians", "factorisations", "newton_iterations"),
        *("newton_failures", "error_failures", "linear_iterations", "linear_failures", "preconditioner_solves"),
        *("event_evaluations", "seconds"),
    )
    return itemgetter(*map(given.index, wanted))
