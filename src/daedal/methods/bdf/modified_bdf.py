r"""Modified BDF: multistep formulas for second-order DAEs that keep multipliers accurate when the step size changes.

References
----------
J. Sand: On implicit Euler for high-order high-index DAEs, Appl. Numer. Math. 42 (2002) 411-424; L. Wunderlich:
Numerical solution of second order differential-algebraic equations, diploma thesis, TU Berlin, 2005.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method
from daedal.methods.run import Run, positions_of
from daedal.methods.second_order_methods import SecondOrderWorkspace, set_fixed_tolerances, start_of
from daedal.methods.task import Equations, Outcome, Task
from daedal.problems.checks import check_real, check_vector

_FAMILIES = {"direct": 0, "sand": 1, "ordinary": 2}
_CONTROLLERS = ("default", "thesis")
_HIGHEST = {"direct": 5, "sand": 2, "ordinary": 2}
_SHARE = 0.03  # fraction of the tolerance allowed for one step, since errors accumulate
_SHARPEST = 3e-9  # smallest tolerance: velocities are differences of positions, whose round-off they amplify
_TINY = float(np.finfo(float).tiny)
_GROWTH = np.array([1.0, 4.0, 2.0, 2.0, 2.0, 1.75])  # largest step size ratio with which orders 1 to 5 are stable


@dataclass(frozen=True, eq=False)
class ModifiedBDF(Method):
    r"""Multistep method for :math:`F(t, x, \dot x, \ddot x) = 0`, including mechanisms in index-3 form.

    :math:`\ddot x_n` is the second derivative of the polynomial of degree k + 1 through :math:`x_n, \dots, x_{n-k-1}`,
    which is of order k for positions, velocities and multipliers on every grid. BDF for the first-order form
    differentiates twice in succession and causes O(1) errors in the multipliers after every change of the step size.

    Parameters
    ----------
    max_order : int, optional
        Highest order, 1 to 5 (2 for the families "sand" and "ordinary").
    family : {"direct", "sand", "ordinary"}, optional
        "direct" as above; "sand": the modified BDF of orders 1 and 2 of Sand and Wunderlich, whose formula for
        :math:`\ddot x` depends on how the past velocities were computed; "ordinary": BDF twice, for comparison, with
        `grid` or a fixed step only.
    controller : {"default", "thesis"}
        "thesis" follows Wunderlich's rules exactly: error estimate by extrapolation of degree 3 of all variables, step
        doubled after every two successes. Implies family "sand".
    linear_solver, preconditioner
        As for :class:`DASSL`.
    error_test : {"auto", "all"}
        "all" includes multipliers in the error test of the controller "thesis", as does "auto", since the thesis does.
    grid : array, optional
        All step end times, starting with t0: no step size or error control. For studies.
    orders : int or sequence of int, optional
        With `grid`: the order of each step; `max_order` by default. The first steps have lower orders until enough data
        is available.
    starting_values : "accurate", array or callable, optional
        With `grid` or a fixed step: y at the first max_order + 2 times, as an array (n, m), as a function of t, or
        computed accurately, so that all steps have the full order. y is (q, v, ...) for a mechanism, and x with the
        derivatives of the variables of order 2 for a SecondOrderDAE.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("planar_pendulum")
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, method=daedal.methods.ModifiedBDF(), rtol=1e-6)
    >>> sol.success, sol.drift["position"] < 1e-12
    (True, True)
    """

    max_order: int | None = None
    family: str | None = None
    controller: str = "default"
    linear_solver: Any = "auto"
    preconditioner: Any = None
    error_test: str = "auto"
    grid: Any = None
    orders: Any = None
    starting_values: Any = None

    name = "modified_bdf"
    needs = ("second_order",)
    stiff = True

    def __post_init__(self):
        if self.controller not in _CONTROLLERS:
            raise InvalidProblemError(f"controller must be 'default' or 'thesis', got {self.controller!r}")
        if self.family is None:
            object.__setattr__(self, "family", "sand" if self.controller == "thesis" else "direct")
        if self.family not in _FAMILIES:
            raise InvalidProblemError(f"family must be one of {', '.join(map(repr, _FAMILIES))}, got {self.family!r}")
        if self.controller == "thesis" and self.family != "sand":
            raise InvalidProblemError("controller='thesis' requires family='sand'")
        highest = _HIGHEST[self.family]
        if self.max_order is None:
            object.__setattr__(self, "max_order", highest)
        if isinstance(self.max_order, bool) or self.max_order not in range(1, highest + 1):
            raise InvalidProblemError(
                f"max_order of the family '{self.family}' must be 1 to {highest}, got {self.max_order!r}"
            )
        if self.error_test not in ("auto", "all"):
            raise InvalidProblemError(f"error_test must be 'auto' or 'all', got {self.error_test!r}")
        if self.orders is not None and self.grid is None:
            raise InvalidProblemError("orders requires grid")
        if isinstance(self.starting_values, str) and self.starting_values != "accurate":
            raise InvalidProblemError(
                f"starting_values must be 'accurate', an array or a function, got {self.starting_values!r}"
            )

    def prepare(self, equations: Equations) -> Run:
        """Prepare the equations of a step with their linear solver, and storage for the history."""
        workspace = SecondOrderWorkspace(
            equations.second_order,
            hook=equations.hook,
            linear_solver=self.linear_solver,
            preconditioner=self.preconditioner,
        )
        return _ModifiedBDFRun(self, equations, workspace)

    def grid_orders(self, steps: int) -> np.ndarray:
        """The order of every step of a grid."""
        given = self.max_order if self.orders is None else self.orders
        orders = check_real(given, "orders", "hold the order of every step").astype(np.int64).reshape(-1)
        if orders.size == 1:
            orders = np.full(steps, orders[0])
        if orders.size != steps or orders.min() < 1 or orders.max() > self.max_order:
            raise InvalidProblemError(f"orders must hold 1 to {self.max_order} for each of the {steps} steps")
        return orders


class _ModifiedBDFRun(Run):
    """A run of modified BDF: with order and step size control, with constant steps, or on a grid."""

    def __init__(self, method: ModifiedBDF, equations: Equations, workspace: SecondOrderWorkspace):
        from daedal.kernels.records import Record
        from daedal.methods.bdf.modified_bdf_step import MODIFIED_BDF, modified_bdf_step

        form, thesis = equations.second_order, method.controller == "thesis"
        record = Record.allocated(
            MODIFIED_BDF,
            linear=workspace.linear.address,
            second_order=workspace.second_order,
            family=_FAMILIES[str(method.family)],
            thesis=thesis,
            max_order=method.max_order,
            growth=_GROWTH,
            start_order=form.start_order if method.family == "direct" else 1,
            points=3,
            k=method.max_order if thesis else 2,
            matrix_needed=1,
            c2_matrix=1.0,
            initial_phase=1,
        )
        record.array("velocity_order")[:] = 3
        self._thesis, self._form = thesis, form
        self._past: tuple[np.ndarray, np.ndarray] | None = None
        self._accurate: Run | None = None
        super().__init__(
            method,
            equations,
            step=modified_bdf_step,
            record=record,
            restored=True,
            workspace=workspace,
            start_order=0 if thesis else 2,
            positions=positions_of(equations.mechanism, equations.n),
        )

    def integrate(self, task: Task) -> Outcome:
        """Integrate; prescribed steps start from given history values."""
        method, fixed = self.method, task.fixed_step
        self._past, self._grid = None, None
        if method.grid is not None:
            if fixed is not None:
                raise InvalidProblemError("pass either grid or fixed_step, not both")
            self._grid = self._checked_grid(task)
            self._orders = method.grid_orders(self._grid.size - 1)
            task = replace(task, fixed_step=abs(self._grid[1] - self._grid[0]))
            times = self._grid
        elif fixed is not None:
            count = round((task.t_span[1] - task.t_span[0]) / (task.sign * fixed))
            times = task.t_span[0] + task.sign * fixed * np.arange(count + 1)
        if task.fixed_step is not None:
            values = self._given_past(task, times)
            self._past = None if values is None else (times[: len(values)], values)
        return super().integrate(task)

    def open(self, task: Task) -> None:
        """Begin a task. Variable steps need no history."""
        if task.fixed_step is None:
            if self.method.family == "ordinary":
                raise InvalidProblemError("the family 'ordinary' has no step size control: pass grid or fixed_step")
            self._past, self._grid = None, None
        super().open(task)

    def load(self, task: Task) -> None:
        """Load x, x' and x'' at the start, the grid, and the history."""
        own, t0 = self.own, task.t_span[0]
        x, xp, xpp = start_of(task, self._form)
        own.array("dd")[:3] = x, xp, 0.5 * xpp
        own.array("nodes")[:3] = t0
        own.array("velocities")[0] = xp
        own.array("last_xpp")[:] = xpp
        own.array("past_t")[0], own.array("past_y")[0] = t0, task.y0
        own["share"] = np.clip(_SHARPEST / self._sharpest_tolerance(task), _SHARE, 1.0)
        if self._grid is not None:
            own["n_grid"], own["grid"], own["grid_orders"] = (
                self._grid.size,
                self._grid.ctypes.data,
                self._orders.ctypes.data,
            )
            self.record["h"], self.record["last_step"] = self._grid[1] - self._grid[0], self._grid.size - 1
        elif task.fixed_step is not None:
            own["k"] = self.method.max_order
        if task.fixed_step is not None:
            set_fixed_tolerances(task, self._rtol, self._atol)
        if self._past is not None:
            self._load_past(*self._past)

    def _sharpest_tolerance(self, task: Task) -> float:
        """The smallest tolerance; only atol counts for variables of order 1, which may be velocities near zero."""
        form, order = self._form, np.asarray(self._form.problem.order)
        rtol, atol = (np.broadcast_to(given, form.n) for given in (task.rtol, task.atol))
        first = order[form.source % order.size] == 1
        return max(np.min(np.where(first, atol, np.maximum(rtol, atol))), _TINY)

    def _load_past(self, times: np.ndarray, values: np.ndarray) -> None:
        """Start after given values: the recurrence of :func:`modified_bdf_formulas.update_differences`."""
        own, order = self.own, np.asarray(self._form.problem.order)
        dd, nodes, velocities = own.array("dd"), own.array("nodes"), own.array("velocities")
        rows = nodes.size
        for taken, (t, y) in enumerate(zip(times[1:], values[1:], strict=True)):
            x, xp = self._form.split(y)
            above, points = x, min(int(own["points"]) + 1, rows)
            for j in range(points):
                old = dd[j].copy()
                dd[j] = np.where(j <= taken + 1 + order, above, 0.0)
                above = (dd[j] - old) / (t - nodes[j]) if j < points - 1 else above
            nodes[1:], nodes[0] = nodes[:-1].copy(), t
            velocities[1:], velocities[0] = velocities[:-1].copy(), xp
            own["points"] = points
        own["taken"] = self.record["steps"] = times.size - 1
        self.record["t"] = times[-1]
        self._y[:] = values[-1]
        self._yp[:] = np.gradient(values, times, axis=0)[-1]

    def start_points(self, task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Write the given values to the output."""
        if self._past is None:
            return None
        times, values = self._past
        return times[1:], values[1:], np.gradient(values, times, axis=0)[1:]

    def orders_of(self, degrees: np.ndarray) -> np.ndarray:
        """The order k of each step, whose polynomial has degree k + 1, or k + 3 with the controller of the thesis."""
        return np.where(degrees > 3, degrees - 3, degrees - 1) if self._thesis else degrees - 1

    def _checked_grid(self, task: Task) -> np.ndarray:
        grid = check_real(self.method.grid, "grid", "hold increasing times").reshape(-1).copy()
        t0, t1 = task.t_span
        if grid.size < 2 or grid[0] != t0 or grid[-1] != t1 or not np.all(task.sign * np.diff(grid) > 0.0):
            raise InvalidProblemError(f"grid must be monotone from {t0:g} to {t1:g}")
        return grid

    def _given_past(self, task: Task, times: np.ndarray) -> np.ndarray | None:
        """Given or computed y at `times`, shape (m, n); None if the method is self-starting."""
        given, count = self.method.starting_values, min(int(self.method.max_order or 1) + 2, times.size - 1)
        if given is None or count < 2:
            return None
        times = times[:count]
        if callable(given):
            return np.array([check_vector(given(t), task.n, f"starting_values({t:g})") for t in times])
        if isinstance(given, str):
            return self._accurate_past(task, times)
        values = check_real(given, "starting_values", f"have the shape ({task.n}, m)")
        if values.ndim != 2 or values.shape[0] != task.n or not 2 <= values.shape[1] <= times.size:
            raise InvalidProblemError(
                f"starting_values must have the shape ({task.n}, m), m = 2 to {times.size}; got {values.shape}"
            )
        return np.ascontiguousarray(values.T)

    def _accurate_past(self, task: Task, times: np.ndarray) -> np.ndarray:
        from daedal.methods.implicit_rk.collocation import Collocation

        if self._accurate is None:
            self._accurate = Collocation("radau", stages=5).prepare(self.equations)
        size = float(np.max(np.abs(task.y0))) or 1.0
        outcome = self._accurate.integrate(
            replace(
                task,
                rtol=np.full(task.n, 1e-12),
                atol=np.full(task.n, 1e-13 * size),
                t_eval=times,
                t_span=(float(times[0]), float(times[-1])),
                t_stop=float(times[-1]),
                switching=None,
                dense=False,
                first_step=None,
                fixed_step=None,
                max_step=abs(float(times[1] - times[0])),
            )
        )
        if outcome.exception is not None:
            raise outcome.exception
        if outcome.y.shape[1] != times.size:
            raise InvalidProblemError("accurate starting values could not be computed; pass starting_values")
        return outcome.y.T.copy()
