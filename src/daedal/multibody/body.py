"""Rigid bodies, the ground, and frames on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody import inertia as moments_of
from daedal.multibody.arguments import positive
from daedal.multibody.inertia import Inertia
from daedal.multibody.rotation import direction, frame_along, matrix_of, point
from daedal.viz.shapes3d import Box, Cylinder, Disc, Rod, Sphere

GROUND = "ground"


def checked_name(name: Any, what: str) -> str:
    """A name that is not empty."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidProblemError(f"the name of a {what} must be a string that is not empty, got {name!r}")
    return name


@dataclass(frozen=True, eq=False)
class Frame:
    """A place on a body with axes: a joint, a force or a trace holds on to it.

    Parameters
    ----------
    body : Body
        Which body, or :data:`ground`.
    position : numpy.ndarray
        In the frame of the body.
    rotation : numpy.ndarray
        From the axes of this frame to those of the body.
    """

    body: Body
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))

    def turned(self, rotation) -> Frame:
        """The same place with other axes: `rotation` takes the new ones to those of this frame."""
        return Frame(self.body, self.position, self.rotation @ rotation)


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body.

    Parameters
    ----------
    name : str
        A name that no other body of the model has.
    mass : float
        The mass.
    inertia : number, 3 numbers or 3 by 3 matrix
        Moments of inertia about the centre of mass in the axes of the body; one number is the moment about z, which is
        all that counts in the plane.
    center : point, optional
        The centre of mass in the frame of the body; by default its origin.
    position, orientation : optional
        Where the body is drawn: the position of its frame and the rotation from its axes to those of the ground (an
        angle about z, Euler parameters, a matrix or a ``scipy`` rotation). Joints that are given by points of the
        ground (``at=``) refer to this; otherwise it is where the assembly starts.
    shapes : sequence, optional
        What is drawn, in the frame of the body: :class:`daedal.viz.Box`, :class:`daedal.viz.Cylinder`, ...; the
        constructors :meth:`rod`, :meth:`box`, :meth:`cylinder`, :meth:`sphere` know theirs. Of a body without shapes
        the lines between its joints are drawn.

    Examples
    --------
    >>> from daedal.multibody import Body
    >>> rod = Body.rod("rod", length=2.0, mass=3.0)
    >>> print(rod.inertia.moments[2, 2], rod.end.position)
    1.0 [1. 0. 0.]
    """

    name: str
    mass: float = 0.0
    inertia: Any = 0.0
    center: Any = (0.0, 0.0, 0.0)
    position: Any = (0.0, 0.0, 0.0)
    orientation: Any = None
    shapes: tuple[Any, ...] = ()

    def __post_init__(self):
        name = checked_name(self.name, "body")
        if not isinstance(self.inertia, Inertia):
            object.__setattr__(self, "inertia", Inertia.checked(self.mass, self.inertia, self.center, name))
        object.__setattr__(self, "mass", self.inertia.mass)
        object.__setattr__(self, "center", self.inertia.center)
        object.__setattr__(self, "position", point(self.position, f"the position of body '{name}'"))
        object.__setattr__(self, "orientation", matrix_of(self.orientation, f"the orientation of body '{name}'"))
        object.__setattr__(self, "shapes", tuple(self.shapes))

    def at(self, *position, axis=None, rotation=None) -> Frame:
        """A frame at a point of the body: ``body.at(0.5, 0.0)`` or ``body.at(0.5, 0, 0, axis="x")``.

        `axis` is the direction of its z axis in the axes of the body, `rotation` the matrix from its axes to those of
        the body.
        """
        values = position[0] if len(position) == 1 else position
        where = point(values if len(position) else (0.0, 0.0, 0.0), f"the point of body '{self.name}'")
        if axis is not None and rotation is not None:
            raise InvalidProblemError(f"a frame on body '{self.name}' has axis or rotation, not both")
        turn = matrix_of(rotation, "rotation") if axis is None else frame_along(direction(axis))
        return Frame(self, where, turn)

    @property
    def start(self) -> Frame:
        """Where a rod begins, at the negative end of its x axis."""
        return self._end(-1.0)

    @property
    def end(self) -> Frame:
        """Where a rod ends, at the positive end of its x axis."""
        return self._end(1.0)

    def _end(self, sign: float) -> Frame:
        length = getattr(self, "_length", None)
        if length is None:
            raise InvalidProblemError(f"body '{self.name}' is not a rod and has no start and end; use at(x, y, z)")
        return self.at(0.5 * sign * length, 0.0, 0.0)

    @property
    def is_ground(self) -> bool:
        """Whether this is what everything stands on."""
        return self.name == GROUND

    @classmethod
    def rod(cls, name: str, *, length: float, mass: float | None = None, density=None, radius=None, **others) -> Body:
        """A straight rod along its x axis, its frame in the middle; thin, or round with a radius."""
        length = _positive(length, "length", name)
        width = _positive(radius, "radius", name) if radius is not None else None
        if width is None and density is not None:
            raise InvalidProblemError(
                f"body '{name}' has a density but no radius, so that its mass is not known. Remedy: give its radius, "
                "or its mass (the mass per length times the length)"
            )
        volume = math.pi * width**2 * length if width is not None else length
        mass = _mass(mass, density, volume, name)
        if width is None:
            moments = moments_of.thin_rod(mass, length)
        else:
            across = moments_of.cylinder(mass, width, length)
            moments = np.diag([across[2, 2], across[0, 0], across[1, 1]])
        half = 0.5 * length
        others.setdefault("shapes", (Rod((-half, 0.0, 0.0), (half, 0.0, 0.0), width),))
        body = cls(name, mass, moments, **others)
        object.__setattr__(body, "_length", length)
        return body

    @classmethod
    def box(cls, name: str, *, size, mass: float | None = None, density=None, **others) -> Body:
        """A box with edges along its axes, its frame in the middle."""
        edges = [_positive(edge, "size", name) for edge in np.atleast_1d(size)]
        if len(edges) != 3:
            raise InvalidProblemError(f"the size of box '{name}' must be three numbers, got {size!r}")
        mass = _mass(mass, density, math.prod(edges), name)
        others.setdefault("shapes", (Box(edges),))
        return cls(name, mass, moments_of.box(mass, edges), **others)

    @classmethod
    def cylinder(cls, name: str, *, radius, length, mass: float | None = None, density=None, **others) -> Body:
        """A solid cylinder along its z axis (a wheel, a disc, a drum), its frame in the middle."""
        radius, length = _positive(radius, "radius", name), _positive(length, "length", name)
        mass = _mass(mass, density, math.pi * radius**2 * length, name)
        others.setdefault("shapes", (Disc(radius, length) if radius > length else Cylinder(radius, length),))
        return cls(name, mass, moments_of.cylinder(mass, radius, length), **others)

    @classmethod
    def sphere(cls, name: str, *, radius, mass: float | None = None, density=None, **others) -> Body:
        """A solid sphere, its frame in the middle."""
        radius = _positive(radius, "radius", name)
        mass = _mass(mass, density, 4.0 / 3.0 * math.pi * radius**3, name)
        others.setdefault("shapes", (Sphere(radius),))
        return cls(name, mass, moments_of.sphere(mass, radius), **others)

    @classmethod
    def particle(cls, name: str, *, mass: float, **others) -> Body:
        """A mass in one point."""
        return cls(name, mass, 0.0, **others)

    def __repr__(self):
        return f"Body({self.name!r}, mass={self.mass:.6g})"


ground = Body(GROUND)
"""What stands still: its frame is the one that positions and directions refer to."""


def _positive(value, argument: str, name: str) -> float:
    return positive(value, f"the {argument} of body '{name}'")


def _mass(mass, density, volume: float, name: str) -> float:
    if (mass is None) == (density is None):
        raise InvalidProblemError(f"body '{name}' needs its mass or its density, one of them")
    return _positive(mass, "mass", name) if mass is not None else _positive(density, "density", name) * volume
