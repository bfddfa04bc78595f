"""Invariants of first-order problems: accepted steps and output are projected onto their values at the start.

Along a solution c(t, y(t)) is constant (BCP section 1.3.2). The algebraic equations of a problem of index 1 are kept
together with the invariants, so that a projection does not violate them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError, NotFiniteError, Unevaluable
from daedal.initial.variable_kinds import algebraic_variables
from daedal.kernels.functions import real_array, store_matrix
from daedal.problems import ODE, ImplicitDAE, MassMatrixDAE, Quasilinear, SemiExplicitDAE
from daedal.problems.compile import last_argument, with_numbers
from daedal.symbolic import Untraceable
from daedal.symbolic.derivative import directional, jacobian, sparsity
from daedal.symbolic.tracing.function import SwitchedParams, TracedFunction, as_stated
from daedal.symbolic.tracing.tracer import Tracer

_MOST_ROWS = 100  # number of algebraic equations up to which they are projected together with the invariants
_CONSTANT = 1e-6  # rate of an invariant along the given slope, relative to its terms, up to which it is constant
_ROUNDING = 1e-13  # round-off of an invariant, relative to its terms
_SHORT = 1e-6  # difference of t for the partial derivative, relative to the interval
_CONSTANT_OF_SLOPES = 0.01  # like _CONSTANT, along the computed slopes of a DAE, which are less accurate
_ROUGH = 1e-3  # like _CONSTANT, if the partial derivative with respect to t is a difference quotient
_MOST_POINTS = 9  # maximum number of points of a solution at which invariants are checked


class _Equations:
    """Invariants of the stacked unknowns, followed by the algebraic equations with the given numbers."""

    def __init__(self, problem: Any, rows: np.ndarray):
        self.problem, self.rows = problem, rows
        self.function = as_stated(problem.invariants)
        self.split = problem.n_y if isinstance(problem, SemiExplicitDAE) else None
        self.residual = as_stated(problem.implicit().residual)

    def __call__(self, t, y, *params):
        state = (y,) if self.split is None else (y[: self.split], y[self.split :])
        last = last_argument(self.function, *params) if params else ()
        values = np.ravel(np.asarray(_given(self.function(t, *(x.copy() for x in state), *last))))
        if not self.rows.size:
            return values
        last = last_argument(self.residual, *params) if params else ()
        residual = np.asarray(self.residual(t, y, np.zeros(y.size), *last))
        return np.concatenate([values, residual[self.rows]])


def _given(values: Any) -> Any:
    if values is None:
        raise InvalidProblemError(
            "invariants returned None; it must return a number or an array (is a return missing?)"
        )
    return values


def _last(function: Any, params: Any) -> tuple:
    """The parameters as the last argument of a function, if there are any."""
    return () if params is None else last_argument(function, params)


def _plain(params: Any) -> Any:
    """The parameters of the user's functions."""
    return params.given if isinstance(params, SwitchedParams) else params


