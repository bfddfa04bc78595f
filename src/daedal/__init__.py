"""Daedal: differential-algebraic equations and constrained mechanisms in Python.

>>> import daedal
>>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], [-1.0])
>>> sol.success
True
"""

from daedal import library
from daedal.advise import advise
from daedal.comparison import compare
from daedal.drive.solver import Solver, prepare
from daedal.errors import (
    DaedalError,
    InconsistentInitialError,
    IntegrationError,
    InvalidFileError,
    InvalidProblemError,
    StructurallySingularError,
    Unevaluable,
    UnknownNameError,
)
from daedal.events.event import Event, EventRecord
from daedal.events.table import EventTable
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
from daedal.hybrid.hybrid_event import HybridEvent
from daedal.hybrid.models.breaking import breaking
from daedal.hybrid.models.contact import Contact
from daedal.hybrid.models.elastoplastic import ElastoPlastic, elastoplastic
from daedal.hybrid.models.filippov import Filippov
from daedal.hybrid.models.friction import Friction, NonUniqueWarning
from daedal.hybrid.models.friction_state import ContactState
from daedal.hybrid.models.impact import EnergyWarning, Impact, impact
from daedal.hybrid.models.tabulated import Table
from daedal.hybrid.models.unilateral import UnilateralProblem, unilateral
from daedal.hybrid.problem import HybridProblem, Mode, Transition
from daedal.hybrid.solution import HybridSolution
from daedal.initial.consistent import consistent_initial
from daedal.linear_solvers import (
    GMRES,
    BandedPreconditioner,
    BlockDiagonalPreconditioner,
    ILUPreconditioner,
    Preconditioner,
)
from daedal.mechanical_solution import MechanicalSolution
from daedal.methods.collocation import Collocation
from daedal.methods.dassl import DASSL
from daedal.methods.extrapolation import Extrapolation
from daedal.methods.half_explicit import HEDOP5, HEM3, HEM4, HEM5, PHEM56, HalfExplicit
from daedal.methods.implicit_runge_kutta import ImplicitRungeKutta
from daedal.methods.mexx import MEXX
from daedal.methods.modified_bdf import ModifiedBDF
from daedal.methods.modified_euler import modified_euler
from daedal.methods.radau import Radau
from daedal.methods.rattle import RATTLE, SHAKE
from daedal.methods.rosenbrock import Rosenbrock
from daedal.methods.runge_kutta import DOP853, DOPRI5, RK4
from daedal.problem_conditioning import conditioning
from daedal.problems import (
    ODE,
    HessenbergDAE,
    ImplicitDAE,
    LinearDAE,
    MassMatrixDAE,
    MechanicalSystem,
    SecondOrderDAE,
    SemiExplicitDAE,
)
from daedal.second_order_solution import SecondOrderSolution
from daedal.solution import Solution, Statistics
from daedal.solve import solve, solve_dae
from daedal.tracing import SwitchWarning, TraceWarning

__version__ = "0.1.0"

