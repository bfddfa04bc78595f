"""Machines from bodies, joints and forces.

>>> from daedal.multibody import Body, Model, Revolute, ground
>>> rod = Body.rod("rod", length=1.0, mass=1.0)
>>> Model(Revolute("pivot", ground, rod.start)).system().n_q
1
"""

from daedal.multibody.body import Body, Frame, ground
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

__all__ = [
    "Body",
    "Cylindrical",
    "Fixed",
    "Force",
    "Frame",
    "Free",
    "Joint",
    "Model",
    "Planar",
    "Prismatic",
    "Report",
    "Revolute",
    "Screw",
    "Spherical",
    "Spring",
    "Universal",
    "ground",
]
