"""One-step runs that find the index class of every variable at the start, from F_y and F_y'."""

from __future__ import annotations

import numpy as np

from daedal.analysis.index import LocalIndex, judge, partials, structural_classes
from daedal.kernels.endings import Ending
from daedal.methods.implicit_rk.block_storage import Storage
from daedal.methods.run import OneStepRun
from daedal.methods.task import Task
from daedal.problems.checks import check_vector

LARGEST_JUDGED = 200
"""Unknowns up to which the index of the variables is found at the start."""

_ASIDE = 1e-2  # relative to the variables: a point where derivatives do not vanish that do so at the start by chance
_HIGHEST = 3.0  # index class
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


class ClassifiedRun(OneStepRun):
    """A run whose record has `power`, the index class of each variable less one, and derivatives entry by entry.

    The compiled `begin` of the method asks with the ending TROUBLED to have the classes judged, where `searches` is set
    and the index is not 0 or 1 at first sight.
    """

    _places: Storage
    _f_y: np.ndarray
    _f_yp: np.ndarray

    def load(self, task: Task) -> None:
        """The classes of the variables as far as they are known."""
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
        """Find the index of the variables at the start; F_y and F_y' are there."""
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
        if found.index != 2:  # 3, or the ranks of badly scaled matrices leave it open
            classes = np.maximum(classes, self._classes_by_structure(task))
        if classes.max() == 1.0:
            return 0
        assert self.workspace is not None
        self._set_classes(np.tile(classes, problem.copies))
        self.workspace.prepare_matrices(accurate=True)
        self.own["jacobian_known"] = problem.jacobian is not None
        return 0

    def index_at_start(self, task: Task) -> LocalIndex | None:
        """The index of the linearised equations, from exact derivatives where they are given."""
        if self.equations.problem.jacobian is None:
            return self.local_index(task)
        places, n = self._places, self._places.n
        e, b = np.zeros((n, n)), np.zeros((n, n))
        e[places.rows, places.columns], b[places.rows, places.columns] = self._f_yp, self._f_y
        return judge(e, b)

    def _classes_by_structure(self, task: Task) -> np.ndarray:
        """Classes from the places of derivatives next to the start, where fewer of them vanish by chance.

        A pendulum that begins at rest on one side, say, has one velocity of index 1 at that point.
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
