"""Hidden switching functions in user code: branches, choices, absolute values, steps, tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import OPERATIONS

_STEPS = {"floor": 0.0, "ceil": 0.0, "trunc": 0.0, "rint": 0.5}


@dataclass(frozen=True)
class Switch:
    """A function with points at which a result has a kink or a jump.

    Attributes
    ----------
    function : int
        Node of the switching function.
    points : tuple of float
        The values at which it switches; empty if `period` is not 0.
    period : float
        Distance of the points if there are infinitely many, as for ``np.floor``; otherwise 0.
    phase : float
        Position of the first such point.
    operation : str
        Name of the operation that switches.
    site : str
        File and line of the user code.
    """

    function: int
    points: tuple[float, ...]
    operation: str
    site: str
    period: float = 0.0
    phase: float = 0.0


def switches(graph: Graph, outputs: Iterable[int]) -> list[Switch]:
    """All switching functions that the outputs depend on, without duplicates, in source order."""
    found: dict[tuple, Switch] = {}
    for i in graph.needed(outputs):
        operation = graph.operations[i]
        known = OPERATIONS.get(operation)
        if known is not None and known.kink and i in graph.sites:
            switch = _switch(graph, i, operation)
            found.setdefault((switch.function, switch.points, switch.period, switch.phase), switch)
    return list(found.values())


def _switch(graph: Graph, i: int, operation: str) -> Switch:
    operands, site = graph.operands[i], graph.sites[i]
    if operation in _STEPS:
        return Switch(operands[0], (), operation, site, 1.0, _STEPS[operation])
    if operation in ("fmod", "remainder", "floor_divide"):
        return Switch(graph.divide(*operands), (), operation, site, 1.0)
    if operation == "locate":
        return Switch(operands[0], graph.data[i], operation, site)
    if operation in ("absolute", "sign"):
        return Switch(operands[0], (0.0,), operation, site)
    if operation == "copysign":
        return Switch(operands[1], (0.0,), operation, site)
    a, b = operands
    if graph.is_constant(b):
        return Switch(a, (graph.data[b],), operation, site)
    if graph.is_constant(a):
        return Switch(b, (graph.data[a],), operation, site)
    return Switch(graph.subtract(a, b), (0.0,), operation, site)
