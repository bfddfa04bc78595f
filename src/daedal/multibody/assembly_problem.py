r"""Assembly: positions and velocities that satisfy all joints, near a rough guess and with given joint values.

.. math:: g(t, q) = 0, \qquad K v + k = 0,

with some joint coordinates and velocities held. The unknowns are the coordinates of a spanning tree, in which only
the joints that close loops impose conditions.

Loops are closed by the Levenberg-Marquardt method, which finds the nearest zero of possibly dependent conditions. A
step is :math:`-V\, s / (s^2 + \mu)\, U^T r` with the singular values s of the Jacobian :math:`U s V^T`; for
:math:`\mu = 0` it is the Gauss-Newton step of smallest norm, and :math:`\mu` grows if the residual does not decrease
(Nocedal and Wright, *Numerical Optimization*, 10.3). Steps are bounded, so that the branch near the guess is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.multibody.body import parameters_of
from daedal.multibody.constraint import drives_in_words
from daedal.multibody.joints import Joint
from daedal.multibody.kinematics import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION, coordinate_rates, map_matrix
from daedal.multibody.poses import (
    Held,
    Start,
    characteristic_length,
    coordinates_of,
    first_guess,
    gap_of,
    held_rates,
    held_values,
    length_flags,
    pose_of,
    relative_pose,
    seen_from_the_parent,
    stated_joints,
    states_of,
    velocities_of,
)

_SIDES = {"+": 1.0, "-": -1.0}


def assemble(model, values, *, velocities, side, guess, coordinates, cut, t) -> Start:
    """See :meth:`daedal.multibody.Model.assemble`."""
    problem = AssemblyProblem(model, cut if coordinates == "relative" else (), t)
    q = problem.positions(values, side or {}, guess)
    v = problem.rates(q, velocities or {})
    return Start(q, v, model, problem.layout, t).in_coordinates(coordinates, cut=cut)


class AssemblyProblem:
    """The position and velocity problem of a model in the coordinates of a spanning tree."""

    def __init__(self, model: Any, cut: Sequence[str] = (), t: float = 0.0):
        self.model, self.t = model, float(t)
        self.layout = model.layout("relative", cut)
        self.conditions = model.conditions(self.layout)
        self.joints = stated_joints(self.layout)
        self.length = characteristic_length(self.layout)
        self.column_scale = np.where(length_flags(self.layout), self.length, 1.0)

    # --- positions ----------------------------------------------------------------------------------------------------

    def positions(self, given: Mapping[str, Any], side: Mapping[str, str], guess: Any) -> np.ndarray:
        """Coordinates of the closed mechanism with the given joint values."""
        held = held_values(self.joints, given)
        signs = self._sides(side)
        start = self._guess(held, guess, signs)
        found = self.closed(start, held, signs)
        if not found.found:
            self._refuse(found.x, start, held)
        q = self._unwound(found.x, start, held)
        wrong = [name for name in signs if not self._on_side(q, name, signs[name])]
        if wrong:
            named = ", ".join(f"{name} {'>' if signs[name] > 0 else '<'} 0" for name in wrong)
            reached = ", ".join(f"{name} = {self._value(q, name):.6g}" for name in wrong)
            raise InconsistentInitialError(
                f"no assembly with {named} was found; the mechanism closes with {reached}. Remedy: give a guess "
                "for this joint, or omit side"
            )
        return q

    def closed(self, start: np.ndarray, held: Sequence[Held], signs: Mapping[str, float] | None = None) -> Closed:
        """Search for a closed position from `start`, in which some joints of the tree have given values."""
        free = ~self._fixed(held)
        rows = [one for one in held if not self._in_tree(one)]
        if not self.conditions.n_g and not rows:
            return Closed(start, 0.0)
        scale = self._row_scale(start, rows, free)

        def whole(x):
            q = start.copy()
            q[free] = x * self.column_scale[free]
            return q

        def residual(x):
            return self._residual(whole(x), rows) / scale

        def jacobian(x):
            return self._jacobian(whole(x), rows)[:, free] * self.column_scale[free] / scale[:, None]

        def accepted(x):
            return all(self._on_side(whole(x), name, sign) for name, sign in (signs or {}).items())

        found = search(residual, jacobian, start[free] / self.column_scale[free], accepted)
        return Closed(whole(found.x), found.size)

    def _guess(self, held: Sequence[Held], guess: Any, signs: Mapping[str, float]) -> np.ndarray:
        if isinstance(guess, Start):
            near = guess.in_coordinates("relative").q if guess.layout is not self.layout else guess.q
            return self._with_values(near, held)
        if guess is not None and not isinstance(guess, Mapping):
            raise InvalidProblemError(f"guess must be a dictionary of joint values or a start, got {guess!r}")
        hints = held_values(self.joints, {**(guess or {})})
        q = first_guess(self.layout, [*hints, *held], self.joints)
        for name, sign in signs.items():
            number = self.joints[name].number
            if number >= 0 and name not in {one.joint.name for one in held} and not self._on_side(q, name, sign):
                joint = self.joints[name].joint
                size = 1.0 if joint.turn else self.length
                hint = Held(name, joint, np.array([0]), np.array([sign * size]))
                q = first_guess(self.layout, [*hints, *held, hint], self.joints)
        return q

    def _with_values(self, q: np.ndarray, held: Sequence[Held]) -> np.ndarray:
        q = q.copy()
        for one in held:
            if self._in_tree(one):
                number = self.joints[one.joint.name].number
                place = slice(self.layout.tree.first_q[number], self.layout.tree.first_q[number + 1])
                q[place] = self._tree_coordinates(one, q[place])
        return q

    def _tree_coordinates(self, one: Held, near=None) -> np.ndarray:
        stated = self.joints[one.joint.name]
        if stated.seen.a.body.name == stated.joint.a.body.name:
            return one.values
        return coordinates_of(stated.seen, *seen_from_the_parent(stated, one.values), near)

    def _in_tree(self, one: Held) -> bool:
        return one.is_whole and self.joints[one.joint.name].number >= 0

    def _fixed(self, held: Sequence[Held]) -> np.ndarray:
        fixed = np.zeros(self.layout.n_q, dtype=bool)
        for one in held:
            if self._in_tree(one):
                number = self.joints[one.joint.name].number
                fixed[self.layout.tree.first_q[number] : self.layout.tree.first_q[number + 1]] = True
        return fixed

    def _residual(self, q: np.ndarray, rows: Sequence[Held]) -> np.ndarray:
        further = []
        if rows:
            states = states_of(self.layout, q, np.zeros(q.size))
            further = [_excess(one.joint, *relative_pose(states, one.joint), one.values)[one.which] for one in rows]
        return np.concatenate([self.conditions.value(self.t, q), *further])

    def _jacobian(self, q: np.ndarray, rows: Sequence[Held]) -> np.ndarray:
        matrix = self.conditions.jacobian(self.t, q)[: self.conditions.n_g]
        return np.concatenate([matrix, self.rate_rows(q, rows)])

    def rate_rows(self, q: np.ndarray, rows: Sequence[Held]) -> np.ndarray:
        """The matrix that maps coordinate rates to velocities of the held joints."""
        if not rows:
            return np.zeros((0, q.size))
        columns = []
        tree = self.layout.tree
        for k in range(self.layout.n_v):
            unit = np.zeros(self.layout.n_v)
            unit[k] = 1.0
            states = states_of(self.layout, q, coordinate_rates(tree, q, unit))
            speeds = []
            for one in rows:
                values = coordinates_of(one.joint, *relative_pose(states, one.joint))
                speeds.append(velocities_of(states, one.joint, values)[one.which])
            columns.append(np.concatenate(speeds))
        return np.column_stack(columns) @ map_matrix(tree, q)

    def _row_scale(self, q: np.ndarray, rows: Sequence[Held], free: np.ndarray) -> np.ndarray:
        """Norms of the gradients at `q` and nearby, so that conditions of all units have equal weight."""
        beside = q + 0.1 * self.column_scale * np.cos(0.4 + 1.9 * np.arange(q.size)) * free
        norms = [np.linalg.norm(self._jacobian(x, rows) * self.column_scale, axis=1) for x in (q, beside)]
        n_g = self.conditions.n_g
        largest = np.maximum(*norms)
        return np.concatenate([self.conditions.scales(largest[:n_g]), np.where(largest > 0.0, largest, 1.0)[n_g:]])

    def _unwound(self, q: np.ndarray, start: np.ndarray, held: Sequence[Held]) -> np.ndarray:
        """Reduce angles after full turns to within half a turn of the guess, if this has no effect on the position."""
        turns = np.where(self._is_angle() & ~self._fixed(held), np.round((q - start) / (2.0 * np.pi)), 0.0)
        back = q - 2.0 * np.pi * turns
        same = np.allclose(self._residual(back, []), 0.0, atol=CLOSED * max(1.0, self.length))
        return back if np.any(turns) and same else q

    def _is_angle(self) -> np.ndarray:
        flags: list[bool] = []
        for joint in self.layout.topology.joints:
            turning = {ABOUT_Z: 1, ABOUT_Z_AND_Y: 2}.get(joint.turn, 0)
            n = len(joint.slides) + (joint.turn == ANY_ROTATION)
            flags += [False] * (n - turning) + [True] * turning
        return np.array(flags, dtype=bool)

    def _sides(self, side: Mapping[str, str]) -> dict[str, float]:
        signs = {}
        for name, sign in side.items():
            if sign not in _SIDES:
                raise InvalidProblemError(f"side of joint '{name}' must be '+' or '-', got {sign!r}")
            [one] = held_rates(self.joints, {name: np.zeros(len(self.model.joint(name).coordinates))})
            if one.which.size != 1:
                raise InvalidProblemError(
                    f"side: joint '{name}' has {one.which.size} coordinates; give a guess instead"
                )
            signs[name] = _SIDES[sign]
        return signs

    def _value(self, q: np.ndarray, name: str) -> float:
        joint = self.joints[name].joint
        return float(coordinates_of(joint, *relative_pose(states_of(self.layout, q, np.zeros(q.size)), joint))[0])

    def _on_side(self, q: np.ndarray, name: str, sign: float) -> bool:
        return sign * self._value(q, name) > 0.0

    # --- velocities ---------------------------------------------------------------------------------------------------

    def rates(self, q: np.ndarray, given: Mapping[str, Any]) -> np.ndarray:
        """Coordinate rates for the given joint velocities; all other rates are as small as possible."""
        held = held_rates(self.joints, given)
        if not held and not np.any(self.conditions.speed(self.t, q)):
            return np.zeros(q.size)
        v, mismatch = self._least_rates(q, held)
        if mismatch <= _CONSISTENT:
            return v
        if self._least_rates(q, [])[1] > _CONSISTENT:
            drives = drives_in_words(self.model.constraints) or "the constraints that depend on time"
            raise InconsistentInitialError(
                f"no motion satisfies {drives} at t = {self.t:g}: they are incompatible. Remedy: remove one of them, "
                "or make them compatible"
            )
        loose = [one.key for one in held if self._least_rates(q, [x for x in held if x is not one])[1] <= _CONSISTENT]
        named = ", ".join(f"{one.key} = {_printed(one)}" for one in held)
        if loose:
            remedy = f"Remedy: omit one of {', '.join(loose)}, or make them compatible"
        else:
            remedy = "Remedy: give fewer velocities, or assemble in another position; this one may be a dead point"
        raise InconsistentInitialError(f"no motion has the velocities {named}: the joints do not allow it. {remedy}")

    def _least_rates(self, q: np.ndarray, held: Sequence[Held]) -> tuple[np.ndarray, float]:
        matrix = np.concatenate([self.conditions.jacobian(self.t, q), self.rate_rows(q, held)]) * self.column_scale
        right = np.concatenate([-self.conditions.speed(self.t, q), *(one.values[one.which] for one in held)])
        norms = self.conditions.scales(np.linalg.norm(matrix, axis=1))
        x = np.linalg.lstsq(matrix / norms[:, None], right / norms, rcond=1e-10)[0]
        mismatch = np.linalg.norm((matrix @ x - right) / norms)
        return x * self.column_scale, float(mismatch / max(float(np.linalg.norm(right / norms)), 1e-300))

    # --- joints that cannot be closed ---------------------------------------------------------------------------------

    def _refuse(self, q: np.ndarray, start: np.ndarray, held: Sequence[Held]):
        gaps = self._gaps(q)
        values = ", ".join(f"{one.key} = {_printed(one)}" for one in held)
        loose = []
        for one in held:
            found = self.closed(start, [other for other in held if other is not one])
            if found.found:
                loose.append(f"{one.key} ({self._reached(found.x, one)})")
        message = f"the mechanism cannot be closed{' with ' + values if values else ''}: {'; '.join(gaps)}."
        if loose:
            message += f" It closes if one of these is released, with the value in brackets: {', '.join(loose)}."
        elif held:
            message += " Omitting any one of these values does not close it."
        else:
            message += (
                " Remedy: check lengths and frames of the bodies in this loop, or give a guess nearer to the solution."
            )
        drives = drives_in_words(self.model.constraints)
        if drives:
            message += (
                f" At t = {self.t:g} the motion is prescribed by {drives}, which must be compatible with the "
                "joints and each other."
            )
        raise InconsistentInitialError(message, residual=self.conditions.value(self.t, q))

    def _reached(self, q: np.ndarray, one: Held) -> str:
        states = states_of(self.layout, q, np.zeros(q.size))
        values = coordinates_of(one.joint, *relative_pose(states, one.joint))
        return ", ".join(
            f"{value:.6g}" for value in (values[one.which] if values.size == len(one.joint.slides) else values)
        )

    def _gaps(self, q: np.ndarray) -> list[str]:
        """Descriptions of the joints that stay open, with the largest gap first."""
        states = states_of(self.layout, q, np.zeros(q.size))
        found = []
        for joint in self.layout.topology.cut:
            distance, angle = gap_of(joint, *relative_pose(states, joint))
            found.append((distance / self.length + angle, _gap(joint, distance, angle)))
        worst = max((size for size, _ in found), default=0.0)
        words = [word for size, word in sorted(found, key=lambda pair: -pair[0]) if size > 1e-6 and size > 0.01 * worst]
        if words:
            return words
        values = self.conditions.value(self.t, q)
        k = int(np.argmax(np.abs(values))) if values.size else 0
        return [f"condition '{self.conditions.names[k]}' is off by {values[k]:.4g}" if values.size else "values differ"]


_CONSISTENT = 1e-8


def _gap(joint: Joint, distance: float, angle: float) -> str:
    parts = [f"a gap of {distance:.4g}"] if distance > 1e-9 else []
    parts += [f"an angle of {np.degrees(angle):.4g} degrees"] if angle > 1e-9 else []
    one, two = joint.bodies
    return f"joint '{joint.name}' between '{one}' and '{two}' stays open by {' and '.join(parts)}"


def _printed(one: Held) -> str:
    values = one.values[one.which] if one.values.size == len(one.joint.slides) else one.values
    return f"{values[0]:.6g}" if values.size == 1 else "(" + ", ".join(f"{x:.6g}" for x in values) + ")"


def _excess(joint: Joint, shift: np.ndarray, turn: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Deviation of a joint from given coordinates: minus the velocities that would remove it in unit time."""
    if joint.turn != ANY_ROTATION:
        values = coordinates_of(joint, shift, turn, target)
        return values - target
    wanted, turned = pose_of(joint, target)
    p = parameters_of(turned.T @ turn)
    n = len(joint.slides) - 3
    return np.concatenate([joint.slides[:n] @ (shift - wanted), 2.0 * p[1:]])


