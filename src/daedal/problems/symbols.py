"""Variables and parameters by name or SymPy symbol; SymPy itself is not required."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

from daedal.errors import InvalidProblemError, UnknownNameError, near_names

NO_VALUE = float("nan")
"""Placeholder for an unknown parameter value; recognised by identity."""


class Driven(NamedTuple):
    """The parameters of a problem with inputs: the user's parameters, and the inputs by name.

    An input is a number, a vector, a function of time, or a signal in pieces
    (:mod:`daedal.problems.named_inputs`).
    """

    given: Any
    inputs: dict[str, Any]


def given_params(params: Any) -> Any:
    """The user's parameters, without inputs."""
    return params.given if isinstance(params, Driven) else params


def symbol_name(key: Any) -> str:
    """Name of a variable or parameter: a string itself, m for a symbol m, x for x(t), x' for its derivative.

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
    """The time symbol of functions such as x(t)."""
    if not unknowns or any(not getattr(x, "is_Function", False) or len(x.args) != 1 for x in unknowns):
        raise InvalidProblemError(f"unknowns must be functions of time, such as x(t), got {unknowns!r}")
    times = {x.args[0] for x in unknowns}
    if len(times) > 1:
        raise InvalidProblemError(f"unknowns must be functions of one time, got {', '.join(sorted(map(str, times)))}")
    return times.pop()


def parameter_values(params: Mapping[Any, Any] | None) -> dict[str, float]:
    """Parameter values by name."""
    if params is not None and not isinstance(params, Mapping):
        raise InvalidProblemError(f"params must be a mapping {{symbol: number}}, got {params!r}")
    named = [(symbol_name(key), value) for key, value in (params or {}).items()]
    values = {name: _number(name, value) for name, value in named}
    if len(values) != len(named):
        names = [name for name, _ in named]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidProblemError(f"params has two symbols of the same name, {twice!r}")
    return values


def _number(name: str, value: Any) -> float:
    try:
        return float("not a number" if isinstance(value, str) else value)
    except (TypeError, ValueError):
        raise InvalidProblemError(f"params[{name!r}] must be a number, got {value!r}") from None


def with_missing(values: Mapping[str, float], names: Iterable[str]) -> dict[str, float] | None:
    """Parameter values by name, NaN if unset; None if there are no names."""
    return {name: values.get(name, NO_VALUE) for name in names} or None


def renewed(before: Any, params: Any) -> Any:
    """Replace parameters: a mapping replaces the entries or attributes that it names; numbers remain floats."""
    if isinstance(params, Driven):
        return params
    if isinstance(before, Driven):
        return before._replace(given=renewed(before.given, params))
    known = named_params(before)
    if known is None or not isinstance(params, Mapping):
        return params
    named = {symbol_name(key) if hasattr(key, "free_symbols") else key: value for key, value in params.items()}
    for name in named:
        if name not in known:
            raise UnknownNameError(
                f"params: {name!r} is not among the parameters of the problem; {near_names(name, map(str, known))}"
                f"available are {', '.join(map(repr, known))}"
            )
    for name, value in named.items():
        if type(value) is int and isinstance(known[name], float):
            named[name] = float(value)
    if isinstance(before, Mapping):
        return {**before, **named}
    if is_dataclass(before):
        return replace(before, **named)  # type: ignore[type-var]
    return SimpleNamespace(**known | named) if isinstance(before, SimpleNamespace) else before._replace(**named)


def named_params(params: Any) -> dict[Any, Any] | None:
    """Parameters by name: entries of a mapping, or fields of a dataclass, namedtuple or SimpleNamespace."""
    params = given_params(params)
    if isinstance(params, Mapping):
        return dict(params)
    if is_dataclass(params) and not isinstance(params, type):
        return {field.name: getattr(params, field.name) for field in fields(params)}
    if isinstance(params, tuple) and hasattr(params, "_fields"):
        return dict(zip(params._fields, params, strict=True))
    return dict(vars(params)) if isinstance(params, SimpleNamespace) else None


def check_values(params: Any):
    """Raise if parameters have no values yet."""
    params = given_params(params)
    missing = [str(name) for name, value in params.items() if value is NO_VALUE] if isinstance(params, dict) else []
    if missing:
        verb, first = ("have", missing[0]) if len(missing) > 1 else ("has", missing[0])
        raise InvalidProblemError(
            f"{', '.join(missing)} {verb} no value: give params={{{first!r}: ...}}, by name or by symbol"
        )
