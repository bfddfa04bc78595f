"""The equations of a problem and their total derivatives on one graph: the derivative array, row by row.

A problem F(t, x, x', ..., x^(m)) = 0 determines its solution together with its derivatives

    F = 0,   dF/dt = F_t + F_x x' + ... + F_{x^(m)} x^(m+1) = 0,   d^2F/dt^2 = 0, ...

in which x', x'', ... are independent unknowns (Brenan, Campbell and Petzold, section 2.4.2; S. L. Campbell, SIAM J.
Sci. Stat. Comput. 6, 1985). Each equation is differentiated separately and only as often as needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError
from daedal.index.linear.time_dependent import TimeVarying
from daedal.index.structure.statement import statement
from daedal.problems import LinearDAE
from daedal.problems.compile import differ_in_parameters_only
from daedal.symbolic import Untraceable
from daedal.symbolic.derivative import Row, directional, jacobian, sparsity
from daedal.symbolic.graph import evaluate
from daedal.symbolic.graph_functions import GraphFunction
from daedal.symbolic.machine import compile_function
from daedal.symbolic.modes import Followed, Modes
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.tracer import Tracer


def argument_name(order: int) -> str:
    """Name of the derivatives of this order in the graph: x0 for x, x1 for x', ..."""
    return f"x{order}"


