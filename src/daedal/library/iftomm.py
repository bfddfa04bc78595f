"""Benchmark problems of multibody dynamics, of bodies and joints: those of the library of IFToMM."""

import math
from functools import cache

import numpy as np

from daedal.library.machine_model import machine_model
from daedal.library.mechanical_model import pendulum_angle
from daedal.library.model import Model, check_positive, model
from daedal.multibody import Body, Revolute, Start, ground
from daedal.multibody import Model as Machine

IFTOMM = (
    "IFToMM Technical Committee for Multibody Dynamics, library of computational benchmark problems; M. Gonzalez, "
    "D. Dopico, U. Lugris, J. Cuadrado, A benchmarking system for MBS simulation software, Multibody System "
    "Dynamics 16 (2006)"
)
GRAVITY = 9.81

# --- A01 --------------------------------------------------------------------------------------------------------------


@cache
def _pendulum() -> tuple[Machine, Start]:
    bob = Body.particle("bob", mass=1.0)
    machine = Machine(
        Revolute("pivot", ground, bob.at(-1.0, 0.0)), gravity=(0.0, -GRAVITY), planar=True, name="Pendulum"
    )
    return machine, machine.assemble(pivot=math.pi)


@model(
    title="Pendulum of a point mass (A01)",
    source=IFTOMM + ", problem A01",
    description="A point mass on a rigid rod without mass, released from the horizontal. The measure of the benchmark "
    "is the energy, which is to be kept within 5e-5 J for ten seconds.",
)
def point_pendulum(t1: float = 10.0, coordinates: str = "absolute") -> Model:
    """A point mass of 1 kg at the end of a rod of 1 m that has no mass.

    Parameters
    ----------
    t1 : float
        End time (s).
    coordinates : {"absolute", "relative"}
        Position and angle of the body with the pivot as constraint, or the angle alone, which is an ODE.

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

    return machine_model(machine, start, t1, coordinates=coordinates, exact=exact, options={"rtol": 1e-9, "atol": 1e-9})


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
    """Coordinates and rates when all cranks have the same angle and the links stay horizontal."""
    signs = np.array([1.0 if name.startswith("A") else -1.0 for name in layout.names])
    return angle * signs, rate * signs


@model(
    title="Four-bar linkages in a row (A02)",
    source=IFTOMM + ", problem A02",
    description="Parallel cranks, their ends joined by links. Whenever all bars lie in a line, the constraints are "
    "dependent and each link could fold; the true motion passes through. It is that of a single pendulum, so it is "
    "known in closed form.",
)
def four_bars(n: int = 2, speed: float = 1.0, t1: float = 10.0, coordinates: str = "relative") -> Model:
    """A row of `n` four-bar linkages: n + 1 cranks and n links, rods of 1 m and 1 kg.

    Parameters
    ----------
    n : int
        Number of linkages; the benchmark has 2 and 40.
    speed : float
        Speed of the ends of the upright cranks at the start (m/s).
    t1 : float
        End time (s).
    coordinates : {"relative", "absolute"}
        Angles of the joints, or positions and angles of all bodies.

    Notes
    -----
    ``model.extra`` has ``machine``, ``exact``, ``energy`` and ``crank_end(q)``, the end of the first crank.

    When all bars lie in a line, n constraints are dependent. The steps of the options lead over these positions (with
    odd n a note says so); sharper tolerances bring them so near that the run may stop there, with a message.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.four_bars()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> x, y = model.extra["crank_end"](sol.q[:, -1])
    >>> print(f"{x:.5f} {y:.5f}")
    0.32846 0.94452
    """
    check_positive(n=n, speed=speed)
    machine, start = _four_bars(int(n), float(speed))
    # one pendulum: n + 1 cranks of moment 1/3 about their ends and n links that move as their ends do
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
        coordinates=coordinates,
        cut=tuple(f"C{i}" for i in range(n)),
        exact=exact,
        extra={"crank_end": crank_end},
        options={"method": "dopri5", "rtol": 1e-9, "atol": 1e-9},
    )
    problem = made.problem
    return made


def whirling_angle(t: float, rate: float, frequency: float) -> tuple[float, float]:
    """Angle a from the top and rate of a'' = frequency^2 sin a with a(0) = 0 and a'(0) = `rate`, which is positive.

    With W^2 = frequency^2 + rate^2/4 and the parameter m = (frequency/W)^2 it is a = 2 am(W t + K(m)) - pi, a' = 2 W dn
    (Jacobi's elliptic functions; K is the quarter period).
    """
    from scipy.special import ellipj, ellipk

    speed = math.hypot(frequency, 0.5 * rate)
    m = (frequency / speed) ** 2
    _, _, dn, am = ellipj(speed * t + ellipk(m), m)
    return 2.0 * am - math.pi, 2.0 * speed * dn
