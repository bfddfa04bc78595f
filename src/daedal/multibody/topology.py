"""The graph of bodies and joints: a spanning tree, and the joints that close loops (2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daedal.errors import InvalidProblemError
from daedal.multibody.body import GROUND, Body
from daedal.multibody.joints import Joint


@dataclass(frozen=True)
class Topology:
    """A spanning tree of the bodies of a model.

    Attributes
    ----------
    bodies : tuple of Body
        In the order of the tree: fathers first.
    joints : tuple of Joint
        The joint that moves each body, seen from its father (``joint.a`` is on the father).
    reversed : tuple of bool
        Which of them were stated the other way round.
    fathers : tuple of int
        The body connection array: the father of each body, -1 for the ground.
    cut : tuple of Joint
        The joints that close loops.
    """

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    reversed: tuple[bool, ...]
    fathers: tuple[int, ...]
    cut: tuple[Joint, ...]


def spanning_tree(bodies: Sequence[Body], joints: Sequence[Joint], cut: Sequence[str] = ()) -> Topology:
    """Breadth first from the ground, so that loops are short; joints in `cut` are never in the tree."""
    index = {GROUND: -1}
    order: list[Body] = []
    used: list[Joint] = []
    flags: list[bool] = []
    fathers: list[int] = []
    by_name = {body.name: body for body in bodies}
    waiting = [GROUND]
    while waiting:
        here = waiting.pop(0)
        for joint in joints:
            if joint.name in cut or joint in used or here not in joint.bodies:
                continue
            one, two = joint.bodies
            there = two if here == one else one
            if there in index:
                continue
            index[there] = len(order)
            order.append(by_name[there])
            flags.append(here == two)
            used.append(joint.swapped() if here == two else joint)
            fathers.append(index[here])
            waiting.append(there)
    taken = {joint.name for joint in used}
    missing = [body.name for body in bodies if body.name not in index]
    if missing:
        raise InvalidProblemError(
            f"no joint leads from the ground to {', '.join(repr(name) for name in missing)}; add one, "
            "Free(...) if they move freely"
        )
    return Topology(
        tuple(order),
        tuple(used),
        tuple(flags),
        tuple(fathers),
        tuple(joint for joint in joints if joint.name not in taken),
    )
