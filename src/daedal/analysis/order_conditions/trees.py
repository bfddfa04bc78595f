"""The bicoloured trees of half-explicit, implicit Runge-Kutta and Rosenbrock methods, and their values.

A tree for y' = f(y, z), 0 = g(y) has meagre vertices, which stand for f, and fat vertices, which stand for g. It is
written as ``t``, one meagre vertex, ``[u,v]y``, a meagre vertex with the subtrees u and v, or ``[u,v]z``, a fat one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import prod
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.exact_numbers import Quadratic
from daedal.methods.tableau import HalfExplicitTableau


class Tree:
    """A tree with meagre and fat vertices; two trees are equal if they differ only in the order of their branches.

    Parameters
    ----------
    children : sequence of Tree
        The subtrees above the root.
    fat : bool
        Whether the root is fat.

    Examples
    --------
    >>> tree = Tree.parse("[t,[t,t]z]y")
    >>> tree.order, tree.right_side
    (3, Fraction(2, 3))
    """

    def __init__(self, children: Sequence[Tree] = (), fat: bool = False):
        self.children = tuple(sorted(children, key=lambda child: child.key))
        self.fat = fat

    @classmethod
    def parse(cls, text: str) -> Tree:
        """Parse the notation of a tree."""
        tree, rest = _parse(text.replace(" ", ""))
        if rest:
            raise InvalidProblemError(f"{text!r} does not end with the tree: unexpected {rest!r}")
        return tree

    @cached_property
    def order(self) -> int:
        """The number of meagre vertices minus the number of fat ones."""
        return (-1 if self.fat else 1) + sum(child.order for child in self.children)

    @cached_property
    def right_side(self) -> Fraction:
        """The right-hand side of the condition: the product over all vertices of 1/r (meagre) or r + 1 (fat), where r
        is the order of the subtree of the vertex."""
        own = Fraction(self.order + 1) if self.fat else Fraction(1, self.order)
        for child in self.children:
            own *= child.right_side
        return own

    @cached_property
    def nonlinear(self) -> bool:
        """Whether a meagre vertex carries two fat ones.

        Such a tree contains a derivative of f that vanishes if f is linear in z.
        """
        own = not self.fat and sum(child.fat for child in self.children) > 1
        return own or any(child.nonlinear for child in self.children)

    @cached_property
    def key(self) -> tuple[bool, int, int, str]:
        """Sort key of branches: meagre before fat, small before large."""
        text = str(self)
        return self.fat, self.order, len(text), text

    @cached_property
    def _text(self) -> str:
        if not self.children and not self.fat:
            return "t"
        return f"[{','.join(map(str, self.children))}]{'z' if self.fat else 'y'}"

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Tree.parse({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def _parse(text: str) -> tuple[Tree, str]:
    """The tree at the beginning of a text, and the rest of the text."""
    if text.startswith("t"):
        return Tree(), text[1:]
    if not text.startswith("["):
        raise InvalidProblemError(f"a tree starts with 't' or '[': {text!r}")
    children: list[Tree] = []
    rest = text
    while rest[0] in "[,":
        child, rest = _parse(rest[1:])
        children.append(child)
        if not rest:
            raise InvalidProblemError(f"a bracket is not closed: {text!r}")
    if rest[:2] not in ("]y", "]z"):
        raise InvalidProblemError(f"a bracket must be closed by ']y' or ']z': {rest!r}")
    return Tree(children, fat=rest[1] == "z"), rest[2:]


LEAF = Tree()


def _forests(pool: Sequence[Tree], total: int) -> Iterator[tuple[Tree, ...]]:
    """All multisets of trees of the pool whose orders sum to the total."""
    if total == 0:
        yield ()
    for i, tree in enumerate(pool):
        if tree.order <= total:
            for others in _forests(pool[i:], total - tree.order):
                yield (tree, *others)


def forests(order: int) -> Iterator[tuple[Tree, ...]]:
    """All multisets of rooted trees, without fat vertices, whose orders sum to the order."""
    return _forests([tree for k in range(1, order + 1) for tree in rooted_trees(k)], order)


@cache
def rooted_trees(order: int) -> tuple[Tree, ...]:
    """The rooted trees of differential equations: all vertices are meagre.

    >>> [len(rooted_trees(k)) for k in range(1, 9)]
    [1, 1, 2, 4, 9, 20, 48, 115]
    """
    return tuple(Tree(forest) for forest in forests(order - 1)) if order > 1 else (LEAF,)


@cache
def y_trees(order: int, partitioned: bool = False) -> tuple[Tree, ...]:
    r"""Trees with a meagre root, excluding those whose root carries only a single fat vertex.

    A meagre vertex with only a fat one reduces: :math:`\sum_j a_{ij}\omega_{jk}` is the shifted identity matrix. In
    partitioned methods this holds only for :math:`\sum_j \bar a_{ij}\omega_{jk}`, and such vertices remain above meagre
    ones.
    """
    if order == 1:
        return (LEAF,)
    pool = [tree for k in range(1, order) for tree in (*y_trees(k, partitioned), *z_trees(k, partitioned))]
    if partitioned:
        pool += [tree for k in range(2, order) for tree in weight_trees(k, partitioned)]
    return tuple(Tree(forest) for forest in _forests(pool, order - 1) if len(forest) > 1 or not forest[0].fat)


@cache
def z_trees(order: int, partitioned: bool = False) -> tuple[Tree, ...]:
    r"""Trees with a fat root below two or more meagre vertices: a single one reduces by :math:`\omega A' = I`."""
    pool = [tree for k in range(1, order + 1) for tree in y_trees(k, partitioned)]
    return tuple(Tree(forest, fat=True) for forest in _forests(pool, order + 1) if len(forest) > 1)


def weight_trees(order: int, partitioned: bool = False) -> tuple[Tree, ...]:
    """Trees with a single fat vertex above the root: conditions for weights other than those of the method."""
    return tuple(Tree((tree,)) for tree in z_trees(order - 1, partitioned)) if order > 1 else ()


# --- coefficients of a tableau in one arithmetic: exact if possible, floats otherwise ---------------------------------


@dataclass(frozen=True)
class ScalarField:
    """Conversion of coefficients to and from the arithmetic of a computation."""

    enter: Callable[[Any], Any]
    leave: Callable[[Any], Any]
    exact: bool  # whether a result is zero only if it is exactly zero


def _same(value: Any) -> Any:
    return value


def choose_arithmetic(values: Iterable[Any], exact: bool) -> ScalarField:
    """The arithmetic for given numbers: floats or, if `exact` and no number is a float, one of the exact fields."""
    values = list(values)
    if not exact or any(isinstance(value, float) for value in values):
        return ScalarField(float, _same, exact=False)
    roots = {value.d for value in values if isinstance(value, Quadratic)}
    if len(roots) <= 1 and all(isinstance(value, int | Fraction | Quadratic) for value in values):
        return ScalarField(_same, _same, exact=True)
    import sympy

    domain, elements = sympy.construct_domain([sympy.sympify(x) for x in values], extension=True, field=True)
    known = dict(zip(values, elements))

    def enter(value: Any) -> Any:
        return known[value] if value in known else domain.from_sympy(sympy.sympify(value))

    return ScalarField(enter, domain.to_sympy, exact=True)


# --- the left sides of the conditions for given coefficients ----------------------------------------------------------

# Let :math:`A' = (\bar a_{ij})`, where row i corresponds to the point at which the constraint determines :math:`Z_i`,
# and let :math:`\omega = A'^{-1}`. At stage i, the value of a tree with meagre root is
#
# .. math::
#
#     \Phi_i([u_1, \dots]_y) = \prod_{u\ \text{meagre}} \sum_j a_{ij}\Phi_j(u) \prod_{u\ \text{fat}} \sum_j
#     \omega_{ij}\Psi_j(u), \qquad \Psi_j([u_1, \dots]_z) = \prod_u \sum_k \bar a_{jk}\Phi_k(u).
#
# In partitioned methods :math:`Z_1 = z_0` is exact: :math:`\omega` is the inverse of A' without its first row and
# column, extended by a row and a column of zeros.

Matrix = list[list[Any]]


class Evaluation:
    """Values of trees for one method, from its matrices a, ab = A' and omega; common subtrees are computed once."""

    def __init__(self, a: Matrix, ab: Matrix, b: Sequence[Any], omega: Matrix, one: Any):
        self.a, self.ab, self.b, self.omega = a, ab, b, omega
        self.s, self.one, self.zero = len(b), one, one - one
        self._sums: dict[tuple[str, Tree], list[Any]] = {}
        self._values: dict[Tree, list[Any]] = {}

    @classmethod
    def half_explicit(cls, tableau: HalfExplicitTableau, arithmetic: ScalarField) -> Evaluation:
        """The evaluation for a half-explicit method; `omega` is the inverse of the lower triangle A'."""
        enter = arithmetic.enter
        zero, one = enter(Fraction(0)), enter(Fraction(1))

        def square(rows: Sequence[Sequence[Any]]) -> Matrix:
            return [[*map(enter, row), *[zero] * (tableau.s - len(row))] for row in rows]

        ab = square(tableau.constraint_rows)
        omega = _inverse(tableau, ab, zero, one)
        return cls(square(tableau.a), ab, [enter(x) for x in tableau.b], omega, one)

    def _times(self, name: str, tree: Tree) -> list[Any]:
        """One of the matrices a, ab, omega times the values of a tree."""
        if (name, tree) not in self._sums:
            self._sums[name, tree] = [self.dot(row, self.values(tree)) for row in getattr(self, name)]
        return self._sums[name, tree]

    def dot(self, row: Sequence[Any], values: Sequence[Any]) -> Any:
        """The sum of products."""
        return sum((x * y for x, y in zip(row, values) if x), self.zero)

    def values(self, tree: Tree) -> list[Any]:
        """The values of a tree at the stages, if its root is meagre, or at the points of the constraint."""
        if tree not in self._values:
            values = [self.one] * self.s
            for child in tree.children:
                matrix = "ab" if tree.fat else ("omega" if child.fat else "a")
                values = [x * y for x, y in zip(values, self._times(matrix, child))]
            self._values[tree] = values
        return self._values[tree]

    def at_end(self, tree: Tree, enter: Any) -> Any:
        """The value at (y_1, z_1): z_1 solves the hidden constraint, and has the expansion of the solution."""
        value = self.one
        for child in tree.children:
            value = value * (enter(child.right_side) if child.fat else self.dot(self.b, self.values(child)))
        return value


