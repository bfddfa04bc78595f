"""Common parts of all method analyses: predictions, table, plot."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daedal.analysis.method_analysis.orders_by_class import (
    HIGHEST_CONSTRAINED,
    ExactCoefficients,
    Order,
    index_1_order,
    index_2_orders,
)
from daedal.common.tabular import Tabular
from daedal.methods.multistep.multistep_formula import MultistepFormula
from daedal.methods.tableau import RungeKuttaTableau

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from daedal.analysis.method_analysis.analyse_method import RungeKuttaAnalysis

BOOK, HLR, HW = "BCP", "HLR", "HW"
SOURCES = """\
BCP  Brenan, Campbell, Petzold: Numerical Solution of Initial-Value Problems in DAEs (1996)
HLR  Hairer, Lubich, Roche: The Numerical Solution of DAEs by Runge-Kutta Methods (1989)
HW   Hairer, Wanner: Solving Ordinary Differential Equations II (1996)"""


@dataclass(frozen=True)
class Prediction:
    """The order of convergence with constant steps for one class of variables of a class of problems.

    Attributes
    ----------
    problem : str
        The class of problems, in words.
    index : int
        Its index.
    variables : str
        The class of variables.
    order : float or None
        The order guaranteed by the theorem; infinite if there is no error at all, None if nothing is guaranteed.
    at_most : float or None
        An upper bound for generic problems of the class; None if unknown.
    theorem : str
        The theorem, with its source.

    Examples
    --------
    >>> import daedal
    >>> found = daedal.analysis.analyse_method(daedal.methods.coefficients("radau5"))
    >>> for prediction in found.predicted(2):
    ...     print(prediction.variables, prediction.order)
    y 3
    x 4
    y 3
    y 5
    z 3
    """

    problem: str
    index: int
    variables: str
    order: Order | None
    at_most: Order | None
    theorem: str

    @property
    def text(self) -> str:
        """Short form of the order: "3", "2 to 3", "exact", or "-" if nothing is guaranteed."""
        if self.order is None:
            return "-"
        if self.order == math.inf:
            return "exact"
        more = self.at_most is not None and self.at_most > self.order
        return f"{self.order:g} to {self.at_most:g}" if more else f"{self.order:g}"


def canonical_order(analysis: RungeKuttaAnalysis, index: int) -> Order | None:
    """The order for linear systems with constant coefficients, k_c (Theorem 4.2.2; section 4.2 for |r| = 1)."""
    orders = analysis.k_a[:index]
    if any(k is None for k in orders):
        return None
    known = [k for k in orders if k is not None]
    if analysis.strictly_stable:
        found = min(analysis.k_d, *(k - index + 2 for k in known))
        return found if found > 0 else None
    if index > 1 or abs(float(analysis.r)) > 1.0 + 1e-9:
        return None
    return min(analysis.k_d, known[0] + (0 if analysis.r_is_one else 1))


def predict(analysis: RungeKuttaAnalysis, method: ExactCoefficients) -> tuple[Prediction, ...]:
    """Predictions for a Runge-Kutta method, from index 0 to 3."""
    groups: list[Callable[[RungeKuttaAnalysis, ExactCoefficients], Iterator[Prediction]]] = [
        _index_0,
        _index_1,
        _linear,
        _index_2,
        _index_3,
    ]
    return tuple(sorted((x for group in groups for x in group(analysis, method)), key=lambda x: x.index))


def _index_0(analysis: RungeKuttaAnalysis, method: ExactCoefficients) -> Iterator[Prediction]:
    yield Prediction("y' = f(t, y)", 0, "y", analysis.k_d, analysis.k_d, "Butcher, rooted trees: k_d")


def _index_1(analysis: RungeKuttaAnalysis, method: ExactCoefficients) -> Iterator[Prediction]:
    k_d = analysis.k_d
    problem = "x' = f, 0 = g(x, y)"
    yield Prediction(problem, 1, "x", k_d, k_d, f"{BOOK} 4.3.1: that of the state-space form")
    if analysis.stiffly_accurate:
        yield Prediction(problem, 1, "y", k_d, k_d, f"{BOOK} 4.3.1: stiffly accurate, g = 0 at every step")
    elif method.omega is None or abs(float(analysis.r)) > 1.0 + 1e-9:
        reason = "A is singular" if method.omega is None else "|r| > 1"
        yield Prediction(problem, 1, "y", None, None, f"{reason}; y from g(x_n, y_n) = 0 has order {k_d}")
    else:
        k = index_1_order(method, k_d) + (0 if analysis.r_is_one else 1)
        order = min(k_d, k)
        yield Prediction(problem, 1, "y", order, order, f"Roche's trees; y from g(x_n, y_n) = 0 has order {k_d}")
    yield _fully_implicit(analysis, method, "F(t, y, y') = 0")


def _fully_implicit(analysis: RungeKuttaAnalysis, method: ExactCoefficients, problem: str) -> Prediction:
    """The prediction of Theorem 4.3.1 for fully implicit problems of index 1."""
    k_d, k_i, k_a1 = analysis.k_d, analysis.k_I, analysis.k_a[0]
    if analysis.backward_euler:
        return Prediction(problem, 1, "y", 1, 1, f"{BOOK} Theorem 3.2.1: it is BDF1")
    if method.omega is None or k_a1 is None:
        return Prediction(problem, 1, "y", None, None, f"{BOOK} Theorem 4.3.1 needs an invertible A")
    if abs(float(analysis.r)) > 1.0 + 1e-9:
        return Prediction(problem, 1, "y", None, None, f"{BOOK} Theorem 4.3.1 needs |r| <= 1: unstable")
    order = min(k_d, k_i if analysis.r_is_one and k_a1 <= k_i else k_i + 1)
    if order <= 1:
        return Prediction(problem, 1, "y", None, None, f"{BOOK} Theorem 4.3.1 needs an order above 1")
    bound = canonical_order(analysis, 1)
    at_most = max(order, min(k_d, bound if bound is not None else math.inf))
    remark = "" if analysis.strictly_stable else ", smooth steps only: |r| = 1"
    return Prediction(problem, 1, "y", order, at_most, f"{BOOK} Theorem 4.3.1{remark}")


def _linear(analysis: RungeKuttaAnalysis, method: ExactCoefficients) -> Iterator[Prediction]:
    for index in (1, 2, 3):
        problem, variables = "A y' + B y = f, constant", "y"
        if analysis.k_a[index - 1] is None:
            order, reason = None, "4.2 needs an invertible A"
        elif method.omega is None:
            order, reason = canonical_order(analysis, 1), "(4.2.21): the first stage is known"
        elif analysis.backward_euler:
            order, reason = (math.inf if index == 1 else 1), f"Theorem 3.1.1: BDF1, after {index} steps"
            variables = "algebraic"
        else:
            order = canonical_order(analysis, index)
            theorem = "Theorem 4.2.2" if analysis.strictly_stable else "section 4.2 for |r| = 1"
            reason = theorem if order is not None else f"{theorem}: nothing is guaranteed"
        yield Prediction(problem, index, variables, order, order, f"{BOOK} {reason}")


def _index_2(analysis: RungeKuttaAnalysis, method: ExactCoefficients) -> Iterator[Prediction]:
    """Predictions for index 2: Theorem 4.4.1 for semi-explicit problems, trees for Hessenberg form."""
    general, hessenberg = "f(t, x, x', y) = 0, 0 = g(t, x, y)", "y' = f(y, z), 0 = g(y)"
    q = analysis.k_I
    if analysis.backward_euler:
        for problem, variables in ((general, "x"), (general, "y"), (hessenberg, "y"), (hessenberg, "z")):
            yield Prediction(problem, 2, variables, 1, 1, f"{BOOK} Theorem 3.2.2: it is BDF1")
        return
    g_x = q + 1 if analysis.B >= q + 1 else q
    if method.omega is None or not analysis.strictly_stable or g_x <= 1:
        reason = _why_not(method, analysis, g_x)
        for problem, variables in ((general, "x"), (general, "y"), (hessenberg, "y"), (hessenberg, "z")):
            yield Prediction(problem, 2, variables, None, None, reason)
        return
    k_a1, k_a2 = (k if k is not None else 0 for k in analysis.k_a[:2])
    g_y = q + 1 if analysis.B >= q + 1 and min(k_a1, k_a2) >= q + 1 else q
    bound = canonical_order(analysis, 2) or g_y
    book = f"{BOOK} Theorem 4.4.1"
    yield Prediction(general, 2, "x", g_x, max(g_x, analysis.k_d), book)
    yield Prediction(general, 2, "y", g_y, max(g_y, bound), book)
    yield from _hessenberg_2(analysis, method, hessenberg, (g_x, g_y), bound)


def _hessenberg_2(
    analysis: RungeKuttaAnalysis, method: ExactCoefficients, problem: str, known: tuple[Order, Order], bound: Order
) -> Iterator[Prediction]:
    k_d, (low_y, low_z) = analysis.k_d, known
    theorem_y = theorem_z = f"{BOOK} Theorem 4.4.1"
    if analysis.stiffly_accurate:  # superconvergence
        from_simplifying = min(analysis.B, 2 * analysis.C, analysis.C + analysis.D)
        if from_simplifying > low_y:
            low_y, theorem_y = from_simplifying, f"{HLR}, stiffly accurate, B(p) C(q) D(r): min(p, 2q, q + r)"
    if low_y < k_d or low_z < bound:
        trees_y, trees_z = index_2_orders(method, k_d)
        if trees_y > low_y:
            low_y, theorem_y = trees_y, f"{HLR}, trees of index 2"
        if trees_z > low_z:
            low_z, theorem_z = trees_z, f"{HLR}, trees of index 2"
        if trees_y < min(k_d, HIGHEST_CONSTRAINED):  # a condition failed
            k_d = trees_y
        if trees_z < min(bound, HIGHEST_CONSTRAINED):
            bound = trees_z
    yield Prediction(problem, 2, "y", low_y, max(low_y, k_d), theorem_y)
    yield Prediction(problem, 2, "z", low_z, max(low_z, bound), theorem_z)


def _why_not(method: ExactCoefficients, analysis: RungeKuttaAnalysis, g_x: Order) -> str:
    if method.omega is None:
        return f"{BOOK} Theorem 4.4.1 needs an invertible A"
    if not analysis.strictly_stable:
        return f"{BOOK} Theorem 4.4.1 needs |r| < 1"
    return f"{BOOK} Theorem 4.4.1 needs an order above 1, got {g_x:g}"


def _index_3(analysis: RungeKuttaAnalysis, method: ExactCoefficients) -> Iterator[Prediction]:
    problem, k = "x1' = f1, x2' = f2(x1, x2), 0 = f3(x2)", analysis.k_I
    names = ("x1, x2", "x3")
    if analysis.backward_euler:
        for variables in names:
            yield Prediction(problem, 3, variables, 1, 1, f"{BOOK} Theorem 3.2.3: BDF1, after 2 steps")
        return
    covered = k >= 2 and analysis.strictly_stable and method.omega is not None
    theorem = f"{HLR} for k_I >= 2, |r| < 1"
    bounds = (None, max(k - 1, canonical_order(analysis, 3) or 0))
    for variables, order, at_most in zip(names, (k, k - 1), bounds):
        if covered:
            yield Prediction(problem, 3, variables, order, at_most, theorem)
        else:
            yield Prediction(problem, 3, variables, None, None, f"{theorem} does not apply")


# --- the result -------------------------------------------------------------------------------------------------------

_HEADER = ("index", "problem", "variables", "order", "theorem")


@dataclass(frozen=True, repr=False)
class MethodAnalysis(ABC):
    """The result of :func:`daedal.analysis.analyse_method`; ``print`` shows a table.

    Attributes
    ----------
    method : RungeKuttaTableau or MultistepFormula
        The coefficients.
    exact : bool
        Whether everything but the angle of a stable sector was computed exactly.
    order : int
        The order for ordinary differential equations.
    a_stable, l_stable : bool
        Whether the method is A-stable and L-stable.
    angle : float
        The angle of the largest stable sector in degrees.
    predictions : tuple of Prediction
        Orders on DAEs of index 0 to 3, for each class of variables.

    Examples
    --------
    >>> import daedal
    >>> found = daedal.analysis.analyse_method(daedal.methods.coefficients("radau5"))
    >>> print(type(found).__name__, found.order, found.a_stable)
    RungeKuttaAnalysis 5 True
    """

    method: RungeKuttaTableau | MultistepFormula
    exact: bool
    order: int
    a_stable: bool
    l_stable: bool
    angle: float
    predictions: tuple[Prediction, ...]

    def predicted(self, index: int, variables: str | None = None) -> list[Prediction]:
        """The predictions for an index, of all variables or of the given ones."""
        return [x for x in self.predictions if x.index == index and variables in (None, x.variables)]

    @abstractmethod
    def rows(self) -> Sequence[tuple[str, str]]:
        """Properties as names and values."""

    def plot(self, *, save: str | Path | None = None, pyplot: bool = True, **options: Any) -> Figure:
        """The stability region, see :func:`daedal.viz.plot_stability_region`."""
        from daedal.viz import plot_stability_region

        return plot_stability_region(self.method, save=save, pyplot=pyplot, **options)

    def table(self) -> Tabular:
        """The predictions as a table."""
        return Tabular("rllll", [_line(x) for x in self.predictions], _HEADER)

    def __repr__(self) -> str:
        return f"<analysis of {self.method.name}: order {self.order}>"

    def __str__(self) -> str:
        properties = Tabular("ll", self.rows(), indent=2)
        orders = Tabular("rllll", [_line(x) for x in self.predictions], _HEADER, indent=2)
        return "\n".join(
            [
                self.method.name,
                str(properties),
                "",
                'Order of convergence with constant steps. "2 to 3": 2 is guaranteed, 3 is generally not exceeded; '
                '"-": nothing is guaranteed.',
                str(orders),
                "",
                SOURCES,
            ]
        )

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        properties = Tabular("ll", self.rows()).__html__()
        return str(Markup("<p><b>{}</b></p>{}<p></p>{}").format(self.method.name, properties, self.table().__html__()))


def _line(x: Prediction) -> tuple[str, ...]:
    return str(x.index), x.problem, x.variables, x.text, x.theorem


def yes(holds: bool) -> str:
    """ "yes" or "no"."""
    return "yes" if holds else "no"


def stability_rows(a_stable: bool, l_stable: bool, angle: float, proved: bool) -> list[tuple[str, str]]:
    """Description of A-stability, L-stability and the angle."""
    how = "proved" if proved else "numerically"
    sector = "90°" if a_stable else f"{angle:.2f}° (numerically)" if angle else "none: the negative axis is not stable"
    return [
        ("A-stable", f"{yes(a_stable)} ({how})"),
        ("A(α)-stable, α =", sector),
        ("L-stable", f"{yes(l_stable)} ({how})"),
    ]
