r"""Inverse dynamics: the forces of chosen joints that a given motion takes.

With the coordinates c(q) of these joints, :math:`M \ddot q + K^T \lambda = f + c_q^T \tau`. In the directions Z that
the constraints allow, K Z = 0, the multipliers drop out,

.. math:: (c_q Z)^T \tau = Z^T (M \ddot q - f),

and then follow. For a tree whose joints all act, this is what ``rnea`` gives. Motions that are prescribed are no
constraints here: their forces are those of the joints that act.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError
from daedal.multibody.assembly import AssemblyProblem
from daedal.multibody.constraints import Prescribed, PrescribedMotion
from daedal.multibody.constraints.base import named_coordinate
from daedal.multibody.equations import null_space
from daedal.multibody.held import held_rates, stated_joints
from daedal.multibody.measures import MeasuredCoordinates
from daedal.multibody.start import Start

_SMALL = 1e-7


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Forces for a given motion.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
        The times.
    forces : dict
        For each joint that acts its torque or force over time, shape (nt,), or (n, nt) for n coordinates: on its second
        body, with the opposite on the first.
    lam : numpy.ndarray, shape (n_lambda, nt)
        The multipliers of the constraints.
    redundant : bool
        Whether more joints act than the motion needs, so that forces of smallest norm were chosen among many.
    """

    t: np.ndarray
    forces: dict[str, np.ndarray]
    lam: np.ndarray
    redundant: bool

    def __getitem__(self, joint: str) -> np.ndarray:
        """The force of a joint."""
        return self.forces[joint]

    def __str__(self):
        lines = [f"{name}: up to {np.nanmax(np.abs(force)):.6g}" for name, force in self.forces.items()]
        note = ["more joints act than the motion needs: forces of smallest norm"] if self.redundant else []
        return "\n".join(["forces for a given motion", *lines, *note])


def inverse_dynamics(model, motion, by: Sequence[str] | None, accelerations, coordinates, cut) -> InverseDynamics:
    """See :meth:`daedal.multibody.Model.inverse_dynamics`."""
    if isinstance(motion, Start):
        layout, t, q, v, a = _at_start(model, motion, accelerations or {})
    elif accelerations is not None:
        raise InvalidProblemError("accelerations are given with a start only; a motion over time has its own")
    else:
        layout = _layout_of(model, motion, coordinates, cut)
        t, q, v, a = _of_motion(layout, motion)
    driven = (*(getattr(motion, "driven", ()) or tuple(accelerations or ())), *_prescribed(model))
    keys = tuple(by) if by is not None else tuple(dict.fromkeys(driven)) or _every(layout)
    measures = MeasuredCoordinates(model, layout, stated_joints(layout), keys)
    conditions, equations = model.conditions(layout), model.equations(layout)
    r = _states(motion, equations.n_r, t.size)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    redundant, holds = False, ~_of_drives(layout, conditions.n_g + conditions.n_hat)
    for i in range(t.size):
        if not np.all(np.isfinite(a[:, i])):
            found.append((np.full(len(measures.rows), np.nan), np.full(conditions.n_g + conditions.n_hat, np.nan)))
            continue
        K, C = conditions.jacobian(t[i], q[:, i])[holds], measures.jacobian(q[:, i])
        Z = null_space(K, np.ones(q.shape[0]))
        needed = equations.mass(t[i], q[:, i]) @ a[:, i] - equations.force(t[i], q[:, i], v[:, i], r[:, i])
        acting = (C @ Z).T
        tau, _, rank, _ = np.linalg.lstsq(acting, Z.T @ needed, rcond=1e-9)
        redundant = redundant or int(rank) < tau.size
        missing = acting @ tau - Z.T @ needed
        if np.linalg.norm(missing) > _SMALL * max(1.0, float(np.linalg.norm(needed))):
            _refuse(layout, keys, float(t[i]), Z @ missing)
        lam = np.zeros(holds.size)
        lam[holds] = np.linalg.lstsq(K.T, C.T @ tau - needed, rcond=1e-12)[0]
        found.append((tau, lam))
    tau, lam = (np.column_stack(part) for part in zip(*found))
    ends = np.cumsum(list(measures.sizes.values()))
    forces = {key: tau[end - n : end] if n > 1 else tau[end - 1] for (key, n), end in zip(measures.sizes.items(), ends)}
    return InverseDynamics(t, forces, lam, redundant)


