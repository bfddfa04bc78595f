"""The heat equation on the unit square with its boundary values as algebraic equations."""

from __future__ import annotations

import numpy as np

import daedal
from daedal.library.grids import five_point_pattern
from daedal.library.model import Model, Reference, check_choice, compile_if_large


def residual(t, y, yp, p):
    """Central differences inside, ``u = 0`` on the edges; the points stand row by row."""
    m = int(p[0])
    c = p[1]
    r = y.copy()
    for j in range(1, m - 1):
        for i in range(1, m - 1):
            k = j * m + i
            r[k] = yp[k] - c * (y[k - 1] + y[k + 1] + y[k - m] + y[k + m] - 4.0 * y[k])
    return r


def heat2d(m: int = 10, structure: str = "banded", compiled: bool | None = None) -> Model:
    """Cooling of a square plate whose edges are kept at zero.

    Parameters
    ----------
    m : int
        Points in each direction, the edges included; the problem has ``m**2`` unknowns.
    structure : {"banded", "sparse"}
        How the structure of the iteration matrix is stated. The half-bandwidth is ``m``.
    compiled : bool, optional
        Whether the residual is compiled; by default from 200 unknowns on.

    Notes
    -----
    ``model.extra["exact"](t, derivative)`` solves the discretised equations: sine modes, each with its own decay.
    """
    check_choice("structure", structure, ("banded", "sparse"))
    if m < 3:
        raise daedal.InvalidProblemError(f"m={m} must be at least 3")
    n = m * m
    coefficient = float((m - 1) ** 2)
    x = np.linspace(0.0, 1.0, m)
    parabola = x * (1.0 - x)
    inside = np.outer(np.arange(m) % (m - 1) > 0, np.arange(m) % (m - 1) > 0)

    # sin(k pi x) are the eigenvectors of the second difference.
    k = np.arange(1, m - 1)
    modes = np.sin(np.pi * np.outer(x, k))
    modes[-1] = 0.0
    decay = -4.0 * coefficient * np.sin(0.5 * np.pi * k / (m - 1)) ** 2
    amplitudes = 2.0 / (m - 1) * (modes.T @ parabola)
    amplitudes = 16.0 * np.outer(amplitudes, amplitudes)
    decay = decay[:, None] + decay[None, :]

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        return (modes @ (amplitudes * decay**derivative * np.exp(decay * t)) @ modes.T).ravel()

    problem = daedal.ImplicitDAE(
        residual,
        n,
        params=np.array([m, coefficient]),
        algebraic=~inside.ravel(),
        sparsity=five_point_pattern(m, m) if structure == "sparse" else None,
        bandwidth=(m, m) if structure == "banded" else None,
        names=[f"u({i},{j})" for j in range(m) for i in range(m)],
    )
    t1 = 0.16
    middle = f"u({m // 2},{m // 2})"
    return Model(
        name="heat2d",
        title="Heat equation on a square",
        problem=compile_if_large(problem, compiled),
        t_span=(0.0, t1),
        initial=(exact(0.0), exact(0.0, 1)),
        index=1,
        source="the example program idaHeat2D of SUNDIALS; also DASPK's example heat",
        description="A hot plate cools through its edges. The values inside follow ordinary differential equations, "
        "those on the edges are set by algebraic ones. Linear and banded.",
        equations=(
            r"\partial_t u = \Delta u \text{ inside},\qquad 0 = u \text{ on the edges},\qquad "
            r"u(x, y, 0) = 16\,x(1-x)\,y(1-y)"
        ),
        reference=Reference(t1, exact(t1), "closed solution of the discretised equations", 1e-12),
        options={"rtol": 1e-5, "atol": 1e-7},
        plot={"variables": [middle, "u(1,1)"]},
        extra={"exact": exact},
    )
