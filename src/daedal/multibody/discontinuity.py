"""Contacts that open and close, joints that stick and slip, and models with them as hybrid problems."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

import daedal
from daedal.errors import InvalidProblemError
from daedal.multibody.body import Frame, direction, positive
from daedal.multibody.closure import ALONG
from daedal.multibody.dynamics import rnea
from daedal.multibody.force import frame_of, joint_name, title
from daedal.multibody.joints import Prismatic
from daedal.multibody.kinematics import Velocities, cross, lifted_force, placement
from daedal.multibody.motion import Loads, Motion
from daedal.problems.checks import check_finite, set_checked


class Discontinuity:
    """A part of a model that has modes; see :class:`Contact` and :class:`JointFriction`."""

    name: str
    frames: tuple[Frame, ...] = ()
    joints: tuple[str, ...] = ()
    which: str | None = None

    @property
    def needs_reaction(self) -> bool:
        """Whether the part depends on the force in a joint."""
        return False

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Contact(Discontinuity):
    r"""A point of a body that meets a plane: it bounces, rests, and lifts off.

    The gap :math:`g_N = n \cdot (p - p_0) - r` and the force along n are not negative, and one of them is zero. Impacts
    have the coefficient of restitution e, :math:`\dot g_N^+ = -e\, \dot g_N^-`; see
    :class:`daedal.hybrid.UnilateralProblem`.

    Parameters
    ----------
    name : str
        A unique name among forces and contacts.
    point : Body or Frame
        The point, or the centre of a ball.
    against : Body or Frame
        A point of the plane, on the ground or on a moving body.
    normal : direction
        Normal n of the plane, towards the point, in the axes of `against`.
    restitution : float
        Coefficient of restitution e, between 0 (plastic) and 1 (elastic).
    radius : float
        Radius r of a ball; 0 for a point.
    friction : float
        Coefficient of Coulomb friction, also for impacts. A ball that sticks rolls.
    static : float, optional
        Coefficient of static friction, at least `friction`, which is the default.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Contact, Free, Model, ground
    >>> ball = Body.sphere("ball", radius=0.1, mass=1.0)
    >>> floor = Contact("floor", ball, ground, normal="y", radius=0.1, restitution=0.5)
    >>> model = Model(Free("flight", ground, ball), floor, gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(model.problem(), (0.0, 2.0), ([0.0, 1.1, 0.0], [1.0, 0.0, 0.0]), rtol=1e-8)
    >>> print(sol.mode[-1], f"{sol.events[-1].t:.4f}")
    floor 1.3546
    """

    name: str
    point: Any
    against: Any
    normal: Any
    restitution: float = 0.0
    radius: float = 0.0
    friction: float = 0.0
    static: float | None = None

    def __post_init__(self):
        what = title(self)
        point, against = frame_of(self.point, f"point of {what}"), frame_of(self.against, f"against of {what}")
        if point.body is against.body:
            raise InvalidProblemError(f"{what}: point and plane are both on body '{point.body.name}'")
        restitution = check_finite(self.restitution, f"restitution of {what}")
        if not 0.0 <= restitution <= 1.0:
            raise InvalidProblemError(f"restitution of {what} must be between 0 and 1, got {restitution!r}")
        friction, radius = (
            check_finite(self.friction, f"friction of {what}"),
            check_finite(self.radius, f"radius of {what}"),
        )
        if friction < 0.0 or radius < 0.0:
            raise InvalidProblemError(f"friction and radius of {what} must not be negative, got {friction}, {radius}")
        static = friction if self.static is None else check_finite(self.static, f"static of {what}")
        if static < friction:
            raise InvalidProblemError(
                f"static of {what} must not be less than friction, got {static:g} and {friction:g}"
            )
        set_checked(
            self,
            point=point,
            against=against,
            normal=direction(self.normal, f"normal of {what}"),
            restitution=restitution,
            radius=radius,
            friction=friction,
            static=static,
        )
        set_checked(self, frames=(self.point, self.against))

    def gap(self, motion):
        """Distance of the point from the plane."""
        n = motion.rotation(self.against) @ self.normal
        return np.dot(n, motion.position(self.point) - motion.position(self.against)) - self.radius

    def slide(self, motion, loads, value=1.0, k=0):
        """Add the force `value` along the plane to the loads of both bodies; for k = 0, to the right of the normal.

        In space, k = 0 and 1 are two orthogonal directions.
        """
        turn = motion.rotation(self.against)
        n, vector = turn @ self.normal, turn @ (value * self.tangents[k])
        loads.force(self.point, vector)
        loads.force(self.against, -vector)
        loads.torque(self.point, -self.radius * cross(n, vector))
        arm = motion.position(self.point) - self.radius * n - motion.position(self.against)
        loads.torque(self.against, -cross(arm, vector))

    @property
    def tangents(self) -> tuple[np.ndarray, np.ndarray]:
        """Two directions in the plane; in a planar model, the first is in the plane of the model."""
        n = self.normal
        across = np.array([n[1], -n[0], 0.0])
        length = float(np.linalg.norm(across))
        first = across / length if length > 1e-8 else np.array([1.0, 0.0, 0.0])
        return first, np.cross(n, first)


@dataclass(frozen=True, eq=False, repr=False)
class JointFriction(Discontinuity):
    r"""Coulomb friction at a joint, which sticks, or slips against a torque (or a force).

    Parameters
    ----------
    name : str
        A unique name among forces and contacts.
    joint : Joint or str
        The joint or its name.
    torque : float, optional
        Friction level while slipping: a torque at a hinge, a force at a slider.
    coefficient : float, optional
        Instead of `torque`, for a :class:`Prismatic` joint in a planar model: ratio of the friction force to the normal
        force of the joint. The model is then solved in absolute coordinates.
    static : float, optional
        Level (or coefficient) up to which the joint sticks; at least the sliding level, which is the default.
    stribeck : float, optional
        The speed over which the level decreases from `static` to `torque` or `coefficient`.
    which : str, optional
        Coordinate name, if the joint has several coordinates.

    Notes
    -----
    For a single joint with friction the modes are "slip+", "slip-" and "stick", as for :class:`daedal.hybrid.Friction`.
    Several joints with friction, or combinations with contacts, become :class:`daedal.hybrid.Contact` objects with a
    known normal force: modes have names such as "brake sticks + floor slips-", ``sol.contact("brake")`` provides the
    friction, and only `torque` and `static` are allowed.

    Examples
    --------
    A wheel that spins with J = 0.5, braked by a torque of 2, stops after J omega / 2:

    >>> import daedal
    >>> from daedal.multibody import Body, JointFriction, Model, Revolute, ground
    >>> wheel = Body.cylinder("wheel", radius=0.5, length=0.1, mass=4.0)
    >>> model = Model(Revolute("axle", ground, wheel), JointFriction("brake", "axle", torque=2.0))
    >>> sol = daedal.solve(model.problem(), (0.0, 4.0), ([0.0], [8.0]), rtol=1e-8)
    >>> print(sol.mode[-1], f"{sol.events[0].t:.6f}")
    stick 2.000000
    """

    name: str
    joint: Any
    torque: float | None = None
    coefficient: float | None = None
    static: float | None = None
    stribeck: float | None = None
    which: str | None = None

    def __post_init__(self):
        what = title(self)
        if (self.torque is None) == (self.coefficient is None):
            raise InvalidProblemError(f"{what} needs either torque or coefficient")
        level = "torque" if self.coefficient is None else "coefficient"
        values = {level: positive(getattr(self, level), f"{level} of {what}")}
        if self.static is not None:
            values["static"] = positive(self.static, f"static of {what}")
            if values["static"] < values[level]:
                raise InvalidProblemError(
                    f"static of {what} must not be less than {level}, got {values['static']:g} and {values[level]:g}"
                )
        if self.stribeck is not None:
            values["stribeck"] = positive(self.stribeck, f"stribeck of {what}")
        set_checked(self, joint=joint_name(self.joint, what), **values)
        set_checked(self, joints=(self.joint,))

    def slide(self, motion, loads, value=1.0):
        """Add to `loads` a torque or a force along the coordinate."""
        loads.joint(self.joint, value, self.which)

    @property
    def needs_reaction(self) -> bool:
        """Whether the friction depends on the force in the joint."""
        return self.coefficient is not None


def problem_of(model: Any, system: Any, law: str, rest_speed: float) -> daedal.hybrid.HybridProblem:
    """The hybrid problem of a model with contacts and joint friction."""
    parts = model.discontinuities
    if len(parts) == 1 and isinstance(parts[0], JointFriction):
        return _rough_joint(_with_derivatives(system), parts[0])
    contacts = [_brake(system, part) if isinstance(part, JointFriction) else _contact(system, part) for part in parts]
    return daedal.hybrid.UnilateralProblem(system, contacts, law=law, rest_speed=rest_speed)


def _with_derivatives(system):
    """The system with exact derivatives of its constraints, for guards and impacts, if it can be traced.

    A system with inputs is returned unchanged: its machine code would expect parameters without the sampled inputs of
    a run.
    """
    if system.inputs is not None:
        return system
    try:
        return system.compiled(backend="trace")
    except InvalidProblemError:
        return system


def _motion(layout, q) -> Motion:
    return Motion(layout, q, None, placement(layout.tree, q), None)


def _contact(system, part: Contact) -> daedal.hybrid.Contact:
    layout = system.layout
    tangents = [_along(layout, partial(part.slide, k=k)) for k in range(1 if layout.planar else 2)]
    return daedal.hybrid.Contact(
        lambda t, q, *params: part.gap(_motion(layout, q)),
        part.restitution,
        name=part.name,
        tangent=tangents if part.friction else None,
        mu=part.friction,
        mu_static=part.static,
    )


def _brake(system, part: JointFriction) -> daedal.hybrid.Contact:
    """A contact with known normal force, as which joint friction is combined with other friction or contacts."""
    if part.torque is None or part.stribeck is not None:
        what = "a coefficient" if part.torque is None else "stribeck"
        raise InvalidProblemError(
            f"{part!r}: combined with contacts or friction at other joints, the level must be a torque or force "
            f"that does not depend on the speed, not {what}. Remedy: give only torque=... and static=..., "
            "or use SmoothFriction"
        )
    static = None if part.static is None else part.static / part.torque
    along = _along(system.layout, part.slide)
    return daedal.hybrid.Contact(tangent=along, mu=1.0, mu_static=static, normal=part.torque, name=part.name)


def _along(layout, load):
    """The generalised force of a unit load as a function of (t, q): J^T from a massless tree at rest."""
    tree = layout.tree
    n, n_v = tree.parent.size, int(tree.first_v[-1])
    massless = tree._replace(mass=np.zeros(n), inertia=np.zeros((n, 3, 3)))
    still = Velocities(np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)))
    lifted, nothing, at_rest = layout.n_q > layout.n_v, np.zeros(n), np.zeros(layout.n_q)

    def along(t, q, *params):
        motion = _motion(layout, q)
        loads = Loads(layout, motion.placed)
        load(motion, loads)
        tau = loads.joint_forces - rnea(massless, motion.placed, still, np.zeros(n_v), loads.forces, loads.torques)
        return lifted_force(tree, q, at_rest, tau, nothing) if lifted else tau

    return along


def _rough_joint(system, part: JointFriction) -> daedal.hybrid.Friction:
    layout = system.layout
    along = _along(layout, part.slide)
    if part.torque is not None:
        static = None if part.static is None else part.static / part.torque
        return daedal.hybrid.Friction(system, along, 1.0, normal=part.torque, mu_static=static, stribeck=part.stribeck)
    if not layout.planar or not isinstance(system.model.joint(part.joint), Prismatic):
        raise InvalidProblemError(
            f"{part!r}: a coefficient needs a prismatic joint in a planar model, with a single normal force; "
            f"'{part.joint}' is not. Remedy: give torque=... instead"
        )
    pressing = [i for i, name in enumerate(layout.closing_joints) if name == part.joint]
    pressing = [i for i in pressing if layout.closures.kind[i] == ALONG]
    if not pressing:
        raise InvalidProblemError(
            f"{part!r}: the normal force of joint '{part.joint}' is a multiplier only if the joint is a constraint. "
            f"Remedy: use coordinates='absolute', or cut this joint with cut=['{part.joint}']"
        )
    mu = cast(float, part.coefficient)
    return daedal.hybrid.Friction(
        system, along, mu, constraint=pressing[0], mu_static=part.static, stribeck=part.stribeck
    )
