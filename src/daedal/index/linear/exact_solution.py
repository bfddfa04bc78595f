"""The exact solution of A x' + B x = f with constant coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.tabular import Tabular, plural
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.index.linear.functions_of_time import Coefficient, QuasiPolynomial, as_forcing
from daedal.index.linear.rank import TitledTables, combination, numbers

if TYPE_CHECKING:
    from daedal.index.linear.pencil import Pencil

_TOLERANCE, _WORST = 1e-11, 1e-8  # requested relative error, and estimated error above which a warning is issued
_INTERVALS = 400  # maximum number of intervals
_EQUAL = 64  # number of equal intervals at the start, so that short pulses are detected
_LARGEST_CONDITION = 1e3  # condition number of the eigenvectors up to which exponentials are computed from them


def variation_of_constants(
    C: np.ndarray, f: Callable[[float], np.ndarray], start: np.ndarray, t0: float, t: float
) -> np.ndarray:
    """y(t) of y' + C y = f: exp(-C (t - t0)) y(t0) plus the integral of exp(-C (t - s)) f(s).

    The exponential decays within 1/|lambda| of one end of the interval, where lambda is the largest eigenvalue;
    adaptive quadrature that starts with equal intervals may miss this region. The initial grid is therefore geometric
    towards both ends. A ``scipy.integrate.IntegrationWarning`` is issued if the tolerance is not met.
    """
    from scipy.integrate import IntegrationWarning, quad_vec

    if t == t0:
        return start
    eigenvalues, vectors = np.linalg.eig(C)
    exponential = _exponential(C, eigenvalues, vectors)
    length = min(abs(t - t0), 1.0 / max(float(np.max(np.abs(eigenvalues))), np.finfo(float).tiny))
    grid = _grid(t0, t, length)
    size = max(float(np.max(np.abs(f(s)))) for s in grid) * length
    integral, error = quad_vec(
        lambda s: exponential(s - t) @ f(s),
        min(t0, t),
        max(t0, t),
        epsabs=max(_TOLERANCE * size, np.finfo(float).tiny),
        epsrel=_TOLERANCE,
        norm="max",
        limit=_INTERVALS,
        points=grid[1:-1],
    )[:2]
    allowed = _WORST * max(float(np.max(np.abs(integral))), size)
    if not error <= allowed:
        warn(
            (
                f"the integral of f from t = {t0:g} to {t:g} has an estimated error of {error:.2g}, above "
                f"{allowed:.2g}. Remedy: restart, with t0 and x0, where f jumps or changes fast, or define f in "
                "closed form (linear.polynomial, linear.exponential, linear.sine)"
            ),
            IntegrationWarning,
        )
    return exponential(t0 - t) @ start + (integral if t > t0 else -integral)


def _exponential(C: np.ndarray, eigenvalues: np.ndarray, vectors: np.ndarray) -> Callable[[float], np.ndarray]:
    """exp(C s) as a function of s, using eigenvectors if well conditioned."""
    from scipy.linalg import expm

    if np.linalg.cond(vectors) > _LARGEST_CONDITION:
        return lambda s: expm(C * s)
    inverse = np.linalg.inv(vectors)
    return lambda s: ((vectors * np.exp(eigenvalues * s)) @ inverse).real


def _grid(t0: float, t: float, length: float) -> np.ndarray:
    """A grid from t0 to t: equal intervals and, near both ends, intervals that double in length from a smallest one."""
    span = t - t0
    halvings = int(np.ceil(np.log2(abs(span) / length))) if length < abs(span) else 0
    graded = 0.5 ** np.arange(1.0, halvings + 1.0)
    shares = np.unique(np.concatenate([np.linspace(0.0, 1.0, _EQUAL + 1), graded, 1.0 - graded]))
    grid = t0 + span * shares
    return np.concatenate([[t0], grid[1:-1], [t]])


# --- linear constraints on values at one time, in readable form -------------------------------------------------------

_OVERALL = 1e-3  # fraction of the norm of all unknowns used to judge the violation of a constraint
_NEGLIGIBLE = 1e-11  # coefficients of a solved constraint below this value are rounding errors


def solved(W: np.ndarray, g: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve the constraints W x = g for as many unknowns as there are rows, so that rows have few entries.

    Returns rows, values and chosen: the constraints are rows @ x = values, solved for the unknowns `chosen`. W has full
    row rank; `scales`, the sizes of the unknowns, decide which ones are chosen.
    """
    from scipy.linalg import qr

    if not len(W):
        return W, g, np.zeros(0, dtype=int)
    _, pivots = qr(W * scales, mode="r", pivoting=True)
    chosen = np.sort(pivots[: len(W)])
    both = np.linalg.solve(W[:, chosen], np.column_stack([W, g]))
    rows, values = both[:, :-1], both[:, -1]
    rows = np.where(np.abs(rows) * scales < _NEGLIGIBLE * scales[chosen][:, None], 0.0, rows)
    rows[:, chosen] = np.eye(len(W))
    return rows, values, chosen


