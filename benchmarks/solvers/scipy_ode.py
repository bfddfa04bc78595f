"""SciPy's methods for ordinary differential equations, on mechanisms reduced by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from benchmarks.cases import Array, Case
from benchmarks.solvers.base import Level, Outcome, SolveFailure, Solver


class ScipyDop853(Solver):
    name = "scipy-dop853"
    label = "SciPy DOP853, reduced to an ODE"
    package = "scipy"
    module = "scipy.integrate"
    callbacks = "python"
    family = "Runge-Kutta"
    form = "ode"
    method: ClassVar[str] = "DOP853"

    @classmethod
    def handles(cls, case: Case) -> bool:
        return case.mechanism is not None

    def prepare(self, level: Level) -> Callable[[], Any]:
        from scipy.integrate import solve_ivp

        case = self.case
        assert case.mechanism is not None
        rate, params = case.mechanism.rate(self.callbacks == "compiled"), case.params

        def function(t: float, y: Array) -> Array:
            return rate(t, y, params)

        options = {"method": self.method, "rtol": level.rtol, "atol": level.atol, "t_eval": [case.t_span[1]]}
        return lambda: solve_ivp(function, case.t_span, case.y0, **options)

    def outcome(self, raw: Any) -> Outcome:
        if not raw.success:
            raise SolveFailure(str(raw.message))
        return Outcome(raw.y[:, -1], raw.nfev)


class ScipyLsoda(ScipyDop853):
    name = "scipy-lsoda"
    label = "SciPy LSODA, reduced to an ODE"
    family = "Adams and BDF"
    method = "LSODA"


class ScipyDop853Numba(ScipyDop853):
    name = "scipy-dop853-numba"
    label = "SciPy DOP853, reduced to an ODE, Numba function"
    callbacks = "compiled"


class ScipyLsodaNumba(ScipyLsoda):
    name = "scipy-lsoda-numba"
    label = "SciPy LSODA, reduced to an ODE, Numba function"
    callbacks = "compiled"
