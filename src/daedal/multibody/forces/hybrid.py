"""Models with contacts and friction as problems with modes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import daedal
from daedal.errors import InvalidProblemError
from daedal.multibody.closure import ALONG
from daedal.multibody.coordinates import lifted_force
from daedal.multibody.dynamics import rnea
from daedal.multibody.forces.discontinuity import Contact, JointFriction
from daedal.multibody.joints import Prismatic
from daedal.multibody.kinematics import Velocities, placement
from daedal.multibody.motion import Loads, Motion


def problem_of(model: Any, system: Any, law: str, rest_speed: float) -> daedal.HybridProblem:
    """The hybrid problem of a model with contacts and friction at joints."""
    parts = model.discontinuities
    if len(parts) == 1 and isinstance(parts[0], JointFriction):
        return _rough_joint(_with_derivatives(system), parts[0])
    contacts = [_brake(system, part) if isinstance(part, JointFriction) else _contact(system, part) for part in parts]
    return daedal.unilateral(system, contacts, law=law, rest_speed=rest_speed)


def _with_derivatives(system):
    """The system with exact derivatives of its constraints, for guards and impacts, if it can be traced."""
    try:
        return system.compiled(backend="trace")
    except InvalidProblemError:
        return system


def _motion(layout, q) -> Motion:
    return Motion(layout, q, None, placement(layout.tree, q), None)


def _contact(system, part: Contact) -> daedal.Contact:
    layout = system.layout
    tangents = [_along(layout, partial(part.slide, k=k)) for k in range(1 if layout.planar else 2)]
    return daedal.Contact(
        lambda t, q: part.gap(_motion(layout, q)),
        part.restitution,
        name=part.name,
        tangent=tangents if part.friction else None,
        mu=part.friction,
        mu_static=part.static,
    )


def _brake(system, part: JointFriction) -> daedal.Contact:
    """Friction at a joint beside other friction or contacts: surfaces that a known force presses on each other."""
    if part.torque is None or part.stribeck is not None:
        what = "a coefficient" if part.torque is None else "stribeck"
        raise InvalidProblemError(
            f"{part!r}: beside contacts or friction at other joints the level must be a torque or force that does not "
            f"depend on the speed, not {what}. Remedy: torque=... and static=... alone, or SmoothFriction"
        )
    static = None if part.static is None else part.static / part.torque
    along = _along(system.layout, part.slide)
    return daedal.Contact(tangent=along, mu=1.0, mu_static=static, normal=part.torque, name=part.name)


def _along(layout, load):
    """The generalised force of a load of size 1, a function of (t, q): J^T by a tree without masses at rest."""
    tree = layout.tree
    n, n_v = tree.father.size, int(tree.first_v[-1])
    massless = tree._replace(mass=np.zeros(n), inertia=np.zeros((n, 3, 3)))
    still = Velocities(np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)))
    lifted, nothing, at_rest = layout.n_q > layout.n_v, np.zeros(n), np.zeros(layout.n_q)

    def along(t, q):
        motion = _motion(layout, q)
        loads = Loads(layout, motion.placed)
        load(motion, loads)
        tau = loads.joint_forces - rnea(massless, motion.placed, still, np.zeros(n_v), loads.forces, loads.torques)
        return lifted_force(tree, q, at_rest, tau, nothing) if lifted else tau

    return along


def _rough_joint(system, part: JointFriction) -> daedal.Friction:
    layout = system.layout
    along = _along(layout, part.slide)
    if part.torque is not None:
        static = None if part.static is None else part.static / part.torque
        return daedal.Friction(system, along, 1.0, normal=part.torque, mu_static=static, stribeck=part.stribeck)
    if not layout.planar or not isinstance(system.model.joint(part.joint), Prismatic):
        raise InvalidProblemError(
            f"{part!r}: a coefficient needs a prismatic joint in a model of the plane, where one force presses; "
            f"'{part.joint}' is not. Remedy: torque=..."
        )
    pressing = [i for i, name in enumerate(layout.closing_joints) if name == part.joint]
    pressing = [i for i in pressing if layout.closures.kind[i] == ALONG]
    if not pressing:
        raise InvalidProblemError(
            f"{part!r}: the normal force of joint '{part.joint}' is a multiplier only if the joint is a constraint. "
            "Remedy: coordinates='absolute', or cut=[...] with its name"
        )
    return daedal.Friction(
        system, along, part.coefficient, constraint=pressing[0], mu_static=part.static, stribeck=part.stribeck
    )
