"""Chemical kinetics: Robertson's reaction, plant growth, an oscillating reaction, reactors, air pollution."""

import math
from typing import Any

import numpy as np

import daedal
from daedal.library.registry import Indices, Model, closed_model, explicit_start, known_reference, model

RATES = (0.04, 1.0e4, 3.0e7)


def residual(t, y, yp, p):
    slow = p[0] * y[0]
    back = p[1] * y[1] * y[2]
    fast = p[2] * y[1] * y[1]
    return np.array([yp[0] + slow - back, yp[1] - slow + back + fast, y[0] + y[1] + y[2] - 1.0])


def rates(t, y, z, p):
    slow = p[0] * y[0]
    back = p[1] * y[1] * z[0]
    return np.array([back - slow, slow - back - p[2] * y[1] * y[1]])


def balance(t, y, z, p):
    return np.array([y[0] + y[1] + z[0] - 1.0])


@model
def robertson(t1: float = 1e11, form: str = "implicit") -> Model:
    """Robertson's autocatalytic reaction with the mass balance as an algebraic equation.

    Notes
    -----
    The second species never exceeds 4e-5 and ends near 1e-13, the first near 1e-8: the absolute tolerances in
    ``model.options`` are below the final values, so that the relative tolerance determines the accuracy of all three.
    """
    names = ["y1", "y2", "y3"]
    params = np.array(RATES)
    problem: daedal.ImplicitDAE | daedal.SemiExplicitDAE
    if form == "implicit":
        problem = daedal.ImplicitDAE(residual, 3, params=params, algebraic=[2], names=names)
        initial = (np.array([1.0, 0.0, 0.0]), np.array([-RATES[0], RATES[0], 0.0]))
    else:
        problem = daedal.SemiExplicitDAE(rates, balance, 2, 1, params=params, names=names)
        initial = (np.array([1.0, 0.0]), np.array([0.0]))
    return Model(
        problem=problem,
        initial=initial,
        reference=known_reference("robertson", t1=float(f"{t1:.12g}")),
        options={"rtol": 1e-6, "atol": np.array([1e-14, 1e-19, 1e-9])},
    )


# --- plant growth under light -----------------------------------------------------------------------------------------


def hires_residual(t, y, yp):
    binding = 280.0 * y[5] * y[7]
    r = np.empty(8)
    r[0] = yp[0] + 1.71 * y[0] - 0.43 * y[1] - 8.32 * y[2] - 0.0007
    r[1] = yp[1] - 1.71 * y[0] + 8.75 * y[1]
    r[2] = yp[2] + 10.03 * y[2] - 0.43 * y[3] - 0.035 * y[4]
    r[3] = yp[3] - 8.32 * y[1] - 1.71 * y[2] + 1.12 * y[3]
    r[4] = yp[4] + 1.745 * y[4] - 0.43 * y[5] - 0.43 * y[6]
    r[5] = yp[5] + binding - 0.69 * y[3] - 1.71 * y[4] + 0.43 * y[5] - 0.69 * y[6]
    r[6] = yp[6] - binding + 1.81 * y[6]
    r[7] = yp[7] + binding - 1.81 * y[6]
    return r


@model
def hires() -> Model:
    """Eight reactants of photomorphogenesis, from seedling to the end of the response at t = 321.8122."""
    problem = daedal.ImplicitDAE(hires_residual, 8, names=[f"y{k}" for k in range(1, 9)])
    return Model(
        problem=problem,
        initial=explicit_start(problem, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057])),
        reference=known_reference("hires"),
    )


# --- an oscillating reaction ----------------------------------------------------------------------------------------


def oregonator_residual(t, y, yp):
    r = np.empty(3)
    r[0] = yp[0] - 77.27 * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1]))
    r[1] = yp[1] - (y[2] - (1.0 + y[0]) * y[1]) / 77.27
    r[2] = yp[2] - 0.161 * (y[0] - y[2])
    return r


