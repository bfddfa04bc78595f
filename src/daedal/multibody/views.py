"""The motion of bodies and what forces do, over time and whatever the coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame
from daedal.multibody.course import MotionHistory
from daedal.multibody.forces import Force
from daedal.multibody.motion import power_of
from daedal.multibody.reactions import Wrench
from daedal.multibody.rotation import point


class FrameView:
    """The motion of a frame on a body; vectors have shape (3, nt) and the axes of the ground."""

    def __init__(self, course: MotionHistory, frame: Frame):
        self._course, self._frame = course, frame

    @property
    def t(self) -> Any:
        """The times."""
        return self._course.values(self._course.t)

    @property
    def position(self) -> np.ndarray:
        """Where it is."""
        return self._course.columns(self._course.position(self._frame))

    @property
    def orientation(self) -> np.ndarray:
        """The matrices from its axes to those of the ground, (nt, 3, 3)."""
        return self._course.values(self._course.rotation(self._frame))

    @property
    def velocity(self) -> np.ndarray:
        """The velocity of its origin."""
        return self._course.columns(self._course.velocity(self._frame))

    @property
    def angular_velocity(self) -> np.ndarray:
        """The angular velocity."""
        return self._course.columns(self._course.angular_velocity(self._frame))

    @property
    def acceleration(self) -> np.ndarray:
        """The acceleration of its origin."""
        return self._course.columns(self._course.acceleration(self._frame))

    @property
    def angular_acceleration(self) -> np.ndarray:
        """The angular acceleration."""
        return self._course.columns(self._course.angular_acceleration(self._frame))


class BodyView(FrameView):
    """The motion of a body, that of its frame where nothing else is said."""

    def __init__(self, course: MotionHistory, body: Body):
        super().__init__(course, body.at())
        self.body = body

    @property
    def center(self) -> np.ndarray:
        """Where the centre of mass is."""
        return self.at(self.body.center).position

    @property
    def kinetic_energy(self) -> np.ndarray:
        """The kinetic energy."""
        number = self._course.layout.index[self.body.name]
        energies = self._course.kinetic_energies
        return self._course.values(energies[:, number] if number >= 0 else np.zeros(len(energies)))

    def at(self, *place) -> FrameView:
        """The motion of a point of the body, ``at(0.5, 0.0)``, or of a frame on it, ``at(crank.end)``."""
        given = place[0] if len(place) == 1 else place
        if not isinstance(given, Frame):
            return FrameView(self._course, Frame(self.body, point(given, f"the point of body '{self.body.name}'")))
        if given.body.name != self.body.name:
            raise InvalidProblemError(f"the frame is on body '{given.body.name}', not on '{self.body.name}'")
        return FrameView(self._course, given)

    def __repr__(self):
        return f"<motion of body '{self.body.name}'>"


class ForceAndTorque:
    """A force and a torque over time, (3, nt) each; the torque about a point that moves along."""

    def __init__(self, course: MotionHistory, wrench: Wrench, model: Any):
        self._course, self._wrench, self._model = course, wrench, model

    @property
    def force(self) -> np.ndarray:
        """The force."""
        return self._course.columns(self._wrench.force)

    @property
    def torque(self) -> np.ndarray:
        """The torque."""
        return self._course.columns(self._wrench.torque)

    def in_axes_of(self, name: str) -> ForceAndTorque:
        """The same in the axes of a body."""
        turn = self._course.rotation(self._model.body(name).at()) if name != "ground" else np.eye(3)
        force, torque = (
            np.einsum("...ji,...j->...i", turn, rows) for rows in (self._wrench.force, self._wrench.torque)
        )
        return ForceAndTorque(self._course, Wrench(force, torque, self._wrench.about), self._model)


class ForceView:
    """What a force of the model does over time."""

    def __init__(self, course: MotionHistory, force: Force):
        self._course, self.element = course, force

    @property
    def t(self) -> Any:
        """The times."""
        return self._course.values(self._course.t)

    def on(self, name: str) -> ForceAndTorque:
        """Force and torque on a body, about its centre of mass."""
        body = self._course.model.body(name)
        number = self._course.layout.index[name]
        loads = self._course.loads([self.element])
        force, torque = self._course.on_bodies(loads)
        wrench = Wrench(force[:, number], torque[:, number], self._course.position(Frame(body, body.center)))
        return ForceAndTorque(self._course, wrench, self._course.model)

    @property
    def power(self) -> np.ndarray:
        """The power of all that it does, positive where it speeds the bodies up."""
        course = self._course
        return course.values(np.array([power_of(self.element, t, course.motion(i)) for i, t in enumerate(course.t)]))

    @property
    def energy(self) -> np.ndarray:
        """Its potential energy; zero if it has none."""
        return self._course.values(self.energies)

    @property
    def energies(self) -> np.ndarray:
        """Its potential energy at all times."""
        course = self._course
        return np.array([self.element.energy(t, course.motion(i)) for i, t in enumerate(course.t)], dtype=float)

    def __repr__(self):
        return f"<force '{self.element.name}' over time>"
