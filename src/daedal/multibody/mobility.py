r"""How a model can move at a configuration: rank of the constraints, conditions too many, motions without inertia.

With the Jacobian G of all constraints, there are :math:`n_q - \operatorname{rank} G` degrees of freedom. Gruebler's
count takes all conditions for independent. The two differ where a mechanism owes its mobility to its dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.index.linear.rank import rank_decision
from daedal.multibody.closing import CLOSED, Closed, nearest_zero
from daedal.multibody.conditions import Conditions
from daedal.multibody.coordinates import joint_velocities
from daedal.multibody.kinematics import placement, velocities
from daedal.multibody.tree import ANY_ROTATION

_TOLERANCE = 1e-5  # of ranks, with rows of norm one
_NO_INERTIA = 1e-12
_AMPLITUDES = (0.1, 0.3, 0.3, 1.0, 1.0, 1.0, 3.0, 3.0, 1.0, 1.0)  # of starts beside the first one
_PACE = 0.05  # with which a configuration is moved along the kernel of the constraints


class ScaledConditions:
    """The conditions of a model at t = 0, each divided by the largest norm that its gradient has somewhere."""

    def __init__(self, conditions: Conditions):
        self._conditions, self.n_g = conditions, conditions.n_g
        self._norms = np.zeros((conditions.n_g + conditions.n_hat, 1))

    def look(self, q: np.ndarray):
        """Take the norms at a configuration into account."""
        rows = self._conditions.jacobian(0.0, q)
        self._norms = np.maximum(self._norms, np.linalg.norm(rows, axis=1, keepdims=True))

    @property
    def norms(self) -> np.ndarray:
        """The norms; 1 for conditions that nothing changes."""
        return np.where(self._norms > 0.0, self._norms, 1.0)

    def rows(self, q: np.ndarray) -> np.ndarray:
        """The Jacobian of the position constraints, then the rows of the velocity constraints."""
        return self._conditions.jacobian(0.0, q) / self.norms

    def closed(self, q: np.ndarray) -> Closed:
        """The nearest configuration in which all loops are closed."""

        def value(at):
            return self._conditions.value(0.0, at) / self.norms[: self.n_g, 0]

        return nearest_zero(value, lambda at: self.rows(at)[: self.n_g], q)


@dataclass(frozen=True, eq=False)
class Configuration:
    """A configuration in which all loops are closed, or the one with the smallest gap.

    Attributes
    ----------
    q : numpy.ndarray
        Coordinates.
    gap : float
        By how much loops are open.
    rows : numpy.ndarray
        The Jacobian of all constraints there, each row divided by what its norm is elsewhere.
    rank : RankDecision
        Its rank.
    regular : bool
        Whether the machine moves from there in all directions that the constraints allow, with the same rank; if not,
        it is singular there, or its mobility is infinitesimal.
    """

    q: np.ndarray
    gap: float
    rows: np.ndarray
    rank: Any
    regular: bool

    @property
    def closed(self) -> bool:
        """Whether the loops are closed."""
        return self.gap <= CLOSED


def configuration(conditions: Conditions, start: np.ndarray, tries: int = len(_AMPLITUDES)) -> Configuration:
    """A regular configuration with closed loops, from starts beside `start`, the nearest first."""
    generator = np.random.default_rng(1)
    scaled = ScaledConditions(conditions)
    best = None
    for amplitude in _AMPLITUDES[:tries]:
        beside = start + amplitude * generator.standard_normal(start.size)
        scaled.look(beside)
        end = scaled.closed(beside)
        gap = float(np.abs(conditions.value(0.0, end.x)).max(initial=0.0))
        rows = scaled.rows(end.x)
        regular = end.found and _is_regular(scaled, end.x, rows, generator)
        found = Configuration(end.x, 0.0 if end.found else gap, rows, decided(rows), regular)
        if found.regular:
            return found
        if best is None or _quality(found) > _quality(best):
            best = found
    assert best is not None
    return best


def _quality(one: Configuration) -> tuple[float, ...]:
    return (1, one.rank.rank) if one.closed else (0, -one.gap)


def _is_regular(scaled: ScaledConditions, q: np.ndarray, rows: np.ndarray, generator) -> bool:
    here, free = decided(rows), kernel_of(rows[: scaled.n_g])
    if not here.clear or not rows.size or not free.size:
        return here.clear
    way = free @ generator.standard_normal(free.shape[1])
    there = scaled.closed(q + _PACE * way / np.linalg.norm(way))
    same = decided(scaled.rows(there.x)).rank == here.rank
    return same and there.found and bool(np.linalg.norm(there.x - q) > 0.5 * _PACE)


def decided(rows: np.ndarray):
    """The rank of rows of norm one as a decision."""
    return rank_decision(rows, scale=1.0, tolerance=_TOLERANCE, what="constraints")


def kernel_of(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the velocities that constraints allow, as columns."""
    if not len(rows):
        return np.eye(rows.shape[1])
    _, sizes, vectors = np.linalg.svd(rows)
    return vectors[int(np.sum(sizes > _TOLERANCE)) :].T


