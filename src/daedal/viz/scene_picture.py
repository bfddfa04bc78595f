"""A scene at one time as a picture: triangles with light on them, their shadow, and a grid behind."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from daedal.viz.rasteriser import visible
from daedal.viz.scene import Scene
from daedal.viz.scene_camera import Backdrop, backdrop, camera_axes
from daedal.viz.scene_items import Curve, Item, curves, items
from daedal.viz.style import COLOURS, INK

_FINER = 2  # so many points of the computed picture, in each direction, make one of the result
_FIELD = np.radians(30.0)
_MARGIN = 1.16
_LINE_WIDTHS = {"trace": 0.0028, "line": 0.0045}  # of the width of the picture
_PAGE_COLOURS = {"red": COLOURS[2], "green": "#2b8a79", "purple": COLOURS[5], "ink": INK}
_GRID, _SHADOW = np.array([0.80, 0.82, 0.85]), 0.22


@dataclass(frozen=True, eq=False)
class Camera:
    """Rows of `axes`: to the right, upwards, to the eye. `distance` is infinite for a view without perspective."""

    centre: np.ndarray
    axes: np.ndarray
    distance: float
    scale: float  # points of the picture for a unit of length at the centre
    height: int
    width: int

    def project(self, points: np.ndarray) -> np.ndarray:
        """Points (n, 3) of the world as x, y and depth in the picture."""
        x, y, z = ((points - self.centre) @ self.axes.T).T
        near = 1.0 / (1.0 - z / self.distance)
        depth = z if np.isinf(self.distance) else near
        return np.stack(
            [0.5 * self.width + self.scale * near * x, 0.5 * self.height - self.scale * near * y, depth], axis=1
        )

    def on_plane(self, plane: Backdrop) -> np.ndarray:
        """Where the rays through the points of the picture meet a plane, (height * width, 3); nan where they do not."""
        rows, columns = np.indices((self.height, self.width)).reshape(2, -1)
        x = (columns + 0.5 - 0.5 * self.width) / self.scale
        y = (0.5 * self.height - rows - 0.5) / self.scale
        start = self.centre + x[:, None] * self.axes[0] + y[:, None] * self.axes[1]
        if np.isinf(self.distance):
            direction = np.broadcast_to(-self.axes[2], start.shape)
        else:
            direction = start - (self.centre + self.distance * self.axes[2])
        slope = direction @ plane.normal
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = ((plane.point - start) @ plane.normal) / slope
            return np.where((slope < -1e-9)[:, None], start + steps[:, None] * direction, np.nan)


def make_camera(scene: Scene, eye: np.ndarray, height: int, width: int) -> Camera:
    """The whole scene fills the picture; an eye on an axis sees without perspective."""
    low, high = scene.bounds
    axes = camera_axes(scene, eye)
    corners = np.array(np.meshgrid(*np.stack([low, high], axis=1))).reshape(3, -1).T - 0.5 * (low + high)
    x, y, z = (corners @ axes.T).T
    x, y = np.abs(x), np.abs(y)
    least = 0.05 * scene.size
    if np.max(np.abs(eye)) > 1.0 - 1e-9:
        half = _MARGIN * max(y.max(), x.max() * height / width, least)
        return Camera(0.5 * (low + high), axes, np.inf, 0.5 * height / half, height, width)
    slope = np.tan(0.5 * _FIELD) / _MARGIN
    distance = float(max(np.max(z + np.maximum(x * height / width, y) / slope), 0.5 * scene.size))
    return Camera(0.5 * (low + high), axes, distance, 0.5 * height / (distance * np.tan(0.5 * _FIELD)), height, width)


def picture(scene: Scene, k: int, eye: np.ndarray, height: int, width: int, arrows: bool = True) -> np.ndarray:
    """Red, green and blue (height, width, 3) between 0 and 1 at the time number k."""
    camera = make_camera(scene, eye, _FINER * height, _FINER * width)
    kinds = {"part", "rod", "spring"} | ({"arrow"} if arrows else set())
    if any(getattr(part, "frame", False) for part in scene.parts):
        kinds.add("frame")
    shown = [item for item in items(scene) if item.kind in kinds]
    vertices, normals, faces, colours, closed = _surfaces(shown, k, scene.size)
    light = _light(scene, camera.axes)
    behind = _ground(scene, make_camera(scene, eye, height, width), vertices[faces], light)
    image = np.repeat(np.repeat(behind.reshape(height, width, 3), _FINER, axis=0), _FINER, axis=1).reshape(-1, 3)
    corners = camera.project(vertices)[faces]
    outside = (_areas(corners) < 0.0) | ~closed  # y points downwards
    corners, faces, colours = corners[outside], faces[outside], colours[outside]
    ribbons, ribbon_colours = _ribbons(curves(scene), k, camera)
    point, triangle, weights = visible(np.concatenate([corners, ribbons]), camera.height, camera.width)
    solid = triangle < len(faces)
    normal = np.einsum("nk,nkj->nj", weights[solid], normals[faces[triangle[solid]]])
    image[point[solid]] = _lit(normal, colours[triangle[solid]], light, camera.axes, scene.up)
    image[point[~solid]] = ribbon_colours[triangle[~solid] - len(faces)]
    blocks = image.reshape(height, _FINER, width, _FINER, 3)
    return np.clip(blocks.mean(axis=(1, 3)), 0.0, 1.0)


# --- triangles --------------------------------------------------------------------------------------------------------


def _areas(corners: np.ndarray) -> np.ndarray:
    """Twice the areas of triangles in the picture, positive where the corners follow each other from x to y."""
    u, v = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    return u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]


def _surfaces(shown: Iterable[Item], k: int, size: float) -> tuple[np.ndarray, ...]:
    """Vertices, normals and faces of items at the time number k; of the faces their colours and if they are closed."""
    from matplotlib.colors import to_rgb

    none = np.empty((0, 3))
    found = [(none, none, none.astype(int), none, np.empty(0, dtype=bool))]
    start = 0
    for item in shown:
        for piece, matrix in item.placed(k, size):
            triangles, linear = piece.triangles, matrix[:, :3]
            lengths = np.maximum(np.linalg.norm(linear, axis=0), 1e-300)  # the columns are at right angles
            normals = (triangles.normals / lengths**2) @ linear.T
            normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
            count = len(triangles.faces)
            colours = np.tile(to_rgb(piece.color or item.color), (count, 1))
            vertices = triangles.vertices @ linear.T + matrix[:, 3]
            found.append((vertices, normals, triangles.faces + start, colours, np.full(count, triangles.closed)))
            start += len(vertices)
    return tuple(np.concatenate(arrays) for arrays in zip(*found))


def _ribbons(lines: Iterable[Curve], k: int, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Lines as triangles in the picture, with their colours."""
    from matplotlib.colors import to_rgb

    corners, colours = [np.empty((0, 3, 3))], [np.empty((0, 3))]
    for curve in lines:
        if curve.kind == "trace":
            points = curve.points[:, : k + 1].T
        else:
            points = curve.points[:, :, min(k, curve.points.shape[2] - 1)]
        if len(points) < 2:
            continue
        place = camera.project(points)
        along = np.diff(place[:, :2], axis=0)
        side = np.column_stack([-along[:, 1], along[:, 0]]) / np.maximum(np.linalg.norm(along, axis=1), 1e-9)[:, None]
        half = 0.5 * _LINE_WIDTHS[curve.kind] * camera.width * np.column_stack([side, np.zeros(len(side))])
        a, b, c, d = place[:-1] - half, place[:-1] + half, place[1:] + half, place[1:] - half
        corners += [np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]
        rgb = to_rgb(_PAGE_COLOURS.get(curve.color, curve.color))
        colours.append(np.tile(rgb, (2 * len(a), 1)))
    return np.concatenate(corners), np.concatenate(colours)


