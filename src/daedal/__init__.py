"""Daedal: differential-algebraic equations and constrained mechanisms in Python.

>>> import daedal
>>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], [-1.0])
>>> sol.success
True
"""

from daedal import library
from daedal.advise import advise
from daedal.compare import compare
from daedal.errors import (
    DaedalError,
    InconsistentInitialError,
    IntegrationError,
    InvalidProblemError,
    Unevaluable,
)
from daedal.events.event import Event, EventRecord
from daedal.formulations import (
    GGL,
    Baumgarte,
    CoordinateProjection,
    EssentialODE,
    FuehrerLeimkuhler,
    Hanke,
    Index1,
    Index2,
    Index3,
    Knorrenschild,
    Loetstedt,
    MinimalExtension,
    Overdetermined,
    ProjectedInvariants,
    StateSpace,
)
from daedal.formulations.linear_reduction import StabilisedReduction
from daedal.initial.consistent import consistent_initial
from daedal.linear_solvers import (
    GMRES,
    BandedPreconditioner,
    BlockDiagonalPreconditioner,
    ILUPreconditioner,
    Preconditioner,
)
from daedal.mechanical_solution import MechanicalSolution
from daedal.methods.dassl import DASSL
from daedal.methods.half_explicit import HEDOP5, HEM3, HEM4, HEM5, PHEM56, HalfExplicit
from daedal.methods.runge_kutta import DOPRI5, RK4
from daedal.problems import HessenbergDAE, ImplicitDAE, LinearDAE, MechanicalSystem, SemiExplicitDAE
from daedal.solution import Solution, Statistics
from daedal.solve import solve, solve_dae

__version__ = "0.1.0"

__all__ = [
    "DASSL",
    "DOPRI5",
    "GGL",
    "GMRES",
    "HEDOP5",
    "HEM3",
    "HEM4",
    "HEM5",
    "PHEM56",
    "RK4",
    "BandedPreconditioner",
    "Baumgarte",
    "BlockDiagonalPreconditioner",
    "CoordinateProjection",
    "DaedalError",
    "EssentialODE",
    "Event",
    "EventRecord",
    "FuehrerLeimkuhler",
    "HalfExplicit",
    "Hanke",
    "HessenbergDAE",
    "ILUPreconditioner",
    "ImplicitDAE",
    "InconsistentInitialError",
    "Index1",
    "Index2",
    "Index3",
    "IntegrationError",
    "InvalidProblemError",
    "Knorrenschild",
    "LinearDAE",
    "Loetstedt",
    "MechanicalSolution",
    "MechanicalSystem",
    "MinimalExtension",
    "Overdetermined",
    "Preconditioner",
    "ProjectedInvariants",
    "SemiExplicitDAE",
    "Solution",
    "StabilisedReduction",
    "StateSpace",
    "Statistics",
    "Unevaluable",
    "__version__",
    "advise",
    "compare",
    "consistent_initial",
    "library",
    "order_conditions",
    "solve",
    "solve_dae",
]


def __getattr__(name: str):
    """Load what few need, and what takes time to load, when it is asked for."""
    if name == "order_conditions":
        from importlib import import_module

        return import_module("daedal.order_conditions")
    raise AttributeError(f"module 'daedal' has no attribute '{name}'")
