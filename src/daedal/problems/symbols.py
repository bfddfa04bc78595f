"""Variables and parameters by name or by symbol, as SymPy has them; SymPy itself is not needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from daedal.errors import InvalidProblemError

NO_VALUE = float("nan")
"""What stands for the number of a parameter until it is known; told from other numbers by identity."""


def symbol_name(key: Any) -> str:
    """The name of a variable or parameter: itself, m of a symbol m, x of x(t), x' of its derivative.

    Examples
    --------
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> from daedal.problems.symbols import symbol_name
    >>> x = dynamicsymbols("x")
    >>> symbol_name("m"), symbol_name(x), symbol_name(x.diff())
    ('m', 'x', "x'")
    """
    if isinstance(key, str):
        return key
    if hasattr(key, "derivative_count"):
        return symbol_name(key.expr) + "'" * int(key.derivative_count)
    if getattr(key, "is_Function", False):
        return str(key.func.__name__)
    if getattr(key, "is_Symbol", False):
        return str(key.name)
    raise InvalidProblemError(f"{key!r} is neither a name nor a symbol")


def time_of(unknowns: Sequence[Any]) -> Any:
    """The symbol of time of functions such as x(t)."""
    if not unknowns or any(not getattr(x, "is_Function", False) or len(x.args) != 1 for x in unknowns):
        raise InvalidProblemError(f"unknowns must be functions of time, such as x(t), got {unknowns!r}")
    times = {x.args[0] for x in unknowns}
    if len(times) > 1:
        raise InvalidProblemError(f"unknowns must be functions of one time, got {', '.join(sorted(map(str, times)))}")
    return times.pop()


def parameter_values(params: Mapping[Any, Any] | None) -> dict[str, float]:
    """The numbers of parameters by name."""
    if params is not None and not isinstance(params, Mapping):
        raise InvalidProblemError(f"params must be a mapping {{symbol: number}}, got {params!r}")
    named = [(symbol_name(key), value) for key, value in (params or {}).items()]
    values = {name: _number(name, value) for name, value in named}
    if len(values) != len(named):
        raise InvalidProblemError("params has two symbols of the same name")
    return values


def _number(name: str, value: Any) -> float:
    try:
        return float("not a number" if isinstance(value, str) else value)
    except (TypeError, ValueError):
        raise InvalidProblemError(f"params[{name!r}] must be a number, got {value!r}") from None


def with_missing(values: Mapping[str, float], names: Iterable[str]) -> dict[str, float] | None:
    """Parameters by name: their numbers, nan where they have none yet."""
    return {name: values.get(name, NO_VALUE) for name in names} or None


def renewed(before: Any, params: Any) -> Any:
    """Other parameters: those of a mapping that are named replace only these, numbers stay floats."""
    if not isinstance(before, Mapping) or not isinstance(params, Mapping):
        return params
    named = {symbol_name(key) if hasattr(key, "free_symbols") else key: value for key, value in params.items()}
    unknown = [name for name in named if name not in before]
    if unknown:
        raise InvalidProblemError(
            f"params: {', '.join(map(repr, unknown))} is not among the parameters of the problem, which are "
            f"{', '.join(map(repr, before))}"
        )
    for name, value in named.items():
        if type(value) is int and isinstance(before.get(name), float):
            named[name] = float(value)
    return {**before, **named}


def check_values(params: Any):
    """Refuse parameters that have no value yet."""
    missing = [str(name) for name, value in params.items() if value is NO_VALUE] if isinstance(params, dict) else []
    if missing:
        verb, first = ("have", missing[0]) if len(missing) > 1 else ("has", missing[0])
        raise InvalidProblemError(
            f"{', '.join(missing)} {verb} no value: give params={{{first!r}: ...}}, by name or by symbol"
        )
