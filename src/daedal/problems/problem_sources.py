"""Protocols of problems, and of objects that define a problem without being one, such as machines and circuits."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard, TypeVar, runtime_checkable

from daedal.problems.named_inputs import starting_values


@runtime_checkable
class Problem(Protocol):
    """A problem accepted by :func:`daedal.solve`, such as :class:`ImplicitDAE` or :class:`MechanicalSystem`.

    Examples
    --------
    >>> import daedal
    >>> def last(problem: daedal.Problem, t: float, initial) -> float:
    ...     return daedal.solve(problem, (0.0, t), initial).y[0, -1]
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    >>> print(f"{last(decay, 1.0, [1.0]):.4f}")
    0.3679
    """

    @property
    def params(self) -> Any:
        """The parameters."""

    @property
    def functions(self) -> Any:
        """Description of how each function is evaluated."""

    def with_params(self, params: Any) -> Any:
        """The same problem with other parameters."""


Stated = TypeVar("Stated", covariant=True)


class ProblemSource(Protocol[Stated]):
    """An object that defines one problem."""

    def as_problem(self, initial: Any = None) -> Stated:
        """The problem, as the same object on every call; in the coordinates of `initial`, if it determines them."""

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
