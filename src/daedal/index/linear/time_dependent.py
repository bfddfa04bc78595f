"""Linear systems with time-dependent coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np

from daedal.common.tabular import plural
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.index.linear.coefficient_array import (
    Completion,
    DerivativeArray,
    InitialValues,
    Solvability,
    array_matrices,
    balanced_array,
    determine_rates,
)
from daedal.index.linear.exact_solution import Consistency, consistency
from daedal.index.linear.functions_of_time import Coefficient, as_forcing
from daedal.index.linear.pencil import Pencil
from daedal.index.linear.rank import TOLERANCE, check_names, rank_decision, require_clear, scale_pencil
from daedal.index.linear.strangeness import (
    StandardCanonicalForm,
    Strangeness,
    StrangenessFree,
    standard_canonical_form,
    strangeness_passes,
)

_LARGEST_ARRAY = 800  # maximum number of unknowns of a derivative array, since its ranks are expensive
_FIRST_COUNT = 8  # initial number of Taylor coefficients in the search for the strangeness index
_MET = 1e-8  # relative residual up to which equations count as satisfied
_STEP = 1e-3  # increment for derivatives of constraints, in units of the local time
_NODES = ((-2, 1.0 / 12.0), (-1, -2.0 / 3.0), (1, 2.0 / 3.0), (2, -1.0 / 12.0))
_INEXACT = 1e-7  # tolerance for ranks if derivatives of coefficients are interpolated


class LocalSeries(NamedTuple):
    """Taylor coefficients at one time, in balanced units of equations, unknowns and time."""

    A: np.ndarray
    B: np.ndarray
    f: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    unit: float  # unit of time


class TimeVarying:
    r"""The system :math:`A(t) x' + B(t) x = f(t)`.

    Nothing is computed at construction; methods evaluate the system at one or several times. Derivatives of the
    coefficients are computed by calling the functions with Taylor series, which works for functions composed of NumPy
    functions and operators; otherwise they are interpolated. They can also be given.

    Parameters
    ----------
    A, B : array_like or callable
        Matrices, or functions of t.
    f : QuasiPolynomial, array_like or callable, optional
        The right-hand side; 0 by default.
    n : int or (int, int), optional
        The number of unknowns, or the numbers of equations and unknowns; needed if A and B are functions.
    names : sequence of str, optional
        Names of the unknowns.
    A_derivatives, B_derivatives, f_derivatives : sequence of callables, or callable, optional
        The derivatives: one function of t for each order, or a single function of t and the order.
    tolerance : float
        See :func:`daedal.linear.rank_decision`.

    Examples
    --------
    A system whose pencil is singular at all times, but which has exactly one solution (Brenan, Campbell and Petzold,
    example 2.4.1):

    >>> import numpy as np
    >>> from daedal.index import linear
    >>> system = linear.TimeVarying(lambda t: [[1, t], [0, 0]], lambda t: [[0, 0], [1, t]], n=2)
    >>> system.pencil(0.5).regular, system.index(0.5)
    (False, 2)
    """

    def __init__(
        self,
        A: Any,
        B: Any,
        f: Any = None,
        *,
        n: int | tuple[int, int] | None = None,
        names: Sequence[str] | None = None,
        A_derivatives: Any = None,
        B_derivatives: Any = None,
        f_derivatives: Any = None,
        tolerance: float = TOLERANCE,
    ):
        self.shape = _shape(A, B, n)
        self.A = Coefficient(A, self.shape, "A", derivatives=A_derivatives)
        self.B = Coefficient(B, self.shape, "B", derivatives=B_derivatives)
        self.f = as_forcing(f, self.shape[0], f_derivatives)
        self.names = check_names(names, self.shape[1])
        self.given_tolerance = tolerance

    @property
    def n(self) -> int:
        """The number of unknowns."""
        return self.shape[1]

    def tolerance(self, t: float) -> float:
        """The tolerance for ranks at t, which is larger if derivatives of coefficients are interpolated."""
        exact = self.A.exact(t) and self.B.exact(t)
        return self.given_tolerance if exact else max(self.given_tolerance, _INEXACT)

    def pencil(self, t: float) -> Pencil:
        """The pencil with the coefficients frozen at t; its index is the local index."""
        return Pencil(self.A(t), self.B(t), names=self.names, tolerance=self.given_tolerance)

    def series(self, t: float, count: int, *, with_f: bool = False) -> LocalSeries:
        """Taylor coefficients in units in which they are at most about 1."""
        A, B = self.A.taylor(t, count), self.B.taylor(t, count)
        scaled = scale_pencil(A[0], B[0])
        unit = min(1.0 / scaled.time, _variation(A), _variation(B))
        rows, columns = scaled.rows, scaled.columns
        powers = unit ** np.arange(float(count))[:, None, None]
        factors = rows[:, None] * columns
        f = self.f.taylor(t, count) * rows * powers[:, :, 0] if with_f else np.zeros((count, self.shape[0]))
        return LocalSeries(A * factors / unit * powers, B * factors * powers, f, rows, columns, unit)

    def array(self, t: float, j: int) -> DerivativeArray:
        """The equations and their first j - 1 derivatives at t, in units in which the entries are near 1.

        Examples
        --------
        >>> from daedal.index import linear
        >>> system = linear.TimeVarying([[0, 0], [1, 0]], [[1, 0], [0, 1]])  # x = f1, x' + y = f2
        >>> [system.array(0.0, j).one_full for j in (1, 2, 3)]
        [False, False, True]
        """
        if j * max(self.shape) > _LARGEST_ARRAY:
            raise InvalidProblemError(
                f"the derivative array of size {j} has {j * self.n} unknowns, more than {_LARGEST_ARRAY}, and smaller "
                f"arrays do not determine x' at t = {t:g}. Remedy: use `strangeness`, which does not need the array "
                "and determines whether there is a solution"
            )
        local = self.series(t, j, with_f=True)
        return DerivativeArray(t, j, *balanced_array(local.A, local.B, local.f, j)[:3], self.tolerance(t))

    def index(self, t: float | Sequence[float] | np.ndarray) -> int | None:
        """The index: the smallest number such that the array of the next size is 1-full with a constant rank.

        Brenan, Campbell and Petzold, proposition 2.4.2. A varying rank is detected only if several times are given.
        None if no array of a size up to n + 1 is 1-full, in which case the system is not solvable.

        Parameters
        ----------
        t : float or sequence of floats

        Raises
        ------
        UnclearRankError
            If the rank of an array cannot be decided numerically.
        """
        times = np.atleast_1d(np.asarray(t, dtype=float))
        for j in range(1, self.n + 2):
            arrays = [self.array(time, j) for time in times]
            require_clear([decision for array in arrays for decision in (array.rank, array.tail)], "the index")
            if determine_rates(arrays):
                return j - 1
        return None

    def solvability(self, times: Sequence[float] | np.ndarray) -> Solvability:
        """Test at given times whether each right-hand side and consistent initial value have exactly one solution.

        The tested conditions are those of theorems 2.4.6 and 2.4.7 of Brenan, Campbell and Petzold, which are necessary
        and, for smooth coefficients, sufficient. Both the local index and the index are returned.

        Examples
        --------
        >>> from daedal.index import linear
        >>> system = linear.TimeVarying(lambda t: [[-t, t**2], [-1, t]], [[1, 0], [0, 1]])
        >>> report = system.solvability([0.0, 0.5, 1.0])
        >>> report.solvable, report.regular
        (False, True)
        """
        times = np.atleast_1d(np.asarray(times, dtype=float))
        largest = self.n + 1
        pencils = [self.pencil(t) for t in times]
        arrays = [[self.array(t, j) for j in range(1, largest + 1)] for t in times]
        last = [row[-1] for row in arrays]
        unclear = [d for pencil in pencils for d in pencil.decisions if not d.clear]
        unclear += [d for array in last for d in array.decisions if not d.clear]
        return Solvability(
            times,
            tuple(pencil.index for pencil in pencils),
            tuple(array.rank.rank for array in last),
            tuple(array.one_full for array in last),
            tuple(all(array.full_row_rank for array in row) for row in arrays),
            next((j for j in range(largest) if determine_rates([row[j] for row in arrays])), None),
            tuple(unclear),
        )

    def full_array(self, t: float) -> DerivativeArray:
        """The smallest array at t that determines x'."""
        for j in range(1, self.n + 2):
            array = self.array(t, j)
            require_clear((array.rank, array.tail), "conditions on x and x'")
            if array.one_full:
                return array
        raise InvalidProblemError(
            f"no derivative array at t = {t:g} determines x': the system is not solvable there, see `solvability`"
        )

    def strangeness(self, t: float) -> Strangeness:
        """The strangeness index and the characteristic values at t.

        Raises
        ------
        RankChangeError
            If a rank is not constant near t.

        Examples
        --------
        >>> from daedal.index import linear
        >>> system = linear.TimeVarying([[0, 0], [1, 0]], [[1, 0], [0, 1]])
        >>> system.strangeness(0.0).values
        (CharacteristicValues(r=1, a=0, s=1, d=0, u=1, v=0), CharacteristicValues(r=0, a=2, s=0, d=0, u=0, v=0))
        """
        count, found = _FIRST_COUNT, None
        while found is None:
            local = self.series(t, count)
            found = strangeness_passes(local.A, local.B, self.tolerance(t))
            count *= 2
        values, decisions = found
        return Strangeness(t, len(values) - 1, tuple(values), tuple(decisions))

    def strangeness_free(self, t: float) -> StrangenessFree:
        """The reduced system at t, with the same solutions and strangeness index 0.

        Examples
        --------
        >>> import numpy as np
        >>> from daedal.index import linear
        >>> system = linear.TimeVarying([[0, 0], [1, 0]], [[1, 0], [0, 1]], lambda t: [np.sin(t), 0 * t])
        >>> reduced = system.strangeness_free(0.0)  # x = sin t, y = -cos t
        >>> x, y = np.linalg.solve(reduced.B2, reduced.f2)
        >>> print(reduced.d, reduced.a, f"{abs(x):.3f} {y:.3f}")
        0 2 0.000 -1.000
        """
        m, n = self.shape
        previous = 0  # number of equations without unknowns in the previous array
        for mu in range(min(m, n) + 1):
            local = self.series(t, mu + 1, with_f=True)
            A, B, f, _ = balanced_array(local.A, local.B, local.f, mu + 1)
            tolerance, size = self.tolerance(t), float(np.linalg.norm(B, 2)) or 1.0
            U, s, _ = np.linalg.svd(A)
            first = rank_decision(s, tolerance=tolerance, what=f"the array of size {mu + 1}")
            Z = U[:, first.rank :].T
            U, s, Vt = np.linalg.svd(Z @ B)
            second = rank_decision(
                s, scale=size, tolerance=tolerance, what=f"constraints from the array of size {mu + 1}"
            )
            a = second.rank
            vanishing = len(Z) - a
            v, previous = vanishing - previous, vanishing
            scale = float(np.linalg.norm(local.A[0], 2)) or 1.0
            Z1, s, _ = np.linalg.svd(local.A[0] @ Vt[a:].T)
            third = rank_decision(s, scale=scale, tolerance=tolerance, what="A on the kernel of the constraints")
            d = third.rank
            if d == m - a - v:
                require_clear((first, second, third), "the strangeness-free system")
                Z2, Z1 = (U.T @ Z)[:a], Z1[:, :d].T
                return StrangenessFree(
                    t,
                    mu,
                    Z1 @ local.A[0] * local.unit / local.columns,
                    Z1 @ local.B[0] / local.columns,
                    Z1 @ local.f[0],
                    Z2 @ B / local.columns,
                    Z2 @ f,
                    v,
                    (first, second, third),
                )
        raise InvalidProblemError(
            f"no strangeness-free system was found at t = {t:g}: ranks are not constant near this time"
        )

    def canonical_form(self, t: float) -> StandardCanonicalForm:
        """The standard canonical form near t, as Taylor series.

        Raises
        ------
        RankChangeError
            If a rank is not constant near t.
        InvalidProblemError
            If the system is not solvable near t.
        """
        if self.shape[0] != self.n:
            raise InvalidProblemError("the standard canonical form needs as many equations as unknowns")
        index = self.index(t)
        local = self.series(t, 2 * (self.n if index is None else index) + 6)
        form = standard_canonical_form(t, local.A, local.B, self.tolerance(t))
        require_clear(form.decisions, "the standard canonical form")
        return _in_given_units(form, local)

    def completion(self, t: float, *, stabilisation: float = 0.0) -> Completion:
        """The ordinary differential equation x' = G x + g that follows from the derivative array at t.

        Its solutions include all solutions of the system. Away from these solutions the equation depends on how the
        array is solved: here by least squares, with the operator d/dt + `stabilisation` instead of d/dt.
        """
        array = self.full_array(t)
        j = array.j
        G, g = self._least_squares(t, j, array.rank.rank, stabilisation)
        reference = self._constraint_rows(t, j)
        unit = self.series(t, j).unit
        step = _STEP * (unit if np.isfinite(unit) else 1.0)
        change = np.zeros_like(reference)
        for k, weight in _NODES if len(reference) else ():
            near = self._constraint_rows(t + k * step, j)
            # a basis of the constraints that depends smoothly on t: its product with the transposed reference is I
            change += weight / step * np.linalg.solve(near @ reference.T, near)
        additional = (change + reference @ G) @ reference.T
        return Completion(t, G, g, j, additional)

    def _constraint_rows(self, t: float, j: int) -> np.ndarray:
        """Orthonormal rows that span the rows of W in the constraints W x = g, in original units."""
        W = self.array(t, j).constraints[0] / self.series(t, 1).columns
        return np.linalg.qr(W.T)[0].T

    def _least_squares(self, t: float, j: int, rank: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
        A, B, f = array_matrices(self.A.taylor(t, j), self.B.taylor(t, j), self.f.taylor(t, j), j)
        # Row i: (d/dt + shift)^i of the equations instead of their Taylor coefficients.
        weights = [
            [comb(i, k) * shift ** (i - k) * factorial(k) if k <= i else 0.0 for k in range(j)] for i in range(j)
        ]
        mix = np.kron(np.array(weights), np.eye(self.shape[0]))
        A, B, f = mix @ A, mix @ B, mix @ f
        U, s, Vt = np.linalg.svd(A)
        first = Vt[:rank].T[: self.n] / s[:rank] @ U[:, :rank].T
        return -first @ B, first @ f

    def consistent(self, x0: Any, t: float, *, tolerance: float = 1e-8) -> Consistency:
        """Test initial values at t, and project them onto consistent ones (BCP, theorem 2.4.8).

        Examples
        --------
        >>> import numpy as np
        >>> from daedal.index import linear
        >>> system = linear.TimeVarying([[0, 0], [1, 0]], [[1, 0], [0, 1]], lambda t: [np.sin(t), 0 * t])
        >>> system.consistent([1.0, 1.0], 0.0).x
        array([ 0., -1.])
        """
        given = np.asarray(x0, dtype=float)
        if given.shape != (self.n,) or not np.all(np.isfinite(given)):
            raise InvalidProblemError(f"x0 must be a vector of {self.n} finite numbers")
        array = self.full_array(t)
        columns = self.series(t, 1).columns
        W, g, rest, _ = array.constraints
        if np.any(np.abs(rest) > _MET * max(float(np.max(np.abs(array.f), initial=0.0)), np.finfo(float).tiny)):
            raise InconsistentInitialError(
                f"the right-hand side is contradictory at t = {t:g}: an equation without unknowns is violated by "
                f"{np.max(np.abs(rest)):.3g} in scaled units"
            )
        scaled = given / columns
        x = (scaled - W.T @ (W @ scaled - g)) * columns
        return consistency(t, given, W / columns, g, x, self.names, columns, tolerance)

    def initial_values(
        self, t: float, x: dict[int, float] | None = None, rates: dict[int, float] | None = None
    ) -> InitialValues:
        """x and x' at t from some of their entries.

        The derivative array and the given entries are solved together by least squares (B. Leimkuhler, L. R. Petzold,
        C. W. Gear, SIAM J. Numer. Anal. 28, 1991).

        Parameters
        ----------
        t : float
        x, rates : dict, optional
            Given entries of x and of x': {number of the unknown: value}.
        """
        n, j = self.n, self.full_array(t).j
        local = self.series(t, j, with_f=True)
        A, B, f, unit = balanced_array(local.A, local.B, local.f, j)
        user, values = [], []
        for offset, entries, size in ((0, x or {}, 1.0), (n, rates or {}, local.unit / unit)):
            for i, value in entries.items():
                if not 0 <= i < n:
                    raise InvalidProblemError(f"unknown {i} does not exist: unknowns are numbered from 0 to {n - 1}")
                user.append(np.eye(1, n * (j + 1), offset + i)[0])
                values.append(value * size / local.columns[i])
        matrix = np.vstack([np.hstack([B, A]), *user])
        right = np.concatenate([f, values])
        U, s, Vt = np.linalg.svd(matrix)
        decision = rank_decision(s, tolerance=self.tolerance(t), what="array and given entries")
        require_clear([decision], "the completion of initial values")
        r = decision.rank
        found = Vt[:r].T @ ((U.T @ right)[:r] / s[:r])
        residual = np.abs(matrix @ found - right)
        if np.max(residual, initial=0.0) > _MET * max(float(np.max(np.abs(right), initial=0.0)), np.finfo(float).tiny):
            raise InconsistentInitialError(
                f"the given entries of x and x' at t = {t:g} contradict the equations, by {np.max(residual):.3g} in "
                "scaled units; give fewer of them"
            )
        loose = np.linalg.norm(Vt[r:, : 2 * n], axis=0) > _MET
        labels = [*self.names, *(f"{name}'" for name in self.names)]
        free = tuple(label for label, is_loose in zip(labels, loose) if is_loose)
        return InitialValues(
            t,
            found[:n] * local.columns,
            found[n : 2 * n] * local.columns * unit / local.unit,
            free,
            decision,
            self.names,
        )

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<A(t) x' + B(t) x = f(t): {plural(m, 'equation')}, {plural(n, 'unknown')}>"


def _shape(A: Any, B: Any, n: Any) -> tuple[int, int]:
    for value in (A, B):
        if not callable(value):
            shape = np.shape(value)
            if len(shape) != 2:
                raise InvalidProblemError(f"A and B must be matrices, but one has the shape {shape}")
            return shape[0], shape[1]
    if n is None:
        raise InvalidProblemError("A and B are functions: give `n`, the number of unknowns")
    m, k = (n, n) if isinstance(n, (int, np.integer)) else n
    if m < 1 or k < 1:
        raise InvalidProblemError(f"n must be positive, not {n}")
    return int(m), int(k)


def _variation(X: np.ndarray) -> float:
    """The time in which a coefficient changes by its own size, from its Taylor coefficients."""
    sizes = [float(np.max(np.abs(x))) for x in X]
    times = [(sizes[0] / size) ** (1.0 / k) for k, size in enumerate(sizes) if k and size > 0.0 and sizes[0] > 0.0]
    return min(times, default=np.inf)


def _in_given_units(form: StandardCanonicalForm, local: LocalSeries) -> StandardCanonicalForm:
    """Undo the scaling: with s = (t - t0) / unit, d/ds = unit d/dt."""
    k, unit = form.n_finite, local.unit
    powers = unit ** -np.arange(float(len(form.P)))[:, None, None]
    first = np.concatenate([np.full(k, 1.0 / unit), np.ones(form.P.shape[1] - k)])
    return StandardCanonicalForm(
        form.t,
        form.P * powers * local.rows * first[:, None],
        form.Q * powers * local.columns[:, None],
        form.C * powers / unit,
        form.N * powers * unit,
        form.index,
        form.decisions,
    )
