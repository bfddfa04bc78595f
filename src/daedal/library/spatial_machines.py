"""Spatial machines, modelled by bodies and joints: closed loops, platforms on legs, tops."""

import math
from functools import cache

import numpy as np

from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.registry import Model, check_positive, known, model
from daedal.multibody import (
    Body,
    Free,
    GeneralForce,
    Prismatic,
    Revolute,
    Spherical,
    Spring,
    Start,
    Torque,
    Universal,
    UserConstraint,
    ground,
)
from daedal.multibody import Model as Machine
from daedal.viz.shapes3d import Cylinder, Mesh

AXLE, PIN, SLIDER = np.array([0.0, 0.1, 0.12]), np.array([0.0, 0.1, 0.2]), np.array([0.2, 0.0, 0.0])


def _rod(name: str, start: np.ndarray, end: np.ndarray, mass: float, across) -> Body:
    """A rod between two points; `across` is a direction at right angles to it."""
    length = float(np.linalg.norm(end - start))
    x = (end - start) / length
    y = np.array(across, dtype=float) / np.linalg.norm(across)
    orientation = np.column_stack([x, y, np.cross(x, y)])
    return Body.rod(name, length=length, mass=mass, radius=0.01, position=0.5 * (start + end), orientation=orientation)


@cache
def _crank_slider_3d(speed: float) -> tuple[Machine, Start]:
    crank = _rod("crank", AXLE, PIN, 0.12, (1.0, 0.0, 0.0))
    rod = _rod("rod", PIN, SLIDER, 0.5, (1.0, 0.0, 1.0))
    slider = Body.box("slider", size=(0.04, 0.03, 0.03), mass=2.0, position=SLIDER)
    machine = Machine(
        Revolute("A", ground, crank, at=AXLE, axis="x"),
        Spherical("B", crank, rod, at=PIN),
        Universal("C", slider, rod, at=SLIDER, axis="y", second_axis=(1.0, 0.0, 1.0)),
        Prismatic("D", ground, slider, at=SLIDER, axis="x"),
        gravity=(0.0, 0.0, -GRAVITY),
        name="Crank and slider in space",
    )
    return machine, machine.assemble(A=0.0, velocities={"A": speed}, cut=("B",))


@model
def crank_slider_3d(speed: float = 6.0, t1: float = 2.0, coordinates: str = "relative") -> Model:
    """A spatial slider-crank: crank of 0.08 m and 0.12 kg, rod of 0.3 m and 0.5 kg, slider of 2 kg, with gravity.

    Notes
    -----
    ``model.extra`` has ``machine`` and ``energy``. The coordinate ``D`` is the displacement of the slider from its
    start at x = 0.2.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.crank_slider_3d()
    >>> model.problem.n_q, model.problem.n_constraints
    (4, 3)
    """
    machine, start = _crank_slider_3d(float(speed))
    entry = known("crank_slider_3d", speed=speed, t1=t1)
    return machine_model(machine, start, t1, coordinates, ("B",), known=entry)


# --- platforms on legs, modelled by bodies and springs ----------------------------------------------------------------

MASS, RADIUS, THICKNESS, HEIGHT = 100.0, 0.6, 0.1, 1.0  # kg, m
BASE_RADIUS = 1.0  # m
LEGS = 6


def _circle(radius: float, angles: tuple[float, ...]) -> np.ndarray:
    """Points on a horizontal circle, in rows."""
    return np.array([[radius * math.cos(angle), radius * math.sin(angle), 0.0] for angle in angles])


# pairs of legs start close together on the base, 120 degrees apart, and end close together in between
_PAIRS = [2.0 * math.pi * k / 3.0 for k in range(3)]
FEET = _circle(BASE_RADIUS, tuple(pair + side * 0.15 for pair in _PAIRS for side in (-1.0, 1.0)))
HEADS = _circle(RADIUS, tuple(pair + side * (math.pi / 3.0 - 0.2) for pair in _PAIRS for side in (-1.0, 1.0)))


