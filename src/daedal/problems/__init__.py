"""What is to be solved: immutable descriptions that know nothing of time stepping."""

from daedal.problems.implicit import ImplicitDAE
from daedal.problems.semi_explicit import SemiExplicitDAE

__all__ = ["ImplicitDAE", "SemiExplicitDAE"]
