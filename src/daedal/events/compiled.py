"""Compiled switching functions: one compiled function of (t, y, y') for all of them."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class CompiledPart:
    """One function of the stack: its arguments in terms of t, y, yp and p, and its number of values."""

    function: Any
    arguments: str
    size: int  # length of the result if it is a vector, 0 if it is a number


@lru_cache(maxsize=64)
def stacked(parts: tuple[CompiledPart, ...], with_params: bool):
    """``f(t, y, yp[, p]) -> array``, cached, so that equal parts are compiled once.

    A result whose length differs from that at the start is an error, raised by the subsequent call from Python.
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
    exec(source, names)  # Numba needs explicit calls
    return numba.njit(names["switching"])
