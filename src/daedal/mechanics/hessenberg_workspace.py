"""Preparation of a linear Hessenberg DAE for kernels."""

from typing import Any

import numpy as np

from daedal.common.tabular import times
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.kernels.functions import store_vector
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.problems import HessenbergDAE
from daedal.problems.checks import check_vector
from daedal.problems.coefficients import coefficient_at


class HessenbergWorkspace(SystemWorkspace):
    """The CONSTRAINED record of a linear Hessenberg DAE."""

    linear, is_autonomous = True, False
    output_weight: Any = "I"

    def __init__(self, problem: HessenbergDAE):
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Record
        from daedal.mechanics.augmented import accelerator
        from daedal.mechanics.constrained import CONSTRAINED, LINEAR, binomials
        from daedal.mechanics.evaluation import evaluator

        m, nx, ny = problem.order, problem.n_x, problem.n_y
        self.given = self.system = problem
        self.m, self.nx, self.n_c, self.n_g, self.n_r, self.n_w = m, nx, ny, ny, 0, 0
        self.rows = np.arange(ny)
        self.bridge, self.prepared = Bridge(), {}
        size = m * nx * nx + nx * ny + nx + (m + 1) * (ny * nx + ny)
        store = store_vector("coefficients", size)
        self.record = Record.allocated(
            CONSTRAINED,
            kind=LINEAR,
            evaluator=evaluator.address,
            accelerator=accelerator.address,
            m=m,
            nx=nx,
            n_g=ny,
            n_c=ny,
            all_g=ny,
            n_state=m * nx + ny,
            n_coefficients=size,
            constant_mass=True,
            time_increment=1e-3,
            increments=np.full((2, nx), 1e-3),
            rows=self.rows,
            mass=np.eye(nx),
            binomials=binomials(m),
            kkt=dense_lu(nx + ny),
            projection=dense_lu(nx + ny),
            inner_matrix=dense_lu(1),
            coefficients=self.bridge.function(lambda t, z: problem.coefficients(t), (1,), (size,), store),
        )

    @property
    def rows_given(self) -> int:
        """Number of constraints."""
        return self.n_c


def prepare_hessenberg(problem: HessenbergDAE, t0: float, initial):
    """The assembled problem, its start at (x, x', ..., x^(m-1)), and no notes; raises unless g = ... = g^(m-1) = 0."""
    if initial is None:
        raise InvalidProblemError(
            f"initial is missing: x and its derivatives below order {problem.order}, as one vector"
        )
    if isinstance(initial, tuple) and len(initial) == 2 and np.ndim(initial[0]) == 1 and problem.order == 1:
        initial = initial[0]
    try:
        flat = np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in np.atleast_1d(initial)])
    except (TypeError, ValueError):
        raise InvalidProblemError("initial must hold x and its derivatives below the order of the DAE") from None
    z = check_vector(flat, problem.n, "initial", names=tuple(problem.label(i) for i in range(problem.n)))
    assembly = HessenbergWorkspace(problem)
    values = assembly.evaluate(t0, z)
    if values is None:
        raise InconsistentInitialError(f"{_not_finite(problem, t0)} at t = {t0:g}")
    scale = 1.0 + np.max(np.abs(z))
    levels = np.abs(values["level"])
    if np.max(levels, initial=0.0) > 1e-6 * scale * (1.0 + np.max(np.abs(values["jacobian"]))):
        _refuse(problem, assembly, t0, z, values["level"])
    start = assembly.start(t0, z)
    if not np.all(np.isfinite(start.a)):
        raise InconsistentInitialError(
            f"C B is singular at t = {t0:g}: the constraint, differentiated {times(problem.order)}, does not "
            "determine y. Remedy: check B and C, and the order."
        )
    return assembly, start, []


def _not_finite(problem: HessenbergDAE, t0: float) -> str:
    """Description of the coefficient that is not finite, for the error message."""
    for name, shape in problem.shapes.items():
        if not np.all(np.isfinite(coefficient_at(name, getattr(problem, name), t0, shape))):
            return f"{name} is not finite"
    return "a derivative of C or r is not finite"


def _refuse(problem: HessenbergDAE, assembly: HessenbergWorkspace, t0: float, z: np.ndarray, level: np.ndarray):
    """Raise InconsistentInitialError with the violated constraints and levels and the nearest consistent values."""
    level = level.reshape(problem.order, problem.n_y)
    worst = sorted(np.ndindex(level.shape), key=lambda at: -abs(level[at]))[:3]
    words = ", ".join(
        f"{problem.constraint_label(i)}{f', derivative {j},' if j else ''} ({level[j, i]:.4g})"
        for j, i in worst
        if abs(level[j, i]) > 1e-3 * abs(level[worst[0]])
    )
    nearest, hint = z[None].copy(), ""
    if assembly.project(np.array([t0]), nearest, weight="I")[0] == 0:
        moved = np.flatnonzero(np.abs(nearest[0] - z) > 1e-12 * (1.0 + np.abs(z)))[:5]
        values = ", ".join(f"{problem.label(int(i))} = {nearest[0, i]:.6g} (given {z[i]:.6g})" for i in moved)
        hint = f" The nearest values that satisfy them: {values}."
    raise InconsistentInitialError(
        f"the initial values violate the constraints at t = {t0:g}, with residuals that should be 0: {words}. They "
        f"must satisfy g = g' = ... = g^(m-1) = 0.{hint}"
    )
