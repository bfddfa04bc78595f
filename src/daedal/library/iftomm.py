"""Multibody benchmark problems of the IFToMM library, modelled by bodies and joints."""

import math
from functools import cache

import numpy as np

from daedal.library import squeezer as data
from daedal.library.machine_model import machine_model
from daedal.library.registry import Model, known, model, pendulum_angle
from daedal.multibody import Body, Motor, Prismatic, Revolute, Spring, Start, ground
from daedal.multibody import Model as Machine

GRAVITY = 9.81

# --- A01 --------------------------------------------------------------------------------------------------------------


@cache
def _pendulum() -> tuple[Machine, Start]:
    bob = Body.particle("bob", mass=1.0)
    machine = Machine(
        Revolute("pivot", ground, bob.at(-1.0, 0.0)), gravity=(0.0, -GRAVITY), planar=True, name="Pendulum"
    )
    return machine, machine.assemble(pivot=math.pi)


@model
def point_pendulum(t1: float = 10.0, coordinates: str = "absolute") -> Model:
    """A point mass of 1 kg at the end of a massless rod of 1 m.

    Notes
    -----
    ``model.extra`` has ``machine``, ``exact`` and ``energy``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.point_pendulum()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> bool(abs(model.extra["energy"](sol.q, sol.v)).max() < 5e-5)
    True
    """
    machine, start = _pendulum()

    def exact(t):
        angle, rate = pendulum_angle(t, -0.5 * math.pi, math.sqrt(GRAVITY))
        return np.array([1.5 * math.pi + angle, rate])

    return machine_model(machine, start, t1, coordinates, exact=exact)


# --- A02 --------------------------------------------------------------------------------------------------------------


@cache
def _four_bars(n: int, speed: float) -> tuple[Machine, Start]:
    cranks = [Body.rod(f"crank {i}", length=1.0, mass=1.0) for i in range(n + 1)]
    links = [Body.rod(f"link {i}", length=1.0, mass=1.0) for i in range(n)]
    joints = [Revolute(f"A{i}", ground.at(float(i), 0.0), crank.start) for i, crank in enumerate(cranks)]
    joints += [Revolute(f"B{i}", cranks[i].end, links[i].start) for i in range(n)]
    joints += [Revolute(f"C{i}", links[i].end, cranks[i + 1].end) for i in range(n)]
    machine = Machine(*joints, gravity=(0.0, -GRAVITY), planar=True, name="Four-bar linkages in a row")
    layout = machine.layout(cut=[f"C{i}" for i in range(n)])
    return machine, Start(*_upright(layout, 0.5 * math.pi, -speed), machine, layout)


