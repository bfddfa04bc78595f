"""The graph on numbers, without machine code: for checks, and for other number systems."""

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
    """The values of nodes at given arguments.

    Parameters
    ----------
    graph : Graph
        The graph.
    nodes : iterable of int
        What is wanted.
    arguments : mapping
        For the name of each argument a vector, or a number for the one entry of a scalar.
    operations : mapping, optional
        In place of NumPy's functions, such as those of a library of extended precision.
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
