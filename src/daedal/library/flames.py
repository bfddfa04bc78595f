"""A flame that ignites and travels: one reaction-diffusion equation on a fixed mesh."""

from __future__ import annotations

import numpy as np

import daedal
from daedal.library.model import Model, Reference, check_positive, compile_if_large

HEAT_RELEASE, REACTION_RATE = 1.0, 5.0

# When the temperature 1.5 passes the points x = 0, 0.5 and 0.9, by delta: Radau on a mesh of 4001 points.
FRONT_TIMES = {
    20.0: {0.0: 0.25908, 0.5: 0.26897, 0.9: 0.28517},
    30.0: {0.0: 0.24020, 0.5: 0.24261, 0.9: 0.24526},
}
# Temperatures in the front at t = 0.29 for delta = 20 on the mesh of 401 points, by point: Radau at rtol 1e-11.
FRONT_AT_0_29 = {
    360: 1.98429148774,
    372: 1.88945087808,
    376: 1.80909552932,
    380: 1.69818688309,
    384: 1.56553252039,
    388: 1.42354858524,
    392: 1.28060401815,
    396: 1.13954674075,
}


def residual(t, y, yp, p):
    """Second differences and reaction; zero slope at the left end, temperature 1 at the right end (algebraic)."""
    n = y.size
    per_width, activation, rate, end = p[0], p[1], p[2], p[3]
    r = np.empty(n)
    for k in range(n - 1):
        left = y[k - 1] if k > 0 else y[1]
        reaction = rate * (end - y[k]) * np.exp(activation * (1.0 - 1.0 / y[k]))
        r[k] = yp[k] - per_width * (left - 2.0 * y[k] + y[k + 1]) - reaction
    r[n - 1] = y[n - 1] - 1.0
    return r


def flame(delta: float = 20.0, points: int = 401, compiled: bool | None = None) -> Model:
    """Ignition and propagation of a flame (Petzold's moving-mesh test problem, here on a fixed mesh).

    Parameters
    ----------
    delta : float
        Activation energy; the larger it is, the steeper the front. The book prints 30, but its time interval fits 20.
    points : int
        Points of the mesh, both ends included.
    compiled : bool, optional
        Whether the residual is compiled; by default from 200 points on.

    Notes
    -----
    ``model.extra["x"]`` is the mesh and ``model.extra["front_times"]`` says when the temperature 1.5 passes some points
    (for delta 20 and 30, on a fine mesh).
    """
    check_positive(delta=delta)
    if points < 3:
        raise daedal.InvalidProblemError(f"points={points} must be at least 3")
    # D e^(-delta/T) with D = R e^delta/(alpha delta) becomes rate * e^(delta (1 - 1/T)).
    rate = REACTION_RATE / (HEAT_RELEASE * delta)
    params = np.array([(points - 1.0) ** 2, delta, rate, 1.0 + HEAT_RELEASE])
    y0 = np.ones(points)
    yp0 = np.full(points, rate * HEAT_RELEASE)
    yp0[-1] = 0.0
    reference = None
    if delta == 20.0 and points == 401:
        values = np.full(points, np.nan)
        values[list(FRONT_AT_0_29)] = list(FRONT_AT_0_29.values())
        reference = Reference(0.29, values, "the same mesh with Radau at rtol 1e-11", 1e-10)
    problem = daedal.ImplicitDAE(
        residual,
        points,
        params=params,
        algebraic=[points - 1],
        bandwidth=(1, 1),
        names=[f"T{k}" for k in range(points)],
    )
    shown = [f"T{round(x * (points - 1))}" for x in (0.0, 0.5, 0.9)]
    return Model(
        name="flame",
        title="Flame propagation",
        problem=compile_if_large(problem, compiled),
        t_span=(0.0, 0.29),
        initial=(y0, yp0),
        index=1,
        source="S. Adjerid, J. E. Flaherty, A moving finite element method with error estimation and refinement for "
        "one-dimensional time dependent partial differential equations, SIAM J. Numer. Anal. 23 (1986), pp. 778-796; "
        "K. E. Brenan, S. L. Campbell, L. R. Petzold, Numerical Solution of Initial-Value Problems in "
        "Differential-Algebraic Equations, SIAM Classics 14 (1996), section 6.5",
        description="A reacting mixture heats up slowly, ignites at the left end and sends a steep front to the right. "
        "The temperature at the right end is an algebraic equation.",
        equations=(
            r"T_t = T_{xx} + \frac{R}{\alpha\delta}\,(1 + \alpha - T)\,e^{\delta(1 - 1/T)},\qquad "
            r"T_x(0, t) = 0,\qquad T(1, t) = 1,\qquad T(x, 0) = 1"
        ),
        reference=reference,
        options={"rtol": 1e-6, "atol": 1e-7},
        plot={"variables": shown},
        extra={"x": np.linspace(0.0, 1.0, points), "front_times": FRONT_TIMES.get(float(delta), {})},
    )
