"""Sensitivity of the solutions of DAEs to perturbations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daedal.analysis.conditioning.conditioning_result import Conditioning


def analyse_conditioning(
    problem: Any, along: Any, *, threshold: float = 1e-3, points: int | None = None
) -> Conditioning:
    r"""The sensitivity of the solution of a DAE to perturbations, and its effective index.

    For :math:`x' = A x + B y + p,\; 0 = C x + D y + q` the result contains bounds of the changes of x and y caused by
    unit changes of the initial values, p, q or q': the constants of the perturbation bounds for index 1 and 2, and for
    problems that formally have one index but behave like those of the next.

    Parameters
    ----------
    problem : LinearDAE, SemiExplicitDAE, ImplicitDAE, linear.Pencil or linear.TimeVarying
        Pencils and time-varying systems are A x' + B x = q. Nonlinear problems are linearised along a solution, with
        exact derivatives if they can be traced.
    along : (float, float) or Solution
        The interval (linear problems only), or a solution.
    threshold : float
        Relative size below which a variable counts as absent from a constraint; this determines the effective index.
    points : int, optional
        Number of points of the grid; 101 for small problems.

    Returns
    -------
    Conditioning
        ``print`` describes it in words, ``.plot()`` over time; ``result["k2"]`` is a constant, ``.advice`` lists
        consequences.

    Notes
    -----
    P. M. E. J. Wijckmans, Conditioning of Differential Algebraic Equations and Numerical Solution of Multibody
    Dynamics, chapters 4 and 5. Norms are Euclidean, maximised over time: choose units such that all unknowns are of
    similar size. Rounding errors of fundamental matrices limit detectable factors to about 1e12.

    Examples
    --------
    >>> import daedal
    >>> found = daedal.analysis.analyse_conditioning(daedal.library.nearly_index2(1e-6).problem, (0.0, 1.0))
    >>> found.index, found.effective_index
    (1, 2)
    >>> print(f"{found['D_inverse']:.3g} {found['layer_k2_hat']:.3g}")  # q that jumps, and smooth q
    1e+06 1
    """
    from daedal.analysis.conditioning.measure import measured

    return measured(problem, along, threshold, points)
