r"""Data of a tableau for the steps of an implicit Runge-Kutta method: blocks of stages, and polynomials.

Stages that depend on each other form one block: all of them for Gauss and Radau, single ones if A is lower triangular.
A first stage with a zero row, in a method whose last stage is the end of the step (trapezoidal rule, Lobatto IIIA), is
known: its slope is the slope at the end of the previous step (Brenan, Campbell and Petzold 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.polynomial import Legendre

from daedal.methods.tableau import RungeKuttaTableau, same

MOST_DEGREE = 7
"""Maximal degree of the polynomial of a step."""

PLACES = 3
"""Number of points inside a step at which the defect of its polynomial is evaluated."""


@dataclass(frozen=True)
class StageBlock:
    """Stages solved together: the first stage, their number, and the matrix of Newton's method for them."""

    first: int
    size: int
    matrix: int


class Stages:
    r"""A tableau prepared for steps.

    The slope at the start of the step is stored first: weights have s + 1 entries, the first for :math:`y'_n`, the
    others for :math:`Y'_1, \dots, Y'_s`.
    """

    def __init__(self, tableau: RungeKuttaTableau):
        self.tableau = tableau
        values = tableau.floats()
        self.a, self.b, self.c = values["a"], values["b"], values["c"]
        self.s = tableau.s
        self.embedded = self.b - np.array(tableau.embedded, dtype=float) if tableau.embedded else None

    @cached_property
    def end(self) -> int:
        """The stage at the end of the step, or -1."""
        one = self.tableau
        for i in reversed(range(self.s)):
            if same(one.c[i], 1) and all(same(x, y) for x, y in zip(one.a[i], one.b, strict=True)):
                return i
        return -1

    @cached_property
    def known(self) -> bool:
        """Whether the first stage is the end of the previous step, with known slope."""
        return bool(self.end > 0 and not np.any(self.a[0]) and self.c[0] == 0.0)

    @cached_property
    def solvable(self) -> bool:
        """Whether algebraic equations can be solved for all stages: A, without a known stage, is invertible."""
        k = int(self.known)
        return all(
            np.linalg.matrix_rank(self.a[b.first : b.first + b.size, b.first : b.first + b.size]) == b.size
            for b in self.blocks
            if b.first >= k
        )

    @cached_property
    def blocks(self) -> tuple[StageBlock, ...]:
        """The finest partition into consecutive stages with a block lower triangular matrix."""
        found: list[StageBlock] = []
        matrices: list[np.ndarray] = []
        first = 0
        while first < self.s:
            last = first
            while np.any(self.a[: last + 1, last + 1 :]):
                last += 1
            part = self.a[first : last + 1, first : last + 1]
            equal = [k for k, other in enumerate(matrices) if np.array_equal(part, other)]
            if not equal:
                matrices.append(part)
            found.append(StageBlock(first, last + 1 - first, equal[0] if equal else len(matrices) - 1))
            first = last + 1
        return tuple(found)

    @cached_property
    def matrices(self) -> tuple[StageBlock, ...]:
        """The first block of each matrix of Newton's method."""
        return tuple({block.matrix: block for block in reversed(self.blocks)}[k] for k in range(self._n_matrices))

    def of_block(self, block: StageBlock) -> np.ndarray:
        """The submatrix of A that belongs to a block."""
        last = block.first + block.size
        return self.a[block.first : last, block.first : last]

    @property
    def _n_matrices(self) -> int:
        return 1 + max(block.matrix for block in self.blocks)

    @cached_property
    def stage_order(self) -> int:
        """The largest q up to 2 with C(q): sum_j a_ij c_j^(k-1) = c_i^k / k for k up to q."""
        holds = [np.allclose(self.a @ self.c ** (k - 1), self.c**k / k, rtol=0.0, atol=1e-10) for k in (1, 2)]
        return sum(holds[: 1 + holds[0]])

    @cached_property
    def filtering(self) -> int:
        """The last block of a single stage whose matrix contains F_y, or -1."""
        found = [k for k, block in enumerate(self.blocks) if block.size == 1 and self.a[block.first, block.first]]
        return found[-1] if found else -1

    # --- polynomials --------------------------------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> int:
        """The number of distinct nodes."""
        kept: list[Any] = []
        for x in self.tableau.c:
            if not any(same(x, y) for y in kept):
                kept.append(x)
        return len(kept)

    @cached_property
    def degree(self) -> int:
        """Degree of the polynomial of a step."""
        return min(max(self.nodes, 1), MOST_DEGREE)

    @cached_property
    def _basis(self) -> list[Legendre]:
        return [Legendre.basis(k, domain=[0.0, 1.0]) for k in range(self.nodes)]

    @cached_property
    def _inverse(self) -> np.ndarray:
        """The minimum-norm weights at the nodes for given moments with Legendre polynomials."""
        return np.linalg.pinv(np.array([p(self.c) for p in self._basis]))

    def slope(self, theta: float) -> np.ndarray:
        """Weights of the slopes in y' at t_n + theta h, by interpolation of the stages."""
        weights = self._inverse @ np.array([p(theta) for p in self._basis])
        return np.concatenate([[0.0], weights])

    def value(self, theta: float) -> np.ndarray:
        r"""Weights b(theta) with which :math:`y_n + h \sum b_i(\theta) Y'_i` interpolates; b(1) = b.

        For collocation methods this is the collocation polynomial.
        """
        weights = self._inverse @ np.array([p.integ(lbnd=0.0)(theta) for p in self._basis])
        rest = self.b - self._inverse @ np.array([p.integ(lbnd=0.0)(1.0) for p in self._basis])
        return np.concatenate([[0.0], weights + theta * rest])

    def hermite(self, theta: float) -> np.ndarray:
        """Weights of the cubic polynomial through values and slopes at both ends of the step."""
        weights = np.concatenate([[0.0], self.b]) * theta**2 * (3.0 - 2.0 * theta)
        weights[0] += theta * (1.0 - theta) ** 2
        weights[1 + self.end] -= theta**2 * (1.0 - theta)
        return weights

    @cached_property
    def end_slope(self) -> np.ndarray:
        """Weights of the slopes in y' at the end of the step: the stage there, or the slope of the polynomial."""
        if self.end >= 0:
            return np.eye(self.s + 1)[1 + self.end]
        rest = self.b - self._inverse @ np.array([p.integ(lbnd=0.0)(1.0) for p in self._basis])
        return self.slope(1.0) + np.concatenate([[0.0], rest])

    @cached_property
    def end_value(self) -> np.ndarray:
        """Weights of the stage slopes in y at the end, if it interpolates the values of the stages."""
        return self.b if self.end >= 0 else self.slope(1.0)[1:] @ self.a

    def inherited(self, degree: int, halved: bool) -> np.ndarray | None:
        """Effect at 1 - q/degree of a unit error of an algebraic variable at the start; `degree` is that of one half.

        The stages have no error, y_n + h sum_j a_ij Y'_j = 0; the error at the end is r. None if the end of a step is
        a stage, which does not propagate errors, or if A is singular and there are no algebraic variables.
        """
        if self.end >= 0 or np.linalg.matrix_rank(self.a) < self.s:
            return None
        slopes = -np.linalg.solve(self.a, np.ones(self.s))
        inside, r = 1.0 + self.inner(degree, False)[:, 1:] @ slopes, 1.0 + self.b @ slopes
        one = np.concatenate([[r], inside, [1.0]])
        return np.concatenate([r * one, one[1:]]) if halved else one

    def inner(self, degree: int, hermite: bool) -> np.ndarray:
        """Weights at theta = 1 - q/degree, q = 1 .. degree - 1."""
        weights = self.hermite if hermite else self.value
        return np.array([weights(1.0 - q / degree) for q in range(1, degree)]).reshape(-1, self.s + 1)


def inside(degree: int) -> dict[str, np.ndarray]:
    r"""Points :math:`\theta` inside a step, and the weights of values at 1 - q/degree in the polynomial and its slope.

    Two of them lie between the last two points at either end, where interpolation is least accurate; none lies where
    the slope of the polynomial is generally exact.
    """
    places = np.array([0.4 / degree, 0.3, 1.0 - 0.6 / degree])
    powers = np.linalg.inv(np.vander(1.0 - np.arange(degree + 1) / degree, increasing=True))
    slopes = np.arange(1, degree + 1) * np.vander(places, degree, increasing=True)
    return {
        "inside": places,
        "inside_value": np.vander(places, degree + 1, increasing=True) @ powers,
        "inside_slope": slopes @ powers[1:],
    }


@cache
def stages_of(tableau: RungeKuttaTableau) -> Stages:
    """The tableau prepared for steps, computed once."""
    return Stages(tableau)
