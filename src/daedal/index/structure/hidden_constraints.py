"""Constraints of a problem, including hidden ones, in the user's names, and possible choices of initial values.

Their number follows from ranks of the derivative array (:mod:`daedal.index.structure.derivative_array`). Their formulas
are found on the graph if possible: constraints are differentiated, and derivatives for which the equations can be
solved are substituted. If combinations have coefficients that depend on the solution, these are given as numbers at
the point, with the equations concerned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np

from daedal.common.tabular import derivative_name, listing
from daedal.index.structure.derivative_array import ArrayRanks, NonlinearDerivativeArray, equation_in_words
from daedal.index.structure.system_equations import SystemEquations
from daedal.symbolic.formula import Formulas
from daedal.symbolic.modes import replaced

# An equation that is linear in the highest derivatives of the unknowns, with constant coefficients, can be combined
# with others of this kind until each has its own derivative, x' = ..., or none, and is then a constraint. An equation
# with one remaining derivative whose coefficient depends on x is divided by it.

_NO_RATE = 1e-12  # relative size below which a coefficient has cancelled
_ROUNDS = 8  # maximum number of substitutions for derivatives expressed by others


@dataclass
class Combined:
    """A combination of equations: its node, and {equation: factor}."""

    node: int
    members: dict[int, float]


@dataclass
class ExplicitRates:
    """Expressions for derivatives that follow without differentiating the equations."""

    equations: SystemEquations
    # maps the node of a derivative to the node of its expression
    solved: dict[int, int] = field(default_factory=dict)
    # equations, or combinations of them, without the highest derivatives
    constraints: list[Combined] = field(default_factory=list)

    @classmethod
    def of(cls, equations: SystemEquations, t: float, jet: np.ndarray) -> ExplicitRates:
        """Substitutions for the equations of a problem; coefficients that depend on x are evaluated at t and `jet`."""
        found = cls(equations)
        graph, orders = equations.graph, np.maximum(equations.orders, 1)
        tops = [equations.unknown(j, int(orders[j])) for j in range(equations.n)]
        rows = [{j: node for (j, k), node in row.items() if k == orders[j]} for row in equations.partials]
        constant = [i for i, row in enumerate(rows) if all(graph.is_constant(node) for node in row.values())]
        found._reduce(constant, [{j: graph.data[node] for j, node in rows[i].items()} for i in constant], tops)
        found._divide({i: row for i, row in enumerate(rows) if i not in set(constant)}, tops, t, jet)
        return found

    def substituted(self, node: int) -> int:
        """A node with all known derivatives replaced by their expressions."""
        for _ in range(_ROUNDS):
            (made,) = replaced(self.equations.graph, [node], self.solved)
            if made == node:
                break
            node = made
        return node

    def _reduce(self, numbers: list[int], rows: list[dict[int, float]], tops: list[int]):
        """Gauss-Jordan elimination of equations with numeric coefficients; shortest rows first."""
        graph = self.equations.graph
        waiting = [(row, {i: 1.0}) for i, row in zip(numbers, rows, strict=True)]
        done: list[tuple[int, dict[int, float], dict[int, float]]] = []
        while waiting:
            waiting.sort(key=lambda entry: len(entry[0]))
            row, members = waiting.pop(0)
            if not row:
                (node,) = replaced(graph, [self._combination(members)], dict.fromkeys(tops, graph.zero))
                self.constraints.append(Combined(node, members))
                continue
            pivot = max(row, key=lambda j: (abs(row[j]), -j))
            done = [_eliminated(pivot, row, members, entry) for entry in done]
            waiting = [_eliminated(pivot, row, members, (-1, *entry))[1:] for entry in waiting]
            done.append((pivot, row, members))
        for pivot, row, members in done:  # row[pivot] x' + remaining terms = 0
            (rest,) = replaced(graph, [self._combination(members)], {tops[pivot]: graph.zero})
            self.solved[tops[pivot]] = graph.divide(rest, graph.constant(-row[pivot]))

    def _divide(self, rows: dict[int, dict[int, int]], tops: list[int], t: float, jet: np.ndarray):
        """Solve equations with one unknown derivative in turn."""
        progress = True
        while progress and rows:
            progress = False
            for i, row in list(rows.items()):
                left = [tops[j] for j in row if tops[j] not in self.solved]
                if len(left) == 1 and self.solve_for(left[0], self.equations.equation(i), t, jet):
                    del rows[i]
                    progress = True

    def solve_for(self, derivative: int, node: int, t: float, jet: np.ndarray) -> bool:
        """Solve node = 0 for a derivative and store its expression in `solved`; return whether this was possible.

        It is impossible if the equation is nonlinear in the derivative, or if the coefficient vanishes at the point.
        """
        graph, equations = self.equations.graph, self.equations
        (row,) = equations.jacobian([node], [derivative])
        coefficient = row.get(0, graph.zero)
        if derivative in graph.needed([coefficient]):
            return False
        size = equations.values([coefficient], t, jet)[0]
        if not np.isfinite(size) or size == 0.0:
            return False
        (rest,) = replaced(graph, [node], {derivative: graph.zero})
        self.solved[derivative] = graph.negative(graph.divide(rest, coefficient))
        return True

    def _combination(self, members: dict[int, float]) -> int:
        graph, total = self.equations.graph, self.equations.graph.zero
        for i, factor in members.items():
            total = graph.add(total, graph.multiply(graph.constant(factor), self.equations.equation(i)))
        return total


def _eliminated(pivot: int, row: dict[int, float], members: dict[int, float], entry):
    """An equation from which the derivative `pivot` is eliminated using another."""
    own, target, combined = entry
    if pivot not in target:
        return entry
    factor = target[pivot] / row[pivot]
    return own, _less(target, row, factor), _less(combined, members, factor)


def _less(target: dict[int, float], row: dict[int, float], factor: float) -> dict[int, float]:
    found = dict(target)
    for j, value in row.items():
        total = found.get(j, 0.0) - factor * value
        if abs(total) <= _NO_RATE * max(abs(found.get(j, 0.0)), abs(factor * value)):
            found.pop(j, None)
        else:
            found[j] = total
    return found


# --- finding constraints ----------------------------------------------------------------------------------------------

LONGEST = 240
"""Length of a formula above which it is described by its unknowns."""
_TAKES_PART = 1e-6  # equations with a smaller fraction of the largest coefficient are omitted from a combination
_INDEPENDENT = 1e-7  # a gradient of norm 1 with a smaller component orthogonal to the others depends on them
_MOST_NAMED = 8
_SIMPLE = 12  # maximum denominator of a factor that is treated as exact
_ZERO = 1e-9

_Rows = tuple[tuple[int, int, float], ...]
_Waiting = tuple[int, _Rows]


@dataclass(frozen=True)
class HiddenConstraint:
    """An equation between t and the unknowns of a problem (including x' for second-order problems)."""

    text: str  # the formula, ``2*x*u + 2*y*v = 0``, or the combination of equations
    rows: tuple[tuple[int, int, float], ...]  # source equations (i, r, factor): equation i, differentiated r times
    # node on the graph; None if coefficients are numbers at a point
    node: int | None = field(repr=False, default=None)

    @property
    def hidden(self) -> bool:
        """Whether the constraint is not one of the given equations."""
        return len(self.rows) > 1 or any(r for _, r, _ in self.rows)

    @property
    def differentiations(self) -> int:
        """The number of differentiations needed to derive the constraint."""
        return max(r for _, r, _ in self.rows)

    def __str__(self) -> str:
        return self.text


def find_constraints(
    array: NonlinearDerivativeArray, t: float, jet: np.ndarray, ranks: ArrayRanks
) -> list[HiddenConstraint]:
    """All constraints of a problem at a point that satisfies the array.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.structure.derivative_array import array_ranks
    >>> from daedal.index.structure.derivative_array import NonlinearDerivativeArray
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> from daedal.index.structure.hidden_constraints import find_constraints
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - t**2], 2, names=["x", "v"])
    >>> array = NonlinearDerivativeArray(SystemEquations(problem), 2)
    >>> jet = [[0, 0], [0, 2], [2, 0], [0, 0]]
    >>> for constraint in find_constraints(array, 0.0, jet, array_ranks(array, 0.0, jet)[-1]):
    ...     print(constraint, constraint.hidden)
    x - t**2 = 0 False
    v - 2*t = 0 True
    """
    return _ConstraintSearch(array, t, np.asarray(jet, dtype=float), ranks).run()


class _ConstraintSearch:
    def __init__(self, array: NonlinearDerivativeArray, t: float, jet: np.ndarray, ranks: ArrayRanks):
        self.array, self.t, self.jet, self.ranks = array, t, jet, ranks
        self.equations = array.equations
        self.found: list[HiddenConstraint] = []
        self.gradients = np.zeros((0, ranks.columns.size))
        self.formulas = Formulas(self.equations.graph, self._name)
        self.explicit = ExplicitRates.of(self.equations, t, jet)
        self.base = [array.node(int(column)) for column in ranks.columns]
        self.sources: dict[int, _Rows] = {}

    def run(self) -> list[HiddenConstraint]:
        """Differentiate constraints until their number matches the ranks, or the graph yields no more."""
        waiting: list[_Waiting] = []
        for entry in self.explicit.constraints:
            rows = tuple((i, 0, factor) for i, factor in sorted(entry.members.items()))
            if self._take(entry.node, rows):
                waiting.append((entry.node, rows))
        progress = True
        while progress and len(self.found) < self.ranks.a:
            progress = False
            for node, rows in list(waiting):
                rate = self.explicit.substituted(self.equations.rates([node])[0])
                left = [i for i in self._arguments([rate]) if i not in self.base]
                further = self._differentiated(rows, node)
                if len(left) > 1 or max(r for _, r, _ in further) > self.ranks.times:
                    continue
                if not left:
                    waiting.remove((node, rows))
                    if self._take(rate, further):
                        waiting.append((rate, further))
                        progress = True
                elif self.explicit.solve_for(left[0], rate, self.t, self.jet):  # the rate of an algebraic variable
                    waiting.remove((node, rows))
                    self.sources[left[0]] = further
                    progress = True
        if len(self.found) < self.ranks.a:
            self._take_numbers()
        return self.found

    def _differentiated(self, rows: _Rows, node: int) -> _Rows:
        """The rows of a differentiated constraint, and of those used to substitute derivatives in it."""
        rate = self.equations.rates([node])[0]
        used = [i for i in self._arguments([rate]) if i in self.sources]
        own = {(i, r + 1): factor for i, r, factor in rows}
        for i, r, factor in (row for derivative in used for row in self.sources[derivative]):
            own.setdefault((i, r), factor)
        return tuple((i, r, factor) for (i, r), factor in own.items())

    def _take(self, node: int, rows: _Rows) -> bool:
        """Add a constraint if it contains no derivatives and is independent of the others; return whether added."""
        if not set(self._arguments([node])) <= set(self.base):
            return False
        (row,) = self.equations.jacobian([node], self.base)
        gradient = np.zeros(len(self.base))
        if row:
            gradient[list(row)] = self.equations.values(list(row.values()), self.t, self.jet)
        if not self._is_new(gradient):
            return False
        self.found.append(HiddenConstraint(self._text(node), rows, node))
        return True

    def _is_new(self, gradient: np.ndarray) -> bool:
        scaled = gradient * self.ranks.sizes
        size = np.linalg.norm(scaled)
        if not np.isfinite(size) or size == 0.0:
            return False
        scaled = scaled / size
        for _ in range(2):
            scaled = scaled - self.gradients.T @ (self.gradients @ scaled)
        rest = np.linalg.norm(scaled)
        if rest <= _INDEPENDENT:
            return False
        self.gradients = np.vstack([self.gradients, scaled / rest])
        return True

    def _take_numbers(self):
        """Add combinations with coefficients at the point, each with as few equations as elimination permits."""
        rows = self.ranks.constraints.shape[1]
        matrix = self.array.jacobian(self.t, self.jet).toarray()[:rows]
        scales = np.abs(matrix).max(axis=1)
        for combination in _echelon(self.ranks.constraints * scales):
            combination = combination / np.where(scales > 0.0, scales, 1.0)  # zero rows do not contribute
            if len(self.found) == self.ranks.a:
                break
            if not self._is_new(combination @ matrix[:, self.ranks.columns]):
                continue
            parts = np.abs(combination * scales)
            members = np.flatnonzero(parts > _TAKES_PART * parts.max())
            size = np.abs(combination[members]).max()
            self.found.append(self._numeric([(*self.array.rows[k], float(combination[k] / size)) for k in members]))

    def _numeric(self, rows: list[tuple[int, int, float]]) -> HiddenConstraint:
        node = self._exact(rows)
        if node is not None:
            return HiddenConstraint(self._text(node), tuple(rows), node)
        text = ""
        for i, r, factor in rows[:_MOST_NAMED]:
            sign = "-" if factor < 0.0 else "+"
            part = f"{abs(factor):.4g}*({equation_in_words(i, r)})"
            text += f" {sign} {part}" if text else ("-" if factor < 0.0 else "") + part
        more = f" + {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
        return HiddenConstraint(f"{text}{more}, with factors at t = {self.t:g}", tuple(rows))

    def _exact(self, rows: list[tuple[int, int, float]]) -> int | None:
        """The node of a combination with simple factors, if the derivatives in it cancel for all x."""
        graph, total = self.equations.graph, self.equations.graph.zero
        for i, r, factor in rows:
            simple = Fraction(factor).limit_denominator(_SIMPLE)
            if abs(float(simple) - factor) > _ZERO * abs(factor):
                return None
            part = graph.multiply(graph.constant(float(simple)), self.equations.equation(i, r))
            total = graph.add(total, part)
        terms = self.formulas.terms(self.explicit.substituted(total))
        if not set(self._arguments([node for term in terms for node, _ in term])) <= set(self.base):
            return None
        node = self.explicit.substituted(total)
        drop = {i: graph.zero for i in self._arguments([node]) if i not in self.base}
        return replaced(graph, [node], drop)[0]

    def _arguments(self, nodes: list[int]) -> list[int]:
        graph = self.equations.graph
        used = (i for i in graph.needed(nodes) if graph.operations[i] == "argument")
        return [i for i in used if graph.data[i][0].startswith("x")]

    def _text(self, node: int) -> str:
        text = f"{self.formulas.text(node)} = 0"
        if len(text) <= LONGEST:
            return text
        names = [self._name(*self.equations.graph.data[i]) for i in self._arguments([node])]
        return f"an expression in {listing(names[:_MOST_NAMED], len(names))} = 0"

    def _name(self, argument: str, index: int) -> str:
        if argument.startswith("x"):
            return derivative_name(self.equations.names[index], int(argument[1:]))
        return self.equations.parameter_name(index) if argument == "p" else argument


def _echelon(matrix: np.ndarray) -> np.ndarray:
    """The reduced row echelon form with pivots chosen from the right, so that each row has few entries."""
    matrix = matrix.copy()
    done: list[int] = []
    for column in range(matrix.shape[1] - 1, -1, -1):
        waiting = [i for i in range(len(matrix)) if i not in done]
        if not waiting:
            break
        i = max(waiting, key=lambda i: abs(matrix[i, column]))
        if abs(matrix[i, column]) <= 1e-9 * np.abs(matrix[waiting]).max():
            continue
        matrix[i] /= matrix[i, column]
        for k in range(len(matrix)):
            if k != i:
                matrix[k] -= matrix[k, column] * matrix[i]
        done.append(i)
    return matrix[done[::-1]]


# --- possible choices of initial values: sets of unknowns that parametrise the solutions of a problem -----------------

# Near a point the values of x that satisfy all constraints form a surface. A set of unknowns can be chosen freely if
# and only if the rows of these unknowns in a basis of its tangent space are linearly independent, and their number is
# its dimension.

_DEPENDENT = 1e-7  # smallest singular value below which rows of norm 1 are dependent
_MOST_SETS = 3000  # maximum number of sets examined in the search for those that cannot be chosen together
_MOST_SHOWN = 12
_MOST_EXCLUDED = 4


@dataclass(frozen=True)
class FreeUnknowns:
    """Unknowns of which a given number may be chosen, independently of all others."""

    names: tuple[str, ...]  # the unknowns
    count: int  # number that may be chosen; 0 for unknowns that the equations determine
    example: tuple[str, ...]  # a set that may be chosen, preferably of differential variables
    excluded: tuple[tuple[str, ...], ...] = ()  # the smallest sets that cannot be chosen together
    complete: bool = True  # whether `excluded` is complete

    def __str__(self) -> str:
        if self.count == 0:
            return f"{self._listed(self.names)}: none, the equations determine them"
        if self.count == len(self.names):
            return self._listed(self.names)
        text = f"any {self.count} of {self._listed(self.names)}"
        if not self.complete:
            return f"{self.count} of {self._listed(self.names)}, such as {self._listed(self.example)}"
        if self.excluded:
            text += ", but not " + ", nor ".join(
                f"{listing(names)} together" for names in self.excluded[:_MOST_EXCLUDED]
            )
            more = len(self.excluded) - _MOST_EXCLUDED
            text += f" (and {more} more such sets)" if more > 0 else ""
        return text

    @staticmethod
    def _listed(names: Sequence[str]) -> str:
        return listing(names[:_MOST_SHOWN], len(names))


def initial_choices(array: NonlinearDerivativeArray, ranks: ArrayRanks) -> list[FreeUnknowns]:
    """Possible choices at a point, in independent groups.

    Examples
    --------
    A particle on a line whose position and speed are tied to those of a second one.

    >>> import daedal
    >>> from daedal.index.structure.derivative_array import array_ranks
    >>> from daedal.index.structure.derivative_array import NonlinearDerivativeArray
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> from daedal.index.structure.hidden_constraints import initial_choices
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[2], y[1] - 2 * y[0], yp[2]], 3, names=["x", "y", "v"])
    >>> array = NonlinearDerivativeArray(SystemEquations(problem), 1)
    >>> jet = [[0, 0, 1], [1, 2, 0], [0, 0, 0]]
    >>> [str(choice) for choice in initial_choices(array, array_ranks(array, 0.0, jet)[-1])]
    ['v', 'any 1 of x and y']
    """
    rows = ranks.tangent.copy()
    lengths = np.linalg.norm(rows, axis=1)
    moving = np.flatnonzero(lengths > _DEPENDENT)
    rows[moving] /= lengths[moving, None]
    names = [array.label(int(column)) for column in ranks.columns]
    orders = np.tile(array.equations.orders, array.highest + 1)[ranks.columns]
    differential = ranks.columns // array.n < orders
    found = []
    for members, basis in _groups(rows, moving, differential):
        excluded, complete = _excluded(rows[members], len(basis))
        sets = tuple(tuple(names[members[k]] for k in together) for together in excluded)
        example = tuple(names[k] for k in basis)
        found.append(FreeUnknowns(tuple(names[k] for k in members), len(basis), example, sets, complete))
    fixed = np.setdiff1d(np.arange(len(rows)), moving)
    if fixed.size:
        found.append(FreeUnknowns(tuple(names[k] for k in fixed), 0, ()))
    return sorted(found, key=lambda choice: (choice.count == 0, choice.count != len(choice.names)))


def _groups(rows: np.ndarray, moving: np.ndarray, differential: np.ndarray) -> list[tuple[list[int], list[int]]]:
    """Groups of rows, each with a basis: two rows are in one group if one is needed to express the other."""
    basis: list[int] = []
    spanned = np.zeros((0, rows.shape[1]))
    for preferred in (True, False):
        candidates = [int(k) for k in moving if differential[k] == preferred]
        while candidates and len(basis) < rows.shape[1]:
            rest = rows[candidates] - rows[candidates] @ spanned.T @ spanned
            lengths = np.linalg.norm(rest, axis=1)
            best = int(np.argmax(lengths > 0.5 * lengths.max()))  # first acceptable row
            if lengths[best] <= _DEPENDENT:
                break
            basis.append(candidates.pop(best))
            spanned = np.vstack([spanned, rest[best] / lengths[best]])
    coefficients = (
        np.linalg.lstsq(rows[basis].T, rows[moving].T, rcond=None)[0] if basis else np.zeros((0, moving.size))
    )
    parent = {int(k): int(k) for k in moving}

    def root(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    for place, k in enumerate(moving):
        for b, coefficient in zip(basis, coefficients[:, place], strict=True):
            if abs(coefficient) > _DEPENDENT:
                parent[root(int(k))] = root(b)
    groups: dict[int, tuple[list[int], list[int]]] = {}
    for k in moving:
        members, own = groups.setdefault(root(int(k)), ([], []))
        members.append(int(k))
        if k in basis:
            own.append(int(k))
    return list(groups.values())


def _excluded(rows: np.ndarray, count: int) -> tuple[list[tuple[int, ...]], bool]:
    """The smallest dependent sets of at most `count` rows, and whether all sets were examined."""
    found: list[tuple[int, ...]] = []
    looked = 0
    for size in range(2, count + 1):
        for together in combinations(range(len(rows)), size):
            looked += 1
            if looked > _MOST_SETS:
                return found, False
            if any(set(smaller) <= set(together) for smaller in found):
                continue
            if np.linalg.svd(rows[list(together)], compute_uv=False)[-1] <= _DEPENDENT:
                found.append(together)
    return found, True
