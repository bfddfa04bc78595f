"""What states a problem without being one, such as a machine or a circuit: the driver takes it by this protocol."""

from __future__ import annotations

from typing import Any, Protocol


class ProblemSource(Protocol):
    """Something that states one problem."""

    def as_problem(self, initial: Any = None) -> Any:
        """The problem, the same one each time, in the coordinates of a start where that has coordinates."""

    def as_initial(self, initial: Any, t0: float, params: Any) -> Any:
        """Initial values of the problem, from values by the names of what it is made of; None asks for its own start.

        Values in the form of the problem are returned as they are. `params` are those of the run, or None.
        """

    def as_breakpoints(self, t0: float, t1: float, params: Any) -> Any:
        """Times at which the equations have kinks or jumps; None if there are none."""


def is_source(given: Any) -> bool:
    """Whether something states a problem."""
    return hasattr(given, "as_problem")


def problem_of(given: Any) -> Any:
    """The problem that is given, or stated by what is given."""
    return given.as_problem() if is_source(given) else given
