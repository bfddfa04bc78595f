"""Discontinuities with known event times: switched right-hand sides, impact, unilateral contacts, breaking."""

import math
from collections.abc import Callable

import numpy as np

import daedal
from daedal.library.registry import Model, Reference, model


def constant_rate(t, x, xp, p):
    return np.array([xp[0] - p[0]])


def ramp_ignored(t, x, xp):
    return np.array([xp[0] - (5.0 if t > 10.0 else 0.0)])


def pulse_ignored(t, x, xp):
    return np.array([xp[0] - (10.0 if 10.0 < t < 11.0 else 5.0)])


def cubic_rate(t, x, xp):
    return np.array([xp[0] - 3.0 * (t - 3.0) ** 2])


def sine_rate(t, x, xp):
    return np.array([xp[0] - np.sin(t - 3.0)])


def degenerate_ignored(t, x, xp):
    return np.array([xp[0] - (3.0 * (t - 3.0) ** 2 if x[0] < 2.0 else np.sin(t - 3.0))])


def _rate(value: float):
    return daedal.ImplicitDAE(constant_rate, 1, params=np.array([value]), names=["x"])


def _time(instant: float) -> Callable:
    return lambda t, x: t - instant


@model
def switched_ramp(t1: float = 20.0) -> Model:
    """A constant that begins to increase at t = 10: x' = 0, then 5.

    Notes
    -----
    The simplest discontinuity. Without event handling, it causes a series of rejected steps. The model
    is a :class:`HybridProblem` with the modes "rest" and "rising". ``model.extra`` has ``exact(t)``; ``ignoring``, the
    same equation with an ``if`` in its residual; ``modes``, the rates (0, 5); and ``switches``, the switching times.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.switched_ramp()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.y[0, -1]:.6f}")
    60.000000
    """
    return _time_switched({"rest": 0.0, "rising": 5.0}, (10.0,), 10.0, t1, ramp_ignored)


@model
def switched_pulse(t1: float = 20.0) -> Model:
    """A pulse between t = 10 and 11: x' = 5, 10, and 5 again.

    Notes
    -----
    BDF formulas integrate x' = 5 exactly, so their step size grows without limit and they step over the pulse at any
    tolerance; the error is exactly 5, without warning. The model is a :class:`HybridProblem` with the modes "before",
    "pulse" and "after". ``model.extra`` has the entries described for :func:`switched_ramp`.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.switched_pulse()
    >>> wrong = daedal.solve(model.extra["ignoring"], model.t_span, ([0.0], [5.0]), switches="never")
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{wrong.y[0, -1]:.6f} {sol.y[0, -1]:.6f}")
    100.000000 105.000000
    """
    return _time_switched({"before": 5.0, "pulse": 10.0, "after": 5.0}, (10.0, 11.0), 0.0, t1, pulse_ignored)


def _time_switched(modes: dict[str, float], switches: tuple[float, ...], x0: float, t1: float, ignoring) -> Model:
    """A model with a constant rate x' in each mode, from x(0) = `x0`."""
    if t1 <= switches[-1]:
        raise daedal.InvalidProblemError(f"t1={t1!r} must lie after the last switch, t = {switches[-1]:g}")
    names, rates = tuple(modes), tuple(modes.values())
    problem = daedal.hybrid.HybridProblem(
        {mode: _rate(rate) for mode, rate in modes.items()},
        [
            daedal.hybrid.Transition(names[i], names[i + 1], _time(instant), direction=1, name=f"t = {instant:g}")
            for i, instant in enumerate(switches)
        ],
    )

    def exact(t: float) -> np.ndarray:
        x, begin = x0, 0.0
        for rate, end in zip(rates, (*switches, math.inf), strict=True):
            x += rate * max(min(t, end) - begin, 0.0)
            begin = end
        return np.array([x])

    ignorant = daedal.ImplicitDAE(ignoring, 1, names=["x"])
    return Model(
        problem=problem,
        t_span=(0.0, float(t1)),
        initial=(names[0], ([x0], [rates[0]])),
        index=0,
        reference=Reference(float(t1), exact(t1), "closed-form solution", 1e-14),
        plot={"variables": ["x"]},
        extra={"exact": exact, "ignoring": ignorant, "modes": rates, "switches": switches},
    )


