"""Stills of a scene for print, and its motion as a GIF."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.viz.animate import playing_time
from daedal.viz.figure import COLOURS, INK, new_figure
from daedal.viz.scene import Backdrop, Scene, backdrop, camera_axes, eye_direction
from daedal.viz.scene_items import Curve, Item, curves, items
from daedal.viz.scene_parts import Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CHUNK = 1_000_000  # number of pixels in bounding boxes that are processed together


def visible(corners: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rasterise triangles with corners (m, 3, 3): x to the right, y downwards, and depth, larger for nearer points.

    Returns
    -------
    points : array (n,)
        Covered pixels, as indices into a flat (height, width) array.
    triangles : array (n,)
        Index of the triangle visible at each of these pixels.
    weights : array (n, 3)
        Barycentric coordinates of these pixels.
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
        nearer = nearer[np.argsort(z[nearer], kind="stable")]  # the nearest triangle is written last
        depth[point[nearer]], owner[point[nearer]] = z[nearer], group[local[nearer]]
    points = np.flatnonzero(owner >= 0)
    seen = owner[points]
    second, third = (_at(planes[:, k], seen, points % width, points // width) for k in range(2))
    return points, seen, np.stack([1.0 - second - third, second, third], axis=1)


def _at(plane: np.ndarray, triangle: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    constant, of_x, of_y = plane
    return constant[triangle] + of_x[triangle] * x + of_y[triangle] * y


def _planes(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the second and third corner and the depth, as linear functions of the position, (3, 3, m).

    The first axis contains the constant and the factors of x and y (in pixels, whose centres are offset by 1/2). The
    second result marks triangles seen edge-on.
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


# --- a scene at one time as a picture: lit triangles, their shadow, and a grid in the background ---------------------

_FINER = 2  # supersampling factor in each direction
_FIELD = np.radians(30.0)  # field of view
_MARGIN = 1.16  # size of the picture relative to the scene
_LINE_WIDTHS = {"trace": 0.0028, "line": 0.0045}  # relative to the width of the picture
_PAGE_COLOURS = {"red": COLOURS[2], "green": "#2b8a79", "purple": COLOURS[5], "ink": INK}
_GRID, _SHADOW = np.array([0.80, 0.82, 0.85]), 0.22


@dataclass(frozen=True, eq=False)
class Camera:
    """A camera: the rows of `axes` point right, up and to the viewer; `distance` is infinite in orthographic views."""

    centre: np.ndarray
    axes: np.ndarray
    distance: float
    scale: float  # pixels per unit of length at the centre
    height: int
    width: int

    def project(self, points: np.ndarray) -> np.ndarray:
        """Project points (n, 3) to x, y and depth in the picture."""
        x, y, z = ((points - self.centre) @ self.axes.T).T
        near = 1.0 / (1.0 - z / self.distance)
        depth = z if np.isinf(self.distance) else near
        return np.stack(
            [0.5 * self.width + self.scale * near * x, 0.5 * self.height - self.scale * near * y, depth], axis=1
        )

    def on_plane(self, plane: Backdrop) -> np.ndarray:
        """Intersections of the pixels' rays with a plane, (height * width, 3); NaN if there are none."""
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
    """Create a camera for which the scene fills the picture; views along an axis are orthographic."""
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
    """Render the scene at time index k: red, green and blue (height, width, 3) between 0 and 1."""
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
    """Twice the signed areas of triangles in the picture; positive if the corners are ordered from x to y."""
    u, v = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    return u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]


def _surfaces(shown: Iterable[Item], k: int, size: float) -> tuple[np.ndarray, ...]:
    """Vertices, normals and faces of items at time index k; for each face, its colour and whether it is closed."""
    from matplotlib.colors import to_rgb

    none = np.empty((0, 3))
    found = [(none, none, none.astype(int), none, np.empty(0, dtype=bool))]
    start = 0
    for item in shown:
        for piece, matrix in item.matrices(k, size):
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


# --- lighting ---------------------------------------------------------------------------------------------------------


def _light(scene: Scene, axes: np.ndarray) -> np.ndarray:
    """Direction to the light, which is above and to the left of the viewer."""
    behind = backdrop(scene)
    up = np.eye(3)["xyz".index(scene.up)]
    to = behind.normal
    other = up if abs(to @ up) < 0.5 else axes[2]
    light = 3.0 * to - 1.1 * axes[0] + 1.1 * other
    return light / np.linalg.norm(light)


def _lit(normal: np.ndarray, colour: np.ndarray, light: np.ndarray, axes: np.ndarray, up: str) -> np.ndarray:
    """Two-sided shading with light from sky, ground, a lamp and the viewer, and a highlight."""
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1), 1e-300)[:, None]
    normal = np.where((normal @ axes[2] < 0.0)[:, None], -normal, normal)
    sky = 0.5 + 0.5 * normal[:, "xyz".index(up)]
    half = light + axes[2]
    gleam = np.maximum(normal @ (half / np.linalg.norm(half)), 0.0) ** 30
    strength = 0.36 + 0.2 * sky + 0.42 * np.maximum(normal @ light, 0.0) + 0.2 * (normal @ axes[2])
    return colour * strength[:, None] + 0.16 * gleam[:, None]


