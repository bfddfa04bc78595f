"""Springs and dampers between two points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.multibody.body import Frame
from daedal.multibody.forces.force import Force, title, two_frames
from daedal.multibody.forces.laws import energy_of, law_of, value_of
from daedal.problems.checks import check_finite, set_checked


@dataclass(frozen=True, eq=False, repr=False)
class Spring(Force):
    r"""A spring with a damper between two points.

    The tension along the line from a to b is :math:`F = F_k(\ell - \ell_0) + F_d(\dot\ell)`.

    Parameters
    ----------
    name : str
        A name that no other force of the model has.
    a, b : Body or Frame
        The two ends.
    stiffness : number, pairs, Table or callable
        :math:`F_k`: a number k for :math:`F_k(x) = k x`, pairs (x, force) or a :class:`daedal.Table` (constant beyond
        its ends), or a function of the extension x.
    length : float
        The free length :math:`\ell_0`. With 0, tables and functions are those of the length.
    damping : number, pairs, Table or callable
        :math:`F_d`, of the rate of the length.

    Notes
    -----
    The potential energy is :math:`\int_0^{\ell - \ell_0} F_k`. The line has no direction where the ends meet; only a
    spring with a number as stiffness, free length zero and no damping can pass through this point.

    Examples
    --------
    A mass on a spring has the period 2 pi sqrt(m/k):

    >>> import numpy as np
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Prismatic, Spring, ground
    >>> mass = Body.particle("mass", mass=2.0)
    >>> model = Model(
    ...     Prismatic("rail", ground, mass, axis="x"),
    ...     Spring("spring", ground.at(-1.0, 0.0), mass, stiffness=8.0, length=1.0),
    ... )
    >>> sol = daedal.solve(model.system(), (0.0, np.pi), ([0.1], [0.0]), rtol=1e-9, atol=1e-12)
    >>> print(f"{sol['rail'][-1]:.6f}")
    0.100000
    """

    name: str
    a: Any
    b: Any
    stiffness: Any = 0.0
    length: float = 0.0
    damping: Any = 0.0

    def __post_init__(self):
        what = title(self)
        a, b = two_frames(self, what)
        set_checked(
            self,
            a=a,
            b=b,
            stiffness=law_of(self.stiffness, f"stiffness of {what}"),
            length=check_finite(self.length, f"length of {what}"),
            damping=law_of(self.damping, f"damping of {what}"),
        )
        if self.length < 0.0:
            raise InvalidProblemError(f"length of {what} must not be negative, got {self.length:g}")
        set_checked(self, frames=(self.a, self.b))

    def apply(self, t, motion, loads):
        """Pull the ends together."""
        if not callable(self.stiffness) and self.length == 0.0 and self.damping == 0.0:
            pull = self.stiffness * (motion.position(self.b) - motion.position(self.a))
        else:
            length, rate, along = line(self.a, self.b, motion, title(self))
            pull = (value_of(self.stiffness, length - self.length) + value_of(self.damping, rate)) * along
        loads.force(self.a, pull)
        loads.force(self.b, -pull)

    def energy(self, t, motion) -> float:
        """What is stored in the spring."""
        d = motion.position(self.b) - motion.position(self.a)
        return energy_of(self.stiffness, float(np.sqrt(d @ d)) - self.length)

    def power(self, t, motion) -> float:
        """What the damper takes, not positive if it brakes."""
        if self.damping == 0.0:
            return 0.0
        _, rate, _ = line(self.a, self.b, motion, title(self))
        return -float(value_of(self.damping, rate) * rate)


@dataclass(frozen=True, eq=False, repr=False)
class Damper(Spring):
    """A damper between two points: tension :math:`F_d` of the rate of the length; see :class:`Spring`.

    Examples
    --------
    >>> from daedal.multibody import Body, Damper, ground
    >>> Damper("strut", ground, Body.particle("mass", mass=1.0), damping=[(-1.0, -300.0), (0.0, 0.0), (1.0, 900.0)])
    Damper('strut')
    """


def line(a: Frame, b: Frame, motion, who: str):
    """Length, its rate, and the direction of the line from a to b."""
    d = motion.position(b) - motion.position(a)
    speed = motion.velocity(b) - motion.velocity(a)
    length = np.sqrt(d[0] ** 2 + d[1] ** 2 + d[2] ** 2)
    if isinstance(length, float) and length == 0.0:  # of numbers; the traced function has no branch
        raise Unevaluable(
            f"{who}: its ends are at the same point, so that its line has no direction. Remedy: start with its ends "
            "apart, or take a spring with a number as stiffness, free length 0 and no damping, or a Bushing"
        )
    along = d / length
    return length, along[0] * speed[0] + along[1] * speed[1] + along[2] * speed[2], along
