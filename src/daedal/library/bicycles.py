"""Whipple's bicycle, of bodies, hinges and wheels that roll."""

import math
from functools import cache

import numpy as np

from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.model import Model, check_positive, known, model
from daedal.multibody import Body, Free, Revolute, Rolling, Start, ground
from daedal.multibody import Model as Machine
from daedal.viz.shapes3d import Disc

WHEELBASE, TRAIL, TILT = 1.02, 0.08, math.pi / 10.0  # m, m, rad
REAR_RADIUS, FRONT_RADIUS = 0.3, 0.35  # m

# Weave, capsize and castering at 5 m/s (Meijaard, Papadopoulos, Ruina and Schwab 2007, table 2)
EIGENVALUES = (
    complex(-0.775341882195845, 4.46486771378823),
    complex(-0.775341882195845, -4.46486771378823),
    complex(-0.322866429004087),
    complex(-14.0783896927982),
)


def _wheel(name: str, mass: float, across: float, along: float, x: float, radius: float) -> Body:
    shapes = (Disc(radius, 0.02, axis="y"),)
    return Body(name, mass, (across, along, across), position=(x, 0.0, radius), shapes=shapes)


@cache
def _bicycle() -> Machine:
    rear = _wheel("rear wheel", 2.0, 0.0603, 0.12, 0.0, REAR_RADIUS)
    front = _wheel("front wheel", 3.0, 0.1405, 0.28, WHEELBASE, FRONT_RADIUS)
    moments = [[9.2, 0.0, -2.4], [0.0, 11.0, 0.0], [-2.4, 0.0, 2.8]]
    frame = Body("frame", 85.0, moments, position=(0.3, 0.0, 0.9))
    moments = [[0.05892, 0.0, 0.00756], [0.0, 0.06, 0.0], [0.00756, 0.0, 0.00708]]
    fork = Body("fork", 4.0, moments, position=(0.9, 0.0, 0.7))
    return Machine(
        Free("ride", ground, frame),
        Revolute("rear", frame, rear, at=rear.position, axis="y"),
        Revolute("steer", frame, fork, at=(WHEELBASE + TRAIL, 0.0, 0.0), axis=(-math.sin(TILT), 0.0, math.cos(TILT))),
        Revolute("front", fork, front, at=front.position, axis="y"),
        Rolling("rear contact", rear, radius=REAR_RADIUS, axis="y"),
        Rolling("front contact", front, radius=FRONT_RADIUS, axis="y"),
        gravity=(0.0, 0.0, -GRAVITY),
        name="Whipple's bicycle",
    )


@cache
def _starts(speed: float, push: float) -> tuple[Start, Start]:
    """The straight ride, and the same with a rate of lean."""
    machine = _bicycle()
    along = {"ride.x": speed, "steer": 0.0, "ride.about_z": 0.0}
    straight = machine.assemble(velocities={**along, "ride.about_x": 0.0})
    return straight, machine.assemble(velocities={**along, "ride.about_x": push})


@model(
    title="Whipple's bicycle",
    source="J. P. Meijaard, J. M. Papadopoulos, A. Ruina, A. L. Schwab, Linearized dynamics equations for the balance "
    "and steer of a bicycle: a benchmark and review, Proc. Roy. Soc. A 463 (2007)",
    description="A frame with a rigid rider, a fork, and two wheels that roll without slip; nobody steers. Between "
    "4.3 and 6.0 m/s it rights itself after a push: a lean makes it steer into the fall.",
    equations=r"M(q)\,q'' = f(q, q') - G(q)^T \lambda - C(q)^T \mu,\qquad 0 = g(q),\qquad 0 = C(q)\,q'",
)
def bicycle(speed: float = 5.0, push: float = 0.5, t1: float = 2.0, coordinates: str = "relative") -> Model:
    """A bicycle without hands, after a push to the side.

    Parameters
    ----------
    speed : float
        Forward speed at the start (m/s).
    push : float
        Rate of lean at the start (rad/s).
    t1 : float
        End time (s); a reference is known for 2 with the other defaults.
    coordinates : {"relative", "absolute"}
        Those of the joints, or positions and orientations of all bodies.

    Notes
    -----
    ``model.extra`` has ``machine``, ``energy``, ``straight``, the start of the straight ride, and ``eigenvalues``,
    those of its small motions at 5 m/s as published: weave, capsize and castering. The machine has six more, which are
    zero: place, heading, the angles of the wheels, and the speed.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.bicycle()
    >>> small = model.extra["machine"].linearise(model.extra["straight"])
    >>> weave = max(small.eigenvalues, key=lambda value: value.imag)
    >>> print(f"{weave:.6f} {model.extra['eigenvalues'][0]:.6f}")
    -0.775342+4.464868j -0.775342+4.464868j
    """
    check_positive(speed=speed)
    straight, start = _starts(float(speed), float(push))
    return machine_model(
        _bicycle(),
        start,
        t1,
        coordinates=coordinates,
        known=known("bicycle", speed=speed, push=push, t1=t1),
        extra={"straight": straight, "eigenvalues": np.array(EIGENVALUES)},
    )
