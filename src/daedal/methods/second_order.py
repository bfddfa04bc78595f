"""What methods for F(t, x, x', x'') = 0 share: the problem as they see it, its workspace, the records of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.kernels.functions import NativeFunction, store_vector
from daedal.linear_solvers import build_linear
from daedal.methods.task import Task
from daedal.methods.workspace import Workspace
from daedal.problems import SecondOrderDAE
from daedal.problems.second_order_form import SecondOrderForm

_FIXED_TOLERANCE = 1e-6


class SecondOrderWorkspace(Workspace):
    """Callbacks and linear algebra for the equations of one step."""

    def __init__(self, form: SecondOrderForm, *, linear_solver="auto", preconditioner=None):
        from daedal.kernels.assembly import build_system
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.records import Arena, Record
        from daedal.kernels.second_order import SECOND_ORDER, discretised_residual

        problem, n = form.problem, form.problem.n
        residual: Any = problem.residual
        native = isinstance(residual, NativeFunction)
        self._shelf = None
        self._mark = 0
        self._records = {}
        self.problem = form  # type: ignore[assignment]
        self.n = form.n
        self.bridge = residual.bridge if native else Bridge()
        if native:
            callback = self.bridge.native(residual.kernel, residual.record, 4 * n)
        else:
            store = store_vector("residual", n)
            callback = self.bridge.function(residual, (n, n, n), (n,), store, problem.params)
        self.second_order = Record(
            SECOND_ORDER,
            Arena({"base": (3, n)}),
            n=n,
            n_y=form.n,
            residual=callback,
            source=np.ascontiguousarray(form.source, dtype=np.int64),
            order=np.ascontiguousarray(problem.order, dtype=np.int64),
        )
        hook = getattr(residual, "hook", None)
        discretised = NativeFunction(discretised_residual, self.second_order, self.bridge, n, hook=hook)
        self.system = build_system(self.bridge, discretised, n)
        self.linear = build_linear(
            self.bridge,
            self.system,
            n,
            solver=linear_solver,
            preconditioner=preconditioner,
            sparsity=problem.sparsity,
            bandwidth=problem.bandwidth,
            jacobian=None if problem.jacobian is None else self._jacobian(problem),
            params=None,
        )

    def _jacobian(self, problem: SecondOrderDAE):
        """The user's matrix with the factors of the step at hand."""
        from daedal.problems.compile import last_argument

        record, tail = self.second_order, last_argument(problem.jacobian, problem.params)

        def jacobian(t, x, e, cj):
            c1, c2, base = float(record["c1"]), float(record["c2"]), record.array("base")
            return problem.jacobian(t, x, base[1] + c1 * e, base[2] + c2 * e, c1, c2, *tail)

        return jacobian


def start_of(task: Task, form: SecondOrderForm) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, x' and x'' at the start from y and y'."""
    x, xp = form.split(task.y0)
    slope, xpp = form.split(task.yp0)
    first = form.problem.order == 1
    xp[first] = slope[first]
    return x, xp, xpp


def assembly_of(form: SecondOrderForm):
    """The mechanism that a form belongs to, if it does."""
    return getattr(form.problem.residual, "keep", None)


def past_points(task: Task) -> dict[str, np.ndarray]:
    """Room for the last four points, for the controller of the thesis, with the start as the first of them."""
    from daedal.methods.thesis_control import POINTS

    times, values = np.zeros(POINTS), np.zeros((POINTS, task.n))
    times[0], values[0] = task.t_span[0], task.y0
    return {"past_t": times, "past_y": values}


def exclude_from_test(task: Task, integrator) -> None:
    """Variables that only have to be computed take no part in the error test."""
    included = integrator.array("included")
    included[:] = 1.0
    if task.excluded is not None:
        included[task.excluded] = 0.0


def set_fixed_tolerances(task: Task, integrator) -> None:
    """Tolerances of a run with prescribed steps: only a scale for increments, from the size of y at the start."""
    size = float(np.max(np.abs(task.y0), initial=0.0))
    if size <= float(np.max(task.atol)):  # as good as zero
        size = 1.0
    integrator.array("rtol")[:] = _FIXED_TOLERANCE
    integrator.array("atol")[:] = _FIXED_TOLERANCE * size
