"""Drawings of planar mechanisms, each from the parameters of its system."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.library import flexible_rod, squeezer, wheel_and_rail
from daedal.library.vehicles import AC_X, AC_Z, SPEED
from daedal.viz import Drawing

ROUND = np.linspace(0.0, 2.0 * math.pi, 61)


def rods(system) -> Drawing:
    """A chain of rods of half lengths l, by their angles; gravity along +x is drawn downwards."""
    angles = [2] if system.n_q == 3 else [2, 5]

    def end(count):
        def place(t, q, p):
            x = sum(2.0 * p[k] * math.sin(q[angle]) for k, angle in enumerate(angles[:count]))
            return x, -sum(2.0 * p[k] * math.cos(q[angle]) for k, angle in enumerate(angles[:count]))

        return place

    ends = {f"end {k}": end(k) for k in range(1, len(angles) + 1)}
    points = {"pivot": (0.0, 0.0), **ends}
    return Drawing(points, rods=[("pivot", *ends)], traces=[list(ends)[-1]], params=system.params)


def crank_slider(system) -> Drawing:
    crank, rod = 2.0 * system.params[0], 2.0 * system.params[1]

    def pin(t, q, p):
        return 2.0 * p[0] * math.sin(q[2]), -2.0 * p[0] * math.cos(q[2])

    def slider(dx, dy):
        return lambda t, q, p: (dx, -2.0 * p[0] * math.cos(q[2]) - 2.0 * p[1] * math.cos(q[5]) + dy)

    a = 0.12 * (crank + rod)
    block = {f"corner {k}": slider(0.7 * a * sx, 0.5 * a * sy) for k, (sx, sy) in enumerate(CORNERS)}
    top, bottom = -max(rod - crank, 0.0) + a, -(crank + rod) - a
    return Drawing(
        {"axle": (0.0, 0.0), "pin": pin, "slider": slider(0.0, 0.0), "middle": lambda q: (q[4], -q[3]), **block},
        rods=[("axle", "pin", "slider")],
        bodies=[tuple(block)],
        ground=[[(0.7 * a * side, top), (0.7 * a * side, bottom)] for side in (-1.0, 1.0)],
        traces=("middle",),
        params=system.params,
    )


def flexible_crank(system) -> Drawing:
    """A slider crank, with the bending of its rod magnified."""
    l1, l2, magnified, parts = flexible_rod.L1, flexible_rod.L2, 20.0, 12

    def pin(q):
        return l1 * math.cos(q[0]), l1 * math.sin(q[0])

    def along(share):
        def place(q):
            x, y = pin(q)
            bent = magnified * (q[3] * math.sin(math.pi * share) + q[4] * math.sin(2.0 * math.pi * share))
            c, s, length = math.cos(q[1]), math.sin(q[1]), share * (l2 + q[6])
            return x + length * c - bent * s, y + length * s + bent * c

        return place

    inner = {f"rod {k}": along(k / parts) for k in range(1, parts)}
    block = {
        f"corner {k}": (lambda q, sx=sx, sy=sy: (q[2] + 0.03 * sx, 0.02 * sy)) for k, (sx, sy) in enumerate(CORNERS)
    }
    return Drawing(
        {"axle": (0.0, 0.0), "pin": pin, **inner, "slider": lambda q: (q[2], 0.0), **block},
        rods=[("axle", "pin")],
        bodies=[tuple(block)],
        curves=[("pin", *inner, "slider")],
        ground=[[(0.1, 0.02 * side), (0.5, 0.02 * side)] for side in (-1.0, 1.0)],
        traces=(f"rod {parts // 2}",),
        text=f"bending of the rod magnified by {magnified:g}",
    )


CORNERS = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))


def seven_body(system) -> Drawing:
    s = squeezer

    def crank(q):
        return s.RR * math.cos(q[0]), s.RR * math.sin(q[0])

    def head(q):  # the common point of the three loops
        x, y = crank(q)
        return x - s.D * math.cos(q[0] + q[1]), y - s.D * math.sin(q[0] + q[1])

    def shoulder(q):  # attachment of the spring
        return (
            s.XB + s.SD * math.cos(q[2]) + s.SC * math.sin(q[2]),
            s.YB + s.SD * math.sin(q[2]) - s.SC * math.cos(q[2]),
        )

    return Drawing(
        {
            "O": (0.0, 0.0),
            "A": (s.XA, s.YA),
            "B": (s.XB, s.YB),
            "C": (s.XC, s.YC),
            "crank": crank,
            "head": head,
            "shoulder": shoulder,
            "upper": lambda q: (s.XA + s.ZT * math.cos(q[4]), s.YA + s.ZT * math.sin(q[4])),
            "lower": lambda q: (s.XA + s.U * math.sin(q[6]), s.YA - s.U * math.cos(q[6])),
        },
        rods=[("O", "crank", "head"), ("A", "upper", "head"), ("A", "lower", "head")],
        bodies=[("B", "shoulder", "head")],
        springs=[("C", "shoulder")],
        traces=("head", "shoulder"),
    )


def car_axis(system) -> Drawing:
    def road(t, q, p):
        length, _, r, w, _ = p
        y = r * math.sin(w * t)
        return math.sqrt(length**2 - y**2), y

    return Drawing(
        {"wheel": (0.0, 0.0), "road": road, "left": lambda q: (q[0], q[1]), "right": lambda q: (q[2], q[3])},
        rods=[("left", "right")],
        springs=[("wheel", "left"), ("road", "right")],
        curves=[("wheel", "road")],
        traces=("left", "right"),
        params=system.params,
    )


def wheelset(system) -> Drawing:
    """View from above; forwards is upwards."""
    half, radius, magnified = wheel_and_rail.HALF, wheel_and_rail.RADIUS, 4.0

    def carried(across, along):
        """A point of the axle, `across` to the left and `along` the track."""

        def place(q):
            x, angle = magnified * q[0], magnified * q[3]
            c, s = math.cos(angle), math.sin(angle)
            return -(x + c * across + s * along), q[2] - s * across + c * along

        return place

    wheels = {
        f"{name} {k}": carried(side * half + 0.02 * sx, radius * sy)
        for name, side in (("left", 1.0), ("right", -1.0))
        for k, (sx, sy) in enumerate(CORNERS)
    }
    return Drawing(
        {"left": carried(half, 0.0), "middle": carried(0.0, 0.0), "right": carried(-half, 0.0), **wheels},
        rods=[("left", "right")],
        bodies=[tuple(name for name in wheels if name.startswith(side)) for side in ("left", "right")],
        ground=[[(side * half, -0.25), (side * half, 0.25)] for side in (-1.0, 1.0)],
        masses=("middle",),
        text=f"seen from above; displacement and yaw magnified by {magnified:g}",
    )


def truck(system) -> Drawing:
    """The truck in its own frame, with the hump passing below. Heights are to scale."""
    hump, speed = system.params[1], system.params[2]
    wheel = 0.5

    def carried(z, angle, x, dx, dz):
        """A point of a body whose origin is at height q[z] and at x, or q[x] if x is an index."""

        def place(q):
            a = q[angle]
            c, s = math.cos(a), math.sin(a)
            origin = q[x] if isinstance(x, int) else x
            return origin + c * dx - s * dz, q[z] + s * dx + c * dz

        return place

    def outline(name, z, angle, x, corners):
        return {f"{name} {k}": carried(z, angle, x, dx, dz) for k, (dx, dz) in enumerate(corners)}

    def height(t, x):
        # the wheels at x = -2.06 and 2.44 reach the hump after 6.5 m and 2 m
        s = max((speed * t - 4.44 + x) / SPEED, 0.0)
        return hump * s**6 * math.exp(-s)

    chassis = outline("chassis", 1, 2, 0.0, ((-3.6, -0.25), (4.0, -0.25), (4.0, 0.1), (-3.6, 0.1)))
    cabin = outline("cabin", 4, 5, 2.74, ((-0.85, -0.5), (1.25, -0.5), (1.25, 0.5), (0.9, 1.2), (-0.85, 1.2)))
    load = outline("load", 7, 8, 6, ((-1.7, -0.5), (2.6, -0.5), (2.6, 1.3), (-1.7, 1.3)))
    springs = {
        "rear seat": carried(1, 2, 0.0, -2.06, -0.25),
        "front seat": carried(1, 2, 0.0, 2.44, -0.25),
        "cabin rear": carried(4, 5, 2.74, -0.8, -0.5),
        "cabin front": carried(4, 5, 2.74, 0.9, -0.5),
        "under cabin rear": carried(1, 2, 0.0, 1.94, 0.1),
        "under cabin front": carried(1, 2, 0.0, 3.64, 0.1),
        "under load": carried(1, 2, 0.0, 0.98, 0.1),
        "load front": carried(7, 8, 6, 2.44, -0.5),
    }
    road = {f"road {k}": (lambda t, q, x=x: (x, height(t, x))) for k, x in enumerate(np.linspace(-5.0, 5.4, 14))}
    return Drawing(
        {
            "rear": lambda q: (-2.06, q[0]),
            "front": lambda q: (2.44, q[3]),
            "joint": carried(1, 2, 0.0, AC_X, AC_Z),
            **chassis,
            **cabin,
            **load,
            **springs,
            **road,
        },
        wheels=[("rear", wheel, lambda t, q: -speed * t / wheel), ("front", wheel, lambda t, q: -speed * t / wheel)],
        bodies=[tuple(chassis), tuple(cabin), tuple(load)],
        springs=[
            ("rear", "rear seat"),
            ("front", "front seat"),
            ("under cabin rear", "cabin rear"),
            ("under cabin front", "cabin front"),
            ("under load", "load front"),
        ],
        curves=[tuple(road)],
    )


def chain(system) -> Drawing:
    def link(k):
        return lambda q: (q[2 * k], q[2 * k + 1])

    count = system.n_q // 2
    shown = [count * (k + 1) // min(count, 40) - 1 for k in range(min(count, 40))]
    links = {f"link {k + 1}": link(k) for k in shown}
    return Drawing({"top": (0.0, 0.0), **links}, rods=[("top", *links)], traces=[list(links)[-1]])


def string(system) -> Drawing:
    """A violin string, with its displacement magnified by a factor of 1.5."""
    nodes, factor = system.n_q, 1.5

    def node(k):
        return lambda q: ((k + 1.0) / (nodes + 1.0), factor * q[k])

    moving = {f"node {k + 1}": node(k) for k in range(nodes)}
    middle = f"node {nodes // 2 + 1}"
    return Drawing(
        {"left": (0.0, 0.0), **moving, "right": (1.0, 0.0)},
        curves=[("left", *moving, "right")],
        masses=[middle],
        ground=[[(-0.03, -0.05), (-0.03, 0.05)], [(1.03, -0.05), (1.03, 0.05)]],
        text="bowed at the red node",
    )


def flame(problem) -> Drawing:
    """Temperature over the mesh, at every fifth point."""

    def temperature(k):
        return lambda q: (k / (problem.n - 1.0), 0.5 * (q[k] - 1.0))

    mesh = {f"T{k}": temperature(k) for k in range(0, problem.n, 5)}
    floor = [(0.0, 0.0), (1.0, 0.0)]
    return Drawing(mesh, curves=[tuple(mesh)], ground=[floor], text="temperature along the tube")


def bead(problem) -> Drawing:
    circle = [(math.cos(a), math.sin(a)) for a in ROUND]
    return Drawing({"bead": lambda q: (q[0], q[1])}, masses=("bead",), ground=[circle])


def plane_pendulum(problem, down: float = 1.0) -> Drawing:
    """A point mass on a rod; `down` is the sign of the second coordinate below the pivot."""
    return Drawing(
        {"pivot": (0.0, 0.0), "bob": lambda q: (q[0], -down * q[1])},
        rods=[("pivot", "bob")],
        masses=("bob",),
        traces=("bob",),
    )


def turning_line(system) -> Drawing:
    """The point (p1, p2) and its constraint line p1 + (t - 2) p2 + (1 - t) e^t = 0."""

    def on_line(distance):
        def place(t, q):
            # the direction of the line is (2 - t, 1)
            length = math.hypot(2.0 - t, 1.0)
            return q[0] + distance * (2.0 - t) / length, q[1] + distance / length

        return place

    return Drawing(
        {"p": lambda q: (q[0], q[1]), "from": on_line(-0.7), "to": on_line(0.7)},
        curves=[("from", "to")],
        masses=("p",),
        traces=("p",),
        text="the line of the constraint rotates",
    )


def skate(system) -> Drawing:
    """View from above, with the incline descending downwards."""

    def along(distance):
        return lambda q: (q[1] + distance * math.sin(q[2]), -q[0] - distance * math.cos(q[2]))

    return Drawing(
        {"contact": along(0.0), "heel": along(-0.15), "toe": along(0.15)},
        rods=[("heel", "toe")],
        masses=("contact",),
        traces=("contact",),
        text="seen from above",
    )


# --- models with modes: impact, friction, breaking --------------------------------------------------------------------


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
    def end(q):  # hangs down when broken
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
    """Corners of a block by name."""
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
    """A block on an incline, drawn with the default inclination."""
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
