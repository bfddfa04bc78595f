"""Nonlinear circuits: an amplifier, a ring modulator, MOS transistors."""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, known_reference, model

SUPPLY, THERMAL_VOLTAGE, ALPHA, BETA = 6.0, 0.026, 0.99, 1e-6
SIGNAL_AMPLITUDE, SIGNAL_FREQUENCY = 0.1, 200.0 * math.pi
RESISTANCES = (1000.0,) + 9 * (9000.0,)  # R0 to R9
CAPACITANCES = tuple(k * 1e-6 for k in range(1, 6))  # C1 to C5


def amplifier_residual(t, y, yp, p):
    ub, uf, alpha, beta = p[0], p[1], p[2], p[3]
    ue = p[4] * math.sin(p[5] * t)
    u1 = (y[1] - y[2]) / uf
    u2 = (y[4] - y[5]) / uf
    # beyond the range of floats, infinity makes the solver reduce the step
    g1 = beta * (math.exp(u1) - 1.0) if u1 < 700.0 else math.inf
    g2 = beta * (math.exp(u2) - 1.0) if u2 < 700.0 else math.inf
    r0, r1, r2, r3, r4, r5, r6, r7, r8, r9 = p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15]
    i1 = p[16] * (yp[1] - yp[0])
    i3 = p[18] * (yp[4] - yp[3])
    i5 = p[20] * (yp[7] - yp[6])
    r = np.empty(8)
    r[0] = i1 - (y[0] - ue) / r0
    r[1] = -i1 + ub / r2 - y[1] * (1.0 / r1 + 1.0 / r2) + (alpha - 1.0) * g1
    r[2] = -p[17] * yp[2] + g1 - y[2] / r3
    r[3] = i3 - (y[3] - ub) / r4 - alpha * g1
    r[4] = -i3 + ub / r6 - y[4] * (1.0 / r5 + 1.0 / r6) + (alpha - 1.0) * g2
    r[5] = -p[19] * yp[5] + g2 - y[5] / r7
    r[6] = i5 - (y[6] - ub) / r8 - alpha * g2
    r[7] = -i5 - y[7] / r9
    return r


def amplifier_netlist() -> str:
    """The amplifier for :func:`daedal.circuits.parse`; nodes 1 to 8 have the voltages U1 to U8."""
    ends = "e 1, 2 0, b 2, 3 0, b 4, 5 0, b 5, 6 0, b 7, 8 0".split(", ")
    lines = [f"Vb b 0 {SUPPLY}", f"Ve e 0 SIN(0 {SIGNAL_AMPLITUDE} {SIGNAL_FREQUENCY / (2.0 * math.pi)!r})"]
    lines += [f"R{k} {nodes} {value}" for k, (nodes, value) in enumerate(zip(ends, RESISTANCES))]
    charged = zip(("1 2", "3 0", "4 5", "6 0", "7 8"), CAPACITANCES, (-3, 3, 3, 3, 6))
    lines += [f"C{k} {nodes} {value!r} ic={start}" for k, (nodes, value, start) in enumerate(charged, 1)]
    lines += ["Q1 4 2 3 T", "Q2 7 5 6 T", f".model T npn(ies={BETA} ics=0 af={ALPHA} vt={THERMAL_VOLTAGE})"]
    return "\n".join(lines)


