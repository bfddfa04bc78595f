r"""Collocation for second-order DAEs: implicit Runge-Kutta methods of high order without index reduction.

References
----------
L. Wunderlich: Numerical solution of second order differential-algebraic equations, diploma thesis, TU Berlin, 2005,
chapter 6; U. Ascher, L. Petzold, SIAM J. Numer. Anal. 28 (1991) 1097-1120 (projection); E. Hairer, G. Wanner: Solving
Ordinary Differential Equations II, IV.8 (Newton's method, error estimate).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method
from daedal.methods.implicit_rk.implicit_stages import KINDS, STAGES, collocation_stages
from daedal.methods.implicit_rk.stage_systems import StageMatrices, in_deviations, storage
from daedal.methods.run import OneStepRun
from daedal.methods.second_order_methods import SecondOrderWorkspace, set_fixed_tolerances, start_of
from daedal.methods.task import Equations, Task

LARGEST = 300
"""Maximum number of unknowns for which collocation is used."""
_KEPT_RATIO = 1.2  # the step size, and with it the factors, is kept up to this ratio
_MOST_FAILURES = 15
_UNKNOWN = 1000.0  # rate / (1 - rate) of Newton's method before a rate is known: large, to force a second correction
_PROJECTIONS = ("auto", "always", "never")


@dataclass(frozen=True)
class Collocation(Method):
    r"""Collocation with s stages for :math:`F(t, x, \dot x, \ddot x) = 0`.

    The second derivative of the solution on a step is a polynomial of degree s - 1; the equations hold at the nodes:
    :math:`\tilde A = A^2`, :math:`\tilde b = b^T A`. Dense output is its double integral, of degree s + 1.

    Parameters
    ----------
    kind : {"radau", "gauss", "lobatto"}
        Radau IIA (classical order 2s - 1, damps stiff components: recommended for constrained and stiff systems), Gauss
        (2s, conserves), Lobatto IIIA (2s - 2).
    stages : int
        2 to 5.
    projection : {"auto", "always", "never"}
        For mechanisms: whether positions and velocities are projected onto their constraints after every step, which
        raises the order of the velocities and stabilises Gauss and Lobatto. "auto" projects.
    controller : {"default", "thesis"}
        "thesis": error estimate by extrapolation and doubling of the step, as in Wunderlich's experiments.

    Notes
    -----
    Matrices are dense and formed by differences; a `jacobian` of the problem is not used.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("planar_pendulum")
    >>> method = daedal.methods.Collocation("radau", stages=3)
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, method=method, rtol=1e-8)
    >>> sol.success
    True
    """

    kind: str = "radau"
    stages: int = 3
    projection: str = "auto"
    controller: str = "default"

    name = "collocation"
    needs = ("second_order",)
    stiff = True

    def __post_init__(self):
        if self.kind not in KINDS:
            raise InvalidProblemError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {self.kind!r}")
        if isinstance(self.stages, bool) or not isinstance(self.stages, (int, np.integer)) or self.stages not in STAGES:
            raise InvalidProblemError(f"stages must be 2, 3, 4 or 5, got {self.stages!r}")
        if self.projection not in _PROJECTIONS:
            raise InvalidProblemError(
                f"projection must be one of {', '.join(map(repr, _PROJECTIONS))}, got {self.projection!r}"
            )

        if self.controller not in ("default", "thesis"):
            raise InvalidProblemError(f"controller must be 'default' or 'thesis', got {self.controller!r}")

    @property
    def max_order(self) -> int:
        """The classical order."""
        return collocation_stages(self.kind, self.stages).order

    def prepare(self, equations: Equations) -> OneStepRun:
        """Allocate the stages and their matrices."""
        form = equations.second_order
        problem = form.problem
        if problem.sparsity is not None or problem.bandwidth is not None or problem.n > LARGEST:
            raise InvalidProblemError(
                f"collocation works with dense matrices, for up to {LARGEST} unknowns; use method='modified_bdf', "
                "which exploits sparsity and bandwidth"
            )
        return _CollocationRun(self, equations, SecondOrderWorkspace(form, hook=equations.hook))


def _projects(residual) -> bool:
    """Whether steps are projected onto the constraints."""
    return getattr(residual, "projected", False)


class _CollocationRun(OneStepRun):
    def __init__(self, method: Collocation, equations: Equations, workspace: SecondOrderWorkspace):
        from daedal.kernels.records import Record
        from daedal.methods.implicit_rk import collocation_newton as newton
        from daedal.methods.implicit_rk import stages
        from daedal.methods.implicit_rk.collocation_step import collocation_accept, collocation_attempt
        from daedal.methods.one_step import MEMORY, OWN

        self._form = form = equations.second_order
        n, kind, s = form.problem.n, method.kind, method.stages
        data = collocation_stages(kind, s)
        weights = data.error_weights
        thesis = method.controller == "thesis"
        mass = getattr(form.problem.residual, "mass", None)
        places = storage(n, "dense")
        self._matrices = StageMatrices(places, workspace.bridge)
        self._matrices.give(workspace.matrix_address)
        extra = None if data.newton.real else np.array([[data.gamma**k, 0.0] for k in range(3)])
        system = self._matrices.system(data.newton, in_deviations(data.newton, 3), extra)
        record = Record.allocated(
            newton.COLLOCATION,
            linear=workspace.linear,
            solve=stages.solve_stages.address,
            iterate=stages.iterate_stages.address,
            factor=stages.factor_systems.address,
            correct=stages.correct_stages.address,
            linearise=newton.collocation_linearise.address,
            residuals=newton.collocation_residuals.address,
            predict=newton.collocation_predict.address,
            n=n,
            most_stages=s,
            leading=n,
            levels=3,
            entries=places.rows.size,
            rows=places.rows,
            columns=places.columns,
            place=places.place,
            count=1,
            systems=np.array([system.address]),
            gamma=np.array([data.gamma]),
            unit=1.0,
            some_powers=True,
            unknown=_UNKNOWN,
            second_order=workspace.second_order,
            s=s,
            known=data.known,
            stiffly_accurate=data.end >= 0,
            position_ratio=weights[1],
            filtered=_projects(form.problem.residual) or not np.any(form.problem.order == 0),
            c=data.c,
            w=np.ascontiguousarray(data.w),
            w2=data.w @ data.w,
            known_column=np.ascontiguousarray(data.known_column),
            polynomials=data.polynomials,
            error_weights=np.ascontiguousarray(weights[0]),
            thesis=thesis,
            mass=0 if mass is None else mass[0].ctypes.data,
            n_mass=0 if mass is None else mass[1],
        )
        record["z"] = record["deviations"] + 8 * n * data.known
        super().__init__(
            method,
            equations,
            attempt=collocation_attempt,
            accept=collocation_accept,
            order=method.max_order,
            control_order=s + 1 - data.known,
            start_order=0 if thesis else s + 1,
            controller=OWN if thesis else MEMORY,
            kept_ratio=_KEPT_RATIO,
            most_failures=_MOST_FAILURES,
            record=record,
            restored=True,
            workspace=workspace,
        )

    def open(self, task: Task) -> None:
        """Begin a task if the method supports the equations."""
        method, problem = self.method, self._form.problem
        free = not np.any(problem.order == 0) and task.excluded is None
        damped = method.kind == "radau" or method.controller == "thesis" or task.fixed_step is not None
        if not (damped or free or _projects(problem.residual)):
            raise InvalidProblemError(
                f"{method.kind} does not damp errors of multipliers: for equations with constraints use "
                "Collocation('radau'), or a MechanicalSystem, which is projected after every step"
            )
        super().open(task)

    def load(self, task: Task) -> None:
        """Load x, x' and x'' at the start."""
        for name, values in zip(("x", "xp", "xpp"), start_of(task, self._form), strict=True):
            self.own.array(name)[:] = values
        self.own.array("past_t")[0], self.own.array("past_y")[0] = task.t_span[0], task.y0
        if task.fixed_step is not None:
            set_fixed_tolerances(task, self._rtol, self._atol)
