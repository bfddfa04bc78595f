"""Index reduction by name."""

from __future__ import annotations

import difflib
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.index_reduction.coordinate_partitioning import CoordinatePartitioning
from daedal.index_reduction.minimal_extension import MinimalExtension
from daedal.index_reduction.projection import Projection
from daedal.index_reduction.reduced import ReducedProblem
from daedal.index_reduction.stabilised import Stabilised
from daedal.index_reduction.strangeness_free import StrangenessFree
from daedal.structure.equations import Equations
from daedal.structure.signature import Orders, Signature
from daedal.symbolic import Untraceable

REDUCTIONS: dict[str, type[ReducedProblem]] = {
    "dummy_derivatives": ReducedProblem,
    "minimal_extension": MinimalExtension,
    "stabilised": Stabilised,
    "projection": Projection,
    "coordinate_partitioning": CoordinatePartitioning,
    "strangeness_free": StrangenessFree,
}
"""The ways to reduce the index, by name."""


def reduce_index(problem: Any, by: str = "auto") -> ReducedProblem:
    """A problem of any index as one of index 1 with the same solutions.

    :func:`daedal.solve` does it by itself where it is needed; this is for looking at what it does.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, LinearDAE or SecondOrderDAE
        Its functions must be such that Daedal can trace them.
    by : {"auto", "dummy_derivatives"}
        The way.

    Returns
    -------
    ReducedProblem
        With ``problem``, the problem of index 1, and ``words``, what was done.

    Examples
    --------
    >>> import daedal
    >>> def pendulum(t, s, sp):
    ...     x, y, u, v, lam = s
    ...     return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1, x**2 + y**2 - 1]
    >>> problem = daedal.ImplicitDAE(pendulum, 5, names=["x", "y", "u", "v", "lam"])
    >>> reduced = daedal.reduce_index(problem)
    >>> print(reduced)
    The problem has index 3 (structural). Differentiated: equations 0 and 1 once; equation 4 twice (counted from 0).
    Solved by dummy derivatives in 7 unknowns with 2 degrees of freedom: x, y, u, v, lam, u' and v'.
    """
    kind = named_reduction(by)
    return kind.checked(problem, *analysed(problem))


def analysed(problem: Any) -> tuple[Equations, Signature]:
    """The equations of a problem on a graph and their signature; refused where they cannot be traced."""
    try:
        equations = Equations(problem)
    except Untraceable as reason:
        raise InvalidProblemError(
            f"the index is found and reduced by differentiating the equations, and a function {reason}"
        ) from reason
    return equations, Signature.of(equations)


def orders_of(problem: Any) -> Orders | None:
    """For each equation the unknowns in it with their highest derivative; None if that cannot be seen."""
    try:
        return Equations(problem).signature()
    except Untraceable:
        return None


def named_reduction(by: Any) -> type[ReducedProblem]:
    """The way with this name."""
    if by == "auto":
        return ReducedProblem
    if not isinstance(by, str) or by not in REDUCTIONS:
        close = difflib.get_close_matches(str(by), REDUCTIONS, n=1, cutoff=0.6)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise InvalidProblemError(f"unknown index reduction {by!r}; {hint}known: auto, {', '.join(REDUCTIONS)}")
    return REDUCTIONS[by]
