"""Problem classes: immutable descriptions, independent of time stepping."""

from daedal.problems.hessenberg import HessenbergDAE
from daedal.problems.implicit import ImplicitDAE
from daedal.problems.linear_dae import LinearDAE
from daedal.problems.mass_matrix import MassMatrixDAE
from daedal.problems.mechanical import MechanicalSystem
from daedal.problems.ode import ODE
from daedal.problems.quasilinear import Quasilinear
from daedal.problems.second_order_problem import SecondOrderDAE
from daedal.problems.semi_explicit import SemiExplicitDAE

__all__ = [
    "ODE",
    "HessenbergDAE",
    "ImplicitDAE",
    "LinearDAE",
    "MassMatrixDAE",
    "MechanicalSystem",
    "Quasilinear",
    "SecondOrderDAE",
    "SemiExplicitDAE",
]