def initial_derivative() -> np.ndarray:
    """The consistent y'(0).

    The mass matrix has rank 5. Adding the equations of each pair (1, 2), (4, 5), (7, 8) eliminates the derivatives, and
    the sums can be differentiated. At t = 0 both transistors are at rest (g = 0) and no current flows through C1, C3
    and C5, hence y1' = y2', y4' = y5', y7' = y8'.
    """
    r0, r1, r2, r3, r4, r5, r6, r7, r8, r9 = RESISTANCES
    slope = BETA / THERMAL_VOLTAGE  # dg/du at 0
    y3 = -SUPPLY / 2.0 / (CAPACITANCES[1] * r3)
    y6 = -SUPPLY / 2.0 / (CAPACITANCES[3] * r7)
    y2 = (SIGNAL_AMPLITUDE * SIGNAL_FREQUENCY / r0 + (1.0 - ALPHA) * slope * y3) / (
        1.0 / r0 + 1.0 / r1 + 1.0 / r2 + (1.0 - ALPHA) * slope
    )
    y5 = ((1.0 - ALPHA) * slope * y6 - ALPHA * slope * (y2 - y3)) / (
        1.0 / r4 + 1.0 / r5 + 1.0 / r6 + (1.0 - ALPHA) * slope
    )
    y8 = -ALPHA * slope * (y5 - y6) / (1.0 / r8 + 1.0 / r9)
    return np.array([y2, y2, y3, y5, y5, y6, y8, y8])


@model
def transistor_amplifier() -> Model:
    """A two-stage transistor amplifier: eight node voltages, a mass matrix of rank five.

    Notes
    -----
    ``model.extra["netlist"]`` is the circuit for :func:`daedal.circuits.parse`.
    """
    half = SUPPLY / 2.0
    problem = daedal.ImplicitDAE(
        amplifier_residual,
        8,
        params=np.array(
            [SUPPLY, THERMAL_VOLTAGE, ALPHA, BETA, SIGNAL_AMPLITUDE, SIGNAL_FREQUENCY, *RESISTANCES, *CAPACITANCES]
        ),
        names=[f"U{k}" for k in range(1, 9)],
    )
    return Model(
        problem=problem,
        initial=(np.array([0.0, half, half, SUPPLY, half, half, SUPPLY, 0.0]), initial_derivative()),
        reference=known_reference("transistor_amplifier"),
        extra={"netlist": amplifier_netlist()},
    )


def unicursal_residual(t, y, yp, p):
    r = np.empty(3)
    r[0] = math.sin(y[0]) * yp[0] - (math.cos(y[2]) ** 3 - math.cos(y[1]) + 1.0)
    r[1] = (1.0 - math.cos(y[1])) * yp[1] - p[0] * math.sin(y[0])
    r[2] = math.sin(y[2]) ** 3 - p[0] * math.sin(y[0])
    return r


@model
def unicursal_loop() -> Model:
    """Resistor, inductor and capacitor in a loop, each with a unicursal characteristic."""
    tau2, tau3 = 3.0, 1.0
    current = 2.0 * math.sin(tau2)
    tau1 = math.pi - math.asin(current ** (1.0 / 3.0))
    d2 = (math.cos(tau1) ** 3 - math.cos(tau3) + 1.0) / math.sin(tau2)
    d3 = current / (1.0 - math.cos(tau3))
    d1 = 2.0 * math.cos(tau2) * d2 / (3.0 * math.sin(tau1) ** 2 * math.cos(tau1))
    return Model(
        problem=daedal.ImplicitDAE(
            unicursal_residual, 3, params=np.array([2.0]), algebraic=[2], names=["tau2", "tau3", "tau1"]
        ),
        initial=(np.array([tau2, tau3, tau1]), np.array([d2, d3, d1])),
        reference=known_reference("unicursal_loop"),
    )


# --- the ring modulator: a circuit of diodes and transformers that mixes two signals ----------------------------------

C, CS, CP = 1.6e-8, 2e-12, 1e-8  # capacitances in F
LH, LS1, LS2, LS3 = 4.45, 2e-3, 5e-4, 5e-4  # inductances in H
R, RP, RG1, RG2, RG3, RI, RC = 25000.0, 50.0, 36.3, 17.3, 17.3, 50.0, 600.0  # resistances in ohms
GAMMA, DELTA = 40.67286402e-9, 17.7493332  # diode constants in A and 1 / V
LARGEST = 500.0  # limit of exponents: if Newton's method diverges, the current is huge but finite


