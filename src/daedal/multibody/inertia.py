"""Mass, centre of mass and inertia of a rigid body, and of the usual solids."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.rotation import point
from daedal.problems.checks import check_real


@dataclass(frozen=True, eq=False)
class Inertia:
    """The mass of a body, its centre of mass, and its moments of inertia about that centre.

    Parameters
    ----------
    mass : float
        Not negative.
    moments : number, 3 numbers or 3 by 3 matrix
        Moments of inertia about the centre of mass in the axes of the body: the whole matrix, its diagonal, or one
        number, the moment about z, for a body that moves in the plane.
    center : point
        The centre of mass in the frame of the body.
    """

    mass: float
    moments: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    center: np.ndarray = field(default_factory=lambda: np.zeros(3))

    @staticmethod
    def checked(mass, moments, center, name: str) -> Inertia:
        """An inertia that a body can have; `name` is that of the body, for messages."""
        value = check_real(mass, f"the mass of body '{name}'", "be a number")
        if value.ndim != 0 or not np.isfinite(value) or value < 0:
            raise InvalidProblemError(f"the mass of body '{name}' must be a finite number, not negative; got {mass!r}")
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
        """The same inertia with its centre moved."""
        return Inertia(self.mass, self.moments, self.center + by)

    def turned(self, rotation) -> Inertia:
        """The same inertia turned about the origin of the frame."""
        return Inertia(self.mass, rotation @ self.moments @ rotation.T, rotation @ self.center)

    def __add__(self, other: Inertia) -> Inertia:
        """Two bodies fixed to each other (parallel axis theorem)."""
        mass = self.mass + other.mass
        center = (self.mass * self.center + other.mass * other.center) / mass if mass > 0 else self.center
        moments = sum(one.moments + one.mass * about_a_distant_point(one.center - center) for one in (self, other))
        return Inertia(mass, np.asarray(moments), center)


def about_a_distant_point(distance) -> np.ndarray:
    """What a unit mass at this distance adds to moments of inertia (parallel axis theorem)."""
    d = np.asarray(distance, dtype=float)
    return float(d @ d) * np.eye(3) - np.outer(d, d)


def _check_physical(matrix: np.ndarray, what: str):
    if not np.all(np.isfinite(matrix)):
        raise InvalidProblemError(f"{what} holds values that are not finite")
    moments = np.linalg.eigvalsh(matrix)
    slack = 1e-9 * float(np.abs(moments).max())
    if moments[0] < -slack:
        raise InvalidProblemError(f"{what} has the negative principal moment {moments[0]:.4g}; no body has")
    if moments[2] > moments[0] + moments[1] + slack:
        raise InvalidProblemError(
            f"{what} has the principal moments {moments[0]:.4g}, {moments[1]:.4g} and {moments[2]:.4g}; the largest is "
            "more than the sum of the other two, which no distribution of mass has (triangle inequality)"
        )


def box(mass: float, size) -> np.ndarray:
    """Moments of inertia of a box with the given edges."""
    x, y, z = size
    return mass / 12.0 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])


def cylinder(mass: float, radius: float, length: float) -> np.ndarray:
    """Moments of inertia of a solid cylinder along z."""
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    return np.diag([across, across, 0.5 * mass * radius**2])


def sphere(mass: float, radius: float) -> np.ndarray:
    """Moments of inertia of a solid sphere."""
    return 0.4 * mass * radius**2 * np.eye(3)


def thin_rod(mass: float, length: float) -> np.ndarray:
    """Moments of inertia of a thin rod along x."""
    return mass * length**2 / 12.0 * np.diag([0.0, 1.0, 1.0])
