"""Where the gap of a contact has a kink or a jump: corners, edges and ends of what a body touches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from daedal.hybrid.models.contact import Contact
from daedal.problems import MechanicalSystem
from daedal.problems.arguments import positional_names
from daedal.symbolic import Graph, Untraceable, scalar_argument, trace, vector_argument
from daedal.symbolic.machine import compile_function
from daedal.symbolic.switches import switches
from daedal.symbolic.trace import parameter_argument

AHEAD, BEYOND = 1e-11, 1e-10  # ways relative to the size of the coordinates: before a corner, and to its other side
_TABLE = "locate"  # the points of a table stand for a smooth curve


def corners_of(contact: Contact, system: MechanicalSystem) -> Callable | None:
    """``corners(t, q)``, functions that change their sign where the gap switches; None if it does nowhere.

    Examples
    --------
    >>> import daedal, numpy as np
    >>> puck = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -9.81], n_q=2)
    >>> step = daedal.Contact(lambda t, q: q[1] + np.where(q[0] < 2.0, 0.0, 1.0), name="step")
    >>> print(corners_of(step, puck)(0.0, np.array([0.5, 0.0])))
    [-1.5]
    """
    if contact.is_pressed:
        return None
    graph, names = Graph(), positional_names(contact.gap)
    arguments = [scalar_argument(graph, "t"), vector_argument(graph, "q", system.n_q)]
    if system.params is not None and names is not None and len(names) > 2:
        arguments.append(parameter_argument(graph, "p", system.params))
    try:
        made = trace(contact.gap, arguments, None)  # type: ignore[arg-type]
    except Untraceable:
        return None
    found = [one for one in switches(graph, made.nodes) if one.operation != _TABLE]
    nodes = [graph.subtract(one.function, graph.constant(point)) for one in found for point in one.points]
    if not nodes:
        return None
    numbers = np.asarray(system.params, dtype=float) if "p" in {data[0] for data in _read(graph, nodes)} else None
    sizes = {"q": system.n_q} | ({} if numbers is None else {"p": numbers.size})
    code = compile_function(graph, sizes, {"result": np.array(nodes)})
    given = {} if numbers is None else {"p": numbers}
    return lambda t, q: code(t, q=q, **given)[1]["result"]


def along(t: float, q: np.ndarray, v: np.ndarray, way: float) -> tuple[float, np.ndarray]:
    """Time and positions a little later, when the fastest coordinate has gone this way."""
    speed = float(np.max(np.abs(v[: q.size]), initial=0.0))
    step = way * (float(np.max(np.abs(q), initial=0.0)) or 1.0) / speed if speed > 0.0 else 0.0
    return t + step, q + step * v[: q.size]


def _read(graph: Graph, nodes: list[int]):
    return [graph.data[i] for i in graph.needed(nodes) if graph.operations[i] == "argument"]
