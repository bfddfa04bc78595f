r"""A problem linearised along a solution, and its costs, on one graph.

For :math:`F(t, y, y', p) = 0` with the sensitivities :math:`E s' + A s + B = 0`, where :math:`E = F_{y'}`, :math:`A =
F_y`, :math:`B = F_p`, the adjoint variables :math:`\mu` require E, A and the gradient of the cost, and :math:`\mu^T B`
for all parameters at once, which reverse differentiation of :math:`\mu^T F` provides. A mechanism is :math:`q' = v,\ v'
= a,\ 0 = M a + K^T \lambda - f,\ 0 = K a - \gamma`, of index 1 in (q, v, r, a, lambda).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import lapack
from scipy.sparse import linalg as sparse_linalg

import daedal
from daedal.errors import DaedalError, InvalidProblemError
from daedal.problems.arguments import FIRST, PARAMS, SECOND, TIME, WHOLE, StateArguments
from daedal.problems.named_inputs import in_driven_form
from daedal.sensitivity.variational import equations_of
from daedal.sensitivity.variational_motion import VariationalMotion
from daedal.symbolic import Untraceable
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.derivative import gradient, jacobian
from daedal.symbolic.machine import compile_function
from daedal.symbolic.switches import switches
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.tracer import Tracer

DENSE = 60
"""Number of unknowns up to which matrices are dense."""
_NARROW = 0.1  # maximum number of diagonals for banded storage, as a fraction of the number of unknowns

Places = tuple[np.ndarray, np.ndarray]


def storage_for(places: list[Places], n: int) -> Any:
    """A common storage for several matrices, from the rows and columns of their entries."""
    if n <= DENSE:
        return DenseStorage(places, n)
    below, above = bandwidth(places)
    if 2 * below + above + 1 <= _NARROW * n:
        return BandedStorage(places, n, below, above)
    return SparseStorage(places, n)


def bandwidth(places: list[Places]) -> tuple[int, int]:
    """Numbers of diagonals below and above the main one."""
    offsets = np.concatenate([rows - columns for rows, columns in places])
    return max(int(offsets.max(initial=0)), 0), max(int(-offsets.min(initial=0)), 0)


class DenseStorage:
    """Square arrays."""

    def __init__(self, places: list[Places], n: int):
        self._places, self._n = places, n

    def matrix(self, k: int, entries: np.ndarray) -> Any:
        """The matrix with sparsity pattern k and the given entries."""
        found = np.zeros((self._n, self._n))
        found[self._places[k]] = entries
        return found

    def product(self, matrix: Any, x: np.ndarray) -> np.ndarray:
        """A matrix times a vector."""
        return matrix @ x

    def factored(self, matrix: Any) -> Callable[[np.ndarray], np.ndarray]:
        """A solver function for a matrix."""
        factor, solve = linalg.get_lapack_funcs(("getrf", "getrs"), (matrix,))
        lu, pivots, info = factor(matrix)
        check_regular(info)
        return lambda right: solve(lu, pivots, right)[0]

    def as_sparse(self, matrix: Any) -> Any:
        """Convert to a SciPy sparse matrix."""
        return sparse.csc_array(matrix)


class BandedStorage(DenseStorage):
    """Banded storage as in LAPACK: entry (i, j) in row above + i - j of column j."""

    def __init__(self, places: list[Places], n: int, below: int, above: int):
        self._below, self._above = below, above
        super().__init__([(above + rows - columns, columns) for rows, columns in places], n)

    def matrix(self, k: int, entries: np.ndarray) -> Any:
        found = np.zeros((self._below + self._above + 1, self._n))
        found[self._places[k]] = entries
        return found

    def product(self, matrix: Any, x: np.ndarray) -> np.ndarray:
        n, result = self._n, matrix[self._above] * x
        for shift in range(1, self._above + 1):
            result[: n - shift] += matrix[self._above - shift, shift:] * x[shift:]
        for shift in range(1, self._below + 1):
            result[shift:] += matrix[self._above + shift, : n - shift] * x[: n - shift]
        return result

    def factored(self, matrix: Any) -> Callable[[np.ndarray], np.ndarray]:
        below, above = self._below, self._above
        factor, solve = (lapack.dgbtrf, lapack.dgbtrs) if np.isrealobj(matrix) else (lapack.zgbtrf, lapack.zgbtrs)
        room = np.zeros((below, self._n), dtype=matrix.dtype)
        lu, pivots, info = factor(np.concatenate([room, matrix]), below, above)
        check_regular(info)
        return lambda right: solve(lu, below, above, right, pivots)[0]

    def as_sparse(self, matrix: Any) -> Any:
        offsets = np.arange(self._above, -self._below - 1, -1)
        return sparse.csc_array(sparse.dia_array((matrix, offsets), shape=(self._n, self._n)))


class SparseStorage(DenseStorage):
    """Compressed rows, factored by SuperLU."""

    def __init__(self, places: list[Places], n: int):
        super().__init__(places, n)
        self._order = [np.lexsort((columns, rows)) for rows, columns in places]
        self._indices = [
            columns[order].astype(np.int32) for (_, columns), order in zip(places, self._order, strict=True)
        ]
        counts = [np.bincount(rows, minlength=n) for rows, _ in places]
        self._starts = [np.concatenate([[0], np.cumsum(count)]).astype(np.int32) for count in counts]

    def matrix(self, k: int, entries: np.ndarray) -> Any:
        parts = entries[self._order[k]], self._indices[k], self._starts[k]
        return sparse.csr_array(parts, shape=(self._n, self._n))

    def factored(self, matrix: Any) -> Callable[[np.ndarray], np.ndarray]:
        return sparse_solver(matrix)

    def as_sparse(self, matrix: Any) -> Any:
        return matrix


def sparse_solver(matrix: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A solver function for a sparse matrix."""
    try:
        return sparse_linalg.splu(matrix.tocsc()).solve
    except RuntimeError:
        check_regular(1)
        raise