@model
def oregonator() -> Model:
    """Three species on a limit cycle, to t = 360: the first period and most of the second."""
    problem = daedal.ImplicitDAE(oregonator_residual, 3, names=["y1", "y2", "y3"])
    return Model(
        problem=problem,
        initial=explicit_start(problem, np.array([1.0, 2.0, 3.0])),
        reference=known_reference("oregonator"),
    )


# --- a stirred reactor ----------------------------------------------------------------------------------------------

# k1 to k4, K, klA, Ks, the pressure of carbon dioxide and Henry's constant
AKZO_REACTOR = (18.7, 0.58, 0.09, 0.42, 34.4, 3.3, 115.83, 0.9, 737.0)


def reactor_residual(t, y, yp, p):
    root = np.sqrt(y[1])
    r1 = p[0] * y[0] * y[0] * y[0] * y[0] * root
    r2 = p[1] * y[2] * y[3]
    r3 = p[1] / p[4] * y[0] * y[4]
    r4 = p[2] * y[0] * y[3] * y[3]
    r5 = p[3] * y[5] * y[5] * root
    inflow = p[5] * (p[7] / p[8] - y[1])
    r = np.empty(6)
    r[0] = yp[0] + 2.0 * r1 - r2 + r3 + r4
    r[1] = yp[1] + 0.5 * r1 + r4 + 0.5 * r5 - inflow
    r[2] = yp[2] - r1 + r2 - r3
    r[3] = yp[3] + r2 - r3 + 2.0 * r4
    r[4] = yp[4] - r2 + r3 - r5
    r[5] = p[6] * y[0] * y[3] - y[5]
    return r


@model
def chemical_akzo_nobel() -> Model:
    """Six concentrations in a stirred reactor, one of them at equilibrium."""
    params = np.array(AKZO_REACTOR)
    y0 = np.array([0.444, 0.00123, 0.0, 0.007, 0.0, AKZO_REACTOR[6] * 0.444 * 0.007])
    yp0 = -reactor_residual(0.0, y0, np.zeros(6), params)
    yp0[5] = AKZO_REACTOR[6] * (yp0[0] * y0[3] + y0[0] * yp0[3])
    return Model(
        problem=daedal.ImplicitDAE(
            reactor_residual, 6, params=params, algebraic=[5], names=[f"y{k}" for k in range(1, 7)]
        ),
        initial=(y0, yp0),
        reference=known_reference("chemical_akzo_nobel"),
    )


# --- air pollution: the problem of twenty species ---------------------------------------------------------------------

# Verwer's 25 reactions: rate constant, reactants, products (listed twice if two are produced)
REACTIONS = (
    (0.35, ("NO2",), ("NO", "O3P")),
    (26.6, ("NO", "O3"), ("NO2",)),
    (1.23e4, ("HO2", "NO"), ("NO2", "OH")),
    (8.6e-4, ("HCHO",), ("HO2", "HO2", "CO")),
    (8.2e-4, ("HCHO",), ("CO",)),
    (1.5e4, ("HCHO", "OH"), ("HO2", "CO")),
    (1.3e-4, ("ALD",), ("MEO2", "HO2", "CO")),
    (2.4e4, ("ALD", "OH"), ("C2O3",)),
    (1.65e4, ("C2O3", "NO"), ("NO2", "MEO2", "CO2")),
    (9.0e3, ("C2O3", "NO2"), ("PAN",)),
    (2.2e-2, ("PAN",), ("C2O3", "NO2")),
    (1.2e4, ("MEO2", "NO"), ("CH3O", "NO2")),
    (1.88, ("CH3O",), ("HCHO", "HO2")),
    (1.63e4, ("NO2", "OH"), ("HNO3",)),
    (4.8e6, ("O3P",), ("O3",)),
    (3.5e-4, ("O3",), ("O1D",)),
    (1.75e-2, ("O3",), ("O3P",)),
    (1.0e8, ("O1D",), ("OH", "OH")),
    (4.44e11, ("O1D",), ("O3P",)),
    (1.24e3, ("SO2", "OH"), ("SO4", "HO2")),
    (2.1, ("NO3",), ("NO",)),
    (5.78, ("NO3",), ("NO2", "O3P")),
    (4.74e-2, ("NO2", "O3"), ("NO3",)),
    (1.78e3, ("NO3", "NO2"), ("N2O5",)),
    (3.12, ("N2O5",), ("NO3", "NO2")),
)
SPECIES = (
    *("NO2", "NO", "O3P", "O3", "HO2", "OH", "HCHO", "CO", "ALD", "MEO2"),
    *("C2O3", "CO2", "PAN", "CH3O", "HNO3", "O1D", "SO2", "SO4", "NO3", "N2O5"),
)
INITIAL = {"NO": 0.2, "O3": 0.04, "HCHO": 0.1, "CO": 0.3, "ALD": 0.01, "SO2": 0.007}


