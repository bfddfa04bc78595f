r"""Collocation for second-order DAEs: implicit Runge-Kutta methods of high order that need no reduction of the index.

References
----------
L. Wunderlich: Numerical solution of second order differential-algebraic equations, diploma thesis, TU Berlin, 2005,
chapter 6; U. Ascher, L. Petzold, SIAM J. Numer. Anal. 28 (1991) 1097-1120 (projection); E. Hairer, G. Wanner: Solving
Ordinary Differential Equations II, IV.8 (Newton's method, error estimate).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.collocation_tableaux import KINDS, STAGES, error_weights, newton_data, polynomials, tableau
from daedal.methods.runge_kutta import OneStepRun
from daedal.methods.second_order import (
    SecondOrderWorkspace,
    assembly_of,
    exclude_from_test,
    past_points,
    set_fixed_tolerances,
    start_of,
)
from daedal.methods.task import Outcome, Task
from daedal.problems.second_order_form import SecondOrderForm

_LARGEST = 300  # unknowns
_PROJECTIONS = ("auto", "always", "never")


@dataclass(frozen=True)
class Collocation:
    r"""Collocation with s stages for :math:`F(t, x, \dot x, \ddot x) = 0`.

    The second derivative of the solution on a step is a polynomial of degree s - 1; the equations hold at nodes:
    :math:`\tilde A = A^2`, :math:`\tilde b = b^T A`. Dense output is its double integral, of degree s + 1.

    Parameters
    ----------
    kind : {"radau", "gauss", "lobatto"}
        Radau IIA (classical order 2s - 1, damps what is stiff: the one to use for constrained and stiff systems), Gauss
        (2s, conserves), Lobatto IIIA (2s - 2).
    stages : int
        2 to 5.
    projection : {"auto", "always", "never"}
        For mechanisms: whether positions and velocities are projected onto their constraints after every step, which
        raises the order of the velocities and is what keeps Gauss and Lobatto stable. "auto" projects.
    controller : {"default", "thesis"}
        "thesis": error estimate by extrapolation and doubling of the step, as in Wunderlich's experiments.

    Notes
    -----
    Matrices are dense and formed by differences; a `jacobian` of the problem is not used.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("planar_pendulum")
    >>> method = daedal.Collocation("radau", stages=3)
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, method=method, rtol=1e-8)
    >>> sol.success
    True
    """

    kind: str = "radau"
    stages: int = 3
    projection: str = "auto"
    controller: str = "default"

    name = "collocation"
    error_test = "auto"
    nonnegative = False
    second_order = True

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
        return tableau(self.kind, self.stages).order

    def workspace(self, form: SecondOrderForm) -> SecondOrderWorkspace:
        """What a run needs of a problem."""
        problem = form.problem
        if problem.sparsity is not None or problem.bandwidth is not None or problem.n > _LARGEST:
            raise InvalidProblemError(
                f"collocation works with dense matrices, for up to {_LARGEST} unknowns; use method='modified_bdf', "
                "which makes use of sparsity and bandwidth"
            )
        return SecondOrderWorkspace(form)

    def prepare_tests(self, task: Task, integrator) -> None:
        """All components take part in the error test, apart from multipliers."""
        exclude_from_test(task, integrator)

    def integrate(self, task: Task) -> Outcome:
        """Run with step size control."""
        workspace: Any = task.workspace
        problem = workspace.problem.problem
        free = not np.any(problem.order == 0) and task.excluded is None
        if self.kind != "radau" and self.controller == "default" and not (free or _projects(problem.residual)):
            raise InvalidProblemError(
                f"{self.kind} does not damp errors of multipliers: for equations with constraints use "
                "Collocation('radau'), or state a mechanism as MechanicalSystem, which is projected after every step"
            )
        return _CollocationRun(self, task).to_the_end()

    def integrate_fixed(self, task: Task, h: float) -> Outcome:
        """Run with constant steps."""
        return _CollocationRun(self, task, task.sign * h).to_the_end()


def _projects(residual) -> bool:
    """Whether steps are projected onto the constraints."""
    return getattr(residual, "projected", False)


class _CollocationRun(OneStepRun):
    """A run of a collocation method."""

    def __init__(self, method: Collocation, task: Task, fixed: float | None = None):
        super().__init__(method, task)
        self.constant_order = method.max_order
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Arena, Record
        from daedal.methods.collocation_newton import COLLOCATION
        from daedal.methods.collocation_run import advance_collocation

        self.kernel = advance_collocation
        workspace: Any = task.workspace
        form = workspace.problem
        n, kind, s = form.problem.n, method.kind, method.stages
        data, weights = newton_data(kind, s), error_weights(kind, s)
        pairs = data.pairs.shape[0]
        mass = getattr(form.problem.residual, "mass", None)
        vectors = ("x", "xp", "xpp", "new_x", "new_xp", "new_xpp", "old_x", "old_xp", "weights", "others")
        self.method = Record(
            COLLOCATION,
            Arena(
                {
                    **dict.fromkeys(vectors, n),
                    **dict.fromkeys(("z", "k", "old_k", "r"), (s, n)),
                    **dict.fromkeys(("j0", "j1", "j2"), n * n),
                    "hat": s * n,
                    "stage": (3, n),
                    "theta": (3, s),
                }
            ),
            second_order=workspace.second_order.data.ctypes.data,
            s=s,
            known=tableau(kind, s).known,
            stiffly_accurate=tableau(kind, s).stiffly_accurate,
            n_real=data.real.size,
            n_pairs=pairs,
            gamma=data.gamma,
            position_ratio=weights[1],
            filtered=_projects(form.problem.residual) or not np.any(form.problem.order == 0),
            c=tableau(kind, s).c,
            w=np.ascontiguousarray(data.w),
            w2=np.ascontiguousarray(data.w2),
            known_column=np.ascontiguousarray(data.known_column),
            transform=np.ascontiguousarray(data.transform),
            inverse=np.ascontiguousarray(data.inverse),
            pairs=np.ascontiguousarray(data.pairs) if pairs else np.zeros((1, 2)),
            polynomials=polynomials(kind, s),
            error_weights=np.ascontiguousarray(weights[0]),
            order=s + 1 - tableau(kind, s).known,
            error_before=1e-4,
            thesis=method.controller == "thesis",
            **past_points(task),
            mass=0 if mass is None else mass[0].ctypes.data,
            n_mass=0 if mass is None else mass[1],
            real_lu=dense_lu(n),
            first_lu=dense_lu(2 * n if pairs > 0 else 1),
            second_lu=dense_lu(2 * n if pairs > 1 else 1),
        )
        for name, values in zip(("x", "xp", "xpp"), start_of(task, form), strict=True):
            self.method.array(name)[:] = values
        self.choose_steps(fixed, s + 1, assembly_of(form))
        if method.controller == "thesis" and fixed is None:
            self.integrator["h"] = task.initial_step()
        if fixed is not None:
            set_fixed_tolerances(task, self.integrator)
