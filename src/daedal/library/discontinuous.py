"""Small equations with discontinuous right-hand sides: a ramp, a pulse that is easily missed, a degenerate switch."""

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
    is a :class:`HybridProblem` with the modes "rest" and "rising". ``model.extra`` has ``exact(t)``, ``ignoring``, the
    same equation with an ``if`` in its residual, ``modes``, the rates (0, 5), and ``switches``, the times.

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
    "pulse" and "after". ``model.extra`` is that of :func:`switched_ramp`.

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
    has ``exact(t)``, ``switching(t, x)``, ``modes``, the problems by name, ``sides(t)``, the pair (a_1, a_2), and
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
