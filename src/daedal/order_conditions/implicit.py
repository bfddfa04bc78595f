r"""Order conditions of implicit Runge-Kutta methods for differential equations and for DAEs of index 1 and 2.

All have the form :math:`\sum_i w_i \Phi_i = 1/\gamma`, where :math:`\Phi_i` is the value of a tree at stage i and
:math:`\omega = A^{-1}`:

* y' = f(y): rooted trees with w = b (Butcher).
* y' = f(y, z), 0 = g(y, z): the stages satisfy z = G(y), and :math:`z_1 = R(\infty) z_0 + b^T\omega Z`. A product of
  derivatives of y belongs to each forest of rooted trees, with :math:`w = b^T\omega` (Roche).
* y' = f(y, z), 0 = g(y): trees with meagre and fat vertices, w = b for y, and :math:`w = b^T\omega` for z (Hairer,
  Lubich and Roche).

References
----------
E. Hairer, C. Lubich, M. Roche: The numerical solution of differential-algebraic systems by Runge-Kutta methods, Lecture
Notes in Mathematics 1409, Springer 1989. M. Roche, Numer. Math. 52 (1988) 45-63. E. Hairer, G. Wanner: Solving Ordinary
Differential Equations II, sections VI.4 and VII.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from daedal.order_conditions.evaluation import Evaluation
from daedal.order_conditions.trees import Tree, forests, rooted_trees, weight_trees, y_trees, z_trees

Sides = Iterator[tuple[Any, Any]]
"""Left and right sides of conditions."""


def differential(method: Evaluation, order: int) -> Sides:
    """Conditions of an order for y' = f(y)."""
    for tree in rooted_trees(order):
        yield method.dot(method.b, method.values(tree)), tree.right_side


def index_1(method: Evaluation, order: int) -> Sides:
    """Conditions of an order for z of y' = f(y, z), 0 = g(y, z), beyond those for y."""
    weights = end_weights(method)
    for forest in forests(order):
        if len(forest) > 1:
            values = Tree(forest)  # its value at a stage is the product of A times the values of the branches
            yield method.dot(weights, method.values(values)), prod(tree.right_side for tree in forest)


def index_2_y(method: Evaluation, order: int) -> Sides:
    """Conditions of an order for y of y' = f(y, z), 0 = g(y), along the constraint."""
    for tree in y_trees(order):
        yield method.dot(method.b, method.values(tree)), tree.right_side


def index_2_across(method: Evaluation, order: int) -> Sides:
    """Further conditions of an order for y, across the constraint; those for y imply them if A has the row b."""
    for tree in weight_trees(order):
        yield method.dot(method.b, method.values(tree)), tree.right_side


def index_2_z(method: Evaluation, order: int) -> Sides:
    """Conditions of an order for z of y' = f(y, z), 0 = g(y)."""
    weights = end_weights(method)
    for tree in z_trees(order):
        stages = [method.dot(row, method.values(tree)) for row in method.omega]
        yield method.dot(weights, stages), tree.right_side
    for tree in y_trees(order + 1):  # a fat vertex with one meagre vertex upon it: omega A = I
        yield method.dot(weights, method.values(tree)), Tree((tree,), fat=True).right_side


def end_weights(method: Evaluation) -> list[Any]:
    r"""The weights :math:`b^T\omega` of the stages of z at the end of the step."""
    return [method.dot(method.b, column) for column in zip(*method.omega)]
