r"""Inverse dynamics: forces of chosen joints that produce a given motion.

With the coordinates c(q) of these joints, :math:`M \ddot q + K^T \lambda = f + c_q^T \tau`. Projection onto the
admissible directions Z, K Z = 0, eliminates the multipliers,

.. math:: (c_q Z)^T \tau = Z^T (M \ddot q - f),

which are then computed from :math:`\tau`. For a tree with all joints actuated, this is ``rnea``. Prescribed
motions are not constraints here; their forces are those of the actuated joints.

The module also computes coordinates of chosen joints from those of a layout, with exact derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError
from daedal.multibody.assembly_problem import AssemblyProblem
from daedal.multibody.constraint import Prescribed, PrescribedMotion, named_coordinate
from daedal.multibody.joint_coordinates import angle_name, coordinate_of
from daedal.multibody.kinematics import ANY_ROTATION, placement
from daedal.multibody.motion import Motion
from daedal.multibody.multibody_system import Conditions, null_space
from daedal.multibody.poses import Start, StatedJoint, held_rates, named_coordinates, stated_joints
from daedal.problems import MechanicalSystem

_SMALL = 1e-7


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Forces for a given motion.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
        The times.
    forces : dict
        Torque or force of each actuated joint over time, shape (nt,), or (n, nt) for n coordinates: on the second body
        of the joint, with the reaction on the first.
    lam : numpy.ndarray, shape (n_lambda, nt)
        The multipliers of the constraints.
    redundant : bool
        Whether more joints are actuated than the motion requires, so that forces of smallest norm were chosen.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> needed = model.inverse_dynamics(model.assemble(pivot=0.0), accelerations={"pivot": 0.0})
    >>> print(needed["pivot"])
    [9.81]
    """

    t: np.ndarray
    forces: dict[str, np.ndarray]
    lam: np.ndarray
    redundant: bool

    def __getitem__(self, joint: str) -> np.ndarray:
        """The torque or force of a joint."""
        return self.forces[joint]

    def __str__(self):
        lines = [f"{name}: up to {np.nanmax(np.abs(force)):.6g}" for name, force in self.forces.items()]
        note = ["more joints are actuated than the motion requires: forces of smallest norm"] if self.redundant else []
        return "\n".join(["forces for a given motion", *lines, *note])


def inverse_dynamics(model, motion, by: Sequence[str] | None, accelerations, coordinates, cut) -> InverseDynamics:
    """See :meth:`daedal.multibody.Model.inverse_dynamics`."""
    if isinstance(motion, Start):
        layout, t, q, v, a = _at_start(model, motion, accelerations or {})
    elif accelerations is not None:
        raise InvalidProblemError(
            "accelerations can be given with a start only; a motion over time determines them itself"
        )
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
        Z = null_space(K, np.ones(q.shape[0]), conditions.sizes(holds.size)[holds])
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
    """The coordinates of a motion in this model, which may lack drives of the original model."""
    layout = getattr(motion, "layout", None)
    if layout is None:
        return model.layout(coordinates, cut)
    if motion.model is model:
        return layout
    own = model.layout("relative", tuple(joint.name for joint in layout.topology.cut))
    if own.names != layout.names:
        raise InvalidProblemError(
            f"the motion has the coordinates {listing(layout.names)}, but the model has {listing(own.names)}. "
            "Remedy: use the original model, or one that differs from it only in drives and forces"
        )
    return own


def _prescribed(model: Any) -> tuple[str, ...]:
    """The joints with prescribed motions; if frames are guided, all moving joints."""
    if any(isinstance(one, PrescribedMotion) for one in model.constraints):
        return _every(model.layout())
    pairs = [named_coordinate(one.joint) for one in model.constraints if isinstance(one, Prescribed)]
    names = [(getattr(joint, "name", joint), which) for joint, which in pairs]
    return tuple(name if which is None else f"{name}.{which}" for name, which in names)


