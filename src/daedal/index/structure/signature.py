"""Pryce's signature method: how often each equation must be differentiated, from the orders of derivatives alone.

The signature matrix Sigma has sigma_ij, the order of the highest derivative of unknown x_j in equation f_i, or minus
infinity where x_j does not occur. A transversal, one entry in each row and column, of the highest value and the
smallest numbers c_i, d_j >= 0 with

    d_j - c_i >= sigma_ij for all i, j,   with equality on the transversal,

say that f_i is to be differentiated c_i times and that this determines x_j^(d_j). They are right if the system Jacobian

    J_ij = d f_i / d x_j^(sigma_ij) where d_j - c_i = sigma_ij, otherwise 0,

is nonsingular at a consistent point; then the structural index is max c_i, plus 1 if some d_j = 0, it bounds the
differentiation index, and sum d_j - sum c_i initial values are free (J. D. Pryce, A simple structural analysis method
for DAEs, BIT 41, 2001, 364-394: sections 3 and 4, equation (9) for J, algorithm 3.1 for the offsets).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from daedal.index.structure.dulmage_mendelsohn import DulmageMendelsohn, refuse_singular
from daedal.index.structure.equations import SystemEquations
from daedal.index.structure.vanishing import vanishing

Orders = list[dict[int, int]]
"""For each equation {unknown: highest derivative}."""


@dataclass(frozen=True)
class StructuralSignature:
    """What the orders of derivatives say of a system of equations.

    Examples
    --------
    The pendulum x'' = -x lam, y'' = -y lam - 1, x^2 + y^2 = 1 as equations of first order:

    >>> import daedal
    >>> from daedal.index.structure.equations import SystemEquations
    >>> from daedal.index.structure.signature import StructuralSignature
    >>> def pendulum(t, y, yp):
    ...     x, z, u, w, lam = y
    ...     return [yp[0] - u, yp[1] - w, yp[2] + x * lam, yp[3] + z * lam + 1, x**2 + z**2 - 1]
    >>> signature = StructuralSignature.of(SystemEquations(daedal.ImplicitDAE(pendulum, 5)))
    >>> signature.index, signature.degrees_of_freedom
    (3, 2)
    >>> signature.c.tolist(), signature.d.tolist()
    ([1, 1, 0, 0, 2], [2, 2, 1, 1, 0])
    """

    sigma: Orders  # for each equation the unknowns in it, each with its highest derivative
    transversal: np.ndarray  # a transversal of the highest value: equation i determines unknown ``transversal[i]``
    c: np.ndarray  # how often each equation is differentiated
    d: np.ndarray  # the derivative of each unknown that the differentiated equations determine
    # The structural index; the index itself if the system Jacobian is nonsingular and the problem is not one of the few
    # whose structural index is too high
    index: int
    degrees_of_freedom: int  # how many initial values are free: the value of the transversal
    # (i, j, order) of derivatives that are written in equation i and drop out of it
    vanished: list[tuple[int, int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, equations: SystemEquations) -> StructuralSignature:
        """The signature of the equations of a problem, kept with them for the parameters of the last call.

        Raises
        ------
        StructurallySingularError
            If some of the equations contain fewer unknowns than there are of them.
        """
        numbers = None if equations.params is None else equations.params.tobytes()
        known = equations.levels.get(cls)
        if known is not None and known[0] == numbers:
            return known[1]
        sigma, vanished = true_orders(equations)
        refuse_singular(DulmageMendelsohn.of(sigma, equations.n), equations.names, vanished)
        found = cls.of_orders(sigma, vanished)
        equations.levels[cls] = numbers, found
        return found

    @classmethod
    def of_orders(cls, sigma: Orders, vanished: Sequence[tuple[int, int, int]] = ()) -> StructuralSignature:
        """The signature of equations that are known by the orders of the derivatives in them alone."""
        transversal = highest_value_transversal(sigma)
        c, d = canonical_offsets(sigma, transversal)
        index = int(c.max(initial=0)) + int(bool(np.any(d == 0)))
        return cls(sigma, transversal, c, d, index, int(d.sum() - c.sum()), list(vanished))

    def leading(self) -> Orders:
        """The part of sigma with d_j - c_i = sigma_ij: the places of the system Jacobian."""
        c, d = self.c.tolist(), self.d.tolist()
        return [{j: k for j, k in row.items() if d[j] - c[i] == k} for i, row in enumerate(self.sigma)]


def true_orders(equations: SystemEquations) -> tuple[Orders, list[tuple[int, int, int]]]:
    """The highest derivative of each unknown on which each equation truly depends, and (i, j, order) of the others.

    A derivative that is written but drops out, such as x' in (x' + y') - x', would make the orders too high: the graph
    notices most of them, random points the rest.
    """
    partials, sigma = equations.partials, list[dict[int, int]]()
    zeros = vanishing(equations, [node for row in partials for node in row.values()])
    for row in partials:
        orders: dict[int, int] = {}
        for (j, k), node in row.items():
            if node not in zeros:
                orders[j] = max(k, orders.get(j, 0))
        sigma.append(dict(sorted(orders.items())))
    written = equations.signature()
    dropped = [(i, j, k) for i, row in enumerate(written) for j, k in row.items() if sigma[i].get(j) != k]
    return sigma, dropped


def highest_value_transversal(sigma: Orders) -> np.ndarray:
    """For each equation an unknown, each unknown once, such that the orders add up to as much as possible.

    There must be one: see :func:`daedal.index.structure.dulmage_mendelsohn.refuse_singular`.
    """
    return best_transversal(*triplets(sigma), len(sigma))


def best_transversal(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """For each row a column, each column once, such that the values there (whole numbers) add up to as much as can be.

    Raises ValueError if there is none.
    """
    weights = 1.0 + values.max(initial=0) - values  # positive: a zero is no entry of a sparse matrix
    matrix = sparse.csr_array((weights, (rows, columns)), shape=(n, n))
    matched, transversal = min_weight_full_bipartite_matching(matrix)
    return transversal[np.argsort(matched)]


def canonical_offsets(sigma: Orders, transversal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest c, d >= 0 of a highest-value transversal, by Pryce's fix-point iteration (algorithm 3.1)."""
    rows, columns, orders = triplets(sigma)
    return smallest_duals(rows, columns, orders, transversal)


def smallest_duals(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, transversal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest c >= 0, with d, such that d_j - c_i >= value_ij, with equality on a transversal of highest value."""
    on_transversal = np.zeros(transversal.size, dtype=values.dtype)
    here = transversal[rows] == columns
    on_transversal[rows[here]] = values[here]
    c = np.zeros_like(on_transversal)
    while True:
        d = np.full_like(c, values.min(initial=0))  # every column has an entry
        np.maximum.at(d, columns, values + c[rows])
        following = d[transversal] - on_transversal
        if np.array_equal(following, c):
            return c, d
        c = following


def triplets(sigma: Orders) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and orders of the entries of a signature matrix."""
    rows = np.repeat(np.arange(len(sigma)), [len(row) for row in sigma])
    columns = np.fromiter((j for row in sigma for j in row), np.int64, rows.size)
    orders = np.fromiter((k for row in sigma for k in row.values()), np.int64, rows.size)
    return rows, columns, orders