def dependent(rows: np.ndarray) -> list[int]:
    """Rows that are combinations of rows before them."""
    basis = np.zeros((0, rows.shape[1]))
    found = []
    for i, row in enumerate(rows):
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        size = float(np.linalg.norm(rest))
        if size > _TOLERANCE:
            basis = np.vstack([basis, rest / size])
        else:
            found.append(i)
    return found


@dataclass(frozen=True)
class WithoutInertia:
    """A motion that no mass and no moment of inertia resists.

    Attributes
    ----------
    bodies : tuple of str
        The bodies that move and lack it.
    joints : tuple of str
        The joints of the tree that move.
    turning : bool
        Whether they have mass, but no moment of inertia about the axis of this motion.
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    turning: bool


def is_suspect(body, planar: bool) -> bool:
    """Whether a body has a motion without inertia at all: no mass, or no moment about some axis."""
    moments = body.inertia.moments[2:, 2:] if planar else body.inertia.moments
    values = np.linalg.eigvalsh(moments)
    return body.mass == 0.0 or bool(values[0] <= 1e-12 * values[-1])


def has_inertia(system, start: np.ndarray) -> bool:
    """Whether the mass matrix is positive definite without regard to constraints, at a configuration beside `start`."""
    q = start + 0.3 * np.random.default_rng(1).standard_normal(start.size)
    matrix = np.asarray(system.mass(0.0, q))
    sizes = np.sqrt(np.diag(matrix))
    if not np.all(sizes > 0.0):
        return False
    return bool(np.linalg.eigvalsh(matrix / np.outer(sizes, sizes))[0] > 1e-9)


def motions_without_inertia(system, at: Configuration) -> list[WithoutInertia]:
    r"""Velocities v with :math:`G v = 0` and :math:`v^T M v = 0` at a configuration."""
    layout = system.layout
    suspects = {body.name for body in layout.topology.bodies if is_suspect(body, layout.planar)}
    free = kernel_of(at.rows)
    if not suspects or not free.size:
        return []
    sizes, vectors = np.linalg.eigh(free.T @ system.mass(0.0, at.q) @ free)
    still = vectors[:, sizes <= _NO_INERTIA * max(float(sizes[-1]), 1e-300)]
    return [_described(layout, at.q, free @ vector, suspects) for vector in still.T]


def _described(layout, q, rate, suspects) -> WithoutInertia:
    tree, topology = layout.tree, layout.topology
    u = joint_velocities(tree, q, rate) if np.any(tree.turn == ANY_ROTATION) else rate
    moving = velocities(tree, placement(tree, q), u)
    speeds = np.linalg.norm(moving.linear, axis=1) + np.linalg.norm(moving.angular, axis=1)
    moved = [body for body, speed in zip(topology.bodies, speeds) if speed > 1e-6 * speeds.max()]
    lacking = [body for body in moved if body.name in suspects] or moved
    at = [abs(u[tree.first_v[j] : tree.first_v[j + 1]]).max(initial=0.0) for j in range(len(topology.joints))]
    joints = [joint.name for joint, speed in zip(topology.joints, at) if speed > 1e-6 * max(at)]
    massless = [body for body in lacking if body.mass == 0.0]
    return WithoutInertia(tuple(body.name for body in massless or lacking), tuple(joints), not massless)
