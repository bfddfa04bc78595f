r"""Structure and mobility of a model, displayed as a page.

With the Jacobian G of all constraints, there are :math:`n_q - \operatorname{rank} G` degrees of freedom. Gruebler's
count assumes independent conditions. The two differ if a mechanism owes its mobility to special dimensions.

A loop closes if the twists of its joints sum to zero, six equations. With twists that span r dimensions, :math:`6 - r`
of them are redundant, and a loop with F freedoms in its joints has the mobility F - r (K. H. Hunt, Kinematic Geometry
of Mechanisms, Oxford 1978, chapter 12).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal import linear
from daedal.common.tabular import Tabular, listing
from daedal.errors import InvalidProblemError
from daedal.multibody.assembly_problem import CLOSED, Closed, nearest_zero
from daedal.multibody.body import Frame
from daedal.multibody.joints import Joint
from daedal.multibody.kinematics import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION, joint_velocities, placement, velocities
from daedal.multibody.multibody_system import Conditions
from daedal.multibody.poses import first_guess
from daedal.multibody.topology import Loop, SpanningTree, independent_loops
from daedal.problems.compile import last_argument

_MOST_COORDINATES = 300  # maximum number of coordinates for which `system` checks for motions without inertia


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """Result of :meth:`daedal.multibody.Model.report`; ``print`` shows it as text, a notebook as tables.

    Attributes
    ----------
    model : Model
    topology : SpanningTree
        The spanning tree and the cut joints.
    loops : tuple of Loop
        Independent loops with the fewest joints, one per cut joint.
    loop_mobilities : tuple of LoopMobility
        Mobility of each loop by itself; empty if the loops cannot be closed.
    gruebler : int
        Degrees of freedom if all conditions were independent: freedoms of the tree's joints minus conditions of cut
        joints.
    degrees_of_freedom : int or None
        The actual number, by the rank of the constraints in a generic configuration with all loops closed; None if no
        such configuration was found.
    velocity_degrees_of_freedom : int or None
        `degrees_of_freedom` minus the number of velocity constraints.
    redundant : tuple of str
        Conditions that depend on preceding ones.
    redundant_joints : tuple of str
        The joints (or other constraints) to which these conditions belong.
    without_inertia : tuple of WithoutInertia
        Motions without inertia.
    configuration : Configuration
        The configuration in which the rank was determined, with the remaining gap of the loops and the decision on
        the rank.
    open_joint : str
        The joint that stays open, if loops cannot be closed.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> report = model.report()
    >>> print(report.degrees_of_freedom, report.gruebler, report.redundant)
    1 1 ()
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
        from daedal.multibody.topology import draw_graph

        return draw_graph(self.topology, self.model.name, **options)

    def tables(self) -> list[tuple[str, Tabular]]:
        """Pairs of a heading and a table."""
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
        rows.append(("Gruebler", f"{_freedoms(self.gruebler)}, assuming independent conditions"))
        if self.degrees_of_freedom is None:
            rows.append(("open", f"joint '{self.open_joint}' cannot be closed: a gap of {at.gap:.3g} remains"))
        else:
            rows.append(("actual", f"{_freedoms(self.degrees_of_freedom)}{f'; {at.rank}' if at.rows.size else ''}"))
            if not at.regular:
                rows.append(
                    ("singular", "the machine cannot move from here with this rank, so this number may be too large")
                )
            if self.velocity_degrees_of_freedom != self.degrees_of_freedom:
                rows.append(("velocities", f"{self.velocity_degrees_of_freedom} of them can be chosen"))
        if self.redundant:
            count, joints = len(self.redundant), listing(f"'{name}'" for name in self.redundant_joints)
            verb = "are" if count > 1 else "is"
            rows.append(
                ("redundant", f"{count} condition{'s' * (count > 1)} of {joints} {verb} redundant: {self._dropped()}")
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
        return f"{count}; use planar=True, or Spherical and Cylindrical instead of two of its hinges"
    return f"{count}, mobility {one.mobility} due to its dimensions"


def report_of(model: Any, system) -> Report:
    """All properties of a model that are known without solving it."""
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
    """The joint or other constraint to which condition i belongs."""
    norms = int(np.sum(system.layout.tree.turn == ANY_ROTATION))
    joints = system.layout.closing_joints
    return joints[i - norms] if norms <= i < norms + len(joints) else system.constraint_names[i]


def complaint(one: WithoutInertia) -> str:
    """Message that describes a motion without inertia and gives a remedy."""
    bodies, joints = (listing(f"'{name}'" for name in names) for names in (one.bodies, one.joints))
    several = len(one.bodies) > 1
    which, at = f"bod{'ies' if several else 'y'} {bodies}", f"joint{'s' * (len(one.joints) > 1)} {joints}"
    if one.turning:
        return (
            f"{which} can turn at {at} about an axis without moment of inertia; give moments of inertia (for a rod, "
            "a radius), or use a joint that prevents this motion, such as Universal instead of Spherical or Cartesian "
            "instead of Free"
        )
    have = "have" if several else "has"
    remedy = "give a mass and moments of inertia, or use Fixed(...) instead"
    return f"{which} {have} no mass and can move at {at}; {remedy}"


def check_inertia(model: Any, system):
    """Raise for motions without inertia, which are possible if bodies lack mass or a moment of inertia."""
    if system.n_q > _MOST_COORDINATES or not any(is_suspect(body, model.planar) for body in model.bodies):
        return
    start = first_guess(system.layout, (), {})
    if has_inertia(system, start):
        return
    at = configuration(model.conditions(system.layout), start, tries=3)
    found = motions_without_inertia(system, at) if at.closed else []
    if found:
        raise InvalidProblemError(complaint(found[0]))


_TOLERANCE = 1e-5  # tolerance for ranks, with normalised rows
_NO_INERTIA = 1e-12
_AMPLITUDES = (
    0.1,
    0.3,
    0.3,
    1.0,
    1.0,
    1.0,
    3.0,
    3.0,
    1.0,
    1.0,
)  # amplitudes of random displacements from the first start
_PACE = 0.05  # speed of motion along the kernel of the constraints


class ScaledConditions:
    """The conditions of a model at t = 0, each divided by its largest gradient norm in the configurations visited."""

    def __init__(self, conditions: Conditions):
        self._conditions, self.n_g = conditions, conditions.n_g
        self._norms = np.zeros((conditions.n_g + conditions.n_hat, 1))

    def look(self, q: np.ndarray):
        """Update the largest gradient norms with those at a configuration."""
        rows = self._conditions.jacobian(0.0, q)
        self._norms = np.maximum(self._norms, np.linalg.norm(rows, axis=1, keepdims=True))

    @property
    def norms(self) -> np.ndarray:
        """The largest gradient norms; for a condition without gradient, the size of its values."""
        return self._conditions.scales(self._norms[:, 0])[:, None]

    def rows(self, q: np.ndarray) -> np.ndarray:
        """The Jacobian of the position constraints, then the rows of the velocity constraints."""
        return self._conditions.jacobian(0.0, q) / self.norms

    def closed(self, q: np.ndarray) -> Closed:
        """The nearest configuration with all loops closed."""

        def value(at):
            return self._conditions.value(0.0, at) / self.norms[: self.n_g, 0]

        return nearest_zero(value, lambda at: self.rows(at)[: self.n_g], q)


@dataclass(frozen=True, eq=False)
class Configuration:
    """A configuration with all loops closed; if none is found, the one with the smallest gap.

    Attributes
    ----------
    q : numpy.ndarray
        Coordinates.
    gap : float
        Largest gap of the loops; 0 if all are closed.
    rows : numpy.ndarray
        The Jacobian of all constraints, each row divided by its largest norm in the configurations visited.
    rank : RankDecision
        Rank of `rows`.
    regular : bool
        Whether the machine can move in all admissible directions with the same rank; if not, the configuration is
        singular, or its mobility is infinitesimal.
    """

    q: np.ndarray
    gap: float
    rows: np.ndarray
    rank: Any
    regular: bool

    @property
    def closed(self) -> bool:
        """Whether all loops are closed."""
        return self.gap <= CLOSED


def configuration(conditions: Conditions, start: np.ndarray, tries: int = len(_AMPLITUDES)) -> Configuration:
    """Search for a regular configuration with closed loops near `start`; otherwise return the best one found."""
    generator = np.random.default_rng(1)
    scaled = ScaledConditions(conditions)
    best = None
    for amplitude in _AMPLITUDES[:tries]:
        beside = start + amplitude * generator.standard_normal(start.size)
        scaled.look(beside)
        end = scaled.closed(beside)
        gap = float(np.abs(conditions.value(0.0, end.x)).max(initial=0.0))
        rows = scaled.rows(end.x)
        regular = end.found and _is_regular(scaled, end.x, rows, generator)
        found = Configuration(end.x, 0.0 if end.found else gap, rows, decided(rows), regular)
        if found.regular:
            return found
        if best is None or _quality(found) > _quality(best):
            best = found
    assert best is not None
    return best


def _quality(one: Configuration) -> tuple[float, ...]:
    return (1, one.rank.rank) if one.closed else (0, -one.gap)


def _is_regular(scaled: ScaledConditions, q: np.ndarray, rows: np.ndarray, generator) -> bool:
    here, free = decided(rows), kernel_of(rows[: scaled.n_g])
    if not here.clear or not rows.size or not free.size:
        return here.clear
    way = free @ generator.standard_normal(free.shape[1])
    there = scaled.closed(q + _PACE * way / np.linalg.norm(way))
    same = decided(scaled.rows(there.x)).rank == here.rank
    return same and there.found and bool(np.linalg.norm(there.x - q) > 0.5 * _PACE)


def decided(rows: np.ndarray):
    """Decide on the rank of normalised rows."""
    return linear.rank_decision(rows, scale=1.0, tolerance=_TOLERANCE, what="constraints")


def kernel_of(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the admissible velocities, as columns."""
    if not len(rows):
        return np.eye(rows.shape[1])
    _, sizes, vectors = np.linalg.svd(rows)
    return vectors[int(np.sum(sizes > _TOLERANCE)) :].T


def dependent(rows: np.ndarray) -> list[int]:
    """Rows that are combinations of preceding rows."""
    basis = np.zeros((0, rows.shape[1]))
    found = []
    for i, row in enumerate(rows):
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        size = float(np.linalg.norm(rest))
        if size > _TOLERANCE:
            basis = np.vstack([basis, rest / size])
        else:
            found.append(i)
    return found


@dataclass(frozen=True)
class WithoutInertia:
    """A motion without inertia.

    Attributes
    ----------
    bodies : tuple of str
        The bodies that move and lack inertia.
    joints : tuple of str
        The joints of the tree that move.
    turning : bool
        Whether these bodies have mass, but no moment of inertia about the axis of this motion.
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    turning: bool


def is_suspect(body, planar: bool) -> bool:
    """Whether a body can move without inertia: it has no mass, or no moment of inertia about some axis."""
    moments = body.inertia.moments[2:, 2:] if planar else body.inertia.moments
    values = np.linalg.eigvalsh(moments)
    return body.mass == 0.0 or bool(values[0] <= 1e-12 * values[-1])


def mass_at(system, q: np.ndarray) -> np.ndarray:
    """The mass matrix at t = 0."""
    return np.asarray(system.mass(0.0, q, *last_argument(system.mass, system.params)))


def has_inertia(system, start: np.ndarray) -> bool:
    """Whether the mass matrix is positive definite, regardless of constraints, at a configuration near `start`."""
    q = start + 0.3 * np.random.default_rng(1).standard_normal(start.size)
    matrix = mass_at(system, q)
    sizes = np.sqrt(np.diag(matrix))
    if not np.all(sizes > 0.0):
        return False
    return bool(np.linalg.eigvalsh(matrix / np.outer(sizes, sizes))[0] > 1e-9)


def motions_without_inertia(system, at: Configuration) -> list[WithoutInertia]:
    r"""The motions with velocities v for which :math:`G v = 0` and :math:`v^T M v = 0` at a configuration."""
    layout = system.layout
    suspects = {body.name for body in layout.topology.bodies if is_suspect(body, layout.planar)}
    free = kernel_of(at.rows)
    if not suspects or not free.size:
        return []
    sizes, vectors = np.linalg.eigh(free.T @ mass_at(system, at.q) @ free)
    still = vectors[:, sizes <= _NO_INERTIA * max(float(sizes[-1]), 1e-300)]
    return [_described(layout, at.q, free @ vector, suspects) for vector in still.T]


def _described(layout, q, rate, suspects) -> WithoutInertia:
    tree, topology = layout.tree, layout.topology
    u = joint_velocities(tree, q, rate) if np.any(tree.turn == ANY_ROTATION) else rate
    moving = velocities(tree, placement(tree, q), u)
    speeds = np.linalg.norm(moving.linear, axis=1) + np.linalg.norm(moving.angular, axis=1)
    moved = [body for body, speed in zip(topology.bodies, speeds) if speed > 1e-6 * speeds.max()]
    lacking = [body for body in moved if body.name in suspects] or moved
    at = [abs(u[tree.first_v[j] : tree.first_v[j + 1]]).max(initial=0.0) for j in range(len(topology.joints))]
    joints = [joint.name for joint, speed in zip(topology.joints, at) if speed > 1e-6 * max(at)]
    massless = [body for body in lacking if body.mass == 0.0]
    return WithoutInertia(tuple(body.name for body in massless or lacking), tuple(joints), not massless)


_SMALL = 1e-7
PLANAR_IN_SPACE = "a planar linkage in space"
_PLANE = [0, 1, 5]  # components of a twist in the xy plane


@dataclass(frozen=True)
class LoopMobility:
    """Mobility of a single loop.

    Attributes
    ----------
    loop : Loop
    freedoms : int
        Total freedoms of its joints.
    mobility : int
        Number of motions of the loop without the rest of the machine.
    redundant : int
        Redundant closure conditions.
    family : str
        Name of a family of overconstrained linkages; empty if there are no redundant conditions.
    """

    loop: Loop
    freedoms: int
    mobility: int
    redundant: int
    family: str


def _world(frame: Frame, layout, placed) -> tuple[np.ndarray, np.ndarray]:
    """Position and axes of a frame."""
    body = layout.index[frame.body.name]
    if body < 0:
        return frame.position, frame.rotation
    arm = placed.rotation[body] @ (frame.position - frame.body.center)
    return placed.r[body] + arm, placed.rotation[body] @ frame.rotation


def twists(joint: Joint, layout, placed, origin: np.ndarray) -> np.ndarray:
    """Velocities (of the point at `origin`, angular) for each freedom of a joint, as columns."""
    (_, a), (point, b) = (_world(frame, layout, placed) for frame in joint.frames)
    slides = joint.slides @ a.T
    axes = {ABOUT_Z: a[:, [2]], ABOUT_Z_AND_Y: np.column_stack([a[:, 2], b[:, 1]]), ANY_ROTATION: np.eye(3)}
    turns = axes.get(joint.turn, np.zeros((3, 0))).T
    angular = np.zeros_like(slides)
    if len(turns):
        angular[-len(turns) :] = turns
    return np.vstack([(slides + np.cross(point - origin, angular)).T, angular.T])


def loop_mobility(loop: Loop, joints: dict[str, Joint], layout, placed) -> LoopMobility:
    """Mobility and redundancy of a loop at a closed configuration."""
    parts = [joints[name] for name in loop.joints]
    points = np.array([_world(joint.b, layout, placed)[0] for joint in parts])
    middle = points.mean(axis=0)
    size = float(np.linalg.norm(points - middle, axis=1).max()) or 1.0
    matrix = np.hstack([np.zeros((6, 0)), *(twists(joint, layout, placed, middle) for joint in parts)])
    matrix[:3] /= size
    rows = matrix[_PLANE] if layout.planar else matrix
    rank = decided(rows.T / np.linalg.norm(rows.T, axis=1, keepdims=True)).rank
    redundant = len(rows) - rank
    family = _family(matrix, rank, {type(joint).__name__ for joint in parts}) if redundant else ""
    return LoopMobility(loop, matrix.shape[1], matrix.shape[1] - rank, redundant, family)


def _family(matrix: np.ndarray, rank: int, kinds: set[str]) -> str:
    linear, angular = matrix[:3].T, matrix[3:].T
    turning = angular[np.linalg.norm(angular, axis=1) > _SMALL]
    if matrix.shape[1] == rank:
        return "a rigid frame"
    if not len(turning):
        return "a linkage of sliders"
    normal = turning[0]
    parallel = np.linalg.norm(np.cross(turning, normal), axis=1).max() < _SMALL
    if parallel and np.abs(linear @ normal).max() < _SMALL:
        return PLANAR_IN_SPACE if rank == 3 else "a linkage about one axis"
    if _has_common_point(linear, angular):
        return "a spherical linkage"
    if kinds == {"Revolute"}:
        known = {(4, 3): "a Bennett linkage", (5, 4): "a five-bar linkage of Goldberg or Myard"}
        known[6, 5] = "a six-bar linkage such as Bricard's or Sarrus's"
        return known.get((matrix.shape[1], rank), "a linkage of special dimensions")
    return "a linkage of special dimensions"


def _has_common_point(linear: np.ndarray, angular: np.ndarray) -> bool:
    """Whether there is a point p with v = p x w for all twists."""
    rows = np.vstack([[[0.0, w[2], -w[1]], [-w[2], 0.0, w[0]], [w[1], -w[0], 0.0]] for w in angular])
    right = linear.reshape(-1)
    point = np.linalg.lstsq(rows, right, rcond=None)[0]
    return bool(np.abs(rows @ point - right).max() < _SMALL * max(1.0, float(np.abs(point).max())))
