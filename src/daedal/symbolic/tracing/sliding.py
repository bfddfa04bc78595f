"""Motion along the surfaces between branches, as a problem built from the branches (Filippov).

On the surface u = 0 the equations are a combination of those of both sides, with the fraction nu of the upper side that
keeps u = 0 (Wijckmans 1996, (7.5) and (7.6)).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.symbolic.derivative import directional, jacobian
from daedal.symbolic.modes import replaced
from daedal.symbolic.tracing.mixture import Mixture, NotAffine
from daedal.symbolic.tracing.switched import SwitchedProblem

MOST_MULTIPLIED = 3
"""Largest number of simultaneous sliding surfaces if their fractions are multiplied with each other."""


def sliding_implicit(switched: SwitchedProblem, surfaces: Sequence[int]) -> tuple[Any, Any] | None:
    r"""Problems for (y, eta) along surfaces, one for the motion and one for its start; F of the motion is

    .. math:: \nu F_1(t, y, y') + (1 - \nu) F_2(t, y, y') = 0, \qquad u(t, y) = 0, \qquad \nu = \eta'.

    The unknown is the integral of nu instead of nu: this lowers the index by one, and step size control notices changes
    of nu while the motion is at rest. The problem for the start has u' = 0 instead of u = 0, which determines y', nu
    and the algebraic variables. None if the equations become too large.
    """
    tracer, problem = switched.tracer, switched.problem.implicit()
    graph, n, k = tracer.graph, problem.n, len(surfaces)
    state, slope = f"state{k}", f"slope{k}"
    tracer.sizes |= {state: n + k, slope: n + k}
    y, yp = tracer.nodes(state), tracer.nodes(slope)
    known = [graph.argument(name, i) for name, size in switched.state_sizes.items() for i in range(size)]
    known += [graph.argument(switched.slope_name, i) for i in range(n)]
    residual = tracer.traces["residual"]
    functions = [switched.switches[j].function for j in surfaces]
    here = dict(zip(known, [*y[:n], *yp[:n]], strict=True))
    *nodes, raises = replaced(graph, [*residual.nodes, *functions, residual.raises], here)
    mixture, limits = mixed(switched, nodes[:n], surfaces, yp[n:]), nodes[n:]
    on = [
        graph.subtract(u, graph.constant(switched.switches[j].points[0])) for j, u in zip(surfaces, limits, strict=True)
    ]
    rates = directional(graph, limits, {tracer.t.node: graph.one, **dict(zip(y[:n], yp[:n], strict=True))})
    made = [
        _implicit(switched, f"{title} of {tuple(surfaces)}", [*mixture, *last], raises, (state, slope))
        for title, last in (("motion along the surfaces", on), ("start along the surfaces", rates))
    ]
    return None if None in made else (made[0], made[1])


def _implicit(switched: SwitchedProblem, title: str, nodes: list[int], raises: int, arguments: tuple[str, str]) -> Any:
    """An implicit problem with its matrix, from nodes and the condition under which the residual raises."""
    tracer, problem = switched.tracer, switched.problem.implicit()
    graph, n, size = tracer.graph, problem.n, len(nodes)
    original = (tracer.result.functions | tracer.combined)["residual"].original

    def as_written(t, y, yp, *params):
        return np.append(original(t, y[:n], yp[:n], *params), np.zeros(size - n))

    residual = replace(tracer.traces["residual"], raises=raises)
    traced = tracer.stacked(title, as_written, arguments, nodes, (residual,))
    if traced is None:
        return None

    def matrix():
        cj, full = tracer.nodes("cj")[0], np.full((size, size), graph.zero)
        for i, row in enumerate(jacobian(graph, nodes, [x for name in arguments for x in tracer.nodes(name)])):
            for k, entry in row.items():
                term = entry if k < size else graph.multiply(cj, entry)
                full[i, k % size] = graph.add(int(full[i, k % size]), term)
        return full

    result = copy(problem)
    algebraic, names = problem.algebraic, problem.names
    for name, value in {
        "n": size,
        "residual": tracer.combined[title],
        "jacobian": tracer.derivative(f"{title}, matrix", traced, (*arguments, "cj"), matrix, (0, 1)),
        "sparsity": None,
        "bandwidth": None,
        "names": None if names is None else [*names, *[f"integral of share {i}" for i in range(size - n)]],
        "algebraic": None if algebraic is None else np.append(algebraic, np.zeros(size - n, dtype=bool)),
    }.items():
        object.__setattr__(result, name, value)
    return None if result.jacobian is None else result


def sliding_system(switched: SwitchedProblem, surfaces: Sequence[int]) -> Any:
    r"""A mechanical system along surfaces :math:`u(t, q, v) = 0`, linear in v:

    .. math:: M \dot v = \nu f_1 + (1 - \nu) f_2 - G^T \lambda, \qquad 0 = u(t, q, v).

    The surfaces are velocity constraints. Their multipliers are the fractions nu: the force :math:`u_v^T \nu` of an
    ideal constraint is cancelled. The integrals of the fractions are additional states r, by which step size control
    notices changes of the fractions while the motion is at rest.
    """
    tracer, system = switched.tracer, switched.problem
    graph, n, k, n_lambda = tracer.graph, system.n_q, len(surfaces), system.n_lambda
    multipliers, states = f"multipliers{k}", f"states{k}"
    tracer.sizes |= {multipliers: n_lambda + k, states: system.n_r + k}
    lam, r = tracer.nodes(multipliers), tracer.nodes(states)
    known = {graph.argument("lam", i): lam[i] for i in range(n_lambda)} if system.force_uses_multipliers else {}
    known |= {graph.argument("r", i): r[i] for i in range(system.n_r)}
    arguments = ["q", "v", states, *(["w"] if tracer.sizes.get("w") else [])]
    u = [switched.switches[j].function for j in surfaces]
    v = tracer.nodes("v")
    rows = [[row.get(i, graph.zero) for i in range(n)] for row in jacobian(graph, u, v)]
    result = copy(system)
    for name in ("force", "state_rate", "algebraic"):
        part = tracer.traces.get(name)
        if part is None and name != "state_rate":
            continue
        own = () if part is None else part.nodes
        nodes = mixed(switched, replaced(graph, own, known), surfaces, lam[n_lambda:])
        if name == "state_rate":
            nodes += lam[n_lambda:]
        if name == "force":
            for share, row in zip(lam[n_lambda:], rows, strict=True):
                nodes = [graph.add(f, graph.multiply(share, entry)) for f, entry in zip(nodes, row, strict=True)]
        title = f"{name} along {surfaces}"
        original = _nothing if part is None else tracer.result.functions[name].original
        asked = _without_shares(original, system)
        parts = () if part is None else (part,)
        if tracer.stacked(title, asked, (*arguments, multipliers), nodes, parts) is None:
            return None
        object.__setattr__(result, name, tracer.combined[title])
    _constrained(switched, surfaces, result, u, rows)
    return result


def _constrained(switched: SwitchedProblem, surfaces, result: Any, u: list[int], rows: list[list[int]]):
    """Add the surfaces to the velocity constraints of `result`, in place."""
    tracer, system = switched.tracer, switched.problem
    graph, q, v = tracer.graph, tracer.nodes("q"), tracer.nodes("v")
    own = tracer.traces.get("velocity_constraint")
    values = [*(own.nodes if own is not None else ())]
    values += [graph.subtract(x, graph.constant(switched.switches[j].points[0])) for x, j in zip(u, surfaces)]
    matrix = jacobian(graph, values, v)
    motion = {tracer.t.node: graph.one, **dict(zip(q, v, strict=True))}
    bias = [graph.negative(x) for x in directional(graph, values, motion)]
    dense = [row.get(i, graph.zero) for i in range(system.n_q) for row in matrix]
    for name, nodes, arguments, shape in (
        ("velocity_constraint", values, ("q", "v"), (len(values),)),
        ("velocity_jacobian", dense, ("q",), (len(values), system.n_q)),
        ("velocity_bias", bias, ("q", "v"), (len(values),)),
    ):
        title = f"{name} along {surfaces}"
        made = tracer.stacked(title, _nothing, arguments, np.reshape(nodes, shape, order="F"), ())
        assert made is not None
        object.__setattr__(result, name, tracer.combined[title])
    for name, value in {
        "n_velocity_constraints": len(values),
        "n_r": system.n_r + len(surfaces),
        "force_uses_multipliers": True,
        "constraint_names": None,
    }.items():
        object.__setattr__(result, name, value)


def _without_shares(original, system):
    """Wrap a user function, which is called without the additional states and multipliers."""

    def as_written(t, q, v, r, *others):
        w, (lam, *params) = ([others[0]], others[1:]) if system.n_w else ([], others)
        known = [r[: system.n_r]] if system.n_r else []
        last = [lam[: system.n_lambda]] if system.force_uses_multipliers else []
        return original(t, q, v, *known, *w, *last, *params)

    return as_written


def _nothing(t, *arguments):
    """Python version of the code of surfaces, called only to raise an exception; surfaces raise none."""
    return None


def mixed(switched: SwitchedProblem, nodes: list[int], surfaces: Sequence[int], shares: Sequence[int]) -> list[int]:
    """nu F_1 + (1 - nu) F_2; if this is not affine in the fractions, surfaces are combined one after the other."""
    graph = switched.tracer.graph
    try:
        mixture = Mixture(switched, surfaces, always=True)
        return replaced(graph, mixture.nodes(nodes), dict(zip(mixture.shares, shares, strict=True)))
    except NotAffine:
        if len(surfaces) > MOST_MULTIPLIED:
            raise
    for j, share in zip(surfaces, shares, strict=True):
        mode = switched.modes.argument(j)
        above = replaced(graph, nodes, {mode: graph.one})
        below = replaced(graph, nodes, {mode: graph.constant(-1.0)})
        nodes = [
            b if a == b else graph.add(b, graph.multiply(share, graph.subtract(a, b)))
            for a, b in zip(above, below, strict=True)
        ]
    return nodes
