"""Orders from trees: for differential equations, and for DAEs of index 1 and 2 in Hessenberg form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from daedal.method_analysis.arithmetic import Numbers
from daedal.method_analysis.simplifying import Method, Order, quadrature_order, stage_order, transposed_order
from daedal.order_conditions import implicit
from daedal.order_conditions.evaluation import Evaluation

HIGHEST_TREES = 10  # 719 rooted trees
HIGHEST_CONSTRAINED = 6  # 220 trees with fat vertices; their number grows fivefold with each order


@dataclass(frozen=True)
class OrderFound:
    """An order, how it was found, and whether it may be higher still."""

    order: int
    reason: str
    at_least: bool = False


def evaluation(method: Method) -> Evaluation:
    """Trees on the coefficients; those with fat vertices need `omega`."""
    return Evaluation(method.a, method.a, method.b, method.omega or [], method.numbers.enter(1))


def differential_order(method: Method) -> OrderFound:
    r"""The order for y' = f(y).

    B(p), C(q) and D(r) give order p if :math:`p \le q + r + 1` and :math:`p \le 2q + 2` (Butcher 1964; Hairer, Norsett
    and Wanner I, Theorem II.7.4), and no method has a higher order than its quadrature. Where the two differ, trees
    decide.
    """
    p, q, r = quadrature_order(method), stage_order(method), transposed_order(method)
    lower = int(min(p, q + r + 1, 2 * q + 2))
    if lower == p:
        return OrderFound(lower, f"B({p:g}), C({_text(q)}), D({_text(r)})")
    order, last = order_by_trees(implicit.differential, evaluation(method), method.numbers, int(min(p, HIGHEST_TREES)))
    if order < lower:
        return OrderFound(lower, f"B({p:g}), C({_text(q)}), D({_text(r)})", at_least=True)
    return OrderFound(order, f"rooted trees up to order {last}", at_least=order == HIGHEST_TREES < p)


def index_1_order(method: Method, limit: int) -> int:
    r"""The k with :math:`z_1 - z(t_1) = O(h^{k+1})` for y' = f(y, z), 0 = g(y, z), as far as a limit."""
    return order_by_trees(implicit.index_1, evaluation(method), method.numbers, min(limit, HIGHEST_TREES))[0]


def index_2_orders(method: Method, limit: int) -> tuple[int, int]:
    r"""The orders of convergence of y and z for y' = f(y, z), 0 = g(y) and :math:`|R(\infty)| < 1`, as far as a limit.

    If the error of a step is :math:`O(h^{k+1})` along the constraint and :math:`O(h^{w+1})` across it, where it is
    damped by :math:`R(\infty)` instead of being added up, y converges with order min(k, w + 1) (Hairer and Wanner II,
    VII.4). An error of y across the constraint, divided by h, is one of z, which converges with order min(k, w, m + 1)
    if its own error in a step is :math:`O(h^{m+1})`.
    """
    trees, numbers, limit = evaluation(method), method.numbers, min(limit, HIGHEST_CONSTRAINED)
    along = order_by_trees(implicit.index_2_y, trees, numbers, limit)[0]
    across = order_by_trees(implicit.index_2_across, trees, numbers, limit)[0]
    own = order_by_trees(implicit.index_2_z, trees, numbers, limit - 1)[0]
    return min(along, across + 1), min(along, across, own + 1)


def order_by_trees(
    conditions: Callable[[Evaluation, int], implicit.Sides], trees: Evaluation, numbers: Numbers, limit: int
) -> tuple[int, int]:
    """The order up to which all conditions hold, and that of the last conditions that were looked at."""
    for k in range(1, limit + 1):
        if not all(numbers.equal(left, numbers.enter(right)) for left, right in conditions(trees, k)):
            return k - 1, k
    return limit, limit


def _text(order: Order) -> str:
    return "∞" if order == float("inf") else f"{order:g}"
