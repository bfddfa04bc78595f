"""Motion of bodies and joints, and effects of forces, over time and in any coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame, point
from daedal.multibody.force import Force
from daedal.multibody.joint_coordinates import angle_name, coordinate_of
from daedal.multibody.joints import Joint
from daedal.multibody.kinematics import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION
from daedal.multibody.motion import MotionHistory, power_of
from daedal.multibody.reactions import JointForces, Wrench
from daedal.solution.machine_record import NamedCoordinates


class FrameView:
    """The motion of a frame on a body; vectors have shape (3, nt) and the axes of the ground.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(model, (0.0, 1.0), {"pivot": 0.3})
    >>> end = sol.body("rod", t=0.0).at(rod.end)
    >>> print(end.position[:2].round(3))
    [1.911 0.591]
    """

    def __init__(self, course: MotionHistory, frame: Frame):
        self._course, self._frame = course, frame

    @property
    def t(self) -> Any:
        """The times."""
        return self._course.values(self._course.t)

    @property
    def position(self) -> np.ndarray:
        """Position of the origin."""
        return self._course.columns(self._course.position(self._frame))

    @property
    def orientation(self) -> np.ndarray:
        """The matrices from the axes of the frame to those of the ground, (nt, 3, 3)."""
        return self._course.values(self._course.rotation(self._frame))

    @property
    def velocity(self) -> np.ndarray:
        """The velocity of the origin."""
        return self._course.columns(self._course.velocity(self._frame))

    @property
    def angular_velocity(self) -> np.ndarray:
        """The angular velocity."""
        return self._course.columns(self._course.angular_velocity(self._frame))

    @property
    def acceleration(self) -> np.ndarray:
        """The acceleration of the origin."""
        return self._course.columns(self._course.acceleration(self._frame))

    @property
    def angular_acceleration(self) -> np.ndarray:
        """The angular acceleration."""
        return self._course.columns(self._course.angular_acceleration(self._frame))


class BodyView(FrameView):
    """The motion of a body; by default of its frame.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(model, (0.0, 1.0), {"pivot": 0.3})
    >>> view = sol.body("rod", t=0.0)
    >>> print(view.position[:2].round(3), view.angular_acceleration[2].round(3))
    [0.955 0.296] -7.029
    """

    def __init__(self, course: MotionHistory, body: Body):
        super().__init__(course, body.at())
        self.body = body

    @property
    def center(self) -> np.ndarray:
        """Position of the centre of mass."""
        return self.at(self.body.center).position

    @property
    def kinetic_energy(self) -> np.ndarray:
        """The kinetic energy."""
        number = self._course.layout.index[self.body.name]
        energies = self._course.kinetic_energies
        return self._course.values(energies[:, number] if number >= 0 else np.zeros(len(energies)))

    def at(self, *place) -> FrameView:
        """Motion of a point of the body, ``at(0.5, 0.0)``, or of a frame on it, ``at(crank.end)``."""
        given = place[0] if len(place) == 1 else place
        if not isinstance(given, Frame):
            return FrameView(self._course, Frame(self.body, point(given, f"the point of body '{self.body.name}'")))
        if given.body.name != self.body.name:
            raise InvalidProblemError(f"the frame is on body '{given.body.name}', not on '{self.body.name}'")
        return FrameView(self._course, given)

    def __repr__(self):
        return f"<motion of body '{self.body.name}'>"


class ForceAndTorque:
    """A force and a torque over time, (3, nt) each; the torque about a moving point.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(model, (0.0, 1.0), {"pivot": 0.3})
    >>> reaction = sol.joint("pivot", t=0.0).reaction
    >>> print(reaction.force.round(4), reaction.in_axes_of("rod").force.round(4))
    [2.0772 3.095  0.    ] [2.8991 2.343  0.    ]
    """

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
        """The force and torque in the axes of a body."""
        turn = self._course.rotation(self._model.body(name).at()) if name != "ground" else np.eye(3)
        force, torque = (
            np.einsum("...ji,...j->...i", turn, rows) for rows in (self._wrench.force, self._wrench.torque)
        )
        return ForceAndTorque(self._course, Wrench(force, torque, self._wrench.about), self._model)


class ForceView:
    """Effects of a force of the model over time.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Prismatic, Spring, ground
    >>> block = Body.box("block", size=(0.1, 0.1, 0.1), mass=1.0)
    >>> spring = Spring("spring", ground, block, stiffness=10.0, length=1.0)
    >>> model = Model(Prismatic("slide", ground, block, axis="x"), spring)
    >>> sol = daedal.solve(model, (0.0, 1.0), {"slide": 1.5})
    >>> print(sol.force("spring", t=0.0).on("block").force.round(6))
    [-5.  0.  0.]
    """

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
        """Total power, positive if it accelerates the bodies."""
        course = self._course
        return course.values(np.array([power_of(self.element, t, course.motion(i)) for i, t in enumerate(course.t)]))

    @property
    def energy(self) -> np.ndarray:
        """The potential energy of the force; zero if it is nonconservative."""
        return self._course.values(self.energies)

    @property
    def energies(self) -> np.ndarray:
        """The potential energy of the force at all times, (nt,)."""
        course = self._course
        return np.array([self.element.energy(t, course.motion(i)) for i, t in enumerate(course.t)], dtype=float)

    def __repr__(self):
        return f"<force '{self.element.name}' over time>"


class JointView(NamedCoordinates):
    """Relative motion of the two bodies of a joint, and its reaction.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(model, (0.0, 1.0), {"pivot": 0.3})
    >>> pivot = sol.joint("pivot", t=0.0)
    >>> print(f"{pivot.angle:.4f}", pivot.reaction.force[:2].round(4))
    0.3000 [2.0772 3.095 ]
    """

    def __init__(
        self,
        course: MotionHistory,
        joint: Joint,
        forces: Callable[[], JointForces],
        counting: Callable[[], MotionHistory],
    ):
        self._course, self.joint, self._forces, self._counting = course, joint, forces, counting

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the joint."""
        return self.joint.name

    @property
    def t(self) -> Any:
        """The times."""
        return self._course.values(self._course.t)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the coordinates."""
        if self.joint.turn == ANY_ROTATION:
            return (*self.joint.coordinates[:-3], "p0", "p1", "p2", "p3")
        return self.joint.coordinates

    @property
    def coordinates(self) -> np.ndarray:  # type: ignore[override]
        """Coordinates of the user's joint, (n, nt); angles count turns."""
        return self._course.columns(coordinates_of(self._course, self.joint, self._counting))

    @property
    def rates(self) -> np.ndarray:  # type: ignore[override]
        """Rates of the coordinates; for Euler parameters, the angular velocity in the axes of the second frame."""
        return self._course.columns(rates_of(self._course, self.joint))

    @property
    def position(self) -> np.ndarray:
        """Position of the joint, on its second body."""
        return self._course.columns(self._course.position(self.joint.b))

    @property
    def reaction(self) -> ForceAndTorque:
        """Reaction on the second body: force, and torque about the joint, in the axes of the ground."""
        return ForceAndTorque(self._course, self._forces().of(self.joint), self._course.model)

    def __repr__(self):
        return f"<motion of joint '{self.joint.name}'>"


