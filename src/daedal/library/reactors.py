"""Stirred-tank reactors whose state is prescribed, or tied by a reaction in equilibrium."""

import math
from typing import Any

import numpy as np

import daedal
from daedal.library.model import Indices, Model, check_choice, closed_model, known_reference, model
from daedal.library.sources import BRENAN_CAMPBELL_PETZOLD

# Flow, feed concentration, feed temperature, heat of reaction, cooling, rate, activation temperature; temperatures are
# in units of that of the feed
REACTOR = (1.0, 1.0, 1.0, 0.3, 2.0, 2.5e7, 20.0)


def given_jacket_residual(t, y, yp, p):
    r = np.empty(3)
    r[0] = yp[0] - p[0] * (p[1] - y[0]) + y[2]
    r[1] = yp[1] - p[0] * (p[2] - y[1]) - p[3] * y[2] + p[4] * (y[1] - (1.05 + 0.02 * math.sin(t)))
    r[2] = y[2] - p[5] * math.exp(-p[6] / y[1]) * y[0]
    return r


def given_temperature_residual(t, y, yp, p):
    r = np.empty(4)
    r[0] = yp[0] - p[0] * (p[1] - y[0]) + y[2]
    r[1] = yp[1] - p[0] * (p[2] - y[1]) - p[3] * y[2] + p[4] * (y[1] - y[3])
    r[2] = y[2] - p[5] * math.exp(-p[6] / y[1]) * y[0]
    r[3] = y[1] - (1.15 + 0.02 * math.sin(t))
    return r


def given_product_residual(t, y, yp, p):
    r = np.empty(4)
    r[0] = yp[0] - p[0] * (p[1] - y[0]) + y[2]
    r[1] = yp[1] - p[0] * (p[2] - y[1]) - p[3] * y[2] + p[4] * (y[1] - y[3])
    r[2] = y[2] - p[5] * math.exp(-p[6] / y[1]) * y[0]
    r[3] = y[0] - (0.5 + 0.1 * math.sin(t))
    return r


FORMS = {
    1: (given_jacket_residual, ["C", "T", "R"]),
    2: (given_temperature_residual, ["C", "T", "R", "T_C"]),
    3: (given_product_residual, ["C", "T", "R", "T_C"]),
}
_BALANCES = r"""C' &= K_1 (C_0 - C) - R,\qquad T' = K_1 (T_0 - T) + K_2 R - K_3 (T - T_C) \\
    0 &= R - K_4 e^{-K_5/T} C"""
_DEMANDS = {
    1: r",\qquad T_C = 1.05 + 0.02 \sin t",
    2: r",\qquad 0 = T - 1.15 - 0.02 \sin t",
    3: r",\qquad 0 = C - 0.5 - 0.1 \sin t",
}


@model(
    source=BRENAN_CAMPBELL_PETZOLD + ", equations (1.3.9), after C. C. Pantelides (1988); the data are Daedal's",
    description="A reaction of first order that gives heat, in a tank that is cooled by a jacket. With a given "
    "temperature of the jacket the index is 1; if that temperature is sought which keeps the reactor on a given "
    "temperature, it is 2; which keeps the concentration on a given course, 3.",
)
def cstr(index: int = 3) -> Model:
    """A continuously stirred tank reactor, simulated (index 1) or controlled by its jacket (index 2 and 3).

    Parameters
    ----------
    index : {1, 2, 3}
        What is given: the temperature of the jacket, that of the reactor, or the concentration of the product.

    Notes
    -----
    With index 3 ``model.extra["exact"](t, derivative)`` is the closed solution: the concentration gives the rate R,
    this and the concentration the temperature, and its derivative the temperature of the jacket.
    """
    check_choice("index", index, (1, 2, 3))
    residual, names = FORMS[index]
    common: dict[str, Any] = {
        "title": f"Stirred-tank reactor of index {index}",
        "equations": r"\begin{aligned} " + " ".join((_BALANCES + _DEMANDS[index]).split()) + r" \end{aligned}",
        "problem": daedal.ImplicitDAE(
            residual, len(names), params=np.array(REACTOR), algebraic=range(2, len(names)), names=names
        ),
        "index": index,
        "indices": Indices.usual(index, 3 - index),
        "plot": {"variables": names},
    }
    if index == 3:
        return closed_model(exact=controlled_reactor, t1=5.0, accuracy=1e-13, **common)
    return Model(
        t_span=(0.0, 5.0),
        initial=_start(index),
        reference=known_reference("cstr", index=index),
        options={"rtol": 1e-6, "atol": 1e-8},
        **common,
    )


