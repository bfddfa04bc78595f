"""The exact solution of A x' + B x = f with constant coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.coefficients import Coefficient
from daedal.linear.constraints import Consistency, consistency
from daedal.linear.forcing import QuasiPolynomial, as_forcing
from daedal.linear.quadrature import variation_of_constants
from daedal.linear.words import Shown, numbers
from daedal.tabular import Tabular, plural

if TYPE_CHECKING:
    from daedal.linear.pencil import Pencil

_APPEARS = 1e-9  # part of the largest coefficient from which on a derivative counts as appearing in a solution


class LinearSolution(Shown):
    """The solution of ``A x' + B x = f``; a function of t. Made by :meth:`daedal.linear.Pencil.solution`.

    With the Weierstrass form, x = Q y: the finite part is y1(t) = exp(-C (t - t0)) y1(t0) plus an integral, in closed
    form where f is a :class:`QuasiPolynomial` and by adaptive quadrature elsewhere; the infinite part is y2 = f2 - N
    f2' + N^2 f2'' - ... (Brenan, Campbell and Petzold, (2.3.6)), with nothing to choose.

    Attributes
    ----------
    pencil : Pencil
    f : QuasiPolynomial or Coefficient
        The right-hand side with its derivatives.
    t0 : float
    x0 : numpy.ndarray
        The value at t0.
    """

    def __init__(self, pencil: Pencil, f: QuasiPolynomial | Coefficient, t0: float, y1: np.ndarray):
        self.pencil, self.f, self.t0 = pencil, f, t0
        self.form = pencil.weierstrass()
        self._y1 = y1
        self.x0 = self(t0)

    def __call__(self, t: Any) -> np.ndarray:
        """x at one time, array (n,), or at several, array (n, number of times)."""
        return self._at(t, lambda time: self.finite(time) + self.infinite(time))

    def derivative(self, t: Any) -> np.ndarray:
        """x' in the same shapes."""
        return self._at(t, self._rate)

    def finite(self, t: float) -> np.ndarray:
        """The part of x(t) in the finite subspace: the part that has a memory."""
        return self.form.Q[:, : self.form.n_finite] @ self._memory(float(t))

    def infinite(self, t: float) -> np.ndarray:
        """The part of x(t) that f and its derivatives determine at the same time."""
        return self.form.Q[:, self.form.n_finite :] @ infinite_part(self.form, self.f, float(t))

    @property
    def variable_indices(self) -> tuple[int, ...]:
        """The index of each unknown: k if its solution contains f up to the derivative k - 1, 0 if only integrals."""
        return _last_nonzero(self._powers(), 1, len(self.form.P))

    @property
    def derivatives_needed(self) -> tuple[int, ...]:
        """For each equation, how often its right-hand side is differentiated; -1 if it stands under integrals only."""
        return tuple(k - 1 for k in _last_nonzero(self._powers(), 0, len(self.form.P)))

    def _powers(self) -> list[np.ndarray]:
        """Q2 N^i P2 in scaled units: how derivative i of f enters x."""
        form, scaled = self.form, self.pencil.scaled
        k = form.n_finite
        left, right = form.Q[:, k:] / scaled.columns[:, None], form.P[k:] / scaled.rows
        powers = []
        for _ in range(form.index):
            powers.append(left @ right)
            right = form.N @ right * scaled.time
        return powers

    def _at(self, t: Any, function: Any) -> np.ndarray:
        times = np.asarray(t, dtype=float)
        if not np.all(np.isfinite(times)):
            raise InvalidProblemError("t must be finite")
        if times.ndim == 0:
            return function(float(times))
        return np.stack([function(float(time)) for time in times], axis=1)

    def _memory(self, t: float) -> np.ndarray:
        """y1(t)."""
        C, span = self.form.C, t - self.t0
        if C.size == 0:
            return np.zeros(0)
        P1 = self.form.P[: self.form.n_finite]
        if isinstance(self.f, QuasiPolynomial):
            return _closed(C, self.f.times(P1), self._y1, self.t0, span)
        return variation_of_constants(C, lambda s: P1 @ self.f(s), self._y1, self.t0, t)

    def _rate(self, t: float) -> np.ndarray:
        form, k = self.form, self.form.n_finite
        first = form.P[:k] @ self.f(t) - form.C @ self._memory(t)
        return form.Q[:, :k] @ first + form.Q[:, k:] @ infinite_part(form, self.f, t, 1)

    def title(self) -> str:
        return f"Exact solution of A x' + B x = f from t = {self.t0:g}"

    def tables(self) -> list[Tabular]:
        form = self.form
        how = "closed form" if isinstance(self.f, QuasiPolynomial) else "quadrature"
        return [
            Tabular(
                "ll",
                [
                    ("index", str(form.index)),
                    ("with a memory", f"{form.n_finite} of {len(form.P)}, {how}; {numbers(self.pencil.eigenvalues)}"),
                    ("from derivatives", plural(max(form.index - 1, 0), "derivative") + " of f at most"),
                ],
            ),
            Tabular(
                "lrr",
                [(name, k, f"{v:.6g}") for name, k, v in zip(self.pencil.names, self.variable_indices, self.x0)],
                ("unknown", "its index", f"value at t = {self.t0:g}"),
            ),
        ]

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def _last_nonzero(matrices: list[np.ndarray], axis: int, count: int) -> tuple[int, ...]:
    """For each row (axis 1) or column (axis 0) the last matrix, counted from 1, in which it does not vanish."""
    size = max((np.max(np.abs(matrix), initial=0.0) for matrix in matrices), default=0.0)
    present = [np.max(np.abs(matrix), axis=axis, initial=0.0) > _APPEARS * size for matrix in matrices]
    return tuple(max((k + 1 for k, row in enumerate(present) if row[i]), default=0) for i in range(count))


