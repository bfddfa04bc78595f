"""Drawing primitives of pages and stills: triangles that are moved, rotated and stretched, and lines."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from daedal.viz import tessellation
from daedal.viz.scene import Scene, floor
from daedal.viz.scene_parts import Arrow, Line, Part, RodLine, SpringLine
from daedal.viz.shapes3d import SLIM, Piece, Plane, knuckle
from daedal.viz.tessellation import coarser, placement, rotation_to

# lightened colours of daedal.viz.figure, since shading darkens them
PALETTE = ("#2f6fb5", "#e2ae3c", "#c9606f", "#43a594", "#a95fa3")
AT_REST = "#8b929c"  # fixed parts, springs
ARROWS = ("#c9606f", "#2b8a79", "#a95fa3", "#2f6fb5")  # one colour for each unit
TRACES = ("red", "green", "purple")  # named colours of the page, with light and dark variants
AXIS_COLOURS = ("#c8443c", "#3f9142", "#2f6fbf")  # x, y, z

# Effect of an item's stretch on a piece: none; z is multiplied by the stretch; the piece is moved along z by the
# stretch and shrunk if the stretch is less than half an arrow head
RIGID, STRETCHED, AT_TIP = 0, 1, 2
LONGEST_ARROW, ARROW_RADIUS, HEAD = 0.26, 0.008, 0.06  # relative to the size of the scene
AXIS_LENGTH = 0.1  # relative to the size of the scene
MANY = 150  # number of parts above which parts are drawn with fewer triangles
SPRING_RADIUS, TURN = 0.025, 0.9  # coil radius, relative to the size of the scene; coil pitch, in coil radii


@dataclass(frozen=True, eq=False)
class Item:
    """Pieces attached to a frame with position (nt, 3) and quaternion (nt, 4), x y z w; one row for frames at rest.

    `stretch` (nt,) is the length of the item along its z axis. `pieces` are pairs of a piece and the effect of the
    stretch. `value` (nt,) is displayed as a label with its `unit`.
    """

    name: str
    kind: str  # part, rod, spring, arrow or frame
    color: str
    position: np.ndarray
    quaternion: np.ndarray
    pieces: tuple[tuple[Piece, int], ...]
    stretch: np.ndarray | None = None
    value: np.ndarray | None = None
    unit: str = ""

    def matrices(self, k: int, size: float) -> Iterator[tuple[Piece, np.ndarray]]:
        """Pieces and their matrices (3, 4) in world coordinates at time index k, for the scene size `size`."""
        from scipy.spatial.transform import Rotation

        rotation = Rotation.from_quat(self.quaternion[min(k, len(self.quaternion) - 1)]).as_matrix()
        position = self.position[min(k, len(self.position) - 1)]
        stretch = 1.0 if self.stretch is None else max(self.stretch[min(k, len(self.stretch) - 1)], 1e-9 * size)
        small = min(1.0, stretch / (0.5 * HEAD * size))
        for piece, mode in self.pieces:
            matrix = piece.matrix.copy()
            if mode == STRETCHED:
                matrix[2] *= stretch
            elif mode == AT_TIP:
                matrix *= small
                matrix[2, 3] += stretch
            matrix = rotation @ matrix
            matrix[:, 3] += position
            yield piece, matrix


@dataclass(frozen=True, eq=False)
class Curve:
    """A line through points (n, 3, nt), or a growing trace (3, nt)."""

    name: str
    kind: str  # line or trace
    color: str  # #rrggbb or a named colour of the page
    points: np.ndarray


def items(scene: Scene) -> list[Item]:
    """Bodies, springs, arrows and frames of a scene, in this order."""
    found: list[Item] = []
    number = 0
    level = floor(scene)
    hidden = None if level is None else level[0]  # drawn as the grid instead
    for part in scene.parts:
        if isinstance(part, Part):
            at_rest = (scene.t.size > 1 and not part.moves) or all(isinstance(shape, Plane) for shape in part.shapes)
            color = part.color or (AT_REST if at_rest else PALETTE[number % len(PALETTE)])
            number += not (at_rest or part.color)
            pieces = tuple(
                (piece, RIGID) for shape in part.shapes if shape is not hidden for piece in shape.pieces(scene.size)
            )
            if len(scene.parts) > MANY:
                pieces = tuple((replace(piece, triangles=coarser(piece.triangles)), RIGID) for piece, _ in pieces)
            found.append(Item(part.name, "part", color, part.position.T, quaternions(part.rotation), pieces))
        elif isinstance(part, SpringLine):
            found.append(_spring(part, scene.size))
        elif isinstance(part, RodLine):
            found.append(_rod(part, scene.size))
    return [*found, *_arrows(scene), *_frames(scene)]


def curves(scene: Scene) -> list[Curve]:
    """Lines and traces of a scene."""
    found = []
    for line in scene.parts:
        if isinstance(line, Line):
            points = np.concatenate([line.points, line.points[:1]]) if line.closed else line.points
            found.append(Curve(line.name, "line", line.color or "ink", points))
    for k, trace in enumerate(scene.traces):
        found.append(Curve(trace.name, "trace", trace.color or TRACES[k % len(TRACES)], trace.points))
    return found


def quaternions(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternions (nt, 4), x y z w, of rotations (nt, 3, 3), without sign changes between consecutive ones."""
    from scipy.spatial.transform import Rotation

    q = Rotation.from_matrix(rotation).as_quat()
    turns = np.sum(q[1:] * q[:-1], axis=1) < 0.0
    q[1:][np.cumsum(turns) % 2 == 1] *= -1.0
    return q


