"""Linkages in the plane with springs, of bodies and joints."""

from functools import cache

from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.model import Model, check_positive, known, model
from daedal.multibody import Body, Equilibrium, Revolute, Spring, Start, ground
from daedal.multibody import Model as Machine


@cache
def _four_bar(stiffness: float, damping: float) -> tuple[Machine, Equilibrium]:
    crank = Body.rod("crank", length=1.0, mass=1.0)
    coupler = Body.rod("coupler", length=3.0, mass=3.0)
    rocker = Body.rod("rocker", length=2.0, mass=2.0)
    machine = Machine(
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, coupler.start),
        Revolute("C", coupler.end, rocker.end),
        Revolute("D", ground.at(3.0, 0.0), rocker.start),
        Spring("diagonal", ground, rocker.end, stiffness=stiffness, length=3.0, damping=damping),
        gravity=(0.0, -GRAVITY),
        planar=True,
        name="Four-bar linkage with a diagonal spring",
    )
    return machine, machine.equilibrium(guess={"A": 1.0, "B": -0.5, "D": 1.5}, cut=("C",))


@cache
def _displaced(stiffness: float, damping: float, displacement: float) -> Start:
    machine, rest = _four_bar(stiffness, damping)
    return machine.assemble(A=rest.joint("A") + displacement, guess=rest, cut=("C",))


@model(
    title="Four-bar linkage with a diagonal spring",
    source="bars of 1, 3, 2 and 3 m (Grashof); small motions by Lagrange's equation for the angle of the crank",
    description="A spring with a damper along the diagonal of a four-bar linkage carries its weight. About the "
    "position of rest it has one damped oscillation, with a closed loop as the only difficulty.",
)
def four_bar_with_spring(
    stiffness: float = 200.0,
    damping: float = 5.0,
    displacement: float = 0.3,
    t1: float = 5.0,
    coordinates: str = "relative",
) -> Model:
    """A four-bar linkage with a spring from the pivot of the crank to the end of the rocker.

    Parameters
    ----------
    stiffness, damping : float
        Of the spring (N/m) and its damper (N s/m); its free length is 3 m.
    displacement : float
        Angle by which the crank is turned from the position of rest at the start (rad).
    t1 : float
        End time (s); a reference is known for 5 with the other defaults.
    coordinates : {"relative", "absolute"}
        Angles of the joints, or positions and angles of all bodies.

    Notes
    -----
    ``model.extra`` has ``machine``, ``energy`` and ``rest``, the equilibrium, of which ``machine.linearise`` gives the
    eigenvalues.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.four_bar_with_spring()
    >>> rest = model.extra["rest"]
    >>> rest.stability, len(model.extra["machine"].linearise(rest).eigenvalues)
    ('stable', 2)
    """
    check_positive(stiffness=stiffness)
    machine, rest = _four_bar(float(stiffness), float(damping))
    return machine_model(
        machine,
        _displaced(float(stiffness), float(damping), float(displacement)),
        t1,
        coordinates=coordinates,
        cut=("C",),
        known=known("four_bar_with_spring", stiffness=stiffness, damping=damping, displacement=displacement, t1=t1),
        extra={"rest": rest},
    )
