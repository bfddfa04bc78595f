"""Printed formulas as texts that can be evaluated: coefficients such as ``(3 - sqrt(3))/6`` or ``2*(t2 - t)/A``."""

import ast
import math
import operator
from collections.abc import Mapping
from typing import Any

_OPERATIONS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def value_of(text: str, names: Mapping[str, float] | None = None) -> float:
    """The value of a printed formula; numbers, names, + - * / **, and sqrt.

    Examples
    --------
    >>> value_of("(t - t1)/2", {"t": 3.0, "t1": 1.0}), value_of("sqrt(4)")
    (1.0, 2.0)
    """
    return _value(ast.parse(text, mode="eval").body, names or {})


def _value(node: Any, names: Mapping[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](_value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sqrt":
        return math.sqrt(_value(node.args[0], names))
    raise ValueError(f"not a formula: {ast.dump(node)}")


def formula_for(
    entry: Mapping[str, Any], computed: float, names: Mapping[str, float] | None = None, tolerance: float = 1e-9
) -> str:
    """Which formula of a cell has the computed value: the printed one, that which should be printed, or none of them.

    Examples
    --------
    >>> formula_for({"printed": "1/3"}, 1.0 / 3.0), formula_for({"printed": "1/3", "recomputed": "2/3"}, 2.0 / 3.0)
    ('1/3', '2/3')
    >>> formula_for({"printed": "1/3"}, 0.5)
    '0.5'
    """
    for text in (entry["printed"], entry.get("recomputed", entry["printed"])):
        if math.isclose(value_of(text, names), computed, rel_tol=tolerance, abs_tol=tolerance):
            return text
    return repr(float(computed))