@dataclass(frozen=True, repr=False)
class Consistency(TitledTables):
    """Whether given initial values are consistent, and the nearest consistent values.

    Attributes
    ----------
    t : float
    given : numpy.ndarray
        The values that were tested.
    constraints, values : numpy.ndarray
        ``constraints @ x = values`` holds for all solutions at time t and is the only condition on them. Each row is
        solved for one unknown.
    violation : numpy.ndarray
        ``constraints @ given - values``.
    consistent : bool
        Whether the violation vanishes up to the tolerance.
    x : numpy.ndarray
        Consistent values: the given ones, projected.
    names : tuple of str

    Examples
    --------
    >>> from daedal import linear
    >>> pencil = linear.Pencil([[1, 0], [0, 0]], [[0, 1], [1, 1]])
    >>> found = pencil.consistent([1.0, 0.0])
    >>> print(found.consistent, found.x)
    False [ 1. -1.]
    """

    t: float
    given: np.ndarray
    constraints: np.ndarray
    values: np.ndarray
    violation: np.ndarray
    consistent: bool
    x: np.ndarray
    names: tuple[str, ...]
    worst: tuple[int, ...]

    def title(self) -> str:
        verdict = "consistent" if self.consistent else f"{plural(len(self.worst), 'constraint')} violated"
        return f"Initial values at t = {self.t:g}: {verdict}"

    def tables(self) -> list[Tabular]:
        rows = [
            (
                combination(row, self.names),
                f"{value:.6g}",
                f"{value + error:.6g}",
                "violated" if i in self.worst else "",
            )
            for i, (row, value, error) in enumerate(zip(self.constraints, self.values, self.violation))
        ]
        if not rows:
            return [Tabular("l", [("there are no constraints: all initial values are consistent",)])]
        return [Tabular("lrrl", rows, ("constraint", "must be", "given", ""))]

    def words(self) -> str:
        """Description of the violated constraints."""
        return "; ".join(
            f"{combination(self.constraints[i], self.names)} = {self.values[i]:.6g} must hold, "
            f"but is {self.values[i] + self.violation[i]:.6g}"
            for i in self.worst
        )

    def require(self, remedy: str) -> None:
        """Raise an error if the values are inconsistent."""
        if not self.consistent:
            raise InconsistentInitialError(
                f"the initial values at t = {self.t:g} are not consistent: {self.words()}. {remedy}",
                self.worst,
                self.violation,
            )


def consistency(
    t: float,
    given: np.ndarray,
    W: np.ndarray,
    g: np.ndarray,
    x: np.ndarray,
    names: Sequence[str],
    scales: np.ndarray,
    tolerance: float,
) -> Consistency:
    """Test given values against W x = g."""
    rows, values, chosen = solved(W, g, scales)
    violation = rows @ given - values
    # the largest of all values, in units of their sizes, provides the scale of values near zero
    overall = max(np.max(np.abs(given) / scales), np.max(np.abs(values) / scales[chosen], initial=0.0))
    size = np.abs(rows) @ np.abs(given) + np.abs(values) + _OVERALL * overall * scales[chosen]
    relative = np.abs(violation) / np.maximum(size, np.finfo(float).tiny)
    worst = tuple(int(i) for i in np.argsort(-relative, kind="stable") if relative[i] > tolerance)
    return Consistency(t, given, rows, values, violation, not worst, x, tuple(names), worst)


# --- the exact solution of A x' + B x = f with constant coefficients --------------------------------------------------

_APPEARS = 1e-9  # fraction of the largest coefficient above which a derivative counts as present in a solution


