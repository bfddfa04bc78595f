r"""Perturbations of a state in variables that do not turn with the bodies.

The orientation of a joint with Euler parameters p is perturbed by a small rotation :math:`\delta\varphi` in the axes of
its first frame, and so is its angular velocity :math:`\omega`:

.. math::

    \delta p = \tfrac12 E(p)^T \delta\varphi, \qquad
    \delta \dot p = \tfrac12 E(p)^T \delta\omega + \tfrac12 E(\delta p)^T \omega .

About a wheel or a top that spins steadily the equations then have constant coefficients, as they have in angles; in
Euler parameters they would not. All other coordinates are perturbed as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.multibody.tree import ANY_ROTATION


def first_axes_rates(p: np.ndarray) -> np.ndarray:
    r"""E(p), 3 by 4, with :math:`\omega = 2 E(p) \dot p` in the axes of the frame that does not turn."""
    a, b, c, d = p
    return np.array([[-b, a, -d, c], [-c, d, a, -b], [-d, -c, b, a]])


def perturbation_basis(layout: Any, q: np.ndarray, v: np.ndarray, n_r: int) -> np.ndarray:
    """The matrix from perturbations of positions, velocities and states of forces to those of (q, v, r)."""
    tree, n, n_v = layout.tree, layout.n_q, layout.n_v
    W, X = np.zeros((n, n_v)), np.zeros((n, n_v))
    for j, turn in enumerate(tree.turn):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        plain = end - first - (3 if turn == ANY_ROTATION else 0)
        W[at : at + plain, first : first + plain] = np.eye(plain)
        if turn == ANY_ROTATION:
            place, own = slice(at + plain, at + plain + 4), slice(end - 3, end)
            E = first_axes_rates(q[place])
            spin = 2.0 * E @ v[place]
            W[place, own] = 0.5 * E.T
            X[place, own] = np.column_stack([0.5 * first_axes_rates(0.5 * row).T @ spin for row in E])
    B = np.zeros((2 * n + n_r, 2 * n_v + n_r))
    B[:n, :n_v], B[n : 2 * n, :n_v], B[n : 2 * n, n_v : 2 * n_v] = W, X, W
    B[2 * n :, 2 * n_v :] = np.eye(n_r)
    return B
