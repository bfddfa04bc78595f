"""Small problems with closed-form solutions, each of which demonstrates one effect; the pendulum in four forms."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import daedal
from daedal.library.registry import Indices, Model, check_choice, closed_model, known_reference, model


def _model(
    problem,
    solution: Callable[[float], tuple[np.ndarray, np.ndarray]],
    t1: float,
    *,
    index: int,
    degrees_of_freedom: int,
    **others,
) -> Model:
    """A model with the closed-form solution ``solution(t) = (y, y')`` and `degrees_of_freedom` free initial values."""

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        return solution(t)[derivative]

    return closed_model(problem, exact, t1, index=index, indices=Indices.usual(index, degrees_of_freedom), **others)


def linear_index1_residual(t, y, yp):
    return np.array([yp[0] - t * yp[1] + y[0] - (1.0 + t) * y[1], y[1] - math.sin(t)])


@model
def linear_index1() -> Model:
    """A linear DAE of index 1 that is not semi-explicit: the algebraic variable occurs differentiated.

    ``model.extra["exact"](t, derivative)`` is the closed-form solution, for derivative 0 and 1, as for all problems of
    this module.
    """

    def solution(t: float):
        s, c, e = math.sin(t), math.cos(t), math.exp(-t)
        return np.array([e + t * s, s]), np.array([-e + s + t * c, c])

    return _model(
        daedal.ImplicitDAE(linear_index1_residual, 2, names=["x", "y"]), solution, 1.0, degrees_of_freedom=1, index=1
    )


def hessenberg_index2_residual(t, x, xp, p):
    nu, e = p[0], math.exp(t)
    r = np.empty(3)
    r[0] = xp[0] - ((nu - 1.0 / (2.0 - t)) * x[0] + (2.0 - t) * nu * x[2] + (3.0 - t) / (2.0 - t) * e)
    r[1] = xp[1] - ((1.0 - nu) / (t - 2.0) * x[0] - x[1] + (nu - 1.0) * x[2] + 2.0 * e)
    r[2] = (t + 2.0) * x[0] + (t * t - 4.0) * x[1] - (t * t + t - 2.0) * e
    return r


def hessenberg_index2_f(t, y, z, p):
    nu, e = p[0], math.exp(t)
    f = np.empty(2)
    f[0] = (nu - 1.0 / (2.0 - t)) * y[0] + (2.0 - t) * nu * z[0] + (3.0 - t) / (2.0 - t) * e
    f[1] = (1.0 - nu) / (t - 2.0) * y[0] - y[1] + (nu - 1.0) * z[0] + 2.0 * e
    return f


def hessenberg_index2_g(t, y, z, p):
    return np.array([(t + 2.0) * y[0] + (t * t - 4.0) * y[1] - (t * t + t - 2.0) * math.exp(t)])


@model
def hessenberg_index2(nu: float = 1.0, form: str = "implicit") -> Model:
    """Ascher and Petzold's linear Hessenberg system of index 2 with variable coefficients."""
    params, names = np.array([float(nu)]), ["y1", "y2", "z"]

    def solution(t: float):
        e = math.exp(t)
        return np.array([e, e, -e / (2.0 - t)]), np.array([e, e, -e * (3.0 - t) / (2.0 - t) ** 2])

    problem: daedal.ImplicitDAE | daedal.SemiExplicitDAE
    if form == "implicit":
        problem = daedal.ImplicitDAE(hessenberg_index2_residual, 3, params=params, algebraic=[2], names=names)
        initial = None
    else:
        problem = daedal.SemiExplicitDAE(hessenberg_index2_f, hessenberg_index2_g, 2, 1, params=params, names=names)
        initial = (np.array([1.0, 1.0]), np.array([-0.5]))
    return _model(
        problem,
        solution,
        1.0,
        initial=initial,
        degrees_of_freedom=1,
        index=2,
        options={"rtol": 1e-6, "atol": 1e-8}
        | ({"method": "dassl", "error_test": "differential"} if form == "implicit" else {}),
    )


def coupled_derivatives_residual(t, y, yp):
    return np.array([yp[0] + yp[1] + y[0] - math.cos(t), y[1] - math.sin(t)])


@model
def coupled_derivatives() -> Model:
    """A DAE whose consistent initial values require a differentiated equation: the derivative of Y2 = g2."""

    def solution(t: float):
        e = math.exp(-t)
        return np.array([e, math.sin(t)]), np.array([-e, math.cos(t)])

    return _model(
        daedal.ImplicitDAE(coupled_derivatives_residual, 2, names=["Y1", "Y2"]),
        solution,
        2.0,
        degrees_of_freedom=1,
        index=1,
    )


def index3_chain_residual(t, y, yp):
    return np.array([yp[0] - y[1], yp[1] - y[2], y[0] - math.sin(t)])


@model
def index3_chain() -> Model:
    """The smallest DAE of index 3: differentiate sin t twice."""

    def solution(t: float):
        s, c = math.sin(t), math.cos(t)
        return np.array([s, c, -s]), np.array([c, -s, -c])

    return _model(
        daedal.ImplicitDAE(index3_chain_residual, 3, algebraic=[2], names=["x1", "x2", "x3"]),
        solution,
        1.0,
        degrees_of_freedom=0,
        index=3,
        options={"method": "dassl", "fixed_step": 0.01, "max_order": 2, "starting_values": lambda t: solution(t)[0]},
    )


def prothero_robinson_residual(t, y, yp, p):
    return np.array([yp[0] + p[0] * (y[0] - math.cos(t)) + math.sin(t)])


@model
def prothero_robinson(stiffness: float = 1e6) -> Model:
    """Prothero and Robinson's test of stiff solvers: the solution is cos t for any stiffness."""

    def solution(t: float):
        return np.array([math.cos(t)]), np.array([-math.sin(t)])

    return _model(
        daedal.ImplicitDAE(prothero_robinson_residual, 1, params=np.array([float(stiffness)]), names=["y"]),
        solution,
        10.0,
        degrees_of_freedom=1,
        index=0,
    )


def damped_oscillator_residual(t, y, yp, p):
    return np.array([yp[0] + p[0] * y[0] - p[1] * y[1], yp[1] + p[1] * y[0] + p[0] * y[1]])


@model
def damped_oscillator(damping: float = 10.0, frequency: float = 200.0) -> Model:
    """An oscillator with eigenvalues ``-damping ± i frequency``, close to the imaginary axis."""

    def solution(t: float):
        s, c, e = math.sin(frequency * t), math.cos(frequency * t), math.exp(-damping * t)
        y = e * np.array([c, -s])
        return y, -damping * y + frequency * e * np.array([-s, -c])

    return _model(
        daedal.ImplicitDAE(damped_oscillator_residual, 2, params=np.array([damping, frequency]), names=["y1", "y2"]),
        solution,
        1.0,
        degrees_of_freedom=2,
        index=0,
        options={"rtol": 1e-6, "atol": 1e-10},
    )


def jay_f(t, y, z):
    return np.array([y[0] * y[1] ** 2 * z[0] ** 2, y[0] ** 2 * y[1] ** 2 - 3.0 * y[1] ** 2 * z[0]])


def jay_g(t, y, z):
    return np.array([y[0] ** 2 * y[1] - 1.0])


@model
def jay_index2(t1: float = 1.0) -> Model:
    """Jay's problem of index 2 that is nonlinear in z, with the solution (e^t, e^(-2t)), e^(2t).

    Notes
    -----
    The hidden constraint is quadratic in z: :math:`0 = 2 y_1^2 y_2^3 z^2 - 3 y_1^2 y_2^2 z + y_1^4 y_2^2`; on the
    solution it is :math:`2 e^{-4t} z^2 - 3 e^{-2t} z + 1 = 0`, with the roots :math:`z = e^{2t}` and
    :math:`z = e^{2t}/2`. A method whose steps are too long may end on the second root, which also satisfies the
    constraint; half-explicit methods of order 4 do so with 20 steps on [0, 1].

    Half-explicit methods have their full order here, so ``model.options`` select one. BDF formulas have their full
    order with constant steps; with variable steps DASSL remains at orders 1 and 2, since changes of the step size
    perturb z, which in turn perturbs the differential variables.

    ``model.extra`` has ``exact(t, derivative)``, for derivative 0 and 1.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.jay_index2()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> bool(model.reference.error(sol.y[:, -1]).max() < 1e-6)
    True
    """

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        rates = np.array([1.0, -2.0, 2.0])
        return rates**derivative * np.exp(rates * t)

    return closed_model(
        daedal.SemiExplicitDAE(jay_f, jay_g, 2, 1, names=["y1", "y2", "z"]),
        exact,
        t1,
        initial=(np.array([1.0, 1.0]), np.array([1.0])),
    )


# --- the planar pendulum in the four forms of Brenan, Campbell and Petzold, section 6.2 -------------------------------

# The second coordinate points downwards, along gravity. (The book prints the opposite sign; its tables use this one.)


def index3_residual(t, y, yp, p):
    r = np.empty(5)
    r[0] = yp[0] - y[2]
    r[1] = yp[1] - y[3]
    r[2] = yp[2] + y[0] * y[4]
    r[3] = yp[3] + y[1] * y[4] - p[0]
    r[4] = y[0] * y[0] + y[1] * y[1] - p[1] * p[1]
    return r


def index2_residual(t, y, yp, p):
    r = np.empty(5)
    r[0] = yp[0] - y[2]
    r[1] = yp[1] - y[3]
    r[2] = yp[2] + y[0] * y[4]
    r[3] = yp[3] + y[1] * y[4] - p[0]
    r[4] = y[0] * y[2] + y[1] * y[3]
    return r


def index1_residual(t, y, yp, p):
    r = np.empty(5)
    r[0] = yp[0] - y[2]
    r[1] = yp[1] - y[3]
    r[2] = yp[2] + y[0] * y[4]
    r[3] = yp[3] + y[1] * y[4] - p[0]
    r[4] = y[2] * y[2] + y[3] * y[3] - y[4] * p[1] * p[1] + p[0] * y[1]
    return r


def ggl_residual(t, y, yp, p):
    r = np.empty(6)
    r[0] = yp[0] - y[2] - y[0] * y[5]
    r[1] = yp[1] - y[3] - y[1] * y[5]
    r[2] = yp[2] + y[0] * y[4]
    r[3] = yp[3] + y[1] * y[4] - p[0]
    r[4] = y[0] * y[2] + y[1] * y[3]
    r[5] = y[0] * y[0] + y[1] * y[1] - p[1] * p[1]
    return r


_CONSTRAINTS = {
    "index3": r"0 &= z_1^2 + z_2^2 - L^2",
    "index2": r"0 &= z_1 z_3 + z_2 z_4",
    "index1": r"0 &= z_3^2 + z_4^2 - \lambda L^2 + g z_2",
    "ggl": r"0 &= z_1 z_3 + z_2 z_4,\qquad 0 = z_1^2 + z_2^2 - L^2",
}
# form: residual, index, remark
_FORMS = {
    "index3": (index3_residual, 3, "The original position constraint."),
    "index2": (index2_residual, 2, "The velocity constraint; positions may drift."),
    "index1": (index1_residual, 1, "The acceleration constraint; positions and velocities may drift."),
    "ggl": (
        ggl_residual,
        2,
        "Gear, Gupta and Leimkuhler's stabilised form: the constraints on position and velocity are both imposed, "
        "with a second multiplier, which vanishes for the exact solution.",
    ),
}


def _options(index: int, exact) -> dict:
    if index == 3:
        return {"method": "dassl", "fixed_step": 0.005, "max_order": 3, "starting_values": exact}
    return {"rtol": 1e-7, "atol": 1e-7} | ({"method": "dassl", "error_test": "differential"} if index == 2 else {})


def _angle(t: float, gravity: float, length: float) -> tuple[float, float]:
    """Angle and angular velocity from a'' = (g/L) cos a, measured downwards from the horizontal."""
    from scipy.integrate import solve_ivp

    start = [0.0, 1.0 / length]
    if t == 0.0:
        return start[0], start[1]
    run = solve_ivp(
        lambda t, u: [u[1], gravity / length * np.cos(u[0])], (0.0, t), start, method="DOP853", rtol=1e-13, atol=1e-14
    )
    return run.y[0, -1], run.y[1, -1]


@model
def pendulum(form: str = "ggl", gravity: float = 1.0, length: float = 1.0) -> Model:
    """A point mass on a rod, started in the horizontal position with downward speed 1.

    Notes
    -----
    ``model.extra["constraints"](y)`` returns the residuals of the position, velocity and acceleration constraints for
    one state or many (shape ``(n, nt)``), to measure drift. ``model.extra["exact"](t, derivative)`` is the solution
    from the angle equation, to about twelve digits, or its first derivative (derivative 1).
    """
    check_choice("form", form, _FORMS)
    residual, index, remark = _FORMS[form]
    stabilised = form == "ggl"
    names = ["z1", "z2", "z3", "z4", "lambda"] + ["mu"] * stabilised
    problem = daedal.ImplicitDAE(
        residual,
        len(names),
        params=np.array([gravity, length], dtype=float),
        algebraic=[4, 5] if stabilised else [4],
        names=names,
    )
    reference = known_reference("pendulum", gravity=gravity, length=length)

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        a, w = _angle(t, gravity, length)
        z1, z2 = length * np.cos(a), length * np.sin(a)
        z3, z4 = -w * z2, w * z1
        lam = w**2 + gravity * z2 / length**2
        y = [z1, z2, z3, z4, lam]
        yp = [z3, z4, -lam * z1, -lam * z2 + gravity, 3.0 * gravity * z4 / length**2]
        return np.array((yp if derivative else y) + [0.0] * stabilised)

    def constraints(y):
        z1, z2, z3, z4, lam = np.asarray(y)[:5]
        return np.array([z1**2 + z2**2 - length**2, z1 * z3 + z2 * z4, z3**2 + z4**2 - lam * length**2 + gravity * z2])

    mu = r" + \mu z_{}" if stabilised else ""
    return Model(
        problem=problem,
        initial=(exact(0.0), exact(0.0, 1)),
        index=index,
        indices=Indices.usual(index, 2 if stabilised else 5 - index),
        description=f"A point mass on a rod in Cartesian coordinates, with the rod force as multiplier. {remark}",
        equations=(
            r"\begin{aligned} z_1' &= z_3" + mu.format(1) + r",\qquad z_2' = z_4" + mu.format(2) + r" \\ "
            r"z_3' &= -\lambda z_1,\qquad z_4' = -\lambda z_2 + g \\ " + _CONSTRAINTS[form] + r" \end{aligned}"
        ),
        reference=reference and replace(reference, y=reference.y[: len(names)]),
        options=_options(index, exact),
        extra={"constraints": constraints, "exact": exact},
    )
