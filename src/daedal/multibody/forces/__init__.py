"""Force elements: springs, dampers, bushings, actuators, controllers, and loads on single bodies."""

from daedal.multibody.forces.controller import PID, Actuator, Controller, Hydraulics, Motor
from daedal.multibody.forces.discontinuity import Contact, Discontinuity, JointFriction
from daedal.multibody.forces.fields import Drag, GeneralForce, Gravitation, SmoothFriction, SoftContact, Torque
from daedal.multibody.forces.force import Force, frame_of
from daedal.multibody.forces.spring import Bushing, Damper, Spring, TorsionSpring

__all__ = [
    "PID",
    "Actuator",
    "Bushing",
    "Contact",
    "Controller",
    "Damper",
    "Discontinuity",
    "Drag",
    "Force",
    "GeneralForce",
    "Gravitation",
    "Hydraulics",
    "JointFriction",
    "Motor",
    "SmoothFriction",
    "SoftContact",
    "Spring",
    "Torque",
    "TorsionSpring",
    "frame_of",
]
