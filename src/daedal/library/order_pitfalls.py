"""Second-order DAEs in which derivatives of several orders hide each other; see also `order_reduction`.

``model.extra`` has ``exact(t, derivative=0)``, the values of x or of its derivatives up to the second.
"""

import math

import numpy as np

import daedal
from daedal.library.model import Indices, Model, check_choice, check_positive, closed_model, model
from daedal.library.second_order_dae import second_order_model
from daedal.library.sources import WUNDERLICH


def cancelling_residual(t, x, xp, xpp):
    return np.array([xpp[0] + xp[1] + x[0] - math.sin(t), xp[0] + x[1] - math.sin(2.0 * t)])


def cancelling_first_order(t, y, yp):
    return np.array([yp[2] + yp[1] + y[0] - math.sin(t), y[2] + y[1] - math.sin(2.0 * t), yp[0] - y[2]])


@model(
    title="Derivatives that cancel",
    source=WUNDERLICH
    + ", section 3.2 (linear second-order DAEs, after V. Mehrmann, C. Shi); the equations are Daedal's",
    description="The derivative of the second equation contains the same derivatives as the first equation: their "
    "difference is a constraint that neither of them shows. A count of derivatives suggests two initial values too "
    "many.",
    equations=r"x_1'' + x_2' + x_1 = \sin t,\qquad x_1' + x_2 = \sin 2t",
)
def cancelling_derivatives(form: str = "first-order") -> Model:
    r"""Equations with a constraint hidden in the difference of their derivatives; :math:`x_1 = f_1 - f_2'`.

    Parameters
    ----------
    form : {"first-order", "second-order"}
        With :math:`v_1 = x_1'` as a third unknown, to be solved in its strangeness-free form; or as it stands, a
        :class:`daedal.SecondOrderDAE` to be analysed: methods that take it as it stands meet a singular matrix.
    """
    check_choice("form", form, ("first-order", "second-order"))

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


@model(
    title="One unknown in three orders",
    source=WUNDERLICH + ", section 3.2 (the part s_012 of the condensed form); the data are Daedal's",
    description="A prescribed unknown occurs undifferentiated, differentiated once and twice. Each equation determines "
    "one unknown; with the derivatives of all three as further unknowns the index rises from 3 to 4.",
    equations=r"x_1'' + x_3 = \sin t,\qquad x_1' + x_2 = \cos t,\qquad x_1 = \sin 3t",
)
def three_orders(t1: float = 2.0, compiled: bool = False) -> Model:
    r"""A linear second-order DAE in which the first unknown occurs in all three orders.

    Parameters
    ----------
    t1 : float
        End time.
    compiled : bool
        Whether the functions are compiled.
    """
    check_positive(t1=t1)

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        turn = derivative * math.pi / 2.0
        given = [3.0 ** (derivative + k) * math.sin(3.0 * t + turn + k * math.pi / 2.0) for k in range(3)]
        return np.array([given[0], math.cos(t + turn) - given[1], math.sin(t + turn) - given[2]])

    problem = daedal.SecondOrderDAE(three_orders_residual, 3, order=[2, 0, 0], names=["x1", "x2", "x3"])
    return second_order_model(problem, exact, (0.0, float(t1)), compiled, 0)
