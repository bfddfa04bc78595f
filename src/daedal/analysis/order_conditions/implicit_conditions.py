"""Order conditions of implicit Runge-Kutta methods and of Rosenbrock methods, for differential equations and DAEs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any

import numpy as np

from daedal.analysis.order_conditions.trees import (
    Evaluation,
    Tree,
    forests,
    rooted_trees,
    weight_trees,
    y_trees,
    z_trees,
)

# All have the form :math:`\sum_i w_i \Phi_i = 1/\gamma`, where :math:`\Phi_i` is the value of a tree at stage i and
# :math:`\omega = A^{-1}`:
#
# * y' = f(y): rooted trees with w = b (Butcher).
# * y' = f(y, z), 0 = g(y, z): the stages satisfy z = G(y), and :math:`z_1 = R(\infty) z_0 + b^T\omega Z`. A product of
#   derivatives of y belongs to each forest of rooted trees, with :math:`w = b^T\omega` (Roche).
# * y' = f(y, z), 0 = g(y): trees with meagre and fat vertices, w = b for y, and :math:`w = b^T\omega` for z (Hairer,
#   Lubich and Roche).
#
# E. Hairer, C. Lubich, M. Roche: The numerical solution of differential-algebraic systems by Runge-Kutta methods,
# Lecture Notes in Mathematics 1409, Springer 1989. M. Roche, Numer. Math. 52 (1988) 45-63. E. Hairer, G. Wanner:
# Solving Ordinary Differential Equations II, sections VI.4 and VII.5.

Sides = Iterator[tuple[Any, Any]]
"""Left-hand and right-hand sides of conditions."""


def differential(method: Evaluation, order: int) -> Sides:
    """Order conditions of one order for y' = f(y)."""
    for tree in rooted_trees(order):
        yield method.dot(method.b, method.values(tree)), tree.right_side


def index_1(method: Evaluation, order: int) -> Sides:
    """Conditions of one order for z of y' = f(y, z), 0 = g(y, z), in addition to those for y."""
    weights = end_weights(method)
    for forest in forests(order):
        if len(forest) > 1:
            values = Tree(forest)  # value at a stage: the product of A and the values of the branches
            yield method.dot(weights, method.values(values)), prod(tree.right_side for tree in forest)


def index_2_y(method: Evaluation, order: int) -> Sides:
    """Conditions of one order for y of y' = f(y, z), 0 = g(y), along the constraint."""
    for tree in y_trees(order):
        yield method.dot(method.b, method.values(tree)), tree.right_side


def index_2_across(method: Evaluation, order: int) -> Sides:
    """Further conditions of one order for y, across the constraint; implied by those for y if A has the row b."""
    for tree in weight_trees(order):
        yield method.dot(method.b, method.values(tree)), tree.right_side


def index_2_z(method: Evaluation, order: int) -> Sides:
    """Conditions of one order for z of y' = f(y, z), 0 = g(y)."""
    weights = end_weights(method)
    for tree in z_trees(order):
        stages = [method.dot(row, method.values(tree)) for row in method.omega]
        yield method.dot(weights, stages), tree.right_side
    for tree in y_trees(order + 1):  # a fat vertex with one meagre vertex above it: omega A = I
        yield method.dot(weights, method.values(tree)), Tree((tree,), fat=True).right_side


def end_weights(method: Evaluation) -> list[Any]:
    r"""The weights :math:`b^T\omega` of the stages of z at the end of the step."""
    return [method.dot(method.b, column) for column in zip(*method.omega)]


# --- order conditions of Rosenbrock methods for y' = f(y, z), 0 = g(y, z) of index 1, and for y' = f(y) ---------------