# --- coordinates of joints from the motion of their frames ------------------------------------------------------------


def _relative_rotation(course: MotionHistory, joint: Joint) -> np.ndarray:
    return np.swapaxes(course.rotation(joint.a), -1, -2) @ course.rotation(joint.b)


def _angles(turn: int, matrices: np.ndarray) -> np.ndarray:
    """The angles of a joint from its rotation, (nt, n), without turns."""
    if turn == ABOUT_Z:
        return np.arctan2(matrices[:, 1, 0], matrices[:, 0, 0])[:, None]
    if turn == ABOUT_Z_AND_Y:
        first = np.arctan2(-matrices[:, 0, 1], matrices[:, 1, 1])
        return np.column_stack([first, np.arctan2(-matrices[:, 2, 0], matrices[:, 2, 2])])
    return np.zeros((len(matrices), 0))


def coordinates_of(course: MotionHistory, joint: Joint, counting: Callable[[], MotionHistory]) -> np.ndarray:
    """Coordinates of a joint, (nt, n); `counting` returns a motion in which no step exceeds half a turn."""
    distance = course.position(joint.b) - course.position(joint.a)
    shifts = np.einsum("tji,tj->ti", course.rotation(joint.a), distance)[:, list(joint.shifts)]
    if joint.turn == ANY_ROTATION:
        return np.column_stack([shifts, _parameters(_relative_rotation(course, joint))])
    angles = _angles(joint.turn, _relative_rotation(course, joint))
    if angles.shape[1]:
        angles = angles + 2.0 * np.pi * np.round((_counted(course, joint, counting) - angles) / (2.0 * np.pi))
    return np.column_stack([shifts, angles])