CLOSED = 1e-10
"""Conditions, scaled to gradients of norm 1, count as satisfied below this value."""
_LONGEST = 0.5
_RANK = 1e-10
_MOST = 120
_AMPLITUDES = (0.02, 0.3, 1.0, 3.0)


class Closed(NamedTuple):
    """End point of the search, and the norm of the conditions at this point."""

    x: np.ndarray
    size: float

    @property
    def found(self) -> bool:
        """Whether the conditions are satisfied."""
        return self.size <= CLOSED


Conditions = Callable[[np.ndarray], np.ndarray]


def nearest_zero(residual: Conditions, jacobian: Conditions, x: np.ndarray) -> Closed:
    """Find a zero of `residual` near `x`, otherwise a nearby point of smallest residual."""
    r = residual(x)
    size, damping = float(np.linalg.norm(r)), 0.0
    for _ in range(_MOST):
        if size == 0.0 or not np.isfinite(size):
            break
        U, s, V = np.linalg.svd(jacobian(x), full_matrices=False)
        largest = float(s[0]) if s.size else 0.0
        if largest == 0.0:
            break
        s, along = np.where(s > _RANK * largest, s, 0.0), U.T @ r
        if np.linalg.norm(s * along) <= 1e-13 * largest * size and size > CLOSED:
            break  # stationary point: the gradient of the sum of squares vanishes
        moved = None
        for _ in range(12):
            share = np.divide(s, s**2 + damping, out=np.zeros_like(s), where=s > 0.0)
            step = -V.T @ (share * along)
            longest = float(np.max(np.abs(step), initial=0.0))
            step *= min(1.0, _LONGEST / longest) if longest > 0.0 else 1.0
            ahead = residual(x + step)
            if np.linalg.norm(ahead) < size:
                moved = x + step
                break
            if size <= CLOSED:
                break
            damping = max(4.0 * damping, 1e-4 * largest**2)
        if moved is None:
            break
        before, size, x, r = size, float(np.linalg.norm(ahead)), moved, ahead
        damping = damping * 0.1 if damping > 1e-8 * largest**2 else 0.0
        if size > CLOSED and before - size < 1e-10 * before:
            break
    return Closed(x, size if np.isfinite(size) else np.inf)


def search(residual: Conditions, jacobian: Conditions, x: np.ndarray, accepted: Callable[[np.ndarray], bool]) -> Closed:
    """Search for an acceptable zero from points at increasing distance from `x`, otherwise return the best point found.

    An unacceptable zero is better than a point that is not a zero.
    """
    best = nearest_zero(residual, jacobian, x)
    if (best.found and accepted(best.x)) or x.size == 0:
        return best
    generator = np.random.default_rng(17)
    tries = 6 if x.size <= 60 else 1
    for amplitude in _AMPLITUDES:
        ends = [
            nearest_zero(residual, jacobian, x + amplitude * generator.uniform(-1.0, 1.0, x.size)) for _ in range(tries)
        ]
        good = [end for end in ends if end.found and accepted(end.x)]
        if good:
            return min(good, key=lambda end: float(np.linalg.norm(end.x - x)))
        best = min([best, *ends], key=lambda end: end.size if not end.found else 0.0)
    return best
