r"""Modified BDF: multistep formulas for second-order DAEs that do not lose the multipliers when the step changes.

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
from daedal.methods.dassl import Run
from daedal.methods.second_order import (
    SecondOrderWorkspace,
    assembly_of,
    exclude_from_test,
    past_points,
    set_fixed_tolerances,
    start_of,
)
from daedal.methods.task import Outcome, Task
from daedal.problems.checks import check_real, check_vector
from daedal.problems.second_order_form import SecondOrderForm

_FAMILIES = {"direct": 0, "sand": 1, "ordinary": 2}
_CONTROLLERS = ("default", "thesis")
_HIGHEST = {"direct": 5, "sand": 2, "ordinary": 2}
_GROWTH = np.array([1.0, 4.0, 2.0, 2.0, 2.0, 1.75])  # largest ratio of steps with which orders 1 to 5 are stable


@dataclass(frozen=True, eq=False)
class ModifiedBDF:
    r"""Multistep method for :math:`F(t, x, \dot x, \ddot x) = 0`, among them mechanisms in index-3 form.

    :math:`\ddot x_n` is the second derivative of the polynomial of degree k + 1 through
    :math:`x_n, \dots, x_{n-k-1}`, which is of order k for positions, velocities and multipliers on every grid. BDF for
    the first-order form differentiates twice in turn and leaves errors of size one in the multipliers after every
    change of the step.

    Parameters
    ----------
    max_order : int, optional
        Highest order, 1 to 5 (2 for the families "sand" and "ordinary").
    family : {"direct", "sand", "ordinary"}, optional
        "direct" as above; "sand": the modified BDF of orders 1 and 2 of Sand and Wunderlich, whose formula for
        :math:`\ddot x` depends on how the past velocities were computed; "ordinary": BDF twice, for comparison, with
        `grid` or a fixed step only.
    controller : {"default", "thesis"}
        "thesis" follows Wunderlich's rules to the letter: error estimate by extrapolation of degree 3 of all
        variables, step doubled after every two successes. Implies family "sand".
    linear_solver, preconditioner
        As for :class:`DASSL`.
    error_test : {"auto", "all"}
        Whether multipliers take part in the thesis' error test ("auto": they do, as printed).
    grid : array, optional
        All times to step to, from the start on: no step or error control. For studies.
    orders : int or sequence of int, optional
        With `grid`: the order of each step; `max_order` by default. The first steps have lower orders for lack of data.
    starting_values : "accurate", array or callable, optional
        With `grid` or a fixed step: y at the first max_order + 2 times, as an array (n, m), as a function of t, or
        computed accurately, so that all steps have the full order. y is (q, v, ...) for a mechanism, and x with the
        derivatives of the variables of order 2 for a SecondOrderDAE.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("planar_pendulum")
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, method=daedal.ModifiedBDF(), rtol=1e-6)
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
    nonnegative = False
    second_order = True

    def __post_init__(self):
        if self.controller not in _CONTROLLERS:
            raise InvalidProblemError(f"controller must be 'default' or 'thesis', got {self.controller!r}")
        if self.family is None:
            object.__setattr__(self, "family", "sand" if self.controller == "thesis" else "direct")
        if self.family not in _FAMILIES:
            raise InvalidProblemError(f"family must be one of {', '.join(map(repr, _FAMILIES))}, got {self.family!r}")
        if self.controller == "thesis" and self.family != "sand":
            raise InvalidProblemError("the controller of the thesis belongs to the family 'sand'")
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
            raise InvalidProblemError("orders are those of the steps of a grid: give grid as well")
        if isinstance(self.starting_values, str) and self.starting_values != "accurate":
            raise InvalidProblemError(
                f"starting_values must be 'accurate', an array or a function, got {self.starting_values!r}"
            )

    def workspace(self, form: SecondOrderForm) -> SecondOrderWorkspace:
        """What a run needs of a problem."""
        return SecondOrderWorkspace(form, linear_solver=self.linear_solver, preconditioner=self.preconditioner)

    def prepare_tests(self, task: Task, integrator) -> None:
        """Multipliers are left out of the default error test."""
        exclude_from_test(task, integrator)

    def integrate(self, task: Task) -> Outcome:
        """Run with control of order and step size, or on the given grid."""
        if self.grid is not None:
            return _ModifiedBDFRun(self, task, grid=self._checked_grid(task)).to_the_end()
        if self.family == "ordinary":
            raise InvalidProblemError("the family 'ordinary' has no step control: give grid or fixed_step")
        return _ModifiedBDFRun(self, task).to_the_end()

    def integrate_fixed(self, task: Task, h: float) -> Outcome:
        """Constant steps."""
        if self.grid is not None:
            raise InvalidProblemError("give either grid or fixed_step")
        return _ModifiedBDFRun(self, task, fixed=task.sign * h).to_the_end()

    def _checked_grid(self, task: Task) -> np.ndarray:
        grid = check_real(self.grid, "grid", "hold increasing times").reshape(-1)
        t0, t1 = task.t_span
        if grid.size < 2 or grid[0] != t0 or grid[-1] != t1 or not np.all(task.sign * np.diff(grid) > 0.0):
            raise InvalidProblemError(f"grid must lead from {t0:g} to {t1:g} without turning back")
        return grid

    def past(self, task: Task, times: np.ndarray) -> np.ndarray | None:
        """The given or computed y at `times`, shape (m, n); None if the method is to start by itself."""
        given, count = self.starting_values, min(int(self.max_order or 1) + 2, times.size - 1)
        if given is None or count < 2:
            return None
        times = times[:count]
        if callable(given):
            return np.array([check_vector(given(t), task.n, f"starting_values({t:g})") for t in times])
        if isinstance(given, str):
            return self._accurate(task, times)
        values = check_real(given, "starting_values", f"have the shape ({task.n}, m)")
        if values.ndim != 2 or values.shape[0] != task.n or not 2 <= values.shape[1] <= times.size:
            raise InvalidProblemError(
                f"starting_values must have the shape ({task.n}, m), m = 2 to {times.size}; got {values.shape}"
            )
        return np.ascontiguousarray(values.T)

    def _accurate(self, task: Task, times: np.ndarray) -> np.ndarray:
        from daedal.methods.collocation import Collocation

        method = Collocation("radau", stages=5)
        workspace: Any = task.workspace
        size = float(np.max(np.abs(task.y0))) or 1.0
        outcome = method.integrate(
            replace(
                task,
                workspace=method.workspace(workspace.problem),
                rtol=np.full(task.n, 1e-12),
                atol=np.full(task.n, 1e-13 * size),
                t_eval=times,
                t_span=(float(times[0]), float(times[-1])),
                t_stop=float(times[-1]),
                switching=None,
                dense=False,
                first_step=None,
                max_step=abs(float(times[1] - times[0])),
            )
        )
        if outcome.exception is not None:
            raise outcome.exception
        if outcome.y.shape[1] != times.size:
            raise InvalidProblemError("accurate starting values could not be computed; pass starting_values")
        return outcome.y.T.copy()

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
    """A run of modified BDF."""

    def __init__(self, method: ModifiedBDF, task: Task, *, fixed: float | None = None, grid: np.ndarray | None = None):
        super().__init__(method, task)
        from daedal.kernels.records import Arena, Record
        from daedal.methods.modified_bdf_formulas import PAST, ROWS
        from daedal.methods.modified_bdf_run import MODIFIED_BDF, advance_modified_bdf
        from daedal.methods.runge_kutta import first_step

        self.kernel = advance_modified_bdf
        workspace: Any = task.workspace
        form, t0 = workspace.problem, task.t_span[0]
        n = form.problem.n
        vectors = dict.fromkeys(
            ("x", "xp", "xpp", "last_xpp", "e", "delta", "weights", "matrix_weights", "scale_weights"), n
        )
        rows = dict.fromkeys(("nodes", "basis", "basis1", "basis2"), ROWS)
        self.method = Record(
            MODIFIED_BDF,
            Arena(
                {"dd": (ROWS, n), "velocities": (PAST, n), "velocity_order": PAST, **vectors, **rows},
                integers=("velocity_order",),
            ),
            second_order=workspace.second_order.data.ctypes.data,
            family=_FAMILIES[str(method.family)],
            thesis=method.controller == "thesis",
            max_order=method.max_order,
            growth=_GROWTH,
            start_order=form.start_order if method.family == "direct" else 1,
            order=method.max_order,
            points=3,
            k=method.max_order if fixed is not None or method.controller == "thesis" else 2,
            t0=t0,
            matrix_needed=1,
            c2_matrix=1.0,
            initial_phase=1,
            **past_points(task),
        )
        x, xp, xpp = start_of(task, form)
        self.method.array("dd")[:3] = x, xp, 0.5 * xpp
        self.method.array("nodes")[:3] = t0
        self.method.array("velocities")[0] = xp
        self.method.array("last_xpp")[:] = xpp
        self.method.array("velocity_order")[:] = 3
        if grid is not None:
            self.method["fixed"], self.method["last_step"], self.method["n_grid"] = 1, grid.size - 1, grid.size
            self._grid, self._orders = grid.copy(), method.grid_orders(grid.size - 1)
            self.method["grid"], self.method["grid_orders"] = self._grid.ctypes.data, self._orders.ctypes.data
            self.integrator["h"] = grid[1] - grid[0]
        elif fixed is not None:
            last = round((task.t_span[1] - t0) / fixed)
            self.method["fixed"], self.method["last_step"] = 1, last
            self.integrator["h"] = fixed
        elif method.controller == "thesis":
            self.integrator["h"] = task.initial_step()
        else:
            self.integrator["h"] = first_step(task, 2, assembly_of(form))
        if self.method["fixed"]:
            times = t0 + (fixed or 0.0) * np.arange(int(self.method["last_step"]) + 1) if grid is None else grid
            values = method.past(task, times)
            if values is not None:
                self._load_past(form, times[: len(values)], values)
            set_fixed_tolerances(task, self.integrator)

    def _load_past(self, form: SecondOrderForm, times: np.ndarray, values: np.ndarray) -> None:
        """Begin with given values behind: the recurrence of :func:`modified_bdf_formulas.update_differences`."""
        record, order = self.method, np.asarray(form.problem.order)
        dd, nodes, velocities = record.array("dd"), record.array("nodes"), record.array("velocities")
        rows = nodes.size
        for taken, (t, y) in enumerate(zip(times[1:], values[1:], strict=True)):
            x, xp = form.split(y)
            above, points = x, min(int(record["points"]) + 1, rows)
            for j in range(points):
                old = dd[j].copy()
                dd[j] = np.where(j <= taken + 1 + order, above, 0.0)
                above = (dd[j] - old) / (t - nodes[j]) if j < points - 1 else above
            nodes[1:], nodes[0] = nodes[:-1].copy(), t
            velocities[1:], velocities[0] = velocities[:-1].copy(), xp
            record["points"] = points
        record["taken"] = self.integrator["steps"] = times.size - 1
        self.integrator["t"] = times[-1]
        self.integrator.array("y")[:] = values[-1]
        if self._task.t_eval is None:
            slopes = np.gradient(values, times, axis=0)
            names = ("step_t", "step_h", "step_order", "psi", "coefficients")
            none = {name: self.run.array(name)[:0] for name in names}
            self._slices[0] = {"out_t": times[1:], "out_y": values[1:], "out_yp": slopes[1:], **none}

    def orders_of(self, degrees: np.ndarray) -> np.ndarray:
        """A polynomial of degree k + 1 belongs to a step of order k; of degree k + 3 with the thesis' controller."""
        return np.where(degrees > 3, degrees - 3, degrees - 1) if self.method["thesis"] else degrees - 1

    def _advance(self) -> int:
        workspace = self._task.workspace
        return self.kernel(
            workspace.system.data,
            workspace.linear.data,
            self.method.data,
            self.integrator.data,
            self.run.data,
            self.roots.data,
        )