# --- light ------------------------------------------------------------------------------------------------------------


def _light(scene: Scene, axes: np.ndarray) -> np.ndarray:
    """The direction to the light: from above, left of the eye; from the eye where the scene is seen straight on."""
    behind = backdrop(scene)
    up = np.eye(3)["xyz".index(scene.up)]
    to = behind.normal
    other = up if abs(to @ up) < 0.5 else axes[2]
    light = 3.0 * to - 1.1 * axes[0] + 1.1 * other
    return light / np.linalg.norm(light)


def _lit(normal: np.ndarray, colour: np.ndarray, light: np.ndarray, axes: np.ndarray, up: str) -> np.ndarray:
    """Sky and ground, a light, some from the eye, and a gleam, on surfaces that are seen from both sides."""
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1), 1e-300)[:, None]
    normal = np.where((normal @ axes[2] < 0.0)[:, None], -normal, normal)
    sky = 0.5 + 0.5 * normal[:, "xyz".index(up)]
    half = light + axes[2]
    gleam = np.maximum(normal @ (half / np.linalg.norm(half)), 0.0) ** 30
    strength = 0.36 + 0.2 * sky + 0.42 * np.maximum(normal @ light, 0.0) + 0.2 * (normal @ axes[2])
    return colour * strength[:, None] + 0.16 * gleam[:, None]


