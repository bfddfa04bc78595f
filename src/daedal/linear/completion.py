"""Completions: ordinary differential equations that contain all solutions of a time-varying system."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from typing import TYPE_CHECKING

import numpy as np

from daedal.linear.derivative_array import array_matrices
from daedal.linear.words import Shown, numbers
from daedal.tabular import Tabular, plural

if TYPE_CHECKING:
    from daedal.linear.time_varying import TimeVarying

_STEP = 1e-3  # for the derivative of constraints, in units of the local time
_NODES = ((-2, 1.0 / 12.0), (-1, -2.0 / 3.0), (1, 2.0 / 3.0), (2, -1.0 / 12.0))


@dataclass(frozen=True, repr=False)
class Completion(Shown):
    """``x' = G x + g`` at one time: the least-squares completion.

    It is what x' is in the least-squares solution of the derivative array (Brenan, Campbell and Petzold, (2.4.7); I.
    Okay, S. L. Campbell, P. Kunkel, Linear Algebra and its Applications 425, 2007).

    Attributes
    ----------
    t : float
    G, g : numpy.ndarray
    j : int
        The array of j was solved.
    additional : numpy.ndarray, shape (a, a)
        The additional dynamics: a violation e of the constraints obeys e' = `additional` e.
    """

    t: float
    G: np.ndarray
    g: np.ndarray
    j: int
    additional: np.ndarray

    @property
    def additional_eigenvalues(self) -> np.ndarray:
        """The eigenvalues of the additional dynamics; a positive real part makes violations grow."""
        return np.linalg.eigvals(self.additional) if self.additional.size else np.zeros(0)

    def title(self) -> str:
        return f"Completion x' = G x + g at t = {self.t:g}, from the derivative array of {self.j}"

    def tables(self) -> list[Tabular]:
        values = self.additional_eigenvalues
        verdict = "violations of the constraints grow" if np.any(values.real > 1e-6) else "they do not grow at once"
        rows = [
            ("free initial values", f"{len(self.G)}, and {len(self.G) - len(values)} in the system itself"),
            ("additional dynamics", f"{plural(len(values), 'eigenvalue')}: {numbers(values)}"),
        ]
        if len(values):
            rows.append(("", verdict))
        return [Tabular("ll", rows)]

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def completion(system: TimeVarying, t: float, stabilisation: float) -> Completion:
    """Solve the array by least squares, in the units in which the system is given."""
    array = system.full_array(t)
    j = array.j
    G, g = _least_squares(system, t, j, array.rank.rank, stabilisation)
    reference = _constraint_rows(system, t, j)
    unit = system.series(t, j).unit
    step = _STEP * (unit if np.isfinite(unit) else 1.0)
    change = np.zeros_like(reference)
    for k, weight in _NODES if len(reference) else ():
        near = _constraint_rows(system, t + k * step, j)
        # A basis of the constraints that does not depend on how they were computed: its part along the reference is I.
        change += weight / step * np.linalg.solve(near @ reference.T, near)
    additional = (change + reference @ G) @ reference.T
    return Completion(t, G, g, j, additional)


def _constraint_rows(system: TimeVarying, t: float, j: int) -> np.ndarray:
    """Orthonormal rows of W with W x = g, in given units."""
    W = system.array(t, j).constraints[0] / system.series(t, 1).columns
    return np.linalg.qr(W.T)[0].T


def _least_squares(system: TimeVarying, t: float, j: int, rank: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    A, B, f = array_matrices(system.A.taylor(t, j), system.B.taylor(t, j), system.f.taylor(t, j), j)
    # Row i: (d/dt + shift)^i of the equations, instead of their Taylor coefficients.
    weights = [[comb(i, k) * shift ** (i - k) * factorial(k) if k <= i else 0.0 for k in range(j)] for i in range(j)]
    mix = np.kron(np.array(weights), np.eye(system.shape[0]))
    A, B, f = mix @ A, mix @ B, mix @ f
    U, s, Vt = np.linalg.svd(A)
    first = Vt[:rank].T[: system.n] / s[:rank] @ U[:, :rank].T
    return -first @ B, first @ f
