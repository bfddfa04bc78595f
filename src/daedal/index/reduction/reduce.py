"""Index reduction by name, and regularisation."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any, cast

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.index.reduction import WAYS
from daedal.index.reduction.alternatives import CoordinatePartitioning, MinimalExtensionProblem, Projection, Stabilised
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.strangeness_free import StrangenessFreeProblem
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations, required_equations
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.problems.checks import check_finite, check_positive

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
        * "minimal_extension": the same with fewer unknowns; methods restart when the selection changes.
        * "stabilised": constraints enforced by additional multipliers as by Gear, Gupta and Leimkuhler; index 2.
        * "projection": the highest derivatives of the equations are integrated, and every step is projected onto all
          constraints.
        * "strangeness_free": differential equations and constraints from the derivative array, for first-order problems
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


# --- regularisation: a small parameter lowers the index and perturbs the solution correspondingly ---------------------

# Brenan, Campbell, Petzold, section 3.3; D. Cobb, On the solution of linear differential equations with singular
# coefficients, J. Differential Equations 46 (1982), pp. 310-323.

_WAYS = ("pencil", "penalty")


def regularise(problem: Any, epsilon: float, by: str = "pencil", sign: int = 1) -> Any:
    r"""Introduce a small parameter that lowers the index and changes the solution by :math:`O(\varepsilon)`.

    .. math::

        \text{"pencil":}\quad & F(t,\ y + \varepsilon y',\ y') = 0 \\
        \text{"penalty":}\quad & y' = f(t, y, z), \qquad \pm\varepsilon z = g(t, y, z)

    The first form is due to Cobb: it turns :math:`A y' + B y = f` into :math:`(A + \varepsilon B) y' + B y = f`, an
    ordinary differential equation if the pencil is regular, whose solution for constant coefficients tends to that of
    the DAE of any index, after a layer of width :math:`\varepsilon`. The second turns index 2 into index 1; the
    constraint is violated by :math:`\varepsilon z`.

    Parameters
    ----------
    problem : ImplicitDAE or SemiExplicitDAE
        The problem; "penalty" requires a semi-explicit one. Mechanisms have similar formulations:
        :class:`daedal.formulations.Loetstedt`, :class:`daedal.formulations.Knorrenschild`,
        :class:`daedal.formulations.Hanke`.
    epsilon : float
        The small parameter, a time for "pencil".
    by : {"pencil", "penalty"}
        The form of the regularisation.
    sign : {1, -1}
        For "penalty": 1 if :math:`g_y f_z` is negative definite, -1 if it is positive definite. With the wrong sign
        errors grow like :math:`e^{t/\varepsilon}`.

    Returns
    -------
    ImplicitDAE or SemiExplicitDAE
        A problem of the same class, solved like any other. Prefer :func:`daedal.reduce_index` if applicable: it is
        exact.

    Examples
    --------
    Index 3, with the solution (sin t, cos t, -sin t):

    >>> import numpy as np
    >>> import daedal
    >>> chain = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] - y[2], y[0] - np.sin(t)], 3)
    >>> for epsilon in (1e-2, 1e-3):
    ...     near = daedal.formulations.regularise(chain, epsilon)
    ...     sol = daedal.solve(near, (0.0, 1.0), ([0.0, 1.0, 0.0], None), rtol=1e-8, atol=1e-10)
    ...     print(f"{abs(sol.y[2, -1] + np.sin(1.0)):.1e}")
    1.7e-02
    1.6e-03
    """
    epsilon = check_finite(check_positive(epsilon, "epsilon"), "epsilon")
    if by not in _WAYS:
        raise InvalidProblemError(f"by={by!r} is unknown; choose one of {', '.join(map(repr, _WAYS))}")
    if sign not in (1, -1):
        raise InvalidProblemError(f"sign must be 1 or -1, got {sign!r}")
    if by == "penalty":
        if not isinstance(problem, SemiExplicitDAE):
            raise InvalidProblemError(
                f"by='penalty' needs a SemiExplicitDAE, not a {type(problem).__name__}; use by='pencil'"
            )
        return _penalised(problem, sign * epsilon)
    if not isinstance(problem, (ImplicitDAE, SemiExplicitDAE)):
        raise InvalidProblemError(
            f"regularise needs an ImplicitDAE or a SemiExplicitDAE, not a {type(problem).__name__}; for "
            "mechanisms use the formulations Loetstedt, Knorrenschild and Hanke"
        )
    return _shifted(problem.implicit(), epsilon)


def _shifted(problem: ImplicitDAE, epsilon: float) -> ImplicitDAE:
    """F(t, y + epsilon y', y'), whose Jacobian is a multiple of that of F with another factor c."""
    residual, jacobian = problem.residual, cast(Any, problem.jacobian)

    def shifted(t, y, yp, *params):
        return residual(t, y + epsilon * yp, yp, *params)

    def shifted_jacobian(t, y, yp, cj, *params):
        # F_y + cj (F_y' + epsilon F_y) = (1 + epsilon cj) (F_y + cj / (1 + epsilon cj) F_y')
        factor = 1.0 + epsilon * cj
        return factor * jacobian(t, y + epsilon * yp, yp, cj / factor, *params)

    return replace(problem, residual=shifted, jacobian=None if jacobian is None else shifted_jacobian, algebraic=None)


def _penalised(problem: SemiExplicitDAE, epsilon: float) -> SemiExplicitDAE:
    """The constraint g - epsilon z."""
    g, n_y, sparsity = problem.g, problem.n_y, problem.sparsity
    jacobian = cast(Any, problem.jacobian)
    diagonal = np.r_[np.zeros(n_y), np.full(problem.n_z, -epsilon)]

    def penalised(t, y, z, *params):
        return np.asarray(g(t, y, z, *params)) - epsilon * z

    def penalised_jacobian(t, x, xp, cj, *params):
        matrix = jacobian(t, x, xp, cj, *params)
        return matrix + (np.diag(diagonal) if sparsity is None else _sparse_diagonal(diagonal))

    known = jacobian is not None and problem.bandwidth is None
    return replace(
        problem,
        g=penalised,
        jacobian=penalised_jacobian if known else None,
        sparsity=None if sparsity is None else abs(sparsity) + _sparse_diagonal(np.abs(diagonal)),
    )


def _sparse_diagonal(diagonal: np.ndarray):
    from scipy.sparse import diags_array

    return diags_array(diagonal, format="csc")
