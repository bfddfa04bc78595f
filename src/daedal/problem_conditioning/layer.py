"""Nearly higher index: the constants of Theorems 4.6 and 5.6 of Wijckmans, and the initial layer.

For x' = A x + B y + p, 0 = C x + D y + q with a small D and a regular C B the solution runs within a short time into
that of the index-2 problem with D = 0, and is bounded by constants in which D^-1 does not occur, if the derivative of q
is bounded. For 0 = C x + q with a small C B the same holds with C A + C' for C and C B for D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.problem_conditioning.findings import Findings
from daedal.problem_conditioning.index2 import projector
from daedal.problem_conditioning.matrices import inverse, norm
from daedal.problem_conditioning.transition import exponential, pieces, short_times


def layer(
    t: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, where: np.ndarray, theorem: str, product: str
) -> Findings:
    """k1, k1^, k2, k2^ of (4.41) and (4.42), with D instead of eps I; infinite where the layer is unstable.

    Parameters
    ----------
    t, B, C, D : numpy.ndarray
        The grid, and the matrices on it.
    where : numpy.ndarray
        At which points of the grid the index is nearly a higher one; elsewhere constants are NaN.
    theorem : str
        Which one, for the words.
    product : str
        How the source writes C B.
    """
    found = Findings()
    rows = np.full((t.size, 7), np.nan)
    last: tuple[np.ndarray, ...] = ()
    for k in np.flatnonzero(where):
        matrices = B[k], C[k], D[k]
        if last and all(np.array_equal(one, other) for one, other in zip(matrices, last, strict=True)):
            rows[k] = rows[k - 1]
        else:
            rows[k] = _at(float(t[-1] - t[0]), *matrices)
        last = matrices if k + 1 < t.size and where[k + 1] else ()
    k1, k2, k1_hat, k2_hat, F, small, thickness = rows.T
    found.add("layer_k1", "k1", f"growth of initial values in the layer, {theorem}", k1)
    found.add("layer_k2", "k2", f"response of x to lasting forces, {theorem}", k2)
    found.add("layer_k1_hat", "k1^", f"growth of y(0) in the layer, {theorem}", k1_hat)
    found.add("layer_k2_hat", "k2^", f"y for a given rate of the constraint's error, {theorem}", k2_hat)
    found.add("layer_F", f"|B ({product})^-1|", f"x for a given error of the constraint, {theorem}", F)
    found.add("layer_bare", "1/eps", "y for a given error of the constraint that jumps: |D^-1|", small)
    found.add("layer_thickness", "eps", "length of the initial layer", thickness)
    return found


def _at(length: float, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> tuple[float, ...]:
    D_inverse = inverse(D)
    fast = D_inverse @ C @ B
    values = np.linalg.eigvals(fast).real
    slowest = float(np.min(values)) * np.sign(length)
    constants: list[float] = []
    for matrix, right in ((B @ D_inverse @ C, np.eye(B.shape[0])), (fast, D_inverse)):
        if slowest <= 0.0:
            constants += [np.inf, np.inf]
            continue
        tau, powers = short_times(-matrix, length)
        sizes, forced = norm(powers), norm(powers @ right)
        constants += [float(np.max(sizes)), float(np.sum(pieces(forced[:-1], forced[1:], np.diff(tau))))]
    thickness = 1.0 / slowest if slowest > 0.0 else np.inf
    F = float(norm(B @ inverse(C @ B)))
    return *constants, F, float(norm(D_inverse)), thickness


@dataclass(frozen=True)
class InitialLayer:
    """The part of a solution that dies out in the initial layer, to leading order, Wijckmans section 4.4.

    Attributes
    ----------
    x0 : numpy.ndarray
        The start of the solution without the layer, a0(0) = (I - P) x(0) - F q(0).
    alpha, beta : numpy.ndarray
        What is added to it in x and in y at the start.
    rate : numpy.ndarray
        The matrix D^-1 C B with which the layer decays.
    """

    x0: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    rate: np.ndarray
    _to_x: np.ndarray

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """What is left of it in x and in y a time t after the start."""
        beta = exponential(-float(t) * self.rate) @ self.beta
        return self._to_x @ beta, beta


def initial_layer(B: np.ndarray, C: np.ndarray, D: np.ndarray, x0: np.ndarray, q0: np.ndarray) -> InitialLayer:
    """The layer of x' = A x + B y + p, 0 = C x + D y + q with a small D; none if C x(0) + q(0) = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.problem_conditioning.layer import initial_layer
    >>> found = initial_layer(-np.eye(1), np.eye(1), -1e-6 * np.eye(1), np.array([2.0]), np.array([-1.0]))
    >>> print(found.x0, found.alpha, found.beta)
    [1.] [1.] [1000000.]
    """
    P, F = projector(B, C)
    D_inverse = inverse(D)
    error = C @ x0 + q0
    return InitialLayer(x0 - P @ x0 - F @ q0, F @ error, -D_inverse @ error, D_inverse @ C @ B, -F @ D)
