r"""The analysis of linear multistep and one-leg methods.

With steps of size 1 and :math:`t_{n-j} = -j` (Brenan, Campbell and Petzold, section 3.4): order p of a multistep method
is :math:`\sum \alpha_j (-j)^q = q \sum \beta_j (-j)^{q-1}` for q up to p; that of a one-leg method, (3.4.29), asks for
:math:`\sum \alpha_j (-j - \bar t)^q = 0` and :math:`\sum \beta_j (-j - \bar t)^{q-1} = 0` for q from 2 to p, with
:math:`\bar t = \sum \beta_j (-j)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from daedal.method_analysis.arithmetic import Numbers, Row, dot
from daedal.method_analysis.multistep_stability import MultistepStability, multistep_stability
from daedal.method_analysis.predictions import BOOK, HW, Prediction
from daedal.method_analysis.result import MethodAnalysis, stability_rows, yes
from daedal.methods.multistep_formula import MultistepFormula, bdf

_LARGEST_BDF = 6


@dataclass(frozen=True, repr=False)
class MultistepAnalysis(MethodAnalysis):
    r"""What follows from the coefficients of a multistep or one-leg method.

    Attributes
    ----------
    error_constant : number
        :math:`C_{p+1} / \sigma(1)` of the multistep method: a step adds :math:`C h^{p+1} y^{(p+1)}` to the error.
    order_projected : int
        The order of scheme (3.4.20) for transferable DAEs; that of (3.4.21) is `order`.
    zero_stable : bool
        Dahlquist's root condition.
    stable_at_infinity : bool
        Whether :math:`\sigma` has all zeros inside the unit circle.
    transferable : bool
        Whether the method is stable for transferable DAEs: zero-stable and, as a one-leg method, stable at infinity.
    stability : MultistepStability
        Location of the zeros.
    """

    error_constant: Any
    order_projected: int
    zero_stable: bool
    stable_at_infinity: bool
    transferable: bool
    stability: MultistepStability

    def rows(self) -> Sequence[tuple[str, str]]:
        """Properties as names and values."""
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
    """All that is known about a multistep or one-leg method."""
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
        if q < 2:  # consistency, which the method is known to have
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
