r"""Step number sequences of extrapolation methods, and the Aitken-Neville scheme.

A basic step H is divided into n_j steps h_j = H/n_j, for n_1 < n_2 < ...; if the error has an expansion in powers of h,
the results T_j1 are extrapolated to h = 0 (Brenan, Campbell and Petzold (4.6.1)):

    T_{j,k+1} = T_{j,k} + (T_{j,k} - T_{j-1,k}) / (n_j / n_{j-k} - 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError

MOST_COLUMNS = 12

_HARMONIC = tuple(range(1, MOST_COLUMNS + 2))
_BISECTIONS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)

SEQUENCES: dict[str, tuple[int, ...]] = {
    "harmonic": _HARMONIC[:-1],
    "harmonic from 2": _HARMONIC[1:],
    "hairer-lubich": _BISECTIONS,
    "hairer-lubich from 1": (1, *_BISECTIONS[:-1]),
}
"""Sequences by name: 1, 2, 3, ...; 2, 3, 4, 5, ...; 2, 3, 4, 6, 8, 12, 16, ...; and the same preceded by 1."""


_MOST = 10_000  # Euler steps per basic step


def step_numbers(sequence: str | Sequence[int]) -> tuple[int, ...]:
    """The numbers n_1 < n_2 < ... of a sequence, given by name or directly.

    Examples
    --------
    >>> step_numbers("hairer-lubich")[:6]
    (2, 3, 4, 6, 8, 12)
    """
    if isinstance(sequence, str):
        if sequence not in SEQUENCES:
            known = ", ".join(repr(name) for name in SEQUENCES)
            raise InvalidProblemError(f"unknown sequence {sequence!r}; known: {known}, or a list of step numbers")
        return SEQUENCES[sequence]
    try:
        numbers = tuple(sequence)
    except TypeError:
        raise InvalidProblemError(f"sequence must be a name or a list of step numbers, got {sequence!r}") from None
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and 0 < n <= _MOST for n in numbers)
    if not whole or any(b <= a for a, b in pairwise(numbers)):
        raise InvalidProblemError(
            f"sequence must hold whole numbers 0 < n_1 < n_2 < ... of at most {_MOST}, got {sequence!r}"
        )
    if not 2 <= len(numbers) <= MOST_COLUMNS:
        raise InvalidProblemError(f"sequence must hold 2 to {MOST_COLUMNS} step numbers, got {len(numbers)}")
    return tuple(int(n) for n in numbers)


def amplification(numbers: Sequence[int]) -> np.ndarray:
    """Sums of the absolute weights of T_j1 in T_kk, k = 1, 2, ...: the amplification of round-off.

    Examples
    --------
    >>> amplification((1, 2, 3)).tolist()
    [1.0, 3.0, 9.0]
    """
    sums = []
    for k in range(1, len(numbers) + 1):
        first = numbers[:k]
        sums.append(sum(abs(prod(n / (n - m) for m in first if m != n)) for n in first))
    return np.array(sums)


def extrapolation_table(numbers: Sequence[int], base: Callable[[int], Any], power: int = 1) -> list[list[Any]]:
    """The table T_jk of Aitken and Neville, row by row, from T_j1 = base(n_j), for an expansion in h^power.

    Works for any numbers that can be added and divided by integers: floats, fractions, mpmath, arrays of them.

    Examples
    --------
    Implicit Euler steps for y' = -y, y(0) = 1, extrapolated to y(1) = 1/e = 0.3679:

    >>> from fractions import Fraction
    >>> table = extrapolation_table((1, 2, 3), lambda n: Fraction(n, n + 1) ** n)
    >>> [str(value) for value in table[-1]]
    ['27/64', '217/576', '427/1152']
    """
    table: list[list[Any]] = []
    for j, n in enumerate(numbers):
        row = [base(n)]
        for k in range(j):
            low = numbers[j - 1 - k] ** power
            row.append(row[k] + (row[k] - table[j - 1][k]) * low / (n**power - low))
        table.append(row)
    return table
