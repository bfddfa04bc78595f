r"""Explicit Runge-Kutta methods for the formulations that are ordinary differential equations.

References
----------
E. Hairer, S. P. Norsett, G. Wanner: Solving Ordinary Differential Equations I, 2nd ed., Springer 1993, sections II.1,
II.4 to II.6 and IV.2 of volume II (the stiffness test); J. R. Dormand, P. J. Prince, J. Comp. Appl. Math. 6 (1980).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.methods.dassl import Run
from daedal.methods.task import Outcome, Task


@dataclass(frozen=True)
class Tableau:
    """Coefficients of an explicit method whose last stage is the slope at the end of the step (FSAL).

    ``inner(theta)`` are the weights of the slopes in y(t_0 + theta h).
    """

    a: Any
    b: Any
    c: Any
    e: Any
    order: int
    inner: Any

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The coefficients as arrays, and the weights at theta = 3/4, 1/2, 1/4."""
        s = len(self.b)
        a = np.zeros((s, s))
        for i, row in enumerate(self.a):
            a[i, : len(row)] = row
        inner = np.array([self.inner(theta) for theta in (0.75, 0.5, 0.25)])
        return {"a": a, "b": np.array(self.b), "c": np.array(self.c), "e": np.array(self.e), "inner": inner}


_DOPRI5_B = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0)
_DOPRI5_D = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)


def _dopri5_inner(theta: float) -> np.ndarray:
    """The continuous extension of order 4 (HNW II.6)."""
    b, d = np.array(_DOPRI5_B), np.array(_DOPRI5_D)
    first, last = np.eye(7)[0], np.eye(7)[6]
    bulge = 2.0 * b - first - last
    return theta * (b + (1.0 - theta) * ((first - b) + theta * (bulge + (1.0 - theta) * d)))


_DOPRI5 = Tableau(
    a=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        _DOPRI5_B[:6],
    ),
    b=_DOPRI5_B,
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    e=(71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    order=5,
    inner=_dopri5_inner,
)

_RK4_B = (1 / 6, 1 / 3, 1 / 3, 1 / 6, 0.0)


def _rk4_inner(theta: float) -> np.ndarray:
    """Cubic Hermite interpolation."""
    b, first, last = np.array(_RK4_B), np.eye(5)[0], np.eye(5)[4]
    return theta * b + theta * (theta - 1.0) * ((1.0 - 2.0 * theta) * b + (theta - 1.0) * first + theta * last)


_RK4 = Tableau(
    a=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0), _RK4_B[:4]),
    b=_RK4_B,
    c=(0.0, 1 / 2, 1 / 2, 1.0, 1.0),
    e=(0.0, 0.0, 0.0, 0.0, 0.0),
    order=4,
    inner=_rk4_inner,
)


@dataclass(frozen=True)
class DOPRI5:
    """The method of Dormand and Prince: order 5, error estimate of order 4, dense output of order 4.

    For formulations that are ordinary differential equations: index 1, Baumgarte, coordinate projection, state space.
    """

    stop_when_stiff: bool | int = False
    name = "dopri5"
    tableau = _DOPRI5
    max_order = 5
    error_test = "auto"
    nonnegative = False

    def workspace_options(self, problem) -> dict[str, Any]:
        """What the workspace has to know."""
        return {"linear_solver": "auto", "preconditioner": None, "norm": None, "row_power": None, "increment": "robust"}

    def prepare_tests(self, task: Task, integrator) -> None:
        """All components take part in the error test."""
        integrator.array("included")[:] = 1.0

    def integrate(self, task: Task) -> Outcome:
        """Run with step size control."""
        return _RungeKuttaRun(self, task).to_the_end()

    def integrate_fixed(self, task: Task, h: float) -> Outcome:
        """Run with constant steps."""
        return _RungeKuttaRun(self, task, task.sign * h).to_the_end()


@dataclass(frozen=True)
class RK4(DOPRI5):
    """The classical method of order 4, for constant steps."""

    name = "rk4"
    tableau = _RK4
    max_order = 4

    def integrate(self, task: Task) -> Outcome:
        """Refused: there is no error estimate."""
        from daedal.errors import InvalidProblemError

        raise InvalidProblemError("RK4 has no error estimate: give fixed_step, or use DOPRI5")


