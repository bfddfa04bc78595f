"""Equations of each problem class on a graph: unknowns, order, nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from daedal.common.tabular import derivative_name
from daedal.errors import InvalidProblemError
from daedal.problems import (
    HessenbergDAE,
    ImplicitDAE,
    LinearDAE,
    MechanicalSystem,
    Quasilinear,
    SecondOrderDAE,
    SemiExplicitDAE,
)
from daedal.symbolic import Traced
from daedal.symbolic.derivative import jacobian
from daedal.symbolic.tracing.traced_first_order import constant_rows, quasilinear_equations
from daedal.symbolic.tracing.tracer import Tracer

Written = tuple[list[Traced], list[int]]
"""The traced functions, and the equations built from them."""


@dataclass(frozen=True)
class Statement:
    """The equations of a problem before they are traced."""

    problem: Any  # the problem with traced functions
    names: list[str]  # names of the unknowns
    order: int  # highest derivative in the problem class
    parts: list[tuple[int, str]]  # groups of equations, in order: (number, description)
    # ``write(tracer, symbols)`` traces the functions on the symbols of x, x' and higher derivatives up to `order`
    write: Callable[[Tracer, Sequence[np.ndarray]], Written]


def statement(problem: Any) -> Statement:
    """The equations of a problem of any class."""
    if isinstance(problem, MechanicalSystem):
        return _mechanical(problem)
    if isinstance(problem, HessenbergDAE):
        return _hessenberg(problem)
    if isinstance(problem, LinearDAE):
        return _linear(problem)
    order = 2 if isinstance(problem, SecondOrderDAE) else 1
    if not isinstance(problem, (SecondOrderDAE, SemiExplicitDAE)):
        problem = _implicit(problem)
    names = [problem.label(j) for j in range(problem.n)]
    if isinstance(problem, SemiExplicitDAE):
        parts = [(problem.n_y, "y' = f"), (problem.n_z, "0 = g")]
        return Statement(problem, names, order, parts, partial(_semi_explicit_equations, problem))
    if isinstance(problem, Quasilinear):
        words = "y' = f" if problem.mass is None else "M y' = f"
        return Statement(problem, names, order, [(problem.n, words)], partial(_quasilinear_equations, problem))
    return Statement(problem, names, order, [(problem.n, "F = 0")], partial(_residual_equations, problem))


def _implicit(problem: Any) -> ImplicitDAE:
    if not hasattr(problem, "implicit"):
        raise InvalidProblemError(
            f"a {type(problem).__name__} has no equations F(t, y, y') = 0; use an ImplicitDAE, SemiExplicitDAE, "
            "LinearDAE, SecondOrderDAE, HessenbergDAE or MechanicalSystem"
        )
    return problem.implicit()


def _residual_equations(problem: Any, tracer: Tracer, symbols: Sequence[np.ndarray]) -> Written:
    traced = tracer.trace(problem.residual, symbols, (problem.n,))
    return [traced], list(traced.nodes)


def _quasilinear_equations(problem: Quasilinear, tracer: Tracer, symbols: Sequence[np.ndarray]) -> Written:
    traces = [tracer.trace(problem.f, symbols[:1], (problem.n,))]
    if callable(problem.mass):
        traces.append(tracer.trace(problem.mass, symbols[:1], (problem.n, problem.n)))
    rates = [x.node for x in symbols[1]]
    return traces, quasilinear_equations(tracer.graph, problem.mass, traces, rates)


def _semi_explicit_equations(problem: SemiExplicitDAE, tracer: Tracer, symbols: Sequence[np.ndarray]) -> Written:
    y, z = symbols[0][: problem.n_y], symbols[0][problem.n_y :]
    f, g = tracer.trace(problem.f, (y, z), (problem.n_y,)), tracer.trace(problem.g, (y, z), (problem.n_z,))
    rates = [tracer.graph.subtract(symbols[1][j].node, node) for j, node in enumerate(f.nodes)]
    return [f, g], [*rates, *g.nodes]


# --- mechanical systems -----------------------------------------------------------------------------------------------


def _mechanical(system: MechanicalSystem) -> Statement:
    """M q'' - f + G^T lam + Ghat^T lamhat = 0, r' = f_d, 0 = algebraic, 0 = g, 0 = ghat in (q, r, w, lam)."""
    if system.n_s:
        raise InvalidProblemError(
            "the equations of a system with contact coordinates s cannot be analysed. Remedy: model the points "
            "of contact as coordinates with constraints."
        )
    names = [system.label(j) for j in range(system.n_q)]
    for letter, count in (("r", system.n_r), ("w", system.n_w), ("lam", system.n_lambda)):
        names += [f"{letter}[{j}]" for j in range(count)]
    parts = [(system.n_q, "M q'' = f - G^T lam"), (system.n_r, "r' = state_rate"), (system.n_w, "0 = algebraic")]
    parts += [(system.n_constraints, "0 = g"), (system.n_velocity_constraints, "0 = velocity constraint")]
    parts = [(count, words) for count, words in parts if count]
    return Statement(system, names, 2, parts, partial(_mechanical_equations, system))


