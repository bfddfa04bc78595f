"""Pantelides' algorithm: the equations to be differentiated, found by augmenting paths.

If no highest derivative can be assigned to an equation, the equation belongs to a set of k equations that contain fewer
than k highest derivatives. This set is differentiated, which introduces higher derivatives (C. C. Pantelides, The
consistent initialization of differential-algebraic systems, SIAM J. Sci. Stat. Comput. 9, 1988, 213-231: algorithm
4.1). If the structure is nonsingular, the algorithm terminates with the offsets of the signature method (Pryce 2001,
section 5.3). Analysis and index reduction use the signature method; this algorithm serves as a cross-check in the
tests.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from daedal.index.structure.signature import DulmageMendelsohn, Orders, refuse_singular


@dataclass(frozen=True)
class Pantelides:
    """Result of the algorithm.

    Attributes
    ----------
    c : numpy.ndarray
        Number of differentiations of each equation.
    d : numpy.ndarray
        Order of the highest derivative of each unknown in the differentiated equations.
    assignment : numpy.ndarray
        The unknown whose highest derivative each equation determines.
    differentiated : list of list of int
        Sets of equations that were differentiated, in order.

    Examples
    --------
    For the pendulum of second order, the constraint is differentiated twice.

    >>> from daedal.studies.pantelides import Pantelides
    >>> found = Pantelides.of_orders([{0: 2, 2: 0}, {1: 2, 2: 0}, {0: 0, 1: 0}])
    >>> found.differentiated
    [[2], [2]]
    >>> found.c.tolist(), found.d.tolist()
    ([0, 0, 2], [2, 2, 0])
    """

    c: np.ndarray
    d: np.ndarray
    assignment: np.ndarray
    differentiated: list[list[int]]

    @classmethod
    def of_orders(cls, sigma: Orders) -> Pantelides:
        """Apply the algorithm to equations given by the orders of their derivatives."""
        n = len(sigma)
        refuse_singular(DulmageMendelsohn.of(sigma, n), [f"unknown {j}" for j in range(n)])
        d = [0] * n
        for row in sigma:
            for j, k in row.items():
                d[j] = max(d[j], k)
        run = _Run(sigma, [0] * n, d, [-1] * n, [-1] * n, [])
        for i in range(n):
            run.assign(i)
        return cls(np.array(run.c), np.array(run.d), np.array(run.unknown_of), run.differentiated)


@dataclass
class _Run:
    sigma: Orders
    c: list[int]
    d: list[int]
    unknown_of: list[int]  # assigned unknown by equation; -1 if none
    equation_of: list[int]  # assigned equation by unknown; -1 if free
    differentiated: list[list[int]]

    def assign(self, equation: int):
        """Assign an unknown to an equation, differentiating sets with too few unknowns until this is possible."""
        while True:
            before = self._search(equation)
            if before is None:
                return
            equations = sorted({equation, *(self.equation_of[j] for j in before)})
            self.differentiated.append(equations)
            for i in equations:
                self.c[i] += 1
            for j in before:  # each unknown is assigned to one of the equations
                self.d[j] += 1

    def _search(self, equation: int) -> dict[int, int] | None:
        """Search breadth-first for an augmenting path and apply it; without one, return the unknowns reached."""
        before: dict[int, int] = {}  # the equation from which each unknown was reached
        waiting = deque([equation])
        while waiting:
            i = waiting.popleft()
            for j, k in self.sigma[i].items():
                if k + self.c[i] == self.d[j] and j not in before:
                    before[j] = i
                    if self.equation_of[j] < 0:
                        self._apply(j, before, equation)
                        return None
                    waiting.append(self.equation_of[j])
        return before

    def _apply(self, free: int, before: dict[int, int], equation: int):
        j = free
        while True:
            i = before[j]
            self.equation_of[j], self.unknown_of[i], j = i, j, self.unknown_of[i]
            if i == equation:
                return
