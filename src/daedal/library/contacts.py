"""Several contacts: Newton's cradle, and a block that tips or slides."""

import math

import numpy as np

import daedal
from daedal.library.model import Model, check_positive, model

GRAVITY = 9.81


@model(
    title="Newton's cradle",
    source="closed solution: as many balls leave as come",
    description="Balls on strings that touch at rest: an impact passes from contact to contact.",
    equations=r"l\,\ddot\varphi_i = -g \sin\varphi_i,\qquad 0 \le g_i \perp P_i \ge 0,\qquad u_i^+ = -e\,u_i^-",
    drawing=("cradle",),
)
def newtons_cradle(balls: int = 5, lifted: int = 1, restitution: float = 1.0, t1: float = 2.0) -> Model:
    r"""Newton's cradle: pendulums side by side, some of which are lifted and let go.

    Parameters
    ----------
    balls : int
        How many, at least 2.
    lifted : int
        How many of them begin at an angle of -0.5; the others hang at rest and touch each other.
    restitution : float
        Coefficient of restitution.
    t1 : float
        End time.

    Notes
    -----
    Strings of length 1, balls of radius 0.05 and mass 1. The impact goes from contact to contact
    (``order="in turn"`` of :func:`daedal.unilateral`); solved all at once, with e = 1, the first of five balls would
    come back. ``model.extra`` has ``impact_time``, a quarter of the period of a pendulum of this amplitude, and
    ``speed``, the angular velocity there.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.newtons_cradle(t1=0.6)
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> hit = sol.events.named("1-2 closes")[0]
    >>> print(f"{hit.t:.6f} {model.extra['impact_time']:.6f}", abs(hit.y_after[5:]).round(6))
    0.509467 0.509467 [0.       0.       0.       0.       1.549784]
    """
    check_positive(t1=t1)
    if not isinstance(balls, int) or balls < 2 or not isinstance(lifted, int) or not 0 < lifted < balls:
        raise daedal.InvalidProblemError(f"balls={balls!r} must be at least 2, and lifted={lifted!r} less than that")
    radius, angle = 0.05, 0.5
    system = daedal.MechanicalSystem(
        1.0, lambda t, q, v: -GRAVITY * np.sin(q), n_q=balls, names=[f"phi{i + 1}" for i in range(balls)]
    )

    def gap(t, q, i):
        across = 2.0 * radius + np.sin(q[i + 1]) - np.sin(q[i])
        up = np.cos(q[i]) - np.cos(q[i + 1])
        return np.sqrt(across * across + up * up) - 2.0 * radius

    contacts = [
        daedal.Contact(lambda t, q, i=i: gap(t, q, i), restitution, name=f"{i + 1}-{i + 2}") for i in range(balls - 1)
    ]
    start = np.where(np.arange(balls) < lifted, -angle, 0.0)
    return Model(
        problem=daedal.unilateral(system, contacts, order="in turn"),
        t_span=(0.0, float(t1)),
        initial=(start, np.zeros(balls)),
        index=3,
        options={"rtol": 1e-8, "atol": 1e-10},
        plot={"variables": [f"phi{i + 1}" for i in range(balls)], "panels": "one"},
        extra={
            "impact_time": 0.5 * math.pi / math.sqrt(GRAVITY) / _mean(1.0, math.cos(0.5 * angle)),
            "speed": math.sqrt(2.0 * GRAVITY * (1.0 - math.cos(angle))),
            "radius": radius,
        },
    )


def _mean(a: float, b: float) -> float:
    """The arithmetic-geometric mean; the period of a pendulum is 2 pi sqrt(l / g) / mean(1, cos(angle / 2))."""
    while abs(a - b) > 1e-15 * a:
        a, b = 0.5 * (a + b), math.sqrt(a * b)
    return a


@model(
    title="A block that tips or slides",
    source="closed solution: statics of a block",
    description="A block on a rough floor, pushed by a growing force: it slides, or it tips over a corner.",
    equations=r"|Q| \le \mu P,\qquad F < \mu m g \text{ and } F h < m g b",
    drawing=("pushed_block",),
)
def tipping_block(mu: float = 0.8, width: float = 0.5, height: float = 0.8, t1: float = 2.2) -> Model:
    r"""A block that is pushed at its centre by the force F = 4 t.

    Parameters
    ----------
    mu : float
        Coefficient of friction.
    width, height : float
        Half of those of the block, b and h.
    t1 : float
        End time.

    Notes
    -----
    A block of mass 1 in the plane, with the contacts "left" and "right" at its lower corners. It slides at
    :math:`F = \mu m g`, or tips about the right corner at :math:`F h = m g b`, what comes first: it tips if
    :math:`\mu > b/h`. ``model.extra`` has ``tips`` and ``time``.

    Examples
    --------
    >>> import daedal
    >>> for mu in (0.4, 0.8):
    ...     model = daedal.library.tipping_block(mu, t1=1.8)
    ...     sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    ...     print(f"{sol.events[0].t:.5f} {model.extra['time']:.5f} {sol.mode[-1]}")
    0.98100 0.98100 left slips+ + right slips+
    1.53281 1.53281 right sticks
    """
    check_positive(mu=mu, width=width, height=height, t1=t1)
    system = daedal.MechanicalSystem(
        [1.0, 1.0, (width**2 + height**2) / 3.0],
        lambda t, q, v: [4.0 * t, -GRAVITY, 0.0],
        n_q=3,
        names=["x", "y", "angle"],
    )

    def corner(side, name):
        return daedal.Contact(
            lambda t, q: q[1] + side * width * np.sin(q[2]) - height * np.cos(q[2]),
            tangent=lambda t, q: np.array([1.0, 0.0, height * np.cos(q[2]) - side * width * np.sin(q[2])]),
            mu=mu,
            name=name,
        )

    return Model(
        problem=daedal.unilateral(system, [corner(-1.0, "left"), corner(1.0, "right")]),
        t_span=(0.0, float(t1)),
        initial=([0.0, float(height), 0.0], [0.0, 0.0, 0.0]),
        index=3,
        options={"rtol": 1e-8, "atol": 1e-10},
        plot={"variables": ["x", "angle"]},
        extra={
            "tips": mu > width / height,
            "time": min(mu, width / height) * GRAVITY / 4.0,
            "width": width,
            "height": height,
        },
    )
