r"""Explicit Runge-Kutta methods, for y' = f(t, y) and for formulations that are ordinary differential equations.

A method is defined by its tableau: a class that derives from :class:`ExplicitRungeKutta` and has one supports single
runs, lanes, GPUs, dense output and sensitivities. :func:`explicit_tableau` builds the tableau from textbook
coefficients.

References
----------
E. Hairer, S. P. Norsett, G. Wanner: Solving Ordinary Differential Equations I, 2nd ed., Springer 1993, sections II.1,
II.4 to II.6, II.10 and IV.2 of volume II (the stiffness test); J. R. Dormand, P. J. Prince, J. Comp. Appl. Math. 6
(1980); P. J. Prince, J. R. Dormand, J. Comp. Appl. Math. 7 (1981).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import NORMS, Method
from daedal.methods.explicit import dormand_prince
from daedal.methods.run import OneStepRun
from daedal.methods.tableau import ROUNDOFF, RungeKuttaTableau
from daedal.methods.task import Equations


@dataclass(frozen=True)
class Tableau:
    """Coefficients of an explicit method whose last stage is the slope at the end of the step (FSAL).

    ``inner(theta)`` are the weights of the slopes in y(t_0 + theta h), a polynomial of degree `degree`. With a second
    error estimate `e3`, the error is :math:`e^2 / \\sqrt{e^2 + 0.01 e_3^2}` (HNW II.10). `a` and `c` may include
    additional stages for dense output. `stability` is the size of h lambda at which the method becomes unstable on the
    negative real axis, rounded down; `stiffness_check` the size from which steps on a mechanism are checked for
    stiffness. On the imaginary axis DOPRI5 is unstable above |h lambda| = 1.0, with a growth of 0.0003 per step at 1.2.
    If vibrations limit its steps, |h lambda| is 1.3 to 1.8; on the car axis, whose vibration it must resolve, it is
    below 1.2. DOP853 is stable up to 5.96 but hardly damps; at a tolerance of 1e-7 the errors of small vibrations limit
    |h lambda| to 3. All values are measured.
    """

    a: Any
    b: Any
    c: Any
    e: Any
    order: int
    inner: Any
    e3: Any = None
    degree: int = 4
    stability: float = np.inf
    stiffness_check: float = np.inf

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The coefficients as arrays, and the weights at the points that define the polynomial, last point first."""
        s, count = len(self.b), len(self.a)
        a = np.zeros((count, count))
        for i, row in enumerate(self.a):
            a[i, : len(row)] = row
        inner = np.array([self.inner(1.0 - k / self.degree) for k in range(1, self.degree)])
        vectors = {"c": self.c, "e": self.e, "e3": np.zeros(s) if self.e3 is None else self.e3}
        rows = {"a": np.ascontiguousarray(a[:s, :s]), "a_dense": np.ascontiguousarray(a[s:]), "inner": inner}
        return rows | {name: np.array(values) for name, values in vectors.items()}


_DOPRI5_B = dormand_prince.as_floats(dormand_prince.DOPRI5_B)
_DOPRI5_D = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)


def _dopri5_inner(theta: float) -> np.ndarray:
    """The continuous extension of order 4 (HNW II.6)."""
    b, d = np.array(_DOPRI5_B), np.array(_DOPRI5_D)
    first, last = np.eye(7)[0], np.eye(7)[6]
    bulge = 2.0 * b - first - last
    return theta * (b + (1.0 - theta) * ((first - b) + theta * (bulge + (1.0 - theta) * d)))


