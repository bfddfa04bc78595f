"""From where a scene is seen, and what stands behind it; the same for pages and stills."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import daedal
from daedal.viz.scene import Scene
from daedal.viz.scene_parts import Part
from daedal.viz.shapes3d import Plane

# Directions from the scene to the eye, by the axis that points upwards
EYES = {
    "z": {"space": (0.55, -0.78, 0.42), "front": (0.0, -1.0, 0.0), "side": (1.0, 0.0, 0.0), "top": (0.0, 0.0, 1.0)},
    "y": {"space": (0.55, 0.42, 0.78), "front": (0.0, 0.0, 1.0), "side": (1.0, 0.0, 0.0), "top": (0.0, 1.0, 0.0)},
}
_GAP = 0.03  # between the scene and the floor, in parts of its size
_LINES = 8.0  # of the grid along the size of the scene, about


@dataclass(frozen=True, eq=False)
class Backdrop:
    """A grid below the scene, or behind it where it is seen straight on: a point, the normal, and its spacing."""

    point: np.ndarray
    normal: np.ndarray
    spacing: float


def first_view(scene: Scene) -> str:
    """Straight on for motion in a plane, otherwise "space"."""
    if scene.plane is None:
        return "space"
    axis = "xyz".index(scene.plane)
    return next(name for name, eye in EYES[scene.up].items() if name != "space" and eye[axis])


def eye_direction(scene: Scene, view: Any = None) -> np.ndarray:
    """The unit vector to the eye: of a view by name, or of azimuth and elevation in degrees."""
    eyes = EYES[scene.up]
    if view is None:
        view = first_view(scene)
    if isinstance(view, str):
        if view not in eyes:
            raise daedal.InvalidProblemError(f"view={view!r} is not known; choose one of {', '.join(eyes)}")
        eye = np.array(eyes[view])
        return eye / np.linalg.norm(eye)
    try:
        azimuth, elevation = (math.radians(float(angle)) for angle in view)
    except (TypeError, ValueError):
        raise daedal.InvalidProblemError(
            f"view={view!r} must be a name such as 'front', or azimuth and elevation in degrees"
        ) from None
    along, across, upwards = math.cos(azimuth), math.sin(azimuth), math.sin(elevation)
    level = math.cos(elevation)
    return np.array(
        [level * along, level * across, upwards] if scene.up == "z" else [level * across, upwards, level * along]
    )


def camera_axes(scene: Scene, eye: np.ndarray) -> np.ndarray:
    """Rows: to the right, upwards in the picture, to the eye."""
    up = np.eye(3)["xyz".index(scene.up)]
    right = np.cross(up, eye)
    if np.linalg.norm(right) < 1e-6:  # from above: x to the right
        right = np.array([1.0, 0.0, 0.0])
    right = right / np.linalg.norm(right)
    return np.array([right, np.cross(eye, right), eye])


def floor(scene: Scene) -> tuple[Plane, np.ndarray] | None:
    """The first plane that is level and at rest, and a point of it; None if the scene is seen straight on."""
    if first_view(scene) != "space":
        return None
    upwards = np.array(EYES[scene.up]["top"])
    for part in scene.parts:
        if isinstance(part, Part) and not part.moves:
            for shape in part.shapes:
                if isinstance(shape, Plane) and part.rotation[0] @ shape.direction @ upwards > 1.0 - 1e-9:
                    return shape, part.position[:, 0] + part.rotation[0] @ np.asarray(shape.offset)
    return None


def backdrop(scene: Scene) -> Backdrop:
    """The floor, or for motion in a plane the wall behind it."""
    low, high = scene.bounds
    view = first_view(scene)
    normal = np.array(EYES[scene.up]["top" if view == "space" else view])
    given = floor(scene)
    behind = np.where(normal > 0.0, low, high) - _GAP * scene.size * normal if given is None else given[1]
    point = np.where(normal != 0.0, behind, 0.5 * (low + high))
    rough = scene.size / _LINES
    unit = 10.0 ** math.floor(math.log10(rough))
    return Backdrop(point, normal, unit * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= 0.999 * rough))