def _of_drives(layout: Any, n: int) -> np.ndarray:
    """Mask of length n of the conditions that prescribe a motion."""
    sizes = [(one, one.size(layout.planar)) for one in layout.constraints]
    rolling = sum(one.velocity_size(layout.planar) for one in layout.constraints)
    flags = [isinstance(one, (Prescribed, PrescribedMotion)) for one, size in sizes for _ in range(size)]
    return np.array([False] * (n - rolling - len(flags)) + flags + [False] * rolling, dtype=bool)


def _of_motion(layout: Any, motion: Any) -> tuple:
    try:
        t, q, v, a = (np.asarray(getattr(motion, name), dtype=float) for name in ("t", "q", "v", "a"))
    except AttributeError:
        raise InvalidProblemError(
            "motion must be a start, the result of model.kinematics, or a solution of the model's system"
        ) from None
    if q.shape[0] != layout.n_q:
        raise InvalidProblemError(
            f"the motion has {q.shape[0]} coordinates, but the model {layout.n_q}; pass the same `coordinates` and "
            "`cut` as in its solution"
        )
    return t, q, v, a


def _states(motion: Any, n_r: int, n_t: int) -> np.ndarray:
    r = motion[2] if isinstance(motion, Start) and len(motion) > 2 else getattr(motion, "r", None)
    return np.zeros((n_r, n_t)) if r is None or np.size(r) != n_r * n_t else np.reshape(r, (n_r, n_t))


def _every(layout: Any) -> tuple[str, ...]:
    joints = layout.topology.joints[: layout.n_bodies]
    return tuple(joint.name for joint in joints if joint.n_free)


def _at_start(model: Any, start: Start, accelerations: Mapping[str, Any]) -> tuple:
    """The state of a start, with the accelerations of smallest norm among those with given joint accelerations."""
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
        raise InvalidProblemError(f"the joints do not allow the given accelerations of {named} simultaneously")
    return layout, np.array([t]), q[:, None], v[:, None], a[:, None]


def _refuse(layout: Any, keys: Sequence[str], t: float, missing: np.ndarray):
    k = int(np.argmax(np.abs(missing)))
    j = int(np.searchsorted(layout.tree.first_q, k, side="right")) - 1
    raise InvalidProblemError(
        f"forces of {', '.join(map(repr, keys)) or 'no joint'} cannot produce this motion at t = {t:.6g}: joint "
        f"'{layout.topology.joints[j].name}' would move differently. Remedy: actuate it too (by=...)"
    )


