"""What all problem classes have, for type checkers."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Problem(Protocol):
    """What :func:`daedal.solve` takes: :class:`ImplicitDAE`, :class:`MechanicalSystem` and the others.

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
        """How each function is evaluated, in words."""

    def with_params(self, params: Any) -> Any:
        """The same problem with other parameters."""
