"""A model in chosen coordinates as arrays, the tree and the conditions that close loops, and checks of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.records import Record
from daedal.multibody.body import Body, Frame, ground
from daedal.multibody.closure import ACROSS, Chains, Closures, chains_of, gradients
from daedal.multibody.constraint import Constraint, Thread
from daedal.multibody.joint_coordinates import (
    JointCoordinate,
    Sum,
    angle_between,
    angle_name,
    coordinate_of,
    counted_angles,
    joint_coordinates,
    pointer,
    runner,
)
from daedal.multibody.joints import Cartesian, Free, Joint, Planar, Screw, Shifted, X, Y
from daedal.multibody.kinematics import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION, NO_ROTATION, BodyTree, placement
from daedal.multibody.packed import Prepared, packed, prepared
from daedal.multibody.topology import SpanningTree, spanning_tree

RELATIVE, ABSOLUTE = "relative", "absolute"


@dataclass(frozen=True, eq=False)
class Layout:
    """The coordinates of a model: a topology, and whether the model is planar."""

    topology: SpanningTree
    gravity: np.ndarray
    planar: bool
    stated: tuple[Joint, ...] = ()  # the original joints
    is_relative: bool = True
    constraints: tuple[Constraint, ...] = ()
    pointers: frozenset[str] = frozenset()  # names of massless bodies that measure angles
    alignments: tuple[Joint, ...] = ()  # joints that align these bodies
    guesses: Mapping[str, float] = field(default_factory=dict)  # names of all massless bodies, with initial guesses

    def __getstate__(self) -> dict[str, Any]:
        """State without addresses, which are valid only in this process."""
        return {name: value for name, value in vars(self).items() if name not in ("packed", "prepared")}

    @property
    def spanning(self) -> SpanningTree:
        """The spanning tree of the user's bodies, without bodies added for constraints."""
        tree, n = self.topology, len(self.topology.bodies) - len(self.guesses)
        return SpanningTree(tree.bodies[:n], tree.joints[:n], tree.reversed[:n], tree.parents[:n], tree.cut)

    @cached_property
    def joint_coordinates(self) -> dict[tuple[str, str | None], JointCoordinate]:
        """Location of the coordinates of the joints, by the names of joint and coordinate."""
        return joint_coordinates(self)

    @cached_property
    def counted_angles(self) -> dict[str, Sum]:
        """Angles of joints outside the tree that count turns."""
        return counted_angles(self)

    @cached_property
    def turns(self) -> dict[str, Sum]:
        """Relative angles of bodies in the plane, for constraints that use such an angle."""
        return {one.name: angle_between(self, *one.turns) for one in self.constraints if one.turns}

    @property
    def n_bodies(self) -> int:
        """Number of bodies of the model, which precede the massless bodies added for constraints."""
        return len(self.topology.bodies) - len(self.guesses)

    @cached_property
    def massless(self) -> dict[str, int]:
        """Coordinates of massless bodies added for constraints, by name."""
        return {name: int(self.tree.first_q[self.index[name]]) for name in self.guesses}

    @cached_property
    def zero(self) -> np.ndarray:
        """Coordinates with all joints at zero."""
        q = np.zeros(self.n_q)
        q[self.tree.first_q[1:][self.tree.turn == ANY_ROTATION] - 4] = 1.0
        for name, value in self.guesses.items():
            q[self.massless[name]] = value
        return q

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each body in the tree."""
        return {body.name: i for i, body in enumerate(self.topology.bodies)} | {"ground": -1}

    @cached_property
    def tree(self) -> BodyTree:
        """The spanning tree."""
        bodies, joints = self.topology.bodies, self.topology.joints
        n_v = [len(joint.slides) for joint in joints]
        n_q = [n + (joint.turn == ANY_ROTATION) for n, joint in zip(n_v, joints)]
        return BodyTree(
            parent=np.array(self.topology.parents, dtype=np.int64),
            turn=np.array([joint.turn for joint in joints], dtype=np.int64),
            first_q=np.concatenate([[0], np.cumsum(n_q)]).astype(np.int64),
            first_v=np.concatenate([[0], np.cumsum(n_v)]).astype(np.int64),
            place=_rows([joint.a.position - joint.a.body.center for joint in joints], (3,)),
            axes=_rows([joint.a.rotation for joint in joints], (3, 3)),
            own_place=_rows([joint.b.position - joint.b.body.center for joint in joints], (3,)),
            own_axes=_rows([joint.b.rotation for joint in joints], (3, 3)),
            slide=np.concatenate([np.zeros((0, 3)), *(joint.slides for joint in joints)]),
            mass=np.array([body.mass for body in bodies]),
            inertia=_rows([body.inertia.moments for body in bodies], (3, 3)),
            gravity=np.array(self.gravity, dtype=float),
        )

    @cached_property
    def arrays(self) -> tuple[BodyTree, Closures, Chains]:
        """Tree, conditions and their chains."""
        return self.tree, self.closures, chains_of(self.tree, self.closures)

    @cached_property
    def packed(self) -> Record:
        """The same data as a record for kernels."""
        return packed(*self.arrays)

    @cached_property
    def prepared(self) -> Prepared:
        """Data for calls of rnea, crba and aba."""
        return prepared(*self.arrays)

    @cached_property
    def _conditions(self) -> list[tuple[Joint, tuple[int, int, int]]]:
        every = [(joint, condition) for joint in self.topology.cut for condition in joint.closure]
        every += [(joint, (ACROSS, X, Y)) for joint in self.alignments]
        if not self.planar or not every:
            return every
        # In planar models, conditions that hold for all planar motions are omitted.
        closures = self._arrays(every)
        generator = np.random.default_rng(1)
        felt = np.zeros(len(every))
        for _ in range(3):
            placed = placement(self.tree, generator.uniform(-1.0, 1.0, self.n_q))
            rows = gradients(closures, placed.r, placed.rotation)
            felt = np.maximum(felt, np.abs(rows[:, :, [0, 1, 5]]).max(axis=(1, 2)))
        return [pair for pair, size in zip(every, felt) if size > 1e-9]

    @cached_property
    def closures(self) -> Closures:
        """The conditions of all joints that close loops."""
        return self._arrays(self._conditions)

    def number_in_tree(self, joint: Joint) -> int | None:
        """Index in the tree of a joint of the model; None if the joint is a condition."""
        names = [moved.name for moved in self.topology.joints] if self.is_relative else []
        return names.index(joint.name) if joint.name in names else None

    def joint_as_moved(self, joint: Joint) -> Joint:
        """A joint of the model with its motions in this layout; in the plane, a free joint has three of them."""
        return in_the_plane(joint) if self.planar else joint

    @property
    def closing_joints(self) -> list[str]:
        """The name of the joint of each condition."""
        return [joint.name for joint, _ in self._conditions]

    def _arrays(self, conditions) -> Closures:
        sides = [(joint.a, joint.b) for joint, _ in conditions]
        kinds = [condition for _, condition in conditions]
        return Closures(
            kind=np.array([kind for kind, _, _ in kinds], dtype=np.int64),
            k=np.array([k for _, k, _ in kinds], dtype=np.int64),
            l=np.array([l for _, _, l in kinds], dtype=np.int64),
            body=_rows([[self.index[frame.body.name] for frame in pair] for pair in sides], (2,)).astype(np.int64),
            place=_rows([[frame.position - frame.body.center for frame in pair] for pair in sides], (2, 3)),
            axes=_rows([[frame.rotation for frame in pair] for pair in sides], (2, 3, 3)),
        )

    def remember(self):
        """Compute all cached properties, since traced functions must not change external state."""
        coordinates = self.index, self.joint_coordinates, self.counted_angles, self.turns, self.massless
        return coordinates, self.closures, self.typical_sizes, self.n_q, self.n_v

    @cached_property
    def n_q(self) -> int:
        """Number of coordinates."""
        return int(self.tree.first_q[-1])

    @cached_property
    def n_v(self) -> int:
        """Number of velocities of joints."""
        return int(self.tree.first_v[-1])

    @cached_property
    def length(self) -> float:
        """Size of the machine: the largest distance of a joint from a centre of mass, 1 if all are zero."""
        tree, places = self.tree, self.closures.place.reshape(-1, 3)
        return float(np.max(np.linalg.norm([*tree.place, *tree.own_place, *places], axis=1), initial=0.0)) or 1.0

    @cached_property
    def typical_sizes(self) -> np.ndarray:
        """Scales of the coordinates: 1 for angles and Euler parameters, the machine's size for displacements."""
        tree, length = self.tree, self.length
        sizes = np.ones(self.n_q)
        for j in range(tree.parent.size):
            shifts = tree.first_v[j + 1] - tree.first_v[j] - tree.turn[j]  # `turn` is the number of rotations
            sizes[tree.first_q[j] : tree.first_q[j] + shifts] = length
        return sizes

    @cached_property
    def names(self) -> list[str]:
        """Names of the coordinates: the joint, and the coordinate if the joint has several.

        If the tree traverses a joint from its second body to its first, the angles of a universal joint are exchanged,
        and coordinates other than angles and displacements along z are "backwards": those of the first body seen from
        the second.
        """
        names: list[str] = []
        for joint, is_reversed in zip(self.topology.joints, self.topology.reversed):
            parts = list(joint.coordinates)
            if joint.turn == ANY_ROTATION:
                parts = [*parts[:-3], "p0", "p1", "p2", "p3"]
            if is_reversed and joint.turn == ABOUT_Z_AND_Y:
                parts.reverse()
            elif is_reversed and len(parts) > 1:
                kept = {"angle", "displacement"} | ({"z"} if joint.turn != ANY_ROTATION else set())
                parts = [part if part in kept else f"{part} backwards" for part in parts]
            names += [joint.name] if len(parts) == 1 else [f"{joint.name}.{part}" for part in parts]
        return names


