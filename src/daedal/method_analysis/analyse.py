"""From what a user has, a name, a method or coefficients, to its analysis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.method_analysis.multistep import MultistepAnalysis, analyse_multistep
from daedal.method_analysis.runge_kutta import RungeKuttaAnalysis, analyse_runge_kutta
from daedal.methods.collocation import Collocation
from daedal.methods.dassl import DASSL
from daedal.methods.multistep_formula import MultistepFormula
from daedal.methods.named_formulas import formula
from daedal.methods.runge_kutta_tableau import RungeKuttaTableau

_FAMILIES = {"radau": "radau_iia", "gauss": "gauss", "lobatto": "lobatto_iiia"}


def analyse_method(method: Any) -> RungeKuttaAnalysis | MultistepAnalysis:
    r"""Say what follows from the coefficients of a method: orders on DAEs of index 0 to 3, and stability.

    For Runge-Kutta methods: the order, the simplifying assumptions B, C, D, the algebraic orders :math:`k_a` and the
    stage order :math:`k_I` of Brenan, Campbell and Petzold, :math:`r = R(\infty)`, strict, A- and L-stability. For
    multistep and one-leg methods: order, error constant, zero-stability, stability at infinity, :math:`A(\alpha)`, and
    whether they are stable on transferable DAEs. For both the orders to expect for each class of variables, with the
    theorem that says so.

    Parameters
    ----------
    method : str, RungeKuttaTableau, MultistepFormula, method, or pair
        A name that :func:`daedal.formula` knows; coefficients; a method such as ``daedal.Collocation("gauss", 2)``
        (``daedal.DASSL(max_order=k)`` is BDF of order k with constant steps, a half-explicit method the explicit method
        for differential equations that it is based on); a pair (A, b) or (rho, sigma).

    Returns
    -------
    RungeKuttaAnalysis or MultistepAnalysis
        Printed, it is a table. Exact coefficients are computed with exactly, sums of floats compared to a
        tolerance; the result says which.

    Examples
    --------
    >>> import daedal
    >>> radau = daedal.analyse_method("radau5")
    >>> radau.order, radau.k_I, radau.r, radau.l_stable, radau.exact
    (5, 3, Fraction(0, 1), True, True)
    >>> [x.text for x in radau.predicted(2, "z")], [x.text for x in radau.predicted(3, "x3")]
    (['3'], ['2'])
    >>> midpoint = daedal.analyse_method(daedal.MultistepFormula([1, -1], ["1/2", "1/2"], one_leg=True))
    >>> midpoint.order, midpoint.transferable
    (2, False)
    """
    coefficients = _coefficients(method)
    if isinstance(coefficients, MultistepFormula):
        return analyse_multistep(coefficients)
    return analyse_runge_kutta(coefficients)


def _coefficients(method: Any) -> RungeKuttaTableau | MultistepFormula:
    if isinstance(method, RungeKuttaTableau | MultistepFormula):
        return method
    if isinstance(method, str):
        return formula(method)
    if isinstance(method, DASSL):
        return formula(f"bdf{method.max_order or 5}")
    if isinstance(method, Collocation):
        return formula(f"{_FAMILIES[method.kind]}{method.stages}")
    if isinstance(method, tuple | list) and len(method) == 2:
        return _pair(*method)
    if hasattr(method, "rho") and hasattr(method, "sigma"):
        return MultistepFormula(method.rho, method.sigma, getattr(method, "one_leg", False))
    tableau = getattr(method, "tableau", method)
    if isinstance(tableau, RungeKuttaTableau):
        return tableau
    if not isinstance(tableau, type) and all(hasattr(tableau, part) for part in ("a", "b", "c")):
        name = getattr(tableau, "name", getattr(method, "__name__", type(method).__name__))
        return RungeKuttaTableau(tableau.a, tableau.b, tableau.c, name)
    raise InvalidProblemError(
        f"method={method!r} has no coefficients to analyse; pass a name such as 'radau5' or 'bdf3', a "
        "RungeKuttaTableau, a MultistepFormula, a method with a tableau, or a pair (A, b) or (rho, sigma)"
    )


def _pair(first: Any, second: Any) -> RungeKuttaTableau | MultistepFormula:
    rows = list(first) if isinstance(first, Iterable) else []
    if rows and isinstance(rows[0], Iterable) and not isinstance(rows[0], str):
        return RungeKuttaTableau(first, second)
    return MultistepFormula(first, second)
