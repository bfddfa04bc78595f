"""Switching functions that are compiled: one compiled function of (t, y, y') for all of them."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class CompiledPart:
    """One function of the stack: what it is called with, in terms of t, y, yp and p, and how many values it has."""

    function: Any
    arguments: str
    size: int  # 0 for a number


@lru_cache(maxsize=64)
def stacked(parts: tuple[CompiledPart, ...], with_params: bool):
    """``f(t, y, yp[, p]) -> array``, the same object for the same parts, so that it is compiled once.

    A result of another length than at the start is an error, which is raised in the call from Python that follows.
    """
    import numba
    import numpy as np

    lines, first = [], 0
    for i, part in enumerate(parts):
        call = f"f{i}({part.arguments})"
        if part.size == 0:
            lines.append(f"values[{first}] = {call}")
            first += 1
            continue
        lines += [
            f"r{i} = {call}",
            f"if len(r{i}) != {part.size}:",
            "    raise ValueError('the number of values has changed')",
            f"for j in range({part.size}):",
            f"    values[{first} + j] = r{i}[j]",
        ]
        first += part.size
    head = f"def switching(t, y, yp{', p' if with_params else ''}):"
    source = "\n    ".join([head, f"values = np.empty({first})", *lines, "return values"])
    names: dict[str, Any] = {"np": np, **{f"f{i}": part.function for i, part in enumerate(parts)}}
    exec(source, names)  # Numba needs the calls spelt out
    return numba.njit(names["switching"])
