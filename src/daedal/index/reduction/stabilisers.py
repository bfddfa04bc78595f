r"""Mechanisms in the stabilised form of Gear, Gupta and Leimkuhler, from which the second multipliers are taken out.

.. math::

    \dot q = v - E(t, q)\, \mu, \qquad 0 = g(t, q), \qquad 0 = T(t, q)\,(G v + g_t)

with T and :math:`G E` regular have no solutions but those with :math:`\mu = 0`: along solutions
:math:`0 = \dot g = G v + g_t - G E \mu` (Brenan, Campbell and Petzold, theorems 2.5.1 and 2.5.2).
"""

from __future__ import annotations

import numpy as np

from daedal.index.reduction.balance import has_full_rank
from daedal.index.reduction.motion import MechanismGraph
from daedal.symbolic.derivative import Row

_SAME = 1e-9  # relative size of what vanishes but for round-off


def without_stabilisers(motion: MechanismGraph) -> MechanismGraph | None:
    """The same motion without the velocity constraints that are derivatives; None if its form is another one."""
    m, n = motion.sizes["mu"], motion.sizes["q"]
    if m == 0:
        return motion
    if not len(motion.position) == len(motion.velocity) == motion.sizes["lam"] == m:
        return None
    position, velocity = ([i for i, _ in rows] for rows in (motion.position, motion.velocity))
    if not (motion.is_affine(motion.kinematic, ("mu",), {"q"}) and motion.is_affine(velocity, ("v",), {"q"})):
        return None
    rates = motion.along(position)
    rows = [*_with_constant(motion, rates), *_with_constant(motion, velocity)]
    every = motion.sampled([*rows, *motion.by(motion.kinematic, ("mu",))], n + 1)
    if every is None:
        return None
    derived, given, forces = every[:, :m], every[:, m : 2 * m], every[:, 2 * m :, :m] / _slope_factors(motion)[:, None]
    if not (has_full_rank(derived) and has_full_rank(given) and _span_the_same(derived, given)):
        return None
    if not _is_regular(derived[:, :, :n], forces):
        return None
    motion.velocity = []
    return motion


def _with_constant(motion: MechanismGraph, nodes: list[int]) -> list[Row]:
    """The coefficients of velocities, and what is left without them."""
    rest = motion.without(nodes, ("v",))
    rows = motion.by(nodes, ("v",))
    return [{**row, motion.sizes["q"]: node} for row, node in zip(rows, rest, strict=True)]


def _slope_factors(motion: MechanismGraph) -> np.ndarray:
    """The numbers by which q' is multiplied in the kinematic equations."""
    equations, roles = motion.equations, motion.roles
    found = []
    for row, j in zip(roles.kinematic, roles.positions, strict=True):
        (partials,) = equations.jacobian([equations.nodes[row]], [equations.unknown(j, 1)])
        found.append(equations.graph.data[partials[0]])
    return np.array(found)


def _is_regular(gradients: np.ndarray, forces: np.ndarray) -> bool:
    """Whether G E is regular at all points, whatever the sizes of the rows of G and of the columns of E."""
    size = np.linalg.norm(forces, axis=1, keepdims=True)
    if not np.all(size > 0.0):
        return False
    product = gradients / np.linalg.norm(gradients, axis=2, keepdims=True) @ (forces / size)
    return bool(np.all(np.linalg.svd(product, compute_uv=False)[:, -1] > _SAME))


def _span_the_same(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the rows of two matrices span the same space at all points."""
    for one, other in zip(first, second, strict=True):
        basis = np.linalg.qr(one.T)[0]
        if np.any(np.linalg.norm(other - (other @ basis) @ basis.T, axis=1) > _SAME * np.linalg.norm(other, axis=1)):
            return False
    return True
