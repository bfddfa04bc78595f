"""The car axis of the test set of Lioen and de Swart: a rod on two springs, one of them on a moving support."""

from __future__ import annotations

import math

import numpy as np

import daedal
from daedal.library.mechanics import mechanical_model
from daedal.library.model import Model, Reference, check_positive

SOURCE = (
    "W. M. Lioen, J. J. B. de Swart, Test Set for Initial Value Problem Solvers, CWI Amsterdam (1998), car axis problem"
)

# (q, v) at t = 3 as known from the test set in quadruple precision; the multipliers follow from it.
STATE_AT_3 = (
    0.0493455784275402809,
    0.496989460230171154,
    1.04174252488542152,
    0.373911027265361257,
    -0.0770583684040972358,
    0.00744686658723778553,
    0.0175568157537232223,
    0.770341043779251976,
)
LAM_AT_3 = (0.0047368865908484301, 0.0011046803312570913)


# p = (k, L, L0, r, w, gravity); k = M eps^2/2 stands for the mass in the scaled equations


def axis_mass(t, q, p):
    m = np.zeros((4, 4))
    for i in range(4):
        m[i, i] = p[0]
    return m


def axis_force(t, q, v, p):
    k, length, rest = p[0], p[1], p[2]
    yb = p[3] * math.sin(p[4] * t)
    xb = math.sqrt(length * length - yb * yb)
    left = math.sqrt(q[0] * q[0] + q[1] * q[1])
    right = math.sqrt((q[2] - xb) * (q[2] - xb) + (q[3] - yb) * (q[3] - yb))
    f = np.empty(4)
    f[0] = (rest - left) * q[0] / left
    f[1] = (rest - left) * q[1] / left - k * p[5]
    f[2] = (rest - right) * (q[2] - xb) / right
    f[3] = (rest - right) * (q[3] - yb) / right - k * p[5]
    return f


def axis_constraint(t, q, p):
    yb = p[3] * np.sin(p[4] * t)
    xb = np.sqrt(p[1] * p[1] - yb * yb)
    dx, dy = q[0] - q[2], q[1] - q[3]
    return np.array([xb * q[0] + yb * q[1], dx * dx + dy * dy - p[1] * p[1]])


def axis_jacobian(t, q, p):
    yb = p[3] * np.sin(p[4] * t)
    xb = np.sqrt(p[1] * p[1] - yb * yb)
    dx, dy = 2.0 * (q[0] - q[2]), 2.0 * (q[1] - q[3])
    return np.array([[xb, yb, 0.0, 0.0], [dx, dy, -dx, -dy]])


def axis_constraint_t(t, q, p):
    yb, speed = p[3] * np.sin(p[4] * t), p[3] * p[4] * np.cos(p[4] * t)
    xb = np.sqrt(p[1] * p[1] - yb * yb)
    return np.array([-yb * speed / xb * q[0] + speed * q[1], 0.0])


def axis_bias(t, q, v, p):
    yb, yb1 = p[3] * math.sin(p[4] * t), p[3] * p[4] * math.cos(p[4] * t)
    yb2 = -p[4] * p[4] * yb
    xb = math.sqrt(p[1] * p[1] - yb * yb)
    xb1 = -yb * yb1 / xb
    xb2 = -(xb1 * xb1 + yb1 * yb1 + yb * yb2) / xb
    dx, dy = v[0] - v[2], v[1] - v[3]
    gamma = np.empty(2)
    gamma[0] = -2.0 * (xb1 * v[0] + yb1 * v[1]) - xb2 * q[0] - yb2 * q[1]
    gamma[1] = -2.0 * (dx * dx + dy * dy)
    return gamma


def car_axis(
    eps: float = 1e-2,
    mass: float = 10.0,
    length: float = 1.0,
    spring: float = 0.5,
    amplitude: float = 0.1,
    frequency: float = 10.0,
    gravity: float = 1.0,
    t1: float = 3.0,
    compiled: bool = False,
) -> Model:
    """A car axis that runs over a bumpy road: two end points, two springs, a moving constraint.

    Parameters
    ----------
    eps : float
        Root of the compliance of the springs: they are as stiff as 1/eps^2.
    mass, length, gravity : float
        Mass of the axis, its length L, gravity along -y.
    spring : float
        Length L0 of the unstretched springs.
    amplitude, frequency : float
        The right support moves as r sin(w t).
    t1 : float
        End time; a reference is known for 3.
    compiled : bool
        Whether the functions are compiled.

    Notes
    -----
    The source adds the forces of the constraints where Daedal subtracts them: its multipliers have the opposite sign.
    ``model.extra`` has ``lam``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.car_axis()
    >>> model.problem.n_q, model.problem.n_constraints, model.index
    (4, 2, 3)
    """
    check_positive(eps=eps, mass=mass, length=length, spring=spring, amplitude=amplitude, frequency=frequency, t1=t1)
    problem = daedal.MechanicalSystem(
        axis_mass,
        axis_force,
        axis_constraint,
        n_q=4,
        n_constraints=2,
        constraint_jacobian=axis_jacobian,
        constraint_t=axis_constraint_t,
        acceleration_bias=axis_bias,
        params=np.array([0.5 * mass * eps**2, length, spring, amplitude, frequency, gravity], dtype=float),
        names=["xl", "yl", "xr", "yr"],
        constraint_names=["perpendicular", "axis"],
    )
    given = (eps, mass, length, spring, amplitude, frequency, gravity, t1)
    is_source = given == (1e-2, 10.0, 1.0, 0.5, 0.1, 10.0, 1.0, 3.0)
    # The left end follows the turning support: xl' = -w r L0 / L
    speed = -amplitude * frequency * spring / length
    return mechanical_model(
        problem,
        ([0.0, spring, length, spring], [speed, 0.0, speed, 0.0]),
        t1,
        compiled=compiled,
        reference=Reference(t1, np.array(STATE_AT_3), "test set, quadruple precision", 1e-14) if is_source else None,
        lam=LAM_AT_3,
        name="car_axis",
        title="Car axis",
        source=SOURCE,
        description="The ends of an axis stand on two stiff springs, the right one on a road with bumps; the left one "
        "is kept perpendicular to the chassis. Nonstiff in its slow motion, with a constraint that depends on time.",
        equations=r"\begin{aligned} k x_l'' &= (L_0 - L_l) \frac{x_l}{L_l} - \lambda_1 x_b "
        r"- 2 \lambda_2 (x_l - x_r),\qquad "
        r"k y_l'' = (L_0 - L_l) \frac{y_l}{L_l} - \lambda_1 y_b - 2 \lambda_2 (y_l - y_r) - k g \\ "
        r"k x_r'' &= (L_0 - L_r) \frac{x_r - x_b}{L_r} + 2 \lambda_2 (x_l - x_r),\qquad "
        r"k y_r'' = (L_0 - L_r) \frac{y_r - y_b}{L_r} + 2 \lambda_2 (y_l - y_r) - k g \\ "
        r"0 &= x_b x_l + y_b y_l,\qquad 0 = (x_l - x_r)^2 + (y_l - y_r)^2 - L^2 \\ "
        r"y_b &= r \sin \omega t,\quad x_b = \sqrt{L^2 - y_b^2},\quad k = \tfrac12 M \varepsilon^2 \end{aligned}",
    )