def modulator_residual(t, y, yp, p):
    """The residual with voltages U1 to U7 and currents I1 to I8 in y; p is the capacitance Cs."""
    uin1 = 0.5 * math.sin(2000.0 * math.pi * t)
    uin2 = 2.0 * math.sin(20000.0 * math.pi * t)
    q1 = GAMMA * (np.exp(min(DELTA * (y[2] - y[4] - y[6] - uin2), LARGEST)) - 1.0)
    q2 = GAMMA * (np.exp(min(DELTA * (-y[3] + y[5] - y[6] - uin2), LARGEST)) - 1.0)
    q3 = GAMMA * (np.exp(min(DELTA * (y[3] + y[4] + y[6] + uin2), LARGEST)) - 1.0)
    q4 = GAMMA * (np.exp(min(DELTA * (-y[2] - y[5] + y[6] + uin2), LARGEST)) - 1.0)
    r = np.empty(15)
    r[0] = C * yp[0] - (y[7] - 0.5 * y[9] + 0.5 * y[10] + y[13] - y[0] / R)
    r[1] = C * yp[1] - (y[8] - 0.5 * y[11] + 0.5 * y[12] + y[14] - y[1] / R)
    r[2] = p[0] * yp[2] - (y[9] - q1 + q4)
    r[3] = p[0] * yp[3] - (-y[10] + q2 - q3)
    r[4] = p[0] * yp[4] - (y[11] + q1 - q3)
    r[5] = p[0] * yp[5] - (-y[12] - q2 + q4)
    r[6] = CP * yp[6] - (-y[6] / RP + q1 + q2 - q3 - q4)
    r[7] = LH * yp[7] + y[0]
    r[8] = LH * yp[8] + y[1]
    r[9] = LS2 * yp[9] - (0.5 * y[0] - y[2] - RG2 * y[9])
    r[10] = LS3 * yp[10] - (-0.5 * y[0] + y[3] - RG3 * y[10])
    r[11] = LS2 * yp[11] - (0.5 * y[1] - y[4] - RG2 * y[11])
    r[12] = LS3 * yp[12] - (-0.5 * y[1] + y[5] - RG3 * y[12])
    r[13] = LS1 * yp[13] - (-y[0] + uin1 - (RI + RG1) * y[13])
    r[14] = LS1 * yp[14] - (-y[1] - (RC + RG1) * y[14])
    return r


@model
def ring_modulator(form: str = "ode") -> Model:
    """Seven voltages and eight currents of a ring modulator over one period of the slow signal.

    Notes
    -----
    Without Cs the diode currents cancel in a sum of four equations, I3 + I4 + I5 + I6 = 0, whose derivative is
    U3 + U5 = U4 + U6.
    """
    cs, algebraic, slopes = CS, None, np.zeros(15)
    if form == "index2":
        cs, algebraic = 0.0, [2, 3, 4, 5]
        # The diodes are at rest, their voltages are initially zero, and U3 + U5 = U4 + U6.
        slopes[2:6] = 2.0 * 20000.0 * math.pi * np.array([0.5, -0.5, -0.5, 0.5])
    names = [*(f"U{k}" for k in range(1, 8)), *(f"I{k}" for k in range(1, 9))]
    return Model(
        problem=daedal.ImplicitDAE(modulator_residual, 15, params=np.array([cs]), algebraic=algebraic, names=names),
        initial=(np.zeros(15), slopes),
        index=0 if form == "ode" else 2,
        reference=known_reference("ring_modulator", form=form),
        # The motion never reaches the limit of the exponents, so no switches need to be tracked.
        options={"rtol": 1e-6, "atol": np.repeat([1e-8, 1e-11], [7, 8]), "switches": "never"},
    )


# --- the charge pump, in V, ns, pF, pC and mA (1 mA = 1 pC/ns) --------------------------------------------------------

