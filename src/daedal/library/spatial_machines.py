"""Machines in space with closed loops, of bodies and joints."""

from functools import cache

import numpy as np

from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.model import Model, known, model
from daedal.multibody import Body, Prismatic, Revolute, Spherical, Start, Universal, ground
from daedal.multibody import Model as Machine

AXLE, PIN, SLIDER = np.array([0.0, 0.1, 0.12]), np.array([0.0, 0.1, 0.2]), np.array([0.2, 0.0, 0.0])


def _rod(name: str, start: np.ndarray, end: np.ndarray, mass: float, across) -> Body:
    """A rod between two points; `across` is a direction at right angles to it."""
    length = float(np.linalg.norm(end - start))
    x = (end - start) / length
    y = np.array(across, dtype=float) / np.linalg.norm(across)
    orientation = np.column_stack([x, y, np.cross(x, y)])
    return Body.rod(name, length=length, mass=mass, radius=0.01, position=0.5 * (start + end), orientation=orientation)


@cache
def _crank_slider_3d(speed: float) -> tuple[Machine, Start]:
    crank = _rod("crank", AXLE, PIN, 0.12, (1.0, 0.0, 0.0))
    rod = _rod("rod", PIN, SLIDER, 0.5, (1.0, 0.0, 1.0))
    slider = Body.box("slider", size=(0.04, 0.03, 0.03), mass=2.0, position=SLIDER)
    machine = Machine(
        Revolute("A", ground, crank, at=AXLE, axis="x"),
        Spherical("B", crank, rod, at=PIN),
        Universal("C", slider, rod, at=SLIDER, axis="y", second_axis=(1.0, 0.0, 1.0)),
        Prismatic("D", ground, slider, at=SLIDER, axis="x"),
        gravity=(0.0, 0.0, -GRAVITY),
        name="Crank and slider in space",
    )
    return machine, machine.assemble(A=0.0, velocities={"A": speed}, cut=("B",))


@model(
    title="Crank and slider in space",
    source="dimensions of E. J. Haug, Computer Aided Kinematics and Dynamics of Mechanical Systems, Allyn and Bacon "
    "(1989), chapter 12, with uniform rods",
    description="A crank turns about an axis along x beside the line on which the slider moves; the rod between them "
    "has a ball joint at the crank and a universal joint at the slider.",
)
def crank_slider_3d(speed: float = 6.0, t1: float = 2.0, coordinates: str = "relative") -> Model:
    """A spatial slider-crank: crank of 0.08 m and 0.12 kg, rod of 0.3 m and 0.5 kg, slider of 2 kg, and their weight.

    Parameters
    ----------
    speed : float
        Rate of the crank at the start (rad/s).
    t1 : float
        End time (s); a reference is known for 2 with the default speed.
    coordinates : {"relative", "absolute"}
        Those of the joints, with the ball joint as constraint, or positions and orientations of all bodies.

    Notes
    -----
    ``model.extra`` has ``machine`` and ``energy``. The coordinate ``D`` is the way of the slider from its start at
    x = 0.2.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.crank_slider_3d()
    >>> model.problem.n_q, model.problem.n_constraints
    (4, 3)
    """
    machine, start = _crank_slider_3d(float(speed))
    entry = known("crank_slider_3d", speed=speed, t1=t1)
    return machine_model(machine, start, t1, coordinates=coordinates, cut=("B",), known=entry)
