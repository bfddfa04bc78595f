"""Protocol of objects that define a problem without being one, such as a machine or a circuit."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

Stated = TypeVar("Stated", covariant=True)


class ProblemSource(Protocol[Stated]):
    """Something that defines one problem."""

    def as_problem(self, initial: Any = None) -> Stated:
        """The problem, as the same object on every call; in the coordinates of the start, if it has coordinates."""

    def as_initial(self, initial: Any, t0: float, params: Any) -> Any:
        """Initial values of the problem from values by component name; None requests the source's default.

        Values in the form of the problem are returned unchanged. `params` are the parameters of the run, or None.
        """

    def as_breakpoints(self, t0: float, t1: float, params: Any) -> Any:
        """Times at which the equations have kinks or jumps; None if there are none."""


def is_source(given: Any) -> bool:
    """Whether an object defines a problem."""
    return hasattr(given, "as_problem")


def problem_of(given: Any) -> Any:
    """The given problem, or the one defined by the given source."""
    return given.as_problem() if is_source(given) else given
