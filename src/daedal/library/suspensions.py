"""Suspensions of cars and Whipple's bicycle, modelled by bodies, joints and springs."""

import math
from functools import cache

import numpy as np

from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.registry import Model, known, model
from daedal.multibody import (
    Body,
    Distance,
    Free,
    Prescribed,
    Prismatic,
    Revolute,
    Rolling,
    SoftContact,
    Spherical,
    Spring,
    Start,
    ground,
)
from daedal.multibody import Model as Machine
from daedal.viz.shapes3d import Disc, Rod

POINTS = {
    name: np.array(place)
    for name, place in {
        "lower front": (0.18, 0.36, 0.240),
        "lower rear": (-0.20, 0.36, 0.250),
        "lower ball": (0.010, 0.72, 0.200),
        "upper front": (0.14, 0.45, 0.530),
        "upper rear": (-0.16, 0.45, 0.505),
        "upper ball": (-0.020, 0.68, 0.540),
        "rack": (-0.13, 0.40, 0.290),
        "steering arm": (-0.13, 0.70, 0.270),
        "spring foot": (0.000, 0.58, 0.225),
        "spring seat": (-0.010, 0.50, 0.680),
        "wheel": (0.000, 0.75, 0.300),
    }.items()
}
"""Points in the drawn position (m): x forwards, y outwards, z upwards from the road."""

SPRUNG_MASS, WHEEL_RADIUS = 380.0, 0.312  # kg, m
TYRE_STIFFNESS, TYRE_DAMPING = 2.0e5, 0.05  # N/m, s/m
BUMP_TIME, BUMP_WIDTH = 0.4, 0.06  # s


def _part(name: str, mass: float, moments, at: np.ndarray, rods, *others) -> Body:
    """A body with its frame at the centre of mass, parallel to the ground axes, drawn as rods between points."""
    lines = [Rod(POINTS[a] - at, POINTS[b] - at, 0.014) for a, b in rods]
    return Body(name, mass, moments, position=at, shapes=(*lines, *others))


def _middle(*names: str) -> np.ndarray:
    return np.mean([POINTS[name] for name in names], axis=0)


@cache
def _double_wishbone(height: float, stiffness: float, damping: float) -> tuple[Machine, Start]:
    wheel = POINTS["wheel"]
    body = np.array([0.0, 0.0, 0.5])
    chassis = _part(
        "chassis",
        SPRUNG_MASS,
        (40.0, 40.0, 40.0),
        body,
        [
            ("lower front", "lower rear"),
            ("upper front", "upper rear"),
            ("lower front", "upper front"),
            ("lower rear", "upper rear"),
            ("upper front", "spring seat"),
            ("upper rear", "spring seat"),
            ("lower rear", "rack"),
        ],
    )
    lower = _part(
        "lower arm",
        6.0,
        (0.09, 0.10, 0.18),
        _middle("lower front", "lower rear", "lower ball"),
        [("lower front", "lower ball"), ("lower rear", "lower ball")],
    )
    upper = _part(
        "upper arm",
        3.0,
        (0.03, 0.04, 0.06),
        _middle("upper front", "upper rear", "upper ball"),
        [("upper front", "upper ball"), ("upper rear", "upper ball")],
    )
    upright = _part(
        "upright",
        36.0,
        (1.2, 1.6, 1.2),
        wheel,
        [("lower ball", "upper ball"), ("lower ball", "steering arm"), ("lower ball", "wheel")],
        Disc(WHEEL_RADIUS, 0.18, axis="y", offset=(0.0, 0.06, 0.0)),
    )
    road = Body.box("road", size=(0.5, 0.4, 0.02), mass=1.0, position=(0.0, 0.81, -0.01))

    def bump(t):
        return height * np.exp(-(((t - BUMP_TIME) / BUMP_WIDTH) ** 2))

    seat, foot = POINTS["spring seat"], POINTS["spring foot"]
    length = float(np.linalg.norm(seat - foot))
    machine = Machine(
        Prismatic("heave", ground, chassis, at=body, axis="z"),
        Revolute("lower hinge", chassis, lower, at=POINTS["lower front"], axis=_along("lower rear", "lower front")),
        Revolute("upper hinge", chassis, upper, at=POINTS["upper front"], axis=_along("upper rear", "upper front")),
        Spherical("lower ball", lower, upright, at=POINTS["lower ball"]),
        Spherical("upper ball", upper, upright, at=POINTS["upper ball"]),
        Distance(
            "tie rod",
            chassis.at(POINTS["rack"] - body),
            upright.at(POINTS["steering arm"] - wheel),
            length=float(np.linalg.norm(POINTS["rack"] - POINTS["steering arm"])),
        ),
        Spring(
            "strut",
            chassis.at(seat - body),
            lower.at(foot - lower.position),
            stiffness=stiffness,
            length=length + 0.163,
            damping=damping,
        ),
        Prismatic("road", ground, road, at=road.position, axis="z"),
        Prescribed("bump", "road", bump),
        SoftContact(
            "tyre",
            upright,
            road.at(0.0, 0.0, 0.01),
            normal="z",
            stiffness=TYRE_STIFFNESS,
            damping=TYRE_DAMPING,
            radius=WHEEL_RADIUS,
        ),
        gravity=(0.0, 0.0, -GRAVITY),
        name="Double wishbone suspension",
    )
    rest = machine.equilibrium(cut=("upper ball",))
    v = np.zeros(rest.q.size)
    v[rest.layout.names.index("road")] = 2.0 * BUMP_TIME / BUMP_WIDTH**2 * bump(0.0)
    return machine, Start(rest.q, v, machine, rest.layout)


