"""A run as a sequence of segments, each with one method and one set of equations.

SciPy's BLAS is limited to one thread during runs of small systems. OpenBLAS distributes factorisations of matrices of
order 128 and more over all cores. Below an order of about a thousand this gains little on an idle machine, and on a
busy one every factorisation waits for the slowest core: 3 ms instead of 0.15 ms for order 160 on two cores, one busy.
NumPy, and thus users' functions, use a separate copy of BLAS, which is not affected.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

from daedal.common.messages import warn
from daedal.common.progress import Progress
from daedal.driver.request import Request
from daedal.errors import SwitchWarning
from daedal.methods.task import Outcome, Task

MOST_IDLE = 10  # number of consecutive restarts without a step after which a run stops
LARGEST_KEPT = 1000
"""Number of unknowns up to which workspaces are pooled."""
LARGEST_WITH_DENSE_OUTPUT = 1000
"""Number of unknowns up to which dense output is kept by default."""
# numbers of unknowns between which BLAS is limited: it is always serial below, and gains from threads above
_SMALLEST, _LARGEST = 64, 1000
_OPENBLAS = ("scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
_NAMES = [name + suffix for name in _OPENBLAS for suffix in ("", "64_")]


@cache
def thread_count() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Functions that return and set the number of threads of SciPy's BLAS; None if SciPy does not use OpenBLAS."""
    from scipy.linalg import cython_lapack

    library = ctypes.CDLL(cython_lapack.__file__)  # also resolves symbols of its dependencies
    for name in _NAMES:
        if hasattr(library, name.format("set")):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


class _OneThread(AbstractContextManager):
    """Limit BLAS to one thread while any run is active. The setting is process-wide.

    The first run to enter sets the limit and the last one to leave restores it, regardless of their threads.
    """

    def __init__(self):
        self._lock, self._inside, self._before = Lock(), 0, 1

    def __enter__(self):
        with self._lock:
            if self._inside == 0 and (count := thread_count()) is not None:
                read, write = count
                self._before = read()
                write(1)
            self._inside += 1

    def __exit__(self, *exception):
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and (count := thread_count()) is not None:
                count[1](self._before)


_one_thread = _OneThread()


def blas_threads(n: int) -> AbstractContextManager:
    """Context that limits BLAS to one thread during a run with n unknowns, unless n is large."""
    return _one_thread if _SMALLEST <= n <= _LARGEST else nullcontext()


def keeps_dense_output(request: Request, n: int) -> bool:
    """Whether to store the step polynomials of a problem with n unknowns."""
    wish = request.settings.dense_output
    return n <= LARGEST_WITH_DENSE_OUTPUT if wish is None else wish


@dataclass
class Segment:
    """A completed segment of a run, with one formulation, method and chart."""

    equations: Any  # the integrated equations, with the map to the problem's variables
    outcome: Outcome
    method: Any
    formulation: Any
    signal: int = 0  # the signal with which the hook stopped the run
    singular: Any = None  # the singular configuration at its end
    unexplained: str = ""  # description of a constraint whose change contradicts its derivatives
    may_be_singular: bool = False  # whether a pivot of the last iteration matrix is at round-off level
    stopped: str = ""  # why no segment can follow; empty if unknown
    stuck: bool = False  # whether it was the last of several segments without progress


@dataclass(frozen=True)
class PreparedSegment:
    """A segment that has been prepared but not started.

    Attributes
    ----------
    ready : Run
        The method with its equations.
    task : Task
    finish : callable
        Returns the segment from the outcome of the task.
    equations : object
        As in :class:`Segment`.
    """

    ready: Any
    task: Task
    finish: Callable[[Outcome], Segment]
    equations: Any


class Begun(BaseException):
    """Raised by :func:`run` to pass a prepared run to the caller of the stages that prepared it.

    Attributes
    ----------
    run_state : RunState
    request : Request
    carried_back : callable or None
        Converts the solution of the run to the unknowns of the problem; None if these are the same.
    """

    def __init__(self, run_state: RunState, request: Request):
        super().__init__()
        self.run_state, self.request = run_state, request
        self.carried_back: Callable[[Any], Any] | None = None


class RunState(ABC):
    """State of a run in progress, which prepares the next segment."""

    @abstractmethod
    def prepared(self, earlier: list[Segment], progress: Progress) -> PreparedSegment:
        """Prepare the next segment."""

    def segment(self, earlier: list[Segment], progress: Progress) -> Segment:
        """Integrate the next segment."""
        prepared = self.prepared(earlier, progress)
        return prepared.finish(prepared.ready.integrate(prepared.task))

    @abstractmethod
    def delivered(self, segments: list[Segment]) -> Any:
        """Return the solution from all segments; if the run failed, raise the error with the solution attached."""

    def continues(self, segment: Segment) -> bool:
        """Whether another segment follows; if so, prepare it."""
        return False

    def restarts(self, t: float, segment: Segment) -> bool:
        """Whether the run can restart at t, where a segment ended because inputs jump; if so, prepare the restart.

        Differential variables are those of ``segment.outcome.y_reached``, algebraic ones are computed.
        """
        return False

    @property
    @abstractmethod
    def t(self) -> float:
        """The start of the next segment."""


def run(run_state: RunState, request: Request) -> list[Segment]:
    """Integrate by segments until the end, a failure or a terminal event; exceptions do not discard computed segments.

    Raises :class:`Begun` if ``request.begins_only``; the caller then integrates the segments.
    """
    if request.begins_only:
        raise Begun(run_state, request)
    with blas_threads(request.problem.n):
        return _segments(run_state, request)


def _segments(run_state: RunState, request: Request) -> list[Segment]:
    segments: list[Segment] = []
    idle = 0
    progress = Progress(request.progress, request.span)
    try:
        while True:
            began = run_state.t
            segment = run_state.segment(segments, progress)
            segments.append(segment)
            outcome = segment.outcome
            _warn_of_doubts(outcome, request.doubted)
            if outcome.interrupted or outcome.exception is not None or not run_state.continues(segment):
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


def _warn_of_doubts(outcome: Outcome, doubted: set[str]):
    """Warn once for each switching function for which a zero could not be confirmed or excluded."""
    for name, t in outcome.doubts:
        if name not in doubted:
            doubted.add(name)
            warn(
                (
                    f"it is undecided whether '{name}' changes sign near t = {t:.6g}; from there on, pairs of sign "
                    "changes within a step may be missed. Remedy: write the condition in a simpler form, or set "
                    "max_step"
                ),
                SwitchWarning,
            )
