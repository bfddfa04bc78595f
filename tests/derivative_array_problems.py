"""Problems with known indices, for tests of derivative arrays.

Equation numbers are those of Brenan, Campbell and Petzold; examples of second order are those of Wunderlich's thesis.
"""

from dataclasses import dataclass, field

import numpy as np

import daedal
from daedal import library


@dataclass(frozen=True)
class Known:
    """A problem with a point near which its structure is known."""

    problem: object
    x0: list
    index: int
    freedom: int
    t: float = 0.4
    strangeness: int | None = None
    constraints: tuple[str, ...] = field(default=())

    @property
    def mu(self) -> int:
        """Kunkel and Mehrmann: one less than the index, 0 for ordinary differential equations."""
        return max(self.index - 1, 0) if self.strangeness is None else self.strangeness


def implicit(residual, *names, **options):
    return daedal.ImplicitDAE(residual, len(names), names=list(names), **options)


def pendulum(t, s, sp):
    x, y, u, v, lam = s
    return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 9.81, x**2 + y**2 - 1]


def flexible_joint(t, s, sp):
    """A link and its motor with a spring between them; the path of the link is prescribed: Hessenberg of size 5."""
    q, w, m, r, u = s
    return [
        sp[0] - w,
        2.0 * sp[1] - 30.0 * (m - q) + 5.0 * np.sin(q),
        sp[2] - r,
        0.5 * sp[3] + 30.0 * (m - q) - u,
        q - np.sin(2.0 * t),
    ]


def reactor(t, s, sp):
    """Pantelides' stirred tank, (1.3.9), with the cooling that keeps the concentration on a given course."""
    c, temperature, rate, cooling = s
    return [
        sp[0] - 0.5 * (2.0 - c) + rate,
        sp[1] - 0.5 * (300.0 - temperature) - 40.0 * rate + 3.0 * (temperature - cooling),
        rate - 1e4 * np.exp(-3000.0 / temperature) * c,
        c - (1.2 + 0.1 * np.sin(0.5 * t)),
    ]


def cooled_reactor(t, s, sp):
    c, temperature, rate = s
    return [*reactor(t, [c, temperature, rate, 290.0], [sp[0], sp[1], sp[2], 0.0])[:3]]


def regulator(weight):
    """(1.3.5) for x' = A x + B u with one control: minimise the integral of x^T x + weight u^2."""
    a, b = np.array([[0.0, 1.0], [-1.0, 0.3]]), np.array([0.5, 1.0])

    def residual(t, s, sp):
        x, costate, u = s[:2], s[2:4], s[4]
        return [
            *(sp[:2] - a @ x - b * u),
            *(sp[2:4] + 2.0 * x + a.T @ costate),
            2.0 * weight * u + b @ costate,
        ]

    return implicit(residual, "x1", "x2", "l1", "l2", "u")


def differentiators(t, s, sp):
    """Three ideal differentiators in cascade, section 6.4."""
    return [s[0] - np.sin(t), s[1] + 2.0 * sp[0], s[2] + 0.5 * sp[1], s[3] + sp[2]]


def paraboloid(t, x, xp, xpp):
    """Example 7.2.2 of the thesis."""
    q1, q2, q3, lam = x
    return [xpp[0] - 2.0 * lam * q1, xpp[1] - 2.0 * lam * q2, xpp[2] + lam + 1.0, q1**2 + q2**2 - q3]


def companion(t, s, sp):
    """Example 3.2.1 of the thesis as a system of first order, with x2' as an unknown that nobody needs."""
    v1, v2, x1, x2 = s
    return [sp[0] + v1 + x2 - np.sin(t), x1 - np.cos(2.0 * t), sp[2] - v1, sp[3] - v2]


def _lambda_as_derivative(t, s, sp):
    return pendulum(t, [*s[:4], sp[4]], sp)


def _with_multiplier_rate(t, s, sp):
    """Remark 3.2.3: the derivative of the multiplier as an unknown raises the index by one."""
    return [*pendulum(t, s[:5], sp[:5]), sp[4] - s[5]]


def _slopes_as_unknowns(t, s, sp):
    """Proposition 2.5.3 for (2.5.15): y' = z, F(t, y, z) = 0."""
    y, z = s[:3], s[3:]
    return [*(sp[:3] - z), z[1] - y[0] - np.sin(t), z[2] - y[1] - t, y[2] + np.cos(t)]


def _form(name):
    return library.get("pendulum", form=name).problem


_TPPC3 = library.get("tppc3")
_TPPC2 = library.get("tppc2")
_AT = [0.6, -0.8, 0.4, 0.3, 0.0]