# Threshold voltage (V), substrate effect factor (V^1/2), surface potential (V), oxide capacitance (pF)
THRESHOLD, SUBSTRATE, SURFACE, OXIDE = 0.2, 0.035, 1.01, 4.0
FLAT_BAND = THRESHOLD - SUBSTRATE * math.sqrt(SURFACE) - SURFACE
SOURCE_CAPACITANCE, DRAIN_CAPACITANCE = 1.6, 0.4  # pF
# Pulses of 20 V: period, start times and duration of their edges (ns)
HIGH, PERIOD, RISE, FALL, EDGE = 20.0, 120.0, 50.0, 110.0, 10.0


def ramp(x):
    """x limited to [0, 1]."""
    return min(max(x, 0.0), 1.0)


def pump_voltage(t):
    """Gate voltage: pulses of 20 V with edges of 10 ns."""
    s = t % PERIOD
    return HIGH * (ramp((s - RISE) / EDGE) - ramp((s - FALL) / EDGE))


def mos_charges(ugb, ugs, ugd):
    """Gate and channel charges (pC); source and drain share the channel charge.

    Guenther, Denk and Feldmann (1995): accumulation, depletion, inversion. a and b are the overdrives at the two ends
    of the channel; b = 0 is saturation.
    """
    high, low = max(ugs, ugd), min(ugs, ugd)
    body = np.sqrt(max(SURFACE - high + ugb, 0.0))
    threshold = THRESHOLD + SUBSTRATE * (body - math.sqrt(SURFACE))
    a, b = max(high - threshold, 0.0), max(low - threshold, 0.0)
    channel = OXIDE * (a + b - a * b / max(a + b, 1e-12)) / 1.5
    accumulated = OXIDE * min(ugb - FLAT_BAND, 0.0)
    depleted = np.sqrt(0.25 * SUBSTRATE * SUBSTRATE + max(ugb - FLAT_BAND, 0.0)) - 0.5 * SUBSTRATE
    gate = np.where(high <= threshold, depleted, body)
    return accumulated + OXIDE * SUBSTRATE * gate + channel, -channel


def pump_residual(t, y, yp):
    gate, channel = mos_charges(y[5], y[5] - y[6], y[5] - y[7])
    r = np.empty(9)
    r[0] = yp[0] + y[8]
    r[1] = yp[1] + yp[2]
    r[2] = yp[3] + yp[4]
    r[3] = y[5] - pump_voltage(t)
    r[4] = y[0] - gate
    r[5] = y[1] - SOURCE_CAPACITANCE * y[6]
    r[6] = y[2] - 0.5 * channel
    r[7] = y[3] - DRAIN_CAPACITANCE * y[7]
    r[8] = y[4] - 0.5 * channel
    return r


@model
def charge_pump(t1: float = 1200.0) -> Model:
    """A MOS transistor with a pulsed gate and two capacitors: five charges, three voltages, a current.

    Notes
    -----
    Units are V, ns, pF, pC and mA, in which all unknowns are of order 1; the test set uses V, s, F, C and A. The
    channel charges are not differentiable when the transistor begins to conduct, since both of its ends
    do so simultaneously. Branches cannot be tracked there; with ``model.options`` step size control handles them. As in
    the test set, the options exclude the current from the error test, which no step across one of its jumps would pass.

    At any time the other unknowns follow from V(t) and V'(t), via the root of one scalar equation.
    ``model.extra`` has ``kinks``, the times of the kinks of V.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.charge_pump(t1=1195.0)
    >>> print(model.problem.names, model.reference.y[8].round(6))
    ('Q1', 'Q2', 'Q3', 'Q4', 'Q5', 'U1', 'U2', 'U3', 'I') 2.926389
    """
    start = np.zeros(9)
    start[0] = mos_charges(0.0, 0.0, 0.0)[0]
    edges = [PERIOD * k + at for k in range(math.ceil(t1 / PERIOD)) for at in (0.0, RISE, RISE + EDGE, FALL)]
    return Model(
        problem=daedal.ImplicitDAE(
            pump_residual, 9, algebraic=[5, 6, 7, 8], names=["Q1", "Q2", "Q3", "Q4", "Q5", "U1", "U2", "U3", "I"]
        ),
        initial=(start, np.zeros(9)),
        reference=known_reference("charge_pump", t1=t1),
        options={
            "rtol": 1e-6,
            "atol": 1e-6,
            "method": "radau",
            "error_test": 8 * [True] + [False],
            "switches": "never",
        },
        extra={"kinks": np.array([t for t in edges if 0.0 < t < t1])},
    )


