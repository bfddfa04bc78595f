"""Readable expressions for nodes of the graph, similar to the user's code."""

from daedal.symbolic.graph import Graph

_LONGEST = 48  # length in characters above which only the arguments are named
_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "less": "<", "less_equal": "<=", "power": "**"}
_INFIX |= {"remainder": "%", "floor_divide": "//"}
_NAMES = {"absolute": "abs", "minimum": "min", "maximum": "max", "locate": "table", "negative": "-"}
_TIGHT = ("multiply", "divide", "power", "remainder", "floor_divide")
_LOOSE = ("add", "subtract", "negative")


def words(graph: Graph, i: int) -> str:
    """The expression of a node if it is short; otherwise its operation and the arguments on which it depends."""
    text = _written(graph, i, 0)
    if text is not None and len(text) <= _LONGEST:
        return text
    operation = graph.operations[i]
    if operation in ("less", "less_equal"):
        return f"a comparison of {graph.origin(i)}"
    return f"{_NAMES.get(operation, operation)} of {graph.origin(i)}"


def _written(graph: Graph, i: int, depth: int) -> str | None:
    operation, datum = graph.operations[i], graph.data[i]
    if operation == "constant":
        return f"{datum:g}"
    if operation == "argument":
        name, index = datum
        return name if name in graph.scalars else f"{name}[{index}]"
    if depth > 6:
        return None
    operands = graph.operands[i]
    parts = [_written(graph, k, depth + 1) for k in operands]
    if any(part is None for part in parts):
        return None
    if operation in _INFIX:
        tight, (a, b) = operation in _TIGHT, parts
        if tight and graph.operations[operands[0]] in _LOOSE:
            a = f"({a})"
        if (tight or operation == "subtract") and graph.operations[operands[1]] in _LOOSE:
            b = f"({b})"
        return f"{a} {_INFIX[operation]} {b}"
    if operation == "negative":
        return f"-({parts[0]})" if graph.operations[operands[0]] in _LOOSE else f"-{parts[0]}"
    if operation in ("where", "pick"):
        return None
    return f"{_NAMES.get(operation, operation)}({', '.join(map(str, parts))})"