def infinite_part(form: Any, f: Any, t: float, order: int = 0) -> np.ndarray:
    """y2, or a derivative of it: f2 - N f2' + N^2 f2'' - ..., (2.3.6)."""
    P2 = form.P[form.n_finite :]
    total = np.zeros(len(P2))
    for i in reversed(range(form.index)):
        total = P2 @ f.derivative(t, i + order) - form.N @ total
    return total


def _closed(C: np.ndarray, f: QuasiPolynomial, start: np.ndarray, t0: float, span: float) -> np.ndarray:
    """y' + C y = f with f = H w and w' = S w: one exponential of a matrix."""
    from scipy.linalg import expm

    sizes = [power + 1 for _, power, _ in f.terms]
    n, total = len(C), len(C) + sum(sizes)
    matrix, state = np.zeros((total, total), dtype=complex), np.zeros(total, dtype=complex)
    matrix[:n, :n], state[:n] = -C, start
    place = n
    for (vector, power, rate), size in zip(f.terms, sizes):
        block = slice(place, place + size)
        # The states w_p = t^p exp(r t) for p = power, ..., 0 satisfy w_p' = r w_p + p w_(p-1).
        matrix[block, block] = rate * np.eye(size) + np.diag(np.arange(power, 0, -1), k=1)
        matrix[:n, place] = vector
        state[block] = np.exp(rate * t0) * t0 ** np.arange(power, -1.0, -1.0)
        place += size
    return (expm(matrix * span) @ state)[:n].real


def start_of(pencil: Pencil, x0: Any, f: Any, t0: float, tolerance: float) -> Consistency:
    """Hold initial values against the infinite part, and project them along it."""
    form = pencil.weierstrass()
    k = form.n_finite
    given = _vector(x0, len(form.P))
    inverse = np.linalg.inv(form.Q)
    y2 = infinite_part(form, f, t0)
    x = form.Q[:, :k] @ (inverse[:k] @ given) + form.Q[:, k:] @ y2
    return consistency(t0, given, inverse[k:], y2, x, pencil.names, pencil.scaled.columns, tolerance)


def _vector(value: Any, n: int) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"x0 must be a vector of {n} numbers: {error}") from None
    if array.shape != (n,) or not np.all(np.isfinite(array)):
        raise InvalidProblemError(f"x0 must be a vector of {n} finite numbers, but its shape is {array.shape}")
    return array


def solve_constant(pencil: Pencil, f: Any, x0: Any, t0: float, derivatives: Any, tolerance: float) -> LinearSolution:
    """Start the solution at consistent values, or at the particular solution without a finite part."""
    pencil.require_regular("the solution")
    forcing = as_forcing(f, len(pencil.A), derivatives)
    form = pencil.weierstrass()
    if x0 is None:
        return LinearSolution(pencil, forcing, float(t0), np.zeros(form.n_finite))
    start = start_of(pencil, x0, forcing, float(t0), tolerance)
    start.require("`pencil.consistent(x0, f)` has values nearby that are")
    return LinearSolution(pencil, forcing, float(t0), np.linalg.inv(form.Q)[: form.n_finite] @ start.x)
