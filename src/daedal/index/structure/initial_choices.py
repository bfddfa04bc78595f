"""Possible choices of initial values: sets of unknowns that parametrise the solutions of a problem.

Near a point the values of x that satisfy all constraints form a surface. A set of unknowns can be chosen freely if and
only if the rows of these unknowns in a basis of its tangent space are linearly independent, and their number is its
dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from daedal.common.tabular import listing
from daedal.index.structure.characteristics import ArrayRanks
from daedal.index.structure.derivative_array import NonlinearDerivativeArray

_DEPENDENT = 1e-7  # smallest singular value below which rows of norm 1 are dependent
_MOST_SETS = 3000  # limit in the search for sets that cannot be chosen together
_MOST_NAMED = 12
_MOST_EXCLUDED = 4


@dataclass(frozen=True)
class FreeUnknowns:
    """Unknowns of which a given number may be chosen, independently of all others."""

    names: tuple[str, ...]  # the unknowns
    count: int  # number that may be chosen; 0 for unknowns that the equations determine
    example: tuple[str, ...]  # a set that may be chosen, preferably of differential variables
    excluded: tuple[tuple[str, ...], ...] = ()  # sets that cannot be chosen together, the smallest ones
    complete: bool = True  # whether `excluded` is complete

    def __str__(self) -> str:
        if self.count == 0:
            return f"{self._listed(self.names)}: none, the equations determine them"
        if self.count == len(self.names):
            return self._listed(self.names)
        text = f"any {self.count} of {self._listed(self.names)}"
        if not self.complete:
            return f"{self.count} of {self._listed(self.names)}, such as {self._listed(self.example)}"
        if self.excluded:
            text += ", but not " + ", nor ".join(
                f"{listing(names)} together" for names in self.excluded[:_MOST_EXCLUDED]
            )
            more = len(self.excluded) - _MOST_EXCLUDED
            text += f" (and {more} more such sets)" if more > 0 else ""
        return text

    @staticmethod
    def _listed(names: Sequence[str]) -> str:
        return listing(names[:_MOST_NAMED], len(names))


def initial_choices(array: NonlinearDerivativeArray, ranks: ArrayRanks) -> list[FreeUnknowns]:
    """Possible choices at a point, in independent groups.

    Examples
    --------
    A particle on a line whose position and speed are tied to those of a second one.

    >>> import daedal
    >>> from daedal.index.structure.characteristics import array_ranks
    >>> from daedal.index.structure.derivative_array import NonlinearDerivativeArray
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> from daedal.index.structure.initial_choices import initial_choices
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[2], y[1] - 2 * y[0], yp[2]], 3, names=["x", "y", "v"])
    >>> array = NonlinearDerivativeArray(SystemEquations(problem), 1)
    >>> jet = [[0, 0, 1], [1, 2, 0], [0, 0, 0]]
    >>> [str(choice) for choice in initial_choices(array, array_ranks(array, 0.0, jet)[-1])]
    ['v', 'any 1 of x and y']
    """
    rows = ranks.tangent.copy()
    lengths = np.linalg.norm(rows, axis=1)
    moving = np.flatnonzero(lengths > _DEPENDENT)
    rows[moving] /= lengths[moving, None]
    names = [array.label(int(column)) for column in ranks.columns]
    orders = np.tile(array.equations.orders, array.highest + 1)[ranks.columns]
    differential = ranks.columns // array.n < orders
    found = []
    for members, basis in _groups(rows, moving, differential):
        excluded, complete = _excluded(rows[members], len(basis))
        sets = tuple(tuple(names[members[k]] for k in together) for together in excluded)
        example = tuple(names[k] for k in basis)
        found.append(FreeUnknowns(tuple(names[k] for k in members), len(basis), example, sets, complete))
    fixed = np.setdiff1d(np.arange(len(rows)), moving)
    if fixed.size:
        found.append(FreeUnknowns(tuple(names[k] for k in fixed), 0, ()))
    return sorted(found, key=lambda choice: (choice.count == 0, choice.count != len(choice.names)))


def _groups(rows: np.ndarray, moving: np.ndarray, differential: np.ndarray) -> list[tuple[list[int], list[int]]]:
    """Groups of rows, each with a basis: two rows are in one group if one is needed to express the other."""
    basis: list[int] = []
    spanned = np.zeros((0, rows.shape[1]))
    for preferred in (True, False):
        candidates = [int(k) for k in moving if differential[k] == preferred]
        while candidates and len(basis) < rows.shape[1]:
            rest = rows[candidates] - rows[candidates] @ spanned.T @ spanned
            lengths = np.linalg.norm(rest, axis=1)
            best = int(np.argmax(lengths > 0.5 * lengths.max()))  # first acceptable row
            if lengths[best] <= _DEPENDENT:
                break
            basis.append(candidates.pop(best))
            spanned = np.vstack([spanned, rest[best] / lengths[best]])
    coefficients = (
        np.linalg.lstsq(rows[basis].T, rows[moving].T, rcond=None)[0] if basis else np.zeros((0, moving.size))
    )
    parent = {int(k): int(k) for k in moving}

    def root(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    for place, k in enumerate(moving):
        for b, coefficient in zip(basis, coefficients[:, place], strict=True):
            if abs(coefficient) > _DEPENDENT:
                parent[root(int(k))] = root(b)
    groups: dict[int, tuple[list[int], list[int]]] = {}
    for k in moving:
        members, own = groups.setdefault(root(int(k)), ([], []))
        members.append(int(k))
        if k in basis:
            own.append(int(k))
    return list(groups.values())


def _excluded(rows: np.ndarray, count: int) -> tuple[list[tuple[int, ...]], bool]:
    """The smallest dependent sets of at most `count` rows, and whether all sets were examined."""
    found: list[tuple[int, ...]] = []
    looked = 0
    for size in range(2, count + 1):
        for together in combinations(range(len(rows)), size):
            looked += 1
            if looked > _MOST_SETS:
                return found, False
            if any(set(smaller) <= set(together) for smaller in found):
                continue
            if np.linalg.svd(rows[list(together)], compute_uv=False)[-1] <= _DEPENDENT:
                found.append(together)
    return found, True