class SystemEquations:
    """n equations in n unknowns on a graph, differentiated on demand.

    A mechanical system is treated as M q'' = f - G^T lam, 0 = g in (q, lam), with r and w between them. Raises
    :class:`daedal.symbolic.Untraceable` if a function cannot be traced.

    `order` is the highest derivative that the class of the problem provides for; `parts` are groups of equations,
    (number, description); `params` are the parameter values in the order of the graph's argument ``p``. `levels` holds
    the machine code of derivative arrays, shared by copies with other parameters
    (:class:`~daedal.index.structure.derivative_array.NonlinearDerivativeArray`). `lock` must be acquired while nodes or
    levels are created: a graph is not thread-safe. `is_constant` is true if all functions were machine code, which does
    not depend on external values.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] ** 2 - t], 2)
    >>> equations = SystemEquations(problem)
    >>> equations.signature()
    [{0: 1, 1: 0}, {0: 0}]
    >>> equations.values([equations.equation(1, 1)], 0.0, [[3.0, 0.0], [0.5, 0.0]])  # 2 x x' - 1
    array([2.])
    """

    def __init__(self, problem: Any):
        form = statement(problem)
        self.problem, self.names, self.order, self.parts = form.problem, form.names, form.order, form.parts
        self.n = len(self.names)
        arguments = dict.fromkeys(map(argument_name, range(self.order + 1)), self.n)
        tracer = Tracer(self.problem, arguments, always=True)
        self.graph = tracer.graph
        self.traces, nodes = form.write(tracer, [tracer.symbols(x) for x in arguments])
        self.t = self.graph.argument("t", 0)
        self.layout, self.is_constant = tracer.layout, not tracer.asks_user
        self.params = None if tracer.layout is None else tracer.layout.numbers(self.problem.params)
        self._parameter_names = [] if tracer.layout is None else tracer.layout.labels(self.problem.params)
        self._derivatives: list[list[int]] = [[node] for node in nodes]
        self._rates: dict[int, int] = {}
        self.levels: dict[Any, Any] = {}
        self.lock = RLock()

    def with_problem(self, problem: Any) -> SystemEquations | None:
        """A copy with the parameters of another problem; None if the trace is invalid for these parameters."""
        if self.layout is None:
            return self
        if any(self.graph.data[i][0] == NAME for i in self.graph.fixed) or not self.layout.fits(problem.params):
            return None
        assert len(self.partials) == len(self.orders)  # computed once for all copies
        other = copy(self)
        other.problem, other.params = problem, self.layout.numbers(problem.params)
        return other

    @property
    def nodes(self) -> list[int]:
        """The nodes of the given equations."""
        return [levels[0] for levels in self._derivatives]

    def unknown(self, j: int, order: int = 0) -> int:
        """The node of the derivative of this order of unknown j."""
        with self.lock:
            return self.graph.argument(argument_name(order), j)

    def parameter_name(self, k: int) -> str:
        """Name of the k-th parameter value: ``mass``, ``p[2]``."""
        return self._parameter_names[k]

    def unknowns(self, orders: Iterable[int]) -> list[int]:
        """The nodes of all unknowns, for derivatives of these orders in turn."""
        return [self.unknown(j, k) for k in orders for j in range(self.n)]

    def equation(self, i: int, times: int = 0) -> int:
        """The node of equation i, differentiated `times` times with respect to time."""
        levels = self._derivatives[i]
        with self.lock:
            while len(levels) <= times:
                levels += self.rates([levels[-1]])
        return levels[times]

    def replaced(self, changes: Mapping[int, int]) -> SystemEquations:
        """A copy on the same graph with some equations replaced: {i: node} replaces equation i by node = 0."""
        other = copy(self)
        for name in ("partials", "orders"):
            other.__dict__.pop(name, None)
        other._derivatives = [[changes[i]] if i in changes else levels for i, levels in enumerate(self._derivatives)]
        other.order, other.levels = other.highest(other.nodes), {}
        return other

    def rates(self, nodes: Sequence[int]) -> list[int]:
        """The total time derivatives of nodes; the rate of each derivative is the next derivative."""
        with self.lock:
            missing = [node for node in dict.fromkeys(nodes) if node not in self._rates]
            direction = {self.t: self.graph.one}
            for i in self.graph.needed(missing):
                name, j = self.graph.data[i] if self.graph.operations[i] == "argument" else ("", 0)
                if name.startswith("x"):
                    direction[i] = self.unknown(j, int(name[1:]) + 1)
            self._rates.update(zip(missing, directional(self.graph, missing, direction), strict=True))
            return [self._rates[node] for node in nodes]

    def signature(self) -> list[dict[int, int]]:
        """For each equation the unknowns in it, each with its highest derivative: {j: order}, Pryce's sigma."""
        orders = range(self.order + 1)
        found: list[dict[int, int]] = []
        with self.lock:
            rows = sparsity(self.graph, self.nodes, self.unknowns(orders))
        for places in rows:
            row: dict[int, int] = {}
            for place in places:  # places ordered like the derivatives
                row[place % self.n] = place // self.n
            found.append(dict(sorted(row.items())))
        return found

    @cached_property
    def orders(self) -> np.ndarray:
        """The highest derivative of each unknown that occurs in the given equations."""
        found = np.zeros(self.n, dtype=np.int64)
        for row in self.signature():
            for j, order in row.items():
                found[j] = max(found[j], order)
        return found

    @cached_property
    def partials(self) -> list[dict[tuple[int, int], int]]:
        """For each equation the nodes of its nonzero partial derivatives with respect to x_j^(k): {(j, k): node}."""
        rows = self.jacobian(self.nodes, self.unknowns(range(self.order + 1)))
        return [{(place % self.n, place // self.n): node for place, node in row.items()} for row in rows]

    def jacobian(self, nodes: Sequence[int], variables: Sequence[int]) -> list[Row]:
        """The derivatives of nodes with respect to unknowns: rows {position of the variable: node}."""
        with self.lock:
            return jacobian(self.graph, nodes, variables)

    def arguments(self, nodes: Iterable[int]) -> dict[str, int]:
        """Names and lengths of the vectors on which nodes depend, up to the highest derivative in them."""
        return {argument_name(k): self.n for k in range(self.highest(nodes) + 1)}

    def highest(self, nodes: Iterable[int]) -> int:
        """The highest derivative that occurs in nodes; 0 if there is none."""
        found = (self.graph.data[i] for i in self.graph.needed(list(nodes)) if self.graph.operations[i] == "argument")
        return max((int(name[1:]) for name, _ in found if name.startswith("x")), default=0)

    def function(self, name: str, nodes: Any) -> GraphFunction:
        """Nodes as a function of (t, x, x', ..., p), up to the highest derivative in them."""
        array = np.asarray(nodes, dtype=np.int64)
        params = None if self.params is None else (NAME, self.params.size)
        return GraphFunction(name, self.graph, array, self.arguments(array.ravel().tolist()), params)

    def evaluator(self, nodes: Any) -> Callable[..., np.ndarray]:
        """Machine code for nodes: a function of t and the array of x, x', ... (one row for each derivative).

        An optional third argument replaces the parameter values of these equations.
        """
        array = np.asarray(nodes, dtype=np.int64)
        sizes = self.arguments(array.ravel().tolist())
        own = {} if self.params is None else {NAME: self.params.size}
        with self.lock:
            code = compile_function(self.graph, sizes, {"result": array}, own)
        params = self.params

        def value(t: float, derivatives: Any, others: np.ndarray | None = None) -> np.ndarray:
            rows = np.asarray(derivatives, dtype=float)
            vectors = {name: np.ascontiguousarray(row) for name, row in zip(sizes, rows, strict=False)}
            given = {} if params is None else {NAME: params if others is None else others}
            return code(float(t), **vectors, **given)[1]["result"]

        return value

    def values(self, nodes: Any, t: float, derivatives: Any) -> np.ndarray:
        """The values of nodes at one point, without machine code; see :meth:`evaluator` for many points."""
        array = np.asarray(nodes, dtype=np.int64)
        rows = np.asarray(derivatives, dtype=float)
        given = {argument_name(k): row for k, row in enumerate(rows)} | {"t": float(t), NAME: self.params}
        return np.array(evaluate(self.graph, array.ravel().tolist(), given), dtype=float).reshape(array.shape)


_KEPT = "equations"


def kept_equations(problem: Any) -> SystemEquations:
    """The equations of a problem. If compiled, they are traced once and cached for other parameters.

    Raises Untraceable if a function cannot be traced.
    """
    carrier = next((f for f in vars(problem).values() if isinstance(f, TracedFunction) and not f.is_derivative), None)
    known = None if carrier is None else carrier.kept.get(_KEPT)
    if known is not None and differ_in_parameters_only(known[0], problem):
        found = known[1].with_problem(problem)
        if found is not None:
            return found
    made = SystemEquations(problem)
    if carrier is not None and made.is_constant:
        carrier.kept[_KEPT] = problem, made
    return made


def equations_of(problem: Any) -> SystemEquations | None:
    """The equations of a problem, or None if its functions cannot be traced."""
    try:
        return kept_equations(problem)
    except Untraceable:
        return None


def required_equations(problem: Any, refusal: str) -> SystemEquations:
    """The equations of a problem; raises an error that begins with `refusal` if a function cannot be traced."""
    try:
        return kept_equations(problem)
    except Untraceable as reason:
        raise InvalidProblemError(f"{refusal} {reason}") from reason


def orders_of(problem: Any) -> list[dict[int, int]] | None:
    """For each equation the unknowns in it with their highest derivative; None if functions cannot be traced."""
    equations = equations_of(problem)
    return None if equations is None else equations.signature()


# --- switches in reduced problems: they are not followed; the user is warned of those that may occur ------------------

_MOST_NAMED = 3
_ROUND_OFF = 1e-12  # round-off of a switching function, relative to its largest value at the ends of the interval


class UnfollowedSwitches:
    """The switches in the equations of a reduced problem."""

    def __init__(self, equations: SystemEquations):
        graph = equations.graph
        with equations.lock:
            modes = Modes(graph, ("t", *map(argument_name, range(equations.order + 1))), (NAME,))
            modes.nodes(equations.nodes)
            self._switches = modes.switches
            self._in_time = []
            for switch in self._switches:
                [rate] = directional(graph, [switch.function], {equations.t: graph.one})
                linear = modes.depends_on(rate) <= {NAME}
                self._in_time.append(linear and modes.depends_on(switch.function) <= {"t", NAME})

    def warning(self, equations: SystemEquations, span: tuple[float, float]) -> str | None:
        """The warning about switches that a run may encounter, with the given parameters; None if there are none.

        Conditions linear in time alone are ignored if their times lie outside the interval or at its ends, as happens
        between break points.
        """
        met = [
            switch.name
            for switch, in_time in zip(self._switches, self._in_time)
            if not in_time or _switches_within(switch, equations, span)
        ]
        if not met:
            return None
        named = listing(met[:_MOST_NAMED], len(met))
        return (
            f"switches are not tracked, since the index of the problem is reduced: {named}. A run may step over "
            f"them, and kinks or jumps in differentiated terms are missed. Remedy: give their times as breakpoints, "
            "or use formulation='none'; switches='never' leaves them to the step size control"
        )


def _switches_within(switch: Followed, equations: SystemEquations, span: tuple[float, float]) -> bool:
    """Whether a function linear in time leaves the bounds of its mode within the interval."""
    begin, middle, end = (
        float(equations.values([switch.function], t, np.zeros((0, equations.n)))[0])
        for t in (span[0], 0.5 * (span[0] + span[1]), span[1])
    )
    lower, upper = switch.bounds(switch.mode_at(middle))
    slack = _ROUND_OFF * max(abs(begin), abs(end))
    return not lower - slack <= min(begin, end) <= max(begin, end) <= upper + slack


# --- linear problems of any class as A(t) x' + B(t) x = f(t) with exact derivatives -----------------------------------


def linear_system(problem: Any) -> TimeVarying:
    """The system A(t) x' + B(t) x = f(t) of a problem whose equations are linear.

    Coefficients and right-hand side are taken from the traced equations, with exact derivatives with respect to time.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE or LinearDAE

    Returns
    -------
    daedal.linear.TimeVarying

    Raises
    ------
    InvalidProblemError
        If an equation is not linear in the unknowns and their derivatives; the message names it.

    Examples
    --------
    >>> import daedal, numpy as np
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - np.sin(t)], 2, names=["x", "v"])
    >>> system = daedal.linear.linear_system(problem)
    >>> system.index(0.0), system.consistent([1.0, 0.0], 0.0).x
    (2, array([0., 1.]))
    """
    equations = SystemEquations(problem.semi_explicit() if isinstance(problem, LinearDAE) else problem)
    if equations.order != 1:
        raise InvalidProblemError("a SecondOrderDAE has no first-order system; use an ImplicitDAE")
    n = equations.n
    rows = equations.jacobian(equations.nodes, equations.unknowns([0, 1]))
    graph = equations.graph
    for i, row in enumerate(rows):
        if any(
            graph.operations[k] == "argument" and graph.data[k][0].startswith("x") for k in graph.needed(row.values())
        ):
            raise InvalidProblemError(f"equation {i} is not linear in the unknowns and their derivatives")
    zero = graph.constant(0.0)
    table = [[row.get(j, zero) for j in range(2 * n)] for row in rows]
    B = _levels(equations, [node for row in table for node in row[:n]])
    A = _levels(equations, [node for row in table for node in row[n:]])

    def matrix(level: Callable[[float, int], np.ndarray]) -> Callable[[float, int], np.ndarray]:
        return lambda t, order: level(t, order).reshape(n, n)

    f = _levels(equations, equations.nodes)
    at_A, at_B = matrix(A), matrix(B)
    return TimeVarying(
        lambda t: at_A(t, 0),
        lambda t: at_B(t, 0),
        lambda t: -f(t, 0),
        n=n,
        names=equations.names,
        A_derivatives=at_A,
        B_derivatives=at_B,
        f_derivatives=lambda t, order: -f(t, order),
    )


def _levels(equations: SystemEquations, nodes: list[int]) -> Callable[[float, int], np.ndarray]:
    """Nodes and their total derivatives, with all unknowns and their derivatives set to zero."""
    derivatives, codes = [nodes], [equations.evaluator(nodes)]

    def value(t: float, order: int) -> np.ndarray:
        while len(codes) <= order:
            derivatives.append(equations.rates(derivatives[-1]))
            codes.append(equations.evaluator(derivatives[-1]))
        return codes[order](t, np.zeros((order + 2, equations.n)))

    return value
