r"""The bicoloured trees of half-explicit methods for y' = f(y, z), 0 = g(y).

A tree has meagre vertices, which stand for f, and fat vertices, which stand for the constraint. It is written as
``t``, one meagre vertex, ``[u,v]y``, a meagre vertex with the subtrees u and v, or ``[u,v]z``, a fat one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, cached_property

from daedal.errors import InvalidProblemError


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
        """The tree that is written so."""
        tree, rest = _parse(text.replace(" ", ""))
        if rest:
            raise InvalidProblemError(f"{text!r} does not end with the tree: {rest!r} is left over")
        return tree

    @cached_property
    def order(self) -> int:
        """The number of meagre vertices less that of fat ones."""
        return (-1 if self.fat else 1) + sum(child.order for child in self.children)

    @cached_property
    def right_side(self) -> Fraction:
        """The right side of the condition: the product over all vertices of 1/r (meagre) or r + 1 (fat), r the order
        of what stands on the vertex, itself included."""
        own = Fraction(self.order + 1) if self.fat else Fraction(1, self.order)
        for child in self.children:
            own *= child.right_side
        return own

    @cached_property
    def nonlinear(self) -> bool:
        """Whether a meagre vertex carries two fat ones: a derivative of f that vanishes if f is linear in z."""
        own = not self.fat and sum(child.fat for child in self.children) > 1
        return own or any(child.nonlinear for child in self.children)

    @cached_property
    def key(self) -> tuple[bool, int, int, str]:
        """What branches are sorted by: meagre before fat, small before large."""
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
        raise InvalidProblemError(f"a tree begins with 't' or '[': {text!r}")
    children: list[Tree] = []
    rest = text
    while rest[0] in "[,":
        child, rest = _parse(rest[1:])
        children.append(child)
        if not rest:
            raise InvalidProblemError(f"a bracket is not closed: {text!r}")
    if rest[:2] not in ("]y", "]z"):
        raise InvalidProblemError(f"a bracket is closed by ']y' or ']z': {rest!r}")
    return Tree(children, fat=rest[1] == "z"), rest[2:]


LEAF = Tree()


def _forests(pool: Sequence[Tree], total: int) -> Iterator[tuple[Tree, ...]]:
    """All collections of trees of the pool whose orders sum to the total."""
    if total == 0:
        yield ()
    for i, tree in enumerate(pool):
        if tree.order <= total:
            for others in _forests(pool[i:], total - tree.order):
                yield (tree, *others)


def forests(order: int) -> Iterator[tuple[Tree, ...]]:
    """All collections of rooted trees, without fat vertices, whose orders sum to the order."""
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
    r"""Trees with a meagre root that carries more than a single fat vertex.

    A meagre vertex with a fat one alone reduces: :math:`\sum_j a_{ij}\omega_{jk}` is the unit matrix, shifted. In
    partitioned methods only :math:`\sum_j \bar a_{ij}\omega_{jk}` is, and such vertices stay upon meagre ones.
    """
    if order == 1:
        return (LEAF,)
    pool = [tree for k in range(1, order) for tree in (*y_trees(k, partitioned), *z_trees(k, partitioned))]
    if partitioned:
        pool += [tree for k in range(2, order) for tree in weight_trees(k, partitioned)]
    return tuple(Tree(forest) for forest in _forests(pool, order - 1) if len(forest) > 1 or not forest[0].fat)


@cache
def z_trees(order: int, partitioned: bool = False) -> tuple[Tree, ...]:
    r"""Trees with a fat root and at least two meagre vertices upon it: one alone reduces by :math:`\omega A' = I`."""
    pool = [tree for k in range(1, order + 1) for tree in y_trees(k, partitioned)]
    return tuple(Tree(forest, fat=True) for forest in _forests(pool, order + 1) if len(forest) > 1)


def weight_trees(order: int, partitioned: bool = False) -> tuple[Tree, ...]:
    """Trees with a single fat vertex upon the root: conditions for weights other than those of the method."""
    return tuple(Tree((tree,)) for tree in z_trees(order - 1, partitioned)) if order > 1 else ()