FIRST = np.array([SPECIES.index(reacting[0]) for _, reacting, _ in REACTIONS])
SECOND = np.array([SPECIES.index(reacting[1]) if len(reacting) == 2 else -1 for _, reacting, _ in REACTIONS])
RATE = np.array([rate for rate, _, _ in REACTIONS])
# Net number of species i produced by reaction k: i, k and that number
CHANGES = [
    (i, k, made.count(name) - reacting.count(name))
    for k, (_, reacting, made) in enumerate(REACTIONS)
    for i, name in enumerate(SPECIES)
    if made.count(name) != reacting.count(name)
]
CHANGED, BY, AMOUNT = (np.array(column) for column in zip(*CHANGES, strict=True))


def pollution_residual(t, y, yp):
    rate = np.empty(25)
    for k in range(25):
        rate[k] = RATE[k] * y[FIRST[k]]
        if SECOND[k] >= 0:
            rate[k] = rate[k] * y[SECOND[k]]
    r = yp.copy()
    for j in range(len(CHANGED)):
        r[CHANGED[j]] = r[CHANGED[j]] - AMOUNT[j] * rate[BY[j]]
    return r


@model
def pollution() -> Model:
    """Twenty species in the air over 60 minutes; ``daedal.library.kinetics.REACTIONS`` lists the reactions."""
    problem = daedal.ImplicitDAE(pollution_residual, 20, names=SPECIES)
    return Model(
        problem=problem,
        initial=explicit_start(problem, np.array([INITIAL.get(name, 0.0) for name in SPECIES])),
        reference=known_reference("pollution"),
    )


# --- stirred-tank reactors with a prescribed state, or with a reaction in equilibrium ---------------------------------

# flow, feed concentration, feed temperature, heat of reaction, cooling, rate, activation temperature; temperatures are
# in units of the feed temperature
COOLED_REACTOR = (1.0, 1.0, 1.0, 0.3, 2.0, 2.5e7, 20.0)


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


@model
def cstr(index: int = 3) -> Model:
    """A continuous stirred-tank reactor, simulated (index 1) or controlled by its jacket (index 2 and 3).

    Notes
    -----
    With index 3 ``model.extra["exact"](t, derivative)`` is the closed-form solution: the concentration determines the
    rate R, both determine the temperature, and its derivative determines the jacket temperature.
    """
    residual, names = FORMS[index]
    common: dict[str, Any] = {
        "title": f"Stirred-tank reactor of index {index}",
        "equations": r"\begin{aligned} " + " ".join((_BALANCES + _DEMANDS[index]).split()) + r" \end{aligned}",
        "problem": daedal.ImplicitDAE(
            residual, len(names), params=np.array(COOLED_REACTOR), algebraic=range(2, len(names)), names=names
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
    """Initial values for C = 0.5 and T = 1.15 if the jacket or reactor temperature is given."""
    k1, c0, t0, k2, k3, k4, k5 = COOLED_REACTOR
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
    """The state for the concentration 0.5 + 0.1 sin t, or its first derivative."""
    k1, c0, t0, k2, k3, k4, k5 = COOLED_REACTOR
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


@model
def equilibrium_reactor() -> Model:
    """A stirred-tank reactor with a fast reaction in equilibrium: index 2, with one free initial value."""
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
        initial=(np.array([a, b, b_slope + drain * b]), np.array([a_slope, b_slope, b_bend + drain * b_slope])),
        reference=known_reference("equilibrium_reactor"),
    )
