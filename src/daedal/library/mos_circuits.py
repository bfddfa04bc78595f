"""Circuits with MOS transistors that pulses drive: a charge pump, a NAND gate."""

import math

import numpy as np

import daedal
from daedal.library.model import Model, check_positive, known_reference, model
from daedal.library.sources import TEST_SET

# --- the charge pump, in V, ns, pF, pC and mA: 1 mA = 1 pC/ns ---------------------------------------------------------

# Threshold voltage (V), factor of the substrate effect (V^1/2), surface potential (V), capacitance of the oxide (pF)
THRESHOLD, SUBSTRATE, SURFACE, OXIDE = 0.2, 0.035, 1.01, 4.0
FLAT_BAND = THRESHOLD - SUBSTRATE * math.sqrt(SURFACE) - SURFACE
SOURCE_CAPACITANCE, DRAIN_CAPACITANCE = 1.6, 0.4  # pF
# Pulses of 20 V: period, beginning and duration of their edges (ns)
HIGH, PERIOD, RISE, FALL, EDGE = 20.0, 120.0, 50.0, 110.0, 10.0


def ramp(x):
    """From 0 to 1 while x does so."""
    return min(max(x, 0.0), 1.0)


def pump_voltage(t):
    """The voltage of the gate: pulses of 20 V with edges of 10 ns."""
    s = t % PERIOD
    return HIGH * (ramp((s - RISE) / EDGE) - ramp((s - FALL) / EDGE))


