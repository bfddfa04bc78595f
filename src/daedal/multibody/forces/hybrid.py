"""Models with contacts and friction as problems with modes."""

from __future__ import annotations

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

FREE = "free"


class ContactProblem(daedal.HybridProblem):
    """A model with contacts; a run may begin with (q, v) alone: with all contacts open, those that touch close at once.

    See :func:`daedal.unilateral` for modes and transitions.
    """

    def entry(self, t_span, initial):
        """(mode, initial values) with which a run begins."""
        if isinstance(initial, (tuple, list)) and len(initial) and not isinstance(initial[0], str):
            return FREE, tuple(initial)
        return initial


def problem_of(model: Any, system: Any, law: str, rest_speed: float) -> daedal.HybridProblem:
    """The hybrid problem of a model with contacts without friction, or with friction in one place."""
    rough = [part for part in model.discontinuities if isinstance(part, JointFriction) or part.friction]
    if not rough:
        contacts = [_contact(system, part) for part in model.discontinuities]
        hybrid = daedal.unilateral(system, contacts, law=law, rest_speed=rest_speed)
        return ContactProblem(hybrid.modes, hybrid.transitions)
    if len(model.discontinuities) > 1:
        names = ", ".join(repr(part) for part in model.discontinuities)
        raise InvalidProblemError(
            f"the model has {names}; friction that sticks can be combined neither with contacts nor with friction in "
            "other places. Remedy: SmoothFriction for joints, SoftContact for contacts, which any model may have"
        )
    [part] = rough
    if isinstance(part, JointFriction):
        return _rough_joint(_with_derivatives(system), part)
    return _rough_contact(system, part)


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
    gradient = _along(layout, part.push) if layout.n_q == layout.n_v else None  # of Euler parameters, a part is lost
    return daedal.Contact(lambda t, q: part.gap(_motion(layout, q)), part.restitution, gradient, name=part.name)


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


def _rough_contact(system, part: Contact) -> daedal.Friction:
    if not system.layout.planar:
        raise InvalidProblemError(f"{part!r}: friction of contacts is for models of the plane (planar=True)")
    layout, count, others = system.layout, system.n_constraints, system.constraint

    def constraint(t, q):
        gap = np.zeros(1)
        gap[0] = part.gap(_motion(layout, q))
        return np.concatenate([others(t, q), gap]) if count else gap

    names = list(system.constraint_names or ())
    names.insert(count, part.name)
    held = system.replaced(constraint=constraint, n_constraints=count + 1, constraint_names=names)
    along = _along(layout, part.slide)
    return daedal.Friction(_with_derivatives(held), along, part.friction, constraint=count, unilateral=True)


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
