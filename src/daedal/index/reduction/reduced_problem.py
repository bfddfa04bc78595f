"""A problem of any index as an index-1 problem with more unknowns, and conversions in both directions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.tabular import listing, plural, times
from daedal.errors import InvalidProblemError
from daedal.index.reduction.prolongation import (
    LARGEST_DENSE,
    Block,
    BlockMatrices,
    Constraints,
    Derivative,
    Projector,
    Prolongation,
    arguments,
)
from daedal.index.reduction.selection import PivotWatch, amplification, choose, stacked, unit_vectors
from daedal.index.structure.derivative_array import equation_in_words
from daedal.index.structure.signature import StructuralSignature, equations_named, unknowns_named
from daedal.index.structure.system_equations import SystemEquations
from daedal.index.structure.system_jacobian import Regularity, SystemJacobian
from daedal.problems import ImplicitDAE
from daedal.problems.compile import with_numbers
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import GraphFunction, inlined
from daedal.symbolic.machine import MachineFunction
from daedal.symbolic.tracing.parameters import NAME


class EquationBuilder:
    """Builder of one problem F(t, y, y') = 0 whose unknowns are those of a prolongation, or derivatives of them.

    `place` maps columns of u to positions in y, `slopes` maps columns that occur only in y' to the
    columns of their antiderivatives. `count` is the number of parameters of the original problem; data follow them.
    """

    def __init__(self, prolongation: Prolongation, place: dict[int, int], slopes: dict[int, int], count: int):
        self._prolongation, self._place, self._count, self._further = prolongation, place, count, len(place)
        self.graph = Graph()
        self.nodes = {column: self.y(k) for column, k in place.items()}
        self.nodes |= {high: self.rate(low) for high, low in slopes.items()}

    def y(self, k: int) -> int:
        """The node of an unknown of the problem."""
        return self.graph.argument("y", k)

    def further(self) -> int:
        """The node of the next unknown of the problem that is not in u; such unknowns follow those that are."""
        self._further += 1
        return self.y(self._further - 1)

    def rate(self, column: int) -> int:
        """The node of the derivative of an unknown u."""
        return self.graph.argument("yp", self._place[column])

    def difference(self, low: int, high: int) -> int:
        """The node of u_low' - u_high."""
        return self.graph.subtract(self.rate(low), self.nodes[high])

    def data(self, count: int) -> list[int]:
        """Placeholders for data assigned once a point is known."""
        self._count += count
        return [self.graph.argument(NAME, k) for k in range(self._count - count, self._count)]

    def combination(self, terms: Sequence[int], factors: Sequence[int] | None = None) -> int:
        """The node of the sum of terms times factors, which by default are data."""
        total = self.graph.zero
        for factor, term in zip(self.data(len(terms)) if factors is None else factors, terms, strict=True):
            total = self.graph.add(total, self.graph.multiply(factor, term))
        return total

    def written(self, nodes: Sequence[int], others: dict[int, int] | None = None) -> list[int]:
        """Nodes of the original equations, in the unknowns of this problem; `others` replace some entries of u."""
        known = arguments(self._prolongation, self.graph, self.nodes | (others or {}), nodes)
        return inlined(self._prolongation.equations.graph, list(nodes), self.graph, known)

    def problem(self, residual: list[int], names: list[str], numbers: np.ndarray) -> ImplicitDAE:
        """The problem with this residual; its data are still zero."""
        n, count = len(names), self._count
        function = GraphFunction("residual", self.graph, residual, {"y": n, "yp": n}, (NAME, count) if count else None)
        values = np.concatenate([numbers, np.zeros(count - numbers.size)])
        return ImplicitDAE(function, n, params=values if count else None, names=names)


# --- The reduced problem ---------------------------------------------------------------------------------------------


_MOST_NAMED = 12


class ReducedProblem:
    r"""All equations of a problem and as many of their derivatives as its structure requires, with index 1.

    The unknowns :math:`u` are those of the problem and derivatives of them, treated as independent. In addition to the
    equations :math:`f_i^{(r)} = 0`, including hidden ones, it contains

    .. math::

        S\,(u' - \dot u) = 0,

    where :math:`\dot u` are the unknowns that represent the derivatives of others, and the rows of S select as many of
    them as there are degrees of freedom. For unit vectors these are dummy derivatives (S. E. Mattsson and G.
    Soederlind, Index reduction in differential-algebraic equations using dummy derivatives, SIAM J. Sci. Comput. 14,
    1993, 677-692): all others are not integrated, but follow from the equations. S is data; another selection gives the
    same problem with different parameters.

    Created by :func:`daedal.reduce_index`.

    Attributes
    ----------
    original : ImplicitDAE, SemiExplicitDAE or SecondOrderDAE
        The original problem.
    problem : ImplicitDAE
        The index-1 problem. Its first unknowns are those of `original`; its functions are graphs, which tracing
        compiles with exact derivatives.
    constraints : Constraints
        All equations f(t, u) = 0 with their Jacobian, for projecting points onto them.
    signature : Signature
        Pryce's offsets, the structural index and the number of degrees of freedom.
    words : list of str
        A description of the reduction.

    Examples
    --------
    >>> import daedal, numpy as np
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - np.sin(t)], 2, names=["x", "v"])
    >>> reduced = daedal.reduce_index(problem)
    >>> isinstance(reduced, daedal.formulations.ReducedProblem), reduced.index, reduced.problem.n
    (True, 2, 2)
    """

    by = "dummy derivatives"
    unknowns_stay = True  # whether unknowns stay the same when the selection changes
    result_index = 1  # index of `problem`
    choice = staticmethod(unit_vectors)  # chooses the rows S of a block

    def __init__(
        self,
        original: Any,
        equations: SystemEquations,
        signature: StructuralSignature,
        leading: list[Derivative] | None = None,
    ):
        self.original, self.signature = original, signature
        self.prolongation = prolongation = Prolongation(equations, signature, leading)
        self.n = len(prolongation.leading)
        self.blocks = prolongation.blocks
        numbers = np.empty(0) if equations.params is None else np.asarray(equations.params, dtype=float)
        self.constraints = Constraints(prolongation, numbers)
        self.is_highest = prolongation.is_highest()
        self._slope_of = self._slopes_taken()
        further = self._further_unknowns()
        inside = [column for column in range(prolongation.n) if column not in self._without()]
        self._place = place = {column: k for k, column in enumerate(inside)}
        self._inside, self._like = np.array(inside), np.array([*inside, *(column for _, column in further)])
        self._slopes = np.array(list(self._slope_of), dtype=np.int64)
        self._of_slopes = np.array([place[low] for low in self._slope_of.values()], dtype=np.int64)
        self.excluded = self._untested()
        self._chosen: list[np.ndarray] | None = None
        self.problem = self._made([prolongation.names[column] for column in inside] + [name for name, _ in further])

    # --- definition of the reduction ----------------------------------------------------------------------------------

    def _slopes_taken(self) -> dict[int, int]:
        """Unknowns u that represent y' of other unknowns, {high: low}: the highest derivatives of unconstrained
        unknowns."""
        return {
            block.targets[0]: block.columns[0]
            for block in self.blocks
            if not block.rows and self._is_new(block.targets[0])
        }

    def _is_new(self, column: int) -> bool:
        """Whether a column of u is a highest derivative, but not an unknown of the original problem."""
        return column >= self.n and bool(self.is_highest[column])

    def _without(self) -> Collection[int]:
        """Entries of u that do not occur in `problem`."""
        return self._slope_of

    def _further_unknowns(self) -> list[tuple[str, int]]:
        """Names of unknowns of `problem` that are not in u, each with the index of an entry of u of similar size."""
        return []

    def _untested(self) -> np.ndarray:
        """Unknowns of `problem` excluded from the error test: new ones whose derivative does not occur."""
        return self.is_highest[self._like] & (np.arange(self._like.size) >= self.n)

    @cached_property
    def kept(self) -> list[tuple[int, int]]:
        """Equations of `problem` that are given equations or their derivatives: equation i, differentiated r times."""
        return self.prolongation.kept

    def _relations(self, block: Block, sheet: EquationBuilder) -> list[tuple[int, str]]:
        """The equations between derivatives of a block, as nodes and as text."""
        differences = [(sheet.difference(low, high), low, high) for low, high in zip(block.columns, block.targets)]
        if not block.rows:
            return [(node, self._told(low, high)) for node, low, high in differences if high not in self._slope_of]
        told = " or ".join(self._told(low, high) for _, low, high in differences[:3])
        nodes = [node for node, _, _ in differences]
        return [(sheet.combination(nodes), told) for _ in range(block.free)]

    def _told(self, low: int, high: int) -> str:
        return f"({self.prolongation.names[low]})' = {self.prolongation.names[high]}"

    def _made(self, names: list[str]) -> ImplicitDAE:
        """Build the problem, and store a description of each equation in `equation_words`."""
        sheet = EquationBuilder(self.prolongation, self._place, self._slope_of, self.constraints.numbers.size)
        self._write_unknowns(sheet)
        residual = sheet.written([self.prolongation.equations.equation(i, r) for i, r in self.kept])
        relations = [relation for block in self.blocks for relation in self._relations(block, sheet)]
        self.equation_words = [equation_in_words(i, r) for i, r in self.kept]
        self.equation_words += [f"the relation {told}" for _, told in relations]
        return sheet.problem([*residual, *(node for node, _ in relations)], names, self.constraints.numbers)

    def _write_unknowns(self, sheet: EquationBuilder) -> None:
        """Write expressions for entries of u that are neither unknowns of `problem` nor their derivatives."""

    @classmethod
    def checked(
        cls,
        original: Any,
        equations: SystemEquations,
        signature: StructuralSignature,
        leading: list[Derivative] | None = None,
    ) -> ReducedProblem:
        """The reduced problem; raises an error if the signature method fails because its Jacobian is singular
        everywhere."""
        generic = SystemJacobian(equations, signature).generic
        if generic.verdict == "singular":
            raise InvalidProblemError(
                "the index cannot be determined from the structure of the equations: "
                f"{equations_named(generic.equations)} (counted from 0), differentiated as often as the orders of "
                "their derivatives suggest, do not determine "
                f"{unknowns_named(generic.unknowns, equations.names)}. Remedy: use the method 'strangeness_free', "
                "or replace one of these equations by a combination of them in which the highest derivatives "
                "cancel."
            )
        return cls(original, equations, signature, leading)

    @property
    def index(self) -> int:
        """The structural index of the original problem."""
        return self.signature.index

    @cached_property
    def words(self) -> list[str]:
        """A description of the reduction, in sentences."""
        groups: dict[int, list[int]] = {}
        for i, c in self.prolongation.differentiated:
            groups.setdefault(c, []).append(i)
        done = [
            f"{equations_named(own)} {times(c) if c <= 2 else f'({times(c)})'}" for c, own in sorted(groups.items())
        ]
        told = [f"The problem has index {self.signature.index} (structural)."]
        if done:
            told.append(f"Differentiated: {'; '.join(done)} (counted from 0).")
        free = self.signature.degrees_of_freedom
        freedom = f"{free} degree{'s' * (free != 1)} of freedom"
        return [*told, f"Solved by {self.by} in {plural(self.problem.n, 'unknown')} with {freedom}."]

    def __repr__(self) -> str:
        names = listing((self.problem.label(i) for i in range(min(self.problem.n, _MOST_NAMED))), self.problem.n)
        return "\n".join([" ".join(self.words[:-1]), f"{self.words[-1].rstrip('.')}: {names}."])

    # --- selection ----------------------------------------------------------------------------------------------------

    @cached_property
    def tied(self) -> list[Block]:
        """The blocks that require a selection."""
        return [block for block in self.blocks if block.rows and block.free]

    @cached_property
    def block_code(self) -> MachineFunction:
        """Machine code for the matrices of the blocks `tied`, row by row, as functions of t and the unknowns of
        `problem`."""
        return self._block_matrices.of_unknowns(self.tied, self._place, self.problem.n)

    def block_values(self, number: int) -> slice:
        """The slice with the matrix of block `number` of `tied` in the memory of `block_code`."""
        return self.block_code.slices[str(number)]

    def places(self, columns: Sequence[int]) -> np.ndarray:
        """The positions of columns of u among the unknowns of `problem`."""
        return np.array([self._place[column] for column in columns], dtype=np.int64)

    @cached_property
    def _block_matrices(self) -> BlockMatrices:
        return BlockMatrices(self.prolongation, self.constraints.numbers.size)

    def matrices(self, t: float, u: np.ndarray) -> list[np.ndarray]:
        """For each block the matrix of its equations with respect to its derivatives, row by row."""
        return self._block_matrices.values(t, u, self.constraints.numbers)

    def selected(self, t: float, u: np.ndarray, scale: np.ndarray) -> ReducedProblem:
        """A copy with the best selection at a point; `scale` are the sizes of u.

        Raises :class:`daedal.index.reduction.selection.SingularBlock` if there is none.
        """
        return self._with(choose(self.blocks, self.matrices(t, u), scale, self.choice))

    def inside(self, values: np.ndarray) -> np.ndarray:
        """Convert sizes or tolerances of u to those of the unknowns of `problem`."""
        return values[..., self._like]

    def enlarged(self, sizes: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Sizes of u that are no smaller than those found for the unknowns of `problem`."""
        result = sizes.copy()
        result[self._inside] = np.maximum(sizes[self._inside], found[: self._inside.size])
        return result

    def with_numbers(self, original: Any, numbers: np.ndarray) -> ReducedProblem:
        """A copy for the original problem with the given parameter values."""
        other = copy(self)
        other.original, other.constraints = original, self.constraints.with_numbers(numbers)
        return other

    def _with(self, chosen: list[np.ndarray]) -> ReducedProblem:
        other = copy(self)
        other.__dict__.pop("_fixed", None)
        other._chosen = chosen
        numbers = np.concatenate([self.constraints.numbers, *other._data()])
        if numbers.size:
            other.problem = with_numbers(self.problem, numbers)
        return other

    def _data(self) -> list[np.ndarray]:
        """The data in `problem` that define the selection, in the order of `_made`."""
        return [rows.ravel() for block, rows in zip(self.blocks, self.chosen, strict=True) if block.rows]

    def selects_like(self, other: ReducedProblem) -> bool:
        """Whether the selection equals that of another problem."""
        if self._chosen is None or other._chosen is None:
            return False
        return all(np.array_equal(a, b) for a, b in zip(self._chosen, other._chosen, strict=True))

    @property
    def chosen(self) -> list[np.ndarray]:
        """For each block the rows S of the selection."""
        assert self._chosen is not None, "no selection has been made yet"
        return self._chosen

    def amplification(self, t: float, u: np.ndarray, scale: np.ndarray) -> float:
        """The largest change of a dependent derivative with an integrated one, in units of `scale`."""
        return amplification(self.blocks, self.matrices(t, u), self.chosen, scale)

    @cached_property
    def _fixed(self) -> tuple[Any, Any]:
        n = self.prolongation.n
        return stacked(self.blocks, self.chosen, n, n <= LARGEST_DENSE)

    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows S of all blocks on u, in the order of the columns, and the same rows on the derivatives."""
        fixed, following = (m.toarray() if hasattr(m, "toarray") else m for m in self._fixed)
        order = np.argsort(np.argmax(np.abs(fixed), axis=1), kind="stable")
        return fixed[order], following[order]

    def watch(self) -> Any:
        """The hook called after every accepted step of a run, with its own memory; None if there is none."""
        return PivotWatch(self) if self.tied else None

    # --- conversions --------------------------------------------------------------------------------------------------

    def all_unknowns(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """u at points given by the unknowns of `problem` and their derivatives, one point per row."""
        u = np.empty((y.shape[0], self.prolongation.n))
        u[:, self._inside] = y[:, : self._inside.size]
        u[:, self._slopes] = yp[:, self._of_slopes]
        return u

    @cached_property
    def slope_columns(self) -> np.ndarray:
        """Columns of u that are y' of the original problem; -1 if missing."""
        column = self.prolongation.column
        return np.array([column.get((j, k + 1), -1) for j, k in self.prolongation.leading], dtype=np.int64)

    def around(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """u as determined by y and y' of the original problem; 0 for other entries."""
        u, occurs = np.zeros(self.prolongation.n), self.slope_columns >= 0
        u[self.slope_columns[occurs]] = yp[occurs]
        u[: self.n] = y
        return u

    def exact(self, t: np.ndarray, u: np.ndarray, scale: np.ndarray, projector: Projector | None = None):
        """Points on all equations with integrated values fixed, their slopes u', and whether each was found.

        `scale` are the sizes of u, used to judge round-off.
        """
        return (projector or self.constraints.projector()).project(t, u, *self._fixed, scale)

    def lowered(self, t: float, u: np.ndarray, slope: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
        """A point u with smaller values of the derivatives that the equations leave undetermined.

        None if the equations determine all derivatives, or if no such point is found.
        """
        return None

    @property
    def equations(self) -> SystemEquations:
        """The equations of the original problem, with its parameters."""
        equations = copy(self.prolongation.equations)
        if equations.params is not None:
            equations.params = self.constraints.numbers
        return equations

    def regularity(self, t: float, u: np.ndarray) -> Regularity | None:
        """Whether the system Jacobian is nonsingular at a point, and the equations and unknowns concerned.

        None if irrelevant to the run.
        """
        return SystemJacobian(self.equations, self.signature).regularity(t, self.jet(u))

    def largest_residual(self, t: float, u: np.ndarray) -> tuple[float, float]:
        """The largest residual of the equations that are differentiated, and of their derivatives below the highest.

        Derivatives that contain unknowns beyond first derivatives are excluded, as :meth:`around` does not set these.
        """
        f, c = np.abs(self.constraints.values(t, u)[0]), self.prolongation.c
        beyond = self.constraints.containing(self._beyond_first)
        given = [k for k, (i, r) in enumerate(self.prolongation.kept) if r == 0 < c[i]]
        hidden = [k for k, (i, r) in enumerate(self.prolongation.kept) if 0 < r < c[i] and not beyond[k]]
        return float(f[given].max(initial=0.0)), float(f[hidden].max(initial=0.0))

    @cached_property
    def _beyond_first(self) -> np.ndarray:
        """Mask of the entries of u that are neither unknowns of the original problem nor their first derivatives."""
        beyond = np.ones(self.prolongation.n, dtype=bool)
        known = {(j, k + r) for j, k in self.prolongation.leading for r in (0, 1)}
        beyond[[column for place, column in self.prolongation.column.items() if place in known]] = False
        return beyond

    def start(self, t: float, u: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y and y' of `problem` at a point u on all equations."""
        point, slope, _ = self.exact(np.array([t]), u[None, :], scale)
        return self._own(point[0]), self._own(slope[0])

    def _own(self, u: np.ndarray) -> np.ndarray:
        return u[self._like]

    def jet(self, u: np.ndarray) -> np.ndarray:
        """x, x', ... in rows if contained in u; otherwise NaN."""
        found = np.full((max(self.prolongation.d) + 1, self.equations.n), np.nan)
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
        """rtol or atol of u; derivatives have the tolerance of their unknown."""
        values, of = np.empty(self.prolongation.n), dict(zip(self.prolongation.leading, given, strict=True))
        for (j, k), column in sorted(self.prolongation.column.items(), key=lambda item: -item[0][1]):
            values[column] = of[max(place for place in of if place[0] == j and place[1] <= k)]
        values[: self.n] = given
        return values
