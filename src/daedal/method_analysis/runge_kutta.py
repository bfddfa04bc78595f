"""The analysis of a Runge-Kutta method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.method_analysis.orders import OrderFound, differential_order
from daedal.method_analysis.predictions import Signature, predict
from daedal.method_analysis.result import MethodAnalysis, stability_rows, yes
from daedal.method_analysis.simplifying import (
    Method,
    Order,
    algebraic_order,
    known_first_stage_order,
    quadrature_order,
    stage_order,
    transposed_order,
)
from daedal.method_analysis.stability import LinearStability, linear_stability
from daedal.methods.runge_kutta_tableau import RungeKuttaTableau

_HIGHEST_IN_FLOATS = 18
_UNIT = 1e-9  # |r| = 1 and r = 1 for floats


@dataclass(frozen=True, repr=False)
class RungeKuttaAnalysis(MethodAnalysis):
    r"""What follows from the coefficients of a Runge-Kutta method.

    Attributes
    ----------
    reduced : RungeKuttaTableau
        The method without idle stages, which everything else speaks of.
    order_found : OrderFound
        How the order was found.
    B, C, D : int or infinity
        The simplifying assumptions that hold.
    k_I : int
        The internal stage order: C(k_I) and B(k_I).
    k_a : tuple
        The algebraic orders of index 1, 2, 3; infinite if all conditions hold, None if A is singular. If one stage is
        known and the others have an invertible matrix, as for Lobatto IIIA, that of index 1 is defined.
    r : number
        :math:`1 - b^T A^{-1} 1 = R(\infty)`, exact if the coefficients are; infinite for explicit methods.
    strictly_stable : bool
        :math:`|r| < 1`.
    stiffly_accurate : bool
        A stage is the new point, and A is invertible or its other stages are.
    stability : LinearStability
        What the test equation says.
    singly_implicit : bool
        Whether A has one real eigenvalue.
    tolerance : float
        Up to which floats count as equal; without meaning if the coefficients are exact.
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

    def rows(self) -> Sequence[tuple[str, str]]:
        """Properties as names and values."""
        found, method = self.order_found, self.method
        assert isinstance(method, RungeKuttaTableau)
        idle = f"; {method.s - self.reduced.s} more do nothing" if self.reduced.s < method.s else ""
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
    """All that is known about a Runge-Kutta method."""
    tableau = given.reduced()
    method = Method.of(tableau)
    if not method.numbers.exact and quadrature_order(method) > _HIGHEST_IN_FLOATS:
        raise InvalidProblemError(
            f"{given.name} seems to have an order above {_HIGHEST_IN_FLOATS}, where conditions fail by less than the "
            "round-off of coefficients that are floats; analyse a method with fewer stages, or with exact coefficients"
        )
    found = differential_order(method)
    stability = linear_stability(method)
    b, c, d = quadrature_order(method), stage_order(method), transposed_order(method)
    r = stability.at_infinity
    size = abs(float(r))
    strictly = size < 1.0 - (0.0 if method.numbers.exact else _UNIT)
    first = algebraic_order(method, 1)
    if first is None:
        first = known_first_stage_order(method)
    k_a = (first, algebraic_order(method, 2), algebraic_order(method, 3))
    accurate = tableau.stiffly_accurate and first is not None
    signature = Signature(
        k_d=found.order,
        b=b,
        c=c,
        d=d,
        k_i=min(b, c),
        k_a=k_a,
        r=float(r),
        r_is_one=abs(float(r) - 1.0) < _UNIT,
        strictly_stable=strictly,
        stiffly_accurate=accurate,
        backward_euler=tableau.s == 1 and all(x == 1 for x in (tableau.a[0][0], tableau.b[0], tableau.c[0])),
    )
    return RungeKuttaAnalysis(
        method=given,
        exact=method.numbers.exact,
        order=found.order,
        a_stable=stability.a_stable,
        l_stable=stability.l_stable,
        angle=stability.angle,
        predictions=predict(signature, method),
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


def _one_eigenvalue(method: Method) -> bool:
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