# --- the NAND gate, in V, ns, kOhm, nF and mA -------------------------------------------------------------------------

# Resistances of channel and substrate; capacitances of gate, junction and lines
R_CHANNEL, R_BULK, C_GATE, C_JUNCTION, C_LINE = 4.0, 10.0, 0.6e-4, 2.4e-5, 0.5e-4
# Supply, substrate bias (V); saturation current, thermal voltage and built-in voltage of the junctions
MOS_SUPPLY, BIAS, SATURATION, THERMAL, BUILT_IN = 5.0, -2.5, 1e-14, 25.85, 0.87
MODULATION = 0.02  # channel length modulation (1/V)
# Threshold (V), substrate effect (V^1/2), surface potential (V), conductance forwards and backwards (mA/V^2)
DEPLETION = (-2.43, 0.2, 1.28, 5.35e-4, 5.35e-4)
ENHANCEMENT = (0.2, 0.035, 1.01, 1.748e-3, 1.748e-4)
# The inputs rise and fall by 5 V in 5 ns: first rise, time at the top, period
FIRST_INPUT, SECOND_INPUT = (5.0, 5.0, 20.0), (15.0, 15.0, 40.0)


def channel_current(kind, drain, bulk, gate):
    """Shichman and Hodges' current from drain to source, without its factor, for a positive voltage `drain`.

    With the overdrive u it is u^2 in saturation (u <= drain), otherwise u^2 - (u - drain)^2.
    """
    threshold = kind[0] + kind[1] * (np.sqrt(max(kind[2] - bulk, 0.0)) - math.sqrt(kind[2]))
    over = max(gate - threshold, 0.0)
    beyond = max(over - drain, 0.0)
    return (over * over - beyond * beyond) * (1.0 + MODULATION * drain)


def transistor_current(kind, drain, gate_source, bulk_source, gate_drain, bulk_drain):
    """Current from source to drain for either sign of the drain-source voltage `drain`."""
    forwards = channel_current(kind, max(drain, 0.0), bulk_source, gate_source)
    backwards = channel_current(kind, max(-drain, 0.0), bulk_drain, gate_drain)
    return kind[4] * backwards - kind[3] * forwards


def junction_current(u):
    return -SATURATION * (math.exp(min(u, 0.0) / THERMAL) - 1.0)


def junction_capacitance(u):
    return C_JUNCTION * (1.0 / np.sqrt(1.0 - min(u, 0.0) / BUILT_IN) + 0.5 * max(u, 0.0) / BUILT_IN)


def gate_input(t, first, top, period):
    """Input voltage and its slope, right-continuous."""
    s = t % period - first
    rises, falls = np.where(s < 5.0, s >= 0.0, 0.0), np.where(s < 10.0 + top, s >= 5.0 + top, 0.0)
    return 5.0 * (ramp(0.2 * s) - ramp(0.2 * (s - 5.0 - top))), rises - falls