def mos_charges(ugb, ugs, ugd):
    """Charges (pC) of the gate and of the channel; the latter is shared by source and drain.

    Guenther, Denk and Feldmann (1995): accumulation, depletion, inversion. a and b are the overdrives of the two ends
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


@model(
    title="Charge pump",
    source=TEST_SET + ", charge pump; M. Guenther, G. Denk, U. Feldmann, How models for MOS transistors reflect charge "
    "distribution effects, Preprint 1745, TH Darmstadt (1995)",
    description="Pulses on the gate of a MOS transistor push charge into two capacitors and draw it back. The circuit "
    "is stated with its charges as unknowns: everything but the current into the gate is algebraic, and the current, "
    "the derivative of a charge, jumps at the edges of the pulses and where the transistor changes its state.",
    equations=r"""\begin{aligned} Q_1' &= -I,\qquad Q_2' + Q_3' = 0,\qquad Q_4' + Q_5' = 0,\qquad 0 = U_1 - V(t) \\
    0 &= Q_1 - Q_G(U),\quad 0 = Q_2 - C_S U_2,\quad 0 = Q_3 - Q_S(U),\quad 0 = Q_4 - C_D U_3,\quad
    0 = Q_5 - Q_D(U) \end{aligned}""",
)
def charge_pump(t1: float = 1200.0) -> Model:
    """A MOS transistor with a pulsed gate and two capacitors: five charges, three voltages, a current.

    Parameters
    ----------
    t1 : float
        End time; references are known for 1195, within an edge, and 1200, when all charges have returned.

    Notes
    -----
    Units are V, ns, pF, pC and mA, with which all unknowns have the size of 1; those of the test set are V, s, F, C and
    A. The charges of the channel have no derivative where the transistor begins to conduct, since both of its ends do
    so at once: branches cannot be followed there, and ``model.options`` leave them to the step size control. As in the
    test set, they leave the current out of the error test, which no step across one of its jumps would pass.

    At every time all other unknowns follow from V(t) and V'(t) alone, by the root of one scalar equation.
    ``model.extra`` has ``kinks``, the times at which V has one.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.charge_pump(t1=1195.0)
    >>> print(model.problem.names, model.reference.y[8].round(6))
    ('Q1', 'Q2', 'Q3', 'Q4', 'Q5', 'U1', 'U2', 'U3', 'I') 2.926389
    """
    check_positive(t1=t1)
    start = np.zeros(9)
    start[0] = mos_charges(0.0, 0.0, 0.0)[0]
    edges = [PERIOD * k + at for k in range(math.ceil(t1 / PERIOD)) for at in (0.0, RISE, RISE + EDGE, FALL)]
    return Model(
        problem=daedal.ImplicitDAE(
            pump_residual, 9, algebraic=[5, 6, 7, 8], names=["Q1", "Q2", "Q3", "Q4", "Q5", "U1", "U2", "U3", "I"]
        ),
        t_span=(0.0, float(t1)),
        initial=(start, np.zeros(9)),
        index=2,
        reference=known_reference("charge_pump", t1=t1),
        options={
            "rtol": 1e-6,
            "atol": 1e-6,
            "method": "radau",
            "error_test": 8 * [True] + [False],
            "switches": "never",
        },
        plot={"variables": ["U1", "U2", "U3", "I"]},
        extra={"kinks": np.array([t for t in edges if 0.0 < t < t1])},
    )


# --- the NAND gate, in V, ns, kOhm, nF and mA -------------------------------------------------------------------------

# Resistances of gate and drain, and of the substrate; capacitances at gate, in the substrate, of the lines
R_CHANNEL, R_BULK, C_GATE, C_JUNCTION, C_LINE = 4.0, 10.0, 0.6e-4, 2.4e-5, 0.5e-4
# Supply, substrate bias (V); saturation current, thermal voltage and built-in voltage of the junctions
SUPPLY, BIAS, SATURATION, THERMAL, BUILT_IN = 5.0, -2.5, 1e-14, 25.85, 0.87
MODULATION = 0.02  # of the length of the channel (1/V)
# Threshold (V), substrate effect (V^1/2), surface potential (V), conductance forwards and backwards (mA/V^2)
DEPLETION = (-2.43, 0.2, 1.28, 5.35e-4, 5.35e-4)
ENHANCEMENT = (0.2, 0.035, 1.01, 1.748e-3, 1.748e-4)
# The inputs rise and fall by 5 V in 5 ns: first rise, time at the top, period
FIRST_INPUT, SECOND_INPUT = (5.0, 5.0, 20.0), (15.0, 15.0, 40.0)


def channel_current(kind, drain, bulk, gate):
    """Current of Shichman and Hodges from drain to source, where the voltage `drain` between them is positive.

    With the overdrive u it is u^2 in saturation, u <= drain, and u^2 - (u - drain)^2 otherwise.
    """
    threshold = kind[0] + kind[1] * (np.sqrt(max(kind[2] - bulk, 0.0)) - math.sqrt(kind[2]))
    over = max(gate - threshold, 0.0)
    beyond = max(over - drain, 0.0)
    return (over * over - beyond * beyond) * (1.0 + MODULATION * drain)


def transistor_current(kind, drain, gate_source, bulk_source, gate_drain, bulk_drain):
    """The same, with its sign, for both signs of the voltage `drain` between drain and source."""
    forwards = channel_current(kind, max(drain, 0.0), bulk_source, gate_source)
    backwards = channel_current(kind, max(-drain, 0.0), bulk_drain, gate_drain)
    return kind[4] * backwards - kind[3] * forwards


def junction_current(u):
    return -SATURATION * (math.exp(min(u, 0.0) / THERMAL) - 1.0)


def junction_capacitance(u):
    return C_JUNCTION * (1.0 / np.sqrt(1.0 - min(u, 0.0) / BUILT_IN) + 0.5 * max(u, 0.0) / BUILT_IN)


def gate_input(t, first, top, period):
    """The voltage of an input and its slope, continuous from the right."""
    s = t % period - first
    rises, falls = np.where(s < 5.0, s >= 0.0, 0.0), np.where(s < 10.0 + top, s >= 5.0 + top, 0.0)
    return 5.0 * (ramp(0.2 * s) - ramp(0.2 * (s - 5.0 - top))), rises - falls


def nand_residual(t, y, yp):
    v1, slope1 = gate_input(t, *FIRST_INPUT)
    v2, slope2 = gate_input(t, *SECOND_INPUT)
    load = transistor_current(DEPLETION, y[1] - y[0], y[4] - y[0], y[2] - y[4], y[4] - y[1], y[3] - SUPPLY)
    upper = transistor_current(ENHANCEMENT, y[6] - y[5], v1 - y[5], y[7] - y[9], v1 - y[6], y[8] - y[4])
    lower = transistor_current(ENHANCEMENT, y[11] - y[10], v2 - y[10], y[12], v2 - y[11], y[13] - y[9])
    # What flows into the six junctions: through the diode, and to charge it
    i3, q3 = junction_current(y[2] - y[4]), junction_capacitance(y[2] - y[4]) * (yp[2] - yp[4])
    i4, q4 = junction_current(y[3] - SUPPLY), junction_capacitance(y[3] - SUPPLY) * yp[3]
    i8, q8 = junction_current(y[7] - y[9]), junction_capacitance(y[7] - y[9]) * (yp[7] - yp[9])
    i9, q9 = junction_current(y[8] - y[4]), junction_capacitance(y[8] - y[4]) * (yp[8] - yp[4])
    i13, q13 = junction_current(y[12]), junction_capacitance(y[12]) * yp[12]
    i14, q14 = junction_current(y[13] - y[9]), junction_capacitance(y[13] - y[9]) * (yp[13] - yp[9])
    q1, q2 = C_GATE * (yp[0] - yp[4]), C_GATE * (yp[1] - yp[4])
    r = np.empty(14)
    r[0] = q1 + (y[0] - y[4]) / R_CHANNEL + load
    r[1] = q2 + (y[1] - SUPPLY) / R_CHANNEL - load
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


@model(
    title="NAND gate",
    source=TEST_SET + ", NAND gate; the transistors are those of Shichman and Hodges",
    description="Three MOS transistors in a row, one of them the load: the output U5 is low if both inputs are high. "
    "Capacitances depend on the voltages, inputs are piecewise linear, currents have kinks: fully implicit, smooth "
    "only in pieces.",
    equations=r"""C(U)\,U' = f(U, t),\qquad i = \beta \bigl(u^2 - \max(0, u - U_{DS})^2\bigr)(1 + \delta U_{DS}),\quad
    u = \max(0, U_{GS} - U_T),\qquad
    U_T = U_{T0} + \gamma \bigl(\sqrt{\Phi - U_{BS}} - \sqrt{\Phi}\bigr)""",
)
def nand_gate(t1: float = 80.0) -> Model:
    """A NAND gate of three transistors: fourteen node voltages with a capacitance matrix that depends on them.

    Parameters
    ----------
    t1 : float
        End time; a reference is known for 80.

    Notes
    -----
    Units are V, ns, kOhm, nF and mA. The first input rises at 5 ns and every 20 ns, the second at 15 ns and every
    40 ns. The enhancement transistors conduct ten times less backwards than forwards: so the programs of the test set
    have it, and its reference. ``model.extra`` has ``kinks``, the times at which an input has one.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.nand_gate()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial)
    >>> print(sol(12.5)[4].round(2), sol(32.5)[4].round(2))  # U5: one input is high, both are
    5.0 0.41
    """
    check_positive(t1=t1)
    low = 3.62385
    start = [5.0, 5.0, BIAS, BIAS, 5.0, low, 5.0, BIAS, BIAS, low, 0.0, low, BIAS, BIAS]
    return Model(
        problem=daedal.ImplicitDAE(nand_residual, 14, names=[f"U{k}" for k in range(1, 15)]),
        t_span=(0.0, float(t1)),
        initial=(np.array(start), None),
        index=0,
        reference=known_reference("nand_gate", t1=t1),
        options={"rtol": 1e-6, "atol": 1e-6},
        plot={"variables": ["U5", "U10"]},
        extra={"kinks": np.arange(5.0, t1, 5.0)},
    )
