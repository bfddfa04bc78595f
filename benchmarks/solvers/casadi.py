"""The integrators of CasADi, on its virtual machine and compiled to C."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.cases import Case
from benchmarks.solvers.base import Level, Outcome, SolveFailure, Solver
from benchmarks.symbolic import STATEMENTS


class CasadiIdas(Solver):
    name = "casadi-idas"
    label = "CasADi idas"
    package = "casadi"
    callbacks = "compiled"
    plugin: ClassVar[str] = "idas"
    jit: ClassVar[bool] = False

    def __init__(self, case: Case, counting: bool = False) -> None:
        super().__init__(case)
        self.statement = STATEMENTS[case.name]()

    @classmethod
    def handles(cls, case: Case) -> bool:
        return case.name in STATEMENTS and (not cls.jit or shutil.which("gcc") is not None)

    def options(self, level: Level) -> dict[str, Any]:
        options: dict[str, Any] = {"reltol": level.rtol, "abstol": level.atol, "max_num_steps": 10**7}
        if self.plugin == "idas":
            # IDACalcIC takes its step from the first output time, which on Robertson is 4e10: the start is consistent.
            options |= {"calc_ic": False, "suppress_algebraic": self.case.masked, "disable_internal_warnings": True}
            options["init_xdot"] = [float(v) for v in self.statement_derivatives()]
        return options

    def statement_derivatives(self) -> Any:
        import casadi

        system, x0, z0 = self.statement.casadi()
        ode = casadi.Function("ode", [system["t"], system["x"], system["z"]], [system["ode"]])
        return np.ravel(ode(self.case.t_span[0], x0, z0))

    def system(self) -> tuple[dict[str, Any], list[float], list[float]]:
        """What the integrator is given, and the starts of its ``x`` and ``z``."""
        return self.statement.casadi()

    def prepare(self, level: Level) -> Callable[[], Any]:
        import casadi

        system, x0, z0 = self.system()
        options = self.options(level)
        if self.jit:
            options |= {"jit": True, "compiler": "shell", "jit_options": {"flags": ["-O3"], "verbose": False}}
        integrator = casadi.integrator("integrator", self.plugin, system, *self.case.t_span, options)
        x0, z0 = casadi.DM(x0), casadi.DM(z0)

        def call() -> Any:
            return integrator(x0=x0, z0=z0), integrator

        return call

    def outcome(self, raw: Any) -> Outcome:
        result, integrator = raw
        y = self.statement.restore(np.concatenate([np.ravel(result["xf"]), np.ravel(result["zf"])]))
        if not np.all(np.isfinite(y)):
            raise SolveFailure("returned values that are not finite")
        stats = integrator.stats()
        steps = stats.get("nsteps", stats.get("n_steps"))
        return Outcome(y, stats.get("n_rhs") or None, steps or None)  # code in C counts nothing


class CasadiIdasJit(CasadiIdas):
    name = "casadi-idas-jit"
    label = "CasADi idas, C"
    jit = True


class CasadiRosenbrock(CasadiIdas):
    name = "casadi-rosenbrock"
    label = "CasADi rosenbrock"
    family = "Rosenbrock"
    plugin = "rosenbrock"


class CasadiRosenbrockJit(CasadiRosenbrock):
    name = "casadi-rosenbrock-jit"
    label = "CasADi rosenbrock, C"
    jit = True


class CasadiCollocation(CasadiIdas):
    """Radau IIA with three points on equal elements: a number of elements instead of a tolerance."""

    name = "casadi-collocation"
    label = "CasADi collocation"
    family = "collocation"
    plugin = "collocation"

    @classmethod
    def handles(cls, case: Case) -> bool:
        # Equal elements cannot cover eleven decades of time.
        return super().handles(case) and case.name != "robertson"

    @classmethod
    def levels(cls, case: Case, rtols: tuple[float, ...]) -> list[Level]:
        return [Level(rtol, rtol * case.atol_per_rtol, 25 * 2**k) for k, rtol in enumerate(rtols[:6])]

    def options(self, level: Level) -> dict[str, Any]:
        return {
            "number_of_finite_elements": level.elements,
            "collocation_scheme": "radau",
            "interpolation_order": 3,
        }


class CasadiCollocationJit(CasadiCollocation):
    name = "casadi-collocation-jit"
    label = "CasADi collocation, C"
    jit = True

    def options(self, level: Level) -> dict[str, Any]:
        return super().options(level) | {"simplify": True, "rootfinder": "fast_newton"}


class CasadiErk(CasadiIdas):
    """The explicit pair of order 5(4). Accelerations and multipliers enter linearly: they are eliminated in symbols."""

    name = "casadi-erk"
    label = "CasADi erk, reduced to an ODE"
    family = "Runge-Kutta"
    plugin = "erk"
    form = "ode"

    def system(self) -> tuple[dict[str, Any], list[float], list[float]]:
        import casadi

        system, x0, _ = super().system()
        z = system.pop("z")
        equations = system.pop("alg")
        right = -casadi.substitute(equations, z, casadi.SX.zeros(*z.shape))
        solved = casadi.solve(casadi.jacobian(equations, z), right)
        system["ode"] = casadi.substitute(system["ode"], z, solved)
        return system, x0, []


class CasadiErkJit(CasadiErk):
    name = "casadi-erk-jit"
    label = "CasADi erk, C, reduced to an ODE"
    jit = True
