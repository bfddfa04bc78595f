"""A tree of bodies as arrays: what the recursive algorithms read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from daedal.multibody.vectors import MATRICES, NUMBERS, ROWS, VECTOR

NO_ROTATION, ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION = 0, 1, 2, 3
"""How a joint turns: not, about z by one angle, about z and then y, or by Euler parameters."""


class BodyTree(NamedTuple):
    r"""Bodies 0 ... n-1, each moved by one joint from its father; fathers come first, -1 is the ground.

    Joint j has a frame on the father, at ``place[j]`` from the father's centre of mass with the axes ``axes[j]`` in
    the father's axes (for the ground: its origin), and one on the body itself, at ``own_place[j]`` from its centre of
    mass with ``own_axes[j]``. The joint shifts the second frame by :math:`d = \sum_k q_k\, slide_k` along the axes of
    the first, then turns it as ``turn[j]`` says. Its velocities are ``first_v[j]`` to ``first_v[j + 1]``, one for
    each coordinate but for Euler parameters, of which it has four (``first_q``) and three components of the angular
    velocity in the axes of the joint's own frame. Shifts come before rotations.
    """

    father: np.ndarray  # (n,)
    turn: np.ndarray  # (n,) NO_ROTATION to ANY_ROTATION
    first_q: np.ndarray  # (n + 1,)
    first_v: np.ndarray  # (n + 1,)
    place: np.ndarray  # (n, 3)
    axes: np.ndarray  # (n, 3, 3)
    own_place: np.ndarray  # (n, 3)
    own_axes: np.ndarray  # (n, 3, 3)
    slide: np.ndarray  # (n_v, 3), in the axes of the joint's frame on the father
    mass: np.ndarray  # (n,)
    inertia: np.ndarray  # (n, 3, 3), about the centre of mass, in the axes of the body
    gravity: np.ndarray  # (3,)


BodyTree.kinds = (*4 * [NUMBERS], ROWS, MATRICES, ROWS, MATRICES, ROWS, VECTOR, MATRICES, VECTOR)  # type: ignore[attr-defined]


def in_axes_of_joints(tree: BodyTree) -> BodyTree:
    """The same tree, where the axes of each body are those of its joint's frame on it."""
    own = tree.own_axes
    on_bodies = tree.father >= 0
    places, axes = tree.place.copy(), tree.axes.copy()
    turned = own[tree.father[on_bodies]].transpose(0, 2, 1)
    places[on_bodies] = (turned @ places[on_bodies, :, None])[:, :, 0]
    axes[on_bodies] = turned @ axes[on_bodies]
    return tree._replace(
        place=places,
        axes=axes,
        own_place=(own.transpose(0, 2, 1) @ tree.own_place[:, :, None])[:, :, 0],
        own_axes=np.broadcast_to(np.eye(3), own.shape),
        inertia=own.transpose(0, 2, 1) @ tree.inertia @ own,
    )
