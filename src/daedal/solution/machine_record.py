"""The record of a machine stored in files: motion of its bodies and joints at the output points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.solution.file import save
from daedal.solution.schema import ArrayFormat, ListOf, MappingOf, NumberFormat, Optional, RecordFormat, Text

__all__ = ["MACHINE", "RecordedMachine", "RecordedMotion", "joined", "save", "wrong_times"]


@dataclass(frozen=True, eq=False)
class RecordedFrame:
    """The motion of a body-fixed frame at the output points; vectors have shape (3, nt) in ground axes.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
    position, velocity, acceleration : numpy.ndarray
        Motion of the origin.
    orientation : numpy.ndarray, shape (nt, 3, 3)
        Rotation matrices from frame axes to ground axes.
    angular_velocity, angular_acceleration : numpy.ndarray
    """

    t: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    velocity: np.ndarray
    angular_velocity: np.ndarray
    acceleration: np.ndarray
    angular_acceleration: np.ndarray

    def moved(self, offset: np.ndarray, rotation: np.ndarray) -> RecordedFrame:
        """The motion of another frame on the same body, from its offset and rotation in this frame.

        With the offset s in ground axes, its velocity is v + w x s, its acceleration a + w' x s + w x (w x s).
        """
        s = (self.orientation @ offset).T
        spin = np.cross(self.angular_velocity, s, axis=0)
        return RecordedFrame(
            self.t,
            self.position + s,
            self.orientation @ rotation,
            self.velocity + spin,
            self.angular_velocity,
            self.acceleration
            + np.cross(self.angular_acceleration, s, axis=0)
            + np.cross(self.angular_velocity, spin, axis=0),
            self.angular_acceleration,
        )


@dataclass(frozen=True, eq=False)
class RecordedBody(RecordedFrame):
    """The motion of a body at the output points."""

    kinetic_energy: np.ndarray
    local_center: np.ndarray  # centre in the body frame
    name: str = ""

    @property
    def center(self) -> np.ndarray:
        """Motion of the centre of mass."""
        return self.moved(self.local_center, np.eye(3)).position

    def at(self, *place: Any) -> RecordedFrame:
        """The motion of a body-fixed point, ``at(0.5, 0.0)``, or frame, ``at(crank.end)``."""
        given: Any = place[0] if len(place) == 1 else place
        if hasattr(given, "body"):
            if given.body.name != self.name:
                raise InvalidProblemError(f"the frame is on body '{given.body.name}', not on '{self.name}'")
            return self.moved(np.asarray(given.position), np.asarray(given.rotation))
        point = np.asarray(given, dtype=float)
        if point.shape not in ((2,), (3,)):
            raise InvalidProblemError(f"the point of body '{self.name}' must have two or three numbers, got {given!r}")
        return self.moved(np.append(point, np.zeros(3 - point.size)), np.eye(3))


@dataclass(frozen=True, eq=False)
class RecordedWrench:
    """Force and torque over time, shape (3, nt) each; the torque refers to a moving point."""

    force: np.ndarray
    torque: np.ndarray


class NamedCoordinates:
    """Joint coordinates by name; subclasses have `name`, `names`, `coordinates` and `rates`."""

    name: str
    names: tuple[str, ...]
    coordinates: np.ndarray
    rates: np.ndarray

    @property
    def angle(self) -> np.ndarray:
        """The angle, counting full turns."""
        return self._named("angle")

    @property
    def displacement(self) -> np.ndarray:
        """The displacement along the axis."""
        return self._named("displacement")

    @property
    def rate(self) -> np.ndarray:
        """The rate of a single coordinate; if there are several, use `rates`."""
        rates = self.rates
        return rates[0] if len(rates) == 1 else rates

    def _named(self, name: str) -> np.ndarray:
        if name not in self.names:
            known = ", ".join(self.names) or "none, since it allows no motion"
            raise InvalidProblemError(f"joint '{self.name}' has no {name}; its coordinates are {known}")
        return self.coordinates[self.names.index(name)]


class PartsOfMachine:
    """Bodies, joints and forces of a :class:`daedal.multibody.Model` in motion, computed from its `parts`.

    Values are available at the output points or, unless the motion was stored, at the times `t`.
    """

    @property
    def parts(self) -> Any:
        """Bodies, joints and forces."""
        raise NotImplementedError

    def body(self, name: str, t: Any = None):
        """The motion of a body."""
        return self.parts.body(name, t)

    def joint(self, name: str, t: Any = None):
        """The motion of a joint, and the force and torque that it transmits, including its drive."""
        return self.parts.joint(name, t)

    def force(self, name: str, t: Any = None):
        """The effect of a force of the model."""
        return self.parts.force(name, t)

    @property
    def energy(self) -> Any:
        """Kinetic, potential and total energy at the output points."""
        return self.parts.energy()

    def power(self, force: Any, t: Any = None) -> np.ndarray:
        """The power of a force of the model, which is given as an object or by name."""
        return self.parts.power(force, t)


class PartsOfMotion(PartsOfMachine):
    """Results of a motion that was not integrated; it has the attributes `t` and `driven`."""

    t: np.ndarray
    driven: tuple[str, ...]
    _kind = "motion"

    def __repr__(self):
        driven = f" of {', '.join(self.driven)}" if self.driven else ""
        return f"<{self._kind}{driven} at {self.t.size} times from {self.t[0]:g} to {self.t[-1]:g}>"


@dataclass(frozen=True, eq=False)
class RecordedJoint(NamedCoordinates):
    """The relative motion of the two bodies of a joint at the output points, and its reactions.

    Attributes
    ----------
    t : numpy.ndarray
    names : tuple of str
        Names of the coordinates.
    coordinates, rates : numpy.ndarray, shape (n, nt)
    position : numpy.ndarray, shape (3, nt)
        Position of the joint on its second body.
    """

    t: np.ndarray
    names: tuple[str, ...]
    coordinates: np.ndarray
    rates: np.ndarray
    position: np.ndarray
    force: np.ndarray | None
    torque: np.ndarray | None
    name: str = ""

    @property
    def reaction(self) -> RecordedWrench:
        """Force of the joint on its second body, and torque about the joint, in ground axes."""
        if self.force is None or self.torque is None:
            raise InvalidProblemError(
                f"joint '{self.name}': reactions were unknown when the solution was stored, since the model does not "
                f"describe all forces"
            )
        return RecordedWrench(self.force, self.torque)


@dataclass(frozen=True, eq=False)
class RecordedForce:
    """Power and potential energy of a force at the output points."""

    t: np.ndarray
    power: np.ndarray
    energy: np.ndarray
    name: str = ""


@dataclass(frozen=True, eq=False)
class RecordedEnergy:
    """Energies over time."""

    kinetic: np.ndarray
    potential: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Sum of kinetic and potential energy."""
        return self.kinetic + self.potential


