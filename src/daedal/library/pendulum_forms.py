"""The planar pendulum in Cartesian coordinates in the four forms of Brenan, Campbell and Petzold, section 6.2.

The second coordinate points downwards, along gravity. (The book prints the opposite sign, but its tables use this one.)
"""

from dataclasses import replace

import numpy as np

import daedal
from daedal.library.registry import Indices, Model, check_choice, known_reference, model


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