@model
def degenerate_switch(t1: float = 4.0) -> Model:
    r"""A switch at a triple zero: x' = 3 (t - 3)^2 while x < 2, and x' = sin(t - 3) above.

    Notes
    -----
    On the solution the switching function s = 2 - x is :math:`-(t-3)^3`. An error e of x shifts its root by
    :math:`e^{1/3}`, for any location method, and both a_1 = -3 (t-3)^2 and a_2 = -sin(t-3) vanish there. A root located
    too early, a_1 < 0 < a_2, leads to a sliding mode x = 2, which ends with the sign change of a_2 at t = 3: the final
    error is therefore of the order of the tolerance, not of its power 2/3. For a root located too late there is no such
    correction.

    The model is a :class:`daedal.hybrid.HybridProblem` with the modes "cubic", "sliding" and "sine". ``model.extra``
    has ``exact(t)``; ``switching(t, x)``; ``modes``, the problems by name; ``sides(t)``, the pair (a_1, a_2); and
    ``ignoring``, the equation with an ``if``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.degenerate_switch()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> bool(model.reference.error(sol.y[:, -1]).max() < 1e-4)
    True
    """
    if t1 <= 3.0:
        raise daedal.InvalidProblemError(f"t1={t1!r} must lie after the switch, t = 3")
    modes = {
        "cubic": daedal.ImplicitDAE(cubic_rate, 1, names=["x"]),
        "sliding": _rate(0.0),
        "sine": daedal.ImplicitDAE(sine_rate, 1, names=["x"]),
    }

    def switching(t, x):
        return 2.0 - x[0]

    def sides(t: float) -> tuple[float, float]:
        return -3.0 * (t - 3.0) ** 2, -math.sin(t - 3.0)

    def exact(t: float) -> np.ndarray:
        return np.array([2.0 + (t - 3.0) ** 3 if t <= 3.0 else 3.0 - math.cos(t - 3.0)])

    def onto_surface(t, x):
        return np.array([2.0])

    problem = daedal.hybrid.HybridProblem(
        modes,
        [
            daedal.hybrid.Transition(
                "cubic",
                lambda t, x: "sliding" if sides(t)[1] > 0.0 else "sine",
                switching,
                direction=-1,
                reset={"sliding": onto_surface},
                name="x = 2",
            ),
            daedal.hybrid.Transition("sliding", "sine", lambda t, x: sides(t)[1], direction=-1, name="a2 = 0"),
        ],
    )
    return Model(
        problem=problem,
        initial=("cubic", ([-25.0], [27.0])),
        reference=Reference(float(t1), exact(t1), "closed-form solution", 1e-14),
        extra={
            "exact": exact,
            "switching": switching,
            "modes": modes,
            "sides": sides,
            "ignoring": daedal.ImplicitDAE(degenerate_ignored, 1, names=["x"]),
        },
    )


# --- impact, unilateral contacts and breaking -------------------------------------------------------------------------

GRAVITY = 9.81