@dataclass(frozen=True, eq=False)
class RecordedMachine:
    """Bodies, joints and forces of a stored solution, with the interface of a model's results.

    Values are available at the output points of the solution only, since the functions of the model are not stored.
    """

    title: str
    bodies: dict[str, RecordedBody] = field(default_factory=dict)
    joints: dict[str, RecordedJoint] = field(default_factory=dict)
    forces: dict[str, RecordedForce] = field(default_factory=dict)
    energies: RecordedEnergy | None = None

    def results(self, solution: Any) -> RecordedMachine:
        """Return self: the stored results."""
        return self

    def body(self, name: str, t: Any = None) -> RecordedBody:
        """The motion of a body."""
        return self._found(self.bodies, name, "body", t)

    def joint(self, name: str, t: Any = None) -> RecordedJoint:
        """The motion of a joint, and its reactions."""
        return self._found(self.joints, name, "joint", t)

    def force(self, name: str, t: Any = None) -> RecordedForce:
        """The effect of a force."""
        return self._found(self.forces, name, "force", t)

    def power(self, force: Any, t: Any = None) -> np.ndarray:
        """The power of a force, which is given as an object or by name."""
        return self.force(getattr(force, "name", force), t).power

    def energy(self, t: Any = None) -> RecordedEnergy:
        """Kinetic and potential energy."""
        self._check_times(t)
        if self.energies is None:
            raise InvalidProblemError("the energy was not known when the solution was stored")
        return self.energies

    def animate(self, *arguments: Any, **options: Any) -> Any:
        """Raise, since shapes of bodies are not stored."""
        raise InvalidProblemError(
            "a machine cannot be animated from a file, which does not contain its shapes; animate the solution "
            "before it is saved, or pickle it"
        )

    def _found(self, parts: dict[str, Any], name: str, what: str, t: Any) -> Any:
        if name not in parts:
            raise unknown_name(name, parts, what)
        self._check_times(t)
        return parts[name]

    @staticmethod
    def _check_times(t: Any) -> None:
        if t is not None:
            raise InvalidProblemError(
                "bodies and joints of a saved solution are known only at its output points; omit t, or "
                "solve with these times in t_eval"
            )


def joined(machines: Sequence[RecordedMachine], counts: Sequence[int]) -> RecordedMachine:
    """Concatenate records in time, with the first ``counts[i]`` points of record i."""
    first = machines[0]

    def row(kind: str, name: str) -> Any:
        return _side_by_side([getattr(machine, kind)[name] for machine in machines], counts)

    known = [machine.energies for machine in machines]
    return RecordedMachine(
        first.title,
        {name: row("bodies", name) for name in first.bodies},
        {name: row("joints", name) for name in first.joints},
        {name: row("forces", name) for name in first.forces},
        None if None in known else _side_by_side(known, counts),
    )


