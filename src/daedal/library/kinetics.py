"""Chemical kinetics: Robertson's reaction."""

import numpy as np

import daedal
from daedal.library.model import Model, check_choice, check_positive, known_reference, model

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


@model(
    title="Robertson's reaction",
    source="H. H. Robertson, The solution of a set of reaction rate equations, in: J. Walsh (ed.), Numerical Analysis: "
    "An Introduction, Academic Press (1966), pp. 178-182",
    description="Three species and rate constants that differ by nine orders of magnitude. The standard test of stiff "
    "solvers: after a fast transient the step size has to grow by fifteen orders of magnitude.",
    equations=r"""\begin{aligned} y_1' &= -0.04\,y_1 + 10^4 y_2 y_3 \\
    y_2' &= 0.04\,y_1 - 10^4 y_2 y_3 - 3\cdot 10^7 y_2^2 \\ 0 &= y_1 + y_2 + y_3 - 1 \end{aligned}""",
)
def robertson(t1: float = 1e11, form: str = "implicit") -> Model:
    """Robertson's autocatalytic reaction with the mass balance as algebraic equation.

    Parameters
    ----------
    t1 : float
        End time. The classical ends are 40, 4e10 and 1e11.
    form : {"implicit", "semi-explicit"}
        Kind of the problem.

    Notes
    -----
    The second species never exceeds 4e-5 and ends near 1e-13, the first near 1e-8: the absolute tolerances in
    ``model.options`` lie below the final values, so that the relative tolerance decides for all three.
    """
    check_choice("form", form, ("implicit", "semi-explicit"))
    check_positive(t1=t1)
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
        t_span=(0.0, float(t1)),
        initial=initial,
        index=1,
        reference=known_reference("robertson", t1=float(f"{t1:.12g}")),
        options={"rtol": 1e-6, "atol": np.array([1e-14, 1e-19, 1e-9])},
        plot={"variables": ["y1", "y2", "y3"], "xscale": "log", "factors": {"y2": 1e4}},
    )
