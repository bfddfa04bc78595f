"""Machines from bodies, joints and forces.

>>> from daedal.multibody import Body, Model, Revolute, ground
>>> rod = Body.rod("rod", length=1.0, mass=1.0)
>>> Model(Revolute("pivot", ground, rod.start)).system().n_q
1
"""

from daedal.multibody.algorithms import Accelerations as Accelerations
from daedal.multibody.algorithms import aba, accelerations, crba, rnea
from daedal.multibody.body import Body, Frame, ground
from daedal.multibody.constraint import Belt, Constraint, Coupling, Gear, Prescribed, PrescribedMotion, Rack
from daedal.multibody.controller import PID, Actuator, Controller, Hydraulics, Motor
from daedal.multibody.discontinuity import Contact, JointFriction
from daedal.multibody.driven_motion import DeadPointError, KinematicSolution
from daedal.multibody.equilibrium import Equilibrium, NoEquilibriumError
from daedal.multibody.fields import Drag, GeneralForce, Gravitation, SmoothFriction, SoftContact, Torque
from daedal.multibody.flexible import Segmented, beam, cable
from daedal.multibody.force import Force
from daedal.multibody.geometric import Distance, PointOnCurve, PointOnSurface, UserConstraint
from daedal.multibody.inverse_dynamics import InverseDynamics
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
from daedal.multibody.layout import Layout as Layout
from daedal.multibody.linearised import Linearised, Mode
from daedal.multibody.model import Model
from daedal.multibody.motion import Loads as Loads
from daedal.multibody.motion import Motion as Motion
from daedal.multibody.motion import MotionHistory as MotionHistory
from daedal.multibody.multibody_system import Conditions as Conditions
from daedal.multibody.multibody_system import Derivatives as Derivatives
from daedal.multibody.multibody_system import MotionEquations as MotionEquations
from daedal.multibody.multibody_system import MultibodySystem as MultibodySystem
from daedal.multibody.poses import BodyStates as BodyStates
from daedal.multibody.poses import Start
from daedal.multibody.report import Report
from daedal.multibody.results import Energy, Results
from daedal.multibody.results import Machine as Machine
from daedal.multibody.rolling import Rolling, RollingSphere
from daedal.multibody.spring import Bushing, Damper, Spring, TorsionSpring
from daedal.multibody.topology import SpanningTree as SpanningTree
from daedal.multibody.urdf import from_urdf
from daedal.multibody.views import BodyView, ForceAndTorque, ForceView, FrameView, JointView
from daedal.solution.machine_record import RecordedBody as RecordedBody
from daedal.solution.machine_record import RecordedEnergy as RecordedEnergy
from daedal.solution.machine_record import RecordedForce as RecordedForce
from daedal.solution.machine_record import RecordedFrame as RecordedFrame
from daedal.solution.machine_record import RecordedJoint as RecordedJoint
from daedal.solution.machine_record import RecordedMachine as RecordedMachine
from daedal.solution.machine_record import RecordedWrench as RecordedWrench

__all__ = [
    "PID",
    "Actuator",
    "Belt",
    "Body",
    "BodyView",
    "Bushing",
    "Cartesian",
    "Constraint",
    "Contact",
    "Controller",
    "Coupling",
    "Cylindrical",
    "Damper",
    "DeadPointError",
    "Distance",
    "Drag",
    "Energy",
    "Equilibrium",
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
    "InverseDynamics",
    "Joint",
    "JointFriction",
    "JointView",
    "KinematicSolution",
    "Linearised",
    "Mode",
    "Model",
    "Motor",
    "NoEquilibriumError",
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
    "Segmented",
    "SmoothFriction",
    "SoftContact",
    "Spherical",
    "Spring",
    "Start",
    "Torque",
    "TorsionSpring",
    "Universal",
    "UserConstraint",
    "aba",
    "accelerations",
    "beam",
    "cable",
    "crba",
    "from_urdf",
    "ground",
    "rnea",
]
