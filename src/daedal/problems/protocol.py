"""Attributes common to all problem classes, for type checkers."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


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
