"""What is to be solved: immutable descriptions that know nothing of time stepping."""

from daedal.problems.hessenberg import HessenbergDAE
from daedal.problems.implicit import ImplicitDAE
from daedal.problems.linear import LinearDAE
from daedal.problems.mechanical import MechanicalSystem
from daedal.problems.second_order import SecondOrderDAE
from daedal.problems.semi_explicit import SemiExplicitDAE

__all__ = ["HessenbergDAE", "ImplicitDAE", "LinearDAE", "MechanicalSystem", "SecondOrderDAE", "SemiExplicitDAE"]
