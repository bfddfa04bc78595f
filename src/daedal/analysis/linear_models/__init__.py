"""Linear models of any problem at a point, at an equilibrium or along a solution."""

from daedal.analysis.linear_models.linear_model import Descriptor, LinearMode, LinearModel
from daedal.analysis.linear_models.linearise import linearise

__all__ = ["Descriptor", "LinearMode", "LinearModel", "linearise"]