@model
def bouncing_ball(restitution: float = 0.5, height: float = 1.0, t1: float = 3.0) -> Model:
    r"""A ball bouncing on the floor until it comes to rest.

    Notes
    -----
    With :math:`T = \sqrt{2 h / g}` impacts occur at :math:`T (1 + 2 (e + \dots + e^k))`, k = 0, 1, ... They
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
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-GRAVITY], n_q=1, names=["height"])
    floor = daedal.hybrid.Contact(lambda t, q: q[0], restitution, gradient=lambda t, q: [1.0], name="floor")
    if floor.restitution >= 1.0:
        raise daedal.InvalidProblemError(
            f"restitution={restitution!r} must be below 1: an elastic ball never comes to rest"
        )
    e, fall = floor.restitution, math.sqrt(2.0 * height / GRAVITY)
    rest_time = fall * (1.0 + e) / (1.0 - e)

    def impact_times(count: int) -> np.ndarray:
        return fall * (1.0 + 2.0 * np.concatenate([[0.0], np.cumsum(e ** np.arange(1.0, count))]))

    rests = t1 > rest_time
    return Model(
        problem=daedal.hybrid.UnilateralProblem(ball, floor),
        initial=("free", ([float(height)], [0.0])),
        reference=Reference(float(t1), np.zeros(2), "at rest", 1e-14) if rests else None,
        extra={"impact_times": impact_times, "rest_time": rest_time},
    )


@model
def sliding_ladder(angle: float = 1.2, t1: float = 1.0) -> Model:
    r"""A ladder sliding down a smooth wall until it loses contact.

    Notes
    -----
    A uniform rod of half length 1 m and mass 1 kg. It leaves the wall when its upper end has dropped to two thirds of
    its initial height: :math:`\sin\varphi = \tfrac23 \sin\varphi_0`. The model is a :class:`HybridProblem` with the
    modes "free", "wall", "floor" and "wall + floor". ``model.extra`` has ``leaving_angle``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.sliding_ladder()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events[0].y[2]:.6f} {model.extra['leaving_angle']:.6f}")
    0.670476 0.670476
    """
    if angle >= 0.5 * math.pi:
        raise daedal.InvalidProblemError(f"angle={angle!r} must be less than pi/2, for which the ladder is upright")
    rod = daedal.MechanicalSystem(
        [1.0, 1.0, 1.0 / 3.0], lambda t, q, v: [0.0, -GRAVITY, 0.0], n_q=3, names=["x", "y", "phi"]
    )
    contacts = [
        daedal.hybrid.Contact(lambda t, q: q[0] - math.cos(q[2]), name="wall"),
        daedal.hybrid.Contact(lambda t, q: q[1] - math.sin(q[2]), name="floor"),
    ]
    return Model(
        problem=daedal.hybrid.UnilateralProblem(rod, contacts),
        initial=("wall + floor", ([math.cos(angle), math.sin(angle), float(angle)], [0.0, 0.0, 0.0])),
        extra={"leaving_angle": math.asin(2.0 / 3.0 * math.sin(angle))},
    )


@model
def breaking_rope(strength: float = 2.0, t1: float = 1.0) -> Model:
    r"""A pendulum on a rope that breaks at a multiple of its weight.

    Notes
    -----
    Released horizontally, the pendulum loads its rope by :math:`3 m g \cos\varphi`, with the angle from the vertical:
    the rope breaks at :math:`\cos\varphi = s/3`, and the bob continues in free flight. ``model.extra`` has
    ``breaking_height``, the height of the bob relative to the pivot at that time.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.breaking_rope()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events[0].y[1]:.6f} {model.extra['breaking_height']:.6f}")
    -0.666667 -0.666667
    """
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
        problem=daedal.hybrid.breaking_joint(pendulum, "rope", strength * GRAVITY, name="rope breaks"),
        initial=("intact", ([1.0, 0.0], [0.0, 0.0])),
        extra={"breaking_height": -strength / 3.0},
    )


@model
def crash_pendulum(t1: float = 2.0) -> Model:
    r"""A heavy pendulum hitting a yielding wall: elastoplastic impact with hysteresis.

    Notes
    -----
    A rod with the half length 0.9 m and the mass 30 kg in absolute coordinates, gravity along +x. Its tip dents a wall
    at phi = 0 with the stiffness 8e5 N/m up to 5 mm, then 1e3 N/m, and 2e6 N/m during unloading. The model is a
    :class:`HybridProblem` with the modes of :func:`daedal.hybrid.elastoplastic_contact`. ``model.extra`` has
    ``events``, the times of the first four events by name, ``p_max`` and ``p_f``, the deepest and the permanent
    indentation, and ``apex``, the pair (t, phi) at which the pendulum turns after the impact.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.crash_pendulum()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events[0].t:.6f} {sol.q[3, -1]:.6f}")
    0.696924 0.086069
    """
    half, mass, angle = 0.9, 30.0, 1.85
    rod = daedal.MechanicalSystem(
        [mass, mass, mass * half**2 / 3.0],
        lambda t, q, v: [mass * GRAVITY, 0.0, 0.0],
        lambda t, q: [q[0] - half * math.cos(q[2]), q[1] - half * math.sin(q[2])],
        n_q=3,
        n_constraints=2,
        constraint_jacobian=lambda t, q: [[1.0, 0.0, half * math.sin(q[2])], [0.0, 1.0, -half * math.cos(q[2])]],
        acceleration_bias=lambda t, q, v: [-half * math.cos(q[2]) * v[2] ** 2, -half * math.sin(q[2]) * v[2] ** 2],
        names=["x", "y", "phi"],
    )
    law = daedal.hybrid.ElastoPlastic(c1=8e5, c2=1e3, c3=2e6, p1=5e-3)
    problem = daedal.hybrid.elastoplastic_contact(
        rod,
        lambda t, q: q[1] + half * math.sin(q[2]),
        law,
        gradient=lambda t, q: np.array([0.0, 1.0, half * math.cos(q[2])]),
    )
    return Model(
        problem=problem,
        initial=("free", ([half * math.cos(angle), half * math.sin(angle), angle, 0.0], [0.0] * 4)),
        extra={
            "events": {"touches": 0.6969238, "yields": 0.6975351, "turns back": 0.7174984, "separates": 0.7210109},
            "p_max": 0.0860691,
            "p_f": 0.0840286,
            "apex": (1.3614811, 0.1839106),
        },
    )


# --- several contacts: Newton's cradle, and a block that tips or slides -----------------------------------------------


@model
def newtons_cradle(balls: int = 5, lifted: int = 1, restitution: float = 1.0, t1: float = 2.0) -> Model:
    r"""Newton's cradle: a row of pendulums, some of which are lifted and released.

    Notes
    -----
    Strings of length 1, balls of radius 0.05 and mass 1. The impact propagates from contact to contact
    (``order="in turn"`` of :class:`daedal.hybrid.UnilateralProblem`); if all contacts are solved simultaneously, with
    e = 1, the first of five balls bounces back. ``model.extra`` has ``impact_time``, a quarter of the pendulum period
    for this amplitude, and ``speed``, the angular velocity at impact.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.newtons_cradle(t1=0.6)
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> hit = sol.events.named("1-2 closes")[0]
    >>> print(f"{hit.t:.6f} {model.extra['impact_time']:.6f}", abs(hit.y_after[5:]).round(6))
    0.509467 0.509467 [0.       0.       0.       0.       1.549784]
    """
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
        daedal.hybrid.Contact(lambda t, q, i=i: gap(t, q, i), restitution, name=f"{i + 1}-{i + 2}")
        for i in range(balls - 1)
    ]
    start = np.where(np.arange(balls) < lifted, -angle, 0.0)
    return Model(
        problem=daedal.hybrid.UnilateralProblem(system, contacts, order="in turn"),
        initial=(start, np.zeros(balls)),
        plot={"variables": [f"phi{i + 1}" for i in range(balls)], "panels": "one"},
        extra={
            "impact_time": 0.5 * math.pi / math.sqrt(GRAVITY) / _mean(1.0, math.cos(0.5 * angle)),
            "speed": math.sqrt(2.0 * GRAVITY * (1.0 - math.cos(angle))),
            "radius": radius,
        },
    )


def _mean(a: float, b: float) -> float:
    """Arithmetic-geometric mean. The period of a pendulum is 2 pi sqrt(l / g) / mean(1, cos(angle / 2))."""
    while abs(a - b) > 1e-15 * a:
        a, b = 0.5 * (a + b), math.sqrt(a * b)
    return a


@model
def tipping_block(mu: float = 0.8, width: float = 0.5, height: float = 0.8, t1: float = 2.2) -> Model:
    r"""A block pushed at its centre by the force F = 4 t.

    Notes
    -----
    A block of mass 1 in the plane, with the contacts "left" and "right" at its lower corners. It slides at
    :math:`F = \mu m g`, or tips about the right corner at :math:`F h = m g b`, whichever comes first: it tips if
    :math:`\mu > b/h`. ``model.extra`` has ``tips``, whether the block tips, and ``time``, when it
    begins to slide or tip.

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
    system = daedal.MechanicalSystem(
        [1.0, 1.0, (width**2 + height**2) / 3.0],
        lambda t, q, v: [4.0 * t, -GRAVITY, 0.0],
        n_q=3,
        names=["x", "y", "angle"],
    )

    def corner(side, name):
        return daedal.hybrid.Contact(
            lambda t, q: q[1] + side * width * np.sin(q[2]) - height * np.cos(q[2]),
            tangent=lambda t, q: np.array([1.0, 0.0, height * np.cos(q[2]) - side * width * np.sin(q[2])]),
            mu=mu,
            name=name,
        )

    return Model(
        problem=daedal.hybrid.UnilateralProblem(system, [corner(-1.0, "left"), corner(1.0, "right")]),
        initial=([0.0, float(height), 0.0], [0.0, 0.0, 0.0]),
        extra={
            "tips": mu > width / height,
            "time": min(mu, width / height) * GRAVITY / 4.0,
            "width": width,
            "height": height,
        },
    )
