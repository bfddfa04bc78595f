"""Partial differential equations by the method of lines: heat on a square, diffusion with reaction."""

import numpy as np

import daedal
from daedal.library.registry import (
    Model,
    Reference,
    closed_model,
    compile_if_large,
    explicit_start,
    known,
    known_reference,
    model,
)


def five_point_pattern(mx: int, my: int):
    """Sparsity pattern of the five-point stencil on an ``mx`` by ``my`` mesh, numbered row by row."""
    from scipy import sparse

    def line(m: int):
        return sparse.diags_array([np.ones(m - 1), np.ones(m), np.ones(m - 1)], offsets=[-1, 0, 1])

    return sparse.kron(sparse.eye_array(my), line(mx)) + sparse.kron(line(my), sparse.eye_array(mx))


# --- heat on a square, with its boundary values as algebraic equations ------------------------------------------------


def heat_residual(t, y, yp, p):
    """Central differences inside, ``u = 0`` on the edges; points are ordered row by row."""
    m = int(p[0])
    c = p[1]
    r = y.copy()
    for j in range(1, m - 1):
        for i in range(1, m - 1):
            k = j * m + i
            r[k] = yp[k] - c * (y[k - 1] + y[k + 1] + y[k - m] + y[k + m] - 4.0 * y[k])
    return r


@model
def heat2d(m: int = 10, structure: str = "banded", compiled: bool | None = None) -> Model:
    """Cooling of a square plate whose edges are kept at zero.

    Notes
    -----
    ``model.extra["exact"](t, derivative)`` solves the discretised equations by sine modes, each with its decay rate.
    """
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
        heat_residual,
        n,
        params=np.array([m, coefficient]),
        algebraic=~inside.ravel(),
        sparsity=five_point_pattern(m, m) if structure == "sparse" else None,
        bandwidth=(m, m) if structure == "banded" else None,
        names=[f"u({i},{j})" for j in range(m) for i in range(m)],
    )
    return closed_model(
        compile_if_large(problem, compiled),
        exact,
        0.16,
        accuracy=1e-12,
        origin="closed-form solution of the discretised equations",
        plot={"variables": [f"u({m // 2},{m // 2})", "u(1,1)"]},
    )


# --- predators and prey on the unit square --------------------------------------------------------------------------

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