def _along(start: str, end: str) -> np.ndarray:
    return POINTS[end] - POINTS[start]


@model
def double_wishbone(
    height: float = 0.06,
    stiffness: float = 4.0e4,
    damping: float = 2500.0,
    t1: float = 1.5,
    coordinates: str = "relative",
) -> Model:
    r"""A quarter car of 380 kg on a double wishbone suspension that drives over a bump.

    Notes
    -----
    The run starts in static equilibrium. ``model.extra`` has ``machine``, ``energy``; ``points``, the positions of all
    joints as drawn; and ``camber_and_toe(rotation)``, the two angles in radians for a wheel with this orientation.
    Camber is positive if the wheel leans outwards at its top, toe if it points towards the centre of the car.

    With the chassis fixed and the lower arm driven, the mechanism has no degree of freedom; its motion follows from
    geometry:

    >>> import numpy as np
    >>> import daedal
    >>> model = daedal.library.double_wishbone()
    >>> machine, angles = model.extra["machine"], np.linspace(-0.15, 0.15, 5)
    >>> motion = machine.kinematics(np.arange(5.0), {"heave": 0.0, "lower hinge": angles})
    >>> upright = motion.body("upright")
    >>> camber = [np.degrees(model.extra["camber_and_toe"](R)[0]) for R in upright.orientation]
    >>> print(np.round(camber, 2) + 0.0)
    [ 1.67  0.91  0.   -1.08 -2.34]
    """
    machine, start = _double_wishbone(float(height), float(stiffness), float(damping))
    return machine_model(
        machine,
        start,
        t1,
        coordinates,
        ("upper ball",),
        known=known("double_wishbone", height=height, stiffness=stiffness, damping=damping, t1=t1),
        extra={"points": POINTS, "camber_and_toe": camber_and_toe},
    )


def camber_and_toe(rotation: np.ndarray) -> tuple[float, float]:
    """Angles of the wheel axis (y) relative to the road and to the y axis."""
    x, y, z = np.asarray(rotation)[:, 1]
    return float(-np.arctan2(z, np.hypot(x, y))), float(np.arctan2(x, y))


# --- Whipple's bicycle: bodies, hinges and rolling wheels -------------------------------------------------------------

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
    """Starts of a straight ride without and with an initial lean rate."""
    machine = _bicycle()
    along = {"ride.x": speed, "steer": 0.0, "ride.about_z": 0.0}
    straight = machine.assemble(velocities={**along, "ride.about_x": 0.0})
    return straight, machine.assemble(velocities={**along, "ride.about_x": push})


@model
def bicycle(speed: float = 5.0, push: float = 0.5, t1: float = 2.0, coordinates: str = "relative") -> Model:
    """A riderless bicycle after a lateral push.

    Notes
    -----
    ``model.extra`` has ``machine``, ``energy``; ``straight``, the start of the straight ride; and ``eigenvalues``,
    published values for the linearised motion at 5 m/s: weave, capsize and castering. The machine has six more
    eigenvalues, which are zero: position, heading, wheel angles, and speed.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.bicycle()
    >>> small = model.extra["machine"].linearise(model.extra["straight"])
    >>> weave = max(small.eigenvalues, key=lambda value: value.imag)
    >>> print(f"{weave:.6f} {model.extra['eigenvalues'][0]:.6f}")
    -0.775342+4.464868j -0.775342+4.464868j
    """
    straight, start = _starts(float(speed), float(push))
    return machine_model(
        _bicycle(),
        start,
        t1,
        coordinates,
        known=known("bicycle", speed=speed, push=push, t1=t1),
        extra={"straight": straight, "eigenvalues": np.array(EIGENVALUES)},
    )