def _inverse(tableau: HalfExplicitTableau, ab: Matrix, zero: Any, one: Any) -> Matrix:
    """The inverse of A', a lower triangle, by forward substitution; without the first stage if it is explicit."""
    first, s = 1 if tableau.partitioned else 0, tableau.s
    omega = [[zero] * s for _ in range(s)]
    for i in range(first, s):
        pivot = ab[i][i]
        if not pivot:
            raise InvalidProblemError(_singular(tableau, i))
        for j in range(first, i + 1):
            known = sum((ab[i][k] * omega[k][j] for k in range(j, i)), zero)
            omega[i][j] = ((one if i == j else zero) - known) / pivot
    return omega


def _singular(tableau: HalfExplicitTableau, i: int) -> str:
    if tableau.partitioned:
        pivot = f"ab_{i + 1},{i + 1}"
    else:
        pivot = f"a_{i + 2},{i + 1}" if i + 1 < tableau.s else f"b_{i + 1}"
    return (
        f"{tableau.name} is not a half-explicit method: {pivot} = 0, so that no constraint determines Z_{i + 1} "
        "(condition (2.3) of Brasey and Hairer)."
    )


# --- order conditions of implicit Runge-Kutta methods and of Rosenbrock methods, for differential equations and DAEs --

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
# * the product of :math:`\sum_j \alpha_{ij} \Phi_j` over the branches of every other vertex, with
#   :math:`\sum_k \omega_{jk} \Phi_k` instead of :math:`\Phi_j` for fat branches,
#
# and the condition is :math:`\sum_i b_i \Phi_i = 1/\gamma(t)` for trees with a meagre root, :math:`\sum_{ij} b_i
# \omega_{ij} \Phi_j = 1/\gamma(t)` for those with a fat one, where :math:`\gamma(t)` is the product of the orders of
# all meagre vertices. The order of a vertex is the number of meagre vertices above it, itself included.
#
# M. Roche: Rosenbrock methods for differential algebraic equations, Numer. Math. 52 (1988) 45-63. E. Hairer, G. Wanner:
# Solving Ordinary Differential Equations II, Springer 1996, IV.7 and VI.4, Theorem 4.4.


