"""The result of an integration."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.tabular import FunctionTable, plural
from daedal.errors import InvalidProblemError
from daedal.events.table import EventTable
from daedal.problems.checks import check_real
from daedal.solution.quantities import (
    NamedValues,
    Quantity,
    Tabulated,
    check_within,
    no_dense_output,
    row_named,
    values_and_slopes,
)
from daedal.solution.status import Status

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Statistics:
    """Counters of a run, as attributes or by name: ``stats["steps"]``.

    ``residual_evaluations`` counts every call, those for difference Jacobians (``jacobian_residual_evaluations``)
    included. ``first_use`` is the part of ``seconds`` spent once per process: imports, tracing, and generating or
    loading machine code.

    Examples
    --------
    >>> import daedal
    >>> stats = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0]).stats
    >>> stats.steps == stats["steps"], stats.nfev == stats.residual_evaluations
    (True, True)
    """

    steps: int = 0
    rejected: int = 0
    residual_evaluations: int = 0
    jacobian_residual_evaluations: int = 0
    jacobian_evaluations: int = 0
    factorisations: int = 0
    newton_iterations: int = 0
    newton_failures: int = 0
    error_test_failures: int = 0
    linear_iterations: int = 0
    linear_failures: int = 0
    preconditioner_solves: int = 0
    event_evaluations: int = 0
    seconds: float = 0.0
    first_use: float = 0.0

    @property
    def nfev(self) -> int:
        """`residual_evaluations` under SciPy's name."""
        return self.residual_evaluations

    @property
    def njev(self) -> int:
        """`jacobian_evaluations` under SciPy's name."""
        return self.jacobian_evaluations

    @property
    def nlu(self) -> int:
        """`factorisations` under SciPy's name."""
        return self.factorisations

    def __getitem__(self, key: str) -> Any:
        if key not in {f.name for f in fields(self)}:
            raise KeyError(key)
        return getattr(self, key)

    def keys(self) -> list[str]:
        """Names of the counters."""
        return [f.name for f in fields(self)]


@dataclass(frozen=True)
class History:
    """End point, step size and order of every accepted step.

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], method="dassl")
    >>> history = sol.history
    >>> print(history.t[-1], history.h.size == sol.stats.steps, history.order.max() <= 5)
    1.0 True True
    """

    t: np.ndarray
    h: np.ndarray
    order: np.ndarray


