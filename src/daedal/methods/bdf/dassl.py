"""DASSL: backward differentiation formulas of orders 1 to 5 for F(t, y, y') = 0.

References
----------
Brenan, Campbell, Petzold: Numerical Solution of Initial-Value Problems in Differential-Algebraic Equations, SIAM
Classics in Applied Mathematics 14, 1996, chapter 5 (cited as BCP) and section 7.5 (DASPK).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method, check_corrector, check_variable_index
from daedal.methods.iterative_solvers import GMRES
from daedal.methods.multistep.starting_values import (
    accurate_values,
    fixed_times,
    given_values,
    points_behind,
    require_room,
    require_start,
    write_past,
)
from daedal.methods.run import Run
from daedal.methods.task import Equations, Outcome, Task
from daedal.methods.workspace import Workspace
from daedal.problems.checks import check_mask, check_vector

_ERROR_TESTS = ("auto", "all", "differential", "filtered")
_FAILURES = ("error_test_failures", "newton_failures")


@dataclass(frozen=True, eq=False)
class DASSL(Method):
    r"""Variable-order, variable-step BDF in fixed-leading-coefficient form.

    The step solves :math:`F(t_{n+1}, y, y'^{(0)} - (\alpha_s/h)(y - y^{(0)})) = 0` by a modified Newton method, where
    :math:`y^{(0)}, y'^{(0)}` come from the polynomial through the last k + 1 values and
    :math:`\alpha_s = -\sum_{j=1}^k 1/j`.

    Parameters
    ----------
    max_order : int
        Highest order, 1 to 5 (6 with a fixed step).
    linear_solver : {"auto", "dense", "banded", "sparse", "gmres"} or GMRES
        Solver of the Newton corrections; "auto" follows the problem's `sparsity` and `bandwidth`.
    preconditioner : object, optional
        For GMRES: :class:`Preconditioner`, :class:`BandedPreconditioner`, :class:`ILUPreconditioner` or
        :class:`BlockDiagonalPreconditioner`.
    error_test : {"auto", "all", "differential", "filtered"} or mask
        The components in the error test: all, as in the book; all but the algebraic ones; a mask or list of the
        components to include; "filtered" tests :math:`c_j G^{-1} F_{y'} (y - y^{(0)})`, the error of y caused by the
        formula for y', with variable coefficients instead of a fixed leading one. "auto" tests all components, by the
        larger of both estimates if derivatives are coupled, and switches to "filtered", with a start of order 2, for
        problems of index 2: immediately for semi-explicit ones, after step failures for others.
    variable_index : sequence of int, optional
        Index class 1, 2 or 3 of each variable: the error estimate of class i is multiplied by h^(i-1) before the test,
        as required for Hessenberg systems.
    newton_weights : sequence of float, optional
        Powers of h that multiply the Newton corrections before the convergence test, per variable.
    row_scaling : sequence of float, optional
        Powers of 1/h that multiply the equations; 1 on the constraints keeps index-2 matrices well conditioned.
    remember_rate : bool
        Keep the observed convergence rate of Newton's method between steps, so that one iteration may suffice, as in
        DASSL since 1989. By default it is reset at every step: more accurate corrections keep the high differences
        clean, which saves steps and error-test failures.
    increment : {"robust", "book"}
        Smallest increment of difference Jacobians, in units of the error weight: u^(1/4), or u^(1/2) as BCP prints it,
        which is dominated by round-off where a zero component occurs among large ones.
    nonnegative : bool or mask
        Keep these components nonnegative; small negative values are clipped, others fail the step.
    norm : callable, optional
        ``norm(v, w) -> float``, used instead of the weighted root-mean-square norm.
    starting_values : array (n, m) or callable, optional
        With a fixed step: y at t0, t0 + h, ..., or a function of t.
    max_newton_change : array, optional
        With a fixed step: the largest change of each variable in one Newton iteration.
    corrector : {"auto", "simultaneous", "staggered", "staggered direct"}
        In runs with sensitivities: all unknowns together ("auto"); the solution first, then the sensitivities by
        iteration with the same matrix; or the latter by one solve with a new matrix in every step.

    Examples
    --------
    >>> import daedal
    >>> method = daedal.methods.DASSL(max_order=3)
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    >>> sol = daedal.solve(decay, (0.0, 1.0), ([1.0], [-1.0]), method=method, rtol=1e-8)
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
    corrector: str = "auto"

    name = "dassl"
    needs = ("residual",)
    stiff = True
    is_multistep = True
    shares_newton_matrix = True

    def __post_init__(self):
        if isinstance(self.max_order, bool) or self.max_order not in range(1, 7):
            raise InvalidProblemError(f"max_order must be 1 to 5 (6 with a fixed step), got {self.max_order!r}")
        if isinstance(self.error_test, str) and self.error_test not in _ERROR_TESTS:
            raise InvalidProblemError(
                f"unknown error_test '{self.error_test}'; known: {', '.join(_ERROR_TESTS)}, or a mask"
            )
        if self.variable_index is not None:
            check_variable_index(self.variable_index)
        check_corrector(self.corrector)
        if self.increment not in ("robust", "book"):
            raise InvalidProblemError(f"increment must be 'robust' or 'book', got {self.increment!r}")
        if self.norm is not None and not callable(self.norm):
            raise InvalidProblemError("norm must be a function norm(v, w)")
        if self.norm is not None and (isinstance(self.linear_solver, GMRES) or self.linear_solver == "gmres"):
            raise InvalidProblemError("GMRES needs the weighted root-mean-square norm; omit norm")

    def prepare(self, equations: Equations) -> Run:
        """Create the workspace with its linear solver, and the records of the integrator."""
        problem, row_power = equations.problem, None
        if self.row_scaling is not None:
            row_power = check_vector(self.row_scaling, problem.n, "row_scaling")
        workspace = Workspace(
            problem,
            hook=equations.hook,
            linear_solver=self.linear_solver,
            preconditioner=self.preconditioner,
            norm=self.norm,
            row_power=row_power,
            increment=self.increment,
        )
        return _DASSLRun(self, equations, workspace)

    def nonnegative_mask(self, problem) -> np.ndarray:
        """Mask of the nonnegative components."""
        if isinstance(self.nonnegative, bool):
            return np.full(problem.n, self.nonnegative)
        return check_mask(self.nonnegative, problem.n, "nonnegative", problem.names)