def _rows(values, shape) -> np.ndarray:
    return np.array(values, dtype=float).reshape(len(values), *shape)


def layout_of(bodies, joints, gravity, planar: bool, coordinates: str, cut, constraints=(), keep=()) -> Layout:
    """Relative coordinates of a spanning tree, or absolute ones: every body free, every joint a condition."""
    stated = tuple(in_the_plane(joint) if planar else joint for joint in joints)
    if coordinates == RELATIVE:
        read = {getattr(joint, "name", joint) for constraint in constraints for joint, _ in constraint.joints}
        layout = Layout(spanning_tree(bodies, stated, cut, {*keep, *read}), gravity, planar, stated, True)
    else:
        kind = Planar if planar else Free
        free = tuple(kind(body.name, ground, Frame(body, body.center)) for body in bodies)
        held = tuple(joint for joint in joints if not isinstance(joint, Free))
        topology = SpanningTree(tuple(bodies), free, (False,) * len(free), (-1,) * len(free), held)
        layout = Layout(topology, gravity, planar, stated, False)
    threads = tuple(Thread(joint) for joint in layout.topology.cut if isinstance(joint, Screw))
    return _with_constraints(layout, (*constraints, *threads))


def _with_constraints(layout: Layout, constraints: tuple[Constraint, ...]) -> Layout:
    """The layout with constraints, and with the massless bodies that they need."""
    added, alignments = [], []
    pointers: set[str] = set()
    guesses: dict[str, float] = {}
    for constraint in constraints:
        for joint, which in constraint.joints:
            one = coordinate_of(layout, joint, which)
            if layout.planar or one.q >= 0 or not one.turns or angle_name(one) in pointers:
                continue
            body, hinge, alignment = pointer(one)
            pointers.add(body.name)
            added.append((body, hinge))
            alignments.append(alignment)
            guesses[body.name] = 0.0
        for name, guess in constraint.parameters.items():
            added.append(runner(name))
            guesses[name] = guess
    topology = layout.topology
    extended = replace(
        topology,
        bodies=(*topology.bodies, *(body for body, _ in added)),
        joints=(*topology.joints, *(joint for _, joint in added)),
        reversed=(*topology.reversed, *(False for _ in added)),
        parents=(*topology.parents, *(layout.index[joint.a.body.name] for _, joint in added)),
    )
    return replace(
        layout,
        topology=extended,
        constraints=constraints,
        pointers=frozenset(pointers),
        alignments=tuple(alignments),
        guesses=guesses,
    )


