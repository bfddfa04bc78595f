"""Benchmark problems of multibody dynamics in space, of bodies and joints: those of the library of IFToMM."""

import math
from functools import cache

import numpy as np

from daedal.library.iftomm import GRAVITY, IFTOMM
from daedal.library.machine_model import machine_model
from daedal.library.model import Model, known, model
from daedal.multibody import Body, Prismatic, Revolute, Spring, Start, ground
from daedal.multibody import Model as Machine

# --- A04 --------------------------------------------------------------------------------------------------------------

CORNERS = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
AXES = np.eye(3)[[1, 2, 0, 1, 2, 0]]


@cache
def _bricard() -> tuple[Machine, Start]:
    rods = []
    for i in range(5):
        along, axis = CORNERS[i + 1] - CORNERS[i], AXES[i]
        orientation = np.column_stack([along, np.cross(axis, along), axis])
        middle = 0.5 * (CORNERS[i] + CORNERS[i + 1])
        rods.append(Body.box(f"rod {i + 1}", size=(1.0, 0.1, 0.1), mass=1.0, position=middle, orientation=orientation))
    chain = [ground, *rods, ground]
    joints = [Revolute(f"P{i}", chain[i], chain[i + 1], at=CORNERS[i], axis=AXES[i]) for i in range(6)]
    machine = Machine(*joints, gravity=(0.0, -GRAVITY, 0.0), name="Bricard's mechanism")
    return machine, machine.assemble(cut=("P3",))


@model(
    title="Bricard's mechanism (A04)",
    source=IFTOMM + ", problem A04",
    description="Five rods and the ground along edges of a cube, joined by six hinges. By the count of joints it "
    "cannot move; it does, because one of the conditions that close the loop follows from the others. The motion is "
    "unique, reactions are not: those of least norm are given.",
)
def bricard(t1: float = 10.0, coordinates: str = "relative") -> Model:
    """Bricard's over-constrained linkage under its weight: rods of 1 m and 1 kg, 0.1 m by 0.1 m across.

    Parameters
    ----------
    t1 : float
        End time (s); a reference is known for 10.
    coordinates : {"relative", "absolute"}
        Angles of the joints, or positions and orientations of all bodies.

    Notes
    -----
    ``model.extra`` has ``machine`` and ``energy``. ``model.extra["machine"].report()`` names the condition that says
    nothing new.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.bricard()
    >>> print(model.extra["machine"].report().degrees_of_freedom)
    1
    """
    machine, start = _bricard()
    return machine_model(machine, start, t1, coordinates=coordinates, cut=("P3",), known=known("bricard", t1=t1))


# --- A05 --------------------------------------------------------------------------------------------------------------

DENSITY = 3000.0  # kg/m^3


def _rod_with_ball(name: str) -> Body:
    """A rod of 1 m along x from its frame, with 5 kg at its end."""
    mass, ball, width = 0.01 * 0.01 * DENSITY, 5.0, 0.01
    center = (0.5 * mass + ball) / (mass + ball)
    along = mass * 2.0 * width**2 / 12.0
    across = mass * (1.0 + width**2) / 12.0 + mass * (0.5 - center) ** 2 + ball * (1.0 - center) ** 2
    return Body(name, mass + ball, (along, across, across), center=(center, 0.0, 0.0))


@cache
def _governor(spin: float, stiffness: float, damping: float) -> tuple[Machine, Start]:
    shaft = Body.box("shaft", size=(0.01, 0.01, 1.0), density=DENSITY)
    slider = Body.box("slider", size=(0.1, 0.1, 0.1), density=DENSITY)
    first, second = _rod_with_ball("first rod"), _rod_with_ball("second rod")
    spring = {"stiffness": stiffness, "length": 0.5, "damping": damping}
    machine = Machine(
        Revolute("axle", ground, shaft.at(0.0, 0.0, -0.5)),
        Prismatic("guide", shaft.at(0.0, 0.0, -0.5), slider),
        Revolute("A", shaft.at(0.05, 0.0, 0.5), first, axis="y"),
        Revolute("B", shaft.at(-0.05, 0.0, 0.5), second, axis="y"),
        Spring("AC", slider.at(0.05, 0.0, 0.0), first.at(0.5, 0.0, 0.0), **spring),
        Spring("BD", slider.at(-0.05, 0.0, 0.0), second.at(0.5, 0.0, 0.0), **spring),
        gravity=(0.0, 0.0, -GRAVITY),
        name="Flyball governor",
    )
    angle = math.pi / 6.0
    start = machine.assemble(
        guide=0.5,
        A=angle,
        B=math.pi - angle,
        velocities={"axle": spin, "guide": 0.0, "A": 0.0, "B": 0.0},
    )
    return machine, start


@model(
    title="Stiff flyball governor (A05)",
    source=IFTOMM + ", problem A05",
    description="Watt's governor, in which the coupler rods are stiff springs with strong dampers: the balls swing out "
    "and in about ten times while the springs would call for millions of steps of an explicit method.",
)
def flyball_governor(
    spin: float = 2.0 * math.pi,
    stiffness: float = 8e5,
    damping: float = 4e4,
    t1: float = 10.0,
    coordinates: str = "relative",
) -> Model:
    """A shaft with two rods that carry balls of 5 kg, and a slider that they move through stiff springs.

    Parameters
    ----------
    spin : float
        Rate of the shaft at the start (rad/s), with everything else at rest relative to it.
    stiffness, damping : float
        Of the two springs (N/m, N s/m).
    t1 : float
        End time (s); a reference is known for 10 with the other values of the benchmark.
    coordinates : {"relative", "absolute"}
        Coordinates of the joints, an ODE, or positions and orientations of all bodies.

    Notes
    -----
    ``model.extra`` has ``machine``, and ``energy``, which the dampers diminish. The position s of the slider in the
    benchmark is the coordinate ``guide``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.flyball_governor()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol['guide'][-1]:.5f}")
    0.61962
    """
    machine, start = _governor(float(spin), float(stiffness), float(damping))
    entry = known("flyball_governor", spin=spin, stiffness=stiffness, damping=damping, t1=t1)
    return machine_model(machine, start, t1, coordinates=coordinates, known=entry)
