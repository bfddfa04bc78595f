"""Diffusion with reaction: how antibodies penetrate a tissue."""

import numpy as np

import daedal
from daedal.library.model import Model, compile_if_large, explicit_start, known_reference, model
from daedal.library.sources import TEST_SET

REACTION, DEPTH = 100.0, 4.0  # k and c


def tissue_residual(t, y, yp):
    """y: antibodies u and substrate v of the points, in turn.

    Central differences in zeta = x / (x + c), where d/dx = (zeta - 1)^2 / c d/dzeta; u = phi(t) at zeta = 0. At
    zeta = 1, which is infinitely deep, nothing moves.
    """
    points = y.size // 2
    phi = 2.0 if t <= 5.0 else 0.0
    h = 1.0 / points
    r = np.empty(2 * points)
    for j in range(points):
        zeta = (j + 1) * h
        u, v = y[2 * j], y[2 * j + 1]
        left = y[2 * j - 2] if j > 0 else phi
        right = y[2 * j + 2] if j < points - 1 else u
        slope = (zeta - 1.0) * (zeta - 1.0) / DEPTH
        transport = slope * slope * (left - 2.0 * u + right) / (h * h)
        transport = transport + 2.0 * (zeta - 1.0) * slope / DEPTH * (right - left) / (2.0 * h)
        r[2 * j] = yp[2 * j] - transport + REACTION * u * v
        r[2 * j + 1] = yp[2 * j + 1] + REACTION * u * v
    return r


@model(
    title="Medical Akzo Nobel problem",
    source="R. van der Hout, Medical Akzo Nobel problem, Akzo Nobel Central Research (1994); " + TEST_SET,
    description="Antibodies that bear a radioactive label enter a tissue, and bind to the substrate there: a reaction "
    "front advances into the depth. The infinite depth is mapped to [0, 1] and cut into 200 pieces, two unknowns each. "
    "At t = 5 the supply ends: the boundary value jumps from 2 to 0.",
    equations=r"""\begin{aligned} u_t &= \frac{(\zeta - 1)^4}{c^2}\,u_{\zeta\zeta} + \frac{2 (\zeta - 1)^3}{c^2}\,
    u_\zeta - k u v, & u(0, t) &= \begin{cases} 2 & t \le 5 \\ 0 & t > 5 \end{cases},\quad u(\zeta, 0) = 0 \\
    v_t &= -k u v, & v(\zeta, 0) &= 1 \end{aligned}""",
)
def medical_akzo_nobel(points: int = 200, compiled: bool | None = None) -> Model:
    """Antibodies and substrate in a tissue, by the method of lines.

    Parameters
    ----------
    points : int
        Number of points; the problem has twice as many unknowns and is banded.
    compiled : bool, optional
        Whether the residual is compiled; by default from 200 unknowns on.
    """
    if points < 3:
        raise daedal.InvalidProblemError(f"points={points} must be at least 3")
    problem = daedal.ImplicitDAE(
        tissue_residual,
        2 * points,
        bandwidth=(2, 2),
        names=[f"{name}{j}" for j in range(1, points + 1) for name in "uv"],
    )
    shown = [max(points * part // 20, 1) for part in (1, 4, 8)]
    return Model(
        problem=compile_if_large(problem, compiled),
        t_span=(0.0, 20.0),
        initial=explicit_start(problem, np.tile([0.0, 1.0], points)),
        index=0,
        reference=known_reference("medical_akzo_nobel", points=points),
        options={"rtol": 1e-6, "atol": 1e-8},
        plot={"variables": [f"{name}{j}" for name in "uv" for j in shown]},
    )
