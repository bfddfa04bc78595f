"""Index reduction by name."""

from __future__ import annotations

import difflib
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.index.reduction import WAYS
from daedal.index.reduction.alternatives import CoordinatePartitioning, MinimalExtensionProblem, Projection, Stabilised
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.strangeness_free import StrangenessFreeProblem
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations, required_equations

_KINDS = (
    ReducedProblem,
    CoordinatePartitioning,
    MinimalExtensionProblem,
    Stabilised,
    Projection,
    StrangenessFreeProblem,
)
REDUCTIONS: dict[str, type[ReducedProblem]] = dict(zip(WAYS, _KINDS, strict=True))
"""The reduced problem class of each method."""


def reduce_index(problem: Any, by: str = "auto") -> ReducedProblem:
    """A problem of any index as one of index 1 or 2 with the same solutions.

    :func:`daedal.solve` applies it automatically if needed, and accepts the names below as `formulation`; use this
    function to inspect the reduced problem. The guide on index reduction compares the methods.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, LinearDAE or SecondOrderDAE
        Its functions must be traceable.
    by : str
        The method:

        * "dummy_derivatives", also "auto": all equations and their derivatives; some unknowns are integrated, the
          equations determine the others.
        * "coordinate_partitioning": the same with combinations of the unknowns integrated, coordinates in the tangent
          space of the constraints.
        "minimal_extension": the same with fewer unknowns; methods restart when the selection changes.
        "stabilised": constraints enforced by additional multipliers as by Gear, Gupta and Leimkuhler; index 2.
        "projection": the highest derivatives of the equations are integrated, and every step is projected onto all
          constraints.
        "strangeness_free": differential equations and constraints from the derivative array, for first-order problems
          with misleading structure; it has the largest number of unknowns.

    Returns
    -------
    ReducedProblem
        With ``problem``, the reduced problem, and ``words``, a description of the reduction.

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


def analysed(problem: Any) -> tuple[SystemEquations, StructuralSignature]:
    """The equations of a problem on a graph, and their signature; raises an error if they cannot be traced."""
    refusal = "the index is determined and reduced by differentiating the equations, and a function"
    equations = required_equations(problem, refusal)
    return equations, StructuralSignature.of(equations)


def named_reduction(by: Any) -> type[ReducedProblem]:
    """The method of this name."""
    if by == "auto":
        return ReducedProblem
    if not isinstance(by, str) or by not in REDUCTIONS:
        close = difflib.get_close_matches(str(by), REDUCTIONS, n=1, cutoff=0.6)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise InvalidProblemError(f"unknown index reduction {by!r}; {hint}known: auto, {', '.join(REDUCTIONS)}")
    return REDUCTIONS[by]
