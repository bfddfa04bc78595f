r"""Rigid bodies with their inertia, common solids, the ground, frames on bodies, and rotations.

Euler parameters :math:`p = (p_0, p_1, p_2, p_3)` with :math:`|p| = 1` describe the rotation by the angle :math:`2
\arccos p_0` about the axis along :math:`(p_1, p_2, p_3)`. The functions for kernels are in
:mod:`daedal.multibody.vectors`. Numbers given to parts of a machine are checked; messages name the part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.vectors import rows_of_parameters
from daedal.problems.checks import check_finite, check_positive, check_real
from daedal.viz.shapes3d import Box, Cylinder, Disc, Rod, Sphere

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
"""Axes by name; with a minus sign, the opposite direction."""


def about_z(angle):
    """The matrix of a rotation about the z axis."""
    matrix = np.zeros((3, 3))
    c, s = math.cos(angle), math.sin(angle)
    matrix[0, 0], matrix[0, 1] = c, -s
    matrix[1, 0], matrix[1, 1] = s, c
    matrix[2, 2] = 1.0
    return matrix


def about_y(angle):
    """The matrix of a rotation about the y axis."""
    matrix = np.zeros((3, 3))
    c, s = math.cos(angle), math.sin(angle)
    matrix[0, 0], matrix[0, 2] = c, s
    matrix[2, 0], matrix[2, 2] = -s, c
    matrix[1, 1] = 1.0
    return matrix


def of_parameters(p):
    """The rotation matrix of Euler parameters."""
    matrix = np.zeros((3, 3))
    rows = rows_of_parameters(p[0], p[1], p[2], p[3])
    for k in range(3):
        matrix[0, k], matrix[1, k], matrix[2, k] = rows[0][k], rows[1][k], rows[2][k]
    return matrix


def parameters_of(matrix) -> np.ndarray:
    """Euler parameters of a rotation matrix, with nonnegative first component."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(np.asarray(matrix)).as_quat()
    p = np.array([w, x, y, z])
    return -p if w < 0 else p


def direction(axis, argument: str = "axis") -> np.ndarray:
    """A unit vector from three numbers (two in the plane), or from a name such as "x" or "-z"."""
    if isinstance(axis, str):
        sign, name = (-1.0, axis[1:]) if axis.startswith("-") else (1.0, axis)
        if name not in AXES:
            raise InvalidProblemError(
                f"{argument}={axis!r} is not an axis; use 'x', 'y', 'z', '-x', '-y', '-z' or a vector"
            )
        return sign * np.array(AXES[name])
    vector = point(axis, argument)
    length = float(np.linalg.norm(vector))
    if length == 0.0:
        raise InvalidProblemError(f"{argument} has length zero; give a nonzero vector")
    return vector / length


def point(values, argument: str) -> np.ndarray:
    """Three coordinates; if two are given, the third is zero."""
    vector = check_real(values, argument, "be two or three numbers")
    if vector.shape not in ((2,), (3,)) or not np.all(np.isfinite(vector)):
        raise InvalidProblemError(f"{argument} must be two or three finite numbers, got {values!r}")
    return np.concatenate([vector, np.zeros(3 - vector.size)])


def matrix_of(rotation, argument: str = "orientation") -> np.ndarray:
    """A rotation matrix from a matrix, an angle about z, Euler parameters or a ``scipy`` rotation."""
    if rotation is None:
        return np.eye(3)
    if hasattr(rotation, "as_matrix"):
        return np.asarray(rotation.as_matrix(), dtype=float)
    values = check_real(rotation, argument, "be an angle about z, Euler parameters or a rotation matrix")
    if not np.all(np.isfinite(values)):
        raise InvalidProblemError(f"{argument} holds values that are not finite")
    if values.ndim == 0:
        return np.asarray(about_z(float(values)))
    if values.shape == (4,):
        length = float(np.linalg.norm(values))
        if not length > 0.0:
            raise InvalidProblemError(f"{argument} has Euler parameters of length zero")
        return np.asarray(of_parameters(values / length))
    if values.shape != (3, 3):
        raise InvalidProblemError(
            f"{argument} has shape {values.shape}; expected an angle about z, four Euler parameters or a 3 by 3 matrix"
        )
    if not np.allclose(values @ values.T, np.eye(3), atol=1e-8) or np.linalg.det(values) < 0:
        raise InvalidProblemError(f"{argument} is not a rotation: its rows must be orthonormal and right-handed")
    return values


