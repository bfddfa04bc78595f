"""What a model is made of and how it can move, as a page to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.common.tabular import Tabular, listing
from daedal.errors import InvalidProblemError
from daedal.multibody.guess import first_guess
from daedal.multibody.joints import Joint
from daedal.multibody.kinematics import placement
from daedal.multibody.loops import Loop, independent_loops
from daedal.multibody.mobility import (
    Configuration,
    WithoutInertia,
    configuration,
    decided,
    dependent,
    has_inertia,
    is_suspect,
    motions_without_inertia,
)
from daedal.multibody.screws import PLANAR_IN_SPACE, LoopMobility, loop_mobility
from daedal.multibody.topology import SpanningTree
from daedal.multibody.tree import ANY_ROTATION

_MOST_COORDINATES = 300  # up to which `system` looks for motions without inertia


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """The result of :meth:`daedal.multibody.Model.report`; ``print`` shows it as text, a notebook as tables.

    Attributes
    ----------
    model : Model
    topology : Topology
        The spanning tree and the joints that are cut.
    loops : tuple of Loop
        As many independent loops as joints are cut, with the fewest joints.
    loop_mobilities : tuple of LoopMobility
        How each of them moves by itself; empty if the loops cannot be closed.
    gruebler : int
        Degrees of freedom if all conditions were independent: freedoms of the joints of the tree less conditions of
        those that are cut.
    degrees_of_freedom : int or None
        The actual number, by the rank of the constraints in a configuration without symmetry where all loops are
        closed; None if none was found.
    velocity_degrees_of_freedom : int or None
        The same less velocity constraints.
    redundant : tuple of str
        Conditions that say nothing that those before them do not say.
    redundant_joints : tuple of str
        The joints (or other constraints) that they are part of.
    without_inertia : tuple of WithoutInertia
        Motions that nothing resists.
    configuration : Configuration
        Where all this was found: coordinates, by how much loops are open there, the rank of the constraints with the
        gap in the singular values on which it rests.
    open_joint : str
        The joint that stays open, if loops cannot be closed.
    """

    model: Any
    topology: SpanningTree
    loops: tuple[Loop, ...]
    loop_mobilities: tuple[LoopMobility, ...]
    gruebler: int
    degrees_of_freedom: int | None
    velocity_degrees_of_freedom: int | None
    redundant: tuple[str, ...]
    redundant_joints: tuple[str, ...]
    without_inertia: tuple[WithoutInertia, ...]
    configuration: Configuration
    open_joint: str

    def plot(self, **options):
        """The graph of bodies and joints; see :meth:`daedal.multibody.Model.draw_graph`."""
        from daedal.multibody.graph import draw_graph

        return draw_graph(self.topology, self.model.name, **options)

    def tables(self) -> list[tuple[str, Tabular]]:
        """Headings, and the table below each of them."""
        found = [
            ("", Tabular("ll", self._summary(), width=110)),
            ("bodies", self._bodies()),
            ("joints", self._joints()),
        ]
        if self.loops:
            found.append(("loops", Tabular("rl", [(len(loop.joints), loop) for loop in self.loops], ("joints", ""))))
        return found

    def _summary(self) -> list[tuple[str, str]]:
        model, at = self.model, self.configuration
        what = listing([_counted(model.bodies, "body"), _counted(model.joints, "joint"), _counted(self.loops, "loop")])
        rows = [("model", f"{what}, {'in the plane' if model.planar else 'in space'}")]
        rows.append(("Gruebler", f"{_freedoms(self.gruebler)}, all conditions taken for independent"))
        if self.degrees_of_freedom is None:
            rows.append(("open", f"joint '{self.open_joint}' cannot be closed, a gap of {at.gap:.3g} is left"))
        else:
            rows.append(("actual", f"{_freedoms(self.degrees_of_freedom)}{f'; {at.rank}' if at.rows.size else ''}"))
            if not at.regular:
                rows.append(("singular", "it does not move on from there with this rank; the number may be too large"))
            if self.velocity_degrees_of_freedom != self.degrees_of_freedom:
                rows.append(("velocities", f"{self.velocity_degrees_of_freedom} of them can be chosen"))
        if self.redundant:
            count, joints = len(self.redundant), listing(f"'{name}'" for name in self.redundant_joints)
            say = "say" if count > 1 else "says"
            rows.append(
                ("redundant", f"{count} condition{'s' * (count > 1)} of {joints} {say} nothing new: {self._dropped()}")
            )
        for one in self.loop_mobilities:
            if one.family:
                rows.append(("special", f"loop {listing(one.loop.joints)} is {one.family}: {_over_constrained(one)}"))
        rows += [("no inertia", complaint(one)) for one in self.without_inertia]
        return rows

    def _dropped(self) -> str:
        return listing(self.redundant[:6], len(self.redundant))

    def _bodies(self) -> Tabular:
        rows = []
        for body in self.model.bodies:
            moments = np.linalg.eigvalsh(body.inertia.moments)
            about = f"{body.inertia.moments[2, 2]:.4g}" if self.model.planar else ", ".join(f"{m:.4g}" for m in moments)
            rows.append((body.name, f"{body.mass:.4g}", about))
        return Tabular("lrl", rows, ("name", "mass", "moment of inertia" if self.model.planar else "principal moments"))

    def _joints(self) -> Tabular:
        cut = {joint.name for joint in self.topology.cut}
        return Tabular("lllll", [_joint_row(joint, joint.name in cut) for joint in self.model.joints], _JOINT_HEADER)

    def __str__(self) -> str:
        title = self.model.name or "model"
        return "\n\n".join([title, *(f"{heading}\n{table}".strip("\n") for heading, table in self.tables())])

    def __repr__(self) -> str:
        count = "loops that cannot be closed" if self.degrees_of_freedom is None else _freedoms(self.degrees_of_freedom)
        return f"<report: {_counted(self.model.bodies, 'body')}, {_counted(self.model.joints, 'joint')}, {count}>"

    def _repr_html_(self) -> str:
        from html import escape

        parts = [f"<b>{escape(self.model.name or 'model')}</b>"]
        for heading, table in self.tables():
            parts.append(f"<p style='margin: 8px 0 2px'><b>{escape(heading)}</b></p>" * bool(heading))
            parts.append(table._repr_html_())
        return "".join(parts)


_JOINT_HEADER = ("name", "kind", "between", "freedoms", "")


def _joint_row(joint: Joint, cut: bool) -> tuple[str, ...]:
    free = ", ".join(joint.coordinates) or "none"
    return joint.name, type(joint).__name__, " - ".join(joint.bodies), free, "cut" if cut else ""


def _counted(parts, name: str) -> str:
    several = {"body": "bodies"}.get(name, f"{name}s")
    return f"{len(parts)} {name if len(parts) == 1 else several}"


def _freedoms(count: int) -> str:
    return f"{count} degree{'s' * (count != 1)} of freedom"


def _over_constrained(one: LoopMobility) -> str:
    count = f"{one.redundant} redundant condition{'s' * (one.redundant > 1)}"
    if one.family == PLANAR_IN_SPACE:
        return f"{count}; use planar=True, or Spherical and Cylindrical in place of two of its hinges"
    return f"{count}, mobility {one.mobility} by its dimensions"


def report_of(model: Any, system) -> Report:
    """Everything that is known about a model without solving it."""
    topology = model.topology()
    names = [joint.name for joint in topology.cut if joint.closure]
    loops = independent_loops([joint for joint in model.joints if joint.closure], names)
    conditions = model.conditions(system.layout)
    at = configuration(conditions, first_guess(system.layout, (), {}))
    redundant = dependent(at.rows) if at.closed else []
    return Report(
        model=model,
        topology=topology,
        loops=loops,
        loop_mobilities=_mobilities(loops, model, system.layout, at) if at.closed else (),
        gruebler=system.n_q - system.n_lambda,
        degrees_of_freedom=system.n_q - decided(at.rows[: system.n_constraints]).rank if at.closed else None,
        velocity_degrees_of_freedom=system.n_q - at.rank.rank if at.closed else None,
        redundant=tuple(system.constraint_names[i] for i in redundant),
        redundant_joints=tuple(dict.fromkeys(_part(system, i) for i in redundant)),
        without_inertia=tuple(motions_without_inertia(system, at)) if at.closed else (),
        configuration=at,
        open_joint="" if at.closed else _part(system, int(np.argmax(np.abs(conditions.value(0.0, at.q))))),
    )


def _mobilities(loops, model, layout, at: Configuration) -> tuple[LoopMobility, ...]:
    joints, placed = {joint.name: joint for joint in model.joints}, placement(layout.tree, at.q)
    return tuple(loop_mobility(loop, joints, layout, placed) for loop in loops)


def _part(system, i: int) -> str:
    """The joint, or other constraint, that condition i is part of."""
    norms = int(np.sum(system.layout.tree.turn == ANY_ROTATION))
    joints = system.layout.closing_joints
    return joints[i - norms] if norms <= i < norms + len(joints) else system.constraint_names[i]


def complaint(one: WithoutInertia) -> str:
    """What is wrong, and what to do."""
    bodies, joints = (listing(f"'{name}'" for name in names) for names in (one.bodies, one.joints))
    several = len(one.bodies) > 1
    which, at = f"bod{'ies' if several else 'y'} {bodies}", f"joint{'s' * (len(one.joints) > 1)} {joints}"
    if one.turning:
        return (
            f"{which} can turn at {at} about an axis without moment of inertia; give moments of inertia (a rod: a "
            "radius), or a joint that prevents this motion, such as Universal in place of Spherical "
            "or Cartesian in place of Free"
        )
    have = "have" if several else "has"
    return f"{which} {have} no mass and can move at {at}; give a mass and moments of inertia, or Fixed(...) to a body"


def check_inertia(model: Any, system):
    """Refuse motions without inertia; they are looked for where bodies lack mass or a moment of inertia."""
    if system.n_q > _MOST_COORDINATES or not any(is_suspect(body, model.planar) for body in model.bodies):
        return
    start = first_guess(system.layout, (), {})
    if has_inertia(system, start):
        return
    at = configuration(model.conditions(system.layout), start, tries=3)
    found = motions_without_inertia(system, at) if at.closed else []
    if found:
        raise InvalidProblemError(complaint(found[0]))