def _mechanical_equations(system: MechanicalSystem, tracer: Tracer, symbols: Sequence[np.ndarray]) -> Written:
    graph, n, n_lambda = tracer.graph, system.n_q, system.n_lambda
    x, xp, xpp = symbols
    q, r, w, lam = np.split(x, np.cumsum([n, system.n_r, system.n_w]))
    v = xp[:n]
    all_of_them = [q, v, *(part for part in (r, w) if part.size)]
    all_of_them += [lam] if system.force_uses_multipliers and n_lambda else []
    traces: list[Traced] = []

    def traced(function: Any, arguments: Sequence[np.ndarray], size: int) -> list[int]:
        if function is None:
            return []
        traces.append(tracer.trace(function, arguments, (size,)))
        return list(traces[-1].nodes)

    force = traced(system.force, all_of_them, n)
    rates = traced(system.state_rate, all_of_them, system.n_r)
    algebraic = traced(system.algebraic, all_of_them, system.n_w)
    constraints = traced(system.constraint, [q], system.n_constraints)
    velocities = traced(system.velocity_constraint, [q, v], system.n_velocity_constraints)
    if callable(system.mass):
        traces.append(tracer.trace(system.mass, [q], (n, n)))
        mass = [dict(enumerate(row)) for row in traces[-1].array.tolist()]
    else:
        mass = constant_rows(graph, system.mass)
    motion = [graph.negative(node) for node in force]
    for i, row in enumerate(mass):
        for j, entry in row.items():
            motion[i] = graph.add(motion[i], graph.multiply(entry, xpp[j].node))
    directions = jacobian(graph, constraints, [e.node for e in q]) + jacobian(graph, velocities, [e.node for e in v])
    for row, multiplier in zip(directions, lam, strict=True):
        for i, entry in row.items():
            motion[i] = graph.add(motion[i], graph.multiply(entry, multiplier.node))
    states = [graph.subtract(xp[n + k].node, node) for k, node in enumerate(rates)]
    return traces, [*motion, *states, *algebraic, *constraints, *velocities]


# --- linear problems given by coefficients ----------------------------------------------------------------------------


def _linear(problem: LinearDAE) -> Statement:
    """x' = A x + B y + p, 0 = C x + D y + q in (x, y)."""
    names = [problem.label(j) for j in range(problem.n)]
    parts = [(problem.n_x, "x' = A x + B y + p"), (problem.n_y, "0 = C x + D y + q")]
    return Statement(problem, names, 1, parts, partial(_linear_equations, problem))


def _linear_equations(problem: LinearDAE, tracer: Tracer, symbols: Sequence[np.ndarray]) -> Written:
    traces, given = _coefficients(problem, tracer)
    x, y = symbols[0][: problem.n_x], symbols[0][problem.n_x :]
    right = _affine(tracer, [(given["A"], x), (given["B"], y)], given["p"])
    rates = [tracer.graph.subtract(symbols[1][i].node, node) for i, node in enumerate(right)]
    return traces, [*rates, *_affine(tracer, [(given["C"], x), (given["D"], y)], given["q"])]


def _hessenberg(problem: HessenbergDAE) -> Statement:
    """x^(m) = sum A_j x^(j-1) + B y + q, 0 = C x + r in (x, y)."""
    names = [problem.label(j) for j in range(problem.n_x)] + [f"y[{j}]" for j in range(problem.n_y)]
    left = derivative_name("x", problem.order)
    parts = [(problem.n_x, f"{left} = A x + B y + q"), (problem.n_y, "0 = C x + r")]
    return Statement(problem, names, problem.order, parts, partial(_hessenberg_equations, problem))


def _hessenberg_equations(problem: HessenbergDAE, tracer: Tracer, symbols: Sequence[np.ndarray]) -> Written:
    traces, given = _coefficients(problem, tracer)
    x, y = symbols[0][: problem.n_x], symbols[0][problem.n_x :]
    terms = [(matrix, symbols[level][: problem.n_x]) for level, matrix in enumerate(given["A"])]
    right = _affine(tracer, [*terms, (given["B"], y)], given["q"])
    equations = [tracer.graph.subtract(symbols[-1][i].node, node) for i, node in enumerate(right)]
    return traces, [*equations, *_affine(tracer, [(given["C"], x)], given["r"])]


def _coefficients(problem: LinearDAE | HessenbergDAE, tracer: Tracer) -> tuple[list[Traced], dict[str, np.ndarray]]:
    traces, nodes = list[Traced](), dict[str, np.ndarray]()
    for name, shape in problem.shapes.items():
        value = getattr(problem, name)
        if callable(value):
            traces.append(tracer.trace(value, (), None))
            nodes[name] = traces[-1].array.reshape(shape)
        else:
            flat = np.asarray(value, dtype=float).ravel()
            nodes[name] = np.array([tracer.graph.constant(entry) for entry in flat]).reshape(shape)
    return traces, nodes


def _affine(tracer: Tracer, terms: Sequence[tuple[np.ndarray, Any]], constant: np.ndarray) -> list[int]:
    graph, sums = tracer.graph, constant.tolist()
    for matrix, vector in terms:
        for i, j in np.ndindex(matrix.shape):
            sums[i] = graph.add(sums[i], graph.multiply(int(matrix[i, j]), vector[j].node))
    return sums
