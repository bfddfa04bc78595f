"""The bicoloured trees of half-explicit methods for y' = f(y, z), 0 = g(y).

A tree has meagre vertices, which stand for f, and fat vertices, which stand for the constraint. It is written as
``t``, one meagre vertex, ``[u,v]y``, a meagre vertex with the subtrees u and v, or ``[u,v]z``, a fat one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

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
        """Whether a meagre vertex carries two fat ones: this is a derivative of f that vanishes if f is linear in z."""
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
    """Conversion of coefficients to and from the arithmetic of a computation.

    Attributes
    ----------
    enter, leave : callable
        Conversions.
    exact : bool
        Whether a result is zero only if it is exactly zero.
    """

    enter: Callable[[Any], Any]
    leave: Callable[[Any], Any]
    exact: bool


def _same(value: Any) -> Any:
    return value


def choose_arithmetic(values: Iterable[Any], exact: bool) -> ScalarField:
    """Fractions and numbers of one quadratic field are used directly; for others SymPy determines the field."""
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
