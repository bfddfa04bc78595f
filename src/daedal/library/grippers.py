"""Robot arms with hands that close by linkages, of bodies and joints."""

from functools import cache

from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.model import Model, check_positive, known, model
from daedal.multibody import Body, Gear, Revolute, Spring, Start, TorsionSpring, ground
from daedal.multibody import Model as Machine

PALM, CRANK, FINGER = 0.03, 0.08, 0.09  # m: distance of the hinges on the palm, length of the cranks, of the fingers
SIDES = {"left": 1.0, "right": -1.0}
CUT = tuple(f"{side} tip 2" for side in SIDES)


def _finger(side: str, arm: Body) -> list[Revolute]:
    """Two cranks of equal length on the palm and a finger across their ends: a parallelogram."""
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


@model(
    title="Robot arm with a gripper",
    source="dimensions chosen; parallel-jaw gripper with geared cranks as in textbooks of robotics",
    description="An arm of two links with a hand of two fingers. Each finger is carried by a parallelogram, so it "
    "stays parallel to the forearm, and gears make the fingers close together: two closed loops and a coupling on a "
    "tree.",
)
def robot_gripper(
    stiffness: float = 100.0, opening: float = 0.8, t1: float = 0.5, coordinates: str = "relative"
) -> Model:
    """An arm of two links, held by springs at its joints, whose gripper is closed by a spring.

    Parameters
    ----------
    stiffness : float
        Of the spring between the fingers (N/m).
    opening : float
        Angle of the cranks with the forearm at the start, between 0 and pi/2 (rad).
    t1 : float
        End time (s); a reference is known for 0.5 with the other defaults.
    coordinates : {"relative", "absolute"}
        Angles of the joints, or positions and angles of all bodies.

    Notes
    -----
    ``model.extra`` has ``machine`` and ``energy``. There are three degrees of freedom: the angles of shoulder, elbow
    and cranks.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.robot_gripper()
    >>> model.problem.n_q, model.problem.n_constraints
    (8, 5)
    """
    check_positive(stiffness=stiffness, opening=opening)
    machine, start = _robot_gripper(float(stiffness), float(opening))
    return machine_model(
        machine,
        start,
        t1,
        coordinates=coordinates,
        cut=CUT,
        known=known("robot_gripper", stiffness=stiffness, opening=opening, t1=t1),
    )