def _side_by_side(parts: Sequence[Any], counts: Sequence[int]) -> Any:
    """Records of the same class concatenated in time, with the first ``counts[i]`` points of record i."""
    given: dict[str, Any] = {}
    for one in fields(parts[0]):
        values = [getattr(part, one.name) for part in parts]
        if one.name in ("names", "name", "local_center"):
            given[one.name] = values[0]
        elif any(value is None for value in values):
            given[one.name] = None
        elif one.name == "orientation":
            given[one.name] = np.concatenate([value[:count] for value, count in zip(values, counts, strict=True)])
        else:
            cut = [value[..., :count] for value, count in zip(values, counts, strict=True)]
            given[one.name] = np.concatenate(cut, axis=-1)
    return type(parts[0])(**given)


# --- in a file --------------------------------------------------------------------------------------------------------

_TIMES, _VECTORS = ArrayFormat("f8", ("nt",)), ArrayFormat("f8", (3, "nt"))
_BODY = RecordFormat(
    {
        "t": _TIMES,
        "position": _VECTORS,
        "orientation": ArrayFormat("f8", ("nt", 3, 3)),
        "velocity": _VECTORS,
        "angular_velocity": _VECTORS,
        "acceleration": _VECTORS,
        "angular_acceleration": _VECTORS,
        "kinetic_energy": _TIMES,
        "local_center": ArrayFormat("f8", (3,)),
        "name": Text(),
    },
    RecordedBody,
)
_JOINT = RecordFormat(
    {
        "t": _TIMES,
        "names": ListOf(Text(), "n", tuple),
        "coordinates": ArrayFormat("f8", ("n", "nt")),
        "rates": ArrayFormat("f8", (None, "nt")),
        "position": _VECTORS,
        "force": Optional(_VECTORS),
        "torque": Optional(_VECTORS),
        "name": Text(),
    },
    RecordedJoint,
)
_FORCE = RecordFormat({"t": _TIMES, "power": _TIMES, "energy": _TIMES, "name": Text()}, RecordedForce)
_ENERGY = RecordFormat({"kinetic": _TIMES, "potential": _TIMES}, RecordedEnergy)
MACHINE = RecordFormat(
    {
        "title": Text(),
        "bodies": MappingOf(_BODY),
        "joints": MappingOf(_JOINT),
        "forces": MappingOf(_FORCE),
        "energies": Optional(_ENERGY),
    },
    RecordedMachine,
)


def wrong_times(machine: RecordedMachine | None, points: int) -> str | None:
    """Error message if a machine was not recorded at the points of its solution, otherwise None."""
    if machine is None:
        return None
    parts: list[Any] = [*machine.bodies.values(), *machine.joints.values(), *machine.forces.values()]
    sizes = {part.t.size for part in parts} | ({machine.energies.kinetic.size} if machine.energies else set())
    return None if sizes <= {points} else "has bodies or joints at other points"


# --- kinematic motion ---------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class RecordedMotion(PartsOfMotion):
    """The stored motion of a driven mechanism: times, coordinates, bodies and joints.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
    q, v, a : numpy.ndarray, shape (n_q, nt)
    driven : tuple of str
        The joints that were driven.
    dead_points : tuple of (float, str)
        Times at which the motion is not determined, with the joint that is free there.
    machine : RecordedMachine
        Bodies and joints.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    driven: tuple[str, ...]
    dead_points: tuple[tuple[float, str], ...]
    machine: RecordedMachine
    params: Any = None
    attributes: dict[str, Any] = field(default_factory=dict)

    _kind = "stored motion"

    @property
    def parts(self) -> RecordedMachine:
        """Bodies and joints of the motion."""
        return self.machine


_DEAD_POINT = RecordFormat(
    {"t": NumberFormat(), "joint": Text()},
    lambda t, joint: (t, joint),
    take=lambda pair: dict(zip(("t", "joint"), pair)),
)
_MOTION = {
    "t": _TIMES,
    "q": ArrayFormat("f8", ("n_q", "nt")),
    "v": ArrayFormat("f8", ("n_q", "nt")),
    "a": ArrayFormat("f8", ("n_q", "nt")),
    "driven": ListOf(Text(), None, tuple),
    "dead_points": ListOf(_DEAD_POINT, None, tuple),
    "machine": MACHINE,
}
LAYOUTS = {
    "KinematicSolution": RecordFormat(
        _MOTION,
        RecordedMotion,
        lambda given: wrong_times(given["machine"], given["t"].size),
        lambda motion: (
            {name: getattr(motion, name) for name in _MOTION if name != "machine"} | {"machine": motion.recorded()}
        ),
    )
}
