"""Relaxation oscillations: van der Pol's equation."""

import numpy as np

import daedal
from daedal.library.model import Model, check_positive, explicit_start, known_reference, model
from daedal.library.sources import HAIRER_WANNER, TEST_SET


def van_der_pol_residual(t, y, yp, p):
    return np.array([yp[0] - y[1], yp[1] - ((1.0 - y[0] * y[0]) * y[1] - y[0]) / p[0]])


@model(
    title="Van der Pol's equation",
    source="B. van der Pol, On relaxation oscillations, Phil. Mag. 2 (1926), pp. 978-992; "
    + HAIRER_WANNER
    + "; "
    + TEST_SET,
    description="A circuit with a triode, in the scaling of singular perturbations: the voltage creeps along the curve "
    "y2 = y1 / (1 - y1^2), and jumps to its other branch where it ends, in a time of the order of epsilon. With "
    "mu = 1 / sqrt(epsilon) it is the oscillator of mu = 1000.",
    equations=r"""\begin{aligned} y_1' &= y_2 \\ \varepsilon\,y_2' &= (1 - y_1^2)\,y_2 - y_1 \end{aligned}""",
)
def van_der_pol(epsilon: float = 1e-6, t1: float = 2.0) -> Model:
    """Van der Pol's relaxation oscillation, beyond its first jump to t = 2.

    Parameters
    ----------
    epsilon : float
        The small parameter, 1 / mu^2.
    t1 : float
        End time.
    """
    check_positive(epsilon=epsilon, t1=t1)
    problem = daedal.ImplicitDAE(van_der_pol_residual, 2, params=np.array([epsilon]), names=["y1", "y2"])
    return Model(
        problem=problem,
        t_span=(0.0, float(t1)),
        initial=explicit_start(problem, np.array([2.0, 0.0])),
        index=0,
        reference=known_reference("van_der_pol", epsilon=float(epsilon), t1=float(t1)),
        options={"rtol": 1e-6, "atol": 1e-6},
        plot={"variables": ["y1"]},
    )
