"""The solvers of the benchmark by name. Their packages are imported only when they are used."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec

from benchmarks.solvers import (
    casadi,
    daedal,
    daedal_mechanics,
    diffsol,
    ida_c,
    odes,
    scipy_ode,
    solve_dae,
    sundae,
    sundials,
)
from benchmarks.solvers.base import Solver, in_form

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        daedal.Daedal,
        sundials.Sundials,
        sundae.Sundae,
        odes.Ddaspk,
        solve_dae.SolveDaeBDF,
        solve_dae.SolveDaeRadau,
        daedal.DaedalDASSL,
        daedal.DaedalNumba,
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
        # on mechanisms
        daedal_mechanics.DaedalAuto,
        daedal_mechanics.DaedalProjection,
        daedal_mechanics.DaedalHalfExplicit,
        daedal_mechanics.DaedalGGL,
        daedal_mechanics.DaedalInvariants,
        daedal_mechanics.DaedalModifiedBDF,
        daedal_mechanics.DaedalCollocation,
        *(in_form(sundials.Sundials, form) for form in ("index1", "ggl", "ggl1")),
        *(in_form(sundae.Sundae, form) for form in ("index1", "ggl1")),
        *(in_form(odes.Ddaspk, form) for form in ("index1", "ggl", "ggl1")),
        in_form(solve_dae.SolveDaeBDF, "ggl1"),
        in_form(solve_dae.SolveDaeRadau, "ggl1"),
        scipy_ode.ScipyDop853,
        scipy_ode.ScipyLsoda,
        daedal_mechanics.DaedalAutoNumba,
        *(in_form(ida_c.IdaC, form) for form in ("index1", "ggl", "ggl1")),
        *(in_form(sundials.SundialsNumba, form) for form in ("index1", "ggl", "ggl1")),
        in_form(sundae.SundaeNumba, "ggl1"),
        *(in_form(solver, "index1") for solver in (diffsol.DiffsolBDF, diffsol.DiffsolEsdirk)),
        *(in_form(solver, "index1") for solver in (casadi.CasadiIdas, casadi.CasadiIdasJit)),
        *(in_form(solver, "index1") for solver in (casadi.CasadiRosenbrock, casadi.CasadiRosenbrockJit)),
        in_form(casadi.CasadiCollocationJit, "index1"),
        casadi.CasadiErk,
        casadi.CasadiErkJit,
        scipy_ode.ScipyDop853Numba,
        scipy_ode.ScipyLsodaNumba,
    )
}
BASELINES = {False: daedal.Daedal.name, True: daedal_mechanics.DaedalAuto.name}
"""The runs of Daedal that all others are compared with, on plain functions: by whether the case is a mechanism."""


def baseline(solver: str) -> str:
    """The run of Daedal that a solver is compared with."""
    return BASELINES[bool(SOLVERS[solver].form)]


def belongs(solver: str, callbacks: str) -> bool:
    """Whether a solver stands in the tables of a kind of callbacks; the baselines stand in all."""
    return SOLVERS[solver].callbacks == callbacks or solver == baseline(solver)


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
