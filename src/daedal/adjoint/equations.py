r"""A problem, linearised along a solution, and its costs, on one graph.

For :math:`F(t, y, y', p) = 0` with the sensitivities :math:`E s' + A s + B = 0`, where :math:`E = F_{y'}`,
:math:`A = F_y`, :math:`B = F_p`, the adjoint variables :math:`\mu` need E and A with the gradient of the cost, and
:math:`\mu^T B` for all parameters at once, which reverse differentiation of :math:`\mu^T F` gives. A mechanism is
:math:`q' = v,\ v' = a,\ 0 = M a + K^T \lambda - f,\ 0 = K a - \gamma`, of index 1 in (q, v, r, a, lambda).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

import daedal
from daedal.errors import InvalidProblemError
from daedal.sensitivity.motion import VariationalMotion
from daedal.sensitivity.variational import equations_of
from daedal.symbolic import Untraceable
from daedal.symbolic.derivative import gradient, jacobian
from daedal.symbolic.functions import GraphFunction
from daedal.tracing.parameters import NAME
from daedal.tracing.tracer import Tracer

_ADJOINT = "mu"


class Linearised:
    """E, A, the costs with their gradients, and :math:`\\mu^T B + g_p`, as machine code.

    Attributes
    ----------
    n : int
        Length of y.
    labels : list of str
        Names of the parameters.
    is_mechanical : bool
    constraints_by_parameters : tuple of int
        Parameters that occur in constraints of a mechanism, so that its initial values depend on them.
    """

    def __init__(self, problem: Any, cost: Callable | None, final_cost: Callable | None):
        self.problem = problem
        self.is_mechanical = isinstance(problem, daedal.MechanicalSystem)
        try:
            self._state()
        except Untraceable as reason:
            raise InvalidProblemError(f"gradient needs functions that can be traced: {reason}") from reason
        graph, tracer = self._graph, self._tracer
        layout = tracer.layout
        count = 0 if layout is None else layout.count
        self.labels = [] if layout is None else layout.labels(problem.params)
        self._layout = layout
        sizes = dict(self._sizes)
        params = (NAME, count) if count else None
        parameters = [graph.argument(NAME, k) for k in range(count)]
        tracer.sizes |= {_ADJOINT: self.n}
        multipliers = tracer.nodes(_ADJOINT)
        running, final = self._cost("cost", cost), self._cost("final_cost", final_cost)
        e, a = jacobian(graph, self._equations, self._rates), jacobian(graph, self._equations, self._unknowns)
        self._e, e_nodes = _pattern(e, self.n, self._rate_places)
        self._a, a_nodes = _pattern(a, self.n, range(self.n))
        slope = gradient(graph, running, self._unknowns)
        self._matrices = GraphFunction("matrices", graph, [*e_nodes, *a_nodes, *slope, running], sizes, params)
        weighted = graph.zero
        for x, equation in zip(multipliers, self._equations, strict=True):
            weighted = graph.add(weighted, graph.multiply(x, equation))
        total = gradient(graph, graph.add(weighted, running), parameters)
        self._by_parameters = GraphFunction("by_parameters", graph, total, {**sizes, _ADJOINT: self.n}, params)
        alone = gradient(graph, weighted, parameters)
        self._jump = GraphFunction("jump", graph, alone, {**sizes, _ADJOINT: self.n}, params)
        ends = [*gradient(graph, final, self._unknowns), *gradient(graph, final, parameters), final]
        self._final = GraphFunction("final", graph, ends, sizes, params)

    # --- the equations ------------------------------------------------------------------------------------------------

    def _state(self) -> None:
        problem = self.problem
        if self.is_mechanical:
            motion = VariationalMotion(problem, ())
            self._tracer, dynamics = motion.tracer, motion.equations
            tracer, n_q, n_r, n_c = self._tracer, problem.n_q, problem.n_r, dynamics.n_lambda
            tracer.sizes |= {"a": n_q, "lam": n_c}
            a, lam = tracer.nodes("a"), tracer.nodes("lam")
            self._graph = graph = tracer.graph
            self.n = 3 * n_q + n_r + n_c
            tracer.sizes |= {"yp": self.n}
            rates = tracer.nodes("yp")[: 2 * n_q + n_r]
            right = [*tracer.nodes("v"), *a, *motion.state_rate]
            self._equations = [
                *map(graph.subtract, rates, right),
                *dynamics.balance(a, lam),
                *motion.constraint_rates(a),
            ]
            state = ["q", "v", *(["r"] if n_r else [])]
            self._unknowns = [*(node for name in state for node in tracer.nodes(name)), *a, *lam]
            self._rates, self._rate_places = rates, range(len(rates))
            self._sizes = {name: tracer.sizes[name] for name in [*state, "a", *(["lam"] if n_c else []), "yp"]}
            self._vectors = [tracer.symbols(name) for name in state]
            by = {graph.argument(NAME, k): k for k in range(0 if tracer.layout is None else tracer.layout.count)}
            needed = graph.needed([*dynamics.constraint, *dynamics.velocity_constraint])
            self.constraints_by_parameters = tuple(sorted(by[i] for i in needed if i in by))
            return
        self.n = problem.n
        self._tracer = tracer = Tracer(problem, {"y": self.n, "yp": self.n}, always=True)
        self._graph = tracer.graph
        self._equations = equations_of(tracer, problem)[0]
        self._unknowns, self._rates = tracer.nodes("y"), tracer.nodes("yp")
        self._rate_places = range(self.n)
        self._sizes = {"y": self.n, "yp": self.n}
        y = tracer.symbols("y")
        split = getattr(problem, "n_y", self.n)
        self._vectors = [y[:split], y[split:]] if isinstance(problem, daedal.SemiExplicitDAE) else [y]
        self.constraints_by_parameters = ()

    def _cost(self, name: str, function: Callable | None) -> int:
        if function is None:
            return self._graph.zero
        if not callable(function):
            raise InvalidProblemError(f"{name} must be a function, got {type(function).__name__}")
        try:
            traced = self._tracer.trace(function, self._vectors, ())
        except Untraceable as reason:
            called = "t, y, z" if len(self._vectors) == 2 else "t, y"
            if self.is_mechanical:
                called = "t, q, v, r" if self.problem.n_r else "t, q, v"
            called += ", p" if self.problem.params is not None else ""
            raise InvalidProblemError(
                f"{name} cannot be differentiated: it {reason} (it is called as {name}({called}) and returns a number)"
            ) from reason
        return traced.nodes[0]

    # --- numbers ------------------------------------------------------------------------------------------------------

    def points(self, solution: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y and y' of the linearised problem at some times, one row for each."""
        if self.is_mechanical:
            state = solution(times)
            parts = [state.q, state.v, *([state.r] if self.problem.n_r else []), state.a, state.lam]
            y = np.concatenate([np.atleast_2d(part) for part in parts]).T
            return np.ascontiguousarray(y), np.zeros_like(y)
        y, yp = solution.dense.evaluate(times)
        return np.ascontiguousarray(y), np.ascontiguousarray(yp)

    def _arguments(self, y: np.ndarray, yp: np.ndarray) -> list[np.ndarray]:
        parts = []
        if self.is_mechanical:
            first = 0
            for name, size in self._sizes.items():
                if name != "yp":
                    parts.append(y[first : first + size])
                    first += size
            parts.append(yp)
        else:
            parts = [y, yp]
        return parts

    def _numbers(self, params: Any) -> list[np.ndarray]:
        return [] if self._layout is None or not self._layout.count else [self._layout.numbers(params)]

    def evaluated(self, t: float, y: np.ndarray, yp: np.ndarray, params: Any) -> np.ndarray:
        """The entries of E and of A, the gradient of the running cost, and this cost, in one vector."""
        return self._matrices(t, *self._arguments(y, yp), *self._numbers(params))

    def dense(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E^T and A^T from rows of such vectors."""
        n_e, n_a = self._e[0].size, self._a[0].size
        e, a = np.zeros((2, len(values), self.n, self.n))
        e[:, self._e[1], self._e[0]] = values[:, :n_e]
        a[:, self._a[1], self._a[0]] = values[:, n_e : n_e + n_a]
        return e, a

    def sparse(self, values: np.ndarray) -> tuple[Any, Any]:
        """E^T and A^T from one such vector."""
        n_e, n_a = self._e[0].size, self._a[0].size
        shape = (self.n, self.n)
        e = sparse.csc_array((values[:n_e], self._e[::-1]), shape=shape)
        return e, sparse.csc_array((values[n_e : n_e + n_a], self._a[::-1]), shape=shape)

    def slopes(self, values: np.ndarray) -> np.ndarray:
        """The gradients of the running cost in rows of such vectors."""
        return values[..., -1 - self.n : -1]

    def by_parameters(self, t: float, y: np.ndarray, yp: np.ndarray, mu: np.ndarray, params: Any) -> np.ndarray:
        """The derivatives of mu^T F + g by all parameters."""
        return self._by_parameters(t, *self._arguments(y, yp), mu, *self._numbers(params))

    def jump(self, t: float, y: np.ndarray, yp: np.ndarray, mu: np.ndarray, params: Any) -> np.ndarray:
        """The derivatives of mu^T F alone."""
        return self._jump(t, *self._arguments(y, yp), mu, *self._numbers(params))

    def final(self, t: float, y: np.ndarray, yp: np.ndarray, params: Any) -> tuple[np.ndarray, np.ndarray, float]:
        """The gradient of the final cost by y and by the parameters, and this cost."""
        found = self._final(t, *self._arguments(y, yp), *self._numbers(params))
        return found[: self.n], found[self.n : -1], float(found[-1])


def _pattern(
    rows: Sequence[dict[int, int]], n: int, places: Sequence[int]
) -> tuple[tuple[np.ndarray, np.ndarray], list[int]]:
    """Places of the entries of a matrix, as (rows, columns), and their nodes."""
    entries = [(i, places[j], node) for i, row in enumerate(rows) for j, node in row.items()]
    i, j = (np.array([entry[k] for entry in entries], dtype=np.int32) for k in (0, 1))
    return (i, j), [entry[2] for entry in entries]
