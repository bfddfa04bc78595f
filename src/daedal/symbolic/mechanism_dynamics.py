r"""Equations of motion of a mechanism on the graph: exact derivatives and solution of their linear systems.

.. math::

    M(t, q)\, a = f(t, q, v) - G^T \lambda - \hat G^T \hat\lambda, \qquad 0 = g(t, q), \qquad 0 = h(t, q, v)

with :math:`G = g_q`, :math:`\hat G = h_v`. All nodes are functions of the arguments ``t``, ``q``, ``v`` of one graph,
so that results compiled together share common subexpressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from daedal.symbolic.derivative import Row, acceleration_bias, directional, jacobian
from daedal.symbolic.elimination import Solved, augmented, constant_rows, rows_of, solve
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.machine import BAD_PIVOT, RAISES, MachineFunction, compile_function, may_raise
from daedal.symbolic.trace import Traced, parameter_argument, scalar_argument, trace, vector_argument

WORST_PIVOT = 1e-10
"""Pivot quality (:class:`Solved`) below which a pivoted solver is used."""


class Dynamics:
    """Equations of motion, given by nodes.

    Parameters
    ----------
    graph : Graph
        Graph of the nodes.
    t, q, v : int, sequence of int
        The arguments.
    mass : sequence of dict
        The rows of M as {column: node}.
    force, constraint, velocity_constraint : sequence of int
        f, g and h.
    given : mapping, optional
        Given derivatives, by the names of :class:`daedal.MechanicalSystem`: ``constraint_jacobian`` and
        ``velocity_jacobian`` (rows), ``constraint_t``, ``acceleration_bias`` and ``velocity_bias``.
    """

    def __init__(
        self,
        graph: Graph,
        t: int,
        q: Sequence[int],
        v: Sequence[int],
        mass: Sequence[Row],
        force: Sequence[int],
        constraint: Sequence[int] = (),
        velocity_constraint: Sequence[int] = (),
        given: Mapping[str, Any] | None = None,
    ):
        self.given = given or {}
        self.graph, self.t, self.q, self.v = graph, t, list(q), list(v)
        self.mass, self.force = list(mass), tuple(force)
        self.constraint, self.velocity_constraint = tuple(constraint), tuple(velocity_constraint)
        self.n_q, self.n_constraints, self.n_velocity_constraints = len(q), len(constraint), len(velocity_constraint)

    @property
    def n_lambda(self) -> int:
        return self.n_constraints + self.n_velocity_constraints

    # --- constraints --------------------------------------------------------------------------------------------------

    @cached_property
    def jacobian(self) -> list[Row]:
        """The rows of G = g_q, followed by those of h_v."""
        pairs = (
            ("constraint_jacobian", self.constraint, self.q),
            ("velocity_jacobian", self.velocity_constraint, self.v),
        )
        return [row for name, nodes, by in pairs for row in self.given.get(name) or jacobian(self.graph, nodes, by)]

    @cached_property
    def constraint_t(self) -> Sequence[int]:
        """The nodes of g_t."""
        known = self.given.get("constraint_t")
        return known or directional(self.graph, self.constraint, {self.t: self.graph.one})

    @cached_property
    def _motion(self) -> dict[int, int]:
        return {self.t: self.graph.one, **dict(zip(self.q, self.v))}

    @cached_property
    def rate(self) -> list[int]:
        """The nodes of G v + g_t, followed by those of h."""
        graph = self.graph
        if "constraint_jacobian" not in self.given and "constraint_t" not in self.given:
            return [*directional(graph, self.constraint, self._motion), *self.velocity_constraint]
        rates = list(self.constraint_t)
        for i, row in enumerate(self.jacobian[: self.n_constraints]):
            for j, x in row.items():
                rates[i] = graph.add(rates[i], graph.multiply(x, self.v[j]))
        return [*rates, *self.velocity_constraint]

    @cached_property
    def bias(self) -> list[int]:
        """The right-hand side gamma of K a = gamma: -(G v)_q v - 2 G_t v - g_tt, followed by -h_q v - h_t."""
        graph = self.graph
        gamma = self.given.get("acceleration_bias")
        gamma = gamma or acceleration_bias(graph, self.constraint, self.t, self.q, self.v)
        own = self.given.get("velocity_bias")
        own = own or [graph.negative(x) for x in directional(graph, self.velocity_constraint, self._motion)]
        return [*gamma, *own]

    # --- derivatives of the equations of motion -----------------------------------------------------------------------

    def balance(self, a: Sequence[int], multipliers: Sequence[int]) -> list[int]:
        """M a + K^T lam - f, for given nodes of a and lam."""
        graph = self.graph
        result = [graph.negative(x) for x in self.force]
        for i, row in enumerate(self.mass):
            for j, x in row.items():
                result[i] = graph.add(result[i], graph.multiply(x, a[j]))
        for x, row in zip(multipliers, self.jacobian):
            for j, entry in row.items():
                result[j] = graph.add(result[j], graph.multiply(entry, x))
        return result

    # --- linear systems -----------------------------------------------------------------------------------------------

    def solve(self, right: Sequence[int], constraints: Sequence[Row] | None = None) -> Solved:
        """Solve [[M, K^T], [K', 0]] (x, nu) = right, with K' = K or given rows, for example K at another point."""
        rows = self.jacobian[: len(right) - self.n_q]
        matrix = augmented(self.n_q, self.mass, rows, rows if constraints is None else constraints)
        return solve(self.graph, matrix, [right], self.n_q)

    @cached_property
    def accelerations(self) -> Solved:
        """The solution (a, lam, lam^) of the equations of motion at (t, q, v)."""
        return self.solve([*self.force, *self.bias])

    @cached_property
    def position_correction(self) -> Solved:
        """Newton correction to g = 0, smallest in the norm of M."""
        return self.solve(self._correcting(self.constraint))

    @cached_property
    def velocity_correction(self) -> Solved:
        """Smallest change of v in the norm of M such that G v + g_t = 0 and h = 0."""
        return self.solve(self._correcting(self.rate))

    def _correcting(self, residual: Sequence[int]) -> list[int]:
        return [self.graph.zero] * self.n_q + [self.graph.negative(x) for x in residual]

    def stage(self, bar_t: int, bar_q: Sequence[int], bar_v: Sequence[int], factor: int) -> Solved:
        r"""V' and Lambda of a half-explicit stage, with the constraints at another point (Brasey and Hairer (2.1)).

        K(\bar t, \bar q) V' = -factor (K v + k_t)(\bar t, \bar q, \bar v), with factor = 1 / (h \bar a_{ii}).
        """
        graph = self.graph
        there = {self.t: bar_t, **dict(zip(self.q, bar_q)), **dict(zip(self.v, bar_v))}
        rows = self.rows_at(self.jacobian, there)
        right = [graph.negative(graph.multiply(factor, x)) for x in self.at(self.rate, there)]
        return self.solve([*self.force, *right], rows)

    def at(self, nodes: Sequence[int], there: Mapping[int, int]) -> list[int]:
        """Nodes with arguments replaced."""
        graph = self.graph
        arguments = {
            datum: there.get(i, i)
            for i, (operation, datum) in enumerate(zip(graph.operations, graph.data))
            if operation == "argument"
        }
        return inlined(graph, nodes, graph, arguments)

    def rows_at(self, rows: Sequence[Row], there: Mapping[int, int]) -> list[Row]:
        """Rows of a matrix with arguments replaced."""
        places = [(i, j) for i, row in enumerate(rows) for j in row]
        result: list[Row] = [{} for _ in rows]
        for (i, j), node in zip(places, self.at([rows[i][j] for i, j in places], there)):
            result[i][j] = node
        return result

    def bad_pivot(self, solved: Solved) -> int:
        """The condition that an elimination is unreliable, NaN included."""
        return self.graph.opposite(self.graph.apply("less", self.graph.constant(WORST_PIVOT), solved.quality))


def momentum_force(dynamics: Dynamics) -> list[int]:
    """F = f + (dM/dt along v) v."""
    graph, mass = dynamics.graph, dynamics.mass
    along = {dynamics.t: graph.one, **dict(zip(dynamics.q, dynamics.v))}
    places = [(i, j) for i, row in enumerate(mass) for j in row]
    result = list(dynamics.force)
    for (i, j), rate in zip(places, directional(graph, [mass[i][j] for i, j in places], along)):
        result[i] = graph.add(result[i], graph.multiply(rate, dynamics.v[j]))
    return result


def first_half(
    dynamics: Dynamics, t_1: int, x: Sequence[int], u: Sequence[int], h: int, push: int
) -> tuple[Solved, list[int]]:
    r"""One iteration of the first half: w and d with the new :math:`u = v + w`, :math:`x = q + h u + h d / 2`.

    .. math::

        M(q)\, w + G(q)^T \nu = \tfrac h2 F(t, q, u), \qquad d = M(x)^{-1} M(q)\, u - u, \qquad
        g(t_1, x) + G(x)\, (q + h (v + w) + \tfrac h2 d - x) = 0

    `push` is h/2, or h if the impulse of the preceding second half step is included (SHAKE).
    """
    graph, n = dynamics.graph, dynamics.n_q
    there = {dynamics.t: t_1, **dict(zip(dynamics.q, x))}
    force = dynamics.at(momentum_force(dynamics), dict(zip(dynamics.v, u)))
    mass = dynamics.rows_at(dynamics.mass, there)
    change, worst = [graph.zero] * n, None
    if mass != dynamics.mass:
        momentum = [graph.zero] * n
        for i, row in enumerate(dynamics.mass):
            for j, entry in row.items():
                momentum[i] = graph.add(momentum[i], graph.multiply(entry, u[j]))
        after = solve(graph, mass, [momentum], n)
        change, worst = [graph.subtract(a, b) for a, b in zip(after.solutions[0], u)], after.quality
    half = graph.multiply(graph.constant(0.5), h)
    way = [
        graph.subtract(graph.add(a, graph.add(graph.multiply(h, b), graph.multiply(half, c))), d)
        for a, b, c, d in zip(dynamics.q, dynamics.v, change, x)
    ]
    gradients = dynamics.rows_at(dynamics.jacobian, there)
    right = [graph.multiply(push, entry) for entry in force]
    for value, row in zip(dynamics.at(dynamics.constraint, there), gradients):
        for j, entry in row.items():
            value = graph.add(value, graph.multiply(entry, way[j]))
        right.append(graph.negative(graph.divide(value, h)))
    solved = dynamics.solve(right, gradients)
    if worst is not None:
        solved = Solved(solved.solutions, graph.apply("minimum", solved.quality, worst), solved.order)
    return solved, [*solved.solutions[0][:n], *change]


def second_half(dynamics: Dynamics, push: int) -> Solved:
    r"""Velocity increments of the second half, :math:`M w + G^T \nu = \frac h2 F`, :math:`G (v + w) + g_t = 0`."""
    graph = dynamics.graph
    force = [graph.multiply(push, entry) for entry in momentum_force(dynamics)]
    return dynamics.solve([*force, *map(graph.negative, dynamics.rate)])


_CONSTRAINTS = ("constraint", "velocity_constraint")


class Mechanism(Dynamics):
    """The functions of a mechanical system, traced.

    Parameters
    ----------
    mass : callable or array
        ``mass(t, q[, p])``, or a constant matrix.
    force : callable
        ``force(t, q, v[, p])``.
    constraint, velocity_constraint : callable, optional
        ``constraint(t, q[, p])`` and ``velocity_constraint(t, q, v[, p])``.
    n_q, n_constraints, n_velocity_constraints : int
        Sizes.
    params : object, optional
        The last argument of all functions; a vector of floats becomes symbols, anything else is a constant.

    Raises
    ------
    Untraceable
        If a function cannot be traced.

    Examples
    --------
    >>> from daedal.symbolic.mechanism_dynamics import Mechanism
    >>> pendulum = Mechanism(
    ...     [[1.0, 0.0], [0.0, 1.0]], lambda t, q, v: [0.0, -9.81], lambda t, q: [q @ q - 1.0], n_q=2, n_constraints=1
    ... )
    >>> pendulum.graph.count(pendulum.accelerations.solutions[0])
    20
    """

    def __init__(
        self,
        mass: Callable[..., Any] | Any,
        force: Callable[..., Any],
        constraint: Callable[..., Any] | None = None,
        *,
        n_q: int,
        n_constraints: int = 0,
        velocity_constraint: Callable[..., Any] | None = None,
        n_velocity_constraints: int = 0,
        params: Any = None,
    ):
        graph = Graph()
        t, q, v = scalar_argument(graph, "t"), vector_argument(graph, "q", n_q), vector_argument(graph, "v", n_q)
        last: tuple[Any, ...] = () if params is None else (parameter_argument(graph, "p", params),)
        self.parameters = {"p": len(last[0])} if graph.known else {}
        self.traced: dict[str, Traced] = {}
        if callable(mass):
            self.traced["mass"] = trace(mass, (t, q, *last), (n_q, n_q))
            rows = rows_of(graph, self.traced["mass"].array)
        else:
            rows = constant_rows(graph, mass)
        self.traced["force"] = trace(force, (t, q, v, *last), (n_q,))
        if constraint is not None:
            self.traced["constraint"] = trace(constraint, (t, q, *last), (n_constraints,))
        if velocity_constraint is not None:
            self.traced["velocity_constraint"] = trace(velocity_constraint, (t, q, v, *last), (n_velocity_constraints,))
        g, h = (self.traced[name].nodes if name in self.traced else () for name in _CONSTRAINTS)
        super().__init__(graph, t.node, _nodes(q), _nodes(v), rows, self.traced["force"].nodes, g, h)

    @cached_property
    def raises(self) -> int:
        """The condition under which a function raises."""
        found = self.graph.false
        for traced in self.traced.values():
            found = self.graph.either(found, traced.raises)
        return found

    # --- callbacks ----------------------------------------------------------------------------------------------------

    def callback(self, name: str) -> MachineFunction:
        """A function of the system in callback form, ``status = f(t, [arguments | result | parameters])``.

        Names are those of :class:`daedal.MechanicalSystem`: ``mass``, ``force``, ``constraint``,
        ``constraint_jacobian``, ``constraint_t``, ``acceleration_bias``, ``velocity_constraint``,
        ``velocity_jacobian``, ``velocity_bias``; and ``accelerations``, which computes (a, lam) from (q, v), with
        status `BAD_PIVOT` if a pivoted solver is needed.
        """
        n_g = self.n_constraints
        makers: dict[str, Callable[[], Any]] = {
            "mass": lambda: self._full(self.mass),
            "force": lambda: self.force,
            "constraint": lambda: self.constraint,
            "constraint_jacobian": lambda: self._full(self.jacobian[:n_g]),
            "constraint_t": lambda: self.constraint_t,
            "acceleration_bias": lambda: self.bias[:n_g],
            "velocity_constraint": lambda: self.velocity_constraint,
            "velocity_jacobian": lambda: self._full(self.jacobian[n_g:]),
            "velocity_bias": lambda: self.bias[n_g:],
            "accelerations": lambda: self.accelerations.solutions[0],
        }
        nodes = np.array(makers[name](), dtype=np.int64)
        graph, of_position = (
            self.graph,
            ("mass", "constraint", "constraint_jacobian", "constraint_t", "velocity_jacobian"),
        )
        arguments = {"q": self.n_q} if name in of_position else {"q": self.n_q, "v": self.n_q}
        statuses = [(may_raise(graph, nodes.ravel().tolist(), self._raises(name)), RAISES)]
        if name == "accelerations":
            statuses = [(self.raises, RAISES), (self.bad_pivot(self.accelerations), BAD_PIVOT), *statuses]
        return compile_function(graph, arguments, {name: nodes}, self.parameters, statuses)

    def _raises(self, name: str) -> int:
        """The condition under which the function that computes a result raises."""
        source = {"constraint_jacobian": "constraint", "constraint_t": "constraint", "acceleration_bias": "constraint"}
        source |= {"velocity_jacobian": "velocity_constraint", "velocity_bias": "velocity_constraint"}
        traced = self.traced.get(source.get(name, name))
        return self.graph.false if traced is None else traced.raises

    def _full(self, rows: Sequence[Row]) -> list[list[int]]:
        return [[row.get(k, self.graph.zero) for k in range(self.n_q)] for row in rows]


def _nodes(array: np.ndarray) -> list[int]:
    return [x.node for x in array.tolist()]