@dataclass(frozen=True)
class DenseOutput:
    """The polynomials of all steps, in Newton form about the end points."""

    t0: float
    ends: np.ndarray
    orders: np.ndarray
    starts: np.ndarray
    psi: np.ndarray
    coefficients: np.ndarray
    t_end: float | None = None  # end of the solution, if it is before the end of the last step

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the solution, smaller end first."""
        end = float(self.ends[-1]) if self.t_end is None else self.t_end
        return min(self.t0, end), max(self.t0, end)

    def evaluate(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and derivatives, each (len(times), n)."""
        from daedal.kernels.interpolation import piecewise_polynomial

        forward = bool(self.ends[-1] >= self.t0)
        order = np.argsort(times if forward else -times, kind="stable")
        y = np.empty((times.size, self.coefficients.shape[1]))
        yp = np.empty_like(y)
        piecewise_polynomial(
            times[order], self.ends, self.starts, self.orders, self.psi, self.coefficients, forward, y, yp
        )
        result, slope = np.empty_like(y), np.empty_like(yp)
        result[order], slope[order] = y, yp
        return result, slope

    def evaluate_steps(self, times: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and derivatives at `times`, from the polynomials of given steps."""
        from daedal.kernels.interpolation import polynomials_of_steps

        y = np.empty((times.size, self.coefficients.shape[1]))
        yp = np.empty_like(y)
        polynomials_of_steps(times, steps, self.ends, self.starts, self.orders, self.psi, self.coefficients, y, yp)
        return y, yp


@dataclass(repr=False)
class Solution(Tabulated):
    """The result of :func:`daedal.solve`.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
        The output times: `t_eval`, or every step.
    y, yp : numpy.ndarray, shape (n, nt)
        Values and derivatives at these times.
    z : numpy.ndarray
        The algebraic variables of a semi-explicit problem, the last rows of `y`.
    success : bool
        Whether the end of the interval or a terminal event was reached.
    status : Status
        0 ``"finished"``, 1 ``"event"``, -1 ``"failed"`` or -2 ``"interrupted"``: compares equal to the number, as in
        SciPy, and to the word, which is ``status.reason``.
    message : str
        Description of how the run ended.
    stats : Statistics
        Steps, evaluations, failures and seconds.
    drift : dict or None
        Largest constraint residual over the output points (semi-explicit: key ``"constraint"``).
    events : EventTable
        Events with their times and states: a table of :class:`EventRecord`. ``t_events`` holds the times for each
        event, as in SciPy.
    nfev, njev, nlu : int
        Counts under SciPy's names: evaluations of the residual and of Jacobians, factorisations.
    history : History or None
        End point, step size and order of every step (kept with dense output).
    names : tuple of str
        Names of the rows of `y`.
    functions : dict
        How each function of the problem was evaluated.
    sensitivities : FirstOrderSensitivities or None
        Derivatives with respect to parameters, if requested; see :meth:`sensitivity`.

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], names=["x"])
    >>> print(f"{sol['x'][-1]:.4f} {sol(0.5)[0]:.4f}", sol.status, sol.nfev > 0)
    0.3679 0.6065 finished True
    """

    t: np.ndarray
    y: np.ndarray
    yp: np.ndarray
    success: bool
    status: Status
    message: str
    stats: Statistics
    names: tuple[str, ...]
    method: str = ""
    drift: dict[str, float] | None = None
    events: Any = ()
    history: History | None = None
    dense: DenseOutput | None = None
    n_differential: int | None = None
    functions: FunctionTable = field(default_factory=FunctionTable)
    sensitivities: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.events, EventTable):
            self.events = EventTable(self.events, {None: self.names})

    @property
    def z(self) -> np.ndarray:
        """The algebraic variables of a semi-explicit problem."""
        if self.n_differential is None:
            raise AttributeError("only the solution of a SemiExplicitDAE has z")
        return self.y[self.n_differential :]

    def __call__(self, t: ArrayLike, derivative: bool = False) -> Any:
        """Dense output: the solution (or its derivative) at `t`, shape (n,) for a number, (n, len(t)) for an array.

        Its rows have names: ``sol(t)["x"]``, ``sol(t)["x'"]``.
        """
        values = self.values(t, derivative)
        return values if derivative else NamedValues.of(values, lambda name: row_named(self._named_at(t, values), name))

    def values(self, t: ArrayLike, derivative: bool = False) -> np.ndarray:
        """The dense output as a plain array."""
        if self.dense is None:
            raise no_dense_output()
        times = check_real(t, "t", "be a number or a vector")
        flat = np.atleast_1d(times)
        if flat.ndim != 1:
            raise InvalidProblemError(f"t must be a number or a vector, got shape {times.shape}")
        self.check_times(flat)
        values, slopes = self.dense.evaluate(flat)
        result = (slopes if derivative else values).T
        return result[:, 0].copy() if times.ndim == 0 else np.ascontiguousarray(result)

    def check_times(self, times: np.ndarray) -> None:
        """Check that times lie in the interval of the solution."""
        assert self.dense is not None
        check_within(times, self.dense.interval)

    def quantities(self, t: Any = None) -> list[Quantity]:
        """Variables and their derivatives, at the output points or at the times `t`."""
        if t is None:
            return values_and_slopes(self.names, lambda: self.y, lambda: self.yp)
        times = np.atleast_1d(check_real(t, "t", "be a number or a vector"))
        return self._named_at(times, self.values(times))

    def _named_at(self, t: Any, values: np.ndarray) -> list[Quantity]:
        return values_and_slopes(self.names, lambda: values, lambda: self.values(t, derivative=True))

    def plot(self, *args: Any, **options: Any) -> Any:
        """Plot the solution; see :func:`daedal.viz.plot_solution`."""
        from daedal.viz import plot_solution

        return plot_solution(self, *args, **options)

    def animate(self, path: str | Path | None = None, drawing: Any = None, **options: Any) -> Any:
        """Animate the motion: a player in a notebook, or a page (.html) or picture (.gif).

        See :func:`daedal.viz.animate`.
        """
        from daedal.viz import animate

        return animate(self, path, drawing, **options)

    def studio(self, path: Any = "studio.html", problem: Any = None, **options: Any):
        """Write a live page that recomputes the motion, with sliders for parameters and start values.

        Parameters
        ----------
        path : path
            The file, ending in ``.html``.
        problem : object, optional
            The solved problem; optional for mechanical systems.
        **options
            See :func:`daedal.studio`.

        Examples
        --------
        >>> import daedal
        >>> decay = daedal.ODE(lambda t, y, p: [-p["rate"] * y[0]], 1, params={"rate": 1.0})
        >>> daedal.solve(decay, (0.0, 3.0), [1.0]).studio("decay.html", decay).name
        'decay.html'
        """
        from daedal.exchange.studio import studio_of

        return studio_of(self, problem, path, **options)

    def summary(self) -> list[tuple[str, str]]:
        """The rows of the summary table of a solution."""
        run = self._run_in_words()
        # residuals before projection, whose names consist of several words, are listed only on request
        drift = ", ".join(f"{name} {size:.1e}" for name, size in (self.drift or {}).items() if name.isalpha())
        return [
            ("status", str(self.status)),
            ("time", run["time"]),
            ("method", self.method),
            ("steps", run["steps"]),
            ("evaluations", run["evaluations"]),
            *([("drift", drift)] if drift else []),
            ("Jacobians", f"{self.stats.jacobian_evaluations}"),
            ("seconds", run["seconds"]),
            *self.functions.summary(),
        ]

    @property
    def _n_stated(self) -> int:
        """Number of variables of the problem as given by the user."""
        return self.y.shape[0]

    @property
    def title(self) -> str:
        """Title of the solution."""
        return f"Solution of {plural(self._n_stated, 'variable')}"


@dataclass(frozen=True)
class SecondOrderState:
    """x and its derivatives at given times; derivatives that do not occur in the equations are zero.

    Examples
    --------
    >>> import daedal
    >>> oscillator = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0]], 1)
    >>> state = daedal.solve(oscillator, (0.0, 1.0), ([1.0], [0.0])).at(0.5)
    >>> print(state.x.round(4), state.xp.round(4), state.xpp.round(4))
    [0.8776] [-0.4794] [-0.8776]
    """

    t: Any
    x: np.ndarray
    xp: np.ndarray
    xpp: np.ndarray


class SecondOrderSolution(Solution):
    """The solution of a :class:`SecondOrderDAE`.

    Attributes
    ----------
    x, xp, xpp : numpy.ndarray, shape (n, nt)
        The variables and those of their derivatives that occur in the equations; the others are zero.
    y : numpy.ndarray
        x, then x' of the variables of order 2, as used in the error test; `yp` is its derivative.
    order : numpy.ndarray, shape (n,)
        The order of the highest derivative of each variable that occurs in the equations.
    source : numpy.ndarray
        Row j of `y` is variable i with i = source[j] < n, or the derivative of variable source[j] - n.

    Examples
    --------
    >>> import daedal
    >>> oscillator = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0]], 1)
    >>> sol = daedal.solve(oscillator, (0.0, 1.0), ([1.0], [0.0]))
    >>> print(f"{sol.x[0, -1]:.4f} {sol.xp[0, -1]:.4f} {sol.xpp[0, -1]:.4f}")
    0.5403 -0.8415 -0.5403
    """

    def __init__(self, *, order: np.ndarray, source: np.ndarray, **fields: Any) -> None:
        self.order, self.source = order, source
        super().__init__(**fields)

    def _split(self, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n, first = self.order.size, self.order == 1
        values, slopes = (np.zeros((2 * n, *y.shape[1:])) for _ in range(2))
        values[self.source], slopes[self.source] = y, yp
        x, xp, slope, xpp = values[:n], values[n:], slopes[:n], slopes[n:]
        xp[first] = slope[first]
        return x, xp, xpp

    def split(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, x' and x'' at output point i."""
        return self._split(self.y[:, i], self.yp[:, i])

    @property
    def x(self) -> np.ndarray:
        """The variables, shape (n, nt)."""
        return self._split(self.y, self.yp)[0]

    @property
    def xp(self) -> np.ndarray:
        """First derivatives, shape (n, nt)."""
        return self._split(self.y, self.yp)[1]

    @property
    def xpp(self) -> np.ndarray:
        """Second derivatives, shape (n, nt)."""
        return self._split(self.y, self.yp)[2]

    @property
    def _n_stated(self) -> int:
        return self.order.size

    def at(self, t: ArrayLike) -> SecondOrderState:
        """The dense output at `t`, as x, x' and x''."""
        return SecondOrderState(t, *self._split(self(t), self(t, derivative=True)))
