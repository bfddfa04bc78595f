r"""Whole steps of linearly implicit methods for F(t, y, y') = 0 as straight-line code, elimination included.

With :math:`G = F_y + F_{y'}/(h\gamma)` a step of a Rosenbrock method
(:mod:`daedal.methods.rosenbrock.rosenbrock_tableaux`) solves

.. math::

    G u_i = -F\Big(t_i, Y_i, -\sum_{j<i} \frac{c_{ij}}{h} u_j\Big) - \gamma_i h F_t, \qquad
    Y_i = y_0 + \sum_{j<i} a_{ij} u_j

if :math:`F_{y'}` is constant. Otherwise the equations are treated as :math:`y' = z,\ 0 = F(t, y, z)`, whose increments
of z can be eliminated: with :math:`Z_i = z_0 + \sum_j a_{ij} w_j` and :math:`e_i = Z_i + \sum_j c_{ij} u_j / h`,

.. math::

    G u_i = -F(t_i, Y_i, Z_i) - \gamma_i h F_t + F_{y'} e_i, \qquad w_i = \frac{1}{h \gamma} u_i - e_i.

The defect of the step's polynomial, :math:`G^{-1} F(t, p, p')`, is computed at one interior point.

Pivots are chosen in advance. Their quality is checked at run time by the residual of the solutions: :math:`\sum_i m_i
(G u_i - r_i)`, row by row in units of its terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from daedal.symbolic import Traced, Untraceable
from daedal.symbolic.derivative import Row, directional, jacobian
from daedal.symbolic.elimination import Factors, StructurallySingular, factor, matching
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.machine import BAD_PIVOT, RAISES, MachineFunction
from daedal.symbolic.modes import NAME as MODES
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.tracer import Tracer

_MOST_UNKNOWNS = 50  # maximum number of unknowns; for more, factorisation with pivoting is as fast
_MOST_OPERATIONS = 8_000  # maximum number of operations per step; code generation takes 40 us each
WORST_REST = 1e-9
"""Largest residual of a row, in units of its terms, for which pivots count as good."""


class LinearlyImplicit:
    """Functions of a traced F(t, y, y') for linearly implicit methods, each created on first use.

    Parameters
    ----------
    tracer : Tracer
        Tracer with the graph of F.
    residual : Traced
        F.
    arguments : sequence of str
        Names of the vectors in y and y'.
    y, yp : sequence of int
        Nodes of y and y'.
    """

    def __init__(self, tracer: Tracer, residual: Traced, arguments: Sequence[str], y: Sequence[int], yp: Sequence[int]):
        self._tracer, self._residual, self._arguments = tracer, residual, tuple(arguments)
        self._y, self._yp = list(y), list(yp)
        self._made: dict[str, TracedFunction | None] = {}
        self._wide: dict[str, MachineFunction | None] = {}

    @property
    def tracer(self) -> Tracer:
        """The tracer, which contains the graph and its lock."""
        return self._tracer

    @property
    def residual(self) -> Traced:
        """F."""
        return self._residual

    @property
    def unknowns(self) -> tuple[list[int], list[int]]:
        """Nodes of y and y'."""
        return self._y, self._yp

    @cached_property
    def by_rates(self) -> list[Row]:
        """Rows of dF/dy'."""
        return jacobian(self._tracer.graph, self._residual.nodes, self._yp)

    @cached_property
    def _by_time(self) -> list[int]:
        """dF/dt."""
        return directional(self._tracer.graph, self._residual.nodes, {self._tracer.t.node: self._tracer.graph.one})

    @property
    def constant_mass(self) -> bool:
        """Whether dF/dy' depends only on parameters."""
        with self._tracer.lock:
            return self._constant_mass

    @cached_property
    def _constant_mass(self) -> bool:
        graph = self._tracer.graph
        entries = [node for row in self.by_rates for node in row.values()]
        read = {graph.data[i][0] for i in graph.needed(entries) if graph.operations[i] == "argument"}
        return read <= {NAME, MODES}

    @property
    def depends_on_time(self) -> bool:
        """Whether dF/dt is not identically zero."""
        with self._tracer.lock:
            return any(not self._tracer.graph.is_zero(node) for node in self._by_time)

    def time_derivative(self) -> TracedFunction | None:
        """dF/dt as a function of (t, y, y'); None if there are too many operations."""
        return self._kept("time derivative", lambda: self._function(self._by_time, self._arguments, []))

    def slope_product(self) -> TracedFunction | None:
        """dF/dy' v as a function of (t, y, y', v); None if there are too many operations."""
        return self._kept("slope product", self._make_slope_product)

    def step(self, name: str, tableau: Any) -> TracedFunction | None:
        """A step of a method as a function of (t, y, y', h).

        It computes y at the end, the increments of all stages, the interior defect, and z if y' = z is solved.

        Its status is BAD_PIVOT for bad pivots. The result is None if there are too many operations or no pivots.
        """
        return self._kept(name, lambda: self._make_step(tableau)) if len(self._y) <= _MOST_UNKNOWNS else None

    def _kept(self, name: str, make) -> TracedFunction | None:
        with self._tracer.lock:
            if name not in self._made:
                try:
                    self._made[name] = make()
                except (StructurallySingular, Untraceable):
                    self._made[name] = None
            return self._made[name]

    def _function(self, nodes: Sequence[int], arguments: tuple[str, ...], statuses) -> TracedFunction:
        tracer, code = self._tracer, self._code(nodes, arguments, statuses)
        original = (tracer.result.functions | tracer.combined)[self._residual.name].original
        return tracer.made("step", code, original, arguments=tuple(range(len(self._arguments))))

    def _code(self, nodes: Sequence[int], arguments: tuple[str, ...], statuses, **options: bool) -> MachineFunction:
        stated = [(self._residual.raises, RAISES), *statuses]
        return self._tracer.code(arguments, np.array(nodes), stated, **options)

    def _make_slope_product(self) -> TracedFunction:
        tracer = self._tracer
        tracer.sizes["direction"] = len(self._yp)
        along = dict(zip(self._yp, tracer.nodes("direction"), strict=True))
        nodes = directional(tracer.graph, self._residual.nodes, along)
        return self._function(nodes, (*self._arguments, "direction"), [])

    def step_in_lanes(self, name: str, tableau: Any) -> MachineFunction | None:
        """A step with eight members in lanes; None if unavailable."""
        with self._tracer.lock:
            if name not in self._wide:
                try:
                    made = self.step_formulas(tableau)
                    self._wide[name] = None if made is None else self._code(*self._stated(made), lanes=True)
                except (StructurallySingular, Untraceable):
                    self._wide[name] = None
            return self._wide[name]

    def _stated(self, made) -> tuple[list[int], tuple[str, ...], list[tuple[int, int]]]:
        nodes, statuses = made
        return nodes, (*self._arguments, "step"), statuses

    def _make_step(self, tableau: Any) -> TracedFunction | None:
        made = self.step_formulas(tableau)
        return None if made is None else self._function(*self._stated(made))

    def step_formulas(
        self, tableau: Any, worst_rest: float = WORST_REST
    ) -> tuple[list[int], list[tuple[int, int]]] | None:
        """Nodes of a step of a method, as functions of (t, y, y', h), and the conditions under which it fails.

        The caller holds the lock of the tracer. None if there are too many operations.
        """
        tracer = self._tracer
        graph = tracer.graph
        tracer.sizes["step"] = 1
        [h] = tracer.nodes("step")
        before, graph.most_nodes = graph.most_nodes, max(graph.most_nodes, len(graph) + 2 * _MOST_OPERATIONS)
        try:
            step = _Step(tracer, self._residual, (self._y, self._yp), self.by_rates, self._by_time, h, tableau)
            step.worst_rest = worst_rest
            if step.least_operations > _MOST_OPERATIONS:
                return None
            nodes = step.nodes(self._constant_mass)
        finally:
            graph.most_nodes = before
        if graph.count(nodes) > _MOST_OPERATIONS:
            return None
        return nodes, [(step.raises, RAISES), (step.bad_pivot, BAD_PIVOT)]

    def __reduce__(self):
        """Machine code is not pickled."""
        return type(None), ()


class _Step:
    """A step on the graph."""

    def __init__(self, tracer: Tracer, residual: Traced, unknowns, by_rates: list[Row], by_time: list[int], h, tableau):
        self.graph, self.residual, self.tableau, self.h, self.t = tracer.graph, residual, tableau, h, tracer.t.node
        self.y, self.yp = unknowns
        self.by_rates, self.by_time = by_rates, by_time
        graph = self.graph
        self.inverse_h = graph.divide(graph.one, h)
        self.cj = graph.multiply(graph.constant(1.0 / tableau.gamma), self.inverse_h)
        self.matrix = self._matrix()
        self.places = matching(self.matrix)
        self.factors: Factors = factor(graph, [self.matrix[i] for i in self.places])
        self.arguments = {graph.data[i]: i for i in range(len(graph)) if graph.operations[i] == "argument"}
        self.raises = graph.false
        self.bad_pivot = graph.false
        self.worst_rest = WORST_REST

    @property
    def least_operations(self) -> int:
        """Lower bound for the operations of the stages: values of F, and two operations for every entry of the
        factors."""
        entries = sum(map(len, self.factors.rows)) + sum(map(len, self.factors.multipliers.values()))
        return (self.tableau.s + 1) * (self.graph.count(self.residual.nodes) + 2 * entries)

    def _matrix(self) -> list[Row]:
        """dF/dy + dF/dy' / (h gamma), row by row."""
        rows = jacobian(self.graph, self.residual.nodes, self.y)
        for row, slopes in zip(rows, self.by_rates, strict=True):
            for j, x in slopes.items():
                term = self.graph.multiply(self.cj, x)
                row[j] = self.graph.add(row[j], term) if j in row else term
        return rows

    def nodes(self, constant_mass: bool) -> list[int]:
        """y at the end, the increments of all stages, the defect, and z at the end if it is an unknown."""
        tableau, graph = self.tableau, self.graph
        u: list[list[int]] = []  # increments of y
        w: list[list[int]] = []  # increments of z
        rights: list[list[int]] = []
        for i in range(tableau.s):
            y = self._combined(self.y, tableau.a[i], u)
            past = [graph.multiply(self.inverse_h, x) for x in self._sum(tableau.c[i], u)]
            z = [graph.negative(x) for x in past] if constant_mass else self._combined(self.yp, tableau.a[i], w)
            right = [graph.negative(x) for x in self._residual_at(tableau.nodes[i], y, z)]
            time = graph.multiply(graph.constant(tableau.time_weights[i]), self.h)
            right = [graph.subtract(x, graph.multiply(time, x_t)) for x, x_t in zip(right, self.by_time, strict=True)]
            if not constant_mass:
                slopes = [graph.add(x, x_past) for x, x_past in zip(z, past, strict=True)]
                right = [graph.add(x, self._product(row, slopes)) for x, row in zip(right, self.by_rates, strict=True)]
            u.append(self.factors.solve([right[k] for k in self.places]))
            if not constant_mass:
                w.append([graph.subtract(graph.multiply(self.cj, x), e) for x, e in zip(u[-1], slopes, strict=True)])
            rights.append(right)
        self._look_back(u, rights)
        end = self._combined(self.y, tableau.m, u)
        last = [] if constant_mass else self._combined(self.yp, tableau.m, w)
        return [*end, *(x for increments in u for x in increments), *self._defect(u), *last]

    def _defect(self, u: list[list[int]]) -> list[int]:
        """Defect of the step's polynomial at an interior point: G^{-1} F."""
        graph, tableau, theta = self.graph, self.tableau, self.tableau.middle
        y = self._combined(self.y, tableau.weights(theta), u)
        yp = [graph.multiply(self.inverse_h, x) for x in self._sum(tableau.slopes(theta), u)]
        values = self._residual_at(theta, y, yp)
        return self.factors.solve([values[k] for k in self.places])

    def _sum(self, weights, vectors: list[list[int]]) -> list[int]:
        """Weighted sum of vectors, accumulated from the first, so that sums with common leading terms share nodes."""
        graph = self.graph
        total = [graph.zero] * len(self.y)
        for weight, vector in zip(weights, vectors, strict=False):
            if weight != 0.0:
                factor = graph.constant(weight)
                total = [graph.add(x, graph.multiply(factor, v)) for x, v in zip(total, vector, strict=True)]
        return total

    def _combined(self, start: list[int], weights, vectors: list[list[int]]) -> list[int]:
        return [self.graph.add(x, change) for x, change in zip(start, self._sum(weights, vectors), strict=True)]

    def _product(self, row: Row, vector: list[int]) -> int:
        total = self.graph.zero
        for j, x in row.items():
            total = self.graph.add(total, self.graph.multiply(x, vector[j]))
        return total

    def _residual_at(self, theta: float, y: list[int], yp: list[int]) -> list[int]:
        """F at t + theta h; records the condition under which it raises."""
        graph = self.graph
        t = graph.add(self.t, graph.multiply(graph.constant(theta), self.h))
        there = {self.t: t, **dict(zip(self.y, y, strict=True)), **dict(zip(self.yp, yp, strict=True))}
        arguments = {datum: there.get(i, i) for datum, i in self.arguments.items()}
        *values, raises = inlined(graph, [*self.residual.nodes, self.residual.raises], graph, arguments)
        self.raises = graph.either(self.raises, raises)
        return values

    def _look_back(self, u: list[list[int]], rights: list[list[int]]):
        """Extend `bad_pivot` by a check of the residual of sum_i m_i (G u_i - r_i), in units of its terms."""
        graph, m = self.graph, self.tableau.m
        change, right = self._sum(m, u), self._sum(m, rights)
        for row, b in zip(self.matrix, right, strict=True):
            rest, size = graph.negative(b), graph.apply("absolute", b)
            for j, x in row.items():
                term = graph.multiply(x, change[j])
                rest, size = graph.add(rest, term), graph.add(size, graph.apply("absolute", term))
            allowed = graph.multiply(graph.constant(self.worst_rest), size)
            good = graph.apply("less_equal", graph.apply("absolute", rest), allowed)
            self.bad_pivot = graph.either(self.bad_pivot, graph.opposite(good))
