"""Runs of implicit methods that determine the index class of every variable at the start, from F_y and F_y'."""

from __future__ import annotations

import numpy as np

from daedal.analysis.index import LocalIndex, judge, partials, structural_classes
from daedal.kernels.compilation import Entry
from daedal.kernels.endings import Ending
from daedal.kernels.records import Record, Struct
from daedal.methods.implicit_rk.stage_systems import StageMatrices, Storage, storage
from daedal.methods.partial_derivatives import room_for_look
from daedal.methods.run import OneStepRun
from daedal.methods.task import Task
from daedal.methods.workspace import Workspace
from daedal.problems.checks import check_vector

LARGEST_JUDGED = 200
"""Maximum number of unknowns for which the index of the variables is determined at the start."""

_ASIDE = 1e-2  # relative distance of a nearby point at which no derivatives vanish accidentally
_HIGHEST = 3.0  # highest index class
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


class ClassifiedRun(OneStepRun):
    """A run whose record starts with STAGE_FIELDS, where `power` is the index class of each variable minus one.

    The compiled `begin` of the method returns the ending TROUBLED to request the classes, if `searches` is set and the
    index is not obviously 0 or 1.
    """

    _places: Storage
    _matrices: StageMatrices

    def stage_matrices(self, workspace: Workspace, kind: str) -> StageMatrices:
        """Create the matrices of the stage systems; the first is that of the linear solver."""
        problem = workspace.problem
        self._places = storage(problem.n // problem.copies, kind, problem.bandwidth, problem.sparsity)
        self._matrices = StageMatrices(self._places, workspace.bridge, problem.copies)
        return self._matrices

    def stage_record(
        self, struct: Struct, workspace: Workspace, systems: list[Record], residuals: Entry, predict: Entry, **values
    ) -> Record:
        """The record of a method for F(t, y, y') = 0 whose stages are solved together."""
        from daedal.methods.implicit_rk import stages

        places, n = self._places, workspace.problem.n
        addresses = {"solve": stages.solve_stages, "iterate": stages.iterate_stages, "factor": stages.factor_systems}
        addresses |= {"linearise": stages.linearise_first_order, "correct": stages.correct_stages}
        addresses |= {"residuals": residuals, "predict": predict}
        return Record.allocated(
            struct,
            linear=workspace.linear,
            n=n,
            levels=2,
            entries=places.rows.size,
            rows=places.rows,
            columns=places.columns,
            place=places.place,
            look=room_for_look(places.n),
            count=len(systems),
            systems=np.array([system.address for system in systems]),
            **{name: function.address for name, function in addresses.items()},
            **({"leading": n} | values),
        )

    def load(self, task: Task) -> None:
        """Load the classes of the variables as far as known."""
        assert self.workspace is not None
        self.workspace.prepare_matrices(accurate=False)
        method, n = self.method, self.equations.n
        if method.variable_index is not None:
            self._set_classes(check_vector(method.variable_index, n, "variable_index"))
        elif task.fixed_step is None and self.equations.mechanism is None and self._places.n <= LARGEST_JUDGED:
            self.own["searches"] = True
        elif task.excluded is not None:
            self._set_classes(np.where(np.isin(np.arange(n), np.arange(n)[task.excluded]), 2.0, 1.0))
        if task.index_2:
            self._included.fill(1.0)

    def reconsider(self, task: Task) -> int:
        """Determine the index of the variables at the start, where F_y and F_y' are available."""
        if not self.own["searches"]:
            return int(Ending.TROUBLED)
        self.own["searches"] = False
        problem = self.equations.problem
        found = self.index_at_start(task)
        if found is None or found.index in (0, 1):
            return 0
        classes = np.ones(self._places.n)
        for variable, index in found.higher_index_variables:
            classes[variable % classes.size] = index
        if found.index != 2:  # 3, or undecided because of badly scaled matrices
            classes = np.maximum(classes, self._classes_by_structure(task))
        if classes.max() == 1.0:
            return 0
        assert self.workspace is not None
        self._set_classes(np.tile(classes, problem.copies))
        self.workspace.prepare_matrices(accurate=True)
        self.own["jacobian_known"] = problem.jacobian is not None
        return 0

    def index_at_start(self, task: Task) -> LocalIndex | None:
        """The index of the linearised equations, from exact derivatives if given."""
        if self.equations.problem.jacobian is None:
            return self.local_index(task)
        return judge(*self.partials_at_start())

    def partials_at_start(self) -> tuple[np.ndarray, np.ndarray]:
        """F_y' and F_y used in the first step."""
        places, n = self._places, self._places.n
        e, b = np.zeros((n, n)), np.zeros((n, n))
        b[places.rows, places.columns], e[places.rows, places.columns] = self.own.array("derivatives")
        return e, b

    def _classes_by_structure(self, task: Task) -> np.ndarray:
        """Classes from the sparsity pattern of derivatives near the start, where fewer vanish accidentally.

        For example, a pendulum released from rest at the horizontal has one velocity of index 1 at that point.
        """
        problem, (y, yp), t = self.equations.problem, (task.y0, task.yp0), task.t_span[0]
        shares = 1.0 + np.arange(1, y.size + 1) * _GOLDEN % 1.0
        aside = y + _ASIDE * shares * np.maximum(np.abs(y), 1.0)
        matrices = problem.exact_partials(t, aside, yp) or partials(problem.evaluate, t, aside, yp)
        in_e, in_b = (np.isnan(matrix) | (matrix != 0.0) for matrix in matrices)
        return np.minimum(structural_classes(in_e, in_b), _HIGHEST)

    def _set_classes(self, classes: np.ndarray) -> None:
        self.own.array("power")[:] = classes - 1.0
        self.own["some_powers"] = bool(np.any(classes > 1.0))
