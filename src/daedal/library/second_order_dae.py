"""Small second-order DAEs with closed-form solutions, which demonstrate the effects of conversion to first order.

Their state is (x, x' of the variables of order 2), as in :class:`daedal.SecondOrderSolution`. ``model.extra`` has
``exact(t, derivative=0)``, the values of x or of its derivatives up to the second.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import daedal
from daedal.library.registry import Indices, Model, Reference, check_choice, closed_model, model

FORMS = ("second-order", "mechanical")


def second_order_model(
    problem: daedal.SecondOrderDAE,
    exact: Callable[..., np.ndarray],
    t_span: tuple[float, float],
    compiled: bool,
    degrees_of_freedom: int,
    **indices: Any,
) -> Model:
    """A model of index 3, or 4 in companion form, with the closed-form solution ``exact(t, derivative)``."""
    t0, t1 = t_span
    assert problem.order is not None
    reference = np.concatenate([exact(t1), exact(t1, 1)[problem.order == 2]])
    return Model(
        problem=problem.compiled() if compiled else problem,
        t_span=t_span,
        initial=(exact(t0), np.where(problem.order > 0, exact(t0, 1), 0.0)),
        index=3,
        indices=Indices.usual(3, degrees_of_freedom, after_order_reduction=4, **indices),
        reference=Reference(t1, reference, "closed-form solution", 1e-13),
        options={"rtol": 1e-6, "atol": 1e-8},
        plot={"variables": list(problem.names or ())},
        extra={"exact": exact},
    )


def _mechanical_model(
    system: daedal.MechanicalSystem, exact: Callable[..., np.ndarray], t_span, sign: float, compiled: bool
) -> Model:
    """The motion of a mechanical system, with `sign` times the multiplier of the second-order form."""
    t0, t1 = t_span

    def state(t: float) -> np.ndarray:
        return np.concatenate([exact(t)[:2], exact(t, 1)[:2]])

    def exact_lam(t: float) -> np.ndarray:
        return sign * exact(t)[2:]

    return Model(
        problem=system.compiled() if compiled else system,
        t_span=t_span,
        initial=(exact(t0)[:2], exact(t0, 1)[:2]),
        index=3,
        reference=Reference(t1, state(t1), "closed-form solution", 1e-13),
        options={"rtol": 1e-8, "atol": 1e-8},
        plot={"variables": list(system.names or ())},
        extra={"exact": state, "exact_lam": exact_lam, "lam": exact_lam(t1)},
    )


# --- a variable that the companion form adds -------------------------------------------------------------------------


def order_reduction_residual(t, x, xp, xpp, p):
    return np.array([xpp[0] + xp[0] + x[1] - math.sin(t), x[0] - math.sin(p[0] * t) / (p[0] * p[0])])


@model
def order_reduction(frequency: float = 20.0, t1: float = 2.0, compiled: bool = False) -> Model:
    r"""A linear second-order DAE whose companion form has a higher index and needs one more derivative of the data.

    Notes
    -----
    The solution is :math:`x_1 = f_2,\ x_2 = f_1 - f_2' - f_2''`. Only :math:`x_1` occurs differentiated: the order of
    the variables is (2, 0), and ``model.problem.first_order()`` has index 3. The companion form of the textbooks,
    ``model.problem.first_order(order=[2, 2])``, has the additional variable :math:`v_2 = f_1' - f_2'' - f_2'''` and
    index 4; this variable is the second component of ``model.extra["exact"](t, 1)``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.order_reduction()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-8, atol=1e-10)
    >>> bool(abs(sol.x[:, -1] - model.extra["exact"](2.0)).max() < 1e-5)
    True
    """
    w = float(frequency)

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = math.sin(w * t), math.cos(w * t)
        f2 = [s / w**2, c / w, -s, -w * c, w**2 * s]  # f2 and its derivatives
        f1 = [math.sin(t), math.cos(t), -math.sin(t)]
        k = derivative
        return np.array([f2[k], f1[k] - f2[k + 1] - f2[k + 2]])

    problem = daedal.SecondOrderDAE(order_reduction_residual, 2, params=np.array([w]), order=[2, 0], names=["x1", "x2"])
    return second_order_model(problem, exact, (0.0, float(t1)), compiled, 0)


# --- on a circle, with a tangential force -----------------------------------------------------------------------------


def circle_residual(t, x, xp, xpp):
    r = np.empty(3)
    r[0] = xpp[0] - 2.0 * x[1] - x[2] * x[0]
    r[1] = xpp[1] + 2.0 * x[0] - x[2] * x[1]
    r[2] = x[0] * x[0] + x[1] * x[1] - 1.0
    return r


def circle_jacobian(t, x, xp, xpp, c1, c2):
    return np.array([[c2 - x[2], -2.0, -x[0]], [2.0, c2 - x[2], -x[1]], [2.0 * x[0], 2.0 * x[1], 0.0]])


def tangential_force(t, q, v):
    return np.array([2.0 * q[1], -2.0 * q[0]])


def half_circle(t, q):
    return np.array([0.5 * (q[0] * q[0] + q[1] * q[1] - 1.0)])


@model
def particle_on_circle(form: str = "second-order", t1: float = 2.0, compiled: bool = False) -> Model:
    r"""A particle on a circle, accelerated by a tangential force.

    Notes
    -----
    The solution is :math:`y = (\sin t^2, \cos t^2),\ \lambda = -4 t^2`. The mechanical form has ``exact(t)``, the
    vector (q, v), and ``exact_lam(t)`` in ``model.extra``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.particle_on_circle()
    >>> print(model.initial[0][2], model.extra["exact"](2.0)[2])
    -4.0 -16.0
    """
    check_choice("form", form, FORMS)

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = math.sin(t * t), math.cos(t * t)
        if derivative == 0:
            return np.array([s, c, -4.0 * t * t])
        if derivative == 1:
            return np.array([2.0 * t * c, -2.0 * t * s, -8.0 * t])
        return np.array([2.0 * c - 4.0 * t * t * s, -2.0 * s - 4.0 * t * t * c, -8.0])

    if form == "mechanical":
        system = daedal.MechanicalSystem(1.0, tangential_force, half_circle, n_q=2, n_constraints=1, names=["y1", "y2"])
        return _mechanical_model(system, exact, (1.0, float(t1)), -1.0, compiled)
    problem = daedal.SecondOrderDAE(
        circle_residual, 3, jacobian=circle_jacobian, order=[2, 2, 0], names=["y1", "y2", "lambda"]
    )
    return second_order_model(problem, exact, (1.0, float(t1)), compiled, 2)


# --- on a circle, with forces that depend on the velocity ------------------------------------------------------------


def body_residual(t, x, xp, xpp):
    r = np.empty(3)
    r[0] = xpp[0] + x[0] + 2.0 * x[0] * xp[0] * xp[1] + 2.0 * x[0] * x[2]
    r[1] = xpp[1] + xp[0] - 2.0 * x[0] * x[1] * x[1] + 2.0 * x[1] * x[2]
    r[2] = x[0] * x[0] + x[1] * x[1] - 1.0
    return r


def body_force(t, q, v):
    return np.array([-q[0] - 2.0 * q[0] * v[0] * v[1], -v[0] + 2.0 * q[0] * q[1] * q[1]])


def circle(t, q):
    return np.array([q[0] * q[0] + q[1] * q[1] - 1.0])


@model
def body_on_circle(form: str = "second-order", t1: float = 1.0, compiled: bool = False) -> Model:
    r"""A body on the unit circle under forces that depend on position and velocity.

    Notes
    -----
    The solution is :math:`q = (\sin t, \cos t),\ \lambda = \sin t \cos t`. The mechanical form has ``exact(t)``, the
    vector (q, v), and ``exact_lam(t)`` in ``model.extra``. The problem is atypical: methods attain higher orders for
    it than in general.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.body_on_circle()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-8, atol=1e-8)
    >>> bool(abs(sol.x[:, -1] - model.extra["exact"](1.0)).max() < 1e-4)
    True
    """
    check_choice("form", form, FORMS)

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = math.sin(t), math.cos(t)
        q = (s, c, -s, -c)
        lam = (s * c, math.cos(2.0 * t), -2.0 * math.sin(2.0 * t))
        return np.array([q[derivative], q[derivative + 1], lam[derivative]])

    if form == "mechanical":
        system = daedal.MechanicalSystem(1.0, body_force, circle, n_q=2, n_constraints=1, names=["q1", "q2"])
        return _mechanical_model(system, exact, (0.0, float(t1)), 1.0, compiled)
    problem = daedal.SecondOrderDAE(body_residual, 3, order=[2, 2, 0], names=["q1", "q2", "lambda"])
    return second_order_model(problem, exact, (0.0, float(t1)), compiled, 2)


# --- second-order DAEs with hidden derivatives of several orders; see also `order_reduction` --------------------------


def cancelling_residual(t, x, xp, xpp):
    return np.array([xpp[0] + xp[1] + x[0] - math.sin(t), xp[0] + x[1] - math.sin(2.0 * t)])


def cancelling_first_order(t, y, yp):
    return np.array([yp[2] + yp[1] + y[0] - math.sin(t), y[2] + y[1] - math.sin(2.0 * t), yp[0] - y[2]])


@model
def cancelling_derivatives(form: str = "first-order") -> Model:
    r"""A constraint hidden in the difference of derivatives of the equations; :math:`x_1 = f_1 - f_2'`."""

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        turn = derivative * math.pi / 2.0
        slow, fast = math.sin(t + turn), 2.0**derivative * math.cos(2.0 * t + turn)
        quick = 2.0**derivative * math.sin(2.0 * t + turn)
        return np.array([slow - 2.0 * fast, -3.0 * quick - math.sin(t + turn + math.pi / 2.0)])

    if form == "second-order":
        problem = daedal.SecondOrderDAE(cancelling_residual, 2, order=[2, 1], names=["x1", "x2"])
        return second_order_model(problem, exact, (0.0, 2.0), False, 0, structural=1, structure_suffices=False)

    def exact_with_velocity(t: float, derivative: int = 0) -> np.ndarray:
        return np.append(exact(t, derivative), exact(t, derivative + 1)[0])

    return closed_model(
        daedal.ImplicitDAE(cancelling_first_order, 3, names=["x1", "x2", "v1"]),
        exact_with_velocity,
        2.0,
        accuracy=1e-13,
        index=3,
        indices=Indices.usual(3, 0, structural=1, structure_suffices=False),
        options={"rtol": 1e-6, "atol": 1e-8, "formulation": "strangeness_free"},
    )


def three_orders_residual(t, x, xp, xpp):
    return np.array([xpp[0] + x[2] - math.sin(t), xp[0] + x[1] - math.cos(t), x[0] - math.sin(3.0 * t)])


@model
def three_orders(t1: float = 2.0, compiled: bool = False) -> Model:
    r"""A linear second-order DAE in which the first unknown occurs in all three orders."""

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        turn = derivative * math.pi / 2.0
        given = [3.0 ** (derivative + k) * math.sin(3.0 * t + turn + k * math.pi / 2.0) for k in range(3)]
        return np.array([given[0], math.cos(t + turn) - given[1], math.sin(t + turn) - given[2]])

    problem = daedal.SecondOrderDAE(three_orders_residual, 3, order=[2, 0, 0], names=["x1", "x2", "x3"])
    return second_order_model(problem, exact, (0.0, float(t1)), compiled, 0)