class Invariants:
    """Invariants and algebraic equations preserved by every step, with derivatives, as machine code if possible."""

    def __init__(self, problem: ImplicitDAE | SemiExplicitDAE):
        if isinstance(problem.params, SwitchedParams):
            problem = with_numbers(problem, problem.params.given)
        self.problem, self.n = problem, problem.n
        rows = algebraic_rows(problem)
        self.rows = rows if rows.size <= _MOST_ROWS else rows[:0]
        self.function: Any = _Equations(problem, self.rows)
        self.derivative: Any = None
        self._in_time: Any = None
        self._is_current: Callable[[Any], bool] = lambda params: True
        self._trace(problem)

    def _trace(self, problem: Any):
        """Replace the functions by machine code, with exact derivatives, if they can be traced."""
        with suppress(Untraceable):
            tracer = Tracer(problem, {"y": self.n, "rates": self.n})
            y, rates, split = tracer.symbols("y"), tracer.symbols("rates"), self.function.split
            parts = [tracer.trace(self.function.function, [y] if split is None else [y[:split], y[split:]], None)]
            nodes = [*parts[0].nodes]
            if self.rows.size:
                parts.append(tracer.trace(problem.implicit().residual, [y, rates], (self.n,)))
                nodes += [parts[1].nodes[i] for i in self.rows]
            for part in parts:
                tracer.result.dependencies.add(part.dependencies)
            traced = tracer.stacked("invariants", self.function, ("y",), nodes, parts)
            if traced is None:
                return
            rows = jacobian(tracer.graph, traced.nodes, tracer.nodes("y"))
            matrix = np.array([[row.get(j, tracer.graph.zero) for j in range(self.n)] for row in rows])
            in_time = directional(tracer.graph, traced.nodes, {tracer.t.node: tracer.graph.one})
            self.derivative = tracer.derivative("invariants_by_y", traced, ("y",), lambda: matrix, (0,))
            self._in_time = tracer.derivative("invariants_by_t", traced, ("y",), lambda: in_time, (0,))
            if self.derivative is not None:
                self.function = tracer.combined["invariants"]
                self._is_current = tracer.finished(problem).is_current

    def is_current(self, params: Any) -> bool:
        """Whether the values that the functions read from outside are unchanged since they were traced."""
        return self._is_current(_plain(params))

    def at(self, t: float, y: np.ndarray, params: Any) -> np.ndarray:
        """The invariants and algebraic equations at a point, checked."""
        params = _plain(params)
        try:
            given = self.function(t, y.copy(), *_last(self.function, params))
            values = real_array(given, "invariants", "real numbers")
        except Unevaluable as error:
            raise NotFiniteError(f"invariants cannot be evaluated at t = {t:g}: {error}".rstrip(": ")) from error
        if not np.isfinite(values).all():
            i = int(np.flatnonzero(~np.isfinite(values))[0])
            raise NotFiniteError(f"invariants are not finite at t = {t:g}: number {i} is {values[i]}")
        return np.array(values, dtype=float)

    def start(self, t: float, y: np.ndarray, yp: np.ndarray, params: Any, span: tuple[float, float]) -> np.ndarray:
        """The values at the start, after a check that the invariants do not change along the solution there."""
        params = _plain(params)
        values, changing = self.at(t, y, params), ""
        with suppress(NotFiniteError, ArithmeticError):  # t + dt may be beyond the domain
            changing = self._changing(t, y, yp, params, _SHORT * abs(span[1] - span[0]), _CONSTANT)
        if changing:
            raise InvalidProblemError(changing)
        return values

    def along(self, times: np.ndarray, y: np.ndarray, yp: np.ndarray, params: Any) -> str:
        """An invariant that changes along the computed solution, in words; empty if there is none."""
        dt, slope, params = _SHORT * abs(times[-1] - times[0]), self._rate(), _plain(params)
        for k in np.unique(np.linspace(0, times.size - 1, min(times.size, _MOST_POINTS)).astype(int))[1:]:
            with suppress(Exception):  # the run is over; exceptions must not discard its results
                rate = yp[:, k] if slope is None else np.asarray(slope(times[k], y[:, k].copy(), *_last(slope, params)))
                limit = _CONSTANT_OF_SLOPES if slope is None else _CONSTANT
                found = self._changing(times[k], y[:, k], rate, params, dt, limit)
                if found:
                    return found
        return ""

    def _rate(self) -> Any:
        """The user's function f of an ordinary differential equation y' = f."""
        return as_stated(self.problem.f) if isinstance(self.problem, ODE) else None

    def _changing(self, t: float, y: np.ndarray, yp: np.ndarray, params: Any, dt: float, limit: float) -> str:
        """An invariant with a derivative c_t + c_y y' that does not vanish, in words."""
        params = _plain(params)
        values, slopes = self.at(t, y, params), self.slopes(t, y, params)
        products = slopes * yp
        if self._in_time is not None:
            in_time = self._in_time(t, y, *_last(self._in_time, params))
        else:
            in_time, limit = (self.at(t + dt, y, params) - self.at(t - dt, y, params)) / (2.0 * dt), max(limit, _ROUGH)
        rate, terms = products.sum(axis=1) + in_time, np.abs(products).sum(axis=1) + np.abs(in_time)
        rounding = np.abs(slopes * y).sum(axis=1) + np.abs(values)
        wrong = np.abs(rate) > limit * terms + _ROUNDING * rounding / abs(dt)
        wrong[values.size - self.rows.size :] = False
        if wrong.any():
            wrong &= self._follows_from_slopes(t, y, slopes)
        if not wrong.any():
            return ""
        i = int(np.flatnonzero(wrong)[0])
        return (
            f"invariants: number {i} is not constant along solutions; its derivative at t = {t:.6g} is {rate[i]:.3g}. "
            "Remedy: correct the function, or omit invariants"
        )

    def _follows_from_slopes(self, t: float, y: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Mask of the equations in differential variables only, whose derivatives are known at the start."""
        if not self.rows.size and algebraic_rows(self.problem).size == 0 and isinstance(self.problem, Quasilinear):
            return np.ones(slopes.shape[0], dtype=bool)
        algebraic = algebraic_variables(self.problem.implicit(), t, y, np.zeros(y.size))
        return ~np.any(slopes[:, algebraic] != 0.0, axis=1)

    def slopes(self, t: float, y: np.ndarray, params: Any) -> np.ndarray:
        """dc/dy, by central differences if the functions were not traced."""
        if isinstance(self.derivative, TracedFunction):
            return self.derivative(t, y, *_last(self.derivative, params))
        steps = np.cbrt(np.finfo(float).eps) * np.maximum(np.abs(y), 1e-3 * np.max(np.abs(y), initial=1e-3))
        columns = []
        for j in range(y.size):
            up, down = y.copy(), y.copy()
            up[j] += steps[j]
            down[j] -= steps[j]
            columns.append((self.at(t, up, params) - self.at(t, down, params)) / (up[j] - down[j]))
        return np.array(columns).T


def algebraic_rows(problem: Any) -> np.ndarray:
    """The equations known to contain no derivatives."""
    if isinstance(problem, SemiExplicitDAE):
        return np.arange(problem.n_y, problem.n)
    if isinstance(problem, MassMatrixDAE) and not callable(problem.mass):
        return np.flatnonzero(np.asarray(abs(problem.mass).sum(axis=1)).reshape(-1) == 0.0)
    trace = getattr(problem.residual, "trace", None)
    if trace is None or type(problem) is not ImplicitDAE:
        return np.zeros(0, dtype=int)
    traced, _ = trace
    rates = [traced.graph.argument("yp", k) for k in range(problem.n)]
    return np.array([i for i, row in enumerate(sparsity(traced.graph, traced.nodes, rates)) if not row], dtype=int)


class InvariantProjection:
    """The projection of one prepared run: a hook for methods, and the projection of output."""

    def __init__(self, invariants: Invariants, m: int, params: Any, rtol: np.ndarray, atol: np.ndarray):
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.level_set import LEVEL_SET, level_set_hook
        from daedal.kernels.records import Record

        n, params = invariants.n, _plain(params)
        self.invariants, self._params, self.bridge = invariants, params, Bridge()
        derivative = invariants.derivative
        if derivative is None:

            def derivative(t, y, *last):
                return invariants.slopes(t, y, *(last or (None,)))

        values = self.bridge.function(invariants.function, (n,), (m,), _store_values(m), params)
        matrix = self.bridge.function(derivative, (n,), (m, n), store_matrix("derivatives of invariants", m, n), params)
        self.record = Record.allocated(
            LEVEL_SET, n=n, m=m, values=values, derivatives=matrix, rtol=np.array(rtol), atol=np.array(atol)
        )
        self.hook: tuple[Any, Any] = level_set_hook, self.record

    def begin(self, wanted: np.ndarray, params: Any):
        """Set the values to keep."""
        self.bridge.replace(self._params, _plain(params))
        self.bridge.refresh()
        self.record.array("wanted")[:] = wanted

    def onto(self, times: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
        """Project the columns of y where possible; also returns the largest remaining deviation."""
        from daedal.kernels.level_set import project_rows

        points, statuses = np.ascontiguousarray(y.T), np.zeros(times.size, dtype=np.int64)
        drift = project_rows(self.record.address, np.ascontiguousarray(times, dtype=float), points, statuses)
        self.bridge.exception = None  # the run is over; exceptions must not discard its results
        return np.ascontiguousarray(points.T), drift


def _store_values(m: int):
    """A function that checks the values of m invariants and stores them."""

    def store(result, target):
        values = np.ravel(real_array(result, "invariants", f"{m} real numbers"))
        if values.size != m:
            raise InvalidProblemError(f"invariants returned {values.size} numbers, but {m} at the start")
        target[:] = values

    return store