class MeasuredCoordinates:
    r"""Coordinates c(q) of joints, by the name of the joint or "joint.coordinate".

    Parameters
    ----------
    model, layout : Model, Layout
        The layout in relative coordinates.
    joints : mapping
        Result of :func:`daedal.multibody.poses.stated_joints`.
    keys : sequence of str
        The joints or coordinates.
    turned : mapping of str to matrix
        For joints with spatial rotation, a reference orientation, relative to which rotations are three small angles.
    """

    def __init__(
        self,
        model: Any,
        layout: Any,
        joints: Mapping[str, StatedJoint],
        keys: Sequence[str],
        turned: Mapping[str, np.ndarray] | None = None,
    ):
        self.rows = [row for key in keys for row in _rows(joints, key, turned or {})]
        self.sizes = {key: sum(row.key == key for row in self.rows) for key in keys}
        tree, rows = layout.tree, self.rows

        def constraint(t, q):
            motion = Motion(layout, q, None, placement(tree, q), None)
            return [
                motion.coordinate(row.joint, row.which)
                if row.turn is None
                else _small_angle(motion, joints[row.key].joint, row.turn, "xyz".index(row.which))
                for row in rows
            ]

        self._conditions = Conditions(
            MechanicalSystem(
                1.0,
                lambda t, q, v: 0.0 * q,
                constraint if rows else None,
                n_q=layout.n_q,
                n_constraints=len(rows),
            )
        )
        found = [None if row.turn is not None else coordinate_of(layout, row.joint, row.which) for row in rows]
        self._in_tree = all(one is not None and one.q >= 0 for one in found)
        self._wraps = np.array(
            [
                one is not None and one.turns and one.q < 0 and angle_name(one) not in layout.counted_angles
                for one in found
            ],
            bool,
        )

    def values(self, q: np.ndarray, near: np.ndarray) -> np.ndarray:
        """c, with angles reduced by full turns to within half a turn of `near`."""
        values = self._conditions.value(0.0, q)
        return np.where(self._wraps, values + 2.0 * np.pi * np.round((near - values) / (2.0 * np.pi)), values)

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        r""":math:`c_q`."""
        return self._conditions.jacobian(0.0, q)

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        r""":math:`-(c_q v)_q v`, the term in :math:`c_q \ddot q = \ddot c - (c_q v)_q v`."""
        return self._conditions.bias(0.0, q, v)

    def curvature(self, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
        r""":math:`(c_q^T \lambda)_q`, by differences of the exact :math:`c_q`; zero for joints of the tree."""
        matrix = np.zeros((q.size, q.size))
        if np.any(lam) and not self._in_tree:
            for k in range(q.size):
                h = np.zeros(q.size)
                h[k] = 6e-6 * max(1.0, abs(q[k]))
                matrix[:, k] = (self.jacobian(q + h) - self.jacobian(q - h)).T @ lam / (2.0 * h[k])
        return matrix


class _Row(NamedTuple):
    key: str
    joint: str
    which: str
    turn: np.ndarray | None = None  # orientation relative to which a small angle about this axis is measured


def _rows(joints: Mapping[str, StatedJoint], key: str, turned: Mapping[str, np.ndarray]) -> list[_Row]:
    joint, which = named_coordinates(joints, key)
    if joint.turn == ANY_ROTATION and key in turned:
        shifts = [_Row(key, joint.name, joint.coordinates[k]) for k in map(int, which[:-3])]
        return [*shifts, *(_Row(key, joint.name, axis, turned[key]) for axis in "xyz")]
    if joint.turn == ANY_ROTATION and int(which[-1]) >= len(joint.slides) - 3:
        raise InvalidProblemError(
            f"'{key}' is a spatial rotation, which cannot be specified by numbers over time; name its displacements "
            "individually, or use other joints"
        )
    return [_Row(key, joint.name, joint.coordinates[k]) for k in map(int, which)]


def _small_angle(motion: Motion, joint: Any, turn: np.ndarray, k: int):
    """The sine of the rotation of the second frame of a joint from `turn`, about axis k of `turn`."""
    first, second = motion.rotation(joint.a) @ turn, motion.rotation(joint.b)
    i, j = (k + 1) % 3, (k + 2) % 3
    return 0.5 * (np.dot(first[:, j], second[:, i]) - np.dot(first[:, i], second[:, j]))


Course = Callable[[float], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Value, rate and second derivative at a time."""


def course_of(key: str, given: Any, n: int, t: np.ndarray) -> Course:
    """The motion of `n` coordinates from a function of time, values at `t` (by a quintic spline), or constants."""
    if callable(given):
        return _of_function(given, n)
    values = np.asarray(given, dtype=float)
    if values.shape in ((), (n,)) and not (n == 1 and values.shape == (t.size,)):
        still = np.zeros(n)
        return lambda t: (np.broadcast_to(values, (n,)), still, still)
    if n == 1 and values.shape == (t.size,):
        values = values.reshape(1, -1)
    if values.shape != (n, t.size) or not np.all(np.isfinite(values)):
        raise InvalidProblemError(
            f"the motion of '{key}' must be a function of time, a number, or one finite value for each of the "
            f"{t.size} times; got an array of shape {np.shape(given)}"
        )
    from scipy.interpolate import make_interp_spline

    spline = make_interp_spline(t, values, k=min(5, t.size - 1), axis=1)
    return lambda t: (spline(t), spline(t, 1), spline(t, 2))


def _of_function(function: Any, n: int) -> Course:
    def constraint(t, q):
        value = function(t)
        return [value] if np.ndim(value) == 0 else [value[k] for k in range(n)]

    conditions = Conditions(MechanicalSystem(1.0, lambda t, q, v: 0.0 * q, constraint, n_q=1, n_constraints=n))
    q = np.zeros(1)
    return lambda t: (conditions.value(t, q), conditions.speed(t, q), -conditions.bias(t, q, q))
