"""Machines from bodies, joints and forces.

>>> from daedal.multibody import Body, Model, Revolute, ground
>>> rod = Body.rod("rod", length=1.0, mass=1.0)
>>> Model(Revolute("pivot", ground, rod.start)).system().n_q
1
"""

from daedal.multibody.body import Body, Frame, ground
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

__all__ = [
    "PID",
    "Actuator",
    "Body",
    "Bushing",
    "Controller",
    "Cylindrical",
    "Damper",
    "Drag",
    "Fixed",
    "Force",
    "Frame",
    "Free",
    "GeneralForce",
    "Gravitation",
    "Hydraulics",
    "Joint",
    "Model",
    "Motor",
    "Planar",
    "Prismatic",
    "Revolute",
    "Screw",
    "Spherical",
    "Spring",
    "Torque",
    "TorsionSpring",
    "Universal",
    "ground",
]
