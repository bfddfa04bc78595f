"""The ring modulator: a circuit of diodes and transformers that mixes two signals."""

import math

import numpy as np

import daedal
from daedal.library.model import Model, check_choice, known_reference, model
from daedal.library.sources import TEST_SET

C, CS, CP = 1.6e-8, 2e-12, 1e-8  # capacitances in F
LH, LS1, LS2, LS3 = 4.45, 2e-3, 5e-4, 5e-4  # inductances in H
R, RP, RG1, RG2, RG3, RI, RC = 25000.0, 50.0, 36.3, 17.3, 17.3, 50.0, 600.0  # resistances in Ohm
GAMMA, DELTA = 40.67286402e-9, 17.7493332  # of the diodes, in A and 1 / V
LARGEST = 500.0  # of an exponent: where Newton's method goes astray, a current beyond all bounds, but a number


def modulator_residual(t, y, yp, p):
    """y: voltages U1 to U7, currents I1 to I8; p: the capacitance Cs."""
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


@model(
    title="Ring modulator",
    source="E. H. Horneber, Analyse nichtlinearer RLCUe-Netzwerke mit Hilfe der gemischten Potentialfunktion, thesis, "
    "University of Kaiserslautern (1976); G. Denk, P. Rentrop, Mathematical models in electric circuit simulation and "
    "their numerical treatment, in: K. Strehmel (ed.), Numerical Treatment of Differential Equations, Teubner (1991), "
    "pp. 305-316; " + TEST_SET,
    description="Four diodes in a ring between two transformers multiply a signal of 1 kHz by one of 10 kHz. The small "
    "capacitances Cs, at the nodes of the ring, are there to make an ordinary differential equation of it, and pay "
    "with fast oscillations; without them it is a DAE of index 2 with the same slow motion.",
    equations=r"""\begin{aligned} C U_1' &= I_1 - I_3/2 + I_4/2 + I_7 - U_1/R,\qquad
    C U_2' = I_2 - I_5/2 + I_6/2 + I_8 - U_2/R \\
    C_s U_3' &= I_3 - q(U_{D1}) + q(U_{D4}),\qquad C_s U_4' = -I_4 + q(U_{D2}) - q(U_{D3}) \\
    C_s U_5' &= I_5 + q(U_{D1}) - q(U_{D3}),\qquad C_s U_6' = -I_6 - q(U_{D2}) + q(U_{D4}) \\
    C_p U_7' &= -U_7/R_p + q(U_{D1}) + q(U_{D2}) - q(U_{D3}) - q(U_{D4}) \\
    L_h I_1' &= -U_1,\qquad L_h I_2' = -U_2 \\
    L_{s2} I_3' &= U_1/2 - U_3 - R_{g2} I_3,\qquad L_{s3} I_4' = -U_1/2 + U_4 - R_{g3} I_4 \\
    L_{s2} I_5' &= U_2/2 - U_5 - R_{g2} I_5,\qquad L_{s3} I_6' = -U_2/2 + U_6 - R_{g3} I_6 \\
    L_{s1} I_7' &= -U_1 + U_{e1} - (R_i + R_{g1}) I_7,\qquad L_{s1} I_8' = -U_2 - (R_c + R_{g1}) I_8 \\
    U_{D1} &= U_3 - U_5 - U_7 - U_{e2},\qquad U_{D2} = U_6 - U_4 - U_7 - U_{e2},\qquad
    q(U) = \gamma\,(e^{\delta U} - 1) \\
    U_{D3} &= U_4 + U_5 + U_7 + U_{e2},\qquad U_{D4} = U_7 - U_3 - U_6 + U_{e2} \end{aligned}""",
)
def ring_modulator(form: str = "ode") -> Model:
    """Seven voltages and eight currents of a ring modulator over one period of the slow signal.

    Parameters
    ----------
    form : {"ode", "index2"}
        With capacitances Cs = 2e-12 F at the nodes of the ring, or without.

    Notes
    -----
    Without Cs the currents through the diodes drop out of a sum of the four equations, I3 + I4 + I5 + I6 = 0, and
    the derivative of that is U3 + U5 = U4 + U6.
    """
    check_choice("form", form, ("ode", "index2"))
    cs, algebraic, slopes = CS, None, np.zeros(15)
    if form == "index2":
        cs, algebraic = 0.0, [2, 3, 4, 5]
        # The diodes are at rest, their voltages stay zero at first, and U3 + U5 = U4 + U6.
        slopes[2:6] = 2.0 * 20000.0 * math.pi * np.array([0.5, -0.5, -0.5, 0.5])
    names = [*(f"U{k}" for k in range(1, 8)), *(f"I{k}" for k in range(1, 9))]
    return Model(
        problem=daedal.ImplicitDAE(modulator_residual, 15, params=np.array([cs]), algebraic=algebraic, names=names),
        t_span=(0.0, 1e-3),
        initial=(np.zeros(15), slopes),
        index=0 if form == "ode" else 2,
        reference=known_reference("ring_modulator", form=form),
        # The limit of the exponents is not met along the motion: there is nothing to be followed.
        options={"rtol": 1e-6, "atol": np.repeat([1e-8, 1e-11], [7, 8]), "switches": "never"},
        plot={"variables": ["U1", "U2"]},
    )
