"""Which triangle is seen at each point of a picture: a depth buffer in NumPy."""

import numpy as np

_CHUNK = 1_000_000  # points of bounding boxes that are looked at together


def visible(corners: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is seen of triangles with corners (m, 3, 3): x to the right, y downwards, and depth, greater when nearer.

    Returns
    -------
    points : array (n,)
        The points of the picture that are covered, as numbers into a flat (height, width) array.
    triangles : array (n,)
        Which triangle is seen there.
    weights : array (n, 3)
        Where in it, as weights of the corners.
    """
    depth = np.full(height * width, -np.inf)
    owner = np.full(height * width, -1)
    first = np.clip(np.ceil(corners[:, :, :2].min(axis=1) - 0.5), 0, [width, height]).astype(int)
    behind = np.clip(np.floor(corners[:, :, :2].max(axis=1) - 0.5) + 1, 0, [width, height]).astype(int)
    columns, rows = np.maximum(behind - first, 0).T
    planes, flat = _planes(corners)
    counts = np.where(flat, 0, columns * rows)
    shown = np.flatnonzero(counts)
    for group in np.split(shown, np.flatnonzero(np.diff(np.cumsum(counts[shown]) // _CHUNK)) + 1):
        local = np.repeat(np.arange(group.size), counts[group])
        offset = np.arange(local.size) - np.repeat(np.cumsum(counts[group]) - counts[group], counts[group])
        down, right = np.divmod(offset, columns[group][local])
        x, y = first[group, 0][local] + right, first[group, 1][local] + down
        second, third = (_at(planes[:, k, group], local, x, y) for k in range(2))
        inside = np.flatnonzero((second >= -1e-9) & (third >= -1e-9) & (second + third <= 1.0 + 1e-9))
        local, point = local[inside], (y * width + x)[inside]
        z = _at(planes[:, 2, group], local, x[inside], y[inside])
        nearer = np.flatnonzero(z > depth[point])
        nearer = nearer[np.argsort(z[nearer], kind="stable")]  # the nearest is written last
        depth[point[nearer]], owner[point[nearer]] = z[nearer], group[local[nearer]]
    points = np.flatnonzero(owner >= 0)
    seen = owner[points]
    second, third = (_at(planes[:, k], seen, points % width, points // width) for k in range(2))
    return points, seen, np.stack([1.0 - second - third, second, third], axis=1)


def _at(plane: np.ndarray, triangle: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    constant, of_x, of_y = plane
    return constant[triangle] + of_x[triangle] * x + of_y[triangle] * y


def _planes(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the second and third corner and the depth as linear functions of the place, (3, 3, m).

    The first axis are the constant and the factors of x and y, where x and y count points of the picture, whose middles
    lie half a point further. The second value says which triangles are seen from their edge.
    """
    a, b, c = (corners[:, k] for k in range(3))
    u, v = b - a, c - a
    area = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    flat = np.abs(area) < 1e-12
    scale = 1.0 / np.where(flat, 1.0, area)
    second = np.array([v[:, 1], -v[:, 0]]) * scale
    third = np.array([-u[:, 1], u[:, 0]]) * scale
    slopes = np.stack([second, third, second * u[:, 2] + third * v[:, 2]], axis=1)
    constant = slopes[0] * (0.5 - a[:, 0]) + slopes[1] * (0.5 - a[:, 1])
    constant[2] += a[:, 2]
    return np.concatenate([constant[None], slopes]), flat