class LinearSolution(TitledTables):
    """The solution of ``A x' + B x = f`` as a function of t. Created by :meth:`daedal.linear.Pencil.solution`.

    With the Weierstrass form, x = Q y: the finite part is y1(t) = exp(-C (t - t0)) y1(t0) plus an integral, in closed
    form if f is a :class:`QuasiPolynomial`, otherwise by adaptive quadrature; the infinite part is y2 = f2 - N f2' +
    N^2 f2'' - ... (Brenan, Campbell and Petzold, (2.3.6)), with no freedom.

    Attributes
    ----------
    pencil : Pencil
    f : QuasiPolynomial or Coefficient
        The right-hand side with its derivatives.
    t0 : float
    x0 : numpy.ndarray
        The value at t0.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal import linear
    >>> pencil = linear.Pencil([[1, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    >>> x = pencil.solution(linear.sine([0, 0, 1]))
    >>> print(x(0.5).round(4), x.derivative(0.5).round(4))
    [-0.8776  0.4794 -0.4794] [ 0.4794  0.8776 -0.8776]
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
        """x' at one time, array (n,), or at several, array (n, number of times)."""
        return self._at(t, self._rate)

    def finite(self, t: float) -> np.ndarray:
        """The component of x(t) in the finite subspace, which depends on the initial values."""
        return self.form.Q[:, : self.form.n_finite] @ self._memory(float(t))

    def infinite(self, t: float) -> np.ndarray:
        """The component of x(t) determined by f and its derivatives at the same time."""
        return self.form.Q[:, self.form.n_finite :] @ infinite_part(self.form, self.f, float(t))

    @property
    def variable_indices(self) -> tuple[int, ...]:
        """The index of each unknown: k if its solution contains derivatives of f up to order k - 1, 0 if only integrals
        of f."""
        return _last_nonzero(self._powers(), 1, len(self.form.P))

    @property
    def derivatives_needed(self) -> tuple[int, ...]:
        """For each equation, the number of derivatives of its right-hand side in the solution; -1 if it only enters
        integrals."""
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
        """The finite part y1 at t."""
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
                    ("with memory", f"{form.n_finite} of {len(form.P)}, {how}; {numbers(self.pencil.eigenvalues)}"),
                    ("from derivatives", plural(max(form.index - 1, 0), "derivative") + " of f at most"),
                ],
            ),
            Tabular(
                "lrr",
                [(name, k, f"{v:.6g}") for name, k, v in zip(self.pencil.names, self.variable_indices, self.x0)],
                ("unknown", "its index", f"value at t = {self.t0:g}"),
            ),
        ]


def _last_nonzero(matrices: list[np.ndarray], axis: int, count: int) -> tuple[int, ...]:
    """For each row (axis 1) or column (axis 0) the number, from 1, of the last matrix in which it is nonzero; or 0."""
    size = max((np.max(np.abs(matrix), initial=0.0) for matrix in matrices), default=0.0)
    present = [np.max(np.abs(matrix), axis=axis, initial=0.0) > _APPEARS * size for matrix in matrices]
    return tuple(max((k + 1 for k, row in enumerate(present) if row[i]), default=0) for i in range(count))


def infinite_part(form: Any, f: Any, t: float, order: int = 0) -> np.ndarray:
    """y2 or one of its derivatives: f2 - N f2' + N^2 f2'' - ..., (2.3.6)."""
    P2 = form.P[form.n_finite :]
    total = np.zeros(len(P2))
    for i in reversed(range(form.index)):
        total = P2 @ f.derivative(t, i + order) - form.N @ total
    return total


def _closed(C: np.ndarray, f: QuasiPolynomial, start: np.ndarray, t0: float, span: float) -> np.ndarray:
    """y(t0 + span) for y' + C y = f with f = H w and w' = S w, by one matrix exponential."""
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
    """Whether initial values satisfy y2 of the infinite part, and their projection, which preserves y1."""
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
        raise InvalidProblemError(f"x0 must be a vector of length {n}: {error}") from None
    if array.shape != (n,):
        raise InvalidProblemError(f"x0 must be a vector of length {n}, but its shape is {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InvalidProblemError(f"x0 must have finite entries, got {array}")
    return array


def solve_constant(pencil: Pencil, f: Any, x0: Any, t0: float, derivatives: Any, tolerance: float) -> LinearSolution:
    """The solution with the initial values x0, which must be consistent; with y1(t0) = 0 if x0 is None."""
    pencil.require_regular("the solution")
    forcing = as_forcing(f, len(pencil.A), derivatives)
    form = pencil.weierstrass()
    if x0 is None:
        return LinearSolution(pencil, forcing, float(t0), np.zeros(form.n_finite))
    start = start_of(pencil, x0, forcing, float(t0), tolerance)
    start.require("`pencil.consistent(x0, f)` returns consistent values nearby")
    return LinearSolution(pencil, forcing, float(t0), np.linalg.inv(form.Q)[: form.n_finite] @ start.x)
