"""Machines from bodies, joints and forces.

>>> from daedal.multibody import Body, Model, Revolute, ground
>>> rod = Body.rod("rod", length=1.0, mass=1.0)
>>> Model(Revolute("pivot", ground, rod.start)).system().n_q
1
"""

from daedal.multibody.body import Body, Frame, ground
from daedal.multibody.constraints import (
    Belt,
    Constraint,
    Coupling,
    Distance,
    Gear,
    PointOnCurve,
    PointOnSurface,
    Prescribed,
    PrescribedMotion,
    Rack,
    Rolling,
    RollingSphere,
    UserConstraint,
)
from daedal.multibody.forces import Force, Spring
from daedal.multibody.joints import (
    Cylindrical,
    Fixed,
    Free,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)
from daedal.multibody.model import Model
from daedal.multibody.report import Report
from daedal.multibody.start import Start

__all__ = [
    "Belt",
    "Body",
    "Constraint",
    "Coupling",
    "Cylindrical",
    "Distance",
    "Fixed",
    "Force",
    "Frame",
    "Free",
    "Gear",
    "Joint",
    "Model",
    "Planar",
    "PointOnCurve",
    "PointOnSurface",
    "Prescribed",
    "PrescribedMotion",
    "Prismatic",
    "Rack",
    "Report",
    "Revolute",
    "Rolling",
    "RollingSphere",
    "Screw",
    "Spherical",
    "Spring",
    "Start",
    "Universal",
    "UserConstraint",
    "ground",
]
