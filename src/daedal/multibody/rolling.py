r"""Rolling without slip.

A disc with the centre c, the unit axis e and the radius R touches a plane with the normal n at :math:`c + R u`, where
:math:`u = -e \times (n \times e) / s` points down the disc and :math:`s = |n \times e|`. The contact condition is

.. math:: n \cdot (c - p) - R s = 0,

and for rolling the contact point of the disc has no velocity along the plane: two nonholonomic conditions. In the plane
only one of them remains, which can be integrated: distance and angle are proportional.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.multibody.body import Frame, checked_name, direction, frame_along, ground, positive
from daedal.multibody.constraint import Constraint, frame_along_axis
from daedal.multibody.kinematics import cross
from daedal.problems.checks import check_finite


def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


class OnPlane(Constraint):
    """A round body on a plane; the frame of the plane has its normal along z."""

    wheel: Frame
    plane: Any
    radius: float

    @property
    def frames(self) -> tuple[Frame, ...]:  # type: ignore[override]
        """The wheel and the plane."""
        return self.wheel, self.plane

    def _slip(self, motion, arm):
        """Velocity of the point of the wheel at `arm` from its centre, relative to the plane."""
        centre, base = motion.position(self.wheel), motion.position(self.plane)
        of_wheel = motion.velocity(self.wheel) + cross(motion.angular_velocity(self.wheel), arm)
        of_plane = motion.velocity(self.plane) + cross(motion.angular_velocity(self.plane), centre + arm - base)
        return of_wheel - of_plane

    def _height(self, motion):
        d = motion.position(self.wheel) - motion.position(self.plane)
        return _dot(motion.rotation(self.plane)[:, 2], d)


@dataclass(frozen=True, eq=False)
class Rolling(OnPlane):
    """A thin disc, a wheel or a coin that rolls on a plane without slip, upright or leaning.

    Parameters
    ----------
    name : str
        Name of the constraint.
    wheel : Body or Frame
        Frame with its origin at the centre of the wheel.
    plane : Body or Frame
        Frame with its origin in the plane; by default that of the ground.
    radius : float
        The radius of the wheel.
    axis : direction
        The axis of the wheel in its frame; by default z.
    normal : direction, optional
        Normal of the plane in its frame, towards the wheel; by default z, in planar models y.
    offset : float, optional
        Position of the wheel along the plane when its angle is zero, for planar models, where distance and angle are
        proportional. By default, consistent with the drawn bodies (their `position` and `orientation`).

    Examples
    --------
    A cylinder rolls down a slope of 30 degrees with two thirds of the acceleration of a sliding one:

    >>> import numpy as np
    >>> from daedal.multibody import Body, Free, Model, Rolling, ground
    >>> drum = Body.cylinder("drum", radius=0.5, length=1.0, mass=2.0)
    >>> model = Model(
    ...     Free("motion", ground, drum),
    ...     Rolling("contact", drum, radius=0.5),
    ...     gravity=9.81 * np.array([np.sin(np.pi / 6), -np.cos(np.pi / 6)]),
    ...     planar=True,
    ... )
    >>> acceleration = model.system().at(0.0, [0.0, 0.5, 0.0]).acceleration
    >>> print(acceleration[0].round(6), round(2 / 3 * 9.81 * 0.5, 6))
    3.27 3.27
    """

    name: str
    wheel: Any
    plane: Any = ground
    radius: float = 0.0
    axis: Any = "z"
    normal: Any = None
    offset: float | None = None

    def __post_init__(self):
        checked_name(self.name, "constraint")
        who = f"constraint '{self.name}'"
        object.__setattr__(self, "radius", positive(self.radius, f"the radius of {who}"))
        axis = direction(self.axis, f"the axis of {who}")
        object.__setattr__(self, "wheel", frame_along_axis(self.wheel, frame_along(axis), f"wheel of {who}"))
        object.__setattr__(self, "plane", frame_along_axis(self.plane, np.eye(3), f"plane of {who}"))
        if self.offset is not None:
            object.__setattr__(self, "offset", check_finite(self.offset, f"the offset of {who}"))

        if self.normal is not None:
            object.__setattr__(self, "normal", direction(self.normal, f"the normal of {who}"))

    def stated(self, planar):
        """A disc in space, or a wheel in a planar model."""
        normal = self.normal if self.normal is not None else direction("y" if planar else "z")
        plane = self.plane.turned(frame_along(normal))
        return (_InPlane if planar else _Disc)(self.name, self.wheel, plane, self.radius, self.offset)


@dataclass(frozen=True, eq=False)
class _Disc(OnPlane):
    """A disc that rolls on a plane in space."""

    name: str
    wheel: Frame
    plane: Frame
    radius: float
    offset: float | None

    def size(self, planar):
        return 1

    def velocity_size(self, planar):
        return 2

    def residual(self, t, motion):
        """Height of the centre minus the height of a disc with this inclination."""
        across = cross(motion.rotation(self.plane)[:, 2], motion.rotation(self.wheel)[:, 2])
        return (self._height(motion) - self.radius * np.sqrt(_dot(across, across)),)

    def velocity_residual(self, t, motion):
        """Velocity of the contact point: along the rolling direction and across.

        With these components, the conditions of two wheels on one axle are exactly redundant for any direction of the
        axle.
        """
        n, e = motion.rotation(self.plane)[:, 2], motion.rotation(self.wheel)[:, 2]
        across = cross(n, e)
        s = np.sqrt(_dot(across, across))
        if isinstance(s, float) and s == 0.0:  # only for numbers; the traced function has no branch
            raise Unevaluable(
                f"the wheel of constraint '{self.name}' lies flat, so its contact point is undefined. Remedy: "
                "start with an upright or leaning wheel, by the orientation of the body or the angles of its "
                "joints"
            )
        slip = self._slip(motion, -self.radius / s * cross(e, across))
        return [_dot(across, slip) / s, _dot(cross(n, across), slip) / s]


@dataclass(frozen=True, eq=False)
class _InPlane(OnPlane):
    """A wheel that rolls along a line in the plane."""

    name: str
    wheel: Frame
    plane: Frame
    radius: float
    offset: float | None

    def __post_init__(self):
        if abs(self.wheel.rotation[2, 2]) < 1.0 - 1e-9 or abs(self.plane.rotation[2, 2]) > 1e-9:
            raise InvalidProblemError(
                f"in a planar model, the axis of the wheel of constraint '{self.name}' must be z, and the "
                f"normal of the surface it rolls on must be in the xy plane"
            )
        if self.offset is None:
            wheel, plane = (frame.body.orientation for frame in self.frames)
            d = np.subtract(*(frame.body.position + frame.body.orientation @ frame.position for frame in self.frames))
            turn = plane.T @ wheel
            way = float(-(plane @ self.plane.rotation)[:, 0] @ d)
            object.__setattr__(self, "offset", way + self.radius * float(np.arctan2(turn[1, 0], turn[0, 0])))

    @property
    def turns(self):  # type: ignore[override]
        """The frames of the bodies whose relative angle the constraint reads."""
        return (Frame(self.plane.body), Frame(self.wheel.body))

    def size(self, planar):
        return 2

    def residual(self, t, motion):
        """Height minus the radius; distance minus radius times angle and offset."""
        d = motion.position(self.wheel) - motion.position(self.plane)
        way = -_dot(motion.rotation(self.plane)[:, 0], d)  # displacement along the direction normal x z
        return (self._height(motion) - self.radius, way + self.radius * motion.turn(self.name) - self.offset)


@dataclass(frozen=True, eq=False)
class RollingSphere(OnPlane):
    """A ball that rolls on a plane without slip; it may spin about the normal.

    Parameters
    ----------
    name : str
        Name of the constraint.
    sphere : Body or Frame
        Frame with its origin at the centre of the ball.
    plane : Body or Frame
        Frame with its origin in the plane; by default that of the ground.
    radius : float
        The radius of the ball.
    normal : direction
        Normal of the plane in its frame, towards the ball; by default z.

    Examples
    --------
    >>> from daedal.multibody import Body, Free, Model, RollingSphere, ground
    >>> ball = Body.sphere("ball", radius=0.1, mass=1.0)
    >>> model = Model(Free("free", ground, ball), RollingSphere("table", ball, radius=0.1), gravity=(0.0, 0.0, -9.81))
    >>> report = model.report()
    >>> print(report.degrees_of_freedom, report.velocity_degrees_of_freedom)
    5 3
    """

    name: str
    sphere: Any
    plane: Any = ground
    radius: float = 0.0
    normal: Any = "z"

    def __post_init__(self):
        checked_name(self.name, "constraint")
        who = f"constraint '{self.name}'"
        object.__setattr__(self, "radius", positive(self.radius, f"the radius of {who}"))
        object.__setattr__(self, "sphere", frame_along_axis(self.sphere, np.eye(3), f"sphere of {who}"))
        along = frame_along(direction(self.normal, f"the normal of {who}"))
        object.__setattr__(self, "plane", frame_along_axis(self.plane, along, f"plane of {who}"))

    @property
    def wheel(self) -> Frame:  # type: ignore[override]
        """The rolling body."""
        return self.sphere

    def stated(self, planar):
        """In the plane a ball is equivalent to a wheel."""
        if not planar:
            return self
        return _InPlane(self.name, Frame(self.sphere.body, self.sphere.position), self.plane, self.radius, None)

    def size(self, planar):
        return 1

    def velocity_size(self, planar):
        return 2

    def residual(self, t, motion):
        """Height of the centre minus the radius."""
        return (self._height(motion) - self.radius,)

    def velocity_residual(self, t, motion):
        """Velocity of the contact point along the axes of the plane."""
        axes = motion.rotation(self.plane)
        slip = self._slip(motion, -self.radius * axes[:, 2])
        return [_dot(axes[:, 0], slip), _dot(axes[:, 1], slip)]
