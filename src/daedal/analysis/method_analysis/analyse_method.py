"""Analyse a method given by name, object or coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from daedal.analysis.method_analysis.linear_stability import (
    LinearStability,
    MultistepStability,
    linear_stability,
    multistep_stability,
)
from daedal.analysis.method_analysis.orders_by_class import (
    ExactCoefficients,
    Numbers,
    Order,
    OrderFound,
    Row,
    algebraic_order,
    differential_order,
    dot,
    known_first_stage_order,
    quadrature_order,
    stage_order,
    transposed_order,
)
from daedal.analysis.method_analysis.predictions import (
    BOOK,
    HW,
    MethodAnalysis,
    Prediction,
    predict,
    stability_rows,
    yes,
)
from daedal.errors import InvalidProblemError
from daedal.methods.bdf.dassl import DASSL
from daedal.methods.implicit_rk.collocation import Collocation
from daedal.methods.multistep.multistep_formula import MultistepFormula, bdf
from daedal.methods.named_formulas import coefficients
from daedal.methods.tableau import RungeKuttaTableau

_HIGHEST_IN_FLOATS = 18
_UNIT = 1e-9  # tolerance of |r| = 1 and r = 1 in floating point


@dataclass(frozen=True, repr=False)
class RungeKuttaAnalysis(MethodAnalysis):
    r"""Properties of a Runge-Kutta method derived from its coefficients.

    Attributes
    ----------
    reduced : RungeKuttaTableau
        The method without idle stages, which all other attributes describe.
    order_found : OrderFound
        How the order was found.
    B, C, D : int or infinity
        The simplifying assumptions that hold.
    k_I : int
        The internal stage order: C(k_I) and B(k_I).
    k_a : tuple
        The algebraic orders of index 1, 2, 3; infinite if all conditions hold, None if A is singular. That of index 1
        is also defined if the first stage is known and the others have an invertible matrix, as for Lobatto IIIA.
    r : number
        :math:`1 - b^T A^{-1} 1 = R(\infty)`, exact if the coefficients are; infinite for explicit methods.
    strictly_stable : bool
        Whether :math:`|r| < 1`.
    stiffly_accurate : bool
        Whether a stage equals the new point, and A or the submatrix of the other stages is invertible.
    stability : LinearStability
        Linear stability, from the test equation.
    singly_implicit : bool
        Whether A has a single eigenvalue, which is real and nonzero.
    tolerance : float
        Relative difference below which floats count as equal; unused for exact coefficients.

    Examples
    --------
    >>> import daedal
    >>> found = daedal.analysis.analyse_method(daedal.methods.coefficients("radau5"))
    >>> print(type(found).__name__, found.order, found.a_stable)
    RungeKuttaAnalysis 5 True
    """

    reduced: RungeKuttaTableau
    order_found: OrderFound
    B: Order
    C: Order
    D: Order
    k_I: Order
    k_a: tuple[Order | None, Order | None, Order | None]
    r: Any
    strictly_stable: bool
    stiffly_accurate: bool
    stability: LinearStability
    singly_implicit: bool
    tolerance: float

    @property
    def k_d(self) -> int:
        """The order for differential equations."""
        return self.order

    @property
    def r_is_one(self) -> bool:
        """Whether r = 1, up to round-off."""
        return abs(float(self.r) - 1.0) < _UNIT

    @property
    def backward_euler(self) -> bool:
        """Whether the method is the backward Euler method."""
        tableau = self.reduced
        return tableau.s == 1 and all(x == 1 for x in (tableau.a[0][0], tableau.b[0], tableau.c[0]))

    def rows(self) -> Sequence[tuple[str, str]]:
        found, method = self.order_found, self.method
        assert isinstance(method, RungeKuttaTableau)
        idle = f"; {method.s - self.reduced.s} more are idle" if self.reduced.s < method.s else ""
        orders = ", ".join(_number(k) for k in self.k_a)
        return [
            ("coefficients", "exact" if self.exact else f"floats, sums compared to {self.tolerance:.0e}"),
            ("stages", f"{self.reduced.s}, {self._kind()}{idle}"),
            ("order k_d", f"{'at least ' if found.at_least else ''}{self.order}, by {found.reason}"),
            ("stage order k_I", _number(self.k_I)),
            ("B, C, D", f"B({_number(self.B)}), C({_number(self.C)}), D({_number(self.D)})"),
            ("k_a of index 1, 2, 3", orders if self.k_a[0] is not None else "none, A is singular"),
            ("r = R(∞)", f"{_value(self.r)}, {'strictly stable' if self.strictly_stable else 'not strictly stable'}"),
            ("stiffly accurate", yes(self.stiffly_accurate)),
            *stability_rows(self.a_stable, self.l_stable, self.angle, self.stability.proved),
        ]

    def _kind(self) -> str:
        if self.reduced.explicit:
            return "explicit"
        if self.reduced.diagonally_implicit:
            return "diagonally implicit" + (", one matrix to factorise" if self.singly_implicit else "")
        return "singly implicit: one real eigenvalue" if self.singly_implicit else "fully implicit"


def analyse_runge_kutta(given: RungeKuttaTableau) -> RungeKuttaAnalysis:
    """The complete analysis of a Runge-Kutta method."""
    tableau = given.reduced()
    method = ExactCoefficients.of(tableau)
    if not method.numbers.exact and quadrature_order(method) > _HIGHEST_IN_FLOATS:
        raise InvalidProblemError(
            f"{given.name} seems to have an order above {_HIGHEST_IN_FLOATS}, where conditions fail by less than "
            "the round-off of floating-point coefficients; analyse a method with fewer stages, or with exact "
            "coefficients"
        )
    found = differential_order(method)
    stability = linear_stability(method)
    b, c, d = quadrature_order(method), stage_order(method), transposed_order(method)
    r = stability.at_infinity
    strictly = abs(float(r)) < 1.0 - (0.0 if method.numbers.exact else _UNIT)
    first = algebraic_order(method, 1)
    if first is None:
        first = known_first_stage_order(method)
    k_a = (first, algebraic_order(method, 2), algebraic_order(method, 3))
    accurate = tableau.stiffly_accurate and first is not None
    analysis = RungeKuttaAnalysis(
        method=given,
        exact=method.numbers.exact,
        order=found.order,
        a_stable=stability.a_stable,
        l_stable=stability.l_stable,
        angle=stability.angle,
        predictions=(),
        reduced=tableau,
        order_found=found,
        B=b,
        C=c,
        D=d,
        k_I=min(b, c),
        k_a=k_a,
        r=r,
        strictly_stable=strictly,
        stiffly_accurate=accurate,
        stability=stability,
        singly_implicit=_one_eigenvalue(method),
        tolerance=method.numbers.tolerance,
    )
    object.__setattr__(analysis, "predictions", predict(analysis, method))
    return analysis


def _one_eigenvalue(method: ExactCoefficients) -> bool:
    """Whether det(I - zA) = (1 - lambda z)^s with lambda not zero."""
    numbers, s = method.numbers, method.s
    polynomial = numbers.determinant_polynomial(method.a)
    eigenvalue = -polynomial[1] / numbers.enter(s)
    return bool(eigenvalue) and all(
        numbers.equal(x, numbers.enter(math.comb(s, k)) * (-eigenvalue) ** k) for k, x in enumerate(polynomial) if k
    )


def _number(k: Order | None) -> str:
    return "-" if k is None else "∞" if k == math.inf else f"{k:g}"


def _value(r: Any) -> str:
    if isinstance(r, float):
        return "∞" if math.isinf(r) else f"{0.0 if abs(r) < _UNIT else r:.6g}"
    text = str(r)
    return text if text == f"{float(r):g}" else f"{text} = {float(r):.6g}"


# --- the analysis of linear multistep and one-leg methods -------------------------------------------------------------

# With steps of size 1 and :math:`t_{n-j} = -j` (Brenan, Campbell and Petzold, section 3.4): order p of a multistep
# method is :math:`\sum \alpha_j (-j)^q = q \sum \beta_j (-j)^{q-1}` for q up to p; that of a one-leg method, (3.4.29),
# requires :math:`\sum \alpha_j (-j - \bar t)^q = 0` and :math:`\sum \beta_j (-j - \bar t)^{q-1} = 0` for q from 2 to p,
# with :math:`\bar t = \sum \beta_j (-j)`.

_LARGEST_BDF = 6


@dataclass(frozen=True, repr=False)
class MultistepAnalysis(MethodAnalysis):
    r"""Properties of a multistep or one-leg method derived from its coefficients.

    Attributes
    ----------
    error_constant : number
        :math:`C_{p+1} / \sigma(1)` of the multistep method: a step adds :math:`C h^{p+1} y^{(p+1)}` to the error.
    order_projected : int
        The order of scheme (3.4.20) for transferable DAEs; that of (3.4.21) is `order`.
    zero_stable : bool
        Whether Dahlquist's root condition holds.
    stable_at_infinity : bool
        Whether :math:`\sigma` has all zeros inside the unit circle.
    transferable : bool
        Whether the method is stable on transferable DAEs: zero-stable and, as a one-leg method, stable at infinity.
    stability : MultistepStability
        Linear stability, from the location of the zeros of :math:`\rho` and :math:`\sigma`.

    Examples
    --------
    >>> import daedal
    >>> found = daedal.analysis.analyse_method(daedal.methods.coefficients("bdf3"))
    >>> print(found.order, found.a_stable, found.zero_stable, round(found.angle, 1))
    3 False True 86.0
    """

    error_constant: Any
    order_projected: int
    zero_stable: bool
    stable_at_infinity: bool
    transferable: bool
    stability: MultistepStability

    def rows(self) -> Sequence[tuple[str, str]]:
        formula = self.method
        assert isinstance(formula, MultistepFormula)
        kind = "one-leg" if formula.one_leg else "explicit" if formula.explicit else "implicit"
        constant = self.error_constant
        twin = " (of the multistep method)" if formula.one_leg else ""
        parasitic = self.stability.parasitic
        others = f", parasitic zeros up to {parasitic:.6g}" if parasitic is not None else ""
        return [
            ("coefficients", "exact" if self.exact else "floats, compared to ten digits"),
            ("steps", f"{formula.k}, {kind}"),
            ("order p", str(self.order)),
            ("error constant", (f"{constant:.6g}" if isinstance(constant, float) else str(constant)) + twin),
            ("zero-stable", f"{yes(self.zero_stable)} ({self._how}){others}"),
            ("zeros of σ inside", f"{yes(self.stable_at_infinity)} ({self._how}), largest {self.stability.sigma:.6g}"),
            ("transferable DAEs", f"{'stable' if self.transferable else 'unstable'} (BCP 3.4)"),
            *stability_rows(self.a_stable, self.l_stable, self.angle, self.stability.proved),
        ]

    @property
    def _how(self) -> str:
        return "proved" if self.stability.proved else "numerically"


def analyse_multistep(formula: MultistepFormula) -> MultistepAnalysis:
    """The complete analysis of a multistep or one-leg method."""
    numbers = Numbers.of((*formula.rho, *formula.sigma))
    rho, sigma = numbers.row(formula.rho), numbers.row(formula.sigma)
    total = sum(sigma[1:], sigma[0])
    order = _one_leg_order(numbers, rho, sigma, total) if formula.one_leg else _order(numbers, rho, sigma)
    stability = multistep_stability(numbers, rho, sigma)
    zero_stable, infinity = stability.zero_stable, stability.stable_at_infinity
    found = MultistepAnalysis(
        method=formula,
        exact=numbers.exact,
        order=order,
        a_stable=stability.a_stable,
        l_stable=stability.l_stable,
        angle=stability.angle,
        predictions=(),
        error_constant=_error_constant(numbers, rho, sigma) if not numbers.zero(total) else math.inf,
        order_projected=_projected_order(numbers, rho, sigma) if order else 0,
        zero_stable=zero_stable,
        stable_at_infinity=infinity,
        transferable=zero_stable and order > 0 and (infinity or not formula.one_leg),
        stability=stability,
    )
    object.__setattr__(found, "predictions", _predictions(found, numbers, rho, sigma))
    return found


def _powers(numbers: Numbers, k: int, q: int, shift: Any = 0) -> Row:
    """(-j - shift)^q for j = 0, ..., k."""
    return [(numbers.enter(-j) - shift) ** q if q else numbers.enter(1) for j in range(k + 1)]


def _last(holds: Callable[[int], bool], limit: int) -> int:
    """The largest p up to which holds(0), ..., holds(p) are true, 0 if none is."""
    for q in range(limit + 1):
        if not holds(q):
            return max(q - 1, 0)
    return limit


def _order(numbers: Numbers, rho: Row, sigma: Row) -> int:
    k = len(rho) - 1

    def holds(q: int) -> bool:
        right = numbers.enter(q) * dot(sigma, _powers(numbers, k, q - 1)) if q else numbers.enter(0)
        return numbers.equal(dot(rho, _powers(numbers, k, q)), right)

    return _last(holds, 2 * k + 1)


def _one_leg_order(numbers: Numbers, rho: Row, sigma: Row, total: Any) -> int:
    if numbers.zero(total):
        return 0
    k = len(rho) - 1
    a, b = [x / total for x in rho], [x / total for x in sigma]
    middle = dot(b, _powers(numbers, k, 1))

    def holds(q: int) -> bool:
        left = dot(a, _powers(numbers, k, q, middle))
        if q < 2:
            return numbers.equal(left, numbers.enter(q))
        return numbers.zero(left) and numbers.zero(dot(b, _powers(numbers, k, q - 1, middle)))

    return _last(holds, 2 * k + 1)


def _projected_order(numbers: Numbers, rho: Row, sigma: Row) -> int:
    """The order of (3.4.20), by (3.4.25)."""
    k = len(rho) - 1

    def holds(q: int) -> bool:
        if q < 2:  # consistency, which is known to hold
            return True
        both = dot(rho, _powers(numbers, k, q)), dot(sigma, _powers(numbers, k, q - 1))
        return all(numbers.zero(x) for x in both)

    return _last(holds, 2 * k + 1)


def _error_constant(numbers: Numbers, rho: Row, sigma: Row) -> Any:
    k, q = len(rho) - 1, _order(numbers, rho, sigma) + 1
    defect = dot(rho, _powers(numbers, k, q)) - numbers.enter(q) * dot(sigma, _powers(numbers, k, q - 1))
    return defect / (numbers.enter(math.factorial(q)) * sum(sigma[1:], sigma[0]))


def _is_bdf(numbers: Numbers, rho: Row, sigma: Row) -> bool:
    k = len(rho) - 1
    expected = numbers.row(bdf(k).rho)
    return not any(sigma[1:]) and all(numbers.equal(x / sigma[0], y) for x, y in zip(rho, expected))


def _predictions(found: MultistepAnalysis, numbers: Numbers, rho: Row, sigma: Row) -> tuple[Prediction, ...]:
    p = found.order if found.zero_stable and found.order else None
    one_leg = isinstance(found.method, MultistepFormula) and found.method.one_leg
    converges = "Dahlquist: zero-stable and consistent" if p is not None else "not zero-stable or not consistent"
    rows = [Prediction("y' = f(t, y)", 0, "y", p, p, converges)]
    stable = p if found.transferable else None
    if one_leg:
        reason = (
            "zeros of σ inside the unit circle" if stable else "unstable: a zero of σ is not inside the unit circle"
        )
        rows.append(
            Prediction("F(t, y, y') = 0, transferable", 1, "y", stable, stable, f"{BOOK} Theorem 3.4.4, {reason}")
        )
    else:
        for name in ("x", "y"):
            rows.append(Prediction("x' = f, 0 = g(x, y)", 1, name, p, p, f"{BOOK} 3.2: g(x_n, y_n) = 0 at every step"))
        small = min(found.order_projected, p) if p is not None else None
        rows.append(Prediction("F(t, y, y') = 0, transferable", 1, "y", p, p, f"{BOOK} Theorem 3.4.2, scheme (3.4.21)"))
        rows.append(
            Prediction("F(t, y, y') = 0, transferable", 1, "y", small, small, f"{BOOK} Theorem 3.4.3, scheme (3.4.20)")
        )
    if _is_bdf(numbers, rho, sigma) and len(rho) - 1 <= _LARGEST_BDF:
        return (*rows, *_of_bdf(len(rho) - 1))
    higher = p if found.stable_at_infinity and not one_leg else None
    needs = "is for multistep methods" if one_leg else "needs the zeros of σ inside the unit circle"
    reason = f"{HW} VII.3: stable at 0 and at infinity" if higher else f"{HW} VII.3 {needs}"
    for name in ("y", "z"):
        rows.append(Prediction("y' = f(y, z), 0 = g(y)", 2, name, higher, higher, reason))
    problem = "x1' = f1, x2' = f2(x1, x2), 0 = f3(x2)"
    rows.append(Prediction(problem, 3, "x1, x2, x3", None, None, f"{BOOK} Theorem 3.2.3 is for BDF"))
    return tuple(rows)


def _of_bdf(k: int) -> list[Prediction]:
    semi = "f(t, x, x', y) = 0, 0 = g(t, x, y)"
    problem = "x1' = f1, x2' = f2(x1, x2), 0 = f3(x2)"
    after = f"after {k + 1} steps"
    index_1 = Prediction("F(t, y, y') = 0, uniform index 1", 1, "y", k, k, f"{BOOK} Theorem 3.2.1")
    linear = [
        Prediction("A y' + B y = f, constant", v, "y", k, k, f"{BOOK} Theorem 3.1.1, after {(v - 1) * k + 1} steps")
        for v in (2, 3)
    ]
    index_2 = [Prediction(semi, 2, name, k, k, f"{BOOK} Theorem 3.2.2, {after}") for name in ("x", "y")]
    index_3 = Prediction(
        problem, 3, "x1, x2, x3", k, k, f"{BOOK} Theorem 3.2.3, {after}; variable steps {max(k - 1, 0)}"
    )
    return [index_1, linear[0], *index_2, linear[1], index_3]


# --- methods given by name, object or coefficients --------------------------------------------------------------------

_FAMILIES = {"radau": "radau_iia", "gauss": "gauss", "lobatto": "lobatto_iiia"}


def analyse_method(method: Any) -> RungeKuttaAnalysis | MultistepAnalysis:
    r"""Analyse a method from its coefficients: orders on DAEs of index 0 to 3, and stability.

    For Runge-Kutta methods: the order, the simplifying assumptions B, C, D, the algebraic orders :math:`k_a` and the
    stage order :math:`k_I` of Brenan, Campbell and Petzold, :math:`r = R(\infty)`, strict, A- and L-stability. For
    multistep and one-leg methods: order, error constant, zero-stability, stability at infinity, :math:`A(\alpha)`, and
    whether they are stable on transferable DAEs. For both, the expected orders for each class of variables, with the
    theorem.

    Parameters
    ----------
    method : str, RungeKuttaTableau, MultistepFormula, method, or pair
        A name accepted by :func:`daedal.methods.coefficients`; coefficients; a method such as
        ``daedal.methods.Collocation("gauss", 2)`` (``daedal.methods.DASSL(max_order=k)`` is BDF of order k with
        constant steps, a half-explicit method the underlying explicit method for differential equations); a pair
        (A, b) or (rho, sigma).

    Returns
    -------
    RungeKuttaAnalysis or MultistepAnalysis
        ``print`` shows a table. Exact coefficients are evaluated exactly, sums of floats are compared with a tolerance;
        the result states which.

    Examples
    --------
    >>> import daedal
    >>> radau = daedal.analysis.analyse_method("radau5")
    >>> radau.order, radau.k_I, radau.r, radau.l_stable, radau.exact
    (5, 3, Fraction(0, 1), True, True)
    >>> [x.text for x in radau.predicted(2, "z")], [x.text for x in radau.predicted(3, "x3")]
    (['3'], ['2'])
    >>> midpoint = daedal.methods.MultistepFormula([1, -1], ["1/2", "1/2"], one_leg=True)
    >>> midpoint = daedal.analysis.analyse_method(midpoint)
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
        return coefficients(method)
    if isinstance(method, DASSL):
        return coefficients(f"bdf{method.max_order or 5}")
    if isinstance(method, Collocation):
        return coefficients(f"{_FAMILIES[method.kind]}{method.stages}")
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