def leg_lengths(position, orientation) -> np.ndarray:
    """Inverse kinematics: lengths of the legs for a position and an orientation (a matrix) of the platform."""
    heads = np.asarray(position, dtype=float) + HEADS @ np.asarray(orientation, dtype=float).T
    return np.linalg.norm(heads - FEET, axis=1)


@cache
def _stewart_platform(stiffness: float, damping: float) -> tuple[Machine, float]:
    """The platform, and the free length for which the legs support its weight at the rest height."""
    length = float(leg_lengths((0.0, 0.0, HEIGHT), np.eye(3))[0])
    free = length + MASS * GRAVITY * length / (LEGS * stiffness * HEIGHT)  # each leg carries a sixth of the weight
    platform = Body.cylinder("platform", radius=RADIUS, length=THICKNESS, mass=MASS, position=(0.0, 0.0, HEIGHT))
    legs = [
        Spring(f"leg {k + 1}", ground.at(foot), platform.at(head), stiffness=stiffness, length=free, damping=damping)
        for k, (foot, head) in enumerate(zip(FEET, HEADS))
    ]
    machine = Machine(
        Free("pose", ground, platform), *legs, gravity=(0.0, 0.0, -GRAVITY), name="Stewart platform on soft legs"
    )
    return machine, free


@cache
def _start(stiffness: float, damping: float, shift: float, turn: float) -> tuple[Start, Start]:
    """Two starts at rest: in equilibrium, and displaced along x and rotated about z."""
    machine, _ = _stewart_platform(stiffness, damping)
    cosine, sine = math.cos(turn), math.sin(turn)
    orientation = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    rest, displaced = (
        machine.assemble(pose=pose) for pose in (((0.0, 0.0, HEIGHT), np.eye(3)), ((shift, 0.0, HEIGHT), orientation))
    )
    return rest, displaced


@model
def stewart_platform(
    stiffness: float = 2e4,
    damping: float = 200.0,
    shift: float = 0.1,
    turn: float = 0.2,
    t1: float = 1.0,
    coordinates: str = "relative",
) -> Model:
    """A disc of 100 kg on six legs made of springs and dampers.

    Notes
    -----
    ``model.extra`` has ``machine``, ``energy``; ``rest``, the start at rest in the equilibrium 1 m above the feet;
    ``feet`` and ``heads``, the ends of the legs on the ground and on the disc (in rows); ``free_length``; and
    ``leg_lengths(position, orientation)``, the inverse kinematics.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.stewart_platform()
    >>> model.extra["leg_lengths"]((0.0, 0.0, 1.0), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]).round(4)
    array([1.2, 1.2, 1.2, 1.2, 1.2, 1.2])
    """
    machine, free = _stewart_platform(float(stiffness), float(damping))
    rest, start = _start(float(stiffness), float(damping), float(shift), float(turn))
    return machine_model(
        machine,
        start,
        t1,
        coordinates,
        known=known("stewart_platform", stiffness=stiffness, damping=damping, shift=shift, turn=turn, t1=t1),
        extra={"rest": rest, "feet": FEET, "heads": HEADS, "free_length": free, "leg_lengths": leg_lengths},
    )


# --- tops and gyroscopes on a ball joint, modelled by bodies and joints -----------------------------------------------


@cache
def _heavy_top() -> tuple[Machine, Start]:
    top = Body("top", 15.0, (0.234375, 0.46875, 0.234375), center=(0.0, 1.0, 0.0))
    machine = Machine(Spherical("pivot", ground, top), gravity=(0.0, 0.0, -GRAVITY), name="Heavy top")
    return machine, machine.assemble(velocities={"pivot": (0.0, 150.0, -4.61538)})


@model
def heavy_top(t1: float = 0.5, coordinates: str = "relative") -> Model:
    """A symmetric top of 15 kg on a ball joint, 1 m from its centre of mass, that spins at 150 rad/s.

    Notes
    -----
    ``model.extra`` has ``machine`` and ``energy``. The spin about the top's axis and the angular momentum about the
    vertical are also constant.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.heavy_top()
    >>> model.problem.n_q, model.problem.n_constraints
    (4, 1)
    """
    machine, start = _heavy_top()
    return machine_model(machine, start, t1, coordinates, known=known("heavy_top", t1=t1))


