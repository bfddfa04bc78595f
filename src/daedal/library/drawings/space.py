"""Drawings of mechanisms in space, seen from 30 degrees beside the x axis and 25 degrees above."""

import math
from collections.abc import Callable

import numpy as np

from daedal.library.drawings.plane import ROUND, plane_pendulum
from daedal.library.repelling_points import POINTS
from daedal.viz import Drawing


def _seen(x: float, y: float, z: float, beside: float = 30.0, above: float = 25.0) -> tuple[float, float]:
    a, e = math.radians(beside), math.radians(above)
    return y * math.cos(a) - x * math.sin(a), z * math.cos(e) - (x * math.cos(a) + y * math.sin(a)) * math.sin(e)


def _ring(radius: float, z: float) -> list[tuple[float, float]]:
    return [_seen(radius * math.cos(a), radius * math.sin(a), z) for a in ROUND]


def pendulum(system) -> Drawing:
    if system.n_q == 2:
        return plane_pendulum(system, -1.0)
    length = system.params[0]
    return Drawing(
        {"pivot": (0.0, 0.0), "bob": lambda q: _seen(q[0], q[1], q[2])},
        rods=[("pivot", "bob")],
        masses=("bob",),
        traces=("bob",),
        ground=[_ring(0.8 * length, -0.6 * length)],
    )


def points_on_sphere(system) -> Drawing:
    def point(k):
        return lambda q: _seen(q[3 * k], q[3 * k + 1], q[3 * k + 2])

    names = [f"point {k}" for k in range(1, POINTS + 1)]
    latitudes = [_ring(math.cos(a), math.sin(a)) for a in (-math.pi / 4.0, 0.0, math.pi / 4.0)]
    return Drawing(
        {"centre": (0.0, 0.0), **{name: point(k) for k, name in enumerate(names)}},
        curves=[("centre", name) for name in names],
        masses=names,
        traces=(names[0], names[3], names[10], names[16]),
        ground=[[(math.cos(a), math.sin(a)) for a in ROUND], *latitudes],
    )


def particle_in_bowl(system) -> Drawing:
    return _bowl(1.0, 1.3, blade=False)


def skate_in_bowl(system) -> Drawing:
    return _bowl(0.5, 1.4, blade=True)


def _bowl(steepness: float, radius: float, blade: bool) -> Drawing:
    """A particle, or a blade, on z = steepness (x^2 + y^2)."""
    rings = [_ring(r, steepness * r * r) for r in np.linspace(0.25, 1.0, 4) * radius]
    profile = np.linspace(-radius, radius, 41)
    ribs = [[_seen(x, 0.0, steepness * x * x) for x in profile], [_seen(0.0, y, steepness * y * y) for y in profile]]
    points: dict[str, Callable] = {"particle": lambda q: _seen(q[0], q[1], q[2])}
    if blade:
        points |= {"heel": _tip(-0.2 * radius), "toe": _tip(0.2 * radius)}
    return Drawing(
        points,
        rods=[("heel", "toe")] if blade else (),
        masses=("particle",),
        traces=("particle",),
        ground=[*rings, *ribs],
    )


def _tip(distance: float) -> Callable:
    """An end of the blade, on the tangent of z = (x^2 + y^2)/2."""

    def place(q):
        c, s = math.cos(q[3]), math.sin(q[3])
        return _seen(q[0] + distance * c, q[1] + distance * s, q[2] + distance * (q[0] * c + q[1] * s))

    return place


def disc(system) -> Drawing:
    radius = system.params[0]

    def rim(angle, turning=0.0, share=1.0):
        def place(q):
            a = angle - turning * q[2]
            along, up = share * radius * math.cos(a), share * radius * math.sin(a)
            return _seen(q[0] + along * math.cos(q[3]), q[1] + along * math.sin(q[3]), radius + up)

        return place

    edge = {f"rim {k}": rim(a) for k, a in enumerate(np.linspace(0.0, 2.0 * math.pi, 28, endpoint=False))}
    return Drawing(
        {**edge, "contact": rim(-0.5 * math.pi), "hub": rim(0.0, share=0.0), "mark": rim(0.0, turning=1.0)},
        bodies=[tuple(edge)],
        rods=[("hub", "mark")],
        traces=("contact", "mark"),
        text="the plane descends to the front",
    )