def frame_along(axis) -> np.ndarray:
    """A rotation that maps the z axis to the unit vector `axis`; for an axis in the xy plane, y becomes the normal."""
    z = np.asarray(axis, dtype=float)
    up = np.array([0.0, 0.0, 1.0]) - z[2] * z
    length = float(np.linalg.norm(up))
    if length < 1e-12:
        return np.diag([1.0, np.sign(z[2]), np.sign(z[2])])
    y = up / length
    return np.column_stack([np.cross(y, z), y, z])


def positive(value: Any, what: str) -> float:
    """Check that a value is a positive, finite number; returns it as a float."""
    return check_positive(check_finite(value, what), what)


def of_shape(values: Any, shape: tuple[int, ...], what: str):
    """Check the shape of the result of a user function, and return the result."""
    found = np.shape(values)
    if found != shape or values is None or isinstance(values, str):
        expected = "a number" if shape == () else f"numbers of shape {shape}"
        raise InvalidProblemError(f"{what} returned {values!r}; expected {expected}")
    return values


GROUND = "ground"


def checked_name(name: Any, what: str) -> str:
    """Check that a name is a nonempty string."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidProblemError(f"the name of a {what} must be a nonempty string, got {name!r}")
    return name


@dataclass(frozen=True, eq=False)
class Frame:
    """A point on a body with axes, to which joints, forces and traces are attached.

    Parameters
    ----------
    body : Body
        The body, or :data:`ground`.
    position : numpy.ndarray
        Position in the frame of the body.
    rotation : numpy.ndarray
        Matrix from the axes of this frame to those of the body.

    Examples
    --------
    >>> from daedal.multibody import Body
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> print(rod.end.body.name, rod.end.position, rod.at(0.5, 0.0).position)
    rod [1. 0. 0.] [0.5 0.  0. ]
    """

    body: Body
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))

    def turned(self, rotation) -> Frame:
        """A frame at the same point with other axes; `rotation` maps the new axes to those of this frame."""
        return Frame(self.body, self.position, self.rotation @ rotation)


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body.

    Parameters
    ----------
    name : str
        A unique name.
    mass : float
        The mass.
    inertia : number, 3 numbers or 3 by 3 matrix
        Moments of inertia about the centre of mass in the axes of the body; one number is the moment about z,
        sufficient in planar models.
    center : point, optional
        The centre of mass in the frame of the body; by default its origin.
    position, orientation : optional
        The drawn position: the origin of the body frame and the rotation from its axes to those of the ground (an angle
        about z, Euler parameters, a matrix or a ``scipy`` rotation). Joints given by points of the ground (``at=``)
        refer to this position; otherwise the assembly starts from it.
    shapes : sequence, optional
        Shapes for drawings, in the frame of the body: :class:`daedal.viz.Box`, :class:`daedal.viz.Cylinder`, ...; the
        constructors :meth:`rod`, :meth:`box`, :meth:`cylinder`, :meth:`sphere` provide them. A body without shapes is
        drawn as lines between its joints.

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

        `axis` is the direction of the frame's z axis in the axes of the body, `rotation` the matrix from the axes of
        the frame to those of the body.
        """
        values = position[0] if len(position) == 1 else position
        where = point(values if len(position) else (0.0, 0.0, 0.0), f"the point of body '{self.name}'")
        if axis is not None and rotation is not None:
            raise InvalidProblemError(f"a frame on body '{self.name}' accepts either axis or rotation, not both")
        turn = matrix_of(rotation, "rotation") if axis is None else frame_along(direction(axis))
        return Frame(self, where, turn)

    @property
    def start(self) -> Frame:
        """The start of a rod, at the negative end of its x axis."""
        return self._end(-1.0)

    @property
    def end(self) -> Frame:
        """The end of a rod, at the positive end of its x axis."""
        return self._end(1.0)

    def _end(self, sign: float) -> Frame:
        length = getattr(self, "_length", None)
        if length is None:
            raise InvalidProblemError(f"body '{self.name}' is not a rod and has no start and end; use at(x, y, z)")
        return self.at(0.5 * sign * length, 0.0, 0.0)

    @property
    def is_ground(self) -> bool:
        """Whether this body is the ground."""
        return self.name == GROUND

    @classmethod
    def rod(cls, name: str, *, length: float, mass: float | None = None, density=None, radius=None, **others) -> Body:
        """A straight rod along the x axis with its frame at the midpoint; thin, or round if a radius is given."""
        length = _positive(length, "length", name)
        width = _positive(radius, "radius", name) if radius is not None else None
        if width is None and density is not None:
            raise InvalidProblemError(
                f"body '{name}' has a density but no radius, so its mass is unknown. Remedy: give its radius, or "
                "its mass (the mass per length times the length)"
            )
        volume = math.pi * width**2 * length if width is not None else length
        mass = _mass(mass, density, volume, name)
        if width is None:
            moments = moments_of_thin_rod(mass, length)
        else:
            across = moments_of_cylinder(mass, width, length)
            moments = np.diag([across[2, 2], across[0, 0], across[1, 1]])
        half = 0.5 * length
        others.setdefault("shapes", (Rod((-half, 0.0, 0.0), (half, 0.0, 0.0), width),))
        body = cls(name, mass, moments, **others)
        object.__setattr__(body, "_length", length)
        return body

    @classmethod
    def box(cls, name: str, *, size, mass: float | None = None, density=None, **others) -> Body:
        """A box with edges along the axes of its frame, which is at the centre."""
        edges = [_positive(edge, "size", name) for edge in np.atleast_1d(size)]
        if len(edges) != 3:
            raise InvalidProblemError(f"the size of box '{name}' must be three numbers, got {size!r}")
        mass = _mass(mass, density, math.prod(edges), name)
        others.setdefault("shapes", (Box(edges),))
        return cls(name, mass, moments_of_box(mass, edges), **others)

    @classmethod
    def cylinder(cls, name: str, *, radius, length, mass: float | None = None, density=None, **others) -> Body:
        """A solid cylinder (a wheel, a disc, a drum) along the z axis of its frame, which is at the centre."""
        radius, length = _positive(radius, "radius", name), _positive(length, "length", name)
        mass = _mass(mass, density, math.pi * radius**2 * length, name)
        others.setdefault("shapes", (Disc(radius, length) if radius > length else Cylinder(radius, length),))
        return cls(name, mass, moments_of_cylinder(mass, radius, length), **others)

    @classmethod
    def sphere(cls, name: str, *, radius, mass: float | None = None, density=None, **others) -> Body:
        """A solid sphere with its frame at the centre."""
        radius = _positive(radius, "radius", name)
        mass = _mass(mass, density, 4.0 / 3.0 * math.pi * radius**3, name)
        others.setdefault("shapes", (Sphere(radius),))
        return cls(name, mass, moments_of_sphere(mass, radius), **others)

    @classmethod
    def particle(cls, name: str, *, mass: float, **others) -> Body:
        """A point mass."""
        return cls(name, mass, 0.0, **others)

    def __repr__(self):
        return f"Body({self.name!r}, mass={self.mass:.6g})"