def check_regular(info: int) -> None:
    """Raise for a matrix that LAPACK reports as singular."""
    if info > 0:
        raise DaedalError("gradient: the matrix of the adjoint equations is singular")


# --- linearised problem -----------------------------------------------------------------------------------------------

_ADJOINT = "mu"


class LinearisedRun:
    r"""E, A, the costs with their gradients, and :math:`\mu^T B + g_p`, as machine code.

    `n` is the length of y, `labels` are the names of the parameters, `places` the rows and columns of the entries of E
    and of A. `constraints_by_parameters` are parameters in constraints on differential variables, on which the initial
    values therefore depend; `cost_switches` are switching functions of the running cost, at which it has kinks or
    jumps.
    """

    def __init__(self, problem: Any, cost: Callable | None, final_cost: Callable | None):
        self.problem, self._dependencies = problem, Dependencies()
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
        if not self.is_mechanical:
            self.constraints_by_parameters = self._in_constraints(e, a, count)
        (e_places, e_nodes), (a_places, a_nodes) = _pattern(e, self._rate_places), _pattern(a, range(self.n))
        self.places = e_places, a_places
        self.is_constant = all(graph.operations[i] == "constant" for i in e_nodes)
        slope = gradient(graph, running, self._unknowns)
        self._matrices = _Batch(graph, [*e_nodes, *a_nodes, *slope, running], sizes, params)
        self.cost_switches = [switch for switch in switches(graph, [running]) if switch.points or switch.period]
        watched = [switch.function for switch in self.cost_switches]
        self._switches = _Batch(graph, [*watched, running], sizes, params)
        weighted = graph.zero
        for x, equation in zip(multipliers, self._equations, strict=True):
            weighted = graph.add(weighted, graph.multiply(x, equation))
        beside = {**sizes, _ADJOINT: self.n}
        total = gradient(graph, graph.add(weighted, running), parameters)
        self._by_parameters = _Batch(graph, total, beside, params)
        self._jump = _Batch(graph, gradient(graph, weighted, parameters), beside, params)
        ends = [*gradient(graph, final, self._unknowns), *gradient(graph, final, parameters), final]
        self._final = _Batch(graph, ends, sizes, params)

    def is_current(self, params: Any) -> bool:
        """Whether external values are unchanged and the parameters have the same structure."""
        return self._dependencies.are_unchanged() and (self._layout is None or self._layout.fits(params))

    # --- the equations ------------------------------------------------------------------------------------------------

    def _state(self) -> None:
        problem = self.problem
        if self.is_mechanical:
            motion = VariationalMotion(problem, ())
            self._tracer, dynamics = motion.tracer, motion.equations
            self._dependencies.add(motion.dependencies)
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
        self._equations, dependencies, _ = equations_of(tracer, problem)
        self._dependencies.add(dependencies)
        self._unknowns, self._rates = tracer.nodes("y"), tracer.nodes("yp")
        self._rate_places = range(self.n)
        self._sizes = {"y": self.n, "yp": self.n}
        y = tracer.symbols("y")
        split = getattr(problem, "n_y", self.n)
        self._vectors = [y[:split], y[split:]] if isinstance(problem, daedal.SemiExplicitDAE) else [y]
        self.constraints_by_parameters = ()

    def _in_constraints(self, e: Sequence[dict[int, int]], a: Sequence[dict[int, int]], count: int) -> tuple[int, ...]:
        """Indices of the parameters in equations that contain neither derivatives nor algebraic variables (index 2)."""
        graph = self._graph
        differential = {j for row in e for j in row}
        by = {graph.argument(NAME, k): k for k in range(count)}
        pairs = zip(self._equations, e, a, strict=True)
        bound = [equation for equation, rates, values in pairs if not rates and differential.issuperset(values)]
        return tuple(sorted(by[i] for i in graph.needed(bound) if i in by)) if bound else ()

    def _cost(self, name: str, function: Callable | None) -> int:
        if function is None:
            return self._graph.zero
        if not callable(function):
            raise InvalidProblemError(f"{name} must be a function, got {type(function).__name__}")
        function = in_driven_form(function, self.problem.params)
        further, has_params = ("r",) if len(self._vectors) > 2 else (), self.problem.params is not None
        arguments = StateArguments(self.problem, has_params, len(self._vectors) > 1, further)
        places = arguments.of(function, name, state_only=True)
        order = [TIME, *(FIRST, SECOND, *further)[: len(self._vectors)], *([PARAMS] if has_params else [])]
        taken = [len(order) if place == WHOLE else order.index(place) for place in places]
        joins, count = WHOLE in places and len(self._vectors) > 1, 1 + len(self._vectors)

        def of_all(*given):
            whole = np.concatenate(given[1:count]) if joins else given[1]
            return function(*[(*given, whole)[i] for i in taken])

        try:
            traced = self._tracer.trace(of_all, self._vectors, ())
        except Untraceable as reason:
            raise InvalidProblemError(
                f"{name} cannot be differentiated: it {reason}; it must return a number"
            ) from reason
        self._dependencies.add(traced.dependencies)
        return traced.nodes[0]

    # --- values -------------------------------------------------------------------------------------------------------

    def points(self, solution: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y and y' of the linearised problem at given times, one row each."""
        if self.is_mechanical:
            state = solution(times)
            parts = [state.q, state.v, *([state.r] if self.problem.n_r else []), state.a, state.lam]
            y = np.concatenate([np.atleast_2d(part) for part in parts]).T
            return np.ascontiguousarray(y), np.zeros_like(y)
        if solution.dense is None:
            return np.ascontiguousarray(solution(times).T), np.ascontiguousarray(solution(times, derivative=True).T)
        y, yp = solution.dense.evaluate(times)
        return np.ascontiguousarray(y), np.ascontiguousarray(yp)

    def numbers(self, params: Any) -> np.ndarray:
        """Parameters as passed to the functions."""
        if self._layout is None or not self._layout.count:
            return np.zeros(0)
        return self._layout.numbers(params)

    def evaluated(self, times: np.ndarray, points: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """For each row (y, y'): the entries of E and A, the gradient of the running cost, and the running cost."""
        return self._matrices(times, points, numbers)

    def cost_with_switches(self, solution: Any, times: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Switching functions of the running cost, followed by the cost, one row per time."""
        return self._switches(times, np.concatenate(self.points(solution, times), axis=1), numbers)

    def transposed(self, values: np.ndarray) -> tuple[Any, Any]:
        """E^T and A^T from a row of `evaluated`, as NumPy arrays or, for large problems, sparse matrices."""
        (e_rows, e_columns), (a_rows, a_columns) = self.places
        n_e, n_a, shape = e_rows.size, a_rows.size, (self.n, self.n)
        parts = (values[:n_e], (e_columns, e_rows)), (values[n_e : n_e + n_a], (a_columns, a_rows))
        if self.n > DENSE:
            return sparse.csc_array(parts[0], shape=shape), sparse.csc_array(parts[1], shape=shape)
        e, a = np.zeros(shape), np.zeros(shape)
        for matrix, (entries, places) in zip((e, a), parts, strict=True):
            matrix[places] = entries
        return e, a

    def slopes(self, values: np.ndarray) -> np.ndarray:
        """Gradients of the running cost from rows of `evaluated`."""
        return values[..., -1 - self.n : -1]

    def by_parameters(self, times: np.ndarray, weights: np.ndarray, points: np.ndarray, numbers) -> np.ndarray:
        """Weighted sum of the derivatives of mu^T F + g with respect to all parameters at points (y, y', mu)."""
        return self._by_parameters.summed(times, weights, points, numbers)

    def jump(self, t: float, point: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Derivatives of mu^T F, without the running cost, with respect to all parameters at one point (y, y', mu)."""
        return self._jump(np.array([t]), point[None], numbers)[0]

    def final(self, t: float, point: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Gradient of the final cost with respect to y and the parameters, and the final cost, at (y, y')."""
        found = self._final(np.array([t]), point[None], numbers)[0]
        return found[: self.n], found[self.n : -1], float(found[-1])


class _Batch:
    """Machine code for nodes of a graph at many points."""

    def __init__(self, graph: Any, nodes: Sequence[int], arguments: dict[str, int], params: tuple[str, int] | None):
        self._made = graph, np.array(nodes, dtype=np.int64), arguments, dict([params]) if params else {}

    @cached_property
    def _code(self) -> Any:
        graph, nodes, arguments, params = self._made
        return compile_function(graph, arguments, {"": nodes}, params)

    def _block(self, numbers: np.ndarray) -> np.ndarray:
        block = np.zeros(self._code.size)
        if NAME in self._code.slices:
            block[self._code.slices[NAME]] = numbers
        return block

    def __call__(self, times: np.ndarray, points: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The values of the nodes, one row for each point."""
        from daedal.sensitivity.adjoint.adjoint_loops import evaluate_many

        code, place = self._code, self._code.slices[""]
        results = np.empty((times.size, place.stop - place.start))
        evaluate_many(code.address, times, points, self._block(numbers), place.start, results)
        return results

    def summed(self, times: np.ndarray, weights: np.ndarray, points: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        from daedal.sensitivity.adjoint.adjoint_loops import add_many

        code, place = self._code, self._code.slices[""]
        total = np.zeros(place.stop - place.start)
        if total.size:
            add_many(code.address, times, weights, points, self._block(numbers), place.start, total)
        return total


def _pattern(rows: Sequence[dict[int, int]], places: Sequence[int]) -> tuple[tuple[np.ndarray, np.ndarray], list[int]]:
    entries = [(i, places[j], node) for i, row in enumerate(rows) for j, node in row.items()]
    i, j = (np.array([entry[k] for entry in entries], dtype=np.int32) for k in (0, 1))
    return (i, j), [entry[2] for entry in entries]
