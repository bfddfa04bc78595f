"""Common code of machines, which are modelled by bodies and joints.

``model.extra`` contains, in addition to the entries of mechanical models,

* ``machine``: the :class:`daedal.multibody.Model`, for drawings, reports and assembly in other positions;
* ``energy(q, v)``: kinetic energy plus potential energy of gravity and springs;
* ``exact(t)`` if the motion is known in closed form.

References are given in joint coordinates. In the plane they are converted to the requested coordinates; in space there
is no reference for absolute coordinates, since Euler parameters of a rotation are unique only up to sign.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from daedal.library.registry import Model, check_positive, mechanical_model
from daedal.multibody import Model as Machine
from daedal.multibody import Start
from daedal.multibody.kinematics import joint_velocities, placement, velocities
from daedal.multibody.motion import Motion

MACHINE_EQUATIONS = r"M(q)\,q'' = f(q, q') - G(q)^T \lambda,\qquad 0 = g(q)"
"""Equations of all machines; the terms follow from bodies and joints."""


def machine_model(
    machine: Machine,
    start: Start,
    t1: float,
    coordinates: str,
    cut: tuple[str, ...] = (),
    *,
    exact: Callable[[float], np.ndarray] | None = None,
    known: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
    **others: Any,
) -> Model:
    """A machine on [0, t1] in the given coordinates.

    `start`, `exact` and `known` are in joint coordinates; the joints in `cut` close loops.
    """
    check_positive(t1=t1)
    cut = cut if coordinates == "relative" else ()
    problem = machine.system(coordinates, cut=cut)
    if coordinates != "relative" and not machine.planar:
        exact = known = None
    closed = None if exact is None else lambda t: converted(start, exact(t), coordinates, cut)
    if known is not None:
        known = {**known, "y": converted(start, np.array(known["y"]), coordinates, cut)}
    return mechanical_model(
        problem,
        start.in_coordinates(coordinates, cut=cut),
        t1,
        exact=closed,
        known=known,
        energy=energy_of(problem),
        extra={"machine": machine, **(extra or {})},
        **{"equations": MACHINE_EQUATIONS, "index": 3 if problem.n_constraints else 0, **others},
    )


def converted(start: Start, y: np.ndarray, coordinates: str, cut: tuple[str, ...]) -> np.ndarray:
    """Convert the vector (q, v) from joint coordinates to other coordinates."""
    q, v = np.split(y, 2)
    return np.concatenate(Start(q, v, start.model, start.layout).in_coordinates(coordinates, cut=cut))


def energy_of(problem) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Energy of a state (q, v) of a machine, or of many states in columns."""
    machine, layout = problem.model, problem.layout
    tree = layout.tree

    def energy(q, v):
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if q.ndim == 2:
            return np.array([energy(*state) for state in zip(np.ascontiguousarray(q.T), np.ascontiguousarray(v.T))])
        placed, u = placement(tree, q), joint_velocities(tree, q, v)
        motion = Motion(layout, q, u, placed, velocities(tree, placed, u))
        stored = sum(force.energy(0.0, motion) for force in machine.forces)
        weight = np.sum(tree.mass[:, None] * placed.r * tree.gravity)
        return float(0.5 * v @ problem.mass(0.0, q) @ v - weight + stored)

    return energy
