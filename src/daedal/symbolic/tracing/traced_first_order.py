"""Equations F = 0 of first and second order as machine code: F and its Newton matrix, dense, banded or sparse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from daedal.kernels.functions import is_compiled
from daedal.problems import ImplicitDAE, Quasilinear, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.semi_explicit import adopt_stacked
from daedal.symbolic import Graph, Traced, Untraceable
from daedal.symbolic.derivative import directional, jacobian, sparsity
from daedal.symbolic.graph import evaluate
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.linearly_implicit import LinearlyImplicit
from daedal.symbolic.tracing.tracer import TracedProblem, Tracer

_FEWEST_FOR_BAND = 40  # minimum number of unknowns for which a narrow band is used by default
_FEWEST_FOR_SPARSE = 200  # minimum number of unknowns for which sparse factors are used by default
_NARROW = 0.25  # number of stored diagonals, as a fraction of n, up to which a band counts as narrow
_SPARSE = 0.1  # fraction of nonzero entries up to which a matrix counts as sparse
_FEWEST_FOR_PATTERN = 500  # number of unknowns above which functions too long for code are traced for their sparsity
_MOST_FOR_PATTERN = 60  # maximum number of operations for each unknown of a function traced for its sparsity
_MOST_COMPARED = 200  # maximum number of unknowns for which a given matrix is compared with the exact one
_MOST_DENSE = 120  # maximum number of unknowns for which a dense matrix is computed by straight-line code


def is_ready(problem: ImplicitDAE | SemiExplicitDAE | SecondOrderDAE) -> bool:
    """Whether the functions and the matrix are already compiled, so that tracing has no benefit."""
    functions = [problem.f, problem.g] if isinstance(problem, SemiExplicitDAE) else [problem.residual]
    return all(is_compiled(f) for f in [*functions, problem.jacobian])


@dataclass(frozen=True)
class _Residual:
    """A residual on the graph: its arguments, its unknowns with their derivatives, and the factors of the
    derivatives in the Newton matrix."""

    arguments: tuple[str, ...]
    groups: list[list[int]]
    factors: tuple[str, ...]
    traced: Traced | None


def traced_implicit(
    problem: ImplicitDAE, linear_solver: Any = "auto", *, always: bool = False, follow: int = 0
) -> TracedProblem:
    """F(t, y, y') = 0 with residual and matrix traced."""
    return _traced(problem, ("y", "yp"), ("cj",), linear_solver, always, follow)


def traced_second_order(problem: SecondOrderDAE, linear_solver: Any = "auto", *, always: bool = False):
    """F(t, x, x', x'') = 0 with residual and matrix traced."""
    return _traced(problem, ("x", "xp", "xpp"), ("c1", "c2"), linear_solver, always)


def _traced(problem, vectors, factors, linear_solver, always: bool, follow: int = 0) -> TracedProblem:
    tracer = Tracer(problem, dict.fromkeys(vectors, problem.n), factors, always=always, follow=follow)
    traced = tracer.function("residual", problem.residual, vectors, (problem.n,))
    residual = _Residual(vectors, [tracer.nodes(name) for name in vectors], factors, traced)
    result = copy(problem)
    _set(result, "residual", tracer.result.functions.get("residual"))
    _matrix(tracer, problem, result, linear_solver, residual)
    if traced is not None and isinstance(problem, SecondOrderDAE):
        object.__setattr__(result, "motion", MotionDerivatives(tracer, traced))
    elif traced is not None and problem.copies == 1:
        object.__setattr__(result, "linearly_implicit", LinearlyImplicit(tracer, traced, vectors, *residual.groups))
    return tracer.finished(result)


def traced_semi_explicit(
    problem: SemiExplicitDAE, linear_solver: Any = "auto", *, always: bool = False, follow: int = 0
) -> TracedProblem:
    """y' = f, 0 = g with f, g and the stacked residual traced."""
    n_y, n_z, n = problem.n_y, problem.n_z, problem.n
    tracer = Tracer(problem, {"y": n_y, "z": n_z, "xp": n}, ("cj",), always=always, follow=follow)
    f = tracer.function("f", problem.f, ("y", "z"), (n_y,))
    g = tracer.function("g", problem.g, ("y", "z"), (n_z,))
    result, stacked = copy(problem), copy(problem.implicit())
    for name in ("f", "g"):
        _set(result, name, tracer.result.functions.get(name))
    traced, rates = None, tracer.nodes("xp")
    if f is not None and g is not None:
        nodes = [*map(tracer.graph.subtract, rates, f.nodes), *g.nodes]
        traced = tracer.stacked("residual", stacked.residual, ("y", "z", "xp"), nodes, (f, g))
        if traced is not None:
            tracer.traces["residual"] = traced
        _set(stacked, "residual", tracer.combined.get("residual"))
    groups = [[*tracer.nodes("y"), *tracer.nodes("z")], rates]
    if traced is not None:
        object.__setattr__(stacked, "linearly_implicit", LinearlyImplicit(tracer, traced, ("y", "z", "xp"), *groups))
    _matrix(tracer, problem.implicit(), stacked, linear_solver, _Residual(("y", "z", "xp"), groups, ("cj",), traced))
    adopt_stacked(result, stacked)
    return tracer.finished(result)


def traced_quasilinear(
    problem: Quasilinear, linear_solver: Any = "auto", *, always: bool = False, follow: int = 0
) -> TracedProblem:
    """M y' = f with f, M and the residual M y' - f traced."""
    n = problem.n
    tracer = Tracer(problem, {"y": n, "yp": n}, ("cj",), always=always, follow=follow)
    functions = [tracer.function("f", problem.f, ("y",), (n,))]
    if callable(problem.mass):
        functions.append(tracer.function("mass", problem.mass, ("y",), (n, n)))
    result, traced, groups = copy(problem), None, [tracer.nodes("y"), tracer.nodes("yp")]
    for name in ("f", "mass"):
        _set(result, name, tracer.result.functions.get(name))
    parts = [part for part in functions if part is not None]
    if len(parts) == len(functions):
        nodes = quasilinear_equations(tracer.graph, problem.mass, parts, groups[1])
        traced = tracer.stacked("residual", problem.residual, ("y", "yp"), nodes, parts)
    if traced is not None:
        tracer.traces["residual"] = traced
        object.__setattr__(result, "linearly_implicit", LinearlyImplicit(tracer, traced, ("y", "yp"), *groups))
    _set(result, "residual", tracer.combined.get("residual"))
    _matrix(tracer, problem, result, linear_solver, _Residual(("y", "yp"), groups, ("cj",), traced))
    return tracer.finished(result)


def quasilinear_equations(graph: Graph, mass: Any, traces: Sequence[Traced], rates: Sequence[int]) -> list[int]:
    """Nodes of M y' - f, from f and, if it is a function, M."""
    nodes = []
    for i, (rate, row) in enumerate(zip(traces[0].nodes, _mass_rows(graph, mass, traces), strict=True)):
        total = rates[i] if row is None else graph.zero
        for j, entry in () if row is None else row.items():
            total = graph.add(total, graph.multiply(entry, rates[j]))
        nodes.append(graph.subtract(total, rate))
    return nodes


def _mass_rows(graph: Graph, mass: Any, traces: Sequence[Traced]) -> list[dict[int, int] | None]:
    """Rows of M; None for rows of the identity."""
    n = len(traces[0].nodes)
    if mass is None:
        return [None] * n
    if callable(mass):
        return [{j: node for j, node in enumerate(row) if not graph.is_zero(node)} for row in traces[1].array.tolist()]
    return [*constant_rows(graph, mass)]


def constant_rows(graph: Graph, matrix: Any) -> list[dict[int, int]]:
    """Nonzero entries of a constant matrix, dense or sparse."""
    rows: list[dict[int, int]] = [{} for _ in range(matrix.shape[0])]
    found = matrix.tocoo() if hasattr(matrix, "tocoo") else None
    places = zip(*(np.nonzero(matrix) if found is None else (found.row, found.col)), strict=True)
    values = matrix[np.nonzero(matrix)] if found is None else found.data
    for (i, j), value in zip(places, values, strict=True):
        rows[i][int(j)] = graph.constant(value)
    return rows


def _set(problem, name: str, function):
    if function is not None:
        object.__setattr__(problem, name, function)


# --- the Newton matrix ------------------------------------------------------------------------------------------------


def _matrix(tracer: Tracer, problem, result, linear_solver, residual: _Residual):
    """The user's jacobian, traced, or an exact one in the form required by the linear solver."""
    copies = getattr(problem, "copies", 1)
    n, arguments = problem.n // copies, (*residual.arguments, *residual.factors)
    if copies > 1 and residual.traced is not None:  # all copies use the matrix of the leading unknowns
        leading = replace(residual.traced, nodes=residual.traced.nodes[:n], shape=(n,))
        residual = replace(residual, groups=[group[:n] for group in residual.groups], traced=leading)
    if residual.traced is not None:
        tracer.result.orders = partial(_orders, tracer, residual)
    if problem.jacobian is not None:
        shape: tuple[int, ...] = (n, n)
        if problem.bandwidth is not None:
            shape = (sum(problem.bandwidth) + 1, n)
        if problem.sparsity is not None:
            shape = (problem.sparsity.nnz,)
        joined = ("y", "z") == residual.arguments[:2]
        if isinstance(problem, Quasilinear):
            _matrix_from_slopes(tracer, problem, result, residual)
        elif not joined:
            tracer.function("jacobian", problem.jacobian, arguments, shape)
            _set(result, "jacobian", tracer.result.functions.get("jacobian"))
        if residual.traced is not None and n <= _MOST_COMPARED:
            tracer.result.exact_matrix = partial(_exact_matrix, tracer, residual)
        return
    if residual.traced is None:
        if linear_solver == "auto" and copies == 1 and n >= _FEWEST_FOR_PATTERN:
            _pattern_alone(tracer, problem, residual)
        return
    form, structure = _form(tracer, problem, linear_solver, residual)
    if form is None:
        return
    shared = tuple(range(len(residual.groups)))
    made = tracer.derivative("jacobian", residual.traced, arguments, lambda: form(_sum(tracer, residual)), shared)
    for name, value in structure.items():  # for finite differences, if the derivative has too many operations
        object.__setattr__(result, name, value)
    _set(result, "jacobian", made)


def _pattern_alone(tracer: Tracer, problem, residual: _Residual):
    """The structure of a residual with too many operations for machine code; grouped finite differences use it."""
    refused = tracer.result.refused.get("residual")
    if problem.sparsity is not None or problem.bandwidth is not None or refused is None or not refused.too_long:
        return
    n = problem.n
    larger = Tracer(problem, dict.fromkeys(residual.arguments, n))
    larger.graph.most_nodes = len(larger.graph) + _MOST_FOR_PATTERN * n
    try:
        traced = larger.trace(problem.residual, [larger.symbols(name) for name in residual.arguments], (n,))
    except Untraceable:
        return
    variables = [i for name in residual.arguments for i in larger.nodes(name)]
    pattern = [sorted({k % n for k in row}) for row in sparsity(larger.graph, traced.nodes, variables)]
    tracer.result.structure = _structure(pattern, n)
    tracer.result.dependencies.add(traced.dependencies)
    tracer.result.words["residual"] += "; the structure of its derivatives is known"


def _matrix_from_slopes(tracer: Tracer, problem: Quasilinear, result, residual: _Residual):
    """cj M - df/dy from the user's df/dy, if it is dense and traceable."""
    n, graph = problem.n, tracer.graph
    if residual.traced is None or problem.sparsity is not None or problem.bandwidth is not None:
        return
    given: Any = problem.jacobian
    slopes = tracer.function("jacobian", given.of, ("y",), (n, n))
    if slopes is None:
        return
    [cj], masses = tracer.nodes("cj"), jacobian(graph, residual.traced.nodes, residual.groups[1])
    nodes = [
        [graph.subtract(graph.multiply(cj, row[j]) if j in row else graph.zero, x) for j, x in enumerate(line)]
        for row, line in zip(masses, slopes.array.tolist(), strict=True)
    ]
    tracer.stacked("matrix", given, (*residual.arguments, "cj"), nodes, (slopes,))
    _set(result, "jacobian", tracer.combined.get("matrix"))


def _exact_matrix(tracer: Tracer, residual: _Residual, values: Mapping[str, Any]) -> np.ndarray:
    """dF/dx + c1 dF/dx' + ... at given arguments, without machine code, for a single evaluation."""
    rows = _sum(tracer, residual)
    places = [(i, j, node) for i, row in enumerate(rows) for j, node in row.items()]
    matrix = np.zeros((len(rows), len(rows)))
    for (i, j, _), value in zip(places, evaluate(tracer.graph, [node for _, _, node in places], values)):
        matrix[i, j] = value
    return matrix


def _orders(tracer: Tracer, residual: _Residual) -> list[dict[int, int]]:
    """For each equation, its unknowns with their highest derivatives."""
    assert residual.traced is not None
    n, variables = len(residual.traced.nodes), [i for group in residual.groups for i in group]
    with tracer.lock:
        pattern = sparsity(tracer.graph, residual.traced.nodes, variables)
    # the highest derivative overwrites lower ones
    return [{place % n: place // n for place in sorted(places)} for places in pattern]


def _sum(tracer: Tracer, residual: _Residual) -> list[dict[int, int]]:
    """dF/dx + c1 dF/dx' + ..., row by row."""
    assert residual.traced is not None
    graph, n = tracer.graph, len(residual.traced.nodes)
    variables = [i for group in residual.groups for i in group]
    scale = [graph.one, *[tracer.nodes(name)[0] for name in residual.factors]]
    rows: list[dict[int, int]] = []
    for row in jacobian(graph, residual.traced.nodes, variables):
        total: dict[int, int] = {}
        for k, x in row.items():
            term = graph.multiply(scale[k // n], x)
            total[k % n] = graph.add(total[k % n], term) if k % n in total else term
        rows.append(total)
    return rows


def _form(tracer: Tracer, problem, linear_solver, residual: _Residual):
    """A function that writes rows in the form of the linear solver, and the corresponding structure.

    None if the matrix is computed by finite differences: if the solver does not use it, or if it does not fit the
    structure given by the user.
    """
    n, zero = len(residual.groups[0]), tracer.graph.zero
    assert residual.traced is not None
    variables = [i for group in residual.groups for i in group]
    pattern = [sorted({k % n for k in row}) for row in sparsity(tracer.graph, residual.traced.nodes, variables)]
    name = linear_solver if isinstance(linear_solver, str) else "gmres"
    given: dict[str, Any] = {"sparsity": problem.sparsity, "bandwidth": problem.bandwidth}
    structure: dict[str, Any] = {}
    if name == "auto" and given["sparsity"] is None and given["bandwidth"] is None:
        structure = _structure(pattern, n)
        given |= structure
    if given["sparsity"] is not None and name in ("auto", "sparse", "gmres"):
        return _compressed(given["sparsity"], pattern, zero), structure
    if given["bandwidth"] is not None:
        return (_banded(given["bandwidth"], pattern, n, zero) if name in ("auto", "banded") else None), structure
    if n > _MOST_DENSE or name == "gmres":
        return None, {}
    return lambda rows: np.array([[row.get(j, zero) for j in range(n)] for row in rows]), {}


def _structure(pattern: list[list[int]], n: int) -> dict[str, Any]:
    """A band or sparsity that is worth using, for a problem without given structure."""
    ml = max((i - row[0] for i, row in enumerate(pattern) if row), default=0)
    mu = max((row[-1] - i for i, row in enumerate(pattern) if row), default=0)
    ml, mu = max(ml, 0), max(mu, 0)
    if n >= _FEWEST_FOR_BAND and 2 * ml + mu + 1 <= _NARROW * n:
        return {"bandwidth": (ml, mu)}
    if n >= _FEWEST_FOR_SPARSE and sum(map(len, pattern)) <= _SPARSE * n * n:
        from scipy.sparse import csc_array

        rows = np.concatenate([np.full(len(row), i) for i, row in enumerate(pattern)])
        columns = np.concatenate([np.array(row, dtype=int) for row in pattern])
        matrix = csc_array((np.ones(rows.size), (rows, columns)), shape=(n, n))
        matrix.sort_indices()
        return {"sparsity": matrix}
    return {}


def _compressed(matrix, pattern: list[list[int]], zero: int):
    """Entries in CSC order; None if the function has entries outside the structure."""
    columns = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr)).tolist()
    places = list(zip(matrix.indices.tolist(), columns))
    if not {(i, j) for i, row in enumerate(pattern) for j in row} <= set(places):
        return None
    return lambda rows: np.array([rows[i].get(j, zero) for i, j in places])


def _banded(bandwidth: tuple[int, int], pattern: list[list[int]], n: int, zero: int):
    """The band in the layout of scipy.linalg.solve_banded; None if there are entries outside it."""
    ml, mu = bandwidth
    if any(j - i > mu or i - j > ml for i, row in enumerate(pattern) for j in row):
        return None

    def form(rows):
        band = np.full((ml + mu + 1, n), zero)
        for i, row in enumerate(rows):
            for j, node in row.items():
                band[mu + i - j, j] = node
        return band

    return form


NAME = "motion"


class MotionDerivatives:
    """The first two derivatives along the motion, created once the orders of the variables are known."""

    def __init__(self, tracer: Tracer, residual: Traced):
        self._tracer, self._residual = tracer, residual
        self._made: dict[tuple[int, ...], TracedFunction | None] = {}

    def function(self, order: tuple[int, ...]) -> TracedFunction | None:
        """(F', F'') of (t, x, x', x''); None if there are too many operations."""
        if order not in self._made:
            shared = (0, 1, 2)
            self._made[order] = self._tracer.derivative(
                NAME, self._residual, ("x", "xp", "xpp"), lambda: self._nodes(order), shared
            )
        return self._made[order]

    def _nodes(self, order: tuple[int, ...]) -> list[int]:
        tracer, graph = self._tracer, self._tracer.graph
        x, xp, xpp = (tracer.nodes(name) for name in ("x", "xp", "xpp"))
        along = {tracer.t.node: graph.one}
        for i, highest in enumerate(order):
            if highest > 0:
                along[x[i]] = xp[i]
            if highest == 2:
                along[xp[i]] = xpp[i]
        first = directional(graph, self._residual.nodes, along)
        return [*first, *directional(graph, first, along)]

    def __reduce__(self):
        """Machine code is not pickled."""
        return type(None), ()