def _ground(scene: Scene, camera: Camera, corners: np.ndarray, light: np.ndarray) -> np.ndarray:
    """White background with a fading grid and the shadow of the triangles, (height * width, 3)."""
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
    """Coverage of a pixel by a grid line, between 0 and 1."""
    grid = coordinate.reshape(camera.height, camera.width)
    with np.errstate(invalid="ignore"):
        width = np.hypot(*np.gradient(grid)).ravel()
        gap = np.abs(coordinate - spacing * np.rint(coordinate / spacing))
        return np.clip(1.1 - gap / np.maximum(width, 1e-300), 0.0, 1.0) * (width < 0.3 * spacing)


# --- figures and GIFs -------------------------------------------------------------------------------------------------

_WIDTHS = (5.0, 7.0)  # figure widths in inches, with one picture and with several
_DPI, _SHAPE = 200, 0.75  # dots per inch; height over width of a picture
_GIF_WIDTH, _GIF_FRAMES, _GIF_MOST = 480, 80, 400


def stills(
    scene: Scene,
    times: Any,
    path: str | Path | None = None,
    *,
    view: Any = None,
    columns: int | None = None,
    labels: bool = False,
    arrows: bool = True,
) -> Figure:
    """Draw the scene at several times; see :meth:`Scene.stills`."""
    t = _checked(scene, times)
    if columns is None:
        columns = t.size if t.size <= 3 else int(np.ceil(np.sqrt(t.size)))
    if isinstance(columns, bool) or not isinstance(columns, (int, np.integer)) or columns < 1:
        raise daedal.InvalidProblemError(f"columns={columns!r} must be a positive integer")
    eye = eye_direction(scene, view)
    rows = -(-t.size // columns)
    inches = _WIDTHS[min(t.size, 2) - 1]
    width = round(_DPI * inches / columns)
    height = round(_SHAPE * width)
    everything = np.union1d(scene.t, t) if scene.t.size > 1 else scene.t  # traces require all earlier times
    whole = scene.resampled(everything)
    with new_figure((inches, rows * (_SHAPE * inches / columns + 0.22)), False, path, scene.title) as figure:
        for number, time in enumerate(t):
            axes = figure.add_subplot(rows, columns, number + 1)
            k = int(np.searchsorted(everything, time))
            axes.imshow(picture(whole, k, eye, height, width, arrows), interpolation="lanczos")
            axes.set_axis_off()
            axes.set_title(f"$t = {time:.4g}$", fontsize=8.5)
            if labels:
                _name_parts(axes, whole, k, eye, height, width)
    return figure


def _checked(scene: Scene, times: Any) -> np.ndarray:
    try:
        t = np.atleast_1d(np.array(times, dtype=float))
    except (TypeError, ValueError):
        t = np.empty(0)
    first, last = scene.t[0], scene.t[-1]
    if t.ndim != 1 or not t.size or not np.all((t >= first) & (t <= last)):
        raise daedal.InvalidProblemError(
            f"times={times!r} must be times between {first:g} and {last:g}, the interval of the scene"
        )
    return t


def _name_parts(axes: Any, scene: Scene, k: int, eye: np.ndarray, height: int, width: int) -> None:
    camera = make_camera(scene, eye, height, width)
    for part in scene.parts:
        if isinstance(part, Part):
            place = part.position[:, min(k, part.position.shape[1] - 1)]
            x, y, _ = camera.project(place[None])[0]
            box = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.0}
            axes.annotate(part.name, (x, y), (4, 5), textcoords="offset points", fontsize=7.5, color=INK, bbox=box)


def write_gif(scene: Scene, path: Path, seconds: float | None, frames: int | None) -> Path:
    """Write the motion to a GIF; see :meth:`Scene.gif`."""
    from PIL import Image

    if path.suffix.lower() != ".gif":
        raise daedal.InvalidProblemError(f"path={str(path)!r} must end in .gif")
    if frames is None:
        frames = max(2, min(scene.t.size, _GIF_FRAMES))
    if isinstance(frames, bool) or not isinstance(frames, (int, np.integer)) or not 2 <= frames <= _GIF_MOST:
        raise daedal.InvalidProblemError(f"frames={frames!r} must be an integer from 2 to {_GIF_MOST}")
    if scene.t.size < 2:
        raise daedal.InvalidProblemError("the scene has only one time; there is nothing to animate")
    shown = playing_time(scene.t, seconds)
    scene = scene.resampled(np.linspace(scene.t[0], scene.t[-1], int(frames)))
    eye = eye_direction(scene)
    pictures = []
    for k in range(int(frames)):
        image = picture(scene, k, eye, round(_SHAPE * _GIF_WIDTH), _GIF_WIDTH)
        pictures.append(Image.fromarray((255.0 * image).astype(np.uint8)).quantize(128))
    path.parent.mkdir(parents=True, exist_ok=True)
    pause = max(20, round(1000.0 * shown / frames))
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=pause, loop=0)
    return path