@cache
def _gyroscope() -> Machine:
    wheel = Body.cylinder("wheel", radius=0.1, length=0.02, mass=1.0)
    pivot = Spherical("pivot", ground, wheel.at(0.0, 0.0, -0.15))
    return Machine(pivot, gravity=(0.0, 0.0, -GRAVITY), name="Gyroscope")


@model
def gyroscope(
    angle: float = math.pi / 3.0, precession: float = 3.0, t1: float = 1.0, coordinates: str = "relative"
) -> Model:
    r"""A wheel of 1 kg, radius 0.1 m, 0.15 m from its pivot, in steady precession.

    Notes
    -----
    With moments A about the pivot and C about the axis the wheel must spin about its axis with
    :math:`\omega_3 = (m g l + A \Omega^2 \cos\theta)/(C \Omega)`. ``model.extra`` has ``machine``, ``exact``,
    ``energy`` and ``spin``, this rate.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.gyroscope()
    >>> print(f"{model.extra['spin']:.3f}")
    105.610
    """
    check_positive(angle=angle, precession=precession, below=math.pi - angle)
    machine = _gyroscope()
    wheel, length = machine.body("wheel"), 0.15
    across = wheel.inertia.moments[0, 0] + wheel.mass * length**2
    along = wheel.inertia.moments[2, 2]
    torque = wheel.mass * GRAVITY * length
    spin = (torque + across * precession**2 * math.cos(angle)) / (along * precession)
    proper = spin - precession * math.cos(angle)
    layout = machine.layout()

    def exact(t):
        plus, minus = 0.5 * (precession + proper), 0.5 * (precession - proper)
        c, s = math.cos(0.5 * angle), math.sin(0.5 * angle)
        a, b = plus * t, minus * t
        p = [c * math.cos(a), s * math.cos(b), s * math.sin(b), c * math.sin(a)]
        rates = [-c * plus * math.sin(a), -s * minus * math.sin(b), s * minus * math.cos(b), c * plus * math.cos(a)]
        return np.array([*p, *rates])

    q, v = np.split(exact(0.0), 2)
    start = Start(q, v, machine, layout)
    return machine_model(machine, start, t1, coordinates, exact=exact, extra={"spin": spin})


# --- the tippe top: one body, a contact and friction ------------------------------------------------------------------

TOP_MASS, TOP_RADIUS, ECCENTRICITY, TOP_GRAVITY = 0.02, 0.02, 0.3, 9.82  # kg, m, fraction of the radius, m/s^2
ALONG, ACROSS = (
    2.0 / 5.0 * TOP_MASS * TOP_RADIUS**2,
    131.0 / 350.0 * TOP_MASS * TOP_RADIUS**2,
)  # kg m^2, about the centre of mass


def _cut_ball() -> Mesh:
    """The ball without its cap, which the stem replaces."""
    n, around = 16, 40
    angles = np.linspace(math.pi, math.acos(0.4), n)
    turns = 2.0 * math.pi / around * np.arange(around)
    rings = [(math.sin(a) * np.cos(turns), math.sin(a) * np.sin(turns), np.full(around, math.cos(a))) for a in angles]
    vertices = TOP_RADIUS * np.concatenate([np.column_stack(ring) for ring in rings] + [[[0.0, 0.0, 0.4]]])
    i, k = np.divmod(np.arange((n - 1) * around), around)
    a, b = around * i + k, around * i + (k + 1) % around
    lid = around * (n - 1) + np.arange(around)
    faces = [*zip(a, b, b + around), *zip(a, b + around, a + around)]
    faces += [*zip(lid, np.roll(lid, -1), np.full(around, n * around))]
    return Mesh(vertices, faces)


