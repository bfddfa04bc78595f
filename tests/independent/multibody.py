"""Wijckmans' examples of discontinuities: minimal coordinates, each phase by SciPy with sharp tolerances."""

import math
from collections.abc import Iterator

from scipy.integrate import solve_ivp
from scipy.optimize import brentq

SHARP = {"method": "DOP853", "rtol": 2.3e-14, "atol": 1e-15, "dense_output": True}


def phase(f, t, y, ends, length=3.0):
    """Integrate up to the first root of ``ends(t, y)`` behind t, located in the dense output."""

    def event(s, z):
        return ends(s, z)

    event.terminal = True
    start = solve_ivp(f, (t, t + 1e-6), y, **SHARP)
    sol = solve_ivp(f, (t + 1e-6, t + length), start.y[:, -1], events=event, max_step=0.01, **SHARP)
    low, high = sol.t[-2], sol.t[-1]
    root = high
    if ends(low, sol.sol(low)) * ends(high, sol.sol(high)) < 0.0:
        root = brentq(lambda s: ends(s, sol.sol(s)), low, high, xtol=1e-14)
    return root, sol.sol(root)


# --- a pendulum hits a wall that yields, example 7.9 ----------------------------------------------------------------

L, M, G = 0.9, 30.0, 9.81
C1, C2, C3, P1 = 8e5, 1e3, 2e6, 5e-3
INERTIA = 4.0 / 3.0 * M * L * L


def _swing(force):
    """J phi'' = -m g l sin phi + 2 l cos phi F, with the indentation p = -2 l sin phi."""

    def f(t, y):
        push = force(-2.0 * L * math.sin(y[0]))
        return [y[1], (-M * G * L * math.sin(y[0]) + 2.0 * L * math.cos(y[0]) * push) / INERTIA]

    return f


def crash() -> dict[str, float]:
    def depth(y):
        return -2.0 * L * math.sin(y[0])

    t, y = phase(_swing(lambda p: 0.0), 0.0, [1.85, 0.0], lambda s, z: math.sin(z[0]))
    found = {"touches, t": t, "touches, phi'": y[1]}
    t, y = phase(_swing(lambda p: C1 * p), t, y, lambda s, z: depth(z) - P1, 0.1)
    found["yields, t"] = t
    t, y = phase(_swing(lambda p: C1 * P1 + C2 * (p - P1)), t, y, lambda s, z: z[1], 0.1)
    deepest = depth(y)
    found |= {"turns back, t": t, "deepest indentation": deepest}
    c4 = (C2 - C3) * deepest + (C1 - C2) * P1
    t, y = phase(_swing(lambda p: C3 * p + c4), t, y, lambda s, z: C3 * depth(z) + c4, 0.1)
    found["separates, t"] = t
    t, y = phase(_swing(lambda p: 0.0), t, y, lambda s, z: z[1])
    return found | {"apex, t": t, "apex, phi": y[0]}


# --- dry friction, example 7.10 -------------------------------------------------------------------------------------


def friction(count: int) -> list[float]:
    """Turns, sticks and slips of x'' + 0.2 x' + 4 sgn x' + x = 2 cos pi t from (3, 4)."""

    def load(t, x):
        return 2.0 * math.cos(math.pi * t) - x

    def moving(side):
        return lambda t, y: [y[1], load(t, y[0]) - 0.2 * y[1] - 4.0 * side]

    t, y, side, times = 0.0, [3.0, 4.0], 1, []
    while len(times) < count:
        t, y = phase(moving(side), t, y, lambda s, z: z[1])
        y = [y[0], 0.0]
        times.append(t)
        if abs(load(t, y[0])) < 4.0:
            x = y[0]
            grid = [t + 1e-3 * i for i in range(1, 4000)]
            edge = next(s for s in grid if abs(load(s, x)) > 4.0)
            t = brentq(lambda s, x=x: abs(load(s, x)) - 4.0, edge - 1e-3, edge, xtol=1e-14)
            times.append(t)
        side = 1 if load(t, y[0]) > 0.0 else -1
    return times


def values(number: str, table: dict) -> Iterator[dict[str, float]]:
    """The values of the rows of a table, by column."""
    if number == "7.9":
        found = crash()
        for row in table["rows"]:  # what is read off a figure is printed, and not computed here
            yield {} if row["quantity"].startswith("Figure") else {"value": found[row["quantity"]]}
    else:
        times = friction(len(table["rows"]))
        yield from ({"t": times[row["nr"] - 1]} for row in table["rows"])


TABLES = ("7.9", "7.10")