__all__ = [
    "DASSL",
    "DOP853",
    "DOPRI5",
    "GGL",
    "GMRES",
    "GPU",
    "HEDOP5",
    "HEM3",
    "HEM4",
    "HEM5",
    "MEXX",
    "ODE",
    "PHEM56",
    "RATTLE",
    "RK4",
    "SHAKE",
    "Analysis",
    "BandedPreconditioner",
    "Baumgarte",
    "BlockDiagonalPreconditioner",
    "Collocation",
    "Conditioning",
    "Contact",
    "ContactState",
    "CoordinateProjection",
    "DaedalError",
    "ElastoPlastic",
    "EnergyWarning",
    "Ensemble",
    "EssentialODE",
    "Event",
    "EventRecord",
    "EventTable",
    "Experiment",
    "Extrapolation",
    "Filippov",
    "Fit",
    "Friction",
    "FuehrerLeimkuhler",
    "GeneralLinearMethod",
    "HalfExplicit",
    "Hanke",
    "HessenbergDAE",
    "HybridEvent",
    "HybridProblem",
    "HybridSolution",
    "ILUPreconditioner",
    "IVPResult",
    "Impact",
    "ImplicitDAE",
    "ImplicitRungeKutta",
    "InconsistentInitialError",
    "Index1",
    "Index2",
    "Index3",
    "IntegrationError",
    "InvalidFileError",
    "InvalidProblemError",
    "Knorrenschild",
    "LinearDAE",
    "Loetstedt",
    "MassMatrixDAE",
    "MechanicalSolution",
    "MechanicalSystem",
    "MinimalExtension",
    "Mode",
    "ModifiedBDF",
    "Multistep",
    "MultistepFormula",
    "NonUniqueWarning",
    "OneLeg",
    "Overdetermined",
    "Preconditioner",
    "ProjectedInvariants",
    "Radau",
    "RecognisedSolution",
    "ReducedProblem",
    "Rosenbrock",
    "RungeKuttaTableau",
    "SecondOrderDAE",
    "SecondOrderSolution",
    "SemiExplicitDAE",
    "SensitivityWarning",
    "Solution",
    "Solver",
    "StabilisedReduction",
    "StateSpace",
    "Statistics",
    "StructurallySingularError",
    "StructureAlong",
    "SwitchWarning",
    "Table",
    "TraceWarning",
    "Transition",
    "Unevaluable",
    "UnilateralProblem",
    "UnknownNameError",
    "__version__",
    "advise",
    "analyse",
    "analyse_along",
    "analyse_method",
    "breaking",
    "circuits",
    "compare",
    "conditioning",
    "consistent_initial",
    "corrected_multipliers",
    "elastoplastic",
    "ensembles",
    "extrapolation_table",
    "fit",
    "formula",
    "from_sympy",
    "general_linear",
    "gradient",
    "impact",
    "lagrange",
    "library",
    "linear",
    "linear_system",
    "load",
    "modified_euler",
    "multibody",
    "order_conditions",
    "prepare",
    "reduce_index",
    "regularise",
    "sample",
    "solve",
    "solve_dae",
    "solve_ivp",
    "solve_many",
    "solve_on_gpu",
    "uncertainty",
    "unilateral",
]


_LATE = {
    "GeneralLinearMethod": "methods.general_linear",
    "corrected_multipliers": "methods.multiplier_correction",
    "general_linear": "methods.general_linear",
    "regularise": "index_reduction.regularisation",
    "Conditioning": "problem_conditioning.result",
    "IVPResult": "ivp",
    "Ensemble": "ensembles.ensemble",
    "Experiment": "fitting",
    "gradient": "adjoint",
    "Fit": "fitting",
    "fit": "fitting",
    "uncertainty": "fitting.uncertainty",
    "GPU": "ensembles.gpu",
    "solve_on_gpu": "ensembles.gpu_device",
    "Multistep": "methods.multistep",
    "MultistepFormula": "methods.multistep_formula",
    "OneLeg": "methods.multistep",
    "RecognisedSolution": "index_reduction.recognised_solution",
    "ReducedProblem": "index_reduction.reduced",
    "RungeKuttaTableau": "methods.runge_kutta_tableau",
    "SensitivityWarning": "sensitivity.events",
    "StructureAlong": "initial.structure_along",
    "Analysis": "problem_analysis",
    "analyse": "problem_analysis",
    "analyse_along": "initial.structure_along",
    "analyse_method": "method_analysis",
    "extrapolation_table": "methods.extrapolation_sequences",
    "formula": "methods.named_formulas",
    "from_sympy": "sympy_problems",
    "lagrange": "lagrangian",
    "linear_system": "structure.linear_system",
    "load": "results.file",
    "reduce_index": "index_reduction.reduce",
    "solve_ivp": "ivp",
    "sample": "ensembles.sampling",
    "solve_many": "ensembles.solve_many",
}


def __getattr__(name: str):
    """Load what few need, and what takes time to load, when it is asked for."""
    from importlib import import_module

    if name in ("circuits", "ensembles", "linear", "multibody", "order_conditions", "viz"):
        return import_module(f"daedal.{name}")
    if name in _LATE:
        return getattr(import_module(f"daedal.{_LATE[name]}"), name)
    raise AttributeError(f"module 'daedal' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "viz"]