@cache
def _tippe_top(spin: float, tilt: float, friction: float) -> tuple[Machine, Start]:
    """The top, whose frame is at the centre of its ball with the stem along z, and its start."""
    top = Body(
        "top",
        TOP_MASS,
        (ACROSS, ACROSS, ALONG),
        center=(0.0, 0.0, -ECCENTRICITY * TOP_RADIUS),
        position=(0.0, 0.0, TOP_RADIUS),
        shapes=(_cut_ball(), Cylinder(0.15 * TOP_RADIUS, 0.6 * TOP_RADIUS, offset=(0.0, 0.0, 0.7 * TOP_RADIUS))),
    )
    middle = top.at()

    def height(t, motion):
        return [motion.position(middle)[2] - TOP_RADIUS]

    def sliding(t, motion):
        v, w = motion.velocity(middle), motion.angular_velocity(middle)
        return np.array([-friction * (v[0] - TOP_RADIUS * w[1]), -friction * (v[1] + TOP_RADIUS * w[0]), 0.0])

    def twist(t, motion):
        force = sliding(t, motion)
        return np.array([TOP_RADIUS * force[1], -TOP_RADIUS * force[0], 0.0])

    machine = Machine(
        Free("pose", ground, top),
        UserConstraint("table", height, 1, frames=(middle,)),
        GeneralForce("sliding", middle, sliding),
        Torque("twist of sliding", middle, twist),
        gravity=(0.0, 0.0, -TOP_GRAVITY),
        name="Tippe top",
    )
    leaning = (math.cos(0.5 * tilt), math.sin(0.5 * tilt), 0.0, 0.0)
    rates = {"pose.x": 0.0, "pose.y": 0.0, "pose.about_x": 0.0, "pose.about_y": 0.0, "pose.about_z": spin}
    return machine, machine.assemble(guess={"pose": (0.0, 0.0, TOP_RADIUS, *leaning)}, velocities=rates)


@model
def tippe_top(
    spin: float = 155.0, tilt: float = 0.1, friction: float = 0.06, t1: float = 8.0, coordinates: str = "relative"
) -> Model:
    r"""A tippe top of 20 g and 4 cm diameter, with its centre of mass 6 mm off centre, that spins on a table.

    Notes
    -----
    The ball always touches the table. With the vector a from the centre of mass to the contact point and the angular
    momentum L, :math:`-L \cdot a` is constant (Jellett 1872), because all forces act at the contact point;
    ``model.extra["jellett"](q, v)`` computes this invariant. The energy changes by :math:`-c |v_Q|^2`. If the top turns
    over completely, its final spin is :math:`(\cos\vartheta_0 - \alpha)/(1 + \alpha)` times the initial one, where
    :math:`\vartheta_0` is the tilt and :math:`\alpha R` the distance of the centre of mass from the centre of the ball.
    It turns over only if :math:`1 - \alpha < I_3/I_1 < 1 + \alpha`; here the ratio is 1.069.

    ``model.extra`` has ``machine``, ``energy`` and ``jellett``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.tippe_top()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> stem = sol.body("top").orientation[:, 2, 2]
    >>> print(f"{stem[0]:.3f} {stem[-1]:.3f}")
    0.995 -1.000
    """
    check_positive(friction=friction, tilt=tilt, below=math.pi - tilt)
    machine, start = _tippe_top(float(spin), float(tilt), float(friction))
    problem = machine.system(coordinates)

    def jellett(q, v):
        motion = problem.motion(q, v)
        middle = machine.body("top").at()
        R, w = motion.rotation(middle), motion.angular_velocity(middle)
        arm = TOP_RADIUS * (ECCENTRICITY * R[:, 2] - np.array([0.0, 0.0, 1.0]))
        return float(-arm @ (R @ (np.array([ACROSS, ACROSS, ALONG]) * (R.T @ w))))

    return machine_model(
        machine,
        start,
        t1,
        coordinates,
        known=known("tippe_top", spin=spin, tilt=tilt, friction=friction, t1=t1),
        extra={"jellett": jellett},
    )