@cache
def index_1_trees(order: int, fat: bool) -> tuple[Tree, ...]:
    """The trees of an order with a meagre or with a fat root.

    Examples
    --------
    >>> from daedal.analysis.order_conditions.trees import index_1_trees
    >>> [str(tree) for tree in index_1_trees(3, fat=False)], len(index_1_trees(5, fat=True))
    (['[[t]y]y', '[t,t]y'], 37)
    """
    branches = _index_1_forests(order if fat else order - 1)
    if fat:
        branches = tuple(forest for forest in branches if len(forest) > 1)
    return tuple(Tree(forest, fat) for forest in branches)


@cache
def _index_1_forests(order: int) -> tuple[tuple[Tree, ...], ...]:
    """All multisets of trees with a given sum of orders, excluding a single fat tree."""
    if order == 0:
        return ((),)
    found: dict[tuple[str, ...], tuple[Tree, ...]] = {}
    for first in range(1, order + 1):
        kinds = (False,) if first == order else (False, True)
        for tree in (tree for fat in kinds for tree in index_1_trees(first, fat)):
            for rest in _index_1_forests(order - first):
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
    r""":math:`\gamma(t)`, the product of the orders of all meagre vertices."""
    return (1 if tree.fat else vertices(tree)) * prod(map(density, tree.children))


def defects(
    alpha: np.ndarray, gamma: np.ndarray, weights: np.ndarray, order: int, theta: float = 1.0
) -> Iterator[tuple[Tree, float]]:
    r"""The residuals of the conditions of an order, for y and for z.

    `alpha` and `gamma` are the coefficients :math:`\alpha_{ij}` and :math:`\gamma_{ij}`; `weights` are b, or the
    weights of dense output at the position `theta` in the step.
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
