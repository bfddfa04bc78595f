"""A nonlinear loop circuit whose elements are given by parametrised curves."""

from __future__ import annotations

import math

import numpy as np

import daedal
from daedal.library.model import Model, Reference
from daedal.library.networks import SOURCE

SOLUTION_AT_5 = (3.13303365328421, 1.47270389400626, 2.88093021854866)


def residual(t, y, yp, p):
    r = np.empty(3)
    r[0] = math.sin(y[0]) * yp[0] - (math.cos(y[2]) ** 3 - math.cos(y[1]) + 1.0)
    r[1] = (1.0 - math.cos(y[1])) * yp[1] - p[0] * math.sin(y[0])
    r[2] = math.sin(y[2]) ** 3 - p[0] * math.sin(y[0])
    return r


def unicursal_loop() -> Model:
    """Resistor, inductor and capacitor in a loop, each with a unicursal characteristic."""
    tau2, tau3 = 3.0, 1.0
    current = 2.0 * math.sin(tau2)
    tau1 = math.pi - math.asin(current ** (1.0 / 3.0))
    d2 = (math.cos(tau1) ** 3 - math.cos(tau3) + 1.0) / math.sin(tau2)
    d3 = current / (1.0 - math.cos(tau3))
    d1 = 2.0 * math.cos(tau2) * d2 / (3.0 * math.sin(tau1) ** 2 * math.cos(tau1))
    return Model(
        name="unicursal_loop",
        title="Unicursal loop circuit",
        problem=daedal.ImplicitDAE(residual, 3, params=np.array([2.0]), algebraic=[2], names=["tau2", "tau3", "tau1"]),
        t_span=(0.0, 5.0),
        initial=(np.array([tau2, tau3, tau1]), np.array([d2, d3, d1])),
        index=1,
        source="L. O. Chua, R. A. Rohrer, On the dynamic equations of a class of nonlinear RLC networks, IEEE Trans. "
        "Circuit Theory 12 (1965), pp. 475-489; " + SOURCE,
        description="A loop of resistor, inductor and capacitor. Voltage and current (or flux, or charge) are given by "
        "curves that may cross themselves: v = cos^3 tau1, i = sin^3 tau1 for the resistor, flux cos tau2 and current "
        "2 sin tau2 for the inductor, charge tau3 - sin tau3 and voltage 1 - cos tau3 for the capacitor. The leading "
        "matrix depends on the state and becomes singular where a characteristic has a turning point.",
        equations=(
            r"\begin{aligned} \sin\tau_2\;\tau_2' &= \cos^3\tau_1 - \cos\tau_3 + 1 \\ "
            r"(1 - \cos\tau_3)\,\tau_3' &= 2\sin\tau_2 \\ 0 &= \sin^3\tau_1 - 2\sin\tau_2 \end{aligned}"
        ),
        reference=Reference(5.0, np.array(SOLUTION_AT_5), "tau1 eliminated by hand, then DOP853 at rtol 2e-14", 1e-12),
        options={"rtol": 1e-6, "atol": 1e-8},
        plot={"variables": ["tau1", "tau2", "tau3"]},
    )