def nand_residual(t, y, yp):
    v1, slope1 = gate_input(t, *FIRST_INPUT)
    v2, slope2 = gate_input(t, *SECOND_INPUT)
    load = transistor_current(DEPLETION, y[1] - y[0], y[4] - y[0], y[2] - y[4], y[4] - y[1], y[3] - MOS_SUPPLY)
    upper = transistor_current(ENHANCEMENT, y[6] - y[5], v1 - y[5], y[7] - y[9], v1 - y[6], y[8] - y[4])
    lower = transistor_current(ENHANCEMENT, y[11] - y[10], v2 - y[10], y[12], v2 - y[11], y[13] - y[9])
    # diode and charging currents of the six junctions
    i3, q3 = junction_current(y[2] - y[4]), junction_capacitance(y[2] - y[4]) * (yp[2] - yp[4])
    i4, q4 = junction_current(y[3] - MOS_SUPPLY), junction_capacitance(y[3] - MOS_SUPPLY) * yp[3]
    i8, q8 = junction_current(y[7] - y[9]), junction_capacitance(y[7] - y[9]) * (yp[7] - yp[9])
    i9, q9 = junction_current(y[8] - y[4]), junction_capacitance(y[8] - y[4]) * (yp[8] - yp[4])
    i13, q13 = junction_current(y[12]), junction_capacitance(y[12]) * yp[12]
    i14, q14 = junction_current(y[13] - y[9]), junction_capacitance(y[13] - y[9]) * (yp[13] - yp[9])
    q1, q2 = C_GATE * (yp[0] - yp[4]), C_GATE * (yp[1] - yp[4])
    r = np.empty(14)
    r[0] = q1 + (y[0] - y[4]) / R_CHANNEL + load
    r[1] = q2 + (y[1] - MOS_SUPPLY) / R_CHANNEL - load
    r[2] = q3 + (y[2] - BIAS) / R_BULK - i3
    r[3] = q4 + (y[3] - BIAS) / R_BULK - i4
    r[4] = C_LINE * yp[4] - q1 - q2 - q3 - q9 + (y[4] - y[0]) / R_CHANNEL + i3 + (y[4] - y[6]) / R_CHANNEL + i9
    r[5] = C_GATE * (yp[5] - slope1) + (y[5] - y[9]) / R_CHANNEL + upper
    r[6] = C_GATE * (yp[6] - slope1) + (y[6] - y[4]) / R_CHANNEL - upper
    r[7] = q8 + (y[7] - BIAS) / R_BULK - i8
    r[8] = q9 + (y[8] - BIAS) / R_BULK - i9
    r[9] = C_LINE * yp[9] - q8 - q14 + (y[9] - y[5]) / R_CHANNEL + i8 + (y[9] - y[11]) / R_CHANNEL + i14
    r[10] = C_GATE * (yp[10] - slope2) + y[10] / R_CHANNEL + lower
    r[11] = C_GATE * (yp[11] - slope2) + (y[11] - y[9]) / R_CHANNEL - lower
    r[12] = q13 + (y[12] - BIAS) / R_BULK - i13
    r[13] = q14 + (y[13] - BIAS) / R_BULK - i14
    return r


@model
def nand_gate(t1: float = 80.0) -> Model:
    """A NAND gate of three transistors: fourteen node voltages with a voltage-dependent capacitance matrix.

    Notes
    -----
    Units are V, ns, kOhm, nF and mA. The first input rises at 5 ns and every 20 ns, the second at 15 ns and every
    40 ns. The enhancement transistors conduct ten times less backwards than forwards, as in the programs and the
    reference of the test set. ``model.extra`` has ``kinks``, the times at which an input has a kink.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.nand_gate()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial)
    >>> print(sol(12.5)[4].round(2), sol(32.5)[4].round(2))  # U5 with one and with both inputs high
    5.0 0.41
    """
    low = 3.62385
    start = [5.0, 5.0, BIAS, BIAS, 5.0, low, 5.0, BIAS, BIAS, low, 0.0, low, BIAS, BIAS]
    return Model(
        problem=daedal.ImplicitDAE(nand_residual, 14, names=[f"U{k}" for k in range(1, 15)]),
        initial=(np.array(start), None),
        reference=known_reference("nand_gate", t1=t1),
        extra={"kinks": np.arange(5.0, t1, 5.0)},
    )
