"""The solvers of the benchmark by name. Their packages are imported only when they are used."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec

from benchmarks.solvers import casadi, daedal, diffsol, ida_c, odes, solve_dae, sundae, sundials
from benchmarks.solvers.base import Solver

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        daedal.Daedal,
        sundials.Sundials,
        sundae.Sundae,
        odes.Ddaspk,
        solve_dae.SolveDaeBDF,
        solve_dae.SolveDaeRadau,
        daedal.DaedalCompiled,
        ida_c.IdaC,
        sundials.SundialsNumba,
        sundae.SundaeNumba,
        solve_dae.SolveDaeBDFSparse,
        diffsol.DiffsolBDF,
        diffsol.DiffsolEsdirk,
        diffsol.DiffsolTrBDF2,
        casadi.CasadiIdas,
        casadi.CasadiIdasJit,
        casadi.CasadiRosenbrock,
        casadi.CasadiRosenbrockJit,
        casadi.CasadiCollocation,
        casadi.CasadiCollocationJit,
    )
}
BASELINES = {"python": "daedal", "compiled": "daedal-compiled"}


def installed(solver: type[Solver]) -> bool:
    """Whether the solver's package can be imported."""
    try:
        return find_spec(solver.package) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False


def release(solver: type[Solver]) -> str:
    """The installed release of the solver's package."""
    names = packages_distributions().get(solver.package.split(".")[0], [solver.package])
    try:
        return version(names[0])
    except PackageNotFoundError:
        return "?"
