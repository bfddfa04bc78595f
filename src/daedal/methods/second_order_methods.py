"""Common code of methods for F(t, x, x', x'') = 0: their form of the problem, its workspace, its start."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from daedal.kernels.functions import NativeFunction, store_matrix, store_sparse, store_vector
from daedal.methods.iterative_solvers import build_linear
from daedal.methods.task import Task
from daedal.methods.workspace import Workspace
from daedal.problems import SecondOrderDAE
from daedal.problems.second_order_form import SecondOrderForm

_FIXED_TOLERANCE = 1e-6


class SecondOrderWorkspace(Workspace):
    """Callbacks and linear algebra for the equations of one step."""

    def __init__(self, form: SecondOrderForm, *, hook=None, linear_solver="auto", preconditioner=None):
        from daedal.kernels.builders import build_system
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.records import Record
        from daedal.kernels.second_order import SECOND_ORDER, discretised_jacobian, discretised_residual

        problem, n = form.problem, form.problem.n
        residual: Any = problem.residual
        native = isinstance(residual, NativeFunction)
        self.problem = form  # type: ignore[assignment]
        self.n = form.n
        self.bridge = residual.bridge if native else Bridge()
        if native:
            callback = self.bridge.native(residual.kernel, residual.record, 4 * n)
        else:
            store = store_vector("residual", n)
            callback = self.bridge.function(residual, (n, n, n), (n,), store, problem.params)
        self.second_order = Record.allocated(
            SECOND_ORDER,
            n=n,
            n_y=form.n,
            residual=callback,
            source=np.ascontiguousarray(form.source, dtype=np.int64),
            order=np.ascontiguousarray(problem.order, dtype=np.int64),
            **self._jacobian(problem),
        )
        discretised = NativeFunction(discretised_residual, self.second_order, self.bridge, n)
        self.system = build_system(self.bridge, n, residual=discretised, hook=hook)
        matrix = NativeFunction(discretised_jacobian, self.second_order, self.bridge, n)
        self._set_linear(
            build_linear(
                self.bridge,
                n,
                solver=linear_solver,
                preconditioner=preconditioner,
                sparsity=problem.sparsity,
                bandwidth=problem.bandwidth,
                jacobian=None if problem.jacobian is None else matrix,
            )
        )

    def _jacobian(self, problem: SecondOrderDAE) -> dict[str, Any]:
        """The matrix given by the user, or that of a mechanism, in the form that matches the structure of the
        problem."""
        if problem.jacobian is None:
            return {}
        n, given = problem.n, problem.jacobian
        shape: tuple[int, ...] = (n, n)
        if problem.sparsity is not None:
            shape = (problem.sparsity.nnz,)
        elif problem.bandwidth is not None:
            shape = (sum(problem.bandwidth) + 1, n)
        if isinstance(given, NativeFunction):
            callback = self.bridge.native(given.kernel, given.record, 3 * n + 2 + prod(shape))
        else:
            sparse = problem.sparsity is not None
            store = store_sparse("jacobian", problem.sparsity) if sparse else store_matrix("jacobian", *shape)
            callback = self.bridge.function(given, (n, n, n), shape, store, problem.params, scalars=2)
        return {"jacobian": callback, "entries": prod(shape)}


def start_of(task: Task, form: SecondOrderForm) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, x' and x'' at the start from y and y'."""
    x, xp = form.split(task.y0)
    slope, xpp = form.split(task.yp0)
    first = form.problem.order == 1
    xp[first] = slope[first]
    return x, xp, xpp


def set_fixed_tolerances(task: Task, rtol: np.ndarray, atol: np.ndarray) -> None:
    """Set the tolerances of a run with prescribed steps, which only scale increments, from the size of y at the
    start."""
    size = float(np.max(np.abs(task.y0), initial=0.0))
    if size <= float(np.max(task.atol)):  # practically zero
        size = 1.0
    rtol[:] = _FIXED_TOLERANCE
    atol[:] = _FIXED_TOLERANCE * size
