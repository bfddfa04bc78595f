"""Which triangle is seen at each point of a picture: a depth buffer in NumPy."""

import numpy as np

_CHUNK = 2_000_000  # points of bounding boxes that are looked at together


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
    counts = columns * rows
    shown = np.flatnonzero(counts)
    groups = np.split(shown, np.flatnonzero(np.diff(np.cumsum(counts[shown]) // _CHUNK)) + 1)
    for group in groups:
        triangle = np.repeat(group, counts[group])
        offset = np.arange(triangle.size) - np.repeat(np.cumsum(counts[group]) - counts[group], counts[group])
        x = first[triangle, 0] + offset % columns[triangle]
        y = first[triangle, 1] + offset // columns[triangle]
        weights = _weights(corners, triangle, x, y)
        z = np.sum(weights * corners[triangle, :, 2], axis=1)
        point = y * width + x
        kept = np.flatnonzero(np.all(weights >= -1e-9, axis=1) & (z > depth[point]))
        kept = kept[np.argsort(z[kept], kind="stable")]  # the nearest is written last
        depth[point[kept]], owner[point[kept]] = z[kept], triangle[kept]
    points = np.flatnonzero(owner >= 0)
    return points, owner[points], _weights(corners, owner[points], points % width, points // width)


def _weights(corners: np.ndarray, triangle: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Barycentric coordinates of the middles of the points x, y; -1 for triangles seen from their edge."""
    a, b, c = (corners[:, k, :2] for k in range(3))
    u, v = b - a, c - a
    area = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    flat = np.abs(area) < 1e-12
    inverse = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, area))
    px, py = x + 0.5 - a[triangle, 0], y + 0.5 - a[triangle, 1]
    second = (px * v[triangle, 1] - py * v[triangle, 0]) * inverse[triangle]
    third = (u[triangle, 0] * py - u[triangle, 1] * px) * inverse[triangle]
    weights = np.stack([1.0 - second - third, second, third], axis=1)
    weights[flat[triangle]] = -1.0
    return weights
