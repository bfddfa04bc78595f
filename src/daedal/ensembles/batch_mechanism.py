"""Batches of mechanisms whose functions are traced, or at least compiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.drive.mechanism import MechanismCourse, MechanismPlan
from daedal.drive.request import checked_request
from daedal.ensembles.batch import Batch, Image, Unsuited, direct_plan, machine_events
from daedal.ensembles.columns import Chunk, Vectors
from daedal.ensembles.lanes import lanes_of_mechanism
from daedal.mechanics.setting import missing_derivatives
from daedal.progress import Progress


class MechanismBatch(Batch):
    """Mechanisms: starts that are consistent to round-off, explicit methods in q and v.

    Parameters
    ----------
    runner : Runner
    start, params : object
        Of a member that came through, which shows what all of them need.
    """

    def __init__(self, runner: Any, start: Any, params: Any):
        plan = direct_plan(runner, params)
        if not isinstance(plan, MechanismPlan):
            raise Unsuited("not a mechanism")
        self.request = runner.request
        self._settings = replace(self.request.settings, dense_output=False)
        self._made_ready(self._begun(plan, start))

    def _begun(self, plan: MechanismPlan, start: Any) -> MechanismCourse:
        request, system = self.request, plan.problem
        if not isinstance(start, tuple) or len(start) < 2:
            raise Unsuited("starts are not vectors")
        if system.contact is not None or system.n_w or system.force_uses_multipliers or start[1] is None:
            raise Unsuited("multipliers or algebraic variables are searched for")
        nonholonomic = system.velocity_jacobian, system.velocity_bias
        if missing_derivatives(system) or (system.velocity_constraint is not None and None in nonholonomic):
            raise Unsuited("derivatives of constraints are differences")
        one = checked_request(
            plan.problem, self._settings, request.span, start, t_eval=request.times, t_stop=request.t_stop
        )
        course = plan.begin(one)
        if course.assembly.is_sparse or course.notes:
            raise Unsuited("matrices are sparse, or the start was not taken as it is")
        return course

    def _made_ready(self, course: MechanismCourse) -> None:
        """Everything that a run of the representative member has before its first step, as an image."""
        from daedal.ensembles.mechanism_kernel import MECHANISMS, begin_mechanism, finish_mechanism
        from daedal.kernels.records import Record
        from daedal.mechanics.readiness import READY_IN_MASS_NORM, is_ready

        request, assembly, start, image = self.request, course.assembly, course.start, Image()
        expected = int(is_ready(assembly.address, start.t, start.z, start.r))
        if not expected or ("M" if expected == READY_IN_MASS_NORM else "I") != assembly.output_weight:
            raise Unsuited("the start is not plainly consistent")
        assembly.adopt(assembly.setting)
        image.add(_block(assembly.record.array("state")), assembly.record.data.view(np.int64))
        reduction, ready, task = course.made_ready([], Progress(False, request.span))
        state, slope = np.concatenate([start.z, start.r]), np.concatenate([start.slope, start.rate])
        if reduction.recover is not None or not (
            np.array_equal(reduction.y0, state) and np.array_equal(reduction.yp0, slope)
        ):
            raise Unsuited("the unknowns of the formulation are others")
        if task.guess is not None or ready.workspace is not None:
            raise Unsuited("the method is implicit")
        if reduction.inspection is not None:
            image.add(reduction.inspection.data.view(np.int64), _block(reduction.inspection.array("q")))
        monitor = reduction.monitor
        if monitor is not None:
            monitor.array("norms")[:] = 0.0
            image.add(monitor.data.view(np.int64), _block(monitor.array("norms")))
        task.switching = machine_events(task.switching, self._settings.events, course.plan.problem)
        projector = assembly.projector(assembly.output_weight)
        own = Record(
            MECHANISMS,
            system=assembly.record,
            monitor=0 if monitor is None else monitor,
            projector=projector,
            expected=expected,
        )
        self._used = course, reduction, projector
        pointers = {"begin": begin_mechanism, "finish": finish_mechanism}
        self._made_of(ready, task, image, own, pointers, [assembly.bridge])
        self.lanes = lanes_of_mechanism(self.record, course, reduction, ready)

    def starts(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Rows (q, v, r)."""
        if not isinstance(chunk.starts, Vectors):
            return None
        arrays = chunk.starts.arrays(chunk.count)[:3]
        if any(array is None for array in arrays):
            return None
        rows = np.concatenate([array for array in arrays if array is not None], axis=1)
        missing = self.n - rows.shape[1]  # r is zero where it is not given
        if missing > 0:
            rows = np.concatenate([rows, np.zeros((chunk.count, missing))], axis=1)
        return (np.ascontiguousarray(rows), None) if np.isfinite(rows).all() else None


def _block(array: np.ndarray) -> np.ndarray:
    """The block of memory from which an array was cut, as whole numbers."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.view(np.int64)
