"""A mechanical system given by plain functions, traced on the graph and converted to functions that kernels call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from daedal.symbolic.derivative import Row
from daedal.symbolic.elimination import constant_rows, rows_of
from daedal.symbolic.graph import Graph
from daedal.symbolic.machine import BAD_PIVOT, RAISES, MachineFunction, compile_function, may_raise
from daedal.symbolic.mechanism_dynamics import Dynamics
from daedal.symbolic.trace import Traced, parameter_argument, scalar_argument, trace, vector_argument

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
    >>> from daedal.symbolic.mechanism_graph import Mechanism
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
