"""Rods, points on curves and surfaces, and user-defined constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Frame, checked_name, ground, of_shape, positive
from daedal.multibody.constraint import Constraint, named_coordinate
from daedal.multibody.force import frame_of
from daedal.problems.checks import check_finite, check_size, set_checked


@dataclass(frozen=True, eq=False)
class Distance(Constraint):
    r"""Two points at a fixed distance: a massless rod with a ball joint at each end.

    The condition is :math:`(d^T d / l - l) / 2 = 0`, whose gradient is the unit vector along the rod, so that the
    multiplier is the force in the rod, positive in tension.

    Parameters
    ----------
    name : str
        Name of the rod.
    a, b : Body or Frame
        Ends of the rod.
    length : float or callable
        Length of the rod; a function of time for an actuated rod, such as a hydraulic cylinder.

    Examples
    --------
    >>> from daedal.multibody import Body, Distance, Free, Model, ground
    >>> bob = Body.particle("bob", mass=1.0)
    >>> model = Model(Free("free", ground, bob), Distance("string", ground, bob, length=2.0), planar=True)
    >>> print(model.report().degrees_of_freedom)
    2
    """

    name: str
    a: Any
    b: Any
    length: float | Callable[[Any], Any]

    def __post_init__(self):
        checked_name(self.name, "constraint")
        for side in ("a", "b"):
            object.__setattr__(self, side, frame_of(getattr(self, side), f"{side} of rod '{self.name}'"))
        if not callable(self.length):
            object.__setattr__(self, "length", positive(self.length, f"the length of rod '{self.name}'"))
        set_checked(self, frames=(self.a, self.b))

    def size(self, planar):
        return 1

    def residual(self, t, motion):
        d = motion.position(self.b) - motion.position(self.a)
        length = self.length
        if callable(length):
            length = of_shape(length(t), (), f"the length of rod '{self.name}'")
        return (0.5 * ((d[0] ** 2 + d[1] ** 2 + d[2] ** 2) / length - length),)


def _local(motion, frame: Frame, carrier: Frame):
    """Vector from the origin of `carrier` to that of `frame`, in the axes of `carrier`."""
    d = motion.position(frame) - motion.position(carrier)
    axes = motion.rotation(carrier)
    return axes.T @ d


class _Guided(Constraint):
    """A point of one body guided by another body."""

    frame: Any
    carrier: Any

    def _check(self, function, what: str):
        checked_name(self.name, "constraint")
        if not callable(function):
            raise InvalidProblemError(f"{what} of constraint '{self.name}' must be a function, got {function!r}")
        for side in ("frame", "carrier"):
            object.__setattr__(self, side, frame_of(getattr(self, side), f"{side} of constraint '{self.name}'"))
        object.__setattr__(self, "frames", (self.frame, self.carrier))


@dataclass(frozen=True, eq=False)
class PointOnCurve(_Guided):
    """A point that slides along a curve: a bead on a wire, a roller in a groove.

    The curve parameter is an additional massless coordinate, named "s of" followed by the name of the constraint.

    Parameters
    ----------
    name : str
        Name of the constraint.
    frame : Body or Frame
        Frame whose origin slides along the curve.
    curve : callable
        ``curve(s)``, two or three coordinates in the axes of `carrier`.
    carrier : Body or Frame
        The body that carries the curve; by default the ground.
    start : float
        Initial guess of the curve parameter for the starting position.

    Examples
    --------
    A bead on a parabola:

    >>> from daedal.multibody import Body, Cartesian, Model, PointOnCurve, ground
    >>> bead = Body.particle("bead", mass=1.0)
    >>> wire = PointOnCurve("wire", bead, lambda s: (s, s**2))
    >>> model = Model(Cartesian("motion", ground, bead), wire, gravity=(0.0, -9.81), planar=True)
    >>> model.system().names
    ('motion.x', 'motion.y', 's of wire')
    """

    name: str
    frame: Any
    curve: Callable[[Any], Any]
    carrier: Any = ground
    start: float = 0.0

    def __post_init__(self):
        self._check(self.curve, "curve")
        object.__setattr__(self, "start", check_finite(self.start, f"the start of constraint '{self.name}'"))

    @property
    def parameters(self):  # type: ignore[override]
        """The curve parameter, with its initial guess."""
        return {f"s of {self.name}": self.start}

    def size(self, planar):
        return 2 if planar else 3

    def residual(self, t, motion):
        place = self.curve(motion.parameter(f"s of {self.name}"))
        if np.shape(place) not in ((2,), (3,)):
            raise InvalidProblemError(
                f"curve of constraint '{self.name}' returned {place!r}; expected two or three coordinates"
            )
        here = _local(motion, self.frame, self.carrier)
        count = 2 if motion.planar else 3
        return [here[k] - (place[k] if k < len(place) else 0.0) for k in range(count)]


@dataclass(frozen=True, eq=False)
class PointOnSurface(_Guided):
    """A point that stays on a surface given by an equation; in the plane, on a curve.

    Two such constraints keep a point on the intersection of two surfaces.

    Parameters
    ----------
    name : str
        Name of the constraint.
    frame : Body or Frame
        Frame whose origin stays on the surface.
    function : callable
        ``function(x, y, z)`` in the axes of `carrier`, zero on the surface, where its gradient must not vanish.
    carrier : Body or Frame
        The body that carries the surface; by default the ground.

    Examples
    --------
    >>> from daedal.multibody import Body, Free, Model, PointOnSurface, ground
    >>> bead = Body.particle("bead", mass=1.0)
    >>> wire = PointOnSurface("wire", bead, lambda x, y, z: y - x**2)
    >>> model = Model(Free("free", ground, bead), wire, gravity=(0.0, -9.81), planar=True)
    >>> print(model.report().degrees_of_freedom)
    2
    """

    name: str
    frame: Any
    function: Callable[[Any, Any, Any], Any]
    carrier: Any = ground

    def __post_init__(self):
        self._check(self.function, "function")

    def size(self, planar):
        return 1

    def residual(self, t, motion):
        x, y, z = _local(motion, self.frame, self.carrier)
        return (of_shape(self.function(x, y, z), (), f"function of constraint '{self.name}'"),)


@dataclass(frozen=True, eq=False)
class UserConstraint(Constraint):
    """User-defined conditions.

    Parameters
    ----------
    name : str
        Name of the constraint.
    function : callable
        ``function(t, motion)``, `n` values that must be zero. `motion` provides ``position(frame)``,
        ``rotation(frame)`` and ``coordinate(joint)``; on velocities also ``velocity(frame)`` and
        ``angular_velocity(frame)``.
    n : int
        Number of conditions.
    on : {"position", "velocity"}
        Whether the conditions are on positions, or nonholonomic conditions on velocities, which must be linear.
    frames : sequence of Body or Frame
        Frames used by the function on bodies that no other part of the model mentions.
    joints : sequence of Joint or str
        Joints whose coordinates the function uses, so that their angles count turns.

    Examples
    --------
    A skate: the centre of the body moves only along its x axis.

    >>> from daedal.multibody import Body, Free, Model, UserConstraint, ground
    >>> skate = Body("skate", mass=1.0, inertia=0.1)
    >>> blade = skate.at()
    >>> edge = UserConstraint(
    ...     "edge", lambda t, motion: [motion.rotation(blade)[:, 1] @ motion.velocity(blade)], 1, on="velocity"
    ... )
    >>> model = Model(Free("motion", ground, skate), edge, planar=True)
    >>> model.system().n_velocity_constraints
    1
    """

    name: str
    function: Callable[[Any, Any], Any]
    n: int
    on: str = "position"
    frames: Sequence[Any] = ()
    joints: Sequence[Any] = ()

    def __post_init__(self):
        checked_name(self.name, "constraint")
        if not callable(self.function):
            raise InvalidProblemError(f"function of constraint '{self.name}' must be a function, got {self.function!r}")
        if self.on not in ("position", "velocity"):
            raise InvalidProblemError(f"on={self.on!r} of constraint '{self.name}' must be 'position' or 'velocity'")
        frames: tuple[Frame, ...] = tuple(frame_of(one, f"frames of constraint '{self.name}'") for one in self.frames)
        object.__setattr__(self, "n", check_size(self.n, f"n of constraint '{self.name}'"))
        object.__setattr__(self, "frames", frames)
        object.__setattr__(self, "joints", tuple(named_coordinate(joint) for joint in self.joints))

    def size(self, planar):
        return self.n if self.on == "position" else 0

    def velocity_size(self, planar):
        return self.n if self.on == "velocity" else 0

    def residual(self, t, motion):
        return of_shape(self.function(t, motion), (self.n,), f"function of constraint '{self.name}'")

    velocity_residual = residual