_DOPRI5 = Tableau(
    a=tuple(map(dormand_prince.as_floats, dormand_prince.DOPRI5_A)),
    b=_DOPRI5_B,
    c=dormand_prince.as_floats(dormand_prince.DOPRI5_C),
    e=(71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    order=5,
    inner=_dopri5_inner,
    stability=3.25,
    stiffness_check=1.2,
)


def _row(entries: dormand_prince.Row, length: int) -> tuple[float, ...]:
    return tuple(entries.get(j, 0.0) for j in range(length))


_DOP853_B = _row(dormand_prince.A[12], 13)


def _dop853_inner(theta: float) -> np.ndarray:
    """The continuous extension of order 7 (HNW II.10): a polynomial alternating in theta and 1 - theta."""
    b, first, last = np.zeros(16), np.eye(16)[0], np.eye(16)[12]
    b[:13] = _DOP853_B
    total = np.zeros(16)
    for i, row in enumerate([*(_row(d, 16) for d in reversed(dormand_prince.D)), 2.0 * b - first - last, first - b, b]):
        total = (total + np.array(row)) * (1.0 - theta if i % 2 else theta)
    return total


_DOP853 = Tableau(
    a=tuple(_row(row, i) for i, row in enumerate(dormand_prince.A)),
    b=_DOP853_B,
    c=dormand_prince.C,
    e=_row(dormand_prince.E5, 13),
    e3=tuple(b - dormand_prince.B3.get(j, 0.0) for j, b in enumerate(_DOP853_B)),
    order=8,
    inner=_dop853_inner,
    degree=7,
    stability=6.1,
    stiffness_check=2.5,
)


def explicit_tableau(
    formula: RungeKuttaTableau,
    order: int,
    *,
    dense: Sequence[Sequence[float]] | None = None,
    stability: float = np.inf,
    stiffness_check: float = np.inf,
) -> Tableau:
    r"""The tableau of an explicit method from textbook coefficients.

    Parameters
    ----------
    formula : RungeKuttaTableau
        With `embedded` weights for the error estimate; without them the method supports constant steps only. If its
        last stage is not :math:`f(t_1, y_1)`, that slope is added.
    order : int
        The order of the method.
    dense : sequence of sequences, optional
        :math:`y(t_0 + \theta h) \approx y_0 + h \sum_i b_i(\theta) k_i`, where row i holds the coefficients of
        :math:`\theta, \theta^2, \dots` in :math:`b_i`. Cubic Hermite interpolation if not given.
    stability, stiffness_check : float
        See :class:`Tableau`; only for methods whose last two stages are at the end of the step.

    Examples
    --------
    >>> from daedal.methods import RungeKuttaTableau
    >>> heun = explicit_tableau(RungeKuttaTableau([[], [1]], ["1/2", "1/2"], embedded=[1, 0]), order=2)
    >>> heun.a, heun.e, heun.degree
    (((), (1.0,), (0.5, 0.5)), (-0.5, 0.5, 0.0), 3)
    """
    if not formula.explicit:
        raise InvalidProblemError(
            f"{formula.name}: not explicit; an implicit method is daedal.methods.ImplicitRungeKutta"
        )
    rows, b, c = [row[:i] for i, row in enumerate(formula.a)], list(formula.b), list(formula.c)
    e = [x - y for x, y in zip(b, formula.embedded or b, strict=True)]
    if b[-1] != 0 or tuple(rows[-1]) != tuple(b[:-1]):
        rows, b, e, c = [*rows, tuple(b)], [*b, 0], [*e, 0], [*c, 1]
    weights = tuple(map(float, b))
    inner, degree = _hermite(weights), 3
    if dense is not None:
        inner, degree = _extension(formula.name, weights, dense), len(dense[0])
    return Tableau(
        a=tuple(tuple(map(float, row)) for row in rows),
        b=weights,
        c=tuple(map(float, c)),
        e=tuple(map(float, e)),
        order=order,
        inner=inner,
        degree=degree,
        stability=stability,
        stiffness_check=stiffness_check,
    )


def _hermite(weights: Sequence[float]) -> Callable[[float], np.ndarray]:
    """Cubic Hermite interpolation from the first and last slopes."""
    b, first, last = np.array(weights), np.eye(len(weights))[0], np.eye(len(weights))[-1]

    def inner(theta: float) -> np.ndarray:
        return theta * b + theta * (theta - 1.0) * ((1.0 - 2.0 * theta) * b + (theta - 1.0) * first + theta * last)

    return inner


def _extension(name: str, weights: Sequence[float], dense: Sequence[Sequence[float]]) -> Callable[[float], np.ndarray]:
    """Coefficients of a continuous extension; if the last row is missing, the slope at the end is unused."""
    given = np.array([[float(x) for x in row] for row in dense])
    rows = np.zeros((len(weights), given.shape[1]))
    if given.shape[0] > len(weights):
        raise InvalidProblemError(f"{name}: dense has {given.shape[0]} rows for {len(weights)} slopes")
    rows[: len(given)] = given
    if np.abs(rows.sum(axis=1) - weights).max() > ROUNDOFF or abs(rows[:, 0].sum() - 1.0) > ROUNDOFF:
        raise InvalidProblemError(f"{name}: dense does not interpolate y_0, its slope, and y_1 at theta = 1")
    powers = np.arange(1, rows.shape[1] + 1)
    return lambda theta: rows @ theta**powers


_RK4 = explicit_tableau(
    RungeKuttaTableau([[], ["1/2"], [0, "1/2"], [0, 0, 1]], ["1/6", "1/3", "1/3", "1/6"], name="RK4"), order=4
)


@dataclass(frozen=True)
class ExplicitRungeKutta(Method):
    """An explicit Runge-Kutta method defined by its tableau.

    Parameters
    ----------
    norm : {"rms", "max"}
        Norm of the error: root mean square, or largest component.
    stop_when_stiff : bool or int
        Stop the run if steps seem limited by stability; a number is the count of such steps required.

    Examples
    --------
    >>> import daedal
    >>> from daedal.methods.explicit.runge_kutta import ExplicitRungeKutta, explicit_tableau
    >>> ralston = daedal.methods.RungeKuttaTableau([[], ["2/3"]], ["1/4", "3/4"], embedded=[1, 0], name="Ralston")
    >>> class Ralston(ExplicitRungeKutta):
    ...     name = "ralston"
    ...     tableau = explicit_tableau(ralston, order=2)
    >>> sol = daedal.solve(daedal.ODE(lambda t, y: -y, 1), (0.0, 1.0), [1.0], method="ralston")
    >>> print(sol.method, abs(sol.y[0, -1] - 0.36788) < 1e-4)
    Ralston, order 2 True
    """

    norm: str = "rms"
    stop_when_stiff: bool | int = False

    needs = ("rate",)
    explicit = True
    tableau: ClassVar[Tableau]

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "tableau" in cls.__dict__:
            cls.controlled = any(cls.tableau.e)

    def __post_init__(self):
        if self.norm not in NORMS:
            raise InvalidProblemError(f"norm must be one of {', '.join(map(repr, NORMS))}, got {self.norm!r}")

    @property
    def max_order(self) -> int:
        """The order of the method."""
        return self.tableau.order

    @property
    def stiffness_check(self) -> float:
        """The size of h lambda above which steps on a mechanism are checked for a stability limit."""
        return self.tableau.stiffness_check

    @property
    def title(self) -> str:
        """Description of the method in solutions."""
        return f"{type(self).__name__}, order {self.max_order}"

    def require_error_estimate(self, fixed_step: float | None) -> None:
        """Raise for a run with error control if there are no embedded weights."""
        if fixed_step is None and not self.controlled:
            raise InvalidProblemError(f"{type(self).__name__} has no error estimate: pass fixed_step, or use DOPRI5")

    def prepare(self, equations: Equations) -> OneStepRun:
        """Store the tableau in a record, and allocate the stages."""
        from daedal.kernels.records import Record
        from daedal.methods.explicit.runge_kutta_step import TABLEAU, runge_kutta_accept, runge_kutta_attempt

        tableau, arrays = self.tableau, self.tableau.arrays
        count = len(tableau.a)
        record = Record.allocated(
            TABLEAU,
            n=equations.n,
            stages=len(tableau.b),
            dense_stages=count - len(tableau.b),
            degree=tableau.degree,
            two_errors=tableau.e3 is not None,
            stiff_limit=tableau.stability if equations.mechanism is None else tableau.stiffness_check,
            maximum_norm=self.norm == "max",
            **arrays,
        )
        return OneStepRun(
            self,
            equations,
            attempt=runge_kutta_attempt,
            accept=runge_kutta_accept,
            order=self.max_order,
            record=record,
            stop_when_stiff=bool(self.stop_when_stiff),
            stiff_count=1 - int(self.stop_when_stiff),
        )


@dataclass(frozen=True)
class DOPRI5(ExplicitRungeKutta):
    """The method of Dormand and Prince: order 5, error estimate of order 4, dense output of order 4.

    For an :class:`ODE`, and for formulations of mechanisms that are ordinary differential equations: index 1,
    Baumgarte, coordinate projection, state space.

    Parameters
    ----------
    norm : {"rms", "max"}
        Norm of the error: root mean square, or largest component.
    stop_when_stiff : bool or int
        Stop the run if steps seem limited by stability; a number is the count of such steps required.

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve(daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, 1.0), [1.0], method=daedal.methods.DOPRI5())
    >>> print(f"{sol.y[0, -1]:.5f}", sol.stats.steps)
    0.36788 7
    """

    name = "dopri5"
    tableau = _DOPRI5


@dataclass(frozen=True)
class DOP853(ExplicitRungeKutta):
    """The Dormand-Prince method of order 8 as in Hairer's DOP853: dense output of order 7.

    The error estimate combines two embedded methods, of order 5 and 3, and behaves like order 7. A step takes twelve
    evaluations, and three more if dense output is used. DOP853 solves the same equations as :class:`DOPRI5`, with
    fewer evaluations at tolerances below about 1e-7.

    Parameters
    ----------
    norm : {"rms", "max"}
        Norm of the error: root mean square, or largest component.
    stop_when_stiff : bool or int
        Stop the run if steps seem limited by stability; a number is the count of such steps required.

    Examples
    --------
    >>> import daedal, numpy as np
    >>> problem = daedal.ODE(lambda t, y: [y[1], -y[0]], 2)
    >>> sol = daedal.solve(problem, (0.0, 20.0 * np.pi), [1.0, 0.0], method="dop853", rtol=1e-12, atol=1e-12)
    >>> print(sol.stats.steps < 400, abs(sol.y[0, -1] - 1.0) < 1e-10)
    True True
    """

    name = "dop853"
    tableau = _DOP853


@dataclass(frozen=True)
class RK4(ExplicitRungeKutta):
    """The classical method of order 4, for constant steps.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ODE(lambda t, y: [-y[0]], 1)
    >>> sol = daedal.solve(decay, (0.0, 1.0), [1.0], method=daedal.methods.RK4(), fixed_step=0.1)
    >>> print(f"{sol.y[0, -1]:.7f}", sol.stats.steps)
    0.3678798 10
    """

    name = "rk4"
    tableau = _RK4
