"""DASSL: backward differentiation formulas of orders 1 to 5 for F(t, y, y') = 0.

References
----------
Brenan, Campbell, Petzold: Numerical Solution of Initial-Value Problems in Differential-Algebraic Equations, SIAM
Classics in Applied Mathematics 14, 1996, chapter 5 (cited as BCP) and section 7.5 (DASPK).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.analysis.failure import Failure
from daedal.errors import InvalidProblemError
from daedal.events.event import EventRecord
from daedal.events.record import leave_layers, switching_record, watch_layers
from daedal.linear_solvers import GMRES
from daedal.methods.task import Outcome, Task
from daedal.problems.checks import check_mask, check_real, check_vector
from daedal.solution import DenseOutput

_FLOATS_PER_SLICE = 250_000  # size of the buffers between two returns to Python
_NO_TIMES = np.zeros(0)
_ERROR_TESTS = ("auto", "all", "differential", "filtered")


@dataclass(frozen=True, eq=False)
class DASSL:
    r"""Variable-order, variable-step BDF in fixed-leading-coefficient form.

    The step solves :math:`F(t_{n+1}, y, y'^{(0)} - (\alpha_s/h)(y - y^{(0)})) = 0` by a modified Newton method, where
    :math:`y^{(0)}, y'^{(0)}` come from the polynomial through the last k + 1 values and
    :math:`\alpha_s = -\sum_{j=1}^k 1/j`.

    Parameters
    ----------
    max_order : int
        Highest order, 1 to 5 (6 with a fixed step).
    linear_solver : {"auto", "dense", "banded", "sparse", "gmres"} or GMRES
        How Newton corrections are computed; "auto" follows the problem's `sparsity` and `bandwidth`.
    preconditioner : object, optional
        For GMRES: :class:`Preconditioner`, :class:`BandedPreconditioner`, :class:`ILUPreconditioner` or
        :class:`BlockDiagonalPreconditioner`.
    error_test : {"auto", "all", "differential", "filtered"} or mask
        Which components take part in the error test: all; all but the algebraic ones; a mask or list of the
        components to include; "filtered" tests :math:`c_j G^{-1} F_{y'} (y - y^{(0)})`, from which the algebraic
        parts drop out. "auto" means "all", except for semi-explicit problems of index 2, where the algebraic
        variables are excluded.
    variable_index : sequence of int, optional
        Index class 1, 2 or 3 of each variable: the error estimate of class i is multiplied by h^(i-1) before the
        test, as Hessenberg systems ask for.
    newton_weights : sequence of float, optional
        Powers of h that multiply the Newton corrections before the convergence test, per variable.
    row_scaling : sequence of float, optional
        Powers of 1/h that multiply the equations; 1 on the constraints keeps index-2 matrices well conditioned.
    remember_rate : bool
        Keep the observed convergence rate of Newton's method from step to step, so that one iteration may be enough,
        as DASSL does since 1989. By default every step starts without one: the more accurate corrections keep the
        high differences clean, which saves steps and error-test failures.
    increment : {"robust", "book"}
        Smallest increment of difference Jacobians, in units of the error weight: u^(1/4), or u^(1/2) as BCP prints
        it, which drowns in round-off where a zero component stands beside large ones.
    nonnegative : bool or mask
        Keep these components nonnegative; small negative values are clipped, others fail the step.
    norm : callable, optional
        ``norm(v, w) -> float``, used instead of the weighted root-mean-square norm.
    starting_values : array (n, m) or callable, optional
        With a fixed step: y at t0, t0 + h, ..., or a function of t that gives them.
    max_newton_change : array, optional
        With a fixed step: the largest change of each variable in one Newton iteration.

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve_dae(
    ...     lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], [-1.0], method=daedal.DASSL(max_order=3), rtol=1e-8
    ... )
    >>> print(f"{sol.y[0, -1]:.5f}", sol.history.order.max() <= 3)
    0.36788 True
    """

    max_order: int = 5
    linear_solver: Any = "auto"
    preconditioner: Any = None
    error_test: Any = "auto"
    variable_index: Any = None
    newton_weights: Any = None
    row_scaling: Any = None
    remember_rate: bool = False
    increment: str = "robust"
    nonnegative: Any = False
    norm: Callable[..., float] | None = None
    starting_values: Any = None
    max_newton_change: Any = None

    name = "dassl"

    def __post_init__(self):
        if isinstance(self.max_order, bool) or self.max_order not in range(1, 7):
            raise InvalidProblemError(f"max_order must be 1 to 5 (6 with a fixed step), got {self.max_order!r}")
        if isinstance(self.error_test, str) and self.error_test not in _ERROR_TESTS:
            raise InvalidProblemError(
                f"unknown error_test '{self.error_test}'; known: {', '.join(_ERROR_TESTS)}, or a mask"
            )
        if self.variable_index is not None:
            classes = check_real(self.variable_index, "variable_index", "hold 1, 2 or 3 for every variable")
            if not set(classes.ravel()) <= {1.0, 2.0, 3.0}:
                raise InvalidProblemError(f"variable_index must hold 1, 2 or 3 for every variable, got {classes}")
        if self.increment not in ("robust", "book"):
            raise InvalidProblemError(f"increment must be 'robust' or 'book', got {self.increment!r}")
        if self.norm is not None and not callable(self.norm):
            raise InvalidProblemError("norm must be a function norm(v, w)")
        if self.norm is not None and (isinstance(self.linear_solver, GMRES) or self.linear_solver == "gmres"):
            raise InvalidProblemError("GMRES needs the weighted root-mean-square norm; leave norm out")

    def workspace_options(self, problem) -> dict[str, Any]:
        """What the workspace has to know of these options."""
        row_power = None
        if self.row_scaling is not None:
            row_power = check_vector(self.row_scaling, problem.n, "row_scaling")
        return {
            "linear_solver": self.linear_solver,
            "preconditioner": self.preconditioner,
            "norm": self.norm,
            "row_power": row_power,
            "increment": self.increment,
        }

    def integrate(self, task: Task) -> Outcome:
        """Run the compiled integrator on `task`."""
        if self.max_order > 5:
            raise InvalidProblemError(
                "max_order 6 is only for fixed_step: variable-step BDF of order 6 is not stable enough"
            )
        return Run(self, task).to_the_end()

    def integrate_fixed(self, task: Task, h: float) -> Outcome:
        """Constant steps of the BDF of order `max_order`, from `starting_values` or accurate values computed here."""
        times = task.t_span[0] + task.sign * h * np.arange(self.max_order)
        values = self._starting_values(task, times)
        if values is None:
            start = self._accurate_start(task, times)
            if start.interrupted or start.exception is not None:
                return start
            values = start.y.T.copy()
        return _FixedRun(self, task, task.sign * h, values).to_the_end()

    def _starting_values(self, task: Task, times: np.ndarray) -> np.ndarray | None:
        """The given y at `times`, perhaps with further ones: (m, n), m >= max_order; None if they must be computed."""
        k, n, given = self.max_order, task.n, self.starting_values
        if callable(given):
            return np.array([check_vector(given(t), n, f"starting_values({t:g})") for t in times])
        if given is None:
            return task.y0[None].copy() if k == 1 else None
        expected = f"be finite and of shape ({n}, m) with m >= max_order = {k}"
        values = check_real(given, "starting_values", expected)
        if values.ndim != 2 or values.shape[0] != n or values.shape[1] < k or not np.all(np.isfinite(values)):
            raise InvalidProblemError(f"starting_values must {expected}; the shape is {values.shape}")
        return np.ascontiguousarray(values.T)

    def _accurate_start(self, task: Task, times: np.ndarray) -> Outcome:
        """The solution at `times`, to nearly all digits, by steps of variable size."""
        n, t0 = task.n, task.t_span[0]
        accurate = replace(
            task,
            rtol=np.full(n, 1e-12),
            atol=np.full(n, 1e-12 * (float(np.max(np.abs(task.y0))) or 1.0)),
            t_eval=times,
            t_span=(t0, float(times[-1])),
            t_stop=float(times[-1]),
            switching=None,
            dense=False,
            first_step=None,
        )
        outcome = DASSL(error_test=self.error_test).integrate(accurate)
        if outcome.failure is not None:
            raise InvalidProblemError(
                f"accurate starting values for BDF{self.max_order} could not be computed; "
                "pass starting_values (y at t0, t0 + h, ...)"
            )
        return outcome

    def is_plain(self, task: Task) -> bool:
        """Whether the error and Newton tests treat all components alike."""
        return self.variable_index is None and self.newton_weights is None and task.excluded is None

    def prepare_tests(self, task: Task, integrator) -> None:
        """Write options, components and powers of h of the error and Newton tests."""
        plain = self.is_plain(task)
        integrator["remember_rate"] = self.remember_rate
        integrator["plain_weights"] = plain
        integrator["filter_error"] = isinstance(self.error_test, str) and self.error_test == "filtered"
        if self.nonnegative is not False:
            integrator["some_nonnegative"] = True
            integrator.array("nonnegative")[:] = self.nonnegative_mask(task)
        if plain:
            return
        error_power, newton_power = integrator.array("error_power"), integrator.array("newton_power")
        error_power[:], newton_power[:] = 0.0, 0.0
        if self.variable_index is not None:
            error_power[:] = check_vector(self.variable_index, task.n, "variable_index") - 1.0
        if self.newton_weights is not None:
            newton_power[:] = check_vector(self.newton_weights, task.n, "newton_weights")
        included = integrator.array("included")
        included[:] = 1.0
        if task.excluded is not None:
            included[task.excluded] = 0.0

    def nonnegative_mask(self, task: Task) -> np.ndarray:
        """1 for the components to be kept nonnegative."""
        if self.nonnegative is True:
            return np.ones(task.n, dtype=np.int64)
        problem = task.workspace.problem
        return check_mask(self.nonnegative, task.n, "nonnegative", problem.names).astype(np.int64)

    def excluded(self, problem) -> np.ndarray | None:
        """The components that a mask given as `error_test` leaves out."""
        included = check_mask(self.error_test, problem.n, "error_test", problem.names)
        if not included.any():
            raise InvalidProblemError("error_test includes no variable: the error would not be controlled at all")
        return ~included


class Run:
    """The Python side of a run: buffers, slices, progress, and the collection of what was stored."""

    constant_order: int | None = None  # of methods whose polynomials have another degree

    def __init__(self, method: Any, task: Task):
        from daedal.methods import dassl_run

        self._kernels = dassl_run
        self._task = task
        self.integrator = task.workspace.record(
            "integrator",
            lambda: _new_integrator(task.n),
            max_order=method.max_order,
            t=task.t_span[0],
            h=task.initial_step(),
        )
        for name, values in {"y": task.y0, "yp": task.yp0, "rtol": task.rtol, "atol": task.atol}.items():
            self.integrator.array(name)[:] = values
        self.integrator.array("correction")[:] = 0.0
        method.prepare_tests(task, self.integrator)
        self.roots = switching_record(
            task.switching, task.workspace.bridge, task.n, task.t_span, float(task.rtol.max())
        )
        self.run = _run_record(task)
        self._first_is_output = task.t_eval is None or (task.t_eval.size > 0 and task.t_eval[0] == task.t_span[0])
        # By number of the slice: collecting a slice twice, as an interrupt may bring about, does no harm.
        self._slices: dict[int, dict[str, np.ndarray]] = {}
        self._events: dict[int, list[EventRecord]] = {}

    def to_the_end(self) -> Outcome:
        bridge = self._task.workspace.bridge
        reason, interrupted, exception = 0, False, None
        watch_layers(self.roots, self._task.workspace.system, self.integrator.array("yp"))
        try:
            while True:
                began = time.perf_counter()
                reason = self._advance()
                self._collect()
                self._adapt_slice(time.perf_counter() - began)
                self._task.progress.update(float(self.integrator["t"]))
                if reason != self._kernels.BUFFER_FULL:
                    break
        except KeyboardInterrupt:
            self._collect()
            interrupted = True
        finally:
            leave_layers(self.roots, self._task.workspace.system)
        if isinstance(bridge.exception, KeyboardInterrupt):
            bridge.exception, interrupted = None, True
        elif bridge.exception is not None:
            exception, bridge.exception = bridge.exception, None
        return self._outcome(reason, interrupted, exception)

    def _adapt_slice(self, seconds: float):
        """Return to Python often enough for an interrupt to be noticed."""
        steps = int(self.run["slice"])
        if seconds > 0.2:
            self.run["slice"] = max(1, steps // 2)
        elif seconds < 0.05:
            self.run["slice"] = min(2 * steps, int(self.run["slots"]))

    def _records(self):
        workspace = self._task.workspace
        return workspace.system.data, workspace.linear.data, self.integrator.data, self.run.data, self.roots.data

    def _advance(self) -> int:
        return self._kernels.advance(*self._records())

    def _collect(self):
        """Copy what the kernel stored in this slice."""
        run = self.run
        stored, steps = int(run["stored"]), int(run["steps_stored"])
        rows, events = int(run["rows_stored"]), int(run["events_stored"])
        take = {"out_t": stored, "out_y": stored, "out_yp": stored}
        take |= {"step_t": steps, "step_h": steps, "step_order": steps, "psi": steps, "coefficients": rows}
        if not self._task.dense:
            take["psi"] = 0
        if any(take.values()) or not self._slices:
            self._slices[int(run["number"])] = {name: run.array(name)[:count].copy() for name, count in take.items()}
        if events:
            self._events[int(run["number"])] = [record for m in range(events) for record in self._event_records(m)]

    def _event_records(self, m: int) -> list[EventRecord]:
        """The functions that fired at the m-th event of this slice."""
        run, switching = self.run, self._task.switching
        assert switching is not None
        fired = run.array("event_fired")[m]
        return [
            EventRecord(
                t=float(run.array("event_t")[m]),
                y=run.array("event_y")[m].copy(),
                yp=run.array("event_yp")[m].copy(),
                index=int(i),
                name=switching.names[i],
                direction=int(np.sign(fired[i])),
                terminal=abs(int(fired[i])) > 1,
            )
            for i in np.flatnonzero(fired)
        ]

    def orders_of(self, degrees: np.ndarray) -> np.ndarray:
        """The order of every step from the degree of its polynomial."""
        return degrees if self.constant_order is None else np.full(degrees.size, self.constant_order)

    def _outcome(self, reason, interrupted, exception) -> Outcome:
        task, integrator = self._task, self.integrator
        slices = [self._slices[number] for number in sorted(self._slices)]
        joined = (
            {name: np.concatenate([part[name] for part in slices]) for name in slices[0]}
            if len(slices) > 1
            else slices[0]
        )
        t, y, yp = joined["out_t"], joined["out_y"], joined["out_yp"]
        if self._first_is_output:
            t = np.concatenate([[task.t_span[0]], t])
            y, yp = np.concatenate([task.y0[None], y]), np.concatenate([task.yp0[None], yp])
        steps = joined["step_t"], joined["step_h"], joined["step_order"]
        orders = self.orders_of(steps[2])
        dense = None
        if task.dense and steps[0].size:
            starts = np.concatenate([[0], np.cumsum(steps[2] + 1)[:-1]])
            dense = DenseOutput(task.t_span[0], steps[0], steps[2], starts, joined["psi"], joined["coefficients"])
        failed = reason < 0 and not interrupted and exception is None
        return Outcome(
            reason=int(reason),
            t=t,
            y=np.ascontiguousarray(y.T),
            yp=np.ascontiguousarray(yp.T),
            history=(*steps[:2], orders) if steps[0].size else None,
            dense=dense,
            events=[event for number in sorted(self._events) for event in self._events[number]],
            interrupted=interrupted,
            failure=self._failure(int(reason)) if failed else None,
            t_reached=float(integrator["t"]),
            integrator=integrator,
            exception=exception,
        )

    def _failure(self, code: int) -> Failure:
        record = self.integrator
        steps, phi, psi = int(record["steps"]), record.array("phi"), record["c"]["psi"]
        with np.errstate(divide="ignore"):
            weights = 1.0 / record.array("inverse_weights")
        return Failure(
            code=code,
            t=float(record["t"]),
            h=float(record["h"]),
            order=int(record["k"]),
            y=phi[0].copy(),
            yp=self._task.yp0.copy() if steps == 0 else phi[1] / psi[0],
            tried_y=record.array("y").copy(),
            correction=record.array("correction").copy(),
            weights=weights,
            cj=float(record["cj"]),
            steps=steps,
            error_test_failures=int(record["error_test_failures"]),
            newton_failures=int(record["newton_failures"]),
            attempt_error_failures=int(record["attempt_error_failures"]),
            attempt_newton_failures=int(record["attempt_newton_failures"]),
            first_step_failures=int(record["first_step_failures"]),
            t_span=self._task.t_span,
            component=int(self.run["zero_weight"]) if code == self._kernels.ZERO_WEIGHT else -1,
            included=record.array("included").copy(),
            jacobian_unevaluable=bool(record["jacobian_unevaluable"]),
        )


class _FixedRun(Run):
    """A run with constant order and step size from given starting values."""

    def __init__(self, method: DASSL, task: Task, h: float, values: np.ndarray):
        super().__init__(method, task)
        k, m = method.max_order, values.shape[0]
        self._last_step = round((task.t_span[1] - task.t_span[0]) / h)
        if self._last_step < m:
            raise InvalidProblemError(f"{m} starting values leave no step to take in t_span")
        change = np.full(task.n, np.inf)
        if method.max_newton_change is not None:
            change = check_vector(method.max_newton_change, task.n, "max_newton_change", finite=False)
        self._max_change = change
        phi = self.integrator.array("phi")
        # Modified divided differences at constant step are backward differences.
        phi[:] = 0.0
        row = values[::-1].copy()
        for i in range(min(m, k + 2)):
            phi[i] = row[0]
            row = row[:-1] - row[1:]
        t0 = task.t_span[0]
        for field, value in {"k": k, "h": h, "t": t0 + (m - 1) * h, "steps": m - 1}.items():
            self.integrator[field] = value
        self._store_start(values, t0 + h * np.arange(m))

    def _store_start(self, values, times):
        """The starting values are output like the steps."""
        if self._task.t_eval is not None:
            return
        slopes = np.gradient(values, times, axis=0) if len(times) > 1 else values[:0]
        none = {name: self.run.array(name)[:0] for name in ("step_t", "step_h", "step_order", "psi", "coefficients")}
        self._slices[0] = {"out_t": times[1:], "out_y": values[1:], "out_yp": slopes[1:], **none}

    def _advance(self) -> int:
        from daedal.methods.bdf_fixed import advance_fixed

        return advance_fixed(*self._records(), self._max_change, self._last_step, self._task.t_span[0])


def _new_integrator(n: int):
    from daedal.kernels.records import Arena, Record
    from daedal.methods.dassl_step import INTEGRATOR, ROWS, VECTORS

    vectors = Arena({"phi": (ROWS, n), "nonnegative": n, **dict.fromkeys(VECTORS, n)}, integers=("nonnegative",))
    vectors.arrays["included"][:] = 1.0
    return Record(INTEGRATOR, vectors, n=n)


def _run_record(task: Task):
    """Limits of the run and the buffers of one slice."""
    n, dense = task.n, task.dense
    m = 0 if task.switching is None else task.switching.direction.size
    slots = min(max(_FLOATS_PER_SLICE // n, 8), 1000)
    times = _NO_TIMES if task.t_eval is None else task.t_eval
    return task.workspace.record(
        ("run", dense, m),
        lambda: _new_run(n, slots, dense, m),
        t_end=task.t_span[1],
        t_stop=task.t_stop,
        h_max=task.max_step,
        sign=task.sign,
        max_steps=task.max_steps,
        has_roots=m > 0,
        each_step=task.t_eval is None,
        tight=task.rtol.min() < 1e-13,
        dense=dense,
        n_times=times.size,
        times=times,
        next_time=1 if times.size and times[0] == task.t_span[0] else 0,
        slice=min(slots, 16) if n > 100 else slots,
    )


def _new_run(n: int, slots: int, dense: bool, m: int):
    from daedal.kernels.differences import ROWS
    from daedal.kernels.records import Arena, Record
    from daedal.methods.dassl_run import RUN

    events = slots if m else 1
    rows = slots * ROWS if dense else 1
    arena = Arena(
        {
            **dict.fromkeys(("out_t", "step_t", "step_h", "step_order"), slots),
            **dict.fromkeys(("out_y", "out_yp"), (slots, n)),
            "psi": (slots if dense else 1, ROWS),
            "coefficients": (rows, n),
            "event_t": events,
            "event_fired": (events, m),
            **dict.fromkeys(("event_y", "event_yp"), (events, n)),
        },
        integers=("step_order", "event_fired"),
    )
    return Record(RUN, arena, slots=slots, rows=rows, event_slots=events)
