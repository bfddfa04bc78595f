"""Batches of small problems of first order: stiff ones whose Rosenbrock steps are machine code, and plain ODEs."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.analysis.index import are_clearly_index_1
from daedal.drive.event_view import with_bounds
from daedal.drive.first_order import FirstOrderCourse, FirstOrderPlan
from daedal.drive.request import checked_request
from daedal.ensembles.batch import Batch, Image, Unsuited, direct_plan, machine_events
from daedal.ensembles.columns import Chunk, Vectors
from daedal.ensembles.lanes import lanes_of_first_order
from daedal.initial.consistent import linear_slopes
from daedal.kernels.functions import store_matrix
from daedal.progress import Progress

_LARGE = 2.0**30  # the factor by which `exact_partials` takes dF/dy' and dF/dy apart


class FirstOrderBatch(Batch):
    """Implicit problems of index 0 or 1 beyond doubt, from consistent y and y' or from y alone; ODEs, from y; and
    semi-explicit problems of index 1, from consistent y and z, which together are the y of an implicit one.

    Parameters
    ----------
    runner : Runner
    start, params : object
        Of a member that came through, which shows what all of them need.
    """

    def __init__(self, runner: Any, start: Any, params: Any):
        plan = direct_plan(runner, params)
        self.request = request = runner.request
        if not isinstance(plan, FirstOrderPlan):
            raise Unsuited("not a problem of first order")
        if request.settings.dense_output is False or request.settings.max_steps is not None:
            raise Unsuited("steps are limited, or not kept")
        y0, yp0 = (*start, None)[:2] if isinstance(start, tuple) else (start, None)
        self._plan, self._semi_explicit = plan, plan.semi_explicit is not None
        if self._semi_explicit:
            if yp0 is None:
                raise Unsuited("z is searched for")
            y0, yp0 = np.concatenate([y0, yp0]), None
        self._y_alone = yp0 is None
        one = checked_request(
            plan.problem, request.settings, request.span, start, t_eval=request.times, t_stop=request.t_stop
        )
        course = FirstOrderCourse(plan, one)
        given = np.array_equal(course.y0, y0) and (yp0 is None or np.array_equal(course.yp0, yp0))
        if course.excluded is not None or plan.nonnegative is not None or not given:
            raise Unsuited("signs are kept, or the start was not taken as it is")
        method = course.choice.method
        self._ordinary = method.works_on("rate") and plan.ordinary is not None
        if self._ordinary and not self._y_alone:
            raise Unsuited("y' of an ODE is given")
        if not self._ordinary and method.name != "rosenbrock":
            raise Unsuited("another method")
        problem = plan.implicit
        dense_matrix = problem.sparsity is None and problem.bandwidth is None
        if not self._ordinary and not (dense_matrix and getattr(problem.jacobian, "is_derivative", False)):
            raise Unsuited("matrices are not dense")
        self._made_ready(course)

    def _made_ready(self, course: FirstOrderCourse) -> None:
        """Everything that a run of the representative member has before its first step, as an image."""
        from daedal.ensembles.first_order_kernel import FIRST_ORDER, begin_implicit, begin_ordinary, look_at_slice
        from daedal.events.event import gather_events
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.records import Record

        request, plan, ready = self.request, self._plan, course.ready
        problem, n, events = plan.implicit, plan.implicit.n, self.request.settings.events
        switching = gather_events(events, plan.problem, request.span[0], course.y0, course.yp0)
        if switching is not None:
            switching = with_bounds(switching, events, plan.problem, n)
        task = course.task(machine_events(switching, events, plan.problem, problem), Progress(False, request.span))
        if ready.system["scaled_rows"] or not task.dense:
            raise Unsuited("rows are scaled, or steps are not kept")
        bridges, jacobian = [ready.bridge], {}
        if not self._ordinary:
            bridges.append(Bridge())
            shape = (n, n)
            store = store_matrix("jacobian", n, n)
            jacobian["jacobian"] = bridges[1].function(problem.jacobian, shape, shape, store, problem.params, scalars=1)
        own = Record.allocated(
            FIRST_ORDER,
            system=ready.system,
            atol=np.ascontiguousarray(plan.atol),
            first_look=0 if task.watch is None else task.watch.due,
            **jacobian,
        )
        self._used = course
        pointers = {"begin": begin_ordinary if self._ordinary else begin_implicit, "look": look_at_slice}
        self._made_of(ready, task, Image(), own, pointers, bridges)
        self.lanes = lanes_of_first_order(self.record, own, plan, ready)

    def starts(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Rows y and rows y'; these are zero at first where they are to be computed."""
        if not isinstance(chunk.starts, Vectors) or chunk.starts.scalar:
            return None
        y, yp = (*chunk.starts.arrays(chunk.count), None)[:2]
        if self._semi_explicit and y is not None:
            y, yp = None if yp is None else np.concatenate([y, yp], axis=1), None
        if y is None or (yp is None) != self._y_alone or not np.isfinite(y).all():
            return None
        if yp is not None and not np.isfinite(yp).all():
            return None
        y = np.ascontiguousarray(y, dtype=float)
        slopes = np.zeros(y.shape) if yp is None else np.ascontiguousarray(yp, dtype=float)
        return y, None if self._ordinary else slopes

    def reasons(self, count: int, slopes: np.ndarray | None) -> np.ndarray:
        """Members whose index is not plainly 0 or 1 at the start are left to the driver, which looks closer."""
        from daedal.ensembles.batch_kernel import NOT_PLAIN
        from daedal.ensembles.first_order_kernel import values_at_starts

        if slopes is None:
            return np.zeros(count, dtype=np.int64)
        matrices, residuals = np.empty((2, count, self.n, self.n)), np.empty((count, self.n))
        known = values_at_starts(self.record.address, np.array([0.0, _LARGE]), residuals, matrices)
        reasons = np.full(count, NOT_PLAIN, dtype=np.int64)
        if known and np.isfinite(matrices).all():
            of_y, both = matrices
            of_slope = (both - of_y) / _LARGE
            plain = are_clearly_index_1(of_slope, of_y)
            if self._y_alone:
                rows = np.flatnonzero(plain)
                changes, plain[rows] = linear_slopes(self._plan.implicit, of_slope[rows], of_y[rows], residuals[rows])
                slopes[rows] += changes
            reasons[plain] = 0
        return reasons
