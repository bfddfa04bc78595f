"""Order conditions as formulas, numbered as in the tables of Brasey and Hairer, and printed tables."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import count
from typing import Literal

from daedal.analysis.order_conditions.trees import Tree, weight_trees, y_trees, z_trees
from daedal.common.tabular import Tabular
from daedal.errors import InvalidProblemError

Style = Literal["text", "markdown", "latex"]

# The order of the trees in Tables 1, 3 and 4; higher orders follow in the order of generation.
PRINTED = {
    1: """t [t]y [t,t]y [[t]y]y [t,[t,t]z]y [[t,t]z,[t,t]z]y
          [t,t,t]y [t,[t]y]y [[t,t]y]y [[[t]y]y]y [t,t,[t,t]z]y [t,[t,t]z,[t,t]z]y [[t,t]z,[t,t]z,[t,t]z]y
          [t,[t,t,t]z]y [t,[t,[t]y]z]y [[t]y,[t,t]z]y [[t,t]z,[t,t,t]z]y [[t,t]z,[t,[t]y]z]y
          [[t,[t,t]z]y]y [[[t,t]z,[t,t]z]y]y""".split(),
    3: "[[t,t]z]y [[t,t,t]z]y [[t,[t]y]z]y".split(),
    4: """[t,t]z [t,t,t]z [t,[t]y]z [t,t,t,t]z [t,t,[t]y]z [[t]y,[t]y]z [t,[t,t]y]z [t,[[t]y]y]z
          [t,[t,[t,t]z]y]z [t,[[t,t]z,[t,t]z]y]z""".split(),
}
_GENERATORS: dict[int, Callable[[int, bool], tuple[Tree, ...]]] = {1: y_trees, 3: weight_trees, 4: z_trees}
PRINTED_ORDER = {1: 4, 3: 3, 4: 3}


@dataclass(frozen=True)
class Condition:
    r"""An order condition: its number in the table, and its tree.

    Attributes
    ----------
    table : int
        1 for the method itself, 3 for additional weights, 4 for the last stage of z.
    number : int
        The number in that table.
    tree : Tree
        The corresponding tree.
    partitioned : bool
        Whether it is a condition of partitioned methods.

    Examples
    --------
    >>> conditions(4)[15].formula()
    'b_i (a_ij c_j) (ω_ik c_{k+1}^2) = 1/4'
    """

    table: int
    number: int
    tree: Tree
    partitioned: bool = False

    @property
    def order(self) -> int:
        """The order from which a method must satisfy the condition."""
        return self.tree.order

    @property
    def right_side(self) -> Fraction:
        """Right-hand side of the condition at the end of the step."""
        return self.tree.right_side

    @property
    def nonlinear(self) -> bool:
        """Whether the condition is unnecessary if f is linear in z."""
        return self.tree.nonlinear

    def left_side(self, style: Style = "text") -> str:
        """The left-hand side in plain text or in LaTeX, to be summed over all indices but s."""
        write = _ConditionWriter(style, self.partitioned)
        letters = _letters()
        i = next(letters)
        if self.table == 4:
            return write.symbol("omega", "s", j := next(letters)) + write.at_point(self.tree, j, letters)
        return write.symbol("bhat" if self.table == 3 else "b", i) + write.at_stage(self.tree, i, letters)

    def formula(self, style: Style = "text") -> str:
        """The condition in plain text or in LaTeX, to be summed over all indices but s."""
        return f"{self.left_side(style)} = {_ConditionWriter(style, self.partitioned).fraction(self.right_side)}"


def _letters() -> Iterator[str]:
    yield from "ijklmnpqruvwxy"
    yield from (f"i{k}" for k in count(1))


class _ConditionWriter:
    """Write products of coefficients."""

    def __init__(self, style: Style, partitioned: bool):
        self.latex = style != "text"
        self.partitioned = partitioned
        self.names = {"omega": r"\omega" if self.latex else "ω"}
        self.names["bhat"] = r"\hat b" if self.latex else "b̂"

    def symbol(self, name: str, *indices: str) -> str:
        joint = ",".join(indices) if any(len(index) > 1 for index in indices) else "".join(indices)
        joint = f"{{{joint}}}" if len(joint) > 1 and (self.latex or "+" in joint) else joint
        return f"{self.names.get(name, name)}_{joint}"

    def point(self, name: str, j: str, *indices: str) -> str:
        """A coefficient of the point whose constraint determines Z_j: the next stage, or a separate point."""
        if not self.partitioned:
            return self.symbol(name, f"{j}+1", *indices)
        bar = rf"\bar {name}" if self.latex else f"{name}\N{COMBINING MACRON}"
        return self.symbol(bar, j, *indices)

    def fraction(self, value: Fraction) -> str:
        if self.latex and value.denominator > 1:
            return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
        return str(value)

    def at_stage(self, tree: Tree, i: str, letters: Iterator[str]) -> str:
        """Factors above a meagre vertex: c_i, a_ij and omega_ij with the subtree of j."""
        factors = []
        for child in tree.children:
            if child.fat:
                factors.append(self.symbol("omega", i, j := next(letters)) + self.at_point(child, j, letters))
            elif child.children:
                factors.append(self.symbol("a", i, j := next(letters)) + self.at_stage(child, j, letters))
        return self._product(self.symbol("c", i), len(tree.children) - len(factors), factors)

    def at_point(self, tree: Tree, j: str, letters: Iterator[str]) -> str:
        """Factors above a fat vertex: c_{j+1} and a_{j+1,k} with the subtree of k."""
        factors = [
            self.point("a", j, k := next(letters)) + self.at_stage(child, k, letters)
            for child in tree.children
            if child.children
        ]
        return self._product(self.point("c", j), len(tree.children) - len(factors), factors)

    @staticmethod
    def _product(node: str, power: int, factors: list[str]) -> str:
        text = f" {node}" * bool(power) + (f"^{power}" if power > 1 else "")
        return text + "".join(f" ({factor})" if len(factors) > 1 else f" {factor}" for factor in factors)


@cache
def _table(number: int, order: int, partitioned: bool) -> tuple[Condition, ...]:
    if number not in PRINTED:
        raise InvalidProblemError(f"the tables of conditions are 1, 3 and 4, got {number!r}")
    place = {text: i for i, text in enumerate(PRINTED[number])}
    found: list[Tree] = []
    for r in range(1, order + 1):
        found += sorted(_GENERATORS[number](r, partitioned), key=lambda tree: place.get(str(tree), len(place)))
    return tuple(Condition(number, i + 1, tree, partitioned) for i, tree in enumerate(found))


def conditions(
    order: int, table: int = 1, *, linear_in_z: bool = False, partitioned: bool = False
) -> tuple[Condition, ...]:
    """All conditions up to an order.

    Parameters
    ----------
    order : int
        The highest order.
    table : {1, 3, 4}
        1: conditions for the method; 3: additional ones for weights that do not satisfy the constraint; 4: for the last
        stage of z.
    linear_in_z : bool
        Omit the conditions that are unnecessary if f is linear in z; the others keep their numbers.
    partitioned : bool
        The conditions of partitioned methods, which include additional ones.

    Returns
    -------
    tuple of Condition
        Numbered as in the source up to the orders printed there.

    References
    ----------
    V. Brasey, E. Hairer, SIAM J. Numer. Anal. 30 (1993), section 3.

    Examples
    --------
    >>> [len(conditions(p)) for p in (1, 2, 3, 4, 5)]
    [1, 2, 6, 20, 76]
    >>> [condition.number for condition in conditions(4) if condition.nonlinear]
    [6, 12, 13, 17, 18, 20]
    """
    return tuple(x for x in _table(table, order, partitioned) if not (linear_in_z and x.nonlinear))


def table(
    number: int = 1,
    order: int | None = None,
    *,
    style: Style = "text",
    linear_in_z: bool = False,
    partitioned: bool = False,
) -> str:
    r"""Table 1, 3 or 4 of Brasey and Hairer, up to any order.

    Parameters
    ----------
    number : {1, 3, 4}
        The number of the table; see :func:`conditions`.
    order : int, optional
        The highest order; as printed (4, 3 and 3) if not given.
    style : {"text", "markdown", "latex"}
        Columns of text, a Markdown table, or the rows of a LaTeX ``tabular``.
    linear_in_z, partitioned : bool
        See :func:`conditions`.

    Returns
    -------
    str
        One row for each condition; those that are unnecessary if f is linear in z are starred. Sums run over all
        indices but s.

    Examples
    --------
    >>> print(table(3))
    nr  tree          order  condition
    1   [[t,t]z]y     2      b̂_i ω_ij c_{j+1}^2 = 1
    2   [[t,t,t]z]y   3      b̂_i ω_ij c_{j+1}^3 = 1
    3   [[t,[t]y]z]y  3      b̂_i ω_ij c_{j+1} a_{j+1,k} c_k = 1/2
    """
    if number not in PRINTED:
        raise InvalidProblemError(f"there are tables 1, 3 and 4 of conditions, not {number!r}")
    chosen = conditions(order or PRINTED_ORDER[number], number, linear_in_z=linear_in_z, partitioned=partitioned)
    rows = [(f"{x.number}{'*' * x.nonlinear}", str(x.tree), str(x.order), x.formula(style)) for x in chosen]
    head = ("nr", "tree", "order", "condition")
    if style == "latex":
        return "\n".join(rf"{nr} & \texttt{{{tree}}} & {p} & ${formula}$ \\" for nr, tree, p, formula in rows)
    if style == "markdown":
        cells = [(nr.replace("*", r"\*"), f"`{tree}`", p, f"${formula}$") for nr, tree, p, formula in rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in [head, ("---",) * 4, *cells])
    if style != "text":
        raise InvalidProblemError(f"style is 'text', 'markdown' or 'latex', not {style!r}")
    return str(Tabular("llll", rows, head))