def _spring(spring: SpringLine, size: float) -> Item:
    frame, length = _towards(spring.end - spring.start)
    radius = spring.radius or SPRING_RADIUS * size
    slender = float(np.round(max(np.mean(length) / radius, 1.0), 1))
    turns = int(spring.coils or np.clip(round(slender / TURN), 5, 20))
    coil = Piece(tessellation.coil(turns, slender), placement((0.0, 0.0, 0.0), np.eye(3), (radius, radius, 1.0)))
    color = spring.color or AT_REST
    return Item(spring.name, "spring", color, spring.start.T, frame, ((coil, STRETCHED),), length)


def _rod(rod: RodLine, size: float) -> Item:
    frame, length = _towards(rod.end - rod.start)
    radius = rod.radius or SLIM * size
    bar = Piece(tessellation.cylinder(), placement((0.0, 0.0, 0.5), np.eye(3), (radius, radius, 1.0)))
    end = knuckle((0.0, 0.0, 0.0), radius)
    pieces = ((bar, STRETCHED), (end, RIGID), (end, AT_TIP))
    return Item(rod.name, "rod", rod.color or PALETTE[0], rod.start.T, frame, pieces, length)


def _arrows(scene: Scene) -> Iterator[Item]:
    units = list(dict.fromkeys(arrow.unit for arrow in scene.arrows))
    longest = {unit: max(_length(arrow) for arrow in scene.arrows if arrow.unit == unit) or 1.0 for unit in units}
    radius, head = ARROW_RADIUS * scene.size, HEAD * scene.size
    pieces = arrow_pieces(radius, head)
    for arrow in scene.arrows:
        frame, length = _towards(arrow.vector)
        color = arrow.color or ARROWS[units.index(arrow.unit) % len(ARROWS)]
        shown = LONGEST_ARROW * scene.size / longest[arrow.unit] * length
        shaft = np.maximum(shown - 0.5 * head, 0.5 * shown)
        yield Item(arrow.name, "arrow", color, arrow.origin.T, frame, pieces, shaft, length, arrow.unit)


def _length(arrow: Arrow) -> float:
    return float(np.linalg.norm(arrow.vector, axis=0).max())


def arrow_pieces(radius: float, head: float) -> tuple[tuple[Piece, int], ...]:
    """A shaft along z whose length is the stretch, and a head centred at its end."""
    shaft = Piece(tessellation.cylinder(), placement((0.0, 0.0, 0.5), np.eye(3), (radius, radius, 1.0)))
    tip = Piece(tessellation.cone(), placement((0.0, 0.0, -0.5 * head), np.eye(3), (2.8 * radius, 2.8 * radius, head)))
    return ((shaft, STRETCHED), (tip, AT_TIP))


def _frames(scene: Scene) -> Iterator[Item]:
    """Axes of the parts with ``frame=True``; if there are none, of all parts."""
    parts = [part for part in scene.parts if isinstance(part, Part)]
    length = AXIS_LENGTH * scene.size
    radius = 0.03 * length
    pieces = []
    for direction, color in zip(np.eye(3), AXIS_COLOURS):
        turned = rotation_to(direction)
        bar = placement(0.5 * length * direction, turned, (radius, radius, length))
        tip = placement(length * direction, turned, (2.5 * radius, 2.5 * radius, 0.25 * length))
        pieces += [(Piece(tessellation.cylinder(), bar, color), RIGID), (Piece(tessellation.cone(), tip, color), RIGID)]
    for part in [part for part in parts if part.frame] or parts:
        yield Item(part.name, "frame", AT_REST, part.position.T, quaternions(part.rotation), tuple(pieces))


def _towards(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quaternions (nt, 4) that rotate z to vectors (3, nt) with minimal change over time, and the vector lengths."""
    length = np.linalg.norm(vectors, axis=0)
    before = np.array([0.0, 0.0, 1.0])
    frame = np.eye(3)
    found = []
    for vector, size in zip(vectors.T, length):
        if size > 1e-12 * length.max():
            frame = _carried(before, vector / size) @ frame
            before = vector / size
        found.append(frame)
    return quaternions(np.array(found)), length


def _carried(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The rotation by the smallest angle that maps one unit vector to another."""
    basis = rotation_to(old)
    return basis @ rotation_to(basis.T @ new) @ basis.T