def _counted(course: MotionHistory, joint: Joint, counting: Callable[[], MotionHistory]) -> np.ndarray:
    """Angles of a joint with full turns: its coordinates if these count turns, otherwise summed over small steps."""
    number = course.layout.number_in_tree(joint)
    if number is not None:
        end = course.layout.tree.first_q[number + 1]
        angles = course.q[:, end - (2 if joint.turn == ABOUT_Z_AND_Y else 1) : end]
        return angles[:, ::-1] if course.layout.topology.reversed[number] else angles
    if joint.turn == ABOUT_Z:
        sums, name = course.layout.counted_angles, angle_name(coordinate_of(course.layout, joint.name, "angle"))
        if name in sums:
            return np.array(sums[name].value(course.q.T))[:, None]
    fine = counting()
    wrapped = _angles(joint.turn, _relative_rotation(fine, joint))
    rates = rates_of(fine, joint)[:, -wrapped.shape[1] :]
    expected = 0.5 * (rates[1:] + rates[:-1]) * np.diff(fine.t)[:, None]
    turns = np.round((expected - np.diff(wrapped, axis=0)) / (2.0 * np.pi))
    counted = wrapped + 2.0 * np.pi * np.concatenate([np.zeros((1, wrapped.shape[1])), np.cumsum(turns, axis=0)])
    order = np.argsort(fine.t)
    return counted[order[np.searchsorted(fine.t[order], course.t)]]


def _parameters(matrices: np.ndarray) -> np.ndarray:
    """Continuous Euler parameters, with nonnegative first component at the start."""
    from scipy.spatial.transform import Rotation

    p = Rotation.from_matrix(matrices).as_quat()[:, [3, 0, 1, 2]]
    signs = np.where(np.sum(p[1:] * p[:-1], axis=1) < 0, -1.0, 1.0)
    first = -1.0 if p[0, 0] < 0 else 1.0
    return p * (first * np.concatenate([[1.0], np.cumprod(signs)]))[:, None]


def rates_of(course: MotionHistory, joint: Joint) -> np.ndarray:
    """The velocities of a joint, (nt, n)."""
    axes, spin = course.rotation(joint.a), course.angular_velocity(joint.a)
    distance = course.position(joint.b) - course.position(joint.a)
    speed = course.velocity(joint.b) - course.velocity(joint.a) - np.cross(spin, distance)
    slips = np.einsum("tji,tj->ti", axes, speed)[:, list(joint.shifts)]
    turning = course.angular_velocity(joint.b) - spin
    if joint.turn == ABOUT_Z:
        turns = np.einsum("ti,ti->t", axes[:, :, 2], turning)[:, None]
    elif joint.turn == ABOUT_Z_AND_Y:  # the second axis is y of the second frame
        both = np.stack([axes[:, :, 2], course.rotation(joint.b)[:, :, 1]], axis=1)
        turns = np.einsum("tki,ti->tk", both, turning)
    elif joint.turn == ANY_ROTATION:
        turns = np.einsum("tji,tj->ti", course.rotation(joint.b), turning)
    else:
        turns = np.zeros((course.t.size, 0))
    return np.column_stack([slips, turns])
