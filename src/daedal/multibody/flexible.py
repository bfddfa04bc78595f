r"""Flexible parts made of rigid segments: beams and cables (finite segments).

A beam of length L is divided into n cells of length h = L/n. At the midpoint of each cell is a hinge with the spring
:math:`k = EI/h`, which represents the bending of the cell; the parts between hinges are rigid. The segments at the two
ends are half as long, so that fixing the end clamps the beam, and a hinge supports it simply. Static deflections are
those of the midpoint rule for :math:`\int M(x)/EI\, dx`. The errors of deflections and of the lower frequencies are of
order 2 in h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame, checked_name, positive
from daedal.multibody.force import Force
from daedal.multibody.joints import Joint, Revolute, Spherical, Universal
from daedal.multibody.spring import Bushing, TorsionSpring
from daedal.problems.checks import check_finite, check_size


@dataclass(frozen=True, eq=False)
class Segmented:
    """The parts of a beam or cable, to be passed to a model as ``Model(*beam, ...)``, with frames on them.

    Attributes
    ----------
    name : str
        Prefix of the names of all parts.
    bodies : tuple of Body
        The segments, "name 1", "name 2", ...
    joints : tuple of Joint
        Joints between the segments.
    forces : tuple of Force
        Springs at the joints.
    ends : numpy.ndarray
        End of each segment, as a length from the start.

    Examples
    --------
    >>> from daedal.multibody import beam
    >>> mast = beam("mast", 1.0, 4, bending_stiffness=10.0, mass_per_length=0.5)
    >>> print(len(mast.bodies), mast.at(0.5).body.name)
    5 mast 3
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    forces: tuple[Force, ...]
    ends: np.ndarray

    def __iter__(self) -> Iterator[Any]:
        return iter((*self.joints, *self.forces) if self.joints else self.bodies)

    @property
    def start(self) -> Frame:
        """The start of the beam; its x axis is along the beam."""
        return self.bodies[0].start

    @property
    def end(self) -> Frame:
        """The end of the beam."""
        return self.bodies[-1].end

    def at(self, length: float) -> Frame:
        """The frame at a given length from the start."""
        x, total = check_finite(length, f"length of a point of '{self.name}'"), float(self.ends[-1])
        if not 0.0 <= x <= total:
            raise InvalidProblemError(f"'{self.name}' has length {total:g}, so it has no point at {x:g}")
        i = min(int(np.searchsorted(self.ends, x)), len(self.bodies) - 1)
        own = float(self.ends[i] - (self.ends[i - 1] if i else 0.0))
        return self.bodies[i].at(x - float(self.ends[i]) + 0.5 * own, 0.0, 0.0)


def beam(
    name: str,
    length: float,
    segments: int,
    bending_stiffness: float,
    mass_per_length: float,
    *,
    planar: bool = True,
    torsional_stiffness: float | None = None,
    radius: float | None = None,
    damping: float = 0.0,
) -> Segmented:
    r"""A slender beam in bending, made of finite segments.

    Parameters
    ----------
    name : str
        Prefix of the names of segments, joints and springs.
    length : float
        Length L.
    segments : int
        n, the number of hinges; there are n + 1 rigid segments.
    bending_stiffness : float
        Bending stiffness EI, equal in all directions.
    mass_per_length : float
        The mass of the beam, divided by its length.
    planar : bool
        Whether the beam bends about the z axis only, for planar models; otherwise about y and z.
    torsional_stiffness : float, optional
        Torsional stiffness GJ, which requires the radius; by default a beam in space is rigid in torsion.
    radius : float, optional
        Radius of a round section, for moments of inertia about the axis and for drawings.
    damping : float
        Time constant :math:`\tau` of the torques :math:`\tau k \dot\varphi` at the hinges (Kelvin and Voigt).

    Returns
    -------
    Segmented
        A straight, inextensible beam along the x axis of ``beam.start``.

    Notes
    -----
    Displacements and rotations may be large. The deflection of the tip of a cantilever under a load P is
    :math:`\frac{P L^3}{3 EI} (1 - \frac{1}{4 n^2})`.

    References
    ----------
    J. M. Winget, R. L. Huston: Cable dynamics, a finite segment approach, Computers and Structures 6 (1976) 475-480.

    Examples
    --------
    The tip of a cantilever of length 1 sinks by P L^3/(3 EI) under a small load:

    >>> import daedal
    >>> from daedal.multibody import Fixed, GeneralForce, Model, beam, ground
    >>> mast = beam("mast", 1.0, 8, bending_stiffness=10.0, mass_per_length=0.5, damping=0.05)
    >>> load = GeneralForce("load", mast.end, lambda t, motion: (0.0, -0.03))
    >>> model = Model(Fixed("clamp", ground, mast.start), *mast, load, planar=True)
    >>> system = model.system()
    >>> sol = daedal.solve(system, (0.0, 3.0), model.start(), rtol=1e-6)
    >>> print(f"{system.motion(sol.q[:, -1], sol.v[:, -1]).position(mast.end)[1]:.6f}")
    -0.000996
    """
    what = f"beam '{checked_name(name, 'beam')}'"
    n, L, stiffness, mass = _checked(what, length, segments, mass_per_length, bending_stiffness, least=1)
    time = check_finite(damping, f"damping of {what}")
    h = L / n
    ends = np.append((np.arange(n) + 0.5) * h, L)
    bodies = _rods(name, np.diff(ends, prepend=0.0), mass, radius)
    joints: list[Joint] = []
    forces: list[Force] = []
    k = stiffness / h
    for i, (one, two) in enumerate(pairwise(bodies), 1):
        label = f"{name} joint {i}"
        if planar:
            joints.append(Revolute(label, one.end, two.start))
            forces.append(TorsionSpring(f"{name} spring {i}", label, k, damping=time * k))
        elif torsional_stiffness is None:
            joints.append(Universal(label, one.end, two.start, axis="z", second_axis="y"))
            for which in ("angle", "second_angle"):
                spring = TorsionSpring(f"{name} spring {i}, {which}", label, k, damping=time * k, which=which)
                forces.append(spring)
        else:
            if radius is None:
                raise InvalidProblemError(f"{what} can twist, so it needs a radius for its moment of inertia")
            twist = positive(torsional_stiffness, f"torsional_stiffness of {what}") / h
            about = np.array([twist, k, k])
            joints.append(Spherical(label, one.end, two.start))
            forces.append(
                Bushing(
                    f"{name} spring {i}", one.end, two.start, torsional_stiffness=about, torsional_damping=time * about
                )
            )
    return Segmented(name, bodies, tuple(joints), tuple(forces), ends)


