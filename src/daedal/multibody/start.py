"""Starts: consistent coordinates and velocities with a reference to their model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.coordinates import joint_velocities
from daedal.multibody.joint_coordinates import massless_state, near_angles
from daedal.multibody.kinematics import ABOUT_Z, ABOUT_Z_AND_Y, placement, velocities
from daedal.multibody.motion import Motion
from daedal.multibody.poses import (
    BodyStates,
    coordinates_in,
    coordinates_of,
    relative_pose,
    stated_joints,
    states_of,
    velocities_of,
)


class Start(tuple):
    """Coordinates and velocities of a model: the pair (q, v) for :func:`daedal.solve`.

    For forces with states (controllers), a start has these states as a third entry.

    Attributes
    ----------
    q, v : numpy.ndarray
        Coordinates and their rates.
    model : Model
        The model.
    layout : Layout
        The coordinates that q and v belong to.
    t : float
        The time.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> pendulum = Model(Revolute("pivot", ground, rod.start), planar=True)
    >>> start = pendulum.assemble(pivot=0.5, velocities={"pivot": 2.0})
    >>> q, v = start
    >>> print(q, v, start.joint("pivot"), start.position("rod").round(4))
    [0.5] [2.] 0.5 [0.8776 0.4794 0.    ]
    """

    model: Any
    layout: Any
    t: float

    def __new__(cls, q, v, model, layout, t: float = 0.0, r=None):
        """Create the pair (q, v) of `model` in the coordinates of `layout`, followed by the force states r, if any."""
        states = model.initial_states if r is None else r
        parts = [q, v, states] if len(states) else [q, v]
        self = super().__new__(cls, [np.asarray(part, dtype=float) for part in parts])
        self.model, self.layout, self.t = model, layout, float(t)
        return self

    def __reduce__(self):
        return type(self), (self.q, self.v, self.model, self.layout, self.t, self.r), self.__dict__

    @property
    def r(self) -> np.ndarray:
        """The force states."""
        return self[2] if len(self) > 2 else np.zeros(0)

    @property
    def q(self) -> np.ndarray:
        """The coordinates."""
        return self[0]

    @property
    def v(self) -> np.ndarray:
        """Rates of the coordinates."""
        return self[1]

    @property
    def layout_length(self) -> float:
        """Size of the machine, the scale of displacements."""
        from daedal.multibody.poses import characteristic_length

        return characteristic_length(self.model.layout())

    @property
    def bodies(self) -> BodyStates:
        """Positions and velocities of the bodies."""
        return states_of(self.layout, self.q, self.v)

    def position(self, body: str) -> np.ndarray:
        """Position of the origin of a body's frame."""
        return self.bodies.frame(self._body(body).at())[0]

    def orientation(self, body: str) -> np.ndarray:
        """The rotation from the axes of a body to those of the ground."""
        return self.bodies.frame(self._body(body).at())[1]

    def joint(self, name: str):
        """The coordinate of a joint as a float, or several coordinates as an array."""
        stated = self._stated(name)
        return _plain(coordinates_of(stated, *relative_pose(self.bodies, stated), self._turned(stated)))

    def rate(self, name: str):
        """The velocity of a joint as a float, or several velocities as an array."""
        stated, states = self._stated(name), self.bodies
        values = coordinates_of(stated, *relative_pose(states, stated))
        return _plain(velocities_of(states, stated, values))

    def in_coordinates(self, coordinates: str = "relative", *, cut: Sequence[str] = ()) -> Start:
        """This state of the machine in other coordinates, "relative" or "absolute"."""
        layout = self.model.layout(coordinates, cut)
        if layout is self.layout:
            return self
        q, v = coordinates_in(layout, self.bodies, near_angles(layout, self._motion))
        for column, value, rate in massless_state(layout, self._motion):
            q[column], v[column] = value, rate
        return Start(q, v, self.model, layout, self.t, self.r)

    @property
    def _motion(self) -> Motion:
        tree = self.layout.tree
        u, placed = joint_velocities(tree, self.q, self.v), placement(tree, self.q)
        return Motion(self.layout, self.q, u, placed, velocities(tree, placed, u))

    def _body(self, name: str):
        return self.model.body(name)

    def _stated(self, name: str):
        self.model.joint(name)
        found = stated_joints(self.model.layout())
        if name not in found:
            raise InvalidProblemError(f"'{name}' is not a joint with coordinates")
        return found[name].joint

    def _turned(self, joint):
        """The angles of a joint; turns are counted if known."""
        if joint.turn in (ABOUT_Z, ABOUT_Z_AND_Y):
            return np.array([self._motion.coordinate(joint, which) for which in joint.coordinates[-joint.turn :]])
        return None

    def __repr__(self):
        names = self.layout.names
        values = ", ".join(f"{name}={value:.6g}" for name, value in zip(names, self.q))
        rates = ", ".join(f"{name}'={value:.6g}" for name, value in zip(names, self.v) if value != 0.0)
        return f"Start({values}{'; ' + rates if rates else ''})"


def _plain(values: np.ndarray):
    return float(values[0]) if values.size == 1 else values