def _upright(layout, angle: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and rates for equal crank angles and horizontal links."""
    signs = np.array([1.0 if name.startswith("A") else -1.0 for name in layout.names])
    return angle * signs, rate * signs


@model
def four_bars(n: int = 2, speed: float = 1.0, t1: float = 10.0, coordinates: str = "relative") -> Model:
    """A row of `n` four-bar linkages: n + 1 cranks and n links, rods of 1 m and 1 kg.

    Notes
    -----
    ``model.extra`` has ``machine``, ``exact``, ``energy`` and ``crank_end(q)``, the end of the first crank.

    When all bars are aligned, n constraints are dependent. With ``model.options`` the run passes these positions
    (with a note for odd n); with tighter tolerances it comes so close to them that it may stop with a message.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.four_bars()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> x, y = model.extra["crank_end"](sol.q[:, -1])
    >>> print(f"{x:.5f} {y:.5f}")
    0.32846 0.94452
    """
    machine, start = _four_bars(int(n), float(speed))
    # equivalent to one pendulum: n + 1 cranks with moment 1/3 about their ends, n links moving like these ends
    frequency = math.sqrt(GRAVITY * (0.5 * (n + 1) + n) / ((n + 1) / 3.0 + n))

    def exact(t):
        angle, rate = whirling_angle(t, speed, frequency)
        return np.concatenate(_upright(start.layout, 0.5 * math.pi - angle, -rate))

    def crank_end(q):
        q = np.asarray(q, dtype=float)
        names = problem.names
        if "A0" in names:
            angle = q[names.index("A0")]
            return np.array([np.cos(angle), np.sin(angle)])
        return 2.0 * q[[names.index("crank 0.x"), names.index("crank 0.y")]]

    made = machine_model(
        machine,
        start,
        t1,
        coordinates,
        tuple(f"C{i}" for i in range(n)),
        exact=exact,
        extra={"crank_end": crank_end},
        options={"method": "dopri5", "rtol": 1e-9, "atol": 1e-9},
    )
    problem = made.problem
    return made


def whirling_angle(t: float, rate: float, frequency: float) -> tuple[float, float]:
    """Angle a from the upright position and rate of a'' = frequency^2 sin a with a(0) = 0 and a'(0) = `rate` > 0.

    The solution is a = 2 am(W t + K(m)) - pi and a' = 2 W dn(W t + K(m)), with W^2 = frequency^2 + rate^2/4 and the
    parameter m = (frequency/W)^2 of Jacobi's elliptic functions; K is the quarter period.
    """
    from scipy.special import ellipj, ellipk

    speed = math.hypot(frequency, 0.5 * rate)
    m = (frequency / speed) ** 2
    _, _, dn, am = ellipj(speed * t + ellipk(m), m)
    return 2.0 * am - math.pi, 2.0 * speed * dn


# --- A04 --------------------------------------------------------------------------------------------------------------

CORNERS = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
AXES = np.eye(3)[[1, 2, 0, 1, 2, 0]]


@cache
def _bricard() -> tuple[Machine, Start]:
    rods = []
    for i in range(5):
        along, axis = CORNERS[i + 1] - CORNERS[i], AXES[i]
        orientation = np.column_stack([along, np.cross(axis, along), axis])
        middle = 0.5 * (CORNERS[i] + CORNERS[i + 1])
        rods.append(Body.box(f"rod {i + 1}", size=(1.0, 0.1, 0.1), mass=1.0, position=middle, orientation=orientation))
    chain = [ground, *rods, ground]
    joints = [Revolute(f"P{i}", chain[i], chain[i + 1], at=CORNERS[i], axis=AXES[i]) for i in range(6)]
    machine = Machine(*joints, gravity=(0.0, -GRAVITY, 0.0), name="Bricard's mechanism")
    return machine, machine.assemble(cut=("P3",))


@model
def bricard(t1: float = 10.0, coordinates: str = "relative") -> Model:
    """Bricard's overconstrained linkage under gravity: rods of 1 m and 1 kg, 0.1 m by 0.1 m in section.

    Notes
    -----
    ``model.extra`` has ``machine`` and ``energy``. ``model.extra["machine"].report()`` names the redundant condition.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.bricard()
    >>> print(model.extra["machine"].report().degrees_of_freedom)
    1
    """
    machine, start = _bricard()
    return machine_model(machine, start, t1, coordinates, ("P3",), known=known("bricard", t1=t1))


# --- A05 --------------------------------------------------------------------------------------------------------------

DENSITY = 3000.0  # kg/m^3


def _rod_with_ball(name: str) -> Body:
    """A rod of 1 m along x from its frame, with a ball of 5 kg at its end."""
    mass, ball, width = 0.01 * 0.01 * DENSITY, 5.0, 0.01
    center = (0.5 * mass + ball) / (mass + ball)
    along = mass * 2.0 * width**2 / 12.0
    across = mass * (1.0 + width**2) / 12.0 + mass * (0.5 - center) ** 2 + ball * (1.0 - center) ** 2
    return Body(name, mass + ball, (along, across, across), center=(center, 0.0, 0.0))


@cache
def _governor(spin: float, stiffness: float, damping: float) -> tuple[Machine, Start]:
    shaft = Body.box("shaft", size=(0.01, 0.01, 1.0), density=DENSITY)
    slider = Body.box("slider", size=(0.1, 0.1, 0.1), density=DENSITY)
    first, second = _rod_with_ball("first rod"), _rod_with_ball("second rod")
    spring = {"stiffness": stiffness, "length": 0.5, "damping": damping}
    machine = Machine(
        Revolute("axle", ground, shaft.at(0.0, 0.0, -0.5)),
        Prismatic("guide", shaft.at(0.0, 0.0, -0.5), slider),
        Revolute("A", shaft.at(0.05, 0.0, 0.5), first, axis="y"),
        Revolute("B", shaft.at(-0.05, 0.0, 0.5), second, axis="y"),
        Spring("AC", slider.at(0.05, 0.0, 0.0), first.at(0.5, 0.0, 0.0), **spring),
        Spring("BD", slider.at(-0.05, 0.0, 0.0), second.at(0.5, 0.0, 0.0), **spring),
        gravity=(0.0, 0.0, -GRAVITY),
        name="Flyball governor",
    )
    angle = math.pi / 6.0
    start = machine.assemble(
        guide=0.5, A=angle, B=math.pi - angle, velocities={"axle": spin, "guide": 0.0, "A": 0.0, "B": 0.0}
    )
    return machine, start


@model
def flyball_governor(
    spin: float = 2.0 * math.pi,
    stiffness: float = 8e5,
    damping: float = 4e4,
    t1: float = 10.0,
    coordinates: str = "relative",
) -> Model:
    """A shaft with two rods that carry balls of 5 kg, connected to a slider by stiff springs.

    Notes
    -----
    ``model.extra`` has ``machine``, and ``energy``, which the dampers dissipate. The slider position s in the
    benchmark is the coordinate ``guide``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.flyball_governor()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol['guide'][-1]:.5f}")
    0.61962
    """
    machine, start = _governor(float(spin), float(stiffness), float(damping))
    entry = known("flyball_governor", spin=spin, stiffness=stiffness, damping=damping, t1=t1)
    return machine_model(machine, start, t1, coordinates, known=entry)


# --- A03, with the data of :mod:`daedal.library.squeezer` -------------------------------------------------------------

CUT = ("E3", "E4", "E6")
JOINTS = ("O", "F", "B", "G", "A5", "H", "A7")  # joints of beta, Theta, gamma, Phi, delta, Omega, epsilon


@cache
def _andrews(torque: float) -> tuple[Machine, Start, list[int]]:
    k1 = Body("K1", data.M1, data.I1, center=(data.RA, 0.0))
    k2 = Body("K2", data.M2, data.I2, center=(-data.DA, 0.0))
    k3 = Body("K3", data.M3, data.I3, center=(data.SB, -data.SA))
    k4 = Body("K4", data.M4, data.I4, center=(0.0, data.EA - data.E))
    k5 = Body("K5", data.M5, data.I5, center=(data.TA, data.TB))
    k6 = Body("K6", data.M6, data.I6, center=(data.ZF - data.FA, 0.0))
    k7 = Body("K7", data.M7, data.I7, center=(data.UB, -data.UA))
    machine = Machine(
        Revolute("O", ground, k1),
        Revolute("F", k1.at(data.RR, 0.0), k2),
        Revolute("B", ground.at(data.XB, data.YB), k3),
        Revolute("A5", ground.at(data.XA, data.YA), k5),
        Revolute("G", k5.at(data.ZT, 0.0), k4),
        Revolute("A7", ground.at(data.XA, data.YA), k7),
        Revolute("H", k7.at(0.0, -data.U), k6),
        Revolute("E3", k2.at(-data.D, 0.0), k3.at(0.0, -data.SS)),
        Revolute("E4", k2.at(-data.D, 0.0), k4.at(0.0, -data.E)),
        Revolute("E6", k2.at(-data.D, 0.0), k6.at(data.ZF, 0.0)),
        Spring("spring", ground.at(data.XC, data.YC), k3.at(data.SD, -data.SC), stiffness=data.C0, length=data.L0),
        Motor("motor", "O", torque),
        planar=True,
        name="Andrews' squeezer",
    )
    layout = machine.layout(cut=CUT)
    order = [JOINTS.index(name) for name in layout.names]
    return machine, Start(np.array(data.START)[order], np.zeros(7), machine, layout), order


@model
def andrews_machine(torque: float = data.TORQUE, t1: float = 0.03, coordinates: str = "relative") -> Model:
    """Andrews' squeezing mechanism, built from bodies and joints; compare :func:`daedal.library.seven_body`.

    Notes
    -----
    ``model.extra`` has ``machine``, and ``energy``, which excludes the work of the motor.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.andrews_machine()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol['O'][-1]:.6f} {daedal.library.seven_body().reference.y[0]:.6f}")
    15.810771 15.810771
    """
    machine, start, order = _andrews(float(torque))
    entry = known("seven_body", torque=torque, t1=t1)
    if entry is not None:
        y = np.array(entry["y"]).reshape(2, 7)[:, order]
        entry = {"y": y.ravel(), "source": entry["source"], "accuracy": entry["accuracy"]}
    return machine_model(machine, start, t1, coordinates, CUT, known=entry)