class _DASSLRun(Run):
    """A run of DASSL. At constant order and step size, it starts from given or computed starting values."""

    def __init__(self, method: DASSL, equations: Equations, workspace: Workspace):
        from daedal.kernels.builders import LARGEST_WITH_SLOPE
        from daedal.kernels.records import Record
        from daedal.methods.bdf.dassl_estimate import FILTERED, PLAIN, WATCHED
        from daedal.methods.bdf.dassl_step import DASSL, MOST_LOOKS, dassl_begin, dassl_step

        n, problem = equations.n, equations.problem
        self._plain = method.variable_index is None and method.newton_weights is None
        choice = method.error_test if isinstance(method.error_test, str) else "mask"
        careful = choice in ("auto", "filtered") and equations.hook is None and equations.mechanism is None
        self._filtered = choice == "filtered"
        record = Record.allocated(
            DASSL,
            n=n,
            linear=workspace.linear,
            max_order=method.max_order,
            remember_rate=method.remember_rate,
            plain_weights=self._plain,
            some_nonnegative=method.nonnegative is not False,
            estimate=FILTERED if self._filtered else WATCHED if careful and equations.semi_explicit is None else PLAIN,
            looks=MOST_LOOKS if careful else 0,
            may_keep_slope=n <= LARGEST_WITH_SLOPE,
            leading=n // problem.copies if method.corrector.startswith("staggered") else n,
            direct=method.corrector == "staggered direct",
        )
        array = record.array
        if method.variable_index is not None:
            array("error_power")[:] = check_vector(method.variable_index, n, "variable_index") - 1.0
        if method.newton_weights is not None:
            array("newton_power")[:] = check_vector(method.newton_weights, n, "newton_weights")
        array("nonnegative")[:] = method.nonnegative_mask(problem)
        array("max_change")[:] = np.inf
        if method.max_newton_change is not None:
            array("max_change")[:] = check_vector(method.max_newton_change, n, "max_newton_change", finite=False)
        super().__init__(
            method,
            equations,
            step=dassl_step,
            begin=dassl_begin,
            record=record,
            restored=True,
            workspace=workspace,
        )
        self._start: np.ndarray | None = None
        self._accurate: _DASSLRun | None = None
        self._index_2 = False

    def integrate(self, task: Task) -> Outcome:
        """Integrate; constant steps start from values at t0, t0 + h, ..., given or computed."""
        if task.fixed_step is None:
            return super().integrate(task)
        self._index_2 = task.index_2
        times = fixed_times(task, self.method.max_order)
        self._start, counted = self._starting_values(task, times), None
        if self._start is None:
            before = self._accurate_start(task, times)
            if before.interrupted or before.exception is not None:
                return before
            self._start, counted = before.y.T.copy(), before.counts
        outcome = super().integrate(task)
        if counted is not None:
            outcome.counts += counted
        return outcome

    def open(self, task: Task) -> None:
        """Begin a task; a run with variable steps starts at order 1."""
        if task.fixed_step is None:
            if self.method.max_order > 5:
                raise InvalidProblemError(
                    "max_order 6 is only for fixed_step: variable-step BDF of order 6 is not stable enough"
                )
            self._start, self._index_2 = None, task.index_2
        super().open(task)

    def load(self, task: Task) -> None:
        """Load the components excluded from the error test, its norm, and the starting history, if any."""
        assert self.workspace is not None
        self.workspace.prepare_matrices(accurate=self._filtered or self._index_2)
        self.own["plain_weights"] = self._plain and (task.excluded is None or self._index_2)
        if self._index_2 and task.fixed_step is None:
            from daedal.methods.bdf.dassl_estimate import FILTERED

            self.own["estimate"], self.own["looks"] = FILTERED, 0
            self._included.fill(1.0)
            self._load_start(task)
        if self._start is not None and task.fixed_step is not None:
            self._load_past(task, self._start, task.sign * task.fixed_step)

    def reconsider(self, task: Task) -> int:
        """If the index is 2, restart with a suitable error test and starting history; otherwise return the failure."""
        found = self.local_index(task)
        if found is None or found.index != 2:
            return int(self.own["reason"])
        assert self.workspace is not None
        spent, failures = self.workspace.counts(), [int(self.record[name]) for name in _FAILURES]
        self._index_2 = True
        self._begin(task)
        self.workspace.add_counts(spent)
        for name, count in zip(_FAILURES, failures, strict=True):
            self.record[name] = count
        return 0

    def _load_start(self, task: Task):
        """Load a history of order 2 or 3 for a problem of index 2."""
        assert self.workspace is not None
        found = past(self.workspace, task, self.method.max_order)
        if found is None:
            return
        h, values = found
        order = len(values) - 1
        write_past(self.record, self._phi, values, order, h)
        for field, value in {"h": h, "order": order, "degree": order}.items():
            self.record[field] = value

    def _load_past(self, task: Task, values: np.ndarray, h: float):
        from daedal.methods.bdf.bdf_fixed import fixed_bdf_step

        k, m = self.method.max_order, values.shape[0]
        require_room(self.record, m)
        write_past(self.record, self._phi, values[::-1], k, h)
        self._y[:] = values[-1]
        start = {"step": fixed_bdf_step.address, "begin": 0, "order": k, "degree": k, "steps": m - 1}
        for field, value in (start | {"t": task.t_span[0] + (m - 1) * h}).items():
            self.record[field] = value

    def start_points(self, task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Write the starting values to the output."""
        return points_behind(task, self._start)

    def _starting_values(self, task: Task, times: np.ndarray) -> np.ndarray | None:
        """Given values of y at `times` or more points, shape (m, n), m >= max_order; None if they must be computed."""
        k, given = self.method.max_order, self.method.starting_values
        if given is None and k == 1:
            return task.y0[None].copy()
        values = given_values(given, k, task.n, times, "max_order")
        if values is not None:
            require_start(values, task, self.equations.problem.label)
        return values

    def _accurate_start(self, task: Task, times: np.ndarray) -> Outcome:
        """The solution at `times` to nearly full accuracy, computed with variable steps."""
        if self._accurate is None:
            assert self.workspace is not None
            self._accurate = _DASSLRun(DASSL(error_test=self.method.error_test), self.equations, self.workspace)
        return accurate_values(self._accurate, task, times, f"BDF{self.method.max_order}", 1e-12)


# --- the start of problems of index 2 ---------------------------------------------------------------------------------
#
# A first step of order 1 leaves index-2 variables with errors proportional to h, and rounding errors proportional to
# 1/h: no h satisfies tolerances below 1e-7. Instead, a few implicit Euler steps provide the history for a start with
# order 2 or 3. Their differentiated variables are as accurate as the constraints that determine them; errors of the
# other variables are differences of slopes, which are harmless in the polynomial through these values.


_TIGHT = 1e9  # size of y, in units of the tolerance, from which the history has order 3: steps of order 2 are too short
_TRIALS = 12
_ITERATIONS = 8
_CONVERGED = 1e-3
_ROUNDING = 0.1  # stagnating corrections below this size, in units of the tolerance, are rounding errors
_AIM = 0.5  # bound on the estimated error at the start, in units of the tolerance
_LONGEST = 0.02  # longest step of the history, as a fraction of the interval


def past(workspace: Workspace, task: Task, max_order: int) -> tuple[float, np.ndarray] | None:
    """The step size and y at t0, t0 - h, ..., extrapolated backwards; None if no step is short enough."""
    (t0, t1), y0, yp0 = task.t_span, task.y0, task.yp0
    inverse = 1.0 / (task.rtol * np.abs(y0) + task.atol)
    order = 2 if _norm(y0, inverse) < _TIGHT else 3
    if order > max_order:
        return None
    longest = min(_LONGEST * abs(t1 - t0), task.max_step)
    slope = _norm(yp0, inverse)
    h = task.first_step or longest
    if task.first_step is None and slope > 0.0:
        # The error of y' is proportional to h^k: the time scale of y, times the k-th root of the tolerance.
        h = _AIM * max(_norm(y0, inverse), 1.0) ** (1.0 - 1.0 / order) / slope
    h = task.sign * min(h, longest)
    best = None
    for _ in range(_TRIALS):
        found = _euler_steps(workspace, t0, y0, yp0, h, inverse, order)
        if found is None:
            h *= 0.25
            continue
        values, error = found
        if best is not None and error >= best[2]:
            break  # shorter steps have larger rounding errors
        best = h, values, error
        if error <= _AIM:
            break
        h *= max(0.05, 0.8 * (_AIM / error) ** (1.0 / order))
    if best is None:
        return None
    h, values, _ = best
    # The polynomial through y(t0), y(t0 + h), ..., at t0 - h, t0 - 2h, ...: its difference of order k is constant.
    row = values[order::-1]
    signs = [(-1) ** (order - i) * comb(order + 1, i) for i in range(order + 1)]
    while len(row) < 2 * order + 1:
        row.append(sum(sign * value for sign, value in zip(signs, row[-order - 1 :], strict=True)))
    return h, np.array(row[order:])


def _euler_steps(workspace: Workspace, t, y0, yp0, h, inverse, order) -> tuple[list[np.ndarray], float] | None:
    """y at t0, t0 + h, ..., t0 + (k + 1) h and the error of a step of order k, estimated by the last difference."""
    values, step, cj = [y0], h * yp0, 1.0 / h
    prepared = False
    for i in range(order + 1):
        y, t_next = values[-1] + step, t + (i + 1) * h
        size = np.inf
        for _ in range(_ITERATIONS):
            slope = cj * (y - values[-1])
            r = workspace.residual(t_next, y, slope)
            if r is None or not (prepared or workspace.prepare(t_next, y, slope, r, cj, h, inverse)):
                return None
            prepared = True
            delta = workspace.solve(t_next, y, slope, r, cj, inverse)
            if delta is None:
                return None
            y = y - delta
            size, before = _norm(delta, inverse), size
            if size <= _CONVERGED or 0.5 * before < size <= _ROUNDING:
                break
        else:
            return None
        step = y - values[-1]
        values.append(y)
    slope = cj * step
    difference = np.diff(np.array(values), n=order + 1, axis=0)[0]
    base, shifted = workspace.residual(t_next, y, slope), workspace.residual(t_next, y, slope + cj * difference)
    if base is None or shifted is None:
        return None
    error = workspace.solve(t_next, y, slope, base, cj, inverse, shifted - base)
    return None if error is None else (values, _norm(error, inverse) / (order + 1))


def _norm(v: np.ndarray, inverse: np.ndarray) -> float:
    return float(np.sqrt(np.mean((v * inverse) ** 2)))
