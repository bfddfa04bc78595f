"""Names of variables, equations and numbers in messages."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from daedal.common.tabular import listing

MOST_NAMED = 3
FROM_ZERO = "(numbered from 0)"
_LONGEST_VECTOR = 20


def number(x: float) -> str:
    """A number with four digits, as used in sentences."""
    return f"{x:.4g}"


def variable(problem: Any, j: int) -> str:
    """The name of variable j, or ``y[j]``."""
    return str(problem.names[j]) if problem.names else f"y[{j}]"


def variables(problem: Any, which: Sequence[int]) -> str:
    """The names of the first few variables of `which`, in the order of the problem."""
    return listing((variable(problem, j) for j in sorted(which[:MOST_NAMED])), len(which))


def equations(which: Sequence[int], most: int = MOST_NAMED) -> str:
    """``equation 4``, ``equations 4 and 5``; numbered from 0, as in NumPy."""
    return ("equation " if len(which) == 1 else "equations ") + listing(map(str, sorted(which[:most])), len(which))


def powers(which: Sequence[int], n: int) -> str:
    """A vector of n entries, 1 for those of `which` and 0 for all others, in source form."""
    if n <= _LONGEST_VECTOR:
        return f"[{', '.join('1' if i in which else '0' for i in range(n))}]"
    return f"np.isin(np.arange({n}), {sorted(which)}).astype(float)"


def counted(count: int, noun: str) -> str:
    """``1 step``, ``3 steps``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def measured(x: float, unit: str) -> str:
    """``1 unit``, ``1.5 units``: a number of four digits with its unit."""
    shown = number(x)
    return f"{shown} {unit}{'' if shown == '1' else 's'}"


def ordinal(count: int) -> str:
    """``first``, ``second``, ``third``, ``4th``."""
    return {1: "first", 2: "second", 3: "third"}.get(count, f"{count}th")


def largest(values: np.ndarray) -> list[int]:
    """Indices of the few largest finite values, largest first, without those negligible compared with the largest
    one."""
    sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
    order = np.argsort(-sizes, kind="stable")[:MOST_NAMED]
    return [int(i) for i in order if sizes[i] > 1e-3 * sizes[order[0]]]
