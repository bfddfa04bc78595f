"""Rods without mass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daedal.multibody.arguments import of_shape, positive
from daedal.multibody.body import checked_name
from daedal.multibody.constraints.base import Constraint
from daedal.multibody.forces import frame_of
from daedal.problems.checks import set_checked


@dataclass(frozen=True, eq=False)
class Distance(Constraint):
    r"""Two points at a fixed distance: a rod without mass with a ball joint at each end.

    The condition is :math:`(d^T d / l - l) / 2 = 0`, whose gradient is the unit vector along the rod, so that the
    multiplier is the force in the rod, positive if it is pulled.

    Parameters
    ----------
    name : str
        The name of the rod.
    a, b : Body or Frame
        Its ends.
    length : float or callable
        Its length; a function of time for one that is driven, such as a hydraulic cylinder.
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
        """One condition."""
        return 1

    def residual(self, t, motion):
        """Half of d . d / l - l."""
        d = motion.position(self.b) - motion.position(self.a)
        length = self.length
        if callable(length):
            length = of_shape(length(t), (), f"the length of rod '{self.name}'")
        return (0.5 * ((d[0] ** 2 + d[1] ** 2 + d[2] ** 2) / length - length),)