def _start(index: int) -> tuple[np.ndarray, np.ndarray]:
    """Initial values from C = 0.5 and T = 1.15, with the given temperature of the jacket or of the reactor."""
    k1, c0, t0, k2, k3, k4, k5 = REACTOR
    C, T = 0.5, 1.15
    R = k4 * math.exp(-k5 / T) * C
    C_slope = k1 * (c0 - C) - R
    T_slope = 0.02 if index == 2 else k1 * (t0 - T) + k2 * R - k3 * (T - 1.05)
    R_slope = R * (k5 / T**2 * T_slope + C_slope / C)
    y, yp = [C, T, R], [C_slope, T_slope, R_slope]
    if index == 2:
        y.append(T + (T_slope - k1 * (t0 - T) - k2 * R) / k3)
        yp.append(T_slope + (k1 * T_slope - k2 * R_slope) / k3)
    return np.array(y), np.array(yp)


def controlled_reactor(t: float, derivative: int = 0) -> np.ndarray:
    """The state in which the concentration is 0.5 + 0.1 sin t, or its first derivative."""
    k1, c0, t0, k2, k3, k4, k5 = REACTOR
    s, cos = 0.1 * math.sin(t), 0.1 * math.cos(t)
    c = (0.5 + s, cos, -s, -cos)
    r = (k1 * (c0 - c[0]) - c[1], -k1 * c[1] - c[2], -k1 * c[2] - c[3])
    # T = K5 / w with w = log(K4 C / R)
    w = math.log(k4 * c[0] / r[0])
    w1 = c[1] / c[0] - r[1] / r[0]
    w2 = c[2] / c[0] - (c[1] / c[0]) ** 2 - r[2] / r[0] + (r[1] / r[0]) ** 2
    T = (k5 / w, -k5 * w1 / w**2, k5 * (2.0 * w1**2 / w - w2) / w**2)
    if derivative == 0:
        return np.array([c[0], T[0], r[0], T[0] + (T[1] - k1 * (t0 - T[0]) - k2 * r[0]) / k3])
    return np.array([c[1], T[1], r[1], T[1] + (T[2] + k1 * T[1] - k2 * r[1]) / k3])


# --- a reaction in equilibrium --------------------------------------------------------------------------------------


def equilibrium_residual(t, y, yp, p):
    flow, feed, slow, constant = p[0], p[1], p[2], p[3]
    r = np.empty(3)
    r[0] = yp[0] - flow * (feed - y[0]) + 2.0 * y[2]
    r[1] = yp[1] + (flow + slow) * y[1] - y[2]
    r[2] = y[1] - constant * y[0] * y[0]
    return r


@model(
    title="Reactor with an equilibrium",
    source="A. Kumar, P. Daoutidis, Control of Nonlinear Differential Algebraic Equation Systems, Chapman & Hall/CRC "
    "(1999), on reactors with fast reversible reactions; the data are Daedal's",
    description="Two molecules of A combine to B and fall apart again so fast that the two are always in equilibrium; "
    "B decays slowly. The rate of the fast reaction is no longer given by a law: it is what keeps the equilibrium, a "
    "multiplier of index 2.",
    equations=r"a' = F (a_0 - a) - 2 r,\qquad b' = r - (F + k) b,\qquad 0 = b - K a^2",
)
def equilibrium_reactor() -> Model:
    """A stirred-tank reactor in which a fast reaction is in equilibrium: index 2, with one initial value to choose."""
    flow, feed, slow, constant = 1.0, 2.0, 0.5, 1.0
    a = 0.5  # then b = K a^2, and b' = 2 K a a' gives the rate
    b, drain = constant * a * a, flow + slow
    total = flow * (feed - a) - 2.0 * drain * b
    a_slope = total / (1.0 + 4.0 * constant * a)
    b_slope = 2.0 * constant * a * a_slope
    a_bend = -((flow + 4.0 * constant * a_slope) * a_slope + 2.0 * drain * b_slope) / (1.0 + 4.0 * constant * a)
    b_bend = 2.0 * constant * (a_slope * a_slope + a * a_bend)
    params = np.array([flow, feed, slow, constant])
    return Model(
        problem=daedal.ImplicitDAE(equilibrium_residual, 3, params=params, algebraic=[2], names=["a", "b", "r"]),
        t_span=(0.0, 3.0),
        initial=(np.array([a, b, b_slope + drain * b]), np.array([a_slope, b_slope, b_bend + drain * b_slope])),
        index=2,
        indices=Indices.usual(2, 1),
        reference=known_reference("equilibrium_reactor"),
        options={"rtol": 1e-6, "atol": 1e-8},
        plot={"variables": ["a", "b", "r"]},
    )
