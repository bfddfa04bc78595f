"""Protocol of objects that define a problem without being one, such as a machine or a circuit."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard, TypeVar

from daedal.problems.named_inputs import starting_values

Stated = TypeVar("Stated", covariant=True)


class ProblemSource(Protocol[Stated]):
    """An object that defines one problem."""

    def as_problem(self, initial: Any = None) -> Stated:
        """The problem, as the same object on every call; in the coordinates of the start, if it has coordinates."""

    def as_initial(self, initial: Any, t0: float, params: Any) -> Any:
        """Initial values of the problem from values by component name; None requests the source's default.

        Values in the form of the problem are returned unchanged. `params` are the parameters of the run, including the
        values of inputs at the start, or None.
        """

    def as_breakpoints(self, t0: float, t1: float, params: Any) -> Any:
        """Times at which the equations have kinks or jumps; None if there are none."""


def is_source(given: Any) -> TypeGuard[ProblemSource[Any]]:
    """Whether an object defines a problem."""
    return hasattr(given, "as_problem")


def problem_and_start(
    source: Any, initial: Any, t0: float, params: Any = None, inputs: Any = None, hold: str = "zero"
) -> tuple[Any, Any]:
    """The problem of a source, and initial values for a run with these parameters and inputs."""
    problem = source.as_problem(initial)
    levels = starting_values(problem, inputs, hold, t0)
    return problem, source.as_initial(initial, t0, {**(params or {}), **levels} if levels else params)


def problem_of(given: Any) -> Any:
    """The given problem, or the one defined by the given source."""
    return given.as_problem() if is_source(given) else given
