"""Python part of a run of an implicit Runge-Kutta method."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.dense import dense_lu
from daedal.methods.implicit_rk import implicit_runge_kutta_newton as newton
from daedal.methods.implicit_rk.implicit_runge_kutta_output import irk_factor_defect
from daedal.methods.implicit_rk.implicit_runge_kutta_step import irk_accept, irk_attempt, irk_begin
from daedal.methods.implicit_rk.implicit_stages import MOST_DEGREE, PLACES, Stages, inside, stages_of
from daedal.methods.implicit_rk.stage_systems import StageMatrices, in_slopes, transformation
from daedal.methods.implicit_rk.variable_classes import LARGEST_JUDGED, ClassifiedRun
from daedal.methods.one_step import MEMORY
from daedal.methods.task import Equations, Task
from daedal.methods.workspace import Workspace

_MOST_FAILURES = 30
_KEPT_RATIO = 1.2  # the step size, and with it the factors, is kept up to this ratio
_FOR_DIFFERENTIAL_EQUATIONS = (
    "{name}: the matrix A is singular, so its stages do not determine algebraic variables, which this problem has "
    "(dF/dy' is singular): use a method with an invertible matrix, such as 'radau5', 'gauss2' or "
    "'sdirk4', or one whose first stage is the end of the last step, such as 'trapezoidal' or 'lobatto_iiia3'"
)
_PROJECT = "define it as a SemiExplicitDAE and use projection='always', "


class ImplicitRungeKuttaRun(ClassifiedRun):
    """A run of an implicit Runge-Kutta method."""

    def __init__(self, method: Any, equations: Equations, workspace: Workspace, kind: str):
        self._kept: list[StageMatrices] = []
        self._coupled: list[Any] = []
        self._stages = stages = stages_of(method.coefficients)
        s, matrices, systems = stages.s, stages.matrices, []
        for _ in range(2):  # steps and their halves
            for block in matrices:
                found = transformation(stages.of_block(block))
                systems.append(self.stage_matrices(workspace, kind).system(found, in_slopes(found)))
                self._kept.append(self._matrices)
        self._inner = np.zeros((2, 0, s + 1))
        order, embedded = method.max_order, stages.embedded
        record = self.stage_record(
            newton.IRK,
            workspace,
            systems,
            residuals=newton.irk_residuals,
            predict=newton.irk_predict,
            most_stages=max(block.size for block in matrices),
            gamma=np.ones(len(systems)),
            unknown=1.0,
            form=newton.irk_correct_coupled.address,
            linearise_there=newton.irk_linearise_there.address,
            factor_defect=irk_factor_defect.address,
            s=s,
            order=order,
            known=stages.known,
            a=stages.a,
            b=stages.b,
            c=stages.c,
            blocks=len(stages.blocks),
            block_first=np.array([block.first for block in stages.blocks]),
            block_size=np.array([block.size for block in stages.blocks]),
            block_matrix=np.array([block.matrix for block in stages.blocks]),
            doubling=embedded is None,
            embedded=np.zeros(s) if embedded is None else embedded,
            filtering=stages.filtering,
            end_value=np.ascontiguousarray(stages.end_value),
            end_slope=stages.end_slope,
            straight=stages.stage_order < 2,
            halves=np.array([stages.slope((half + c) / 2.0) for half in (0, 1) for c in stages.c]),
            n_matrices=len(matrices),
        )
        super().__init__(
            method,
            equations,
            attempt=irk_attempt,
            accept=irk_accept,
            begin=irk_begin,
            order=order,
            control_order=order + 1 if embedded is None else order,
            controller=MEMORY,
            kept_ratio=_KEPT_RATIO,
            most_failures=_MOST_FAILURES,
            record=record,
            restored=True,
            workspace=workspace,
        )

    def load(self, task: Task) -> None:
        """Load the classes of the variables, and the polynomial of a step or of each of its halves."""
        super().load(task)
        if task.fixed_step is not None:
            assert self.workspace is not None
            self.workspace.prepare_matrices(accurate=True)
            known = self.method.variable_index is not None or self.equations.mechanism is not None
            self.own["searches"] = not known and self.equations.n <= LARGEST_JUDGED
            self._allow_coupled()
        halved = self.own["doubling"] and task.fixed_step is None
        self._inner = _inner(self._stages, MOST_DEGREE // 2 if halved else MOST_DEGREE)
        degree = self._inner.shape[1] + 1
        self.own["degree"], self.own["inner"] = degree, self._inner.ctypes.data
        self._inside = inside(2 * degree if halved else degree)
        passed = None if self.method.projection == "always" else self._stages.inherited(degree, bool(halved))
        self._inside["inside_inherited"] = np.zeros(PLACES)
        if passed is not None:
            self._inside["inside_inherited"] = self._inside["inside_value"] @ passed
            self.own["of_halves"] = passed[0] - passed[degree] if halved else 0.0
        self.own["inherits"] = passed is not None
        for name, array in self._inside.items():
            self.own[name] = array.ctypes.data
        self.own["g"] = self._inside["inside_value"].shape[1]
        self.notes = ()
        self._finds_classes = bool(self.own["searches"])
        self.own["unsettled"] = not self._stages.solvable or self.method.projection == "always"
        self.own["searches"] = self.own["unsettled"] or self.equations.n <= LARGEST_JUDGED

    def _allow_coupled(self) -> None:
        """Allocate a matrix for all stages of a block together, which constant steps may need."""
        assert self.workspace is not None
        if not self._coupled:
            for block in self._stages.matrices:
                self._coupled.append(self._places.matrix(self.workspace.bridge, m=block.size))
                self._coupled.append(np.ascontiguousarray(self._places.block_places(block.size)))
        self.own.array("matrices")[:] = [matrix.address for matrix in self._coupled[::2]]
        self.own.array("places")[:] = [places.ctypes.data for places in self._coupled[1::2]]

    def reconsider(self, task: Task) -> int:
        """Analyse the equations at the start: their type, whether the method supports them, projections."""
        if not self.own["searches"]:
            return super().reconsider(task)
        tableau = self.method.coefficients
        if not self._stages.solvable:
            found = self.index_at_start(task)
            if found is None or found.index != 0:
                raise InvalidProblemError(_FOR_DIFFERENTIAL_EQUATIONS.format(name=tableau.name))
        if self.method.projection == "always":
            self._project()
        elif self.equations.n <= LARGEST_JUDGED:
            self._check_convergence(task)
        self.own["searches"] = self._finds_classes
        return super().reconsider(task) if self._finds_classes else 0

    def _check_convergence(self, task: Task) -> None:
        """Reject an index for which no order is guaranteed for some variables; with constant steps, add a note instead.

        The same applies to mechanisms of index 2, which lose the multipliers but not the motion.
        """
        found = self.index_at_start(task)
        if found is None or found.index is None or found.index < 2:
            return
        index, name = found.index, self.method.coefficients.name
        open_cases = [x for x in self.method.analysis.predicted(index) if x.order is None]
        if not open_cases:
            return
        if task.fixed_step is not None or (index == 2 and self.equations.mechanism is not None):
            classes = ", ".join(dict.fromkeys(x.variables for x in open_cases))
            self.notes = (
                f"The problem has index {index}, for which {name} has no guaranteed order in {classes} (variables "
                "named as by daedal.analysis.analyse_method): smaller steps need not lead to smaller errors.",
            )
            return
        other = _PROJECT if index == 2 else "another formulation, " if self.equations.mechanism is not None else ""
        raise InvalidProblemError(
            f"{name}: the problem has index {index}, for which this method need not converge "
            "(daedal.analysis.analyse_method shows its guaranteed orders), in particular with variable steps; "
            f"use 'radau5', {other}or fixed_step to try it"
        )

    def _project(self) -> None:
        """Identify multipliers, constraints and derivatives of equations in Hessenberg form of index 2."""
        n = self.equations.n
        e, b = self.partials_at_start()
        rows, columns = ~np.any(e, axis=1), ~np.any(e, axis=0)
        entries = e[~rows][:, ~columns]
        plain = rows.sum() == columns.sum() > 0 and np.allclose(entries, np.eye(len(entries)))
        regular = plain and not np.any(b[np.ix_(rows, columns)])
        if not regular:
            raise InvalidProblemError(
                "projection='always' needs index 2 in Hessenberg form, y' = f(t, y, z), 0 = g(t, y) with "
                "equations in the order of the unknowns: define the problem as a SemiExplicitDAE whose g does "
                "not depend on z, or use projection='never'"
            )
        n_z = int(rows.sum())
        self._lu = dense_lu(n_z)
        self._projection = {
            "multiplier": np.where(columns, np.cumsum(columns) - 1, -1),
            "constraint": np.where(rows, np.cumsum(rows) - 1, -1),
            "derivative": np.where(rows, -1, 0),
            "direction": np.zeros((n, n_z)),
        }
        self._projection["derivative"][~rows] = np.flatnonzero(~columns)
        for name, array in self._projection.items():
            self.own[name] = array.ctypes.data
        self.own["lu"], self.own["n_z"], self.own["projects"] = self._lu.data[0], n_z, True


def _inner(stages: Stages, most: int) -> np.ndarray:
    """Weights of the slopes at equidistant points of a step, for later steps and for the first one.

    Methods of stage order 1 whose last stage is the end of the step use a cubic polynomial through values and slopes at
    both ends; others interpolate the slopes of their stages.
    """
    hermite = stages.end >= 0 and stages.stage_order < 2
    degree = min(most, 3 if hermite else stages.degree)
    return np.array([stages.inner(degree, hermite), stages.inner(degree, False)])
