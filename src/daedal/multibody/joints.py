"""Joints: kinds of relative motion between two bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame, checked_name, direction, frame_along, point
from daedal.multibody.closure import ACROSS, ALONG, OFFSET
from daedal.multibody.kinematics import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION, NO_ROTATION
from daedal.problems.checks import check_finite

X, Y, Z = 0, 1, 2
_TOGETHER = ((OFFSET, X, 0), (OFFSET, Y, 0), (OFFSET, Z, 0))
_HALF_TURN = np.diag([1.0, -1.0, -1.0])
_PARALLEL = ((ACROSS, X, Z), (ACROSS, Y, Z))


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint between two bodies.

    Parameters
    ----------
    name : str
        A unique name.
    a, b : Body or Frame
        The two bodies, or the frames on them that the joint connects: ``crank.end``, ``rod.at(0.1, 0.0)``.
    at : point, optional
        Position of the joint in the axes of the ground, for the bodies as drawn; not with frames.
    axis : direction
        The axis of the joint: "x", "y", "z" or a vector. In the axes of the ground if `at` is given, otherwise in the
        axes of both bodies.

    Examples
    --------
    >>> from daedal.multibody import Body, Joint, Revolute, ground
    >>> hinge = Revolute("hinge", ground, Body.rod("rod", length=1.0, mass=1.0).start, axis="y")
    >>> print(isinstance(hinge, Joint), hinge.name)
    True hinge
    """

    name: str
    a: Any
    b: Any
    at: Any = None
    axis: Any = "z"

    shifts: ClassVar[tuple[int, ...]] = ()  # axes of the joint's frame along which the joint slides
    turn: ClassVar[int] = NO_ROTATION
    closure: ClassVar[tuple[tuple[int, int, int], ...]] = ()  # conditions if the joint is cut
    coordinates: ClassVar[tuple[str, ...]] = ()  # names of its velocities

    def __post_init__(self):
        checked_name(self.name, "joint")
        axis = direction(self.axis, f"the axis of joint '{self.name}'")
        for side, value in (("a", self.a), ("b", self.b)):
            if not isinstance(value, (Body, Frame)):
                raise InvalidProblemError(
                    f"{side} of joint '{self.name}' must be a body or a frame on a body, got {value!r}"
                )
        if self.at is not None and not (isinstance(self.a, Body) and isinstance(self.b, Body)):
            raise InvalidProblemError(
                f"joint '{self.name}' has at=..., so a and b must be bodies and not frames on them"
            )
        object.__setattr__(self, "axis", axis)
        for side in ("a", "b"):
            object.__setattr__(self, side, self._frame(getattr(self, side), axis))
        object.__setattr__(self, "at", None)
        if self.a.body.name == self.b.body.name:
            body = self.a.body.name
            raise InvalidProblemError(f"joint '{self.name}' joins body '{body}' to itself; connect two bodies")

    def _frame(self, given: Body | Frame, axis: np.ndarray) -> Frame:
        turn = self.axes_along(axis)
        if isinstance(given, Frame):
            return given.turned(turn)
        if self.at is None:
            return Frame(given, np.zeros(3), turn)
        where = point(self.at, f"at of joint '{self.name}'")
        back = given.orientation.T
        return Frame(given, back @ (where - given.position), back @ turn)

    def axes_along(self, axis: np.ndarray) -> np.ndarray:
        """The axes of the joint's frames, its own axis along z."""
        return frame_along(axis)

    @property
    def bodies(self) -> tuple[str, str]:
        """The names of the two bodies."""
        return self.a.body.name, self.b.body.name

    @property
    def frames(self) -> tuple[Frame, Frame]:
        """The frames to which the joint is attached."""
        return self.a, self.b

    @property
    def n_free(self) -> int:
        """Number of independent relative motions of the joint."""
        return len(self.slides)

    @property
    def slides(self) -> np.ndarray:
        """Direction of the shift for each velocity of the joint, (n, 3)."""
        rows = np.zeros((len(self.coordinates), 3))
        for row, axis in zip(rows, self.shifts):
            row[axis] = 1.0
        return rows

    def swapped(self) -> Joint:
        """This joint with its two bodies exchanged.

        Both frames are rotated about x, so that an angle about z and a displacement along it keep their signs.
        """
        if self.turn == ANY_ROTATION:
            return self._with_frames(self.b, self.a)
        return self._with_frames(self.b.turned(_HALF_TURN), self.a.turned(_HALF_TURN))

    def _with_frames(self, a: Frame, b: Frame) -> Joint:
        other = object.__new__(type(self))
        for name, value in vars(self).items():
            object.__setattr__(other, name, value)
        object.__setattr__(other, "a", a)
        object.__setattr__(other, "b", b)
        return other

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r}, {self.bodies[0]!r}, {self.bodies[1]!r})"


class Fixed(Joint):
    """Two bodies joined rigidly.

    Examples
    --------
    >>> from daedal.multibody import Body, Fixed, Model, Revolute, ground
    >>> rod, tip = Body.rod("rod", length=1.0, mass=1.0), Body.particle("tip", mass=0.5)
    >>> model = Model(Revolute("pivot", ground, rod.start), Fixed("weld", rod.end, tip), planar=True)
    >>> print(model.system().names)
    ('pivot',)
    """

    closure = (*_TOGETHER, (ACROSS, X, Y), *_PARALLEL)


class Revolute(Joint):
    """A hinge: rotation about the axis.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> model = Model(Revolute("joint", ground, block))
    >>> print(model.system().names, model.report().degrees_of_freedom)
    ('joint',) 1
    """

    turn = ABOUT_Z
    coordinates = ("angle",)
    closure = (*_TOGETHER, *_PARALLEL)


