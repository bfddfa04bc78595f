"""Mechanisms as text: the functions of ``daedal.library`` are run on symbols, which write down what is done to them."""

from __future__ import annotations

import math
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.mechanisms import Mechanism
from benchmarks.symbolic import Statement

LONGEST = 50  # longer expressions get a name of their own


class Symbol:
    """An expression as text; long ones are kept in ``named`` and known by their name."""

    def __init__(self, text: str, named: dict[str, str]) -> None:
        if len(text) > LONGEST:
            text = named.setdefault(text, f"e{len(named)}")
        self.text, self.named = text, named

    def _combined(self, sign: str, left: Any, right: Any) -> Symbol:
        return Symbol(f"({_text(left)} {sign} {_text(right)})", self.named)

    def __add__(self, other: Any) -> Any:
        return self if _is(other, 0.0) else self._combined("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self if _is(other, 0.0) else self._combined("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return self if _is(other, 0.0) else self._combined("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return -self if _is(other, 0.0) else self._combined("-", other, self)

    def __mul__(self, other: Any) -> Any:
        if _is(other, 0.0):
            return 0.0
        return self if _is(other, 1.0) else self._combined("*", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._combined("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._combined("/", other, self)

    def __neg__(self) -> Any:
        return self._combined("*", -1.0, self)


def _is(value: Any, number: float) -> bool:
    return not isinstance(value, Symbol) and float(value) == number


def _text(value: Any) -> str:
    if isinstance(value, Symbol):
        return value.text
    return repr(float(value)) if value >= 0 else f"({float(value)!r})"


def _function(name: str) -> Any:
    def apply(x: Any) -> Any:
        return Symbol(f"{name}({x.text})", x.named) if isinstance(x, Symbol) else getattr(math, name)(x)

    return apply


def _zeros(shape: Any, dtype: Any = None) -> np.ndarray:
    return np.full(shape, 0.0, dtype=object)


_LANGUAGE = SimpleNamespace(
    sin=_function("sin"),
    cos=_function("cos"),
    sqrt=_function("sqrt"),
    zeros=_zeros,
    empty=_zeros,
    array=lambda values: np.array(values, dtype=object),
)


def _on_symbols(function: Any) -> FunctionType:
    """The function with NumPy and math replaced by what symbols understand."""
    return FunctionType(function.__code__, {**function.__globals__, "np": _LANGUAGE, "math": _LANGUAGE})


def statement(name: str) -> Statement:
    """A mechanism in its form of index 1: q' = v, v' = a, 0 = M a - f + G^T lam, 0 = G a - gamma."""
    mechanism = Mechanism(name)
    model = mechanism.model(False)
    system = model.problem
    n, m, params = system.n_q, system.n_constraints, [float(p) for p in system.params]
    named: dict[str, str] = {}

    def symbols(letter: str, count: int) -> np.ndarray:
        return np.array([Symbol(f"{letter}{i}", named) for i in range(count)], dtype=object)

    t, q, v, a, lam = Symbol("t", named), symbols("q", n), symbols("v", n), symbols("a", n), symbols("lam", m)
    mass = _on_symbols(system.mass)(t, q, params) if callable(system.mass) else system.mass
    force = _on_symbols(system.force)(t, q, v, params)
    jacobian = _on_symbols(system.constraint_jacobian)(t, q, params)
    bias = _on_symbols(system.acceleration_bias)(t, q, v, params)
    dynamics = [
        sum((mass[i, j] * a[j] for j in range(n)), 0.0)
        - force[i]
        + sum((jacobian[k, i] * lam[k] for k in range(m)), 0.0)
        for i in range(n)
    ]
    accelerations = [sum((jacobian[k, j] * a[j] for j in range(n)), 0.0) - bias[k] for k in range(m)]
    q0, v0 = model.initial
    point = system.at(model.t_span[0], q0, v0)

    def starts(letter: str, values: np.ndarray) -> dict[str, float]:
        return {f"{letter}{i}": float(value) for i, value in enumerate(values)}

    return Statement(
        states=starts("q", q0) | starts("v", v0),
        algebraic=starts("a", point.acceleration) | starts("lam", point.multipliers),
        odes=tuple(_text(x) for x in (*v, *a)),
        constraints=tuple(_text(x) for x in (*dynamics, *accelerations)),
        constants={},
        local={key: text for text, key in named.items()},
    )
