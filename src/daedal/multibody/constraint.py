"""Base class of constraints; couplings of joints by gears, belts and racks; prescribed motions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame, about_z, checked_name, of_parameters, of_shape, positive
from daedal.multibody.force import frame_of
from daedal.problems.checks import check_finite, set_checked

COORDINATES = ("angle", "second_angle", "displacement", "x", "y", "z")
"""Names of scalar joint coordinates."""


class Constraint:
    """A restriction of body motion other than a joint.

    A constraint has a name, the frames to which it is attached, and

    * ``size(planar)``: its number of conditions on positions, in space or in the plane, and ``residual(t, motion)``:
      their values, which must be zero;
    * ``velocity_size(planar)`` and ``velocity_residual(t, motion)``: number and values of nonholonomic conditions,
      which are linear in the velocities.

    Residuals read positions and velocities of frames from `motion`. They are traced, so they must be plain arithmetic.

    Examples
    --------
    >>> from daedal.multibody import Body, Constraint, Distance, ground
    >>> rope = Distance("rope", ground, Body.particle("bob", mass=1.0), length=2.0)
    >>> print(isinstance(rope, Constraint), rope.size(planar=True))
    True 1
    """

    name: str
    frames: Sequence[Any] = ()  # attachment frames of class Frame
    joints: Sequence[Any] = ()  # joint coordinates that the constraint reads: joint and coordinate name
    parameters: Mapping[str, float] = {}  # additional massless coordinates, with initial guesses

    turns: tuple[Frame, ...] = ()  # two frames of a planar model whose relative angle the constraint reads

    def stated(self, planar: bool) -> Constraint:
        """The variant of the constraint for a spatial or planar model."""
        return self

    def size(self, planar: bool) -> int:
        """Number of conditions on positions."""
        return 0

    def velocity_size(self, planar: bool) -> int:
        """Number of conditions on velocities."""
        return 0

    def residual(self, t, motion):
        """Values of the conditions on positions."""
        return ()

    def velocity_residual(self, t, motion):
        """Values of the conditions on velocities."""
        return ()


def named_coordinate(given: Any) -> tuple[Any, str | None]:
    """The joint (or its name) and the coordinate named in "joint.coordinate"; None if only a joint is named."""
    if isinstance(given, str):
        joint, dot, which = given.rpartition(".")
        if dot and which in COORDINATES:
            return joint, which
    return given, None


def frame_along_axis(given: Any, turn: np.ndarray, what: str) -> Frame:
    """The frame `given`, or the frame of a body, rotated by `turn`."""
    if isinstance(given, Frame):
        return given.turned(turn)
    if isinstance(given, Body):
        return Frame(given, np.zeros(3), turn)
    raise InvalidProblemError(f"{what} must be a body or a frame on a body, got {given!r}")


class _Linear(Constraint):
    """The condition that a weighted sum of joint coordinates equals the offset."""

    factors: tuple[float, ...]
    offset: float

    def size(self, planar):
        return 1

    def residual(self, t, motion):
        total = -self.offset
        for (joint, which), factor in zip(self.joints, self.factors):
            total = total + factor * motion.coordinate(joint, which)
        return (total,)

    def _state(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Coupling(_Linear):
    r"""A linear relation between angles and displacements of joints, :math:`\sum_j c_j x_j = ` `offset`.

    Parameters
    ----------
    name : str
        Name of the coupling.
    coefficients : dict
        A coefficient for each joint: ``{"A": 1.0, "B": -2.0}``. If a joint has several coordinates, its name is
        followed by that of the coordinate, ``"A.angle"``.
    offset : float
        The value of the sum; zero by default.

    Examples
    --------
    A hinge that follows another at half its angle, as mimic joints of robots do:

    >>> from daedal.multibody import Body, Coupling, Model, Revolute, ground
    >>> arm, hand = Body.rod("arm", length=1.0, mass=1.0), Body.rod("hand", length=0.5, mass=0.2)
    >>> robot = Model(
    ...     Revolute("A", ground, arm.start),
    ...     Revolute("B", arm.end, hand.start),
    ...     Coupling("mimic", {"B": 1.0, "A": -0.5}, offset=0.1),
    ...     planar=True,
    ... )
    >>> bool(abs(robot.system().at(0.0, [0.5, 0.35]).constraint[0]) < 1e-12)
    True
    """

    name: str
    coefficients: Mapping[Any, float]
    offset: float = 0.0

    def __post_init__(self):
        checked_name(self.name, "constraint")
        if not isinstance(self.coefficients, Mapping) or not self.coefficients:
            raise InvalidProblemError(
                f"coefficients of coupling '{self.name}' must be a dictionary from joints to numbers, got "
                f"{self.coefficients!r}"
            )
        factors = tuple(
            check_finite(value, f"the coefficient of {joint!r} in coupling '{self.name}'")
            for joint, value in self.coefficients.items()
        )
        self._state(
            joints=tuple(named_coordinate(joint) for joint in self.coefficients),
            factors=factors,
            offset=check_finite(self.offset, f"the offset of coupling '{self.name}'"),
        )


@dataclass(frozen=True, eq=False)
class Gear(_Linear):
    r"""Two hinges coupled by gears, :math:`\varphi_1 = i\,\varphi_2 +` `offset`.

    The angles are those of the two joints, so both hinges should be attached to the same body: the housing, or the
    carrier of a planetary gear. The multiplier of the constraint is the torque at the first joint.

    Parameters
    ----------
    name : str
        Name of the gear.
    joint_1, joint_2 : Joint or str
        The hinges of the two wheels.
    ratio : float, optional
        The ratio i; negative if the wheels turn in opposite directions.
    teeth : pair of int, optional
        Numbers of teeth of the two wheels, instead of the ratio.
    internal : bool
        Whether one of the two toothed wheels is a ring, so that both turn in the same direction; only with `teeth`.
    offset : float
        The angle of the first joint when the angle of the second is zero.

    Examples
    --------
    >>> from daedal.multibody import Body, Gear, Model, Revolute, ground
    >>> a, b = (Body.cylinder(name, radius=0.1, length=0.02, mass=1.0) for name in "ab")
    >>> hinges = Revolute("A", ground, a), Revolute("B", ground.at(0.3, 0.0), b)
    >>> model = Model(*hinges, Gear("gear", "A", "B", teeth=(20, 60)), planar=True)
    >>> print(model.report().degrees_of_freedom)
    1
    """

    name: str
    joint_1: Any
    joint_2: Any
    ratio: float | None = None
    teeth: Any = None
    internal: bool = False
    offset: float = 0.0

    def __post_init__(self):
        checked_name(self.name, "constraint")
        if (self.ratio is None) == (self.teeth is None):
            raise InvalidProblemError(f"gear '{self.name}' needs either ratio or teeth")
        if self.teeth is not None:
            first, second = _pair(self.teeth, f"teeth of gear '{self.name}'")
            ratio = second / first if self.internal else -second / first
        else:
            ratio = check_finite(self.ratio, f"the ratio of gear '{self.name}'")
            if ratio == 0.0:
                raise InvalidProblemError(f"the ratio of gear '{self.name}' must not be zero")
        self._state(
            ratio=ratio,
            joints=((self.joint_1, "angle"), (self.joint_2, "angle")),
            factors=(1.0, -ratio),
            offset=check_finite(self.offset, f"the offset of gear '{self.name}'"),
        )


@dataclass(frozen=True, eq=False)
class Belt(_Linear):
    r"""A belt or chain on two wheels, :math:`r_1 \varphi_1 = r_2 \varphi_2 +` `offset`; with a minus sign if `crossed`.

    The multiplier of the constraint is the effective tension of the belt, the difference of the forces in its two
    sides.

    Examples
    --------
    >>> from daedal.multibody import Belt, Body, Model, Revolute, ground
    >>> a, b = (Body.cylinder(name, radius=0.1, length=0.02, mass=1.0) for name in "ab")
    >>> hinges = Revolute("A", ground, a), Revolute("B", ground.at(0.3, 0.0), b)
    >>> model = Model(*hinges, Belt("belt", "A", "B", radii=(0.1, 0.05)), planar=True)
    >>> print(model.report().degrees_of_freedom)
    1
    """

    name: str
    joint_1: Any
    joint_2: Any
    radii: Any
    crossed: bool = False
    offset: float = 0.0

    def __post_init__(self):
        checked_name(self.name, "constraint")
        first, second = _pair(self.radii, f"radii of belt '{self.name}'")
        self._state(
            joints=((self.joint_1, "angle"), (self.joint_2, "angle")),
            factors=(first, second if self.crossed else -second),
            offset=check_finite(self.offset, f"the offset of belt '{self.name}'"),
        )


@dataclass(frozen=True, eq=False)
class Rack(_Linear):
    r"""Rack and pinion: the displacement of the slider is `radius` times the angle of the hinge, plus `offset`.

    A negative radius reverses the direction. The multiplier of the constraint is the force on the teeth.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Prismatic, Rack, Revolute, ground
    >>> pinion, bar = (Body.cylinder(name, radius=0.1, length=0.02, mass=1.0) for name in ("pinion", "bar"))
    >>> joints = Revolute("A", ground, pinion), Prismatic("B", ground, bar, axis="x")
    >>> model = Model(*joints, Rack("rack", "A", "B", radius=0.1), planar=True)
    >>> print(model.report().degrees_of_freedom)
    1
    """

    name: str
    rotation: Any
    sliding: Any
    radius: float
    offset: float = 0.0

    def __post_init__(self):
        checked_name(self.name, "constraint")
        radius = check_finite(self.radius, f"the radius of rack '{self.name}'")
        if radius == 0.0:
            raise InvalidProblemError(f"the radius of rack '{self.name}' must not be zero")
        self._state(
            joints=((self.sliding, "displacement"), (self.rotation, "angle")),
            factors=(1.0, -radius),
            offset=check_finite(self.offset, f"the offset of rack '{self.name}'"),
        )


class Thread(Constraint):
    """The condition d = pitch / (2 pi) angle of a loop-closing screw, in addition to those of a cylindrical joint."""

    def __init__(self, screw):
        self.name, self.screw = screw.name, screw
        self.joints = ((screw.name, "angle"),)

    def size(self, planar):
        return 1

    def residual(self, t, motion):
        a, b = self.screw.frames
        along = motion.rotation(a)[:, 2] @ (motion.position(b) - motion.position(a))
        return (along - self.screw.slides[0, 2] * motion.coordinate(self.name, "angle"),)


def _pair(values, what: str) -> tuple[float, float]:
    try:
        first, second = values
    except (TypeError, ValueError):
        raise InvalidProblemError(f"{what} must be two positive numbers, got {values!r}") from None
    return positive(first, what), positive(second, what)


@dataclass(frozen=True, eq=False)
class Prescribed(Constraint):
    """A joint whose angle or displacement is prescribed, as by an ideal motor.

    The multiplier of the constraint is minus the driving torque or force.

    Parameters
    ----------
    name : str
        Name of the drive.
    joint : Joint or str
        The joint; ``"A.angle"`` or ``"A.displacement"`` if it has several coordinates.
    function : callable or float
        ``function(t)``, the angle or displacement; a number locks the joint.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.multibody import Body, Model, Prescribed, Revolute, ground
    >>> rod = Body.rod("rod", length=1.0, mass=3.0)
    >>> motor = Prescribed("motor", "pivot", lambda t: 2.0 * t**2)
    >>> machine = Model(Revolute("pivot", ground, rod.start), motor, planar=True)
    >>> print(machine.system().at(0.0, [0.0], [0.0]).multipliers)  # moment of inertia 1, acceleration 4
    [-4.]
    """

    name: str
    joint: Any
    function: Callable[[Any], Any] | float

    def __post_init__(self):
        checked_name(self.name, "constraint")
        if not callable(self.function):
            object.__setattr__(self, "function", check_finite(self.function, f"the function of drive '{self.name}'"))

    @property
    def joints(self):  # type: ignore[override]
        """The driven joint."""
        return (named_coordinate(self.joint),)

    def size(self, planar):
        return 1

    def residual(self, t, motion):
        value = self.function
        if callable(value):
            value = of_shape(value(t), (), f"the function of drive '{self.name}'")
        return (motion.coordinate(*named_coordinate(self.joint)) - value,)


@dataclass(frozen=True, eq=False)
class PrescribedMotion(Constraint):
    """A frame with prescribed motion, such as a shaking table or a hand guiding a tool.

    The multipliers of the position are minus the force on the frame, in the axes of the ground.

    Parameters
    ----------
    name : str
        Name of the drive.
    frame : Body or Frame
        The driven frame.
    position : callable, optional
        ``position(t)``, two or three coordinates in the axes of the ground.
    orientation : callable, optional
        ``orientation(t)``: an angle about z, four Euler parameters (of length 1) or a matrix, from the axes of the
        frame to those of the ground.

    Examples
    --------
    >>> from daedal.multibody import Body, Free, Model, PrescribedMotion, ground
    >>> table = Body.particle("table", mass=1.0)
    >>> shaken = PrescribedMotion("drive", table, lambda t: (0.1 * t, 0.0))
    >>> model = Model(Free("free", ground, table), shaken, planar=True)
    >>> print(model.report().degrees_of_freedom)
    1
    """

    name: str
    frame: Any
    position: Callable[[Any], Any] | None = None
    orientation: Callable[[Any], Any] | None = None

    def __post_init__(self):
        checked_name(self.name, "constraint")
        object.__setattr__(self, "frame", frame_of(self.frame, f"frame of drive '{self.name}'"))
        if self.position is None and self.orientation is None:
            raise InvalidProblemError(f"drive '{self.name}' needs position, orientation or both")
        for what in ("position", "orientation"):
            given = getattr(self, what)
            if given is not None and not callable(given):
                raise InvalidProblemError(f"{what} of drive '{self.name}' must be a function of time, got {given!r}")
        set_checked(self, frames=(self.frame,))

    def size(self, planar):
        places = 0 if self.position is None else 2 if planar else 3
        return places + (0 if self.orientation is None else 1 if planar else 3)

    def residual(self, t, motion):
        """Deviation from the given position, and products of axes that should be orthogonal."""
        values = []
        if self.position is not None:
            given, here = self.position(t), motion.position(self.frame)
            if len(np.shape(given)) != 1 or len(given) not in (2, 3):
                raise InvalidProblemError(
                    f"position of drive '{self.name}' returned {given!r}; expected two or three coordinates"
                )
            count = 2 if motion.planar else 3
            values += [here[k] - (given[k] if k < len(given) else 0.0) for k in range(count)]
        if self.orientation is not None:
            target, axes = self._target(t), motion.rotation(self.frame)
            for k, l in ((0, 1),) if motion.planar else ((0, 1), (0, 2), (1, 2)):
                values.append(sum(target[i, k] * axes[i, l] for i in range(3)))
        return values

    def _target(self, t):
        assert self.orientation is not None
        given = self.orientation(t)
        shape = np.shape(given)
        if shape == ():
            return about_z(given)
        if shape == (4,):
            return of_parameters(np.array(given))
        return np.array(of_shape(given, (3, 3), f"orientation of drive '{self.name}'"))


def drives_in_words(constraints: Iterable[Constraint]) -> str:
    """Description of the drives among the constraints, with the driven joints; empty if there are none."""
    found = [f"'{one.name}' (joint '{_label(one.joint)}')" for one in constraints if isinstance(one, Prescribed)]
    found += [
        f"'{one.name}' (body '{one.frame.body.name}')" for one in constraints if isinstance(one, PrescribedMotion)
    ]
    return listing(found) if found else ""


def _label(joint: Any) -> str:
    return getattr(joint, "name", joint)