def cable(
    name: str,
    length: float,
    segments: int,
    mass_per_length: float,
    *,
    planar: bool = True,
    bending_stiffness: float = 0.0,
    radius: float | None = None,
    damping: float = 0.0,
) -> Segmented:
    r"""An inextensible cable with small or zero bending stiffness, made of links of equal length.

    Parameters
    ----------
    name : str
        Prefix of the names of links, joints and springs.
    length : float
        Length L.
    segments : int
        The number n of links.
    mass_per_length : float
        The mass of the cable, divided by its length.
    planar : bool
        Whether the cable lies in the xy plane, with hinges about z; otherwise universal joints connect the links.
    bending_stiffness : float
        Small bending stiffness EI: springs EI/h at the joints.
    radius : float, optional
        Radius of a round section, for drawings and moments of inertia.
    damping : float
        Torque per angular rate at each joint.

    Returns
    -------
    Segmented
        A straight cable along the x axis of ``cable.start``. Attach its ends by hinges, in space by universal joints.

    Notes
    -----
    Frequencies and sag have an error of order 2 in h.

    Examples
    --------
    >>> from daedal.multibody import Model, Revolute, cable, ground
    >>> rope = cable("rope", 2.0, 10, mass_per_length=0.3)
    >>> model = Model(Revolute("hook", ground, rope.start), *rope, gravity=(0.0, -9.81), planar=True)
    >>> model.system().n_q
    10
    """
    what = f"cable '{checked_name(name, 'cable')}'"
    n, L, stiffness, mass = _checked(what, length, segments, mass_per_length, bending_stiffness, least=2)
    brake = check_finite(damping, f"damping of {what}")
    h = L / n
    bodies = _rods(name, np.full(n, h), mass, radius)
    joints: list[Joint] = []
    forces: list[Force] = []
    for i, (one, two) in enumerate(pairwise(bodies), 1):
        label = f"{name} joint {i}"
        if planar:
            joints.append(Revolute(label, one.end, two.start))
        else:
            joints.append(Universal(label, one.end, two.start, axis="z", second_axis="y"))
        for which in joints[-1].coordinates if stiffness or brake else ():
            forces.append(
                TorsionSpring(f"{name} spring {i}, {which}", label, stiffness / h, damping=brake, which=which)
            )
    return Segmented(name, bodies, tuple(joints), tuple(forces), np.cumsum(np.full(n, h)))


def _checked(what: str, length, segments, mass_per_length, stiffness, *, least: int):
    n = check_size(segments, f"segments of {what}", least)
    bending = check_finite(stiffness, f"bending_stiffness of {what}")
    if bending < 0.0:
        raise InvalidProblemError(f"bending_stiffness of {what} must not be negative, got {bending:g}")
    total = positive(length, f"length of {what}")
    return n, total, bending, positive(mass_per_length, f"mass_per_length of {what}")


def _rods(name: str, lengths, mass_per_length: float, radius) -> tuple[Body, ...]:
    return tuple(
        Body.rod(f"{name} {i}", length=float(h), mass=mass_per_length * float(h), radius=radius)
        for i, h in enumerate(lengths, 1)
    )
