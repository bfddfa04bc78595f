"""Tops and gyroscopes on a ball joint, of bodies and joints."""

import math
from functools import cache

import numpy as np

from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.model import Model, check_positive, known, model
from daedal.multibody import Body, Spherical, Start, ground
from daedal.multibody import Model as Machine


@cache
def _heavy_top() -> tuple[Machine, Start]:
    top = Body("top", 15.0, (0.234375, 0.46875, 0.234375), center=(0.0, 1.0, 0.0))
    machine = Machine(Spherical("pivot", ground, top), gravity=(0.0, 0.0, -GRAVITY), name="Heavy top")
    return machine, machine.assemble(velocities={"pivot": (0.0, 150.0, -4.61538)})


@model(
    title="Heavy top",
    source="M. Geradin, A. Cardona, Flexible Multibody Dynamics, Wiley (2001); O. Bruels, A. Cardona, On the use of "
    "Lie group time integrators in multibody dynamics, J. Comput. Nonlinear Dynamics 5 (2010)",
    description="A fast top that begins horizontally and precesses about the vertical with a small nutation; the test "
    "of methods for large rotations. Euler parameters of unit norm describe the rotation.",
)
def heavy_top(t1: float = 0.5, coordinates: str = "relative") -> Model:
    """A symmetric top of 15 kg on a ball joint, 1 m from its centre of mass, that spins with 150 rad/s.

    Parameters
    ----------
    t1 : float
        End time (s); a reference is known for 0.5.
    coordinates : {"relative", "absolute"}
        Euler parameters of the ball joint, or position and Euler parameters with the joint as constraint.

    Notes
    -----
    ``model.extra`` has ``machine`` and ``energy``. The spin about the axis of the top and the angular momentum about
    the vertical are constant, too.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.heavy_top()
    >>> model.problem.n_q, model.problem.n_constraints
    (4, 1)
    """
    machine, start = _heavy_top()
    return machine_model(machine, start, t1, coordinates=coordinates, known=known("heavy_top", t1=t1))


@cache
def _gyroscope() -> Machine:
    wheel = Body.cylinder("wheel", radius=0.1, length=0.02, mass=1.0)
    pivot = Spherical("pivot", ground, wheel.at(0.0, 0.0, -0.15))
    return Machine(pivot, gravity=(0.0, 0.0, -GRAVITY), name="Gyroscope")


@model(
    title="Gyroscope in steady precession",
    source="H. Goldstein, Classical Mechanics, 2nd ed., Addison-Wesley (1980), section 5-7",
    description="A spinning wheel on a ball joint that would fall if it did not spin; its axis goes around the "
    "vertical at a constant angle. The motion is known in closed form.",
)
def gyroscope(
    angle: float = math.pi / 3.0, precession: float = 3.0, t1: float = 1.0, coordinates: str = "relative"
) -> Model:
    r"""A wheel of 1 kg, radius 0.1 m, 0.15 m from its pivot, in steady precession.

    Parameters
    ----------
    angle : float
        Between the axis of the wheel and the vertical (rad), between 0 and pi.
    precession : float
        Rate :math:`\Omega` of the axis about the vertical (rad/s), positive.
    t1 : float
        End time (s).
    coordinates : {"relative", "absolute"}
        Euler parameters of the ball joint, or position and Euler parameters with the joint as constraint.

    Notes
    -----
    With moments A about the pivot and C about the axis the wheel has to turn about its axis with
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
        rates = [
            -c * plus * math.sin(a),
            -s * minus * math.sin(b),
            s * minus * math.cos(b),
            c * plus * math.cos(a),
        ]
        return np.array([*p, *rates])

    q, v = np.split(exact(0.0), 2)
    start = Start(q, v, machine, layout)
    return machine_model(machine, start, t1, coordinates=coordinates, exact=exact, extra={"spin": spin})
