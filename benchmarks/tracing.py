"""Mechanisms as text: Daedal's graph of their plain functions in the operations that CasADi and DiffSL share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.mechanisms import Mechanism
from benchmarks.symbolic import Statement
from daedal.symbolic import mechanism_dynamics as on_graph
from daedal.symbolic.graph import evaluate

LONGEST = 50  # longer expressions get a name of their own
WRITTEN = {
    "add": "({} + {})",
    "subtract": "({} - {})",
    "multiply": "({} * {})",
    "divide": "({} / {})",
    "negative": "(-1.0 * {})",
    "sin": "sin({})",
    "cos": "cos({})",
    "sqrt": "sqrt({})",
}


def graph_of(system: Any) -> on_graph.Mechanism:
    """M, f and g on symbols, with their parameters as numbers."""
    p, sizes = system.params, {"n_q": system.n_q, "n_constraints": system.n_constraints}
    return on_graph.Mechanism(
        (lambda t, q: system.mass(t, q, p)) if callable(system.mass) else system.mass,
        lambda t, q, v: system.force(t, q, v, p),
        lambda t, q: system.constraint(t, q, p),
        **sizes,
    )


def statement(name: str) -> Statement:
    """A mechanism in its form of index 1: q' = v, v' = a, 0 = M a - f + G^T lam, 0 = G a - gamma."""
    model = Mechanism(name).model(False)
    mechanism = graph_of(model.problem)
    graph, n, m = mechanism.graph, mechanism.n_q, mechanism.n_constraints
    a, lam = ([graph.argument(letter, i) for i in range(count)] for letter, count in (("a", n), ("lam", m)))
    accelerations = []
    for row, bias in zip(mechanism.jacobian, mechanism.bias, strict=True):
        total = graph.negative(bias)
        for j, entry in row.items():
            total = graph.add(total, graph.multiply(entry, a[j]))
        accelerations.append(total)
    named: dict[str, str] = {}
    arguments = {letter: [f"{letter}{i}" for i in range(n)] for letter in ("q", "v", "a", "lam")} | {"t": ["t"]}
    operations = {operation: writer(template, named) for operation, template in WRITTEN.items()}
    equations = evaluate(graph, [*mechanism.balance(a, lam), *accelerations], arguments, operations)
    q0, v0 = model.initial
    point = model.problem.at(model.t_span[0], q0, v0)

    def starts(letter: str, values: np.ndarray) -> dict[str, float]:
        return {f"{letter}{i}": float(value) for i, value in enumerate(values)}

    return Statement(
        states=starts("q", q0) | starts("v", v0),
        algebraic=starts("a", point.acceleration) | starts("lam", point.multipliers),
        odes=(*arguments["v"], *arguments["a"]),
        constraints=tuple(equations),
        constants={},
        local={key: text for text, key in named.items()},
    )


def writer(template: str, named: dict[str, str]) -> Callable[..., str]:
    """An operation on text; long results are kept in ``named`` and known by their name."""

    def write(*operands: Any) -> str:
        text = template.format(*(x if isinstance(x, str) else _number(x) for x in operands))
        return text if len(text) <= LONGEST else named.setdefault(text, f"e{len(named)}")

    return write


def _number(value: float) -> str:
    return repr(float(value)) if value >= 0.0 else f"({float(value)!r})"
