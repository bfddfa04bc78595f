"""Planar linkages, grippers, bridges and chains, modelled by bodies and joints."""

import math
from functools import cache
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

import daedal
from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.registry import Model, Reference, known, model
from daedal.multibody import (
    Body,
    Contact,
    Equilibrium,
    Gear,
    Joint,
    Planar,
    Revolute,
    Spring,
    Start,
    TorsionSpring,
    ground,
)
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


@model
def four_bar_with_spring(
    stiffness: float = 200.0,
    damping: float = 5.0,
    displacement: float = 0.3,
    t1: float = 5.0,
    coordinates: str = "relative",
) -> Model:
    """A four-bar linkage with a spring from the pivot of the crank to the end of the rocker.

    Notes
    -----
    ``model.extra`` has ``machine``, ``energy`` and ``rest``, the equilibrium; ``machine.linearise(rest)`` computes its
    eigenvalues.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.four_bar_with_spring()
    >>> rest = model.extra["rest"]
    >>> rest.stability, len(model.extra["machine"].linearise(rest).eigenvalues)
    ('stable', 2)
    """
    machine, rest = _four_bar(float(stiffness), float(damping))
    return machine_model(
        machine,
        _displaced(float(stiffness), float(damping), float(displacement)),
        t1,
        coordinates,
        ("C",),
        known=known("four_bar_with_spring", stiffness=stiffness, damping=damping, displacement=displacement, t1=t1),
        extra={"rest": rest},
    )


# --- robot arms with linkage grippers ---------------------------------------------------------------------------------

PALM, CRANK, FINGER = 0.03, 0.08, 0.09  # m: distance of the hinges on the palm, crank and finger lengths
SIDES = {"left": 1.0, "right": -1.0}
CUT = tuple(f"{side} tip 2" for side in SIDES)


def _finger(side: str, arm: Body) -> list[Revolute]:
    """Two cranks of equal length on the palm, with a finger across their ends: a parallelogram."""
    sign = SIDES[side]
    end = arm.end.position
    cranks = [Body.rod(f"{side} crank {k}", length=CRANK, mass=0.05) for k in (1, 2)]
    finger = Body.rod(f"{side} finger", length=FINGER, mass=0.1)
    hinges = [arm.at(end[0] - PALM * k, sign * 0.02) for k in (0, 1)]
    ends = [finger.at(PALM - 0.5 * FINGER, 0.0), finger.start]
    joints = [Revolute(f"{side} hinge {k + 1}", hinges[k], cranks[k].start) for k in range(2)]
    return joints + [Revolute(f"{side} tip {k + 1}", cranks[k].end, ends[k]) for k in range(2)]


@cache
def _robot_gripper(stiffness: float, opening: float) -> tuple[Machine, Start]:
    upper = Body.rod("upper arm", length=0.5, mass=2.0)
    fore = Body.rod("forearm", length=0.4, mass=1.0)
    left, right = _finger("left", fore), _finger("right", fore)
    tip_1, tip_2 = (joints[2].frames[1].body.end for joints in (left, right))
    machine = Machine(
        Revolute("shoulder", ground, upper.start),
        Revolute("elbow", upper.end, fore.start),
        *left,
        *right,
        Gear("gear", "left hinge 1", "right hinge 1", ratio=-1.0),
        TorsionSpring("shoulder drive", "shoulder", stiffness=100.0, angle=1.2, damping=2.0),
        TorsionSpring("elbow drive", "elbow", stiffness=50.0, angle=-0.8, damping=1.0),
        Spring("grip", tip_1, tip_2, stiffness=stiffness, length=0.12, damping=2.0),
        gravity=(0.0, -GRAVITY),
        planar=True,
        name="Robot arm with a gripper",
    )
    closed = {
        f"{side} {joint}": sign * sense * opening
        for side, sign in SIDES.items()
        for joint, sense in (("hinge 1", 1.0), ("hinge 2", 1.0), ("tip 1", -1.0))
    }
    return machine, machine.assemble(hold={"shoulder": 1.0, "elbow": -0.5, **closed}, cut=CUT)


@model
def robot_gripper(
    stiffness: float = 100.0, opening: float = 0.8, t1: float = 0.5, coordinates: str = "relative"
) -> Model:
    """An arm of two links held by joint springs, with a gripper closed by a spring.

    Notes
    -----
    ``model.extra`` has ``machine`` and ``energy``. The three degrees of freedom are the shoulder, elbow and
    crank angles.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.robot_gripper()
    >>> model.problem.n_q, model.problem.n_constraints
    (8, 5)
    """
    machine, start = _robot_gripper(float(stiffness), float(opening))
    return machine_model(
        machine, start, t1, coordinates, CUT, known=known("robot_gripper", stiffness=stiffness, opening=opening, t1=t1)
    )


# --- bridges and chains of many links ---------------------------------------------------------------------------------

SPAN, SAG = 10.0, 1.2  # m between the supports; total length of the links, in units of the span
MASS = 100.0  # kg of all links together