def _ground(scene: Scene, camera: Camera, corners: np.ndarray, light: np.ndarray) -> np.ndarray:
    """White, with a grid that fades and the shadow of the triangles, (height * width, 3)."""
    from scipy.ndimage import gaussian_filter, map_coordinates

    plane = backdrop(scene)
    reach = 1.3 * scene.size
    u = np.eye(3)[int(np.argmin(np.abs(plane.normal)))]
    v = np.cross(plane.normal, u)
    place = camera.on_plane(plane)
    a, b = place @ u, place @ v
    fade = np.clip(1.0 - ((a - plane.point @ u) ** 2 + (b - plane.point @ v) ** 2) / reach**2, 0.0, 1.0)
    line = np.maximum(_near_line(a, plane.spacing, camera), _near_line(b, plane.spacing, camera))
    image = 1.0 - (np.nan_to_num(fade * line))[:, None] * (1.0 - _GRID)
    cells = 500
    steps = ((corners - plane.point) @ plane.normal) / (light @ plane.normal)
    fallen = corners - steps[..., None] * light
    scale = cells / (4.0 * reach)
    flat = np.stack([(fallen - plane.point) @ u, (fallen - plane.point) @ v], axis=2) * scale + 0.5 * cells
    covered = visible(np.concatenate([flat, np.zeros((*flat.shape[:2], 1))], axis=2), cells, cells)[0]
    mask = np.zeros(cells * cells)
    mask[covered] = 1.0
    soft = gaussian_filter(mask.reshape(cells, cells), 2.2)
    at = np.nan_to_num(np.stack([b - plane.point @ v, a - plane.point @ u]) * scale + 0.5 * cells, nan=-1.0) - 0.5
    shade = map_coordinates(soft, at, order=1, cval=0.0)
    return image * (1.0 - _SHADOW * shade)[:, None]


def _near_line(coordinate: np.ndarray, spacing: float, camera: Camera) -> np.ndarray:
    """How much of a point of the picture lies on a line of the grid, between 0 and 1."""
    grid = coordinate.reshape(camera.height, camera.width)
    with np.errstate(invalid="ignore"):
        width = np.hypot(*np.gradient(grid)).ravel()
        gap = np.abs(coordinate - spacing * np.rint(coordinate / spacing))
        return np.clip(1.1 - gap / np.maximum(width, 1e-300), 0.0, 1.0) * (width < 0.3 * spacing)
