"""Expressions that are zero for all arguments although their form does not show it, found at random points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from daedal.index.structure.equations import SystemEquations
from daedal.symbolic.evaluate import evaluate
from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import ARITHMETIC, FUNCTIONS
from daedal.symbolic.tracing.parameters import NAME

_POINTS = 6
CANCELLATION = 1e-11
"""What is left of a sum, relative to its terms, where they cancel: round-off of a few dozen operations."""

Probe = tuple[np.ndarray, np.ndarray]
"""Values at the random points, and how large they would be if nothing cancelled."""


def random_points(equations: SystemEquations, orders: int, count: int = _POINTS) -> dict[str, np.ndarray]:
    """Arguments of the graph at random points, some of them positive, all of moderate size; the same in every call.

    The parameters are those of the problem.
    """
    random = np.random.default_rng(20010101)
    lowest = np.where(np.arange(count) % 2, -0.9, 0.1)
    points = {"t": random.uniform(0.1, 0.9, (1, count))}
    for k in range(orders + 1):
        points[f"x{k}"] = lowest + (0.9 - lowest) * random.random((equations.n, count))
    if equations.params is not None:
        points[NAME] = np.repeat(np.asarray(equations.params, dtype=float)[:, None], count, axis=1)
    return points


def vanishing(equations: SystemEquations, nodes: Sequence[int]) -> set[int]:
    """Those of the nodes that are zero at every random point at which they are defined.

    A node counts as zero if less than 1e-11 is left of the terms of which it is the sum. What contains a choice
    (``np.where``, a maximum, a table) or is defined at no point is never among them: nothing is said of it.

    Examples
    --------
    >>> import daedal
    >>> import numpy as np
    >>> from daedal.index.structure.equations import Equations
    >>> from daedal.index.structure.vanishing import vanishing
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [(np.cos(t) ** 2 + np.sin(t) ** 2 - 1) * yp[0] + y[0]], 1)
    >>> equations = Equations(problem)
    >>> (row,) = equations.jacobian(equations.nodes, equations.unknowns([0, 1]))
    >>> vanishing(equations, list(row.values())) == {row[1]}
    True
    """
    graph = equations.graph
    candidates = [i for i in nodes if not graph.is_constant(i)]
    found = {i for i in nodes if graph.is_zero(i)}
    if not candidates:
        return found
    points = random_points(equations, max(equations.order, equations.highest(candidates)))
    probes = _sweep(graph, candidates, points)
    for i in candidates:
        probe = probes[i]
        if probe is None:
            continue
        value, magnitude = probe
        defined = np.isfinite(value) & np.isfinite(magnitude)
        if defined.any() and np.all(np.abs(value[defined]) <= CANCELLATION * magnitude[defined]):
            found.add(i)
    return found


def cancel(equations: SystemEquations, terms: Sequence[int]) -> bool:
    """Whether the sum of terms is zero, compared with them, at every random point at which they are defined."""
    points = random_points(equations, max(equations.order, equations.highest(terms)))
    seen = False
    for k in range(_POINTS):
        here = {name: vector[:, k] for name, vector in points.items()}
        values = np.array(evaluate(equations.graph, terms, here), dtype=float)
        if np.all(np.isfinite(values)):
            seen = True
            if abs(values.sum()) > CANCELLATION * np.abs(values).sum():
                return False
    return seen


def _sweep(graph: Graph, nodes: Sequence[int], points: dict[str, np.ndarray]) -> dict[int, Probe | None]:
    probes: dict[int, Probe | None] = {}
    with np.errstate(all="ignore"):
        for i in graph.needed(nodes):
            operands = [probes[k] for k in graph.operands[i]]
            operation, datum = graph.operations[i], graph.data[i]
            if operation == "argument":
                known = points.get(datum[0])
                probes[i] = None if known is None else (known[datum[1]], np.abs(known[datum[1]]))
            elif operation == "constant":
                probes[i] = np.asarray(datum), np.abs(np.asarray(datum))
            elif any(probe is None for probe in operands) or not (operation in ARITHMETIC or operation in _SMOOTH):
                probes[i] = None
            else:
                probes[i] = _probe(operation, operands)
    return probes


def _probe(operation: str, operands: Sequence[Any]) -> Probe:
    values, magnitudes = zip(*operands, strict=True)
    if operation not in ARITHMETIC:
        value = FUNCTIONS[operation].evaluate(*values)
        return value, np.abs(value)
    value = ARITHMETIC[operation].evaluate(*values)
    if operation == "divide":
        return value, magnitudes[0] / np.abs(values[1])
    combine = np.multiply if operation == "multiply" else np.add
    return value, reduce(combine, magnitudes)


_SMOOTH = {name for name, operation in FUNCTIONS.items() if not operation.kink} - {"erf", "erfc"}