class Prismatic(Joint):
    """A slider: translation along the axis, no rotation.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Prismatic, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> model = Model(Prismatic("joint", ground, block, axis="x"))
    >>> print(model.system().names, model.report().degrees_of_freedom)
    ('joint',) 1
    """

    shifts = (Z,)
    coordinates = ("displacement",)
    closure = ((ALONG, X, 0), (ALONG, Y, 0), *_PARALLEL, (ACROSS, X, Y))


class Cartesian(Joint):
    """Translation in all directions, no rotation: the motion of particles.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Cartesian, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> model = Model(Cartesian("joint", ground, block))
    >>> print(model.system().names, model.report().degrees_of_freedom)
    ('joint.x', 'joint.y', 'joint.z') 3
    """

    shifts = (X, Y, Z)
    coordinates = ("x", "y", "z")
    closure = ((ACROSS, X, Y), *_PARALLEL)


class Shifted(Joint):
    """Translation in the xy plane, no rotation: :class:`Cartesian` in a planar model."""

    shifts = (X, Y)
    coordinates = ("x", "y")
    closure = ((ALONG, Z, 0), *Cartesian.closure)


class Cylindrical(Joint):
    """Translation along the axis and rotation about it.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Cylindrical, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> model = Model(Cylindrical("joint", ground, block, axis="x"))
    >>> print(model.system().names, model.report().degrees_of_freedom)
    ('joint.displacement', 'joint.angle') 2
    """

    shifts = (Z,)
    turn = ABOUT_Z
    coordinates = ("displacement", "angle")
    closure = ((ALONG, X, 0), (ALONG, Y, 0), *_PARALLEL)


@dataclass(frozen=True, eq=False)
class Screw(Joint):
    """A nut on a thread: rotation about the axis with a translation of `pitch` per turn.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Screw, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> model = Model(Screw("joint", ground, block, pitch=0.01))
    >>> print(model.system().names, model.report().degrees_of_freedom)
    ('joint',) 1
    """

    pitch: float = 0.0

    turn = ABOUT_Z
    coordinates = ("angle",)
    closure = Cylindrical.closure  # and, as a separate constraint, the coupling of displacement and angle

    def __post_init__(self):
        object.__setattr__(self, "pitch", check_finite(self.pitch, f"the pitch of joint '{self.name}'"))
        if self.pitch == 0.0:
            raise InvalidProblemError(
                f"joint '{self.name}' needs a pitch, its advance per turn; for zero pitch use Revolute"
            )
        super().__post_init__()

    @property
    def slides(self) -> np.ndarray:
        """Translation along the axis per radian of rotation."""
        return np.array([[0.0, 0.0, self.pitch / (2.0 * np.pi)]])


@dataclass(frozen=True, eq=False)
class Universal(Joint):
    """Cardan joint: rotation about `axis`, fixed in the first body, then about `second_axis`, fixed in the second.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Universal, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> model = Model(Universal("joint", ground, block))
    >>> print(model.system().names, model.report().degrees_of_freedom)
    ('joint.angle', 'joint.second_angle') 2
    """

    second_axis: Any = "x"

    turn = ABOUT_Z_AND_Y
    coordinates = ("angle", "second_angle")
    closure = (*_TOGETHER, (ACROSS, Z, Y))

    def __post_init__(self):
        second = direction(self.second_axis, f"second_axis of joint '{self.name}'")
        object.__setattr__(self, "second_axis", second)
        super().__post_init__()

    def axes_along(self, axis):
        """z along the first axis and y along the second."""
        across = np.cross(self.second_axis, axis)
        if abs(float(np.dot(axis, self.second_axis))) > 1e-9:
            raise InvalidProblemError(f"the axes of joint '{self.name}' must be at right angles to each other")
        return np.column_stack([across, self.second_axis, axis])

    def swapped(self):
        """This joint with its bodies exchanged; the axes are exchanged, and reversed to preserve signs of angles."""
        exchange = -np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
        return self._with_frames(self.b.turned(exchange), self.a.turned(exchange))


class Spherical(Joint):
    """A ball joint: all rotations.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Spherical, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> model = Model(Spherical("joint", ground, block))
    >>> print(model.system().names, model.report().degrees_of_freedom)
    ('joint.p0', 'joint.p1', 'joint.p2', 'joint.p3') 3
    """

    turn = ANY_ROTATION
    coordinates = ("x", "y", "z")
    closure = _TOGETHER


class Planar(Joint):
    """Motion in a plane: two translations, and rotation about the axis, which is the normal of the plane.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Planar, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> model = Model(Planar("joint", ground, block))
    >>> print(model.system().names, model.report().degrees_of_freedom)
    ('joint.x', 'joint.y', 'joint.angle') 3
    """

    shifts = (X, Y)
    turn = ABOUT_Z
    coordinates = ("x", "y", "angle")
    closure = ((ALONG, Z, 0), *_PARALLEL)


class Free(Joint):
    """A joint without constraints: six free motions.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Free, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> model = Model(Free("joint", ground, block))
    >>> print(model.system().names, model.report().degrees_of_freedom)
    ('joint.x', 'joint.y', 'joint.z', 'joint.p0', 'joint.p1', 'joint.p2', 'joint.p3') 6
    """

    shifts = (X, Y, Z)
    turn = ANY_ROTATION
    coordinates = ("x", "y", "z", "about_x", "about_y", "about_z")
