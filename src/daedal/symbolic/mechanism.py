r"""A mechanical system on the graph: what it is made of, its exact derivatives, and its linear systems solved.

.. math::

    M(t, q)\, a = f(t, q, v) - G^T \lambda - \hat G^T \hat\lambda, \qquad 0 = g(t, q), \qquad 0 = h(t, q, v)

with :math:`G = g_q`, :math:`\hat G = h_v`. All nodes are functions of the arguments ``t``, ``q``, ``v``, ``p`` of one
graph, so that whatever is compiled together shares what it has in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from daedal.symbolic.derivative import Row, acceleration_bias, directional, jacobian
from daedal.symbolic.elimination import Solved, augmented, rows_of, solve
from daedal.symbolic.graph import Graph
from daedal.symbolic.machine import BAD_PIVOT, RAISES, MachineFunction, compile_function, may_raise
from daedal.symbolic.trace import Traced, parameter_argument, scalar_argument, trace, vector_argument

WORST_PIVOT = 1e-10
"""Quality of pivots (:class:`Solved`) below which a pivoted solver is asked."""


class Mechanism:
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
        The last argument of all functions; a vector of floats becomes symbols, anything else is known.

    Raises
    ------
    Untraceable
        If a function cannot be traced.

    Examples
    --------
    >>> from daedal.symbolic.mechanism import Mechanism
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
        self.graph = graph = Graph()
        self.n_q, self.n_constraints = n_q, n_constraints
        self.n_velocity_constraints = n_velocity_constraints
        t, q, v = scalar_argument(graph, "t"), vector_argument(graph, "q", n_q), vector_argument(graph, "v", n_q)
        last: tuple[Any, ...] = () if params is None else (parameter_argument(graph, "p", params),)
        self.parameters = {"p": len(last[0])} if graph.known else {}
        self.t, self.q, self.v = t.node, _nodes(q), _nodes(v)
        self.traced: dict[str, Traced] = {}
        if callable(mass):
            self.traced["mass"] = trace(mass, (t, q, *last), (n_q, n_q))
            self.mass = rows_of(graph, self.traced["mass"].array)
        else:
            values = np.asarray(mass, dtype=float)
            self.mass = [{j: graph.constant(row[j]) for j in np.flatnonzero(row).tolist()} for row in values]
        self.traced["force"] = trace(force, (t, q, v, *last), (n_q,))
        if constraint is not None:
            self.traced["constraint"] = trace(constraint, (t, q, *last), (n_constraints,))
        if velocity_constraint is not None:
            self.traced["velocity_constraint"] = trace(velocity_constraint, (t, q, v, *last), (n_velocity_constraints,))

    @property
    def n_lambda(self) -> int:
        return self.n_constraints + self.n_velocity_constraints

    @property
    def force(self) -> tuple[int, ...]:
        return self.traced["force"].nodes

    @property
    def constraint(self) -> tuple[int, ...]:
        return self.traced["constraint"].nodes if "constraint" in self.traced else ()

    @property
    def velocity_constraint(self) -> tuple[int, ...]:
        return self.traced["velocity_constraint"].nodes if "velocity_constraint" in self.traced else ()

    @cached_property
    def raises(self) -> int:
        """The condition under which a function raises."""
        found = self.graph.false
        for traced in self.traced.values():
            found = self.graph.either(found, traced.raises)
        return found

    # --- constraints --------------------------------------------------------------------------------------------------

    @cached_property
    def jacobian(self) -> list[Row]:
        """The rows of G and of G^."""
        return jacobian(self.graph, self.constraint, self.q) + jacobian(self.graph, self.velocity_constraint, self.v)

    @cached_property
    def constraint_t(self) -> list[int]:
        """g_t."""
        return directional(self.graph, self.constraint, {self.t: self.graph.one})

    @cached_property
    def _motion(self) -> dict[int, int]:
        return {self.t: self.graph.one, **dict(zip(self.q, self.v))}

    @cached_property
    def rate(self) -> list[int]:
        """G v + g_t, and h."""
        return [*directional(self.graph, self.constraint, self._motion), *self.velocity_constraint]

    @cached_property
    def bias(self) -> list[int]:
        """gamma with K a = gamma: -(G v)_q v - 2 G_t v - g_tt, and -h_q v - h_t."""
        gamma = acceleration_bias(self.graph, self.constraint, self.t, self.q, self.v)
        along = directional(self.graph, self.velocity_constraint, self._motion)
        return gamma + [self.graph.negative(x) for x in along]

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

    def balance_by_state(self, a: Sequence[int], multipliers: Sequence[int]) -> tuple[list[Row], list[Row]]:
        """The derivatives of M a + K^T lam - f with respect to q and v; those by a and lam are M and K^T."""
        nodes = self.balance(a, multipliers)
        return jacobian(self.graph, nodes, self.q), jacobian(self.graph, nodes, self.v)

    # --- callbacks ----------------------------------------------------------------------------------------------------

    def callback(self, name: str) -> MachineFunction:
        """A function of the system as kernels call it, ``status = f(t, [arguments | result | parameters])``.

        By the names of :class:`daedal.MechanicalSystem`: ``mass``, ``force``, ``constraint``, ``constraint_jacobian``,
        ``constraint_t``, ``acceleration_bias``, ``velocity_constraint``, ``velocity_jacobian``, ``velocity_bias``; and
        ``accelerations``, which gives (a, lam) of (q, v) and the status `BAD_PIVOT` where a pivoted solver is needed.
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
        """When the function raises that a result is made of."""
        source = {"constraint_jacobian": "constraint", "constraint_t": "constraint", "acceleration_bias": "constraint"}
        source |= {"velocity_jacobian": "velocity_constraint", "velocity_bias": "velocity_constraint"}
        traced = self.traced.get(source.get(name, name))
        return self.graph.false if traced is None else traced.raises

    def _full(self, rows: Sequence[Row]) -> list[list[int]]:
        return [[row.get(k, self.graph.zero) for k in range(self.n_q)] for row in rows]

    # --- linear systems -----------------------------------------------------------------------------------------------

    def solve(self, right: Sequence[int], constraints: Sequence[Row] | None = None) -> Solved:
        """[[M, K^T], [K', 0]] (x, nu) = right, with K' = K or given rows, such as those at another point."""
        rows = self.jacobian[: len(right) - self.n_q]
        matrix = augmented(self.n_q, self.mass, rows, rows if constraints is None else constraints)
        return solve(self.graph, matrix, [right], self.n_q)

    @cached_property
    def accelerations(self) -> Solved:
        """(a, lam, lam^) from (t, q, v)."""
        return self.solve([*self.force, *self.bias])

    @cached_property
    def position_correction(self) -> Solved:
        """Newton's step to g = 0, smallest in the norm of M."""
        return self.solve(self._correcting(self.constraint))

    @cached_property
    def velocity_correction(self) -> Solved:
        """The smallest change of v, in the norm of M, to G v + g_t = 0 and h = 0."""
        return self.solve(self._correcting(self.rate))

    def _correcting(self, residual: Sequence[int]) -> list[int]:
        return [self.graph.zero] * self.n_q + [self.graph.negative(x) for x in residual]

    def bad_pivot(self, solved: Solved) -> int:
        """The condition under which an elimination is not to be trusted, NaN included."""
        return self.graph.opposite(self.graph.apply("less", self.graph.constant(WORST_PIVOT), solved.quality))


def _nodes(array: np.ndarray) -> list[int]:
    return [x.node for x in array.tolist()]
