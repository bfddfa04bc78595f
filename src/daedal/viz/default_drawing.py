"""Automatic drawing of a mechanism: points from its coordinates, rods, pins and guides from its constraints.

Constraints are identified by their gradients along the motion. With J the rotation by a right angle,

* a row that acts on two points in opposite directions along their line is a rod of constant length;
* two rows that connect the same bodies, with a constant invertible block for x and y, are a pin at P + R s, where
  the column of the angle, J R s in these rows, determines R s;
* a row that acts on one point and always points away from a fixed anchor is a rod, one with a constant direction a
  straight guide;
* two rows that contain only angles close a loop of links; their columns are J times the links that an angle rotates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from daedal.viz.drawing import Drawing, Pair

_SAMPLES = 9  # number of states at which gradients are evaluated
_LARGEST = 100  # largest number of coordinates for which a drawing is inferred
_SAME = 1e-6  # relative difference below which values count as equal
_ANGLES = ("phi", "theta", "alpha", "beta", "psi", "angle", "a", "p", "t")
_RIGHT_ANGLE = np.array([[0.0, -1.0], [1.0, 0.0]])


@dataclass(frozen=True)
class DrawnBody:
    """A point of the plane, or a body with an angle, by the indices of its coordinates."""

    name: str
    x: int
    y: int
    angle: int | None = None

    def columns(self) -> list[int]:
        """Indices of the coordinates."""
        return [self.x, self.y] if self.angle is None else [self.x, self.y, self.angle]

    def place(self, offset: tuple[float, float] = (0.0, 0.0)):
        """The position of a body-fixed point as a function of q."""
        a, b = offset
        if self.angle is None or (a == 0.0 and b == 0.0):
            return lambda q: (q[self.x], q[self.y])
        return lambda q: (
            q[self.x] + a * np.cos(q[self.angle]) - b * np.sin(q[self.angle]),
            q[self.y] + a * np.sin(q[self.angle]) + b * np.cos(q[self.angle]),
        )


def default_drawing(names: Sequence[str], system: Any = None, t: Any = None, q: Any = None) -> Drawing | None:
    """Infer a drawing from coordinate names and the constraints of a system at states q (n_q, nt); None if impossible.

    Coordinates named x and y, x1 and y1, ... are points, or bodies together with phi1, theta1, ...; without such names,
    pairs, triples or angles are tried until all constraints are explained.
    """
    bodies, gradients = named_bodies(names), _gradients(system, t, q)
    if any(name.replace("x", "z", 1) in names for name in names if "x" in name):
        return None  # spatial mechanism
    if gradients is None:
        return (
            DrawnGeometry(bodies, np.zeros((0, len(names), 1)), np.zeros((len(names), 1))).drawing() if bodies else None
        )
    if bodies:
        return DrawnGeometry(bodies, *gradients).read().drawing()
    for size in (2, 3):
        if len(names) % size == 0:
            tried = [
                DrawnBody(f"body {k + 1}", i, i + 1, i + 2 if size == 3 else None) for k, i in _blocks(names, size)
            ]
            geometry = DrawnGeometry(tried, *gradients).read()
            if len(geometry.explained) == gradients[0].shape[0]:
                return geometry.drawing()
    return _loops(*gradients)


def named_bodies(names: Sequence[str]) -> list[DrawnBody]:
    """Bodies by pairs of names such as x1 and y1, or x_bob and y_bob, and an angle such as phi1."""
    places, found = {name: k for k, name in enumerate(names)}, []
    for name, k in places.items():
        head, letter, tail = name.partition("x")
        y = f"{head}y{tail}"
        if not letter or y not in places:
            continue
        angles = [places[other] for word in _ANGLES if (other := f"{head}{word}{tail}") in places]
        found.append(DrawnBody(f"({name}, {y})", k, places[y], angles[0] if angles else None))
    return found


def _blocks(names: Sequence[str], size: int) -> list[tuple[int, int]]:
    return list(enumerate(range(0, len(names), size)))


def _gradients(system: Any, t: Any, q: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """G (m, n_q, nt) and q (n_q, nt) at some states; None if there are no suitable constraints."""
    if system is None or not getattr(system, "n_constraints", 0) or system.n_q > _LARGEST or system.n_s or t is None:
        return None
    chosen = np.unique(np.linspace(0, t.size - 1, _SAMPLES).round().astype(int))
    found = [system.at(float(t[k]), q[:, k]).jacobian[: system.n_constraints] for k in chosen]
    return np.stack(found, axis=2), q[:, chosen]


@dataclass
class DrawnGeometry:
    """Interpretation of the constraint gradients G (m, n, nt) of bodies at the states q (n, nt)."""

    bodies: list[DrawnBody]
    G: np.ndarray
    q: np.ndarray
    explained: set[int] = field(default_factory=set)  # rows of G
    rods: list[tuple[int, int]] = field(default_factory=list)  # pairs of bodies
    pins: list[dict[int, Pair]] = field(default_factory=list)  # attachment points on each body
    anchors: list[tuple[int, Pair]] = field(default_factory=list)  # bodies at constant distances from fixed points
    guides: list[tuple[Pair, Pair]] = field(default_factory=list)  # end points of each guide line

    def read(self) -> DrawnGeometry:
        """Interpret all constraints."""
        for i, j in pairwise(range(self.G.shape[0])):
            if i not in self.explained and j not in self.explained and (pin := self._pin([i, j])):
                self.pins.append(pin)
                self.explained |= {i, j}
        for i in range(self.G.shape[0]):
            if i not in self.explained and self._alone(i):
                self.explained.add(i)
        return self

    def _at(self, k: int) -> np.ndarray:
        return self.q[[self.bodies[k].x, self.bodies[k].y]]

    def _tied(self, rows: list[int]) -> list[int] | None:
        """Bodies whose coordinates occur in the rows; None if coordinates that belong to no body also occur."""
        used = set(np.flatnonzero(np.abs(self.G[rows]).max(axis=(0, 2)) > _SAME * np.abs(self.G[rows]).max()).tolist())
        tied = [k for k, body in enumerate(self.bodies) if used & set(body.columns())]
        return None if used - {c for k in tied for c in self.bodies[k].columns()} else tied

    def _pin(self, rows: list[int]) -> dict[int, Pair] | None:
        tied = self._tied(rows)
        if not tied or len(tied) > 2:
            return None
        blocks = [self.G[np.ix_(rows, [self.bodies[k].x, self.bodies[k].y])] for k in tied]
        first = blocks[0][:, :, 0]
        if not _constant(blocks[0]) or abs(np.linalg.det(first)) < _SAME * np.linalg.norm(first) ** 2:
            return None
        if len(tied) == 2 and not np.allclose(blocks[0], -blocks[1], rtol=_SAME, atol=_SAME * np.abs(first).max()):
            return None
        found = {}
        for k, block in zip(tied, blocks, strict=True):
            angle = self.bodies[k].angle
            if angle is None:
                found[k] = (0.0, 0.0)
                continue
            turned = -_RIGHT_ANGLE @ np.linalg.solve(block[:, :, 0], self.G[rows, angle])  # R s
            c, s = np.cos(self.q[angle]), np.sin(self.q[angle])
            local = np.array([c * turned[0] + s * turned[1], -s * turned[0] + c * turned[1]])
            if not _constant(local):
                return None
            found[k] = (float(local[0, 0]), float(local[1, 0]))
        return found

    def _alone(self, row: int) -> bool:
        """Store a row as a rod between two points, or as an anchor or guide of one point; False if it is neither."""
        tied = self._tied([row])
        if not tied or len(tied) > 2 or any(self._turns(row, k) for k in tied):
            return False
        pulls = [self.G[row][[self.bodies[k].x, self.bodies[k].y]] for k in tied]
        if len(tied) == 2:
            apart = self._at(tied[0]) - self._at(tied[1])
            if not (_close(pulls[0], -pulls[1]) and _parallel(pulls[0], apart)):
                return False
            self.rods.append((tied[0], tied[1]))
            return True
        place, pull = self._at(tied[0]), pulls[0]
        if _constant(pull / np.linalg.norm(pull, axis=0)):
            along = _RIGHT_ANGLE @ pull[:, 0] / np.linalg.norm(pull[:, 0])
            if np.ptp(pull[:, 0] @ place) > _SAME * np.abs(place).max(initial=1.0) * np.linalg.norm(pull[:, 0]):
                return False  # a moving guide
            way = along @ (place - place[:, :1])
            reach = 0.1 * (np.ptp(way) or 1.0)
            ends = [place[:, 0] + along * s for s in (way.min() - reach, way.max() + reach)]
            self.guides.append((_pair(ends[0]), _pair(ends[1])))
            return True
        centre = _meeting(place, pull)
        if centre is not None:
            self.anchors.append((tied[0], centre))
        return centre is not None

    def _turns(self, row: int, k: int) -> bool:
        angle = self.bodies[k].angle
        return angle is not None and np.abs(self.G[row, angle]).max() > _SAME * np.abs(self.G[row]).max()

    def drawing(self) -> Drawing:
        """Points, rods, pins, anchors and guides as a drawing."""
        points: dict[str, Any] = {body.name: body.place() for body in self.bodies}
        rods: list[tuple[str, ...]] = [(self.bodies[i].name, self.bodies[j].name) for i, j in self.rods]
        for k, place in self.anchors:
            rods.append((_fixed(points, place), self.bodies[k].name))
        corners: dict[int, list[str]] = {}
        for pin in self.pins:
            [(first, place), *others] = pin.items()
            centres = [self.bodies[k].name for k, place in pin.items() if place == (0.0, 0.0)]
            if not others:
                name = _fixed(points, _pair(np.array(self.bodies[first].place(place)(self.q[:, 0]))))
            elif centres:
                name = centres[0]
            else:
                name = f"pin {len(points) + 1}"
                points[name] = self.bodies[first].place(place)
            for k in pin:
                if name != self.bodies[k].name:
                    corners.setdefault(k, []).append(name)
        plates = []
        for k, names in corners.items():
            if len(names) > 2:
                plates.append(tuple(names))
            elif self.bodies[k].angle is not None:
                rods.append((names[0], self.bodies[k].name, *names[1:]))
        moving = [body.name for body in self.bodies]
        return Drawing(points, rods, bodies=plates, masses=moving, ground=self.guides, traces=moving)


def _fixed(points: dict[str, Any], place: Pair) -> str:
    """Name of the fixed point at a position, which is added if new."""
    for name, known in points.items():
        if not callable(known) and np.allclose(known, place, rtol=1e-6, atol=1e-9):
            return name
    name = f"anchor {sum(not callable(known) for known in points.values()) + 1}"
    points[name] = place
    return name


def _loops(G: np.ndarray, q: np.ndarray) -> Drawing | None:
    """A drawing of loops of links rotated by angles, each closed by two rows, from the origin; None if impossible."""
    points: dict[str, Any] = {"origin": (0.0, 0.0)}
    rods: list[tuple[str, ...]] = []
    known: dict[Any, str] = {}  # names of joints shared by several loops, by the links that lead to them
    if G.shape[0] % 2 or not np.isfinite(G).all():
        return None
    for row in range(0, G.shape[0], 2):
        links = _links(G[row : row + 2], q)
        if links is None:
            return None
        chain = ["origin"]
        for n in range(1, len(links) + 1):
            key = tuple((angles, *np.round(link, 9).tolist()) for angles, link in links[:n])
            end = _end_of(links[:n])
            places = np.array([end(column) for column in q.T]).T
            if key not in known and _constant(places):
                known[key] = _fixed(points, _pair(places[:, 0]))
            elif key not in known:
                known[key] = f"joint {len(points)}"
                points[known[key]] = end
            chain.append(known[key])
        rods.append(tuple(chain))
    moving = [name for name, place in points.items() if callable(place)]
    return Drawing(points, rods, masses=moving, traces=moving) if moving else None


def _links(rows: np.ndarray, q: np.ndarray) -> list[tuple[tuple[int, ...], np.ndarray]] | None:
    """The links of a loop in order: the angles whose sum rotates a link, and the vector of the unrotated link.

    The column of an angle is J w, where w is the sum of all links that the angle rotates. A link with angle k that
    carries a link with relative angle m is w_k - w_m; the links that carry others are found by the condition
    that link lengths are constant. The loop follows the first branch outwards and returns along the others.
    """
    used = np.flatnonzero(np.abs(rows).max(axis=(0, 2)) > _SAME * np.abs(rows).max()).tolist()
    turned = {k: -_RIGHT_ANGLE @ rows[:, k] for k in used}
    carried: dict[int, int | None] = {}
    for k in used:
        lone = _constant(np.linalg.norm(turned[k], axis=0)[None])
        others = [m for m in used if m != k and _constant(np.linalg.norm(turned[k] - turned[m], axis=0)[None])]
        if not lone and not others:
            return None
        carried[k] = None if lone else others[0]
    branches = []
    for root in [k for k in used if k not in carried.values()]:
        branch: list[tuple[tuple[int, ...], np.ndarray]] = []
        angles: tuple[int, ...] = ()
        outer: int | None = root
        while outer is not None and len(branch) < len(used):
            child = carried[outer]
            link, angles = turned[outer] - (0.0 if child is None else turned[child]), (*angles, outer)
            c, s = np.cos(q[list(angles)].sum(axis=0)), np.sin(q[list(angles)].sum(axis=0))
            local = np.array([c * link[0] + s * link[1], -s * link[0] + c * link[1]])
            if not _constant(local):
                return None
            branch.append((angles, local[:, 0]))
            outer = child
        branches.append(branch)
    if not branches:
        return None
    return branches[0] + [link for branch in branches[1:] for link in reversed(branch)]


def _end_of(links: list[tuple[tuple[int, ...], np.ndarray]]):
    """The end of a chain of links that starts at the origin, as a function of q."""

    def place(q):
        x = y = 0.0
        for angles, (a, b) in links:
            turn = sum(q[k] for k in angles)
            x += a * np.cos(turn) - b * np.sin(turn)
            y += a * np.sin(turn) + b * np.cos(turn)
        return x, y

    return place


def _pair(place: np.ndarray) -> Pair:
    return float(place[0]), float(place[1])


def _constant(values: np.ndarray) -> bool:
    """Whether arrays over time, along the last axis, are constant."""
    return bool(np.ptp(values, axis=-1).max() <= _SAME * max(np.abs(values).max(), 1e-300))


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.abs(a - b).max() <= _SAME * max(np.abs(a).max(), np.abs(b).max()))


def _parallel(a: np.ndarray, b: np.ndarray) -> bool:
    lengths = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    return bool(np.abs(a[0] * b[1] - a[1] * b[0]).max() <= _SAME * lengths.max())


def _meeting(places: np.ndarray, directions: np.ndarray) -> Pair | None:
    """Intersection of lines given by points and directions; None if there is none."""
    unit = directions / np.linalg.norm(directions, axis=0)
    normal = np.array([-unit[1], unit[0]]).T
    right = np.sum(normal * places.T, axis=1)
    found, _, rank, _ = np.linalg.lstsq(normal, right, rcond=1e-6)
    size = np.abs(places - found[:, None]).max(initial=0.0)
    if rank < 2 or np.abs(normal @ found - right).max() > 1e-5 * size:
        return None
    return _pair(np.where(np.abs(found) < 1e-9 * size, 0.0, found))