def _layout_of(model: Any, motion: Any, coordinates: str, cut: Sequence[str]) -> Any:
    """The coordinates of a motion, in this model, which may lack the drives of the one that has moved."""
    layout = getattr(motion, "layout", None)
    if layout is None:
        return model.layout(coordinates, cut)
    if motion.model is model:
        return layout
    own = model.layout("relative", tuple(joint.name for joint in layout.topology.cut))
    if own.names != layout.names:
        raise InvalidProblemError(
            f"the motion is one of the coordinates {listing(layout.names)}, the model has {listing(own.names)}. "
            "Remedy: take the model that has moved, or one that differs from it in drives and forces only"
        )
    return own


def _prescribed(model: Any) -> tuple[str, ...]:
    """The joints whose motions are prescribed; all that move if frames are led."""
    if any(isinstance(one, PrescribedMotion) for one in model.constraints):
        return _every(model.layout())
    pairs = [named_coordinate(one.joint) for one in model.constraints if isinstance(one, Prescribed)]
    names = [(getattr(joint, "name", joint), which) for joint, which in pairs]
    return tuple(name if which is None else f"{name}.{which}" for name, which in names)


def _of_drives(layout: Any, n: int) -> np.ndarray:
    """Which of n conditions prescribe a motion."""
    sizes = [(one, one.size(layout.planar)) for one in layout.constraints]
    rolling = sum(one.velocity_size(layout.planar) for one in layout.constraints)
    flags = [isinstance(one, (Prescribed, PrescribedMotion)) for one, size in sizes for _ in range(size)]
    return np.array([False] * (n - rolling - len(flags)) + flags + [False] * rolling, dtype=bool)


def _of_motion(layout: Any, motion: Any) -> tuple:
    try:
        t, q, v, a = (np.asarray(getattr(motion, name), dtype=float) for name in ("t", "q", "v", "a"))
    except AttributeError:
        raise InvalidProblemError(
            "motion must be a start, what model.kinematics gives, or a solution of the model's system"
        ) from None
    if q.shape[0] != layout.n_q:
        raise InvalidProblemError(
            f"the motion has {q.shape[0]} coordinates, the model {layout.n_q}; say in which coordinates it was solved"
        )
    return t, q, v, a


def _states(motion: Any, n_r: int, n_t: int) -> np.ndarray:
    r = motion[2] if isinstance(motion, Start) and len(motion) > 2 else getattr(motion, "r", None)
    return np.zeros((n_r, n_t)) if r is None or np.size(r) != n_r * n_t else np.reshape(r, (n_r, n_t))


def _every(layout: Any) -> tuple[str, ...]:
    joints = layout.topology.joints[: layout.n_bodies]
    return tuple(joint.name for joint in joints if joint.n_free)


def _at_start(model: Any, start: Start, accelerations: Mapping[str, Any]) -> tuple:
    """The accelerations of smallest norm with those of some joints given."""
    if start.layout.n_q and start.layout is not model.layout("relative", ()):
        start = start.in_coordinates("relative")
    layout, q, v, t = start.layout, start.q, start.v, start.t
    assembly = AssemblyProblem(model, (), t)
    held = held_rates(assembly.joints, accelerations)
    measures = MeasuredCoordinates(model, layout, assembly.joints, [one.key for one in held])
    conditions = assembly.conditions
    matrix = np.concatenate([conditions.jacobian(t, q), measures.jacobian(q)])
    given = np.concatenate([np.zeros(0), *(one.values[one.which] for one in held)])
    right = np.concatenate([conditions.bias(t, q, v), given + measures.bias(q, v)])
    a = np.linalg.lstsq(matrix, right, rcond=1e-10)[0] if right.size else np.zeros(q.size)
    if right.size and np.linalg.norm(matrix @ a - right) > _SMALL * max(1.0, float(np.linalg.norm(right))):
        named = ", ".join(one.key for one in held)
        raise InvalidProblemError(f"the joints do not allow the given accelerations of {named} together")
    return layout, np.array([t]), q[:, None], v[:, None], a[:, None]


def _refuse(layout: Any, keys: Sequence[str], t: float, missing: np.ndarray):
    k = int(np.argmax(np.abs(missing)))
    j = int(np.searchsorted(layout.tree.first_q, k, side="right")) - 1
    raise InvalidProblemError(
        f"forces of {', '.join(map(repr, keys)) or 'no joint'} cannot bring this motion about at t = {t:.6g}: joint "
        f"'{layout.topology.joints[j].name}' would move otherwise. Remedy: let it act too (by=...)"
    )