# A tree has meagre vertices, which stand for f, and fat ones, which stand for :math:`(-g_z)^{-1} g`. Fat vertices carry
# at least two branches, and a fat vertex is never the only branch of another. With :math:`\beta_{ij} = \alpha_{ij} +
# \gamma_{ij}` and :math:`(\omega_{ij}) = (\beta_{ij})^{-1}` the value of a tree at stage i is
#
# * 1 for a single meagre vertex,
# * :math:`\sum_j \beta_{ij} \Phi_j` for a meagre vertex that carries one branch with the values :math:`\Phi`,
# * the product of :math:`\sum_j \alpha_{ij} \Phi_j` over the branches of all others, with
#   :math:`\sum_k \omega_{jk} \Phi_k` in place of :math:`\Phi_j` for fat ones,
#
# and the condition is :math:`\sum_i b_i \Phi_i = 1/\gamma(t)` for trees with a meagre root, :math:`\sum_{ij} b_i
# \omega_{ij} \Phi_j = 1/\gamma(t)` for those with a fat one, where :math:`\gamma(t)` is the product of the orders of
# all meagre vertices. The order of a vertex is the number of meagre vertices upon it, itself included.
#
# References
# ----------
# M. Roche: Rosenbrock methods for differential algebraic equations, Numer. Math. 52 (1988) 45-63. E. Hairer, G. Wanner:
# Solving Ordinary Differential Equations II, Springer 1996, IV.7 and VI.4, Theorem 4.4.


@cache
def index_1_trees(order: int, fat: bool) -> tuple[Tree, ...]:
    """The trees of an order with a meagre or with a fat root.

    Examples
    --------
    >>> from daedal.analysis.order_conditions.implicit_conditions import index_1_trees
    >>> [str(tree) for tree in index_1_trees(3, fat=False)], len(index_1_trees(5, fat=True))
    (['[[t]y]y', '[t,t]y'], 37)
    """
    branches = _forests(order if fat else order - 1)
    if fat:
        branches = tuple(forest for forest in branches if len(forest) > 1)
    return tuple(Tree(forest, fat) for forest in branches)


@cache
def _forests(order: int) -> tuple[tuple[Tree, ...], ...]:
    """All multisets of trees with a given sum of orders, excluding a single fat tree."""
    if order == 0:
        return ((),)
    found: dict[tuple[str, ...], tuple[Tree, ...]] = {}
    for first in range(1, order + 1):
        kinds = (False,) if first == order else (False, True)
        for tree in (tree for fat in kinds for tree in index_1_trees(first, fat)):
            for rest in _forests(order - first):
                forest = (tree, *rest)
                found.setdefault(tuple(sorted(map(str, forest))), forest)
            if order - first:  # a single fat tree may occur with another
                for fat_tree in index_1_trees(order - first, True):
                    forest = (tree, fat_tree)
                    found.setdefault(tuple(sorted(map(str, forest))), forest)
    return tuple(found[key] for key in sorted(found))


def vertices(tree: Tree) -> int:
    """The number of meagre vertices: the order of a tree of index 1."""
    return (0 if tree.fat else 1) + sum(map(vertices, tree.children))


def density(tree: Tree) -> int:
    r""":math:`\gamma(t)`."""
    return (1 if tree.fat else vertices(tree)) * prod(map(density, tree.children))


def defects(
    alpha: np.ndarray, gamma: np.ndarray, weights: np.ndarray, order: int, theta: float = 1.0
) -> Iterator[tuple[Tree, float]]:
    r"""The residuals of the conditions of an order, for y and for z.

    Parameters
    ----------
    alpha, gamma : array
        The coefficients :math:`\alpha_{ij}` and :math:`\gamma_{ij}`.
    weights : array
        The weights b, or those of dense output at `theta`.
    order : int
        The order.
    theta : float
        Position in the step.
    """
    beta = alpha + gamma
    omega = np.linalg.inv(beta)
    for fat in (False, True):
        row = weights @ omega if fat else weights
        for tree in index_1_trees(order, fat):
            yield tree, float(row @ _values(tree, alpha, beta, omega) - theta**order / density(tree))


def _values(tree: Tree, alpha: np.ndarray, beta: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """The value of a tree at all stages."""
    inner = [_values(branch, alpha, beta, omega) for branch in tree.children]
    if len(inner) == 1:
        return beta @ inner[0]
    result = np.ones(len(alpha))
    for branch, values in zip(tree.children, inner, strict=True):
        result = result * (alpha @ (omega @ values if branch.fat else values))
    return result
