"""The run: one segment after the other, each with one method on one set of equations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from daedal.common.messages import warn
from daedal.common.progress import Progress
from daedal.driver.blas_threads import blas_threads
from daedal.driver.request import Request
from daedal.methods.task import Outcome
from daedal.symbolic.tracing import SwitchWarning

MOST_IDLE = 10  # restarts without a step
LARGEST_KEPT = 1000
"""Unknowns up to which what a run needs is kept for the next one."""
LARGEST_WITH_DENSE_OUTPUT = 1000
"""Unknowns up to which dense output is kept if nothing is said about it."""


def keeps_dense_output(request: Request, n: int) -> bool:
    """Whether the polynomials of the steps are kept."""
    wish = request.settings.dense_output
    return n <= LARGEST_WITH_DENSE_OUTPUT if wish is None else wish


@dataclass
class Segment:
    """A stretch of the run with one formulation, method and chart."""

    equations: Any  # what the method integrated, with the way back to the variables of the problem
    outcome: Outcome
    method: Any
    formulation: Any
    signal: int = 0  # what the hook said when it stopped the run
    singular: Any = None  # the singular configuration in which it ended
    unexplained: str = ""  # a change of a constraint that its derivatives do not explain, in words
    may_be_singular: bool = False  # whether a pivot of the last iteration matrix is a rounding error
    stopped: str = ""  # why nothing can follow, where the equations do not say
    stuck: bool = False  # whether it was the last of several that did not get ahead


class RunState(ABC):
    """A run of one problem under way: where it is, and what comes next."""

    @abstractmethod
    def segment(self, earlier: list[Segment], progress: Progress) -> Segment:
        """Integrate the next segment."""

    def goes_on(self, segment: Segment) -> bool:
        """Whether another segment follows, and then everything is ready for it."""
        return False

    @property
    @abstractmethod
    def t(self) -> float:
        """Where the next segment begins."""


def run(run_state: RunState, request: Request) -> list[Segment]:
    """Integrate segment by segment, until the end, a failure or a terminal event; what was computed is never lost."""
    with blas_threads(request.problem.n):
        return _segments(run_state, request)


def _segments(run_state: RunState, request: Request) -> list[Segment]:
    segments: list[Segment] = []
    doubted: set[str] = set()
    idle = 0
    progress = Progress(request.progress, request.span)
    try:
        while True:
            began = run_state.t
            segment = run_state.segment(segments, progress)
            segments.append(segment)
            outcome = segment.outcome
            _tell_doubts(outcome, doubted)
            if outcome.interrupted or outcome.exception is not None or not run_state.goes_on(segment):
                return segments
            idle = 0 if outcome.t_reached != began else idle + 1
            segment.stuck = idle >= MOST_IDLE
            if segment.stuck:
                return segments
    except KeyboardInterrupt:
        if not segments:
            raise
        segments[-1].outcome.interrupted = True
    except Exception as error:
        if not segments:
            raise
        segments[-1].outcome.exception = error
    finally:
        progress.close()
    return segments


def _tell_doubts(outcome: Outcome, doubted: set[str]):
    """Warn of each switching function once of which it was not decided whether it has a zero."""
    for name, t in outcome.doubts:
        if name not in doubted:
            doubted.add(name)
            warn(
                f"whether '{name}' changes its sign next to t = {t:.6g} could not be decided; from there on pairs of "
                "changes within a step may be missed. Remedy: write the condition in a simpler form, or give max_step",
                SwitchWarning,
            )
