"""Constraints other than joints: couplings, rolling, paths, rods and drives."""

from daedal.multibody.constraints.constraint import Belt, Constraint, Coupling, Gear, Prescribed, PrescribedMotion, Rack
from daedal.multibody.constraints.geometric import Distance, PointOnCurve, PointOnSurface, UserConstraint
from daedal.multibody.constraints.rolling import Rolling, RollingSphere

__all__ = [
    "Belt",
    "Constraint",
    "Coupling",
    "Distance",
    "Gear",
    "PointOnCurve",
    "PointOnSurface",
    "Prescribed",
    "PrescribedMotion",
    "Rack",
    "Rolling",
    "RollingSphere",
    "UserConstraint",
]
