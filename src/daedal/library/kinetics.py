"""Chemical kinetics: Robertson's reaction, the growth of a plant, an oscillating reaction, a stirred reactor."""

import numpy as np

import daedal
from daedal.library.model import Model, check_choice, check_positive, explicit_start, known_reference, model
from daedal.library.sources import HAIRER_WANNER, TEST_SET

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


# --- the growth of a plant under light ------------------------------------------------------------------------------


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


@model(
    title="High irradiance responses (HIRES)",
    source="E. Schaefer, A new approach to explain the high irradiance responses of photomorphogenesis on the basis of "
    "phytochrome, J. Math. Biology 2 (1975), pp. 41-56; " + TEST_SET,
    description="How light governs the growth of a plant through phytochrome: eight reactants, of which the sixth "
    "binds to the eighth, an enzyme. Small and mildly stiff; the end lies in a fast decline behind a long plateau.",
    equations=r"""\begin{aligned} y_1' &= -1.71 y_1 + 0.43 y_2 + 8.32 y_3 + 0.0007 \\
    y_2' &= 1.71 y_1 - 8.75 y_2 \\ y_3' &= -10.03 y_3 + 0.43 y_4 + 0.035 y_5 \\
    y_4' &= 8.32 y_2 + 1.71 y_3 - 1.12 y_4 \\ y_5' &= -1.745 y_5 + 0.43 y_6 + 0.43 y_7 \\
    y_6' &= -280 y_6 y_8 + 0.69 y_4 + 1.71 y_5 - 0.43 y_6 + 0.69 y_7 \\
    y_7' &= 280 y_6 y_8 - 1.81 y_7 \\ y_8' &= -y_7' \end{aligned}""",
)
def hires() -> Model:
    """Eight reactants of photomorphogenesis, from seedling to the end of the response at t = 321.8122."""
    problem = daedal.ImplicitDAE(hires_residual, 8, names=[f"y{k}" for k in range(1, 9)])
    return Model(
        problem=problem,
        t_span=(0.0, 321.8122),
        initial=explicit_start(problem, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057])),
        index=0,
        reference=known_reference("hires"),
        options={"rtol": 1e-6, "atol": 1e-10},
        plot={"variables": ["y4", "y6", "y8"], "factors": {"y6": 0.1, "y8": 10.0}},
    )


# --- an oscillating reaction ----------------------------------------------------------------------------------------


def oregonator_residual(t, y, yp):
    r = np.empty(3)
    r[0] = yp[0] - 77.27 * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1]))
    r[1] = yp[1] - (y[2] - (1.0 + y[0]) * y[1]) / 77.27
    r[2] = yp[2] - 0.161 * (y[0] - y[2])
    return r


@model(
    title="Oregonator (OREGO)",
    source="R. J. Field, R. M. Noyes, Oscillations in chemical systems. IV. Limit cycle behavior in a model of a real "
    "chemical reaction, J. Chem. Phys. 60 (1974), pp. 1877-1884; " + HAIRER_WANNER,
    description="The Belousov-Zhabotinskii reaction: bromous acid, bromide and cerium follow a limit cycle over six "
    "orders of magnitude, with a burst after each rest. Every burst asks for steps a million times smaller.",
    equations=r"""\begin{aligned} y_1' &= 77.27\,\bigl(y_2 + y_1 (1 - 8.375\cdot 10^{-6} y_1 - y_2)\bigr) \\
    y_2' &= \frac{1}{77.27}\,\bigl(y_3 - (1 + y_1)\,y_2\bigr) \\ y_3' &= 0.161\,(y_1 - y_3) \end{aligned}""",
)
def oregonator() -> Model:
    """Three species on a limit cycle, over the first period and into the rest of the second, to t = 360."""
    problem = daedal.ImplicitDAE(oregonator_residual, 3, names=["y1", "y2", "y3"])
    return Model(
        problem=problem,
        t_span=(0.0, 360.0),
        initial=explicit_start(problem, np.array([1.0, 2.0, 3.0])),
        index=0,
        reference=known_reference("oregonator"),
        options={"rtol": 1e-6, "atol": 1e-6},
        plot={"variables": ["y1", "y2", "y3"], "yscale": "log"},
    )


# --- a stirred reactor ----------------------------------------------------------------------------------------------

# k1 to k4, K, klA, Ks, the pressure of carbon dioxide and Henry's constant
REACTOR = (18.7, 0.58, 0.09, 0.42, 34.4, 3.3, 115.83, 0.9, 737.0)


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


@model(
    title="Chemical Akzo Nobel problem",
    source="W. J. H. Stortelder, Parameter Estimation in Nonlinear Dynamical Systems, thesis, University of Amsterdam "
    "(1998), a problem of Akzo Nobel Central Research; " + TEST_SET,
    description="Two species, FLB and ZHU, are mixed in a reactor while carbon dioxide is added. Five concentrations "
    "follow reactions with carbon dioxide dissolved from above the liquid; the sixth, a compound of the "
    "two, is at equilibrium at all times.",
    equations=r"""\begin{aligned} y_1' &= -2 r_1 + r_2 - r_3 - r_4, & r_1 &= k_1 y_1^4 \sqrt{y_2} \\
    y_2' &= -\tfrac12 r_1 - r_4 - \tfrac12 r_5 + F, & r_2 &= k_2 y_3 y_4 \\
    y_3' &= r_1 - r_2 + r_3, & r_3 &= \tfrac{k_2}{K} y_1 y_5 \\
    y_4' &= -r_2 + r_3 - 2 r_4, & r_4 &= k_3 y_1 y_4^2 \\
    y_5' &= r_2 - r_3 + r_5, & r_5 &= k_4 y_6^2 \sqrt{y_2} \\
    0 &= K_s y_1 y_4 - y_6, & F &= k_l A\,(p/H - y_2) \end{aligned}""",
)
def chemical_akzo_nobel() -> Model:
    """Six concentrations in a stirred reactor, one of them at equilibrium."""
    params = np.array(REACTOR)
    y0 = np.array([0.444, 0.00123, 0.0, 0.007, 0.0, REACTOR[6] * 0.444 * 0.007])
    yp0 = -reactor_residual(0.0, y0, np.zeros(6), params)
    yp0[5] = REACTOR[6] * (yp0[0] * y0[3] + y0[0] * yp0[3])
    return Model(
        problem=daedal.ImplicitDAE(
            reactor_residual, 6, params=params, algebraic=[5], names=[f"y{k}" for k in range(1, 7)]
        ),
        t_span=(0.0, 180.0),
        initial=(y0, yp0),
        index=1,
        reference=known_reference("chemical_akzo_nobel"),
        options={"rtol": 1e-6, "atol": 1e-9},
        plot={"variables": ["y1", "y3", "y6"]},
    )
