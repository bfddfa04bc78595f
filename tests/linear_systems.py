"""Linear systems with a known structure, for the tests of daedal.linear."""

import numpy as np

from daedal import linear


def transformation(rng, n, condition=10.0):
    """A random matrix with this condition number."""
    left, right = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return left @ np.diag(np.geomspace(1.0, condition, n)) @ right


def weierstrass_pencil(rng, finite, blocks, condition=10.0):
    """A, B with a finite part of this size and nilpotent Jordan blocks of these sizes; and C, its finite part."""
    n = finite + sum(blocks)
    A, B = np.zeros((n, n)), np.eye(n)
    C = rng.normal(size=(finite, finite))
    A[:finite, :finite], B[:finite, :finite] = np.eye(finite), C
    start = finite
    for size in blocks:
        inside = slice(start, start + size)
        A[inside, inside] = np.eye(size, k=1)
        start += size
    P, Q = transformation(rng, n, condition), transformation(rng, n, condition)
    return P @ A @ Q, P @ B @ Q, C


def kronecker_pencil(rng, finite, blocks, right, left):
    """The same with right and left minimal indices."""
    pieces = [(np.eye(finite), rng.normal(size=(finite, finite)))]
    pieces += [(np.eye(size, k=1), np.eye(size)) for size in blocks]
    pieces += [(np.eye(k, k + 1), np.eye(k, k + 1, k=1)) for k in right]
    pieces += [(np.eye(k + 1, k), np.eye(k + 1, k, k=-1)) for k in left]
    m, n = (sum(piece[0].shape[axis] for piece in pieces) for axis in (0, 1))
    A, B, i, j = np.zeros((m, n)), np.zeros((m, n)), 0, 0
    for a, b in pieces:
        A[i : i + a.shape[0], j : j + a.shape[1]] = a
        B[i : i + a.shape[0], j : j + a.shape[1]] = b
        i, j = i + a.shape[0], j + a.shape[1]
    P, Q = transformation(rng, m, 5.0), transformation(rng, n, 5.0)
    return P @ A @ Q, P @ B @ Q


def hessenberg_pencil(rng, size, sizes=None):
    """A random system in Hessenberg form of this size (Brenan, Campbell and Petzold, definition 2.4.4)."""
    sizes = sizes or [2] * size
    edges = np.concatenate([[0], np.cumsum(sizes)])
    n = int(edges[-1])
    A, B = np.zeros((n, n)), np.zeros((n, n))

    def block(i, j):
        return slice(edges[i], edges[i + 1]), slice(edges[j], edges[j + 1])

    for i in range(size - 1):
        A[block(i, i)] = np.eye(sizes[i])
        for j in range(max(i - 1, 0), size - 1):
            B[block(i, j)] = rng.normal(size=(sizes[i], sizes[j]))
    B[block(0, size - 1)] = rng.normal(size=(sizes[0], sizes[-1]))
    B[block(size - 1, size - 2)] = rng.normal(size=(sizes[-1], sizes[size - 2]))
    return A, B


CHAIN_A = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
CHAIN_B = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def chain_f(t):
    """Right-hand side of (2.3.7) in the figures of the spec."""
    return [np.sin(t), np.cos(2.0 * t), np.exp(t)]


def chain():
    """(2.3.7): x1' + x3 = f1, x2' + x1 = f2, x2 = f3; index 3."""
    return linear.TimeVarying(CHAIN_A, CHAIN_B, chain_f)


def example_241(f=None):
    """Solvable with index 2 although the pencil is singular at all times."""
    return linear.TimeVarying(lambda t: [[1.0, t], [0.0, 0.0]], lambda t: [[0.0, 0.0], [1.0, t]], f, n=2)


def example_242(f=None):
    """Not solvable although the pencil is regular: det(λA + B) = 1."""
    return linear.TimeVarying(lambda t: [[-t, t**2], [-1.0, t]], np.eye(2), f)


def flat(t):
    """exp(-1/t) for t > 0, else 0."""
    return np.exp(-1.0 / t) if t > 0.0 else 0.0 * t


def example_243(f=None):
    """Solvable, and not reducible to standard canonical form at 0."""
    return linear.TimeVarying(lambda t: [[0.0, flat(t)], [flat(-t), 0.0]], np.eye(2), f)


def example_3113(eta, g=np.sin):
    """(3.1.13), index 2: x1 = g + eta t g', x2 = -g'."""
    return linear.TimeVarying(
        lambda t: [[0.0, 0.0], [1.0, eta * t]],
        lambda t: [[1.0, eta * t], [0.0, 1.0 + eta]],
        lambda t: [g(t), 0.0 * t],
        n=2,
    )


def example_4333():
    """(4.3.33), index 1: x = exp(-t) + t sin t, y = sin t."""
    return linear.TimeVarying(
        lambda t: [[1.0, -t], [0.0, 0.0]],
        lambda t: [[1.0, -(1.0 + t)], [0.0, 1.0]],
        lambda t: [0.0 * t, np.sin(t)],
        n=2,
    )


# (2.5.15), index 3: x2' = x1 + f1, x3' = x2 + f2, 0 = x3 + f3; (2.5.16), index 2, with z1' for x1.
INTEGRATED_A = np.array([[-1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
INTEGRATED_B = np.array([[0.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
ORIGINAL_A = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
ORIGINAL_B = np.array([[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