def in_the_plane(joint: Joint) -> Joint:
    """The joint in a planar model, in which nothing moves along z."""
    if isinstance(joint, Free):
        return Planar(joint.name, joint.a, joint.b)
    if isinstance(joint, Cartesian):
        return Shifted(joint.name, joint.a, joint.b)
    return joint


_OFF = 1e-9  # tolerance for lengths and directions that should be zero


def check_parts(parts: Iterable[Any], gravity: np.ndarray, planar: bool):
    """Check numbers, frames and, in planar models, directions; messages name the part."""
    for part in parts:
        what = called(part)
        _check_numbers(part, what)
        if isinstance(part, Body):
            if part.is_ground and part is not ground:
                raise InvalidProblemError(
                    "a body has the name 'ground', which is reserved for the fixed body; rename it"
                )
            continue
        for frame in (frame for frame in part.frames if isinstance(frame, Frame)):
            _check_frame(frame, what)
            if planar:
                _check_in_plane(frame, what)
        if planar and isinstance(part, Joint):
            _check_planar_joint(in_the_plane(part), type(part).__name__)
    if planar and abs(gravity[2]) > _OFF:
        raise InvalidProblemError(
            f"gravity has the component {gravity[2]:g} along z, but a planar model moves in x and y"
        )


def called(part: Any) -> str:
    """Description of a part for messages: joint 'A', Spring 'left'."""
    kind = "body" if isinstance(part, Body) else "joint" if isinstance(part, Joint) else type(part).__name__
    return f"{kind} '{part.name}'"


