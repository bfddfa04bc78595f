"""Drawings of models with modes: impact, friction, breaking."""

import math
from collections.abc import Callable
from typing import Any

from daedal.library.drawings.plane import CORNERS, string
from daedal.viz import Drawing


def ball(model) -> Drawing:
    height = float(model.initial[1][0][0])
    radius = 0.06 * height
    return Drawing(
        {"ball": lambda q: (0.0, q[0] + radius)},
        wheels=[("ball", radius, None)],
        ground=[[(-0.6 * height, 0.0), (0.6 * height, 0.0)]],
    )


def bowed_string(model) -> Drawing:
    return string(model.problem.system)


def ladder(model) -> Drawing:
    return Drawing(
        {
            "top": lambda q: (q[0] - math.cos(q[2]), q[1] + math.sin(q[2])),
            "middle": lambda q: (q[0], q[1]),
            "foot": lambda q: (q[0] + math.cos(q[2]), q[1] - math.sin(q[2])),
        },
        rods=[("top", "foot")],
        traces=("middle",),
        ground=[[(0.0, 2.1), (0.0, 0.0), (3.0, 0.0)]],
    )


def rope(model) -> Drawing:
    def end(q):  # hangs down when it is broken
        return (q[0], q[1]) if abs(math.hypot(q[0], q[1]) - 1.0) < 1e-6 else (0.0, -1.0)

    return Drawing(
        {"pivot": (0.0, 0.0), "end": end, "bob": lambda q: (q[0], q[1])},
        curves=[("pivot", "end")],
        masses=("bob",),
        traces=("bob",),
        ground=[[(-0.15, 0.0), (0.15, 0.0)]],
    )


def crash(model) -> Drawing:
    length = 1.8
    return Drawing(
        {
            "pivot": (0.0, 0.0),
            "tip": lambda q: (length * math.sin(q[2]), -length * math.cos(q[2])),
            "above": (0.0, -0.9 * length),
            "dent": lambda q: (-q[3], -length),
            "below": (0.0, -1.1 * length),
            "upper wall": (0.0, -0.75 * length),
            "lower wall": (0.0, -1.2 * length),
        },
        rods=[("pivot", "tip")],
        curves=[("upper wall", "above", "dent", "below", "lower wall")],
    )


def box(name: str, centre: Callable, width: float, height: float, angle: float = 0.0) -> dict[str, Callable]:
    """The corners of a block, by name."""
    c, s = math.cos(angle), math.sin(angle)

    def corner(dx, dy):
        def place(q):
            x, y = centre(q)
            return x + c * dx - s * dy, y + s * dx + c * dy

        return place

    return {f"{name} {k}": corner(0.5 * width * i, 0.5 * height * j) for k, (i, j) in enumerate(CORNERS)}


def oscillator(model) -> Drawing:
    block = box("block", lambda q: (q[0], 0.5), 1.4, 1.0)
    return Drawing(
        {"wall": (-6.0, 0.5), "hook": lambda q: (q[0] - 0.7, 0.5), **block},
        springs=[("wall", "hook")],
        bodies=[tuple(block)],
        ground=[[(-6.0, 2.0), (-6.0, 0.0), (5.0, 0.0)]],
    )


def block(model) -> Drawing:
    """The inclination is that of the default data."""
    speed, angle, size = model.problem.params["speed"], 0.3, 0.25
    c, s = math.cos(angle), math.sin(angle)

    def up(x, high):
        return x * c - high * s, x * s + high * c

    block = box("block", lambda q: up(q[0], 0.5 * size), 1.6 * size, size, angle)
    end = speed * model.t_span[1] + 1.5
    return Drawing(
        {
            "hook": lambda q: up(q[0] + 0.8 * size, 0.5 * size),
            "hand": lambda t, q: up(speed * t + 0.8 * size + 0.9, 0.5 * size),
            **block,
        },
        springs=[("hook", "hand")],
        bodies=[tuple(block)],
        ground=[[up(-0.8, 0.0), up(end, 0.0)]],
    )


def rubbing_slider(model) -> Drawing:
    def pin(q):
        return 2.0 * q[0], 2.0 * q[1]

    def slider(q):
        return 2.0 * q[3] - 2.0 * q[0], 2.0 * (q[4] - q[1])

    block = box("block", slider, 7.0, 4.0)
    return Drawing(
        {"axle": (0.0, 0.0), "pin": pin, "slider": slider, **block},
        rods=[("axle", "pin", "slider")],
        bodies=[tuple(block)],
        ground=[[(18.0, y), (62.0, y)] for y in (-2.2, 2.2)],
        traces=("pin",),
    )


def rod_on_floor(model) -> Drawing:
    return Drawing(
        {
            "foot": lambda q: (q[0] - math.cos(q[2]), q[1] - math.sin(q[2])),
            "tip": lambda q: (q[0] + math.cos(q[2]), q[1] + math.sin(q[2])),
        },
        rods=[("foot", "tip")],
        traces=("tip",),
        ground=[[(-1.0, 0.0), (3.0, 0.0)]],
    )


def cradle(model) -> Drawing:
    radius, count = model.extra["radius"], model.problem.system.n_q
    places = [2.0 * radius * (i - 0.5 * (count - 1)) for i in range(count)]
    points: dict[str, Any] = {f"pivot {i}": (x, 0.0) for i, x in enumerate(places)}
    for i, x in enumerate(places):
        points[f"ball {i}"] = lambda q, i=i, x=x: (x + math.sin(q[i]), -math.cos(q[i]))
    return Drawing(
        points,
        curves=[(f"pivot {i}", f"ball {i}") for i in range(count)],
        wheels=[(f"ball {i}", radius, None) for i in range(count)],
        ground=[[(places[0] - 0.2, 0.0), (places[-1] + 0.2, 0.0)]],
    )


def pushed_block(model) -> Drawing:
    width, height = model.extra["width"], model.extra["height"]

    def corner(a: float, b: float) -> Callable:
        return lambda q: (
            q[0] + a * width * math.cos(q[2]) - b * height * math.sin(q[2]),
            q[1] + a * width * math.sin(q[2]) + b * height * math.cos(q[2]),
        )

    places = {"lower left": (-1, -1), "lower right": (1, -1), "upper right": (1, 1), "upper left": (-1, 1)}
    points = {name: corner(*place) for name, place in places.items()}
    return Drawing(
        {**points, "centre": lambda q: (q[0], q[1])},
        bodies=[tuple(places)],
        traces=("centre",),
        ground=[[(-1.5 * width, 0.0), (6.0 * width, 0.0)]],
    )