KNOWN = {
    "ordinary": Known(implicit(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], "x", "v"), [1, 1], 0, 2),
    "branch of tan y' = y": Known(implicit(lambda t, y, yp: [np.tan(yp[0]) - y[0]], "y"), [1.0], 0, 1),
    "branch of y^2 = t": Known(implicit(lambda t, y, yp: [y[0] ** 2 - t], "y"), [1.0], 1, 0),
    "Ex 2.4.1": Known(
        implicit(lambda t, y, yp: [yp[0] + t * yp[1] - np.sin(t), y[0] + t * y[1] - np.cos(2 * t)], "x", "y"),
        [1, 1],
        2,
        0,
        constraints=("sin(t) + y + 2*sin(2*t) = 0",),
    ),
    "(2.3.7)": Known(
        implicit(lambda t, y, yp: [yp[0] + y[2] - np.sin(t), yp[1] + y[0] - np.cos(2 * t), y[1] - np.exp(t)], *"xyz"),
        [0, 0, 0],
        3,
        0,
        t=0.5,
    ),
    "(3.1.13)": Known(
        implicit(lambda t, y, yp: [y[0] - 3 * t * y[1] - np.sin(t), yp[0] - 3 * t * yp[1] - 2 * y[1]], "x", "y"),
        [0, 0],
        2,
        0,
        t=0.5,
    ),
    "(4.3.33)": Known(
        implicit(lambda t, y, yp: [yp[0] - t * yp[1] + y[0] - (1 + t) * y[1], y[1] - np.sin(t)], "x", "y"),
        [1, 1],
        1,
        1,
        t=0.5,
    ),
    "(2.5.15)": Known(
        implicit(lambda t, y, yp: [yp[1] - y[0] - np.sin(t), yp[2] - y[1] - t, y[2] + np.cos(t)], *"xyz"),
        [1, 1, 1],
        3,
        0,
    ),
    "(2.5.16)": Known(
        implicit(lambda t, y, yp: [yp[1] - yp[0] - np.sin(t), yp[2] - y[1] - t, y[2] + np.cos(t)], *"xyz"),
        [1, 1, 1],
        2,
        1,
    ),
    "Prop 2.5.3": Known(implicit(_slopes_as_unknowns, *"xyzuvw"), [1] * 6, 4, 0),
    "sum of derivatives": Known(
        implicit(lambda t, y, yp: [sum(yp) + y[0] + y[1] - np.cos(t), sum(yp) + y[0] + 2 * y[1] - t], "x", "y"),
        [1, 1],
        1,
        1,
        constraints=("y - t + cos(t) = 0",),
    ),
    "pendulum, positions": Known(
        implicit(pendulum, "x", "y", "u", "v", "lam"),
        _AT,
        3,
        2,
        constraints=("2*x*u + 2*y*v = 0", "2*u**2 - 2*x**2*lam + 2*v**2 - 2*y**2*lam - 19.62*y = 0"),
    ),
    "pendulum, velocities": Known(_form("index2"), _AT, 2, 3),
    "pendulum, accelerations": Known(_form("index1"), _AT, 1, 4),
    "pendulum, GGL": Known(_form("ggl"), [*_AT, 0.0], 2, 2),
    "pendulum, lambda = psi'": Known(implicit(_lambda_as_derivative, "x", "y", "u", "v", "psi"), _AT, 2, 3),
    "pendulum, with lambda'": Known(implicit(_with_multiplier_rate, "x", "y", "u", "v", "lam", "w"), [*_AT, 0], 4, 2),
    "flexible joint": Known(implicit(flexible_joint, "q", "w", "m", "r", "u"), [0.5, 1.0, 0.5, 1.0, 0.0], 5, 0),
    "reactor, controlled": Known(implicit(reactor, "C", "T", "R", "Tc"), [1.2, 320.0, 0.5, 300.0], 3, 0),
    "reactor": Known(implicit(cooled_reactor, "C", "T", "R"), [1.2, 320.0, 0.5], 1, 2),
    "regulator": Known(regulator(1.0), [1.0, 0.0, 0.2, 0.3, 0.0], 1, 4),
    "regulator, cheap control": Known(regulator(0.0), [1.0, 0.0, 0.2, 0.3, 0.0], 3, 2),
    "differentiators": Known(implicit(differentiators, "e", "v1", "v2", "v3"), [0.0] * 4, 4, 0),
    "TPPC, two controls": Known(_TPPC2.problem, list(_TPPC2.initial[0]), 2, 4, t=0.0),
    "TPPC, one control": Known(_TPPC3.problem, list(_TPPC3.initial[0]), 3, 4, t=_TPPC3.t_span[0]),
    "paraboloid": Known(
        daedal.SecondOrderDAE(paraboloid, 4, names=["q1", "q2", "q3", "lam"]),
        [[1.0, 0.0, 1.0, 0.0], [0.3, 0.7, 0.6, 0.0]],
        3,
        4,
        constraints=(
            "2*q1*q1' + 2*q2*q2' - q3' = 0",
            "1 + lam + 2*q1'**2 + 4*q1**2*lam + 2*q2'**2 + 4*q2**2*lam = 0",
        ),
    ),
    "Ex 3.2.1": Known(
        daedal.SecondOrderDAE(
            lambda t, x, xp, xpp: [xpp[0] + xp[0] + x[1] - np.sin(t), x[0] - np.cos(2 * t)], 2, names=["x1", "x2"]
        ),
        [0.0, 0.0],
        3,
        0,
    ),
    "Ex 3.2.1, companion": Known(implicit(companion, "v1", "v2", "x1", "x2"), [0.0] * 4, 4, 0),
}
