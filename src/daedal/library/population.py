"""Large problems from biology: a predator-prey reaction with diffusion on the unit square."""

from __future__ import annotations

import numpy as np

import daedal
from daedal.library.grids import five_point_pattern
from daedal.library.model import Model, Reference, check_choice, compile_if_large

# Self-limitation, predation seen by the predator and by the prey, birth rate, the two diffusion coefficients, and the
# spatial variation of the birth rate
AA, EE, GG, BB, DPREY, DPRED, ALPHA, BETA = 1.0, 1e4, 0.5e-6, 1.0, 1.0, 0.05, 50.0, 1000.0

# Prey and predator in the corners (0, 0) and (1, 1) of the 20 x 20 mesh: predators eliminated by Newton's method, then
# Radau at rtol 1e-9; at t = 1 the steady state by Newton's method. Agrees with the digits printed by IDA's example.
CORNERS_20 = {
    0.001: (10.31827649, 103186.9728, 10.82678183, 108221.8727),
    0.01: (161.8876104, 1618891.084, 197.3492976, 1973456.331),
    1.0: (240.19040327647, 2401915.0523378, 270.72088499801, 2707168.9039957),
}


def residual(t, y, yp, p):
    """Prey and predator of a point stand side by side, the points row by row (x runs fastest).

    Parameters: mx, my, a, e, g, then diffusion over squared mesh width for (prey, x), (prey, y), (predator, x),
    (predator, y), then the birth rate at every point. At the edges the outer neighbour mirrors the inner one.
    """
    mx, my = int(p[0]), int(p[1])
    a, e, g = p[2], p[3], p[4]
    r = np.empty(2 * mx * my)
    for j in range(my):
        below = -2 * mx if j > 0 else 2 * mx
        above = 2 * mx if j < my - 1 else -2 * mx
        for i in range(mx):
            left = -2 if i > 0 else 2
            right = 2 if i < mx - 1 else -2
            k = 2 * (j * mx + i)
            birth = p[9 + j * mx + i]
            prey, predator = y[k], y[k + 1]
            r[k] = (
                yp[k]
                - p[5] * (y[k + left] - 2.0 * prey + y[k + right])
                - p[6] * (y[k + below] - 2.0 * prey + y[k + above])
                - prey * (birth - a * prey - g * predator)
            )
            k += 1
            r[k] = (
                -p[7] * (y[k + left] - 2.0 * predator + y[k + right])
                - p[8] * (y[k + below] - 2.0 * predator + y[k + above])
                - predator * (-birth + e * prey - a * predator)
            )
    return r


def reaction_residual(t, y, yp, p):
    """The residual without diffusion: only prey and predator of one point are coupled."""
    a, e, g = p[2], p[3], p[4]
    r = np.empty(y.size)
    for point in range(y.size // 2):
        k = 2 * point
        birth = p[9 + point]
        r[k] = yp[k] - y[k] * (birth - a * y[k] - g * y[k + 1])
        r[k + 1] = -y[k + 1] * (-birth + e * y[k] - a * y[k + 1])
    return r


def food_web(mx: int = 20, my: int = 20, structure: str = "sparse", compiled: bool | None = None) -> Model:
    """Predator and prey on the unit square; the predators react at once, so their equation is algebraic in time.

    Parameters
    ----------
    mx, my : int
        Points of the mesh in each direction; the problem has ``2 mx my`` unknowns.
    structure : {"sparse", "banded"}
        How the structure of the iteration matrix is stated. The half-bandwidth is ``2 mx``.
    compiled : bool, optional
        Whether the residual is compiled; by default from 200 unknowns on.

    Notes
    -----
    The initial predators are a guess, 1e5 everywhere: consistent ones are to be computed from the prey.
    ``model.extra["reaction"]`` is the problem without diffusion, whose residual is meant for
    ``daedal.BlockDiagonalPreconditioner(2, model.extra["reaction"].residual)``. ``model.extra["corners"]`` gives prey
    and predator in the corners (0, 0) and (1, 1) at some times (20 x 20 mesh only).
    """
    check_choice("structure", structure, ("sparse", "banded"))
    if mx < 3 or my < 3:
        raise daedal.InvalidProblemError(f"the mesh of {mx} x {my} points is too small; three are needed each way")
    x, y = np.meshgrid(np.linspace(0.0, 1.0, mx), np.linspace(0.0, 1.0, my))
    birth = BB * (1.0 + ALPHA * x * y + BETA * np.sin(4.0 * np.pi * x) * np.sin(4.0 * np.pi * y))
    per_width = np.array([(mx - 1) ** 2, (my - 1) ** 2], dtype=float)
    params = np.concatenate([[mx, my, AA, EE, GG], DPREY * per_width, DPRED * per_width, birth.ravel()])
    n = 2 * mx * my
    y0 = np.empty((my, mx, 2))
    y0[:, :, 0] = 10.0 + (16.0 * x * (1.0 - x) * y * (1.0 - y)) ** 2
    y0[:, :, 1] = 1e5
    problem = daedal.ImplicitDAE(
        residual,
        n,
        params=params,
        algebraic=np.arange(n) % 2 == 1,
        sparsity=_sparsity(mx, my) if structure == "sparse" else None,
        bandwidth=(2 * mx, 2 * mx) if structure == "banded" else None,
        names=[f"{animal}({i},{j})" for j in range(my) for i in range(mx) for animal in ("prey", "predator")],
    )
    reaction = daedal.ImplicitDAE(reaction_residual, n, params=params, algebraic=problem.algebraic)
    reference, corners = None, {}
    if mx == my == 20:
        corners = CORNERS_20
        values = np.full(n, np.nan)
        values[[0, 1, n - 2, n - 1]] = CORNERS_20[1.0]
        reference = Reference(1.0, values, "steady state by Newton's method, in two corners", 1e-12)
    return Model(
        name="food_web",
        title="Food web",
        problem=compile_if_large(problem, compiled),
        t_span=(0.0, 1.0),
        initial=(y0.ravel(), None),
        index=1,
        source="P. N. Brown, A. C. Hindmarsh, L. R. Petzold, Using Krylov methods in the solution of large-scale "
        "differential-algebraic systems, SIAM J. Sci. Comput. 15 (1994), pp. 1467-1488; constants of the example "
        "program idaFoodWeb of SUNDIALS",
        description="Prey and predators that react and diffuse on the unit square without flux through the boundary, "
        "discretised by central differences. The predators follow the prey without delay. Large and sparse: the "
        "problem on which Krylov methods for DAEs were tried out.",
        equations=(
            r"\begin{aligned} \partial_t c_1 &= \Delta c_1 + c_1 (b - c_1 - 5\cdot 10^{-7} c_2) \\ "
            r"0 &= 0.05\,\Delta c_2 + c_2 (-b + 10^4 c_1 - c_2) \\ "
            r"b &= 1 + 50 x y + 1000 \sin 4\pi x \sin 4\pi y \end{aligned}"
        ),
        reference=reference,
        options={"rtol": 1e-5, "atol": 1e-5, "correct_initial": True},
        plot={"variables": ["prey(0,0)", f"prey({mx - 1},{my - 1})"], "xscale": "log"},
        extra={"reaction": compile_if_large(reaction, compiled), "corners": corners},
    )


def _sparsity(mx: int, my: int):
    """Each species is coupled to its neighbours, and to the other species of the same point."""
    from scipy import sparse

    diffusion = sparse.kron(five_point_pattern(mx, my), sparse.eye_array(2))
    return diffusion + sparse.kron(sparse.eye_array(mx * my), np.ones((2, 2)))