def first_step(task: Task, order: int, assembly=None) -> float:
    """A first step for an explicit method of some order, signed.

    For a mechanism a part of the shortest of the times |q|/|v| and (|q|/|a|)^(1/2) that suits the tolerance; otherwise
    0.01 |y|/|y'| in the norm of the tolerances (HNW II.4).
    """
    given = task.initial_step()
    assembly = getattr(task.rate, "keep", None) if assembly is None else assembly
    longest = min(0.1 * abs(task.t_span[1] - task.t_span[0]), task.max_step)
    if task.first_step is not None or task.n == 0:
        return given
    if assembly is not None and assembly.m == 2 and task.n >= assembly.n_state:
        nx = assembly.nx
        q, v = np.max(np.abs(task.y0[:nx])), np.max(np.abs(task.y0[nx : 2 * nx]))
        a = np.max(np.abs(task.yp0[nx : 2 * nx]))
        if 0.0 < q <= np.max(task.atol[:nx]):  # as good as zero
            q = float(np.max(task.atol[:nx] / np.maximum(task.rtol[:nx], 1e-14)))
        rates = np.array([v / q, np.sqrt(a / q)]) if q > 0.0 else np.zeros(2)
        if np.isfinite(rates).all() and rates.max() > 0.0:
            tolerance = float(np.max(task.rtol[:nx] + task.atol[:nx] / q))
            return task.sign * min(0.1 * min(tolerance, 1.0) ** (1.0 / (order + 1)) / rates.max(), longest)
    weights = task.rtol * np.abs(task.y0) + task.atol
    if not np.all(weights > 0.0):
        return given
    d0, d1 = float(np.linalg.norm(task.y0 / weights)), float(np.linalg.norm(task.yp0 / weights))
    if not (d0 > 0.0 and d1 > 0.0 and np.isfinite(d0 / d1)):
        return given
    return task.sign * min(max(0.01 * d0 / d1, abs(given)), longest)


class OneStepRun(Run):
    """A run of a one-step method: `kernel` advances, `method` is the record of the method."""

    kernel: Any
    method: Any

    def choose_steps(self, fixed: float | None, order: int, assembly=None) -> None:
        """The first step of a controlled run, or constant steps."""
        task = self._task
        if fixed is None:
            self.integrator["h"] = first_step(task, order, assembly)
            return
        last = round((task.t_span[1] - task.t_span[0]) / fixed)
        for name, value in {"fixed": 1, "t0": task.t_span[0], "last_step": last}.items():
            self.method[name] = value
        self.integrator["h"] = fixed

    def _advance(self) -> int:
        workspace = self._task.workspace
        return self.kernel(
            workspace.system.data, self.method.data, self.integrator.data, self.run.data, self.roots.data
        )


class _RungeKuttaRun(OneStepRun):
    """A run of an explicit method."""

    def __init__(self, method: DOPRI5, task: Task, fixed: float | None = None):
        super().__init__(method, task)
        self.constant_order = method.max_order
        from daedal.kernels.records import Record
        from daedal.methods import runge_kutta_run

        self.kernel = runge_kutta_run.advance_runge_kutta
        rate = task.rate
        arrays = method.tableau.arrays
        s = arrays["b"].size
        self.method = Record(
            runge_kutta_run.TABLEAU,
            n=task.n,
            stages=s,
            order=method.tableau.order,
            rate=task.workspace.bridge.native(rate.kernel, rate.record, 2 * task.n),
            k=np.zeros((s, task.n)),
            stage=np.zeros(task.n),
            error_before=1e-4,
            stop_when_stiff=bool(method.stop_when_stiff),
            stiff_count=1 - int(method.stop_when_stiff),
            a=arrays["a"],
            b=arrays["b"],
            c=arrays["c"],
            e=arrays["e"],
            inner=arrays["inner"],
        )
        self.choose_steps(fixed, method.tableau.order)
