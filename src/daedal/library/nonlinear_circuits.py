"""Nonlinear circuits: a transistor amplifier, a loop of elements with unicursal characteristics."""

import math

import numpy as np

import daedal
from daedal.library.circuits import SOURCE
from daedal.library.model import Model, known_reference, model

SUPPLY, THERMAL_VOLTAGE, ALPHA, BETA = 6.0, 0.026, 0.99, 1e-6
SIGNAL_AMPLITUDE, SIGNAL_FREQUENCY = 0.1, 200.0 * math.pi
RESISTANCES = (1000.0,) + 9 * (9000.0,)  # R0 to R9
CAPACITANCES = tuple(k * 1e-6 for k in range(1, 6))  # C1 to C5


def amplifier_residual(t, y, yp, p):
    ub, uf, alpha, beta = p[0], p[1], p[2], p[3]
    ue = p[4] * math.sin(p[5] * t)
    u1 = (y[1] - y[2]) / uf
    u2 = (y[4] - y[5]) / uf
    # Beyond the range of floats: infinity tells the solver to try a smaller step.
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

    The mass matrix has rank 5. Adding the equations of each pair (1, 2), (4, 5), (7, 8) eliminates the derivatives; the
    sums hold for all times, so their time derivatives hold at 0 too. There both transistors are at rest (g = 0) and no
    current flows through C1, C3 and C5, hence y1' = y2', y4' = y5', y7' = y8'.
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


@model(
    title="Transistor amplifier",
    source="P. Rentrop, M. Roche, G. Steinebach, The application of Rosenbrock-Wanner type methods with stepsize "
    "control in differential-algebraic equations, Numer. Math. 55 (1989), pp. 545-563; E. Hairer, C. Lubich, M. Roche, "
    "The Numerical Solution of Differential-Algebraic Systems by Runge-Kutta Methods, Springer (1989)",
    description="Voltages of a two-stage amplifier that turns 0.1 V at 100 Hz into a distorted signal of some volts. "
    "Every derivative occurs, but only in five combinations: the capacitors couple pairs of nodes. The diodes make the "
    "problem stiff.",
    equations=r"""\begin{aligned} M U' &= f(U, t),\quad g(u) = \beta\,(e^{u/U_F} - 1),\quad U_e = 0.1 \sin 200\pi t \\
    C_1(U_2' - U_1') &= (U_1 - U_e)/R_0 \\
    C_1(U_1' - U_2') &= -U_b/R_2 + U_2(1/R_1 + 1/R_2) - (\alpha - 1)\,g(U_2 - U_3) \\
    -C_2 U_3' &= -g(U_2 - U_3) + U_3/R_3 \\
    C_3(U_5' - U_4') &= (U_4 - U_b)/R_4 + \alpha\,g(U_2 - U_3) \\
    C_3(U_4' - U_5') &= -U_b/R_6 + U_5(1/R_5 + 1/R_6) - (\alpha - 1)\,g(U_5 - U_6) \\
    -C_4 U_6' &= -g(U_5 - U_6) + U_6/R_7 \\
    C_5(U_8' - U_7') &= (U_7 - U_b)/R_8 + \alpha\,g(U_5 - U_6) \\
    C_5(U_7' - U_8') &= U_8/R_9 \end{aligned}""",
)
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
        t_span=(0.0, 0.2),
        initial=(np.array([0.0, half, half, SUPPLY, half, half, SUPPLY, 0.0]), initial_derivative()),
        index=1,
        reference=known_reference("transistor_amplifier"),
        # The diodes change the Jacobian from step to step: a convergence rate remembered from earlier steps misleads.
        options={"rtol": 1e-7, "atol": 1e-7, "remember_rate": False},
        plot={"variables": ["U1", "U5", "U8"]},
        extra={"netlist": amplifier_netlist()},
    )


def unicursal_residual(t, y, yp, p):
    r = np.empty(3)
    r[0] = math.sin(y[0]) * yp[0] - (math.cos(y[2]) ** 3 - math.cos(y[1]) + 1.0)
    r[1] = (1.0 - math.cos(y[1])) * yp[1] - p[0] * math.sin(y[0])
    r[2] = math.sin(y[2]) ** 3 - p[0] * math.sin(y[0])
    return r


@model(
    title="Unicursal loop circuit",
    source="L. O. Chua, R. A. Rohrer, On the dynamic equations of a class of nonlinear RLC networks, IEEE Trans. "
    "Circuit Theory 12 (1965), pp. 475-489; " + SOURCE,
    description="A loop of resistor, inductor and capacitor. Voltage and current (or flux, or charge) are given by "
    "curves that may cross themselves: v = cos^3 tau1, i = sin^3 tau1 for the resistor, flux cos tau2 and current 2 "
    "sin tau2 for the inductor, charge tau3 - sin tau3 and voltage 1 - cos tau3 for the capacitor. The leading matrix "
    "depends on the state and becomes singular where a characteristic has a turning point.",
    equations=r"""\begin{aligned} \sin\tau_2\;\tau_2' &= \cos^3\tau_1 - \cos\tau_3 + 1 \\
    (1 - \cos\tau_3)\,\tau_3' &= 2\sin\tau_2 \\ 0 &= \sin^3\tau_1 - 2\sin\tau_2 \end{aligned}""",
)
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
        t_span=(0.0, 5.0),
        initial=(np.array([tau2, tau3, tau1]), np.array([d2, d3, d1])),
        index=1,
        reference=known_reference("unicursal_loop"),
        options={"rtol": 1e-6, "atol": 1e-8},
        plot={"variables": ["tau1", "tau2", "tau3"]},
    )
