"""Impact, unilateral contacts and breaking: models whose events are known in advance."""

import math

import numpy as np

import daedal
from daedal.library.registry import WIJCKMANS, Model, Reference, check_positive, model

GRAVITY = 9.81


@model(
    title="Bouncing ball",
    source="closed solution",
    description="A ball that bounces until it rests: infinitely many impacts in a finite time.",
    equations=r"\ddot h = -g + \Lambda,\qquad 0 \le h \perp \Lambda \ge 0,\qquad \dot h^+ = -e\, \dot h^-",
    drawing=("ball",),
)
def bouncing_ball(restitution: float = 0.5, height: float = 1.0, t1: float = 3.0) -> Model:
    r"""A ball bounces on the floor until it comes to rest.

    Parameters
    ----------
    restitution : float
        Coefficient of restitution e, below 1.
    height : float
        From which it falls.
    t1 : float
        End time, after the ball has come to rest for a reference.

    Notes
    -----
    With :math:`T = \sqrt{2 h / g}` the impacts happen at :math:`T (1 + 2 (e + \dots + e^k))`, k = 0, 1, ... They
    accumulate at :math:`T (1 + e) / (1 - e)` (Zeno behaviour), where the ball rests. ``model.extra`` has
    ``impact_times(count)`` and ``rest_time``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.bouncing_ball()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events[-1].t:.6f} {model.extra['rest_time']:.6f} {sol.mode[-1]}")
    1.354571 1.354571 floor
    """
    check_positive(height=height, t1=t1)
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-GRAVITY], n_q=1, names=["height"])
    floor = daedal.Contact(lambda t, q: q[0], restitution, gradient=lambda t, q: [1.0], name="floor")
    if floor.restitution >= 1.0:
        raise daedal.InvalidProblemError("restitution must be below 1: an elastic ball never comes to rest")
    e, fall = floor.restitution, math.sqrt(2.0 * height / GRAVITY)
    rest_time = fall * (1.0 + e) / (1.0 - e)

    def impact_times(count: int) -> np.ndarray:
        return fall * (1.0 + 2.0 * np.concatenate([[0.0], np.cumsum(e ** np.arange(1.0, count))]))

    rests = t1 > rest_time
    return Model(
        problem=daedal.unilateral(ball, floor),
        t_span=(0.0, float(t1)),
        initial=("free", ([float(height)], [0.0])),
        index=3,
        reference=Reference(float(t1), np.zeros(2), "at rest", 1e-14) if rests else None,
        options={"rtol": 1e-8, "atol": 1e-10},
        plot={"variables": ["height"]},
        extra={"impact_times": impact_times, "rest_time": rest_time},
    )


@model(
    title="Ladder sliding down a wall",
    source="closed solution: energy, and the force of the wall",
    description="A rod slides along wall and floor without friction; one of two unilateral contacts opens.",
    equations=r"0 \le x - \cos\varphi \perp \Lambda_1 \ge 0,\qquad 0 \le y - \sin\varphi \perp \Lambda_2 \ge 0",
    drawing=("ladder",),
)
def sliding_ladder(angle: float = 1.2, t1: float = 1.0) -> Model:
    r"""A ladder slides down a smooth wall and loses contact with it.

    Parameters
    ----------
    angle : float
        With the floor, at the start; between 0 and pi/2.
    t1 : float
        End time.

    Notes
    -----
    A uniform rod with the half length 1 m and the mass 1 kg. It leaves the wall when its upper end has come down to two
    thirds of its height: :math:`\sin\varphi = \tfrac23 \sin\varphi_0`. The model is a :class:`HybridProblem` with the
    modes "free", "wall", "floor" and "wall + floor". ``model.extra`` has ``leaving_angle``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.sliding_ladder()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events[0].y[2]:.6f} {model.extra['leaving_angle']:.6f}")
    0.670476 0.670476
    """
    check_positive(angle=angle, t1=t1)
    if angle >= 0.5 * math.pi:
        raise daedal.InvalidProblemError(f"angle={angle!r} must be less than pi/2, where the ladder stands upright")
    rod = daedal.MechanicalSystem(
        [1.0, 1.0, 1.0 / 3.0], lambda t, q, v: [0.0, -GRAVITY, 0.0], n_q=3, names=["x", "y", "phi"]
    )
    contacts = [
        daedal.Contact(lambda t, q: q[0] - math.cos(q[2]), name="wall"),
        daedal.Contact(lambda t, q: q[1] - math.sin(q[2]), name="floor"),
    ]
    return Model(
        problem=daedal.unilateral(rod, contacts),
        t_span=(0.0, float(t1)),
        initial=("wall + floor", ([math.cos(angle), math.sin(angle), float(angle)], [0.0, 0.0, 0.0])),
        index=3,
        options={"rtol": 1e-8, "atol": 1e-10},
        plot={"variables": ["x", "y", "phi"]},
        extra={"leaving_angle": math.asin(2.0 / 3.0 * math.sin(angle))},
    )


