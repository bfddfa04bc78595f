"""Machines from bodies, joints and forces.

>>> from daedal.multibody import Body, Model, Revolute, ground
>>> rod = Body.rod("rod", length=1.0, mass=1.0)
>>> Model(Revolute("pivot", ground, rod.start)).system().n_q
1
"""

from daedal.multibody.algorithms import aba, accelerations, crba, rnea
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
from daedal.multibody.forces import (
    PID,
    Actuator,
    Bushing,
    Controller,
    Damper,
    Drag,
    Force,
    GeneralForce,
    Gravitation,
    Hydraulics,
    Motor,
    Spring,
    Torque,
    TorsionSpring,
)
from daedal.multibody.joint_view import JointView
from daedal.multibody.joints import (
    Cartesian,
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
from daedal.multibody.results import Energy, Results
from daedal.multibody.start import Start
from daedal.multibody.views import BodyView, ForceAndTorque, ForceView, FrameView

__all__ = [
    "PID",
    "Actuator",
    "Belt",
    "Body",
    "BodyView",
    "Bushing",
    "Cartesian",
    "Constraint",
    "Controller",
    "Coupling",
    "Cylindrical",
    "Damper",
    "Distance",
    "Drag",
    "Energy",
    "Fixed",
    "Force",
    "ForceAndTorque",
    "ForceView",
    "Frame",
    "FrameView",
    "Free",
    "Gear",
    "GeneralForce",
    "Gravitation",
    "Hydraulics",
    "Joint",
    "JointView",
    "Model",
    "Motor",
    "Planar",
    "PointOnCurve",
    "PointOnSurface",
    "Prescribed",
    "PrescribedMotion",
    "Prismatic",
    "Rack",
    "Report",
    "Results",
    "Revolute",
    "Rolling",
    "RollingSphere",
    "Screw",
    "Spherical",
    "Spring",
    "Start",
    "Torque",
    "TorsionSpring",
    "Universal",
    "UserConstraint",
    "aba",
    "accelerations",
    "crba",
    "ground",
    "rnea",
]
