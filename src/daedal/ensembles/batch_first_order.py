"""Batches of small stiff problems F(t, y, y') = 0 whose Rosenbrock steps are machine code."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.analysis.index import are_clearly_index_1
from daedal.drive.first_order import FirstOrderCourse, FirstOrderPlan
from daedal.drive.request import checked_request
from daedal.ensembles.batch import SLICES, Batch, Image, Unsuited, direct_plan, parameters_of
from daedal.ensembles.columns import Chunk, Vectors
from daedal.ensembles.numbers import NumbersOf
from daedal.kernels.functions import store_matrix
from daedal.progress import Progress

_LARGE = 2.0**30  # the factor by which `exact_partials` takes dF/dy' and dF/dy apart


class FirstOrderBatch(Batch):
    """Implicit problems from consistent y and y', of index 0 or 1 beyond doubt.

    Parameters
    ----------
    runner : Runner
    start, params : object
        Of a member that came through, which shows what all of them need.
    """

    def __init__(self, runner: Any, start: Any, params: Any):
        plan = direct_plan(runner, params)
        self.request = request = runner.request
        if not isinstance(plan, FirstOrderPlan) or plan.semi_explicit is not None:
            raise Unsuited("not an implicit problem")
        if request.settings.dense_output is False or request.settings.max_steps is not None:
            raise Unsuited("steps are limited, or not kept")
        problem, nonnegative = plan.implicit, plan.nonnegative
        dense_matrix = problem.sparsity is None and problem.bandwidth is None
        if not dense_matrix or nonnegative is not None or not getattr(problem.jacobian, "is_derivative", False):
            raise Unsuited("matrices are not dense, or signs are kept")
        if not isinstance(start, tuple) or len(start) != 2 or start[1] is None:
            raise Unsuited("y' is computed")
        one = checked_request(
            problem, request.settings, request.span, start, t_eval=request.times, t_stop=request.t_stop
        )
        course = FirstOrderCourse(plan, one)
        given = np.array_equal(course.y0, start[0]) and np.array_equal(course.yp0, start[1])
        if course.choice.method.name != "rosenbrock" or course.excluded is not None or not given:
            raise Unsuited("another method, or the start was not taken as it is")
        self.n, self.times, self._plan = problem.n, np.ascontiguousarray(request.times), plan
        self._made_ready(course)
        self._targets, read = parameters_of(self.bridge, problem.params)
        self.numbers = NumbersOf(request.problem.params, read)

    def _made_ready(self, course: FirstOrderCourse) -> None:
        """Everything that a run of the representative member has before its first step, as an image."""
        from daedal.ensembles.first_order_kernel import FIRST_ORDER_BATCH
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.records import Record

        request, ready, problem, n = self.request, course.ready, self._plan.implicit, self.n
        task = course.task(None, Progress(False, request.span))
        image = Image()
        image.add(*ready.image(task))
        if ready.system["scaled_rows"] or not task.dense:
            raise Unsuited("rows are scaled, or steps are not kept")
        self.bridge = course.workspace.bridge
        self._partials_bridge = Bridge()
        self._jacobian = self._partials_bridge.function(
            problem.jacobian, (n, n), (n, n), store_matrix("jacobian", n, n), problem.params, scalars=1
        )
        self._partial_targets, _ = parameters_of(self._partials_bridge, problem.params)
        self._alive = image, course, task
        self._signs = np.zeros((2, n), dtype=np.int64)
        self._image, self._address, self._system = image.rows, ready.record.address, ready.system.address
        self.record = Record(
            FIRST_ORDER_BATCH,
            t0=request.span[0],
            begins_with_start=bool(self.times[0] == request.span[0]),
            slices=SLICES,
            first_look=0 if task.watch is None else task.watch.due,
        )

    def starts(self, chunk: Chunk) -> tuple[np.ndarray, ...] | None:
        """Rows y and rows y'."""
        if not isinstance(chunk.starts, Vectors):
            return None
        y, yp = chunk.starts.arrays(chunk.count)[:2]
        if y is None or yp is None or not (np.isfinite(y).all() and np.isfinite(yp).all()):
            return None
        return np.ascontiguousarray(y), np.ascontiguousarray(yp)

    def reasons(self, starts: tuple[np.ndarray, ...], numbers: np.ndarray) -> np.ndarray:
        """Members whose index is not plainly 0 or 1 at the start are left to the driver, which looks closer."""
        from daedal.ensembles.first_order_kernel import NOT_PLAIN, partials_at_starts

        count, n = starts[0].shape
        matrices = np.empty((2, count, n, n))
        factors = np.array([0.0, _LARGE])
        known = partials_at_starts(
            self._jacobian.data, self._partial_targets, self.request.span[0], *starts, numbers, factors, matrices
        )
        self._partials_bridge.exception = None
        reasons = np.full(count, NOT_PLAIN, dtype=np.int64)
        if known and np.isfinite(matrices).all():
            of_y, both = matrices
            reasons[are_clearly_index_1((both - of_y) / _LARGE, of_y)] = 0
        return reasons

    def advance(
        self, starts: tuple[np.ndarray, ...], numbers: np.ndarray, states: np.ndarray, reasons: np.ndarray
    ) -> None:
        """See :func:`daedal.ensembles.first_order_kernel.run_first_order`."""
        from daedal.ensembles.first_order_kernel import run_first_order

        run_first_order(
            self.record.data,
            self._address,
            self._system,
            self._image,
            self._targets,
            self._plan.atol,
            *starts,
            numbers,
            states,
            reasons,
            self._signs,
        )