@model(
    title="Pendulum whose rope breaks",
    source="closed solution: energy, and the tension of the rope",
    description="A constraint that disappears at a load: from a pendulum to a body in free flight.",
    equations=r"\|G^T \lambda\| = 3 m g \cos\varphi < s\, m g",
    drawing=("rope",),
)
def breaking_rope(strength: float = 2.0, t1: float = 1.0) -> Model:
    r"""A pendulum on a rope that bears only some times the weight.

    Parameters
    ----------
    strength : float
        The load at which the rope breaks, in weights of the bob; between 0 and 3.
    t1 : float
        End time.

    Notes
    -----
    Released horizontally, the pendulum loads its rope by :math:`3 m g \cos\varphi`, with the angle from the vertical:
    it breaks at :math:`\cos\varphi = s/3`, and the bob flies on. ``model.extra`` has ``breaking_height``,
    the height of the bob below the pivot there.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.breaking_rope()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events[0].y[1]:.6f} {model.extra['breaking_height']:.6f}")
    -0.666667 -0.666667
    """
    check_positive(strength=strength, t1=t1)
    pendulum = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [0.0, -GRAVITY],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
        names=["x", "y"],
        constraint_names=["rope"],
    )
    return Model(
        problem=daedal.breaking(pendulum, "rope", strength * GRAVITY, name="rope breaks"),
        t_span=(0.0, float(t1)),
        initial=("intact", ([1.0, 0.0], [0.0, 0.0])),
        index=3,
        options={"rtol": 1e-8, "atol": 1e-10},
        plot={"variables": ["x", "y"]},
        extra={"breaking_height": -strength / 3.0},
    )


@model(
    title="Pendulum that hits a wall of metal",
    source=WIJCKMANS + ", example 7.9",
    description="An impact that takes time: elastic, plastic and unloading phases, and a dent that remains.",
    equations=r"F = c_1 p,\quad c_1 p_1 + c_2 (p - p_1),\quad c_3 (p - p_f),\qquad p = -2 l \sin\varphi",
    drawing=("crash",),
)
def crash_pendulum(t1: float = 2.0) -> Model:
    r"""A heavy pendulum hits a wall that yields: elasto-plastic impact with hysteresis.

    Parameters
    ----------
    t1 : float
        End time.

    Notes
    -----
    A rod with the half length 0.9 m and the mass 30 kg in absolute coordinates, gravity along +x. Its tip dents a wall
    at phi = 0 with the stiffnesses 8e5 N/m up to 5 mm, then 1e3 N/m, and 2e6 N/m back. The model is a
    :class:`HybridProblem` with the modes of :func:`daedal.elastoplastic`. ``model.extra`` has ``events``, the times of
    the first four by name, ``p_max`` and ``p_f``, the deepest and the permanent indentation, and ``apex``, the pair
    (t, phi) where the pendulum turns after the impact.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.crash_pendulum()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events[0].t:.6f} {sol.q[3, -1]:.6f}")
    0.696924 0.086069
    """
    check_positive(t1=t1)
    half, mass, angle = 0.9, 30.0, 1.85
    rod = daedal.MechanicalSystem(
        [mass, mass, mass * half**2 / 3.0],
        lambda t, q, v: [mass * GRAVITY, 0.0, 0.0],
        lambda t, q: [q[0] - half * math.cos(q[2]), q[1] - half * math.sin(q[2])],
        n_q=3,
        n_constraints=2,
        constraint_jacobian=lambda t, q: [
            [1.0, 0.0, half * math.sin(q[2])],
            [0.0, 1.0, -half * math.cos(q[2])],
        ],
        acceleration_bias=lambda t, q, v: [
            -half * math.cos(q[2]) * v[2] ** 2,
            -half * math.sin(q[2]) * v[2] ** 2,
        ],
        names=["x", "y", "phi"],
    )
    law = daedal.ElastoPlastic(c1=8e5, c2=1e3, c3=2e6, p1=5e-3)
    problem = daedal.elastoplastic(
        rod,
        lambda t, q: q[1] + half * math.sin(q[2]),
        law,
        gradient=lambda t, q: np.array([0.0, 1.0, half * math.cos(q[2])]),
    )
    return Model(
        problem=problem,
        t_span=(0.0, float(t1)),
        initial=("free", ([half * math.cos(angle), half * math.sin(angle), angle, 0.0], [0.0] * 4)),
        index=3,
        options={"rtol": 1e-9, "atol": 1e-10},
        plot={"variables": ["phi", "p_max"]},
        extra={
            "events": {"touches": 0.6969238, "yields": 0.6975351, "turns back": 0.7174984, "separates": 0.7210109},
            "p_max": 0.0860691,
            "p_f": 0.0840286,
            "apex": (1.3614811, 0.1839106),
        },
    )


# --- several contacts: Newton's cradle, and a block that tips or slides -----------------------------------------------


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
