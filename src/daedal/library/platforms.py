"""Platforms on legs, of bodies and springs."""

import math
from functools import cache

import numpy as np

from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.model import Model, check_positive, known, model
from daedal.multibody import Body, Free, Spring, Start, ground
from daedal.multibody import Model as Machine

MASS, RADIUS, THICKNESS, HEIGHT = 100.0, 0.6, 0.1, 1.0  # kg, m
BASE_RADIUS = 1.0  # m
LEGS = 6


def _circle(radius: float, angles: tuple[float, ...]) -> np.ndarray:
    """Points on a horizontal circle, in rows."""
    return np.array([[radius * math.cos(angle), radius * math.sin(angle), 0.0] for angle in angles])


# Pairs of legs start near each other on the base, 120 degrees apart, and end near each other half way between
_PAIRS = [2.0 * math.pi * k / 3.0 for k in range(3)]
FEET = _circle(BASE_RADIUS, tuple(pair + side * 0.15 for pair in _PAIRS for side in (-1.0, 1.0)))
HEADS = _circle(RADIUS, tuple(pair + side * (math.pi / 3.0 - 0.2) for pair in _PAIRS for side in (-1.0, 1.0)))


def leg_lengths(position, orientation) -> np.ndarray:
    """Inverse kinematics: the lengths of the legs for a place and an orientation (a matrix) of the platform."""
    heads = np.asarray(position, dtype=float) + HEADS @ np.asarray(orientation, dtype=float).T
    return np.linalg.norm(heads - FEET, axis=1)


@cache
def _stewart_platform(stiffness: float, damping: float) -> tuple[Machine, float]:
    """The platform, and the free length of the legs that carries its weight at the height of rest."""
    length = float(leg_lengths((0.0, 0.0, HEIGHT), np.eye(3))[0])
    free = length + MASS * GRAVITY * length / (LEGS * stiffness * HEIGHT)  # each leg carries a sixth of the weight
    platform = Body.cylinder("platform", radius=RADIUS, length=THICKNESS, mass=MASS, position=(0.0, 0.0, HEIGHT))
    legs = [
        Spring(f"leg {k + 1}", ground.at(foot), platform.at(head), stiffness=stiffness, length=free, damping=damping)
        for k, (foot, head) in enumerate(zip(FEET, HEADS))
    ]
    machine = Machine(
        Free("pose", ground, platform), *legs, gravity=(0.0, 0.0, -GRAVITY), name="Stewart platform on soft legs"
    )
    return machine, free


@cache
def _start(stiffness: float, damping: float, shift: float, turn: float) -> tuple[Start, Start]:
    """At rest, and displaced along x and turned about z."""
    machine, _ = _stewart_platform(stiffness, damping)
    cosine, sine = math.cos(turn), math.sin(turn)
    orientation = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    rest, displaced = (
        machine.assemble(pose=pose) for pose in (((0.0, 0.0, HEIGHT), np.eye(3)), ((shift, 0.0, HEIGHT), orientation))
    )
    return rest, displaced


@model(
    title="Stewart platform",
    source="V. E. Gough, S. G. Whitehall, Universal tyre test machine, Proc. FISITA (1962); D. Stewart, A platform "
    "with six degrees of freedom, Proc. Inst. Mech. Eng. 180 (1965); dimensions chosen",
    description="A disc on six legs, which stand in pairs. Where the disc is for given lengths of the legs takes the "
    "solution of a polynomial of degree 40; the lengths for a given place and orientation are a formula. Here the "
    "legs are springs with dampers and no mass, and the disc is released from a position to the side.",
)
def stewart_platform(
    stiffness: float = 2e4,
    damping: float = 200.0,
    shift: float = 0.1,
    turn: float = 0.2,
    t1: float = 1.0,
    coordinates: str = "relative",
) -> Model:
    """A disc of 100 kg on six legs that are springs with dampers.

    Parameters
    ----------
    stiffness, damping : float
        Of each leg (N/m, N s/m).
    shift, turn : float
        Where the disc is at the start: displacement along x (m), angle about the vertical (rad).
    t1 : float
        End time (s); a reference is known for 1 with the other defaults.
    coordinates : {"relative", "absolute"}
        For a single body without hinges they are the same.

    Notes
    -----
    ``model.extra`` has ``machine``, ``energy``, ``rest``, the start at rest in the position of equilibrium 1 m above
    the feet, ``feet`` and ``heads``, the ends of the legs on the ground and on the disc (in rows), ``free_length``,
    and ``leg_lengths(position, orientation)``, the inverse kinematics.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.stewart_platform()
    >>> model.extra["leg_lengths"]((0.0, 0.0, 1.0), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]).round(4)
    array([1.2, 1.2, 1.2, 1.2, 1.2, 1.2])
    """
    check_positive(stiffness=stiffness)
    machine, free = _stewart_platform(float(stiffness), float(damping))
    rest, start = _start(float(stiffness), float(damping), float(shift), float(turn))
    return machine_model(
        machine,
        start,
        t1,
        coordinates=coordinates,
        known=known("stewart_platform", stiffness=stiffness, damping=damping, shift=shift, turn=turn, t1=t1),
        extra={"rest": rest, "feet": FEET, "heads": HEADS, "free_length": free, "leg_lengths": leg_lengths},
    )