def food_web_residual(t, y, yp, p):
    """Prey and predator of a point are adjacent, the points ordered row by row (x varies fastest).

    Parameters: mx, my, a, e, g, then diffusion over squared mesh width for (prey, x), (prey, y), (predator, x),
    (predator, y), then the birth rate at every point. At the edges, the outer neighbour equals the inner one.
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
    """Residual without diffusion, in which prey and predator are coupled pointwise."""
    a, e, g = p[2], p[3], p[4]
    r = np.empty(y.size)
    for point in range(y.size // 2):
        k = 2 * point
        birth = p[9 + point]
        r[k] = yp[k] - y[k] * (birth - a * y[k] - g * y[k + 1])
        r[k + 1] = -y[k + 1] * (-birth + e * y[k] - a * y[k + 1])
    return r


@model
def food_web(mx: int = 20, my: int = 20, structure: str = "sparse", compiled: bool | None = None) -> Model:
    """Predator and prey on the unit square; the predators react instantaneously, so their equation is algebraic.

    Notes
    -----
    The initial predators are a guess, 1e5 everywhere; consistent values follow from the prey.
    ``model.extra["reaction"]`` is the problem without diffusion, whose residual is intended for
    ``daedal.linear_solvers.BlockDiagonalPreconditioner(2, model.extra["reaction"].residual)``.
    ``model.extra["corners"]`` gives prey and predator in the corners (0, 0) and (1, 1) at some times (20 x 20 mesh
    only).
    """
    if mx < 3 or my < 3:
        raise daedal.InvalidProblemError(
            f"the mesh of {mx} x {my} points is too small; at least three are needed in each direction"
        )
    x, y = np.meshgrid(np.linspace(0.0, 1.0, mx), np.linspace(0.0, 1.0, my))
    birth = BB * (1.0 + ALPHA * x * y + BETA * np.sin(4.0 * np.pi * x) * np.sin(4.0 * np.pi * y))
    per_width = np.array([(mx - 1) ** 2, (my - 1) ** 2], dtype=float)
    params = np.concatenate([[mx, my, AA, EE, GG], DPREY * per_width, DPRED * per_width, birth.ravel()])
    n = 2 * mx * my
    y0 = np.empty((my, mx, 2))
    y0[:, :, 0] = 10.0 + (16.0 * x * (1.0 - x) * y * (1.0 - y)) ** 2
    y0[:, :, 1] = 1e5
    problem = daedal.ImplicitDAE(
        food_web_residual,
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
        problem=compile_if_large(problem, compiled),
        initial=(y0.ravel(), None),
        reference=reference,
        plot={"variables": ["prey(0,0)", f"prey({mx - 1},{my - 1})"], "xscale": "log"},
        extra={"reaction": compile_if_large(reaction, compiled), "corners": corners},
    )


def _sparsity(mx: int, my: int):
    from scipy import sparse

    diffusion = sparse.kron(five_point_pattern(mx, my), sparse.eye_array(2))
    return diffusion + sparse.kron(sparse.eye_array(mx * my), np.ones((2, 2)))


# --- ignition and propagation of a flame ------------------------------------------------------------------------------

HEAT_RELEASE, REACTION_RATE = 1.0, 5.0

# Times at which the temperature at x = 0, 0.5 and 0.9 reaches 1.5, by delta: Radau on a mesh of 4001 points
FRONT_TIMES = {20.0: {0.0: 0.25908, 0.5: 0.26897, 0.9: 0.28517}, 30.0: {0.0: 0.24020, 0.5: 0.24261, 0.9: 0.24526}}


def flame_residual(t, y, yp, p):
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


@model
def flame(delta: float = 20.0, points: int = 401, compiled: bool | None = None) -> Model:
    """Ignition and propagation of a flame (Petzold's moving-mesh test problem, here on a fixed mesh).

    Notes
    -----
    ``model.extra["x"]`` is the mesh and ``model.extra["front_times"]`` are the times at which the temperature at
    some points reaches 1.5 (for delta 20 and 30, on a fine mesh).
    """
    if points < 3:
        raise daedal.InvalidProblemError(f"points={points} must be at least 3")
    # D e^(-delta/T) with D = R e^delta/(alpha delta) becomes rate * e^(delta (1 - 1/T)).
    rate = REACTION_RATE / (HEAT_RELEASE * delta)
    params = np.array([(points - 1.0) ** 2, delta, rate, 1.0 + HEAT_RELEASE])
    y0 = np.ones(points)
    yp0 = np.full(points, rate * HEAT_RELEASE)
    yp0[-1] = 0.0
    entry, reference = known("flame", delta=delta, points=points), None
    if entry is not None:
        values = np.full(points, np.nan)
        values[entry["points"]] = entry["values"]
        reference = Reference(entry["t"], values, entry["source"], entry["accuracy"])
    problem = daedal.ImplicitDAE(
        flame_residual,
        points,
        params=params,
        algebraic=[points - 1],
        bandwidth=(1, 1),
        names=[f"T{k}" for k in range(points)],
    )
    shown = [f"T{round(x * (points - 1))}" for x in (0.0, 0.5, 0.9)]
    return Model(
        problem=compile_if_large(problem, compiled),
        initial=(y0, yp0),
        reference=reference,
        plot={"variables": shown},
        extra={"x": np.linspace(0.0, 1.0, points), "front_times": FRONT_TIMES.get(float(delta), {})},
    )


# --- reaction-diffusion: penetration of antibodies into a tissue -----------------------------------------------------

REACTION, DEPTH = 100.0, 4.0  # k and c of the test set


def tissue_residual(t, y, yp):
    """y contains antibodies u and substrate v, alternating.

    Central differences in zeta = x / (x + c), where d/dx = (zeta - 1)^2 / c d/dzeta; u = phi(t) at zeta = 0. There is
    no gradient at zeta = 1, which is infinitely deep.
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


@model
def medical_akzo_nobel(points: int = 200, compiled: bool | None = None) -> Model:
    """Antibodies and substrate in a tissue, by the method of lines."""
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
        initial=explicit_start(problem, np.tile([0.0, 1.0], points)),
        reference=known_reference("medical_akzo_nobel", points=points),
        plot={"variables": [*(f"u{j}" for j in shown), f"v{shown[-1]}"]},
    )
