r"""Conditions on two frames, from which loop-closing joints are composed.

Frame A is at :math:`p_A` with the axes :math:`a_x, a_y, a_z`, frame B accordingly, and :math:`d = p_B - p_A`, all in
the axes of the ground. Every condition has one of three forms,

.. math:: d_k = 0, \qquad a_k \cdot d = 0, \qquad a_k \cdot b_l = 0,

each with its gradient with respect to the virtual displacements and rotations of the two bodies and with the
acceleration-free terms of its second derivative (Haug's basic constraints). They are the :math:`\phi(u_n, u_{n+1})` of
(2.44), (2.45).

Conditions act through the chains of bodies from cut joints to the base (2.3), which are stored as arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from daedal.kernels.compilation import entry, part
from daedal.kernels.signatures import i64, void
from daedal.multibody.kinematics import BodyTree
from daedal.multibody.vectors import (
    MATRICES,
    NUMBERS,
    ROWS,
    VECTOR,
    dot,
    grouped,
    minus,
    plus,
    product,
    row,
    times,
    vector_product,
)

OFFSET, ALONG, ACROSS = 0, 1, 2
"""d_k = 0; a_k . d = 0; a_k . b_l = 0."""


class Closures(NamedTuple):
    """Conditions as arrays: their bodies (-1 is the ground), frame positions on them, and kinds."""

    kind: np.ndarray  # (m,) OFFSET, ALONG or ACROSS
    k: np.ndarray  # (m,) axis of the ground, or of frame A
    l: np.ndarray  # (m,) axis of frame B, for ACROSS
    body: np.ndarray  # (m, 2) -1 is the ground
    place: np.ndarray  # (m, 2, 3) from the centre of mass, in the axes of the body
    axes: np.ndarray  # (m, 2, 3, 3) from the axes of the frame to those of the body; (m, 6, 3) for kernels

    @property
    def stacked(self) -> Closures:
        """These conditions with the axes of the two frames stacked, for kernels."""
        return self._replace(axes=self.axes.reshape(-1, 6, 3))


Closures.kinds = (NUMBERS, NUMBERS, NUMBERS, i64[:, :], MATRICES, MATRICES)  # type: ignore[attr-defined]


@part
def _arm(closures, rotation, i, side):
    """Vector from the centre of mass to the frame on the given side of condition i; for the ground, from the origin."""
    places, body = closures.place, closures.body[i, side]
    place = places[i, side, 0], places[i, side, 1], places[i, side, 2]
    return place if body < 0 else product(rotation, body, place)


@part
def _point(closures, r, i, side, arm):
    body = closures.body[i, side]
    return arm if body < 0 else plus(row(r, body), arm)


@part
def _axis(closures, rotation, i, side, k):
    axes, body = closures.axes, closures.body[i, side]
    axis = axes[i, 3 * side, k], axes[i, 3 * side + 1, k], axes[i, 3 * side + 2, k]
    return axis if body < 0 else product(rotation, body, axis)


@part
def _motion(closures, moving, i, side):
    """A row of velocities for the body on the given side of condition i; zero for the ground."""
    body = closures.body[i, side]
    return (0.0, 0.0, 0.0) if body < 0 else row(moving, body)


@part
def _unit(k):
    return 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0


def residuals(closures, r, rotation):
    """Value of each condition for bodies at `r`, rotated by `rotation`."""
    values = np.zeros(closures.kind.size)
    fill_residuals(closures.stacked, r, rotation, values)
    return values


@grouped
@entry(void(Closures, ROWS, MATRICES, VECTOR))
def fill_residuals(closures, r, rotation, values):
    for i in range(closures.kind.size):
        kind, k = closures.kind[i], closures.k[i]
        a = _unit(k) if kind == OFFSET else _axis(closures, rotation, i, 0, k)
        if kind == ACROSS:
            values[i] = dot(a, _axis(closures, rotation, i, 1, closures.l[i]))
        else:
            arm_a, arm_b = _arm(closures, rotation, i, 0), _arm(closures, rotation, i, 1)
            values[i] = dot(a, minus(_point(closures, r, i, 1, arm_b), _point(closures, r, i, 0, arm_a)))


def gradients(closures, r, rotation):
    r"""The rows :math:`\phi_u`: shape (m, 2, 6), for (dr, dpi) of the first and the second body of each condition."""
    rows = np.zeros((closures.kind.size, 2, 6))
    fill_gradients(closures.stacked, r, rotation, rows)
    return rows


@grouped
@entry(void(Closures, ROWS, MATRICES, MATRICES))
def fill_gradients(closures, r, rotation, rows):
    for i in range(closures.kind.size):
        kind, k = closures.kind[i], closures.k[i]
        a = _unit(k) if kind == OFFSET else _axis(closures, rotation, i, 0, k)
        if kind == ACROSS:  # d(a . b) = (dpi_a x a) . b + a . (dpi_b x b)
            first = vector_product(a, _axis(closures, rotation, i, 1, closures.l[i]))
            second = times(-1.0, first)
            for l in range(3):
                rows[i, 0, l], rows[i, 1, l] = 0.0, 0.0
        else:
            arm_a, arm_b = _arm(closures, rotation, i, 0), _arm(closures, rotation, i, 1)
            first, second = times(-1.0, vector_product(arm_a, a)), vector_product(arm_b, a)
            if kind == ALONG:
                d = minus(_point(closures, r, i, 1, arm_b), _point(closures, r, i, 0, arm_a))
                first = plus(first, vector_product(a, d))
            for l in range(3):
                rows[i, 0, l], rows[i, 1, l] = -a[l], a[l]
        for l in range(3):
            rows[i, 0, 3 + l], rows[i, 1, 3 + l] = first[l], second[l]


@grouped
@entry(void(Closures, ROWS, MATRICES, ROWS, ROWS, VECTOR))
def fill_biases(closures, r, rotation, linear, angular, values):
    """gamma of (2.45): minus the acceleration-free terms of the second derivative of each condition."""
    for i in range(closures.kind.size):
        kind, k = closures.kind[i], closures.k[i]
        spin_a, spin_b = _motion(closures, angular, i, 0), _motion(closures, angular, i, 1)
        a = _unit(k) if kind == OFFSET else _axis(closures, rotation, i, 0, k)
        rate = vector_product(spin_a, a)
        if kind == ACROSS:
            b = _axis(closures, rotation, i, 1, closures.l[i])
            rate_b = vector_product(spin_b, b)
            second = dot(vector_product(spin_a, rate), b) + dot(a, vector_product(spin_b, rate_b))
            second += 2.0 * dot(rate, rate_b)
        else:
            arm_a, arm_b = _arm(closures, rotation, i, 0), _arm(closures, rotation, i, 1)
            round_a, round_b = vector_product(spin_a, arm_a), vector_product(spin_b, arm_b)
            second = dot(a, minus(vector_product(spin_b, round_b), vector_product(spin_a, round_a)))
            if kind == ALONG:
                d = minus(_point(closures, r, i, 1, arm_b), _point(closures, r, i, 0, arm_a))
                centres = minus(_motion(closures, linear, i, 1), _motion(closures, linear, i, 0))
                speed = plus(centres, minus(round_b, round_a))
                second += 2.0 * dot(rate, speed) + dot(vector_product(spin_a, rate), d)
        values[i] = -second


class Chains(NamedTuple):
    """An entry for each condition at each body of its chains, and the sets of coupled conditions."""

    first_place: np.ndarray  # (n + 1,) places at body j are first_place[j] to first_place[j + 1]
    condition: np.ndarray  # (places,) index of the condition
    up: np.ndarray  # (places,) entry of the same condition at the parent, -1 at the base
    # (n + 1,) index of the first product of B with the conditions at body j: one product per place and joint velocity
    first_product: np.ndarray
    side: np.ndarray  # (m, 2) entries of the two bodies of a condition, -1 for the ground
    group: np.ndarray  # (m,) the set of each condition
    within: np.ndarray  # (m,) the index of each condition in its set
    member: np.ndarray  # (m,) the conditions sorted by set
    first_member: np.ndarray  # (sets + 1,) start of each set in `member`
    first_entry: np.ndarray  # (sets + 1,) start of the matrix of each set


def chains_of(tree: BodyTree, closures: Closures) -> Chains:
    """The chains of all conditions; conditions whose chains share a body belong to one set."""
    n, m = tree.parent.size, closures.kind.size
    passing: list[set[int]] = [set() for _ in range(n)]
    base = np.full((m, 2), -1)
    for i in range(m):
        for side in range(2):
            j = int(closures.body[i, side])
            while j >= 0:
                passing[j].add(i)
                base[i, side] = j
                j = int(tree.parent[j])
    at = [{condition: place for place, condition in enumerate(sorted(here))} for here in passing]
    first = np.concatenate([[0], np.cumsum([len(here) for here in at])]).astype(np.int64)
    condition, up = [], []
    for j, here in enumerate(at):
        parent = int(tree.parent[j])
        condition += list(here)
        up += [-1 if parent < 0 else int(first[parent]) + at[parent][i] for i in here]
    sides = [[-1 if j < 0 else int(first[j]) + at[j][i] for j in closures.body[i]] for i in range(m)]
    products = np.diff(first) * np.diff(tree.first_v)
    group = _sets(base, n)
    size = np.bincount(group).astype(np.int64)
    member = np.argsort(group, kind="stable")
    first_member = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    within = np.empty(m, dtype=np.int64)
    within[member] = np.arange(m) - first_member[group[member]]
    return Chains(
        first,
        np.array(condition, dtype=np.int64),
        np.array(up, dtype=np.int64),
        np.concatenate([[0], np.cumsum(products)]).astype(np.int64),
        np.array(sides, dtype=np.int64).reshape(m, 2),
        group,
        within,
        member,
        first_member,
        np.concatenate([[0], np.cumsum(size**2)]).astype(np.int64),
    )


def _sets(base: np.ndarray, n: int) -> np.ndarray:
    """The set to which each condition belongs: chains of conditions in one set share bodies next to the ground."""
    m = base.shape[0]
    condition, side = np.nonzero(base >= 0)
    links = coo_array((np.ones(condition.size), (condition, m + base[condition, side])), shape=(m + n, m + n))
    _, label = connected_components(links, directed=False)
    return np.unique(label[:m], return_inverse=True)[1].astype(np.int64)
