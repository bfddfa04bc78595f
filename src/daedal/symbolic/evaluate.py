"""Numerical evaluation of the graph without machine code, for checks and other number systems."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import OPERATIONS, TABLES


def evaluate(
    graph: Graph,
    nodes: Iterable[int],
    arguments: Mapping[str, Any],
    operations: Mapping[str, Callable[..., Any]] | None = None,
) -> list[Any]:
    """Values of nodes at given arguments.

    Parameters
    ----------
    graph : Graph
        The graph.
    nodes : iterable of int
        Nodes to evaluate.
    arguments : mapping
        A vector for the name of each argument, or a number for a scalar.
    operations : mapping, optional
        Replaces NumPy's functions, for example by those of an extended precision library.
    """
    wanted = list(nodes)
    known = {name: operation.evaluate for name, operation in OPERATIONS.items()} | dict(operations or {})
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for i in graph.needed(wanted):
            operation, datum = graph.operations[i], graph.data[i]
            operands = [values[k] for k in graph.operands[i]]
            if operation == "argument":
                vector = arguments[datum[0]]
                values[i] = vector[datum[1]] if hasattr(vector, "__getitem__") else vector
            elif operation == "constant":
                values[i] = datum
            elif operation == "where":
                values[i] = operands[1] if operands[0] else operands[2]
            elif operation in TABLES:
                values[i] = known[operation](operands[0], datum)
            else:
                values[i] = known[operation](*operands)
    return [values[i] for i in wanted]
