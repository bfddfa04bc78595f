"""The top that turns itself upside down, of one body, a contact and friction."""

import math
from functools import cache

import numpy as np

from daedal.library.machine_model import machine_model
from daedal.library.model import Model, check_positive, known, model
from daedal.multibody import Body, Free, GeneralForce, Start, Torque, UserConstraint, ground
from daedal.multibody import Model as Machine
from daedal.viz.shapes3d import Cylinder, Mesh

MASS, RADIUS, ECCENTRICITY, GRAVITY = 0.02, 0.02, 0.3, 9.82  # kg, m, part of the radius, m/s^2
ALONG, ACROSS = 2.0 / 5.0 * MASS * RADIUS**2, 131.0 / 350.0 * MASS * RADIUS**2  # kg m^2, about the centre of mass


def _cut_ball() -> Mesh:
    """The ball without its upper part, out of which the stem reaches as far as the ball would."""
    n, around = 16, 40
    angles = np.linspace(math.pi, math.acos(0.4), n)
    turns = 2.0 * math.pi / around * np.arange(around)
    rings = [(math.sin(a) * np.cos(turns), math.sin(a) * np.sin(turns), np.full(around, math.cos(a))) for a in angles]
    vertices = RADIUS * np.concatenate([np.column_stack(ring) for ring in rings] + [[[0.0, 0.0, 0.4]]])
    i, k = np.divmod(np.arange((n - 1) * around), around)
    a, b = around * i + k, around * i + (k + 1) % around
    lid = around * (n - 1) + np.arange(around)
    faces = [*zip(a, b, b + around), *zip(a, b + around, a + around)]
    faces += [*zip(lid, np.roll(lid, -1), np.full(around, n * around))]
    return Mesh(vertices, faces)


@cache
def _tippe_top(spin: float, tilt: float, friction: float) -> tuple[Machine, Start]:
    """The frame of the top is in the middle of its ball, with the stem along z."""
    top = Body(
        "top",
        MASS,
        (ACROSS, ACROSS, ALONG),
        center=(0.0, 0.0, -ECCENTRICITY * RADIUS),
        position=(0.0, 0.0, RADIUS),
        shapes=(_cut_ball(), Cylinder(0.15 * RADIUS, 0.6 * RADIUS, offset=(0.0, 0.0, 0.7 * RADIUS))),
    )
    middle = top.at()

    def height(t, motion):
        return [motion.position(middle)[2] - RADIUS]

    def sliding(t, motion):
        v, w = motion.velocity(middle), motion.angular_velocity(middle)
        return np.array([-friction * (v[0] - RADIUS * w[1]), -friction * (v[1] + RADIUS * w[0]), 0.0])

    def twist(t, motion):
        force = sliding(t, motion)
        return np.array([RADIUS * force[1], -RADIUS * force[0], 0.0])

    machine = Machine(
        Free("pose", ground, top),
        UserConstraint("table", height, 1, frames=(middle,)),
        GeneralForce("sliding", middle, sliding),
        Torque("twist of sliding", middle, twist),
        gravity=(0.0, 0.0, -GRAVITY),
        name="Tippe top",
    )
    leaning = (math.cos(0.5 * tilt), math.sin(0.5 * tilt), 0.0, 0.0)
    rates = {"pose.x": 0.0, "pose.y": 0.0, "pose.about_x": 0.0, "pose.about_y": 0.0, "pose.about_z": spin}
    return machine, machine.assemble(guess={"pose": (0.0, 0.0, RADIUS, *leaning)}, velocities=rates)


@model(
    title="Tippe top",
    source="A. C. Or, The dynamics of a tippe top, SIAM J. Appl. Math. 54 (1994); N. M. Bou-Rabee, J. E. Marsden, "
    "L. A. Romero, Tippe top inversion as a dissipation-induced instability, SIAM J. Appl. Dyn. Syst. 3 (2004)",
    description="A ball whose centre of mass is below its middle spins on a table with its stem upwards. It rises "
    "against its weight and ends up on the stem: friction takes energy but leaves Jellett's integral alone.",
)
def tippe_top(
    spin: float = 155.0, tilt: float = 0.1, friction: float = 0.06, t1: float = 8.0, coordinates: str = "relative"
) -> Model:
    r"""A ball of 20 g and 4 cm across, with its centre of mass 6 mm off its middle, that spins on a table.

    Parameters
    ----------
    spin : float
        Angular velocity about the axis of the stem at the start (rad/s).
    tilt : float
        Angle of the stem with the vertical at the start (rad).
    friction : float
        Coefficient c of the friction :math:`F = -c\,v_Q` (N s/m) with the velocity of the point that touches.
    t1 : float
        End time (s); a reference is known for 8 with the other defaults.
    coordinates : {"relative", "absolute"}
        Both are position and Euler parameters of the one body.

    Notes
    -----
    The ball touches the table all the time. With the vector a from the centre of mass to the point that touches and
    the angular momentum L, :math:`-L \cdot a` is constant (Jellett 1872), because all forces act in that point;
    ``model.extra["jellett"](q, v)`` gives it. The energy changes by :math:`-c |v_Q|^2`. If the top turns over
    completely, it therefore spins with :math:`(\cos\vartheta_0 - \alpha)/(1 + \alpha)` of the rate at the start, where
    :math:`\vartheta_0` is the tilt and :math:`\alpha R` the distance of the centre of mass from the middle. It does so
    only if :math:`1 - \alpha < I_3/I_1 < 1 + \alpha`; here the ratio is 1.069.

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
        arm = RADIUS * (ECCENTRICITY * R[:, 2] - np.array([0.0, 0.0, 1.0]))
        return float(-arm @ (R @ (np.array([ACROSS, ACROSS, ALONG]) * (R.T @ w))))

    return machine_model(
        machine,
        start,
        t1,
        coordinates=coordinates,
        known=known("tippe_top", spin=spin, tilt=tilt, friction=friction, t1=t1),
        extra={"jellett": jellett},
    )
