"""How the mechanisms of the library are drawn.

A drawing depends on the equations and their parameters only, so that a system finds its own: by the function of the
library that it has as constraint, velocity constraint, force or residual. Models with modes are known by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import daedal
from daedal.library import squeezer
from daedal.library.truck import AC_X, AC_Z, SPEED
from daedal.viz import Drawing

_ROUND = np.linspace(0.0, 2.0 * math.pi, 61)


def drawing_of(model: Any) -> Drawing | None:
    """The drawing of a model or problem of the library; None for those that are not mechanisms.

    Parameters
    ----------
    model : daedal.library.Model or a problem
        Models with modes are known by their names only, other mechanisms by their problems, too.

    Returns
    -------
    daedal.viz.Drawing or None

    Examples
    --------
    >>> import daedal
    >>> from daedal.library.drawings import drawing_of
    >>> drawing_of(daedal.library.crank_slider()).traces
    ('middle',)
    >>> drawing_of(daedal.library.robertson()) is None
    True
    """
    if isinstance(model, daedal.library.Model):
        if model.name in _WITH_MODES:
            return _WITH_MODES[model.name](model)
        model = model.problem
    for part in ("constraint", "velocity_constraint", "force", "residual"):
        function = getattr(model, part, None)
        function = getattr(function, "py_func", function)
        room, _, module = str(getattr(function, "__module__", "")).rpartition(".")
        if room == "daedal.library":
            factory = _DRAWINGS.get(f"{module}.{function.__name__}")
            if factory is not None:
                return factory(model)
    return None


# --- in the plane -----------------------------------------------------------------------------------------------------


def _rods(system) -> Drawing:
    """Rods of half lengths l in a row, by their angles; gravity along +x is drawn downwards."""
    p = system.params
    if system.n_q == 3:
        angles, lengths = (2,), (2.0 * p[1],)
    else:
        angles, lengths = (2, 5), (2.0 * p[2], 2.0 * p[3])

    def end(count):
        def place(q):
            pairs = list(zip(angles, lengths))[:count]
            return (sum(l * math.sin(q[a]) for a, l in pairs), -sum(l * math.cos(q[a]) for a, l in pairs))

        return place

    ends = {f"end {k}": end(k) for k in range(1, len(angles) + 1)}
    return Drawing({"pivot": (0.0, 0.0), **ends}, rods=[("pivot", *ends)], traces=[list(ends)[-1]])


def _crank_slider(system) -> Drawing:
    crank, rod = 2.0 * system.params[2], 2.0 * system.params[3]

    def pin(q):
        return crank * math.sin(q[2]), -crank * math.cos(q[2])

    def slider(dx, dy):
        return lambda q: (dx, -crank * math.cos(q[2]) - rod * math.cos(q[5]) + dy)

    a = 0.12 * (crank + rod)
    block = {f"corner {k}": slider(0.7 * a * sx, 0.5 * a * sy) for k, (sx, sy) in enumerate(_CORNERS)}
    top, bottom = -max(rod - crank, 0.0) + a, -(crank + rod) - a
    return Drawing(
        {
            "axle": (0.0, 0.0),
            "pin": pin,
            "slider": slider(0.0, 0.0),
            "middle": lambda q: (q[4], -q[3]),
            **block,
        },
        rods=[("axle", "pin", "slider")],
        bodies=[tuple(block)],
        ground=[[(0.7 * a * side, top), (0.7 * a * side, bottom)] for side in (-1.0, 1.0)],
        traces=("middle",),
    )


_CORNERS = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))


def _seven_body(system) -> Drawing:
    s = squeezer

    def crank(q):
        return s.RR * math.cos(q[0]), s.RR * math.sin(q[0])

    def head(q):  # where the three loops meet
        x, y = crank(q)
        return x - s.D * math.cos(q[0] + q[1]), y - s.D * math.sin(q[0] + q[1])

    def shoulder(q):  # where the spring pulls
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


def _car_axis(system) -> Drawing:
    _, length, _, r, w, _ = system.params

    def road(t, q):
        y = r * math.sin(w * t)
        return math.sqrt(length**2 - y**2), y

    return Drawing(
        {"wheel": (0.0, 0.0), "road": road, "left": lambda q: (q[0], q[1]), "right": lambda q: (q[2], q[3])},
        rods=[("left", "right")],
        springs=[("wheel", "left"), ("road", "right")],
        curves=[("wheel", "road")],
        traces=("left", "right"),
    )


def _truck(system) -> Drawing:
    """In the frame of the truck: the road with its hump passes below. Heights are drawn as they are."""
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


def _chain(system) -> Drawing:
    def link(k):
        return lambda q: (q[2 * k], q[2 * k + 1])

    count = system.n_q // 2
    shown = [count * (k + 1) // min(count, 40) - 1 for k in range(min(count, 40))]
    links = {f"link {k + 1}": link(k) for k in shown}
    return Drawing({"top": (0.0, 0.0), **links}, rods=[("top", *links)], traces=[list(links)[-1]])


def _string(system) -> Drawing:
    """A violin string, its displacement magnified by a half."""
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


def _flame(problem) -> Drawing:
    """The temperature over the mesh; one point in five."""

    def temperature(k):
        return lambda q: (k / (problem.n - 1.0), 0.5 * (q[k] - 1.0))

    mesh = {f"T{k}": temperature(k) for k in range(0, problem.n, 5)}
    floor = [(0.0, 0.0), (1.0, 0.0)]
    return Drawing(mesh, curves=[tuple(mesh)], ground=[floor], text="temperature along the tube")


def _bead(radius: float = 1.0) -> Drawing:
    circle = [(radius * math.cos(a), radius * math.sin(a)) for a in _ROUND]
    return Drawing({"bead": lambda q: (q[0], q[1])}, masses=("bead",), ground=[circle])


def _plane_pendulum(down: float) -> Drawing:
    """A point mass on a rod; `down` is the sign of the second coordinate below the pivot."""
    return Drawing(
        {"pivot": (0.0, 0.0), "bob": lambda q: (q[0], -down * q[1])},
        rods=[("pivot", "bob")],
        masses=("bob",),
        traces=("bob",),
    )


def _turning_line(system) -> Drawing:
    """The point (p1, p2), and the line p1 + (t - 2) p2 + (1 - t) e^t = 0 on which it has to stay."""

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
        text="the line of the constraint turns",
    )


def _skate(system) -> Drawing:
    """Seen from above, the incline descending downwards."""

    def along(distance):
        return lambda q: (q[1] + distance * math.sin(q[2]), -q[0] - distance * math.cos(q[2]))

    return Drawing(
        {"contact": along(0.0), "heel": along(-0.15), "toe": along(0.15)},
        rods=[("heel", "toe")],
        masses=("contact",),
        traces=("contact",),
        text="seen from above",
    )


# --- in space: seen from 30 degrees beside the x axis and 25 degrees above ------------------------------------------


def _seen(x: float, y: float, z: float, beside: float = 30.0, above: float = 25.0) -> tuple[float, float]:
    a, e = math.radians(beside), math.radians(above)
    return y * math.cos(a) - x * math.sin(a), z * math.cos(e) - (x * math.cos(a) + y * math.sin(a)) * math.sin(e)


def _ring(radius: float, z: float) -> list[tuple[float, float]]:
    return [_seen(radius * math.cos(a), radius * math.sin(a), z) for a in _ROUND]


def _pendulum(system) -> Drawing:
    if system.n_q == 2:
        return _plane_pendulum(-1.0)
    length = system.params[1]
    return Drawing(
        {"pivot": (0.0, 0.0), "bob": lambda q: _seen(q[0], q[1], q[2])},
        rods=[("pivot", "bob")],
        masses=("bob",),
        traces=("bob",),
        ground=[_ring(0.8 * length, -0.6 * length)],
    )


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


def _disc(system) -> Drawing:
    radius = system.params[3]

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


# --- with modes -------------------------------------------------------------------------------------------------------


def _ball(model) -> Drawing:
    height = float(model.initial[1][0][0])
    radius = 0.06 * height
    return Drawing(
        {"ball": lambda q: (0.0, q[0] + radius)},
        wheels=[("ball", radius, None)],
        ground=[[(-0.6 * height, 0.0), (0.6 * height, 0.0)]],
    )


def _ladder(model) -> Drawing:
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


def _rope(model) -> Drawing:
    def end(q):  # hangs down when it is broken
        return (q[0], q[1]) if abs(math.hypot(q[0], q[1]) - 1.0) < 1e-6 else (0.0, -1.0)

    return Drawing(
        {"pivot": (0.0, 0.0), "end": end, "bob": lambda q: (q[0], q[1])},
        curves=[("pivot", "end")],
        masses=("bob",),
        traces=("bob",),
        ground=[[(-0.15, 0.0), (0.15, 0.0)]],
    )


def _crash(model) -> Drawing:
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


def _box(name: str, centre: Callable, width: float, height: float, angle: float = 0.0) -> dict[str, Callable]:
    """The corners of a block, by name."""
    c, s = math.cos(angle), math.sin(angle)

    def corner(dx, dy):
        def place(q):
            x, y = centre(q)
            return x + c * dx - s * dy, y + s * dx + c * dy

        return place

    return {f"{name} {k}": corner(0.5 * width * i, 0.5 * height * j) for k, (i, j) in enumerate(_CORNERS)}


def _oscillator(model) -> Drawing:
    block = _box("block", lambda q: (q[0], 0.5), 1.4, 1.0)
    return Drawing(
        {"wall": (-6.0, 0.5), "hook": lambda q: (q[0] - 0.7, 0.5), **block},
        springs=[("wall", "hook")],
        bodies=[tuple(block)],
        ground=[[(-6.0, 2.0), (-6.0, 0.0), (5.0, 0.0)]],
    )


def _block(model) -> Drawing:
    """The inclination is that of the default data; stiffness and speed are read off the force k (V t - x) - w."""
    force, angle, size = model.problem.system.force, 0.3, 0.25
    c, s = math.cos(angle), math.sin(angle)

    def pull(t, x):
        return float(force(t, np.array([x]), np.zeros(1))[0])

    speed = (pull(1.0, 0.0) - pull(0.0, 0.0)) / (pull(0.0, 0.0) - pull(0.0, 1.0))

    def up(x, high):
        return x * c - high * s, x * s + high * c

    block = _box("block", lambda q: up(q[0], 0.5 * size), 1.6 * size, size, angle)
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


def _rubbing_slider(model) -> Drawing:
    def pin(q):
        return 2.0 * q[0], 2.0 * q[1]

    def slider(q):
        return 2.0 * q[3] - 2.0 * q[0], 2.0 * (q[4] - q[1])

    block = _box("block", slider, 7.0, 4.0)
    return Drawing(
        {"axle": (0.0, 0.0), "pin": pin, "slider": slider, **block},
        rods=[("axle", "pin", "slider")],
        bodies=[tuple(block)],
        ground=[[(18.0, y), (62.0, y)] for y in (-2.2, 2.2)],
        traces=("pin",),
    )


def _rod_on_floor(model) -> Drawing:
    return Drawing(
        {
            "foot": lambda q: (q[0] - math.cos(q[2]), q[1] - math.sin(q[2])),
            "tip": lambda q: (q[0] + math.cos(q[2]), q[1] + math.sin(q[2])),
        },
        rods=[("foot", "tip")],
        traces=("tip",),
        ground=[[(-1.0, 0.0), (3.0, 0.0)]],
    )


_WITH_MODES: dict[str, Callable[[Any], Drawing]] = {
    "bouncing_ball": _ball,
    "bowed_string": lambda model: _string(model.problem.system),
    "breaking_rope": _rope,
    "crash_pendulum": _crash,
    "friction_crank_slider": _rubbing_slider,
    "friction_oscillator": _oscillator,
    "painleve_rod": _rod_on_floor,
    "sliding_ladder": _ladder,
    "stick_slip_block": _block,
}
_DRAWINGS: dict[str, Callable[[Any], Drawing]] = {
    "car_axis.axis_constraint": _car_axis,
    "chains.link_lengths": _chain,
    "flames.residual": _flame,
    "mechanisms.joints": _rods,
    "mechanisms.pivot": _rods,
    "mechanisms.slider": _crank_slider,
    "moving_constraint.turning_constraint": _turning_line,
    "nonholonomic.bowl": lambda system: _bowl(0.5, 1.4, blade=True),
    "nonholonomic.edge": _skate,
    "nonholonomic.rolling": _disc,
    "particles.paraboloid": lambda system: _bowl(1.0, 1.3, blade=False),
    "particles.rod": _pendulum,
    "pendulums.ggl_residual": lambda problem: _plane_pendulum(1.0),
    "pendulums.index1_residual": lambda problem: _plane_pendulum(1.0),
    "pendulums.index2_residual": lambda problem: _plane_pendulum(1.0),
    "pendulums.index3_residual": lambda problem: _plane_pendulum(1.0),
    "second_order_examples.body_residual": lambda problem: _bead(),
    "second_order_examples.circle": lambda system: _bead(),
    "second_order_examples.circle_residual": lambda problem: _bead(),
    "second_order_examples.half_circle": lambda system: _bead(),
    "squeezer.loops": _seven_body,
    "truck.joint": _truck,
    "violin.string_force": _string,
}
