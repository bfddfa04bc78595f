"""A tree of bodies as arrays: what the recursive algorithms read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NO_ROTATION, ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION = 0, 1, 2, 3
"""How a joint turns: not, about z by one angle, about z and then y, or by Euler parameters."""


class Tree(NamedTuple):
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