def _check_numbers(part: Any, what: str):
    for name, value in vars(part).items():
        if isinstance(value, (float, np.ndarray)) and np.asarray(value).dtype.kind == "f" and np.any(np.isnan(value)):
            raise InvalidProblemError(f"{name} of {what} is not a number (nan)")


def _check_frame(frame: Frame, what: str):
    place = f"the frame of {what} on body '{frame.body.name}'"
    if frame.body.is_ground and frame.body is not ground:
        raise InvalidProblemError(f"{what} is on a body with the name 'ground', which is reserved for the fixed body")
    if np.shape(frame.position) != (3,) or not np.all(np.isfinite(frame.position)):
        raise InvalidProblemError(f"{place} has the position {frame.position}; expected three finite numbers")
    turn = np.asarray(frame.rotation)
    if turn.shape != (3, 3) or not np.allclose(turn @ turn.T, np.eye(3), atol=1e-8) or np.linalg.det(turn) < 0:
        raise InvalidProblemError(f"{place} has axes that are not orthonormal and right-handed")


def _check_in_plane(frame: Frame, what: str):
    body = frame.body
    for place, value in (
        (f"the centre of body '{body.name}'", body.center),
        (f"the point of {what} on body '{body.name}'", frame.position),
    ):
        if abs(value[2]) > _OFF * max(1.0, float(np.abs(value).max())):
            raise InvalidProblemError(
                f"{place} has z = {value[2]:g}, but a planar model lies in the plane z = 0; set it to 0, or omit planar"
            )


def _check_planar_joint(joint: Joint, kind: str):
    """Check that all motions of a joint stay in the plane, and that the second body is in the plane with the joint at
    zero."""
    axes = joint.a.rotation
    bodies = " and ".join(f"'{name}'" for name in joint.bodies)
    if joint.turn not in (NO_ROTATION, ABOUT_Z):
        raise InvalidProblemError(
            f"joint '{joint.name}' ({kind}) lets bodies {bodies} leave the plane; in a planar model use Revolute"
        )
    upright = abs(abs(axes[2, 2]) - 1.0) < _OFF
    if joint.turn != NO_ROTATION and not upright:
        raise InvalidProblemError(
            f"the axis of joint '{joint.name}' ({kind}) points along {_vector(axes[:, 2])}; in a planar model it "
            "must be along z, the normal of the plane"
        )
    if np.any(np.abs(joint.slides @ axes[2]) > _OFF):
        raise InvalidProblemError(
            f"joint '{joint.name}' ({kind}) slides out of the plane, along {_vector(axes[:, 2])}; in a planar "
            "model it must slide in x and y"
        )
    if abs((axes @ joint.b.rotation.T)[2, 2] - 1.0) > _OFF:
        raise InvalidProblemError(
            f"joint '{joint.name}' ({kind}) tilts bodies {bodies} against each other; in a planar model their z "
            "axes must be parallel"
        )


def _vector(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value + 0.0:.4g}" for value in values) + ")"