def hanging_angles(n: int, load: float) -> np.ndarray:
    r"""Angles of n equal links that hang between supports at equal height, with a load in the middle.

    The moments about an end of link i balance if :math:`H \tan\vartheta_i` is the vertical force at its midpoint, with
    the horizontal tension H; the links span the distance of the supports: :math:`\sum_i \cos\vartheta_i = n / 1.2`.
    """
    place = np.arange(n) - 0.5 * (n - 1)
    vertical = MASS / n * GRAVITY * place + 0.5 * load * np.sign(place)

    def gap(pull):
        return np.sum(np.cos(np.arctan2(vertical, pull))) - n / SAG

    weight = MASS * GRAVITY + load
    return np.arctan2(vertical, brentq(gap, 1e-3 * weight, 1e3 * weight, xtol=1e-14 * weight, rtol=1e-15))


@cache
def _link_bridge(n: int, load: float) -> tuple[Machine, Start, Start]:
    links = [Body.rod(f"link {i + 1}", length=SAG * SPAN / n, mass=MASS / n) for i in range(n)]
    joints = [Revolute("support 1", ground, links[0].start)]
    joints += [Revolute(f"joint {i}", links[i - 1].end, links[i].start) for i in range(1, n)]
    joints += [Revolute("support 2", links[-1].end, ground.at(SPAN, 0.0))]
    machine = Machine(*joints, gravity=(0.0, -GRAVITY), planar=True, name="Bridge of links")
    layout = machine.layout(cut=("support 2",))
    loaded, rest = (
        Start(np.diff(hanging_angles(n, force), prepend=0.0), np.zeros(n), machine, layout) for force in (load, 0.0)
    )
    return machine, loaded, rest


@model
def link_bridge(n: int = 6, load: float = 500.0, t1: float = 2.0, coordinates: str = "relative") -> Model:
    """A bridge of `n` links, 12 m and 100 kg in total, between supports 10 m apart, after its load drops.

    Notes
    -----
    ``model.extra`` has ``machine``, ``energy`` and ``rest``, the equilibrium position without the load.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.link_bridge()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> energy = model.extra["energy"](sol.q, sol.v)
    >>> bool(abs(energy - energy[0]).max() < 1e-4)
    True
    """
    if n % 2 or n < 4:
        raise daedal.InvalidProblemError(
            f"n={n!r} must be even and at least 4, since the load hangs from the joint in the middle"
        )
    machine, start, rest = _link_bridge(int(n), float(load))
    return machine_model(
        machine,
        start,
        t1,
        coordinates,
        ("support 2",),
        known=known("link_bridge", n=n, load=load, t1=t1),
        extra={"rest": rest},
    )


# --- falling chains with contacts -------------------------------------------------------------------------------------

LENGTH = 0.5  # m, of a link
ANGLES = (-0.4, 0.3, 0.5)  # angles of the first link to the floor, and of every other link to the previous one, in rad


@cache
def _falling_chain() -> Machine:
    links = [Body.rod(f"link {k + 1}", length=LENGTH, mass=1.0) for k in range(len(ANGLES))]
    joints: list[Joint] = [Planar("flight", ground, links[0].start)]
    joints += [Revolute(f"joint {k + 1}", a.end, b.start) for k, (a, b) in enumerate(pairwise(links))]
    points = [links[0].start, *(link.end for link in links)]
    floor = [Contact(f"floor {k + 1}", point, ground, normal="y") for k, point in enumerate(points)]
    return Machine(*joints, *floor, gravity=(0.0, -GRAVITY), planar=True, name="Falling chain")


@model
def falling_chain(height: float = 0.35, t1: float = 1.0) -> Model:
    r"""A chain of three links of 0.5 m and 1 kg that falls from rest on a smooth floor.

    Notes
    -----
    Until the first impact at :math:`\sqrt{2 h / g}` the chain falls as a rigid body. The contacts are the four ends of
    the links, so there are 16 modes. ``model.extra`` has ``machine`` and ``first_impact``.

    From greater heights the ends of a link hit the floor alternately, at intervals that shrink to zero; after this
    accumulation point, at which both ends are at rest on the floor, the link stays or is lifted by the others.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.falling_chain()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events[0].t:.6f} {model.extra['first_impact']:.6f}")
    0.267125 0.267125
    """
    machine = _falling_chain()
    angles = np.cumsum(ANGLES)
    ends = LENGTH * np.cumsum([np.cos(angles), np.sin(angles)], axis=1)
    center = float(np.mean(ends[0] - 0.5 * LENGTH * np.cos(angles)))
    n = len(ANGLES)
    at_rest = np.zeros(2 * (n + 2))
    at_rest[0] = center - 0.5 * n * LENGTH
    lowest = min(0.0, float(np.min(ends[1])))
    problem = machine.problem()
    rests = height == 0.35 and t1 >= 1.0
    return Model(
        problem=problem,
        initial=("free", (np.array([0.0, height - lowest, *ANGLES]), np.zeros(n + 2))),
        reference=Reference(float(t1), at_rest, "at rest below the centre of mass", 1e-14) if rests else None,
        plot={"variables": list(machine.layout().names)},
        extra={"machine": machine, "first_impact": math.sqrt(2.0 * height / GRAVITY)},
    )
