"""Combustion by the method of lines: ignition in a closed vessel, and a flame on a moving mesh."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import daedal
from daedal.library.diffusion import FRONT_TIMES, HEAT_RELEASE, REACTION_RATE
from daedal.library.registry import Model, check_positive, compile_if_large, model

# --- ignition in a closed cylinder in Lagrangian coordinates ----------------------------------------------------------

KAPPA = 2.0 / 7.0  # R / (W c_p) of a diatomic gas


def ignition_residual(t, y, yp, p):
    """Residual of ignition; temperature, fuel, radius and pressure of a node are adjacent, so that the band is narrow.

    Parameters: number of nodes, kappa, heat and rate of the reaction, activation energy, wall temperature, time at
    which the wall reaches it, 1 if the wall is adiabatic (otherwise 0), and psi at the nodes. All quantities are
    relative to those of the cold gas, and times to the diffusion time.
    """
    n = int(p[0])
    adiabatic = int(p[7])
    kappa, heat, rate, activation, wall, heating = p[1], p[2], p[3], p[4], p[5], p[6]
    psi = p[8:]
    r = np.empty(4 * n)
    flow, loss = 0.0, 0.0  # fluxes through the inner face: rho r^2 dT/dpsi of heat, rho r^2 dY/dpsi of fuel
    for i in range(n):
        k = 4 * i
        temperature, fuel, radius, pressure = y[k], y[k + 1], y[k + 2], y[k + 3]
        size, flow_in, loss_in = 0.0, flow, loss
        if i > 0:
            size += 0.5 * (psi[i] - psi[i - 1])
        if i < n - 1:
            width = psi[i + 1] - psi[i]
            size += 0.5 * width
            density = 0.5 * (pressure / temperature + y[k + 7] / y[k + 4])
            squared = 0.5 * (radius * radius + y[k + 6] * y[k + 6])
            flow = density * squared * (y[k + 4] - temperature) / width
            loss = density * squared * (y[k + 5] - fuel) / width
        else:
            flow, loss = 0.0, 0.0
        burning = rate * fuel * np.exp(activation * (1.0 - 1.0 / temperature))
        r[k] = yp[k] - kappa * temperature / pressure * yp[k + 3] - (flow - flow_in) / size - heat * burning
        r[k + 1] = yp[k + 1] - (loss - loss_in) / size + burning
        if i == 0:
            r[k + 2] = radius
        else:  # (r^2 / 2)' = 1 / rho
            volume = 0.5 * (psi[i] - psi[i - 1]) * (temperature / pressure + y[k - 4] / y[k - 1])
            r[k + 2] = 0.5 * (radius * radius - y[k - 2] * y[k - 2]) - volume
        if i < n - 1:
            r[k + 3] = y[k + 7] - pressure
        else:
            r[k + 3] = radius - 1.0
    if adiabatic == 0:
        share = min(t / heating, 1.0)
        r[4 * n - 4] = y[4 * n - 4] - 1.0 - (wall - 1.0) * share * share * (3.0 - 2.0 * share)
    return r


@model
def ignition(
    nodes: int = 41,
    heat: float = 4.0,
    rate: float = 0.02,
    activation: float = 12.0,
    wall: float | None = 1.5,
    t1: float = 0.5,
    compiled: bool | None = None,
) -> Model:
    """Ignition of a gas in a closed cylinder with hot walls (Kee and Petzold's method of lines).

    Notes
    -----
    Temperature, pressure, density and radius are relative to their initial values, and times to the diffusion
    time. ``model.extra["psi"]`` are the coordinates of the nodes, which are equidistant initially;
    ``model.extra["weights"]`` are their masses. The discretisation conserves energy:
    ``weights @ ((1 - kappa) T + heat Y)`` is constant if the wall is adiabatic.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.ignition(nodes=21)
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol['p20'][-1]:.2f}")  # final pressure
    1.73
    """
    if heat < 0.0 or rate < 0.0 or not np.isfinite(heat + rate):
        raise daedal.InvalidProblemError(f"heat={heat!r} and rate={rate!r} must not be negative")
    check_positive(activation=activation, wall=1.0 if wall is None else wall, t1=t1)
    if nodes < 3:
        raise daedal.InvalidProblemError(f"nodes={nodes} must be at least 3")
    radius = np.linspace(0.0, 1.0, nodes)
    psi = 0.5 * radius**2
    constants = [nodes, KAPPA, heat, rate, activation, 1.0 if wall is None else wall, 0.05, float(wall is None)]
    y0 = np.ones((nodes, 4))
    y0[:, 2] = radius
    algebraic = np.tile([False, False, True, False], (nodes, 1))
    if wall is not None:
        algebraic[-1, [0, 3]] = True
    problem = daedal.ImplicitDAE(
        ignition_residual,
        4 * nodes,
        params=np.array([*constants, *psi]),
        algebraic=algebraic.ravel(),
        bandwidth=(6, 7),
        names=[f"{quantity}{i}" for i in range(nodes) for quantity in "TYrp"],
    )
    return Model(
        problem=compile_if_large(problem, compiled),
        initial=(y0.ravel(), None),
        plot={"variables": ["T0", f"T{nodes - 2}", "p0", "Y0"]},
        extra={"psi": psi, "weights": np.gradient(psi) * np.r_[0.5, np.ones(nodes - 2), 0.5]},
    )


# --- a flame on a moving mesh -----------------------------------------------------------------------------------------


def moving_flame_residual(t, y, yp, p):
    """Residual of the moving flame; temperature and position of a node are adjacent.

    Parameters: form of the equations, alpha, penalty, activation energy, rate, temperature of the burnt gas.
    """
    n = y.size // 2
    form, alpha, penalty, activation, rate, end = int(p[0]), p[1], p[2], p[3], p[4], p[5]
    r = np.empty(2 * n)
    for i in range(n - 1):
        k = 2 * i
        right = y[k + 3] - y[k + 1]
        reaction = rate * (end - y[k]) * np.exp(activation * (1.0 - 1.0 / y[k]))
        if i == 0:
            r[0] = yp[0] - 2.0 * (y[2] - y[0]) / (right * right) - reaction
            r[1] = y[1]
        else:
            left = y[k + 1] - y[k - 1]
            rise, fall = (y[k + 2] - y[k]) / right, (y[k] - y[k - 2]) / left
            slope = (left * rise + right * fall) / (left + right)
            rate_of_change = 2.0 * (rise - fall) / (left + right) + reaction
            speed = -rate_of_change * slope / (alpha + slope * slope)
            r[k] = yp[k] - slope * yp[k + 1] - rate_of_change
            r[k + 1] = yp[k + 1] - speed
            if form == 1:
                r[k + 1] = alpha * yp[k + 1] + slope * yp[k]
                r[k + 1] += penalty * (yp[k + 1] - yp[k - 1]) / (left * left)
                r[k + 1] -= penalty * (yp[k + 3] - yp[k + 1]) / (right * right)
            elif form == 3:
                r[k] = yp[k] - slope * speed - rate_of_change
    r[2 * n - 2] = y[2 * n - 2] - 1.0
    r[2 * n - 1] = y[2 * n - 1] - 1.0
    return r


def _shares(y: np.ndarray) -> np.ndarray:
    """Length of each interval plus twice the integral of sqrt(|T_xx|) over it.

    The integral over a front is independent of the steepness; equal shares mean equal interpolation errors.
    """
    temperature, place = y[::2], y[1::2]
    width = np.diff(place)
    slopes = np.diff(temperature) / width
    root = np.zeros(place.size)
    root[1:-1] = np.sqrt(np.abs(np.diff(slopes)) / (0.5 * (width[1:] + width[:-1])))
    root[0], root[-1] = np.sqrt(2.0 * abs(slopes[0]) / width[0]), root[-2]
    for _ in range(max(2, place.size // 15)):  # limits the ratio of adjacent intervals
        root[1:-1] = 0.25 * (root[:-2] + 2.0 * root[1:-1] + root[2:])
    return width + (root[1:] + root[:-1]) * width


def imbalance(t: float, y: np.ndarray, yp: np.ndarray) -> float:
    """Event function: the largest share of an interval, relative to the mean share, minus 2.5."""
    shares = _shares(y)
    return float(shares.max() / shares.mean()) - 2.5


def balanced(y: np.ndarray) -> np.ndarray:
    """Move the nodes so that all intervals have equal shares; temperatures are interpolated by a cubic spline."""
    from scipy.interpolate import CubicSpline

    temperatures, result = CubicSpline(y[1::2], y[::2]), y.copy()
    for _ in range(3):
        measure = np.r_[0.0, np.cumsum(_shares(result))]
        result[1::2] = np.interp(np.linspace(0.0, measure[-1], y.size // 2), measure, result[1::2])
        result[1], result[-1] = 0.0, 1.0
        result[::2] = temperatures(result[1::2])
    return result


def _slopes(problem: daedal.ImplicitDAE, y: np.ndarray) -> np.ndarray:
    """Solve for y': the residual is linear in y', with seven diagonals; both ends are fixed."""
    from scipy.linalg import solve_banded

    n = y.size
    rest, band = problem.evaluate(0.0, y, np.zeros(n)), np.zeros((7, n))
    for first in range(7):
        columns = np.arange(first, n, 7)
        unit = np.zeros(n)
        unit[columns] = 1.0
        change = problem.evaluate(0.0, y, unit) - rest
        for k in range(7):
            inside = columns[(columns + k >= 3) & (columns + k - 3 < n)]
            band[k, inside] = change[inside + k - 3]
    ends = [1, n - 2, n - 1]
    band[3, ends], rest[ends] = 1.0, 0.0
    return solve_banded((3, 3), band, -rest)


@dataclass(frozen=True)
class FlameRun:
    """A flame computed on a moving mesh: states at given times, and the cost.

    Attributes
    ----------
    t : numpy.ndarray
        The times.
    T, x : numpy.ndarray, shape (points, times)
        Temperatures and positions of the nodes.
    steps, meshes : int
        Total number of steps, and number of mesh changes.
    """

    t: np.ndarray
    T: np.ndarray
    x: np.ndarray
    steps: int
    meshes: int


def follow_flame(model: Model, t_eval: Any, rtol: float = 1e-6) -> FlameRun:
    """Solve :func:`daedal.library.moving_flame` up to the last time in `t_eval`, with changes of the mesh.

    When the event ``model.extra["imbalance"]`` occurs, ``model.extra["balanced"]`` redistributes the nodes, and a new
    run starts.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.moving_flame(points=31)
    >>> run = daedal.library.follow_flame(model, [0.27, 0.28])
    >>> run.T.shape, run.meshes > 5
    ((31, 2), True)
    """
    times = np.atleast_1d(np.asarray(t_eval, dtype=float))
    if not times.size or not np.all(np.diff(times, prepend=0.0) > 0.0):
        raise daedal.InvalidProblemError(f"t_eval={t_eval!r} must be positive times in increasing order")
    event = daedal.Event(model.extra["imbalance"], terminal=True, direction=1)
    solver = daedal.prepare(model.problem, rtol=rtol, atol=0.1 * rtol, events=event)
    t, y, kept, steps, meshes = 0.0, model.initial[0], [], 0, 0
    while t < times[-1]:
        ahead = times[times > t]
        sol = solver.solve((t, times[-1]), (y, _slopes(model.problem, y)), t_eval=ahead)
        kept.append(sol.y[:, np.isin(sol.t, ahead)])
        steps += sol.stats.steps
        fired = len(sol.events) > 0
        t = float(sol.events[-1].t) if fired else times[-1]
        if fired:
            y, meshes = model.extra["balanced"](sol.events[-1].y), meshes + 1
    states = np.hstack(kept)
    return FlameRun(times, states[::2], states[1::2], steps, meshes)


@model
def moving_flame(
    delta: float = 20.0, points: int = 31, form: int = 1, penalty: float = 0.0, compiled: bool | None = None
) -> Model:
    """The flame of :func:`daedal.library.flame` on a moving mesh, by Petzold's method.

    Notes
    -----
    Temperatures and positions of nodes alternate. The front keeps the nodes at which it originated; Petzold's code
    therefore redistributes the nodes occasionally, as does :func:`daedal.library.follow_flame` when
    ``model.extra["imbalance"]`` becomes positive. ``model.extra["front_times"]`` are the times at which the temperature
    at some points reaches 1.5.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.moving_flame(points=31)
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> bool(sol["x15"][-1] > 0.5)  # the node in the middle has moved with the front
    True
    """
    if penalty < 0.0 or not np.isfinite(penalty):
        raise daedal.InvalidProblemError(f"penalty={penalty!r} must not be negative")
    if points < 3:
        raise daedal.InvalidProblemError(f"points={points} must be at least 3")
    rate = REACTION_RATE / (HEAT_RELEASE * delta)
    y0 = np.column_stack([np.ones(points), np.linspace(0.0, 1.0, points)])
    yp0 = np.zeros((points, 2))
    yp0[:-1, 0] = rate * HEAT_RELEASE
    problem = daedal.ImplicitDAE(
        moving_flame_residual,
        2 * points,
        algebraic=[2 * points - 2] if form == 1 and penalty > 0.0 else [1, 2 * points - 2, 2 * points - 1],
        params=np.array([form, 1.0, penalty, delta, rate, 1.0 + HEAT_RELEASE]),
        bandwidth=(3, 3),
        names=[f"{quantity}{i}" for i in range(points) for quantity in "Tx"],
    )
    shown = [f"x{round(share * (points - 1))}" for share in (0.2, 0.4, 0.6, 0.8)]
    return Model(
        problem=compile_if_large(problem, compiled),
        initial=(y0.ravel(), yp0.ravel()),
        plot={"variables": shown},
        extra={"imbalance": imbalance, "balanced": balanced, "front_times": FRONT_TIMES.get(float(delta), {})},
    )
