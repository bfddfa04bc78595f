"""Drawings of spatial mechanisms: functions that create a scene from times and states, z upwards."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.library.drawings.plane import ROUND, plane_pendulum
from daedal.library.repelling_points import POINTS
from daedal.multibody.motion import MotionHistory
from daedal.multibody.picture import scene_of
from daedal.viz import Disc, Drawing, Line, Part, Plane, Rod, RodLine, Scene, Sphere, Trace

SceneMaker = Callable[[np.ndarray, np.ndarray], Scene]
_THIN = "#9aa3ae"  # guide lines


def _ring(name: str, radius: float, z: float) -> Line:
    return Line(name, [(radius * math.cos(a), radius * math.sin(a), z) for a in ROUND], color=_THIN)


def pendulum(system: Any) -> Drawing | SceneMaker:
    if system.n_q == 2:
        return plane_pendulum(system, -1.0)
    length = float(system.params[0])

    def scene(t, q):
        rod = RodLine("rod", (0.0, 0.0, 0.0), q)
        bob = Part("bob", [Sphere(0.08 * length)], q, color="#c9606f")
        pivot = Part("pivot", [Sphere(0.03 * length)])
        return Scene(t, [pivot, rod, bob], traces=[Trace("path", q)])

    return scene


def points_on_sphere(system: Any) -> SceneMaker:
    def scene(t, q):
        places = q[: 3 * POINTS].reshape(POINTS, 3, -1)
        points = [Part(f"point {k}", [Sphere(0.06)], place, color="#c9606f") for k, place in enumerate(places, 1)]
        spokes = [RodLine(f"spoke {k}", (0.0, 0.0, 0.0), place, 0.008) for k, place in enumerate(places, 1)]
        turns = np.array([0.0, 0.25, 0.5, 0.75]) * math.pi
        meridians = [
            Line(
                f"meridian {k}",
                [(x * math.cos(a), x * math.sin(a), z) for x, z in zip(np.cos(ROUND), np.sin(ROUND))],
                color=_THIN,
            )
            for k, a in enumerate(turns)
        ]
        rings = [
            _ring(f"parallel {k}", math.cos(a), math.sin(a))
            for k, a in enumerate((-0.25 * math.pi, 0.0, 0.25 * math.pi))
        ]
        traced = [Trace(f"path of point {k}", places[k - 1]) for k in (1, 4, 11, 17)]
        return Scene(t, [*points, *spokes, *meridians, *rings], traces=traced)

    return scene


def particle_in_bowl(system: Any) -> SceneMaker:
    def scene(t, q):
        particle = Part("particle", [Sphere(0.07)], q[:3], color="#c9606f")
        return Scene(t, [*_bowl(1.0, 1.3), particle], traces=[Trace("path", q[:3])])

    return scene


def skate_in_bowl(system: Any) -> SceneMaker:
    """A blade on z = (x^2 + y^2)/2, along the tangent in the direction of its angle."""

    def scene(t, q):
        x, y, _, angle = q[:4]
        along = np.array([np.cos(angle), np.sin(angle), x * np.cos(angle) + y * np.sin(angle)])
        upwards = np.array([-x, -y, 1.0 + 0.0 * t])
        axes = []
        for vector in (along, np.cross(upwards, along, axis=0)):
            axes.append(vector / np.linalg.norm(vector, axis=0))
        axes.append(np.cross(axes[0], axes[1], axis=0))
        blade = Part("blade", [Rod((-0.28, 0.0, 0.0), (0.28, 0.0, 0.0))], q[:3], np.array(axes).transpose(2, 1, 0))
        return Scene(t, [*_bowl(0.5, 1.4), blade], traces=[Trace("path", q[:3])])

    return scene


def _bowl(steepness: float, radius: float) -> list[Line]:
    """Rings and ribs of z = steepness (x^2 + y^2)."""
    rings = [_ring(f"ring {k}", r, steepness * r * r) for k, r in enumerate(np.linspace(0.25, 1.0, 4) * radius)]
    profile = np.linspace(-radius, radius, 41)
    ribs = [
        Line(f"rib {k}", [(r * math.cos(a), r * math.sin(a), steepness * r * r) for r in profile], color=_THIN)
        for k, a in enumerate((0.0, 0.25 * math.pi, 0.5 * math.pi, 0.75 * math.pi))
    ]
    return [*rings, *ribs]


def disc(system: Any) -> SceneMaker:
    """The upright disc of q = (x, y, theta, phi) on a plane that descends along x, drawn horizontally."""
    radius = float(system.params[0])

    def scene(t, q):
        x, y, turn, heading = q[:4]
        ahead = np.array([np.cos(heading), np.sin(heading), 0.0 * t])
        upwards = np.array([0.0 * t, 0.0 * t, 1.0 + 0.0 * t])
        first = np.cos(turn) * ahead - np.sin(turn) * upwards
        second = np.sin(turn) * ahead + np.cos(turn) * upwards
        rotation = np.array([first, second, np.cross(first, second, axis=0)]).transpose(2, 1, 0)
        centre, contact = np.array([x, y, radius + 0.0 * t]), np.array([x, y, 0.0 * t])
        wheel = Part("disc", [Disc(radius, 0.14 * radius)], centre, rotation)
        plane = Part("plane, descending along x", [Plane(4.0 * float(np.ptp(x) + np.ptp(y) + radius), "z")])
        mark = centre + radius * first
        return Scene(t, [plane, wheel], traces=[Trace("contact", contact), Trace("a point of the rim", mark)])

    return scene


def machine(system: Any) -> SceneMaker:
    """A machine, drawn by its bodies."""

    def scene(t, q):
        states = q[: system.n_q].T
        return scene_of(
            MotionHistory(system.model, system.layout, t, states, 0.0 * states, np.zeros((t.size, 0)), tuple)
        )

    return scene