def _positive(value, argument: str, name: str) -> float:
    return positive(value, f"the {argument} of body '{name}'")


def _mass(mass, density, volume: float, name: str) -> float:
    if (mass is None) == (density is None):
        raise InvalidProblemError(f"body '{name}' needs either mass or density")
    return _positive(mass, "mass", name) if mass is not None else _positive(density, "density", name) * volume


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass of a body, its centre of mass, and its moments of inertia about that centre.

    Parameters
    ----------
    mass : float
        Nonnegative.
    moments : number, 3 numbers or 3 by 3 matrix
        Moments of inertia about the centre of mass in the axes of the body: the whole matrix, its diagonal, or one
        number, the moment about z, for planar models.
    center : point
        The centre of mass in the frame of the body.
    """

    mass: float
    moments: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    center: np.ndarray = field(default_factory=lambda: np.zeros(3))

    @staticmethod
    def checked(mass, moments, center, name: str) -> Inertia:
        """Check that an inertia is physically possible; `name` is the name of the body, for messages."""
        value = check_real(mass, f"the mass of body '{name}'", "be a number")
        if value.ndim != 0 or not np.isfinite(value) or value < 0:
            raise InvalidProblemError(f"the mass of body '{name}' must be finite and not negative; got {mass!r}")
        what = f"the inertia of body '{name}'"
        given = check_real(moments, what, "be a number, three numbers or a 3 by 3 matrix")
        if given.ndim == 0:
            matrix = np.diag([0.5 * float(given), 0.5 * float(given), float(given)])
        elif given.shape == (3,):
            matrix = np.diag(given)
        elif given.shape == (3, 3):
            matrix = 0.5 * (given + given.T)
            if not np.allclose(given, given.T, rtol=1e-9, atol=1e-12 * max(1e-300, float(np.abs(given).max()))):
                raise InvalidProblemError(f"{what} is not symmetric")
        else:
            raise InvalidProblemError(f"{what} has shape {given.shape}; expected a number, three numbers or 3 by 3")
        _check_physical(matrix, what)
        return Inertia(float(value), matrix, point(center, f"the centre of body '{name}'"))

    def shifted(self, by) -> Inertia:
        """This inertia displaced by a vector."""
        return Inertia(self.mass, self.moments, self.center + by)

    def turned(self, rotation) -> Inertia:
        """This inertia rotated about the origin of the frame."""
        return Inertia(self.mass, rotation @ self.moments @ rotation.T, rotation @ self.center)

    def __add__(self, other: Inertia) -> Inertia:
        """Combine two bodies fixed to each other (parallel axis theorem)."""
        mass = self.mass + other.mass
        center = (self.mass * self.center + other.mass * other.center) / mass if mass > 0 else self.center
        moments = sum(one.moments + one.mass * about_a_distant_point(one.center - center) for one in (self, other))
        return Inertia(mass, np.asarray(moments), center)


def about_a_distant_point(distance) -> np.ndarray:
    """Contribution of a unit mass at this distance to moments of inertia (parallel axis theorem)."""
    d = np.asarray(distance, dtype=float)
    return float(d @ d) * np.eye(3) - np.outer(d, d)


def _check_physical(matrix: np.ndarray, what: str):
    if not np.all(np.isfinite(matrix)):
        raise InvalidProblemError(f"{what} holds values that are not finite")
    moments = np.linalg.eigvalsh(matrix)
    slack = 1e-9 * float(np.abs(moments).max())
    if moments[0] < -slack:
        raise InvalidProblemError(f"{what} has the negative principal moment {moments[0]:.4g}, which is impossible")
    if moments[2] > moments[0] + moments[1] + slack:
        raise InvalidProblemError(
            f"{what} has the principal moments {moments[0]:.4g}, {moments[1]:.4g} and {moments[2]:.4g}; the "
            "largest exceeds the sum of the other two, which is impossible (triangle inequality)"
        )


def moments_of_box(mass: float, size) -> np.ndarray:
    """Moments of inertia of a box with the given edges."""
    x, y, z = size
    return mass / 12.0 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])


def moments_of_cylinder(mass: float, radius: float, length: float) -> np.ndarray:
    """Moments of inertia of a solid cylinder along z."""
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    return np.diag([across, across, 0.5 * mass * radius**2])


def moments_of_sphere(mass: float, radius: float) -> np.ndarray:
    """Moments of inertia of a solid sphere."""
    return 0.4 * mass * radius**2 * np.eye(3)


def moments_of_thin_rod(mass: float, length: float) -> np.ndarray:
    """Moments of inertia of a thin rod along x."""
    return mass * length**2 / 12.0 * np.diag([0.0, 1.0, 1.0])


ground = Body(GROUND)
"""The fixed body: positions and directions refer to its frame."""
