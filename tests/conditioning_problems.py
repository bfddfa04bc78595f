"""Linear DAEs of index 1 and 2 for the tests of conditioning."""

import numpy as np

from daedal import LinearDAE


def constant(A, B, C, D):
    """A linear DAE with constant coefficients and nothing on the right."""
    A, B, C, D = (np.asarray(one, dtype=float) for one in (A, B, C, D))
    n_x, n_y = B.shape
    return LinearDAE(A, B, C, D, np.zeros(n_x), np.zeros(n_y), n_x=n_x, n_y=n_y)


def orthogonal(random, n):
    return np.linalg.qr(random.normal(size=(n, n)))[0]


def random_index1(seed, n_x=3, n_y=2):
    random = np.random.default_rng(seed)
    D = orthogonal(random, n_y) * random.uniform(0.3, 2.0, n_y)
    return random.normal(size=(n_x, n_x)), random.normal(size=(n_x, n_y)), random.normal(size=(n_y, n_x)), D


def random_index2(seed, n_x=4, n_y=2):
    random = np.random.default_rng(seed)
    B = orthogonal(random, n_x)[:, :n_y]
    C = B.T + 0.4 * random.normal(size=(n_y, n_x))
    if np.linalg.svd(C @ B, compute_uv=False)[-1] < 0.2:
        C = B.T
    return random.normal(size=(n_x, n_x)), B, C, np.zeros((n_y, n_y))


def turning(eps=0.0):
    """Three unknowns, a constraint whose normal and whose direction turn at different rates."""

    def B(t):
        return np.array([[np.cos(t)], [np.sin(t)], [0.3]])

    def C(t):
        return np.array([[np.cos(1.3 * t), np.sin(1.3 * t), 0.5 * np.sin(t)]])

    def A(t):
        return np.array([[-0.2, 1.0, 0.0], [-1.0, -0.2, np.sin(t)], [0.3, 0.0, -0.5]])

    return LinearDAE(A, B, C, [[eps]], np.zeros(3), np.zeros(1), n_x=3, n_y=1)
