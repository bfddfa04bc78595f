"""Daedal: differential-algebraic equations and constrained mechanisms in Python.

>>> import daedal
>>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], [-1.0])
>>> sol.success
True
"""

from daedal import library
from daedal.errors import (
    DaedalError,
    InconsistentInitialError,
    IntegrationError,
    InvalidProblemError,
    Unevaluable,
)
from daedal.events.event import Event, EventRecord
from daedal.initial.consistent import consistent_initial
from daedal.linear_solvers import (
    GMRES,
    BandedPreconditioner,
    BlockDiagonalPreconditioner,
    ILUPreconditioner,
    Preconditioner,
)
from daedal.methods.dassl import DASSL
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.solution import Solution, Statistics
from daedal.solve import solve, solve_dae

__version__ = "0.1.0"

__all__ = [
    "DASSL",
    "GMRES",
    "BandedPreconditioner",
    "BlockDiagonalPreconditioner",
    "DaedalError",
    "Event",
    "EventRecord",
    "ILUPreconditioner",
    "ImplicitDAE",
    "InconsistentInitialError",
    "IntegrationError",
    "InvalidProblemError",
    "Preconditioner",
    "SemiExplicitDAE",
    "Solution",
    "Statistics",
    "Unevaluable",
    "__version__",
    "consistent_initial",
    "library",
    "solve",
    "solve_dae",
]
