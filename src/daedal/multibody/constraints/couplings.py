"""Gears, belts, racks: linear relations between the coordinates of joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.multibody.body import checked_name
from daedal.multibody.constraints.constraint import Constraint, named_coordinate
from daedal.multibody.rotation import positive
from daedal.problems.checks import check_finite


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
