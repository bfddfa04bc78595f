"""A problem of any index as one of index 1 in more unknowns, with the way there and back."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from daedal.index_reduction.constraints import LARGEST_DENSE, Constraints, Projector, arguments
from daedal.index_reduction.prolongation import Block, Prolongation
from daedal.index_reduction.selection import SingularBlock, amplification, choose, stacked
from daedal.problems import ImplicitDAE
from daedal.problems.compile import with_numbers
from daedal.structure.derivative_array import equation_in_words
from daedal.structure.equations import Equations
from daedal.structure.signature import Signature
from daedal.structure.singularity import equations_named
from daedal.structure.system_jacobian import Regularity, SystemJacobian
from daedal.symbolic.functions import GraphFunction, inlined
from daedal.symbolic.graph import Graph
from daedal.symbolic.machine import MachineFunction, compile_function
from daedal.tabular import listing
from daedal.tracing.parameters import NAME

_MOST_ITERATIONS, _ROUNDOFF = 5, 1e-13  # of the search for derivatives at given values, and what is left of equations
_MOST_NAMED = 12


class ReducedProblem:
    r"""All equations of a problem and as many of their derivatives as its structure asks for, in index 1.

    The unknowns :math:`u` are those of the problem and derivatives of them, taken as independent. Beside the equations
    :math:`f_i^{(r)} = 0`, hidden ones included, stand

    .. math::

        S\,(u' - \dot u) = 0,

    where :math:`\dot u` are the unknowns that are the derivatives of others, and the rows of S select as many of them
    as there are degrees of freedom. For unit vectors these are dummy derivatives (S. E. Mattsson and G. Soederlind,
    Index reduction in differential-algebraic equations using dummy derivatives, SIAM J. Sci. Comput. 14, 1993,
    677-692): all others are not integrated, but follow from the equations. S is data: another selection is the
    same problem with other parameters.

    It is made by :func:`daedal.reduce_index`.

    Attributes
    ----------
    original : ImplicitDAE, SemiExplicitDAE or SecondOrderDAE
        What was reduced.
    problem : ImplicitDAE
        The problem of index 1. Its first unknowns are those of `original`; its functions are graphs, of which tracing
        makes machine code with exact derivatives.
    constraints : Constraints
        All equations f(t, u) = 0 with their Jacobian, for bringing points back to them.
    signature : Signature
        Pryce's offsets, the structural index and the number of degrees of freedom.
    words : list of str
        What was done, in words.
    """

    def __init__(self, original: Any, equations: Equations, signature: Signature):
        self.original, self.signature, self.n = original, signature, original.n
        self.prolongation = prolongation = Prolongation(equations, signature)
        self.blocks = prolongation.blocks
        numbers = np.empty(0) if equations.params is None else np.asarray(equations.params, dtype=float)
        self.constraints = Constraints(prolongation, numbers)
        highest = prolongation.is_highest()
        # The highest derivative of what nothing ties down is no unknown of its own: it is y' of the one below.
        slopes = {
            block.targets[0]: block.columns[0]
            for block in self.blocks
            if not block.rows and block.targets[0] >= self.n and highest[block.targets[0]]
        }
        self._relations = [0 if block.targets[0] in slopes else block.free for block in self.blocks]
        inside = [column for column in range(prolongation.n) if column not in slopes]
        place = {column: k for k, column in enumerate(inside)}
        self._inside = np.array(inside)
        self._slopes = np.array(list(slopes), dtype=np.int64)
        self._of_slopes = np.array([place[low] for low in slopes.values()], dtype=np.int64)
        self._place = place
        self.is_highest = highest[inside]
        self._chosen: list[np.ndarray] | None = None
        self.problem = self._made(slopes)

    @property
    def index(self) -> int:
        """The structural index of the original problem."""
        return self.signature.index

    @cached_property
    def words(self) -> list[str]:
        """What was found and done, in sentences."""
        often = {1: "once", 2: "twice"}
        groups: dict[int, list[int]] = {}
        for i, c in self.prolongation.differentiated:
            groups.setdefault(c, []).append(i)
        done = [f"{equations_named(own)} {often.get(c, f'{c} times')}" for c, own in sorted(groups.items())]
        told = [f"The problem has index {self.signature.index} (structural)."]
        if done:
            told.append(f"Differentiated: {'; '.join(done)} (counted from 0).")
        free = self.signature.degrees_of_freedom
        freedom = f"{free} degree{'s' * (free != 1)} of freedom"
        return [*told, f"Solved by dummy derivatives in {self.problem.n} unknowns with {freedom}."]

    def __repr__(self) -> str:
        names = listing((self.problem.label(i) for i in range(min(self.problem.n, _MOST_NAMED))), self.problem.n)
        return "\n".join([" ".join(self.words[:-1]), f"{self.words[-1].rstrip('.')}: {names}."])

    @cached_property
    def equation_words(self) -> list[str]:
        """Which equation of the original problem each equation of `problem` is."""
        found = [equation_in_words(i, r) for i, r in self.prolongation.kept]
        names = self.prolongation.names
        for block, count in zip(self.blocks, self._relations, strict=True):
            relations = [f"({names[a]})' = {names[b]}" for a, b in zip(block.columns, block.targets, strict=True)]
            found += [f"the relation {' or '.join(relations[:3])}"] * count
        return found

    # --- the problem --------------------------------------------------------------------------------------------------

    def _made(self, slopes: dict[int, int]) -> ImplicitDAE:
        prolongation, equations = self.prolongation, self.prolongation.equations
        graph, n, count = Graph(), self._inside.size, self.constraints.numbers.size
        places = {column: graph.argument("y", k) for column, k in self._place.items()}
        places |= {high: graph.argument("yp", self._place[low]) for high, low in slopes.items()}
        nodes = [equations.equation(i, r) for i, r in prolongation.kept]
        residual = inlined(equations.graph, nodes, graph, arguments(prolongation, graph, places, nodes))
        for block in self.blocks:
            differences = [
                graph.subtract(graph.argument("yp", self._place[low]), places[high])
                for low, high in zip(block.columns, block.targets, strict=True)
            ]
            if not block.rows:
                residual += [] if block.targets[0] in slopes else differences
                continue
            for _ in range(block.free):
                total = graph.zero
                for difference in differences:
                    total = graph.add(total, graph.multiply(graph.argument(NAME, count), difference))
                    count += 1
                residual.append(total)
        params = (NAME, count) if count else None
        function = GraphFunction("residual", graph, residual, {"y": n, "yp": n}, params)
        names = [prolongation.names[column] for column in self._inside]
        numbers = np.concatenate([self.constraints.numbers, np.zeros(count - self.constraints.numbers.size)])
        return ImplicitDAE(function, n, params=numbers if count else None, names=names)

    # --- selection ----------------------------------------------------------------------------------------------------

    @cached_property
    def tied(self) -> list[Block]:
        """The blocks in which there is something to select."""
        return [block for block in self.blocks if block.rows and block.free]

    @cached_property
    def block_code(self) -> MachineFunction:
        """Machine code for the matrices of these blocks, row by row, of t and the unknowns of `problem`."""
        graph, source = Graph(), self.prolongation.equations.graph
        places = {column: graph.argument("y", k) for column, k in self._place.items()}
        results = {}
        for number, block in enumerate(self.tied):
            nodes = [row.get(column, source.zero) for row in block.rows for column in block.columns]
            known = arguments(self.prolongation, graph, places, nodes)
            results[str(number)] = inlined(source, nodes, graph, known)
        return compile_function(graph, {"y": self.problem.n}, results, {NAME: self.constraints.numbers.size})

    def places(self, columns: Sequence[int]) -> np.ndarray:
        """Where columns of u stand among the unknowns of `problem`."""
        return np.array([self._place[column] for column in columns], dtype=np.int64)

    @cached_property
    def _matrices(self) -> MachineFunction:
        """Machine code for the matrices of the blocks that have equations, of (t, u)."""
        prolongation, equations = self.prolongation, self.prolongation.equations
        graph = Graph()
        nodes = [node for block in self.blocks for row in block.rows for node in row.values()]
        places = {column: graph.argument("u", column) for column in range(prolongation.n)}
        made = inlined(equations.graph, nodes, graph, arguments(prolongation, graph, places, nodes))
        return compile_function(graph, {"u": prolongation.n}, {"": made}, {NAME: self.constraints.numbers.size})

    def matrices(self, t: float, u: np.ndarray) -> list[np.ndarray]:
        """For each block what its equations say of the changes of its derivatives, row by row."""
        values = self._matrices(float(t), u=u, **{NAME: self.constraints.numbers})[1][""]
        found, first = [], 0
        for block in self.blocks:
            i, k = block.entries
            matrix = np.zeros((len(block.rows), len(block.columns)))
            matrix[i, k] = values[first : first + i.size]
            found.append(matrix)
            first += i.size
        return found

    def selected(self, t: float, u: np.ndarray, scale: np.ndarray) -> ReducedProblem:
        """The same problem with the selection that suits a point best; `scale` are the sizes of u.

        Raises :class:`daedal.index_reduction.selection.SingularBlock` where there is none.
        """
        return self._with(choose(self.blocks, self.matrices(t, u), scale))

    def inside(self, values: np.ndarray) -> np.ndarray:
        """Those of the entries for u that belong to the unknowns of `problem`."""
        return values[..., self._inside]

    def enlarged(self, sizes: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Sizes of u, not smaller than those that were found for the unknowns of `problem`."""
        result = sizes.copy()
        result[self._inside] = np.maximum(sizes[self._inside], found)
        return result

    def with_numbers(self, original: Any, numbers: np.ndarray) -> ReducedProblem:
        """The same for the original problem with other parameters, whose numbers these are."""
        other = copy(self)
        other.original, other.constraints = original, self.constraints.with_numbers(numbers)
        return other

    def _with(self, chosen: list[np.ndarray]) -> ReducedProblem:
        other = copy(self)
        other.__dict__.pop("_fixed", None)
        other._chosen = chosen
        tied = [rows.ravel() for block, rows in zip(self.blocks, chosen, strict=True) if block.rows]
        numbers = np.concatenate([self.constraints.numbers, *tied])
        if numbers.size:
            other.problem = with_numbers(self.problem, numbers)
        return other

    def selects_like(self, other: ReducedProblem) -> bool:
        """Whether the selection is the same as that of another one."""
        if self._chosen is None or other._chosen is None:
            return False
        return all(np.array_equal(a, b) for a, b in zip(self._chosen, other._chosen, strict=True))

    @property
    def chosen(self) -> list[np.ndarray]:
        """For each block the rows S of the selection."""
        assert self._chosen is not None, "nothing is selected yet"
        return self._chosen

    def amplification(self, t: float, u: np.ndarray, scale: np.ndarray) -> float:
        """How much dependent derivatives change with those that are integrated, in units of `scale`."""
        return amplification(self.blocks, self.matrices(t, u), self.chosen, scale)

    @cached_property
    def _fixed(self) -> tuple[Any, Any]:
        n = self.prolongation.n
        return stacked(self.blocks, self.chosen, n, n <= LARGEST_DENSE)

    # --- there and back -----------------------------------------------------------------------------------------------

    def all_unknowns(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """u at points given by the unknowns of `problem` and their derivatives, one in each row."""
        u = np.empty((y.shape[0], self.prolongation.n))
        u[:, self._inside] = y
        u[:, self._slopes] = yp[:, self._of_slopes]
        return u

    def around(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """u as far as y and y' of the original problem tell it, 0 beyond."""
        u = np.zeros(self.prolongation.n)
        for (j, k), column in sorted(self.prolongation.column.items(), key=lambda item: -item[0][1]):
            if k <= 1:
                u[column] = y[j] if k == 0 else yp[j]
        return u

    def exact(self, t: np.ndarray, u: np.ndarray, scale: np.ndarray, projector: Projector | None = None):
        """Points on all equations with what is integrated as it is, their slopes u', and which were found.

        `scale` are the sizes of u, by which round-off is judged.
        """
        return (projector or self.constraints.projector()).project(t, u, *self._fixed, scale)

    def lift(self, t: float, y: np.ndarray, yp: np.ndarray | None = None) -> np.ndarray:
        """u on all equations near values of the original problem, with its second part where it is known.

        Values y that satisfy all equations stay as they are; NaN stands for what is not known.
        """
        from daedal.initial.jet import consistent_jet

        known = np.isfinite(y)
        around = self.around(np.where(known, y, 0.0), np.zeros(self.n) if yp is None else yp)
        u = self._completed(t, around) if known.all() else None
        if u is None:
            u = self._with_others(t, around, known & ~self.is_highest[: self.n])
        if u is not None:
            return u
        given = [y] if yp is None else [y, yp]
        return self.from_jet(consistent_jet(self.equations, t, given, offsets=self.prolongation.c))

    @property
    def equations(self) -> Equations:
        """The equations of the original problem, with its parameters."""
        equations = copy(self.prolongation.equations)
        if equations.params is not None:
            equations.params = self.constraints.numbers
        return equations

    def regularity(self, t: float, u: np.ndarray) -> Regularity:
        """Whether the system Jacobian is nonsingular at a point, and the equations and unknowns that make it so."""
        return SystemJacobian(self.equations, self.signature).regularity(t, self.jet(u))

    def largest_residual(self, t: float, u: np.ndarray) -> tuple[float, float]:
        """The largest residual of what was differentiated, as given and differentiated less often than it was."""
        f = np.abs(self.constraints.values(t, u)[0])
        given = [k for k, (i, r) in enumerate(self.prolongation.kept) if r == 0 < self.prolongation.c[i]]
        hidden = [k for k, (i, r) in enumerate(self.prolongation.kept) if 0 < r < self.prolongation.c[i]]
        return float(f[given].max(initial=0.0)), float(f[hidden].max(initial=0.0))

    def _completed(self, t: float, u: np.ndarray) -> np.ndarray | None:
        """u with y as it is, by Gauss and Newton for the derivatives; None if there is none to round-off."""
        for _ in range(_MOST_ITERATIONS):
            if self._is_satisfied(t, u):
                return u
            f, matrix, _ = self.constraints.values(t, u)
            if not (np.isfinite(f).all() and np.isfinite(matrix.data).all()):
                return None
            u = u.copy()
            u[self.n :] -= np.linalg.lstsq(matrix[:, self.n :].toarray(), f, rcond=None)[0]
        return None

    def _with_others(self, t: float, u: np.ndarray, kept: np.ndarray) -> np.ndarray | None:
        """u with other highest derivatives and whatever is unknown, found by Newton; None if more has to change."""
        start = u[: self.n].copy()
        for _ in range(2):  # what is zero has no size that is known before
            sizes = np.where(u == 0.0, np.inf, np.abs(u))
            try:
                reduced = self.selected(t, u, np.where(u == 0.0, 1.0, sizes))
            except SingularBlock:
                return None
            [u], _, [found] = reduced.exact(np.array([t]), u[None, :], sizes)
            if not found:
                return None
        moved = np.abs(u[: self.n] - start) > _ROUNDOFF * np.abs(start)
        return None if np.any(moved & kept) or not self._is_satisfied(t, u) else u

    def _is_satisfied(self, t: float, u: np.ndarray) -> bool:
        """Whether all equations hold to round-off of their terms."""
        f, matrix, _ = self.constraints.values(t, u)
        return bool(np.all(np.abs(f) <= _ROUNDOFF * (abs(matrix) @ np.abs(u))))

    def start(self, t: float, u: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y and y' of `problem` at a point u on all equations."""
        point, slope, _ = self.exact(np.array([t]), u[None, :], scale)
        return point[0, self._inside], slope[0, self._inside]

    def jet(self, u: np.ndarray) -> np.ndarray:
        """x, x', ... in rows, as far as u has them; NaN where it does not."""
        found = np.full((max(self.prolongation.d) + 1, self.n), np.nan)
        for (j, k), column in self.prolongation.column.items():
            found[k, j] = u[column]
        return found

    def from_jet(self, jet: np.ndarray) -> np.ndarray:
        """u from x, x', ... in rows."""
        u = np.empty(self.prolongation.n)
        for (j, k), column in self.prolongation.column.items():
            u[column] = jet[k, j]
        return u

    def tolerance(self, given: np.ndarray) -> np.ndarray:
        """rtol or atol of u: derivatives have that of the unknown that they belong to."""
        values = np.empty(self.prolongation.n)
        for (j, _), column in sorted(self.prolongation.column.items(), key=lambda item: -item[0][1]):
            values[column] = given[j]
        return values
