"""Solutions that slide along a surface, and blocks that stick and slip; the reference follows the modes with SciPy."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from soak.case import Script

LEVEL = 1e-11
"""Distance beyond a surface at which the reference has reached it, so that it does not meet the surface it leaves."""
HEAD = "import numpy as np\nimport daedal\nfrom soak.sliding import {reference}\n\n"
TAIL = """
def found():
    sol = daedal.solve({problem}, ({begin}, {end}), {initial}, t_eval=times, rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    return {values}

expected, allowed = {reference}({arguments}, times)
"""
SURFACE = """times = np.linspace({begin}, {end}, 6)
A, b, r, k = np.array({A}), np.array({b}), np.array({r}), np.array({k})

def smooth(t, x):
    return A @ x + b * np.cos({w} * t + {p})

def s(t, x):
    return k @ x - {d} * np.sin({u} * t)

def s_t(t):
    return -{d} * {u} * np.cos({u} * t)
"""
BLOCKS = """times = np.linspace(0.0, {end}, 6)
K, mu, static, belt = np.array({K}), np.array({mu}), np.array({static}), np.array({belt})

def free(t, q, v):
    return -(K @ q) - {c} * v + np.array({F}) * np.cos({w} * t + {p})
"""


def _followed(rate, ends, follow, mode, y, times):
    """Values at `times`: ``rate(mode)``, functions positive in the mode, and (mode, y) after one of them vanishes."""
    found, t = [np.array(y)], times[0]
    for _ in range(500):
        events = [lambda t, y, e=e: e(t, y) for e in ends(mode)]
        for event in events:
            event.terminal, event.direction = True, -1
        part = solve_ivp(
            rate(mode), (t, times[-1]), y, "DOP853", None, True, events, rtol=1e-11, atol=1e-13, max_step=0.05
        )
        now = part.t[-1]
        found += [part.sol(s) for s in times[len(found) :] if s <= now]
        if part.status == 0:
            return np.array(found).T
        fired = next(i for i, at in enumerate(part.t_events) if at.size)
        mode, y = follow(fired, mode, now, part.y[:, -1].copy())
        t = now
    raise RuntimeError("the reference switches too often")


def _with_margin(solution, y0, times):
    """A solution and its allowed error: a tolerance, and the effect of a perturbed start."""
    exact, moved = solution(y0, times), solution(y0 * (1.0 + 1e-8) + 1e-9, times)
    return exact, 1e-8 * (1.0 + np.abs(exact)) + np.abs(moved - exact)


def on_surface(smooth, r, k, s, s_t, x0, times):
    """x' = smooth(t, x) -+ r on the sides of s = 0, in the sense of Filippov; sliding is unique for k r > 0."""

    def rates(t, x):
        middle = k @ smooth(t, x) + s_t(t)
        return middle - k @ r, middle + k @ r

    def share(t, x):
        above, below = rates(t, x)
        return below / (below - above)

    def rate(mode):
        return lambda t, x: smooth(t, x) - (2.0 * share(t, x) - 1.0 if mode == 0 else mode) * r

    def ends(mode):
        if mode == 0:
            return [share, lambda t, x: 1.0 - share(t, x)]
        return [lambda t, x: mode * s(t, x) + LEVEL]

    def follow(fired, mode, t, x):
        if mode == 0:
            return (-1, 1)[fired], x
        above, below = rates(t, x)
        return 0 if above < 0.0 < below else int(np.sign(above)), x

    def solution(x0, times):
        return _followed(rate, ends, follow, int(np.sign(s(times[0], x0))), x0, times)

    return _with_margin(solution, np.array(x0), times)


def of_blocks(free, mu, static, belt, q0, v0, times):
    """q'' = free(t, q, v) - mu sgn(v - belt), each block with its own belt; static is the limit of a block at rest."""
    n = mu.size

    def rate(mode):
        mode = np.array(mode)
        return lambda t, y: np.concatenate([y[n:], np.where(mode == 0, 0.0, free(t, y[:n], y[n:]) - mode * mu)])

    def ends(mode):
        return [
            (lambda t, y, i=i: static[i] - abs(free(t, y[:n], y[n:])[i]))
            if mode[i] == 0
            else (lambda t, y, i=i: mode[i] * (y[n + i] - belt[i]) + LEVEL)
            for i in range(n)
        ]

    def follow(i, mode, t, y):
        y[n + i] = belt[i]
        pull = free(t, y[:n], y[n:])[i]
        sticks = mode[i] != 0 and abs(pull) <= static[i]
        return (*mode[:i], 0 if sticks else int(np.sign(pull)), *mode[i + 1 :]), y

    def solution(y0, times):
        return _followed(rate, ends, follow, tuple(np.sign(y0[n:] - belt).astype(int)), y0, times)

    return _with_margin(solution, np.concatenate([q0, v0]), times)


def drawn(number: int) -> Script:
    """A surface with one of three spellings of its equations, or one or two blocks with friction."""
    rng = np.random.default_rng(number)
    return _surface(rng) if rng.random() < 0.5 else _blocks(rng)


def _numbers(rng, low: float, high: float, *shape: int):
    return np.round(rng.uniform(low, high, shape), 3).tolist()


def _surface(rng) -> Script:
    n = int(rng.integers(2, 4))
    k, x0 = np.array(_numbers(rng, -1.0, 1.0, n)), _numbers(rng, -2.0, 2.0, n)
    r = np.array(_numbers(rng, -0.5, 0.5, n)) + np.sign(k) * rng.uniform(0.4, 2.0)
    r = np.round(np.where(k @ r > 0.1, r, k + np.sign(k)), 3)
    numbers = {
        "A": (np.array(_numbers(rng, -1.0, 1.0, n, n)) - 0.5 * np.eye(n)).round(3).tolist(),
        "b": _numbers(rng, -1.5, 1.5, n),
        "r": r.tolist(),
        "k": k.tolist(),
        **{
            name: round(float(v), 3)
            for name, v in zip("wpdu", rng.uniform([0.3, -3.0, 0.0, 0.2], [3.0, 3.0, 1.0, 2.0]))
        },
        "begin": 0.0,
        "end": float(rng.choice([3.0, 8.0, 15.0])),
    }
    span = f"({numbers['begin']}, {numbers['end']})"
    form = str(rng.choice(["Filippov", "sign", "if", "where, ImplicitDAE"]))
    model = f"daedal.hybrid.Filippov(lambda t, x: smooth(t, x) - r, lambda t, x: smooth(t, x) + r, s, {n})"
    problem, initial = {
        "Filippov": ("model", f"model.entry({span}, {x0})"),
        "sign": (f"daedal.ODE(lambda t, x: smooth(t, x) - np.sign(s(t, x)) * r, {n})", f"{x0}"),
        "if": (f"daedal.ODE(lambda t, x: smooth(t, x) - r if s(t, x) > 0 else smooth(t, x) + r, {n})", f"{x0}"),
        "where, ImplicitDAE": (
            f"daedal.ImplicitDAE(lambda t, x, xp: xp - smooth(t, x) + np.where(s(t, x) > 0, r, -r), {n})",
            f"({x0}, None)",
        ),
    }[form]
    made = f"\nmodel = {model}\n" if form == "Filippov" else ""
    tail = TAIL.format(
        problem=problem,
        initial=initial,
        begin=numbers["begin"],
        end=numbers["end"],
        values=f"sol.y[:{n}]",
        reference="on_surface",
        arguments=f"smooth, r, k, s, s_t, {x0}",
    )
    return Script(f"surface, {form}", HEAD.format(reference="on_surface") + SURFACE.format(**numbers) + made + tail)


def _blocks(rng) -> Script:
    n = int(rng.integers(1, 3))
    stiff = np.array(_numbers(rng, 0.2, 4.0, n))
    K = np.diag(stiff) + (np.round(rng.uniform(0.1, 2.0), 3) * np.array([[1.0, -1.0], [-1.0, 1.0]]) if n == 2 else 0.0)
    form = (
        str(rng.choice(["Friction", "MechanicalSystem", "ODE"]))
        if n == 1
        else str(rng.choice(["MechanicalSystem", "ODE"]))
    )
    mu = np.array(_numbers(rng, 0.1, 2.0, n))
    static = mu * (round(float(rng.uniform(1.0, 1.6)), 3) if form == "Friction" else 1.0)
    numbers = {
        "K": K.tolist(),
        "mu": mu.tolist(),
        "static": static.tolist(),
        "belt": _numbers(rng, -1.0, 1.0, n) if rng.random() < 0.6 else [0.0] * n,
        "F": _numbers(rng, -3.0, 3.0, n),
        **{name: round(float(v), 3) for name, v in zip("cwp", rng.uniform([0.0, 0.3, -3.0], [0.4, 3.0, 3.0]))},
        "end": float(rng.choice([5.0, 12.0, 20.0])),
    }
    q0, v0 = _numbers(rng, -2.0, 2.0, n), _numbers(rng, -2.0, 2.0, n)
    span, values = f"(0.0, {numbers['end']})", "np.concatenate([sol.q, sol.v])"
    if form == "Friction":
        system = "daedal.MechanicalSystem(1.0, free, n_q=1)"
        friction = f"daedal.hybrid.Friction({system}, [1.0], mu[0], normal=1.0, mu_static=static[0], speed=belt[0])"
        made, problem, initial = f"\nmodel = {friction}\n", "model", f"model.entry({span}, ({q0}, {v0}))"
    elif form == "MechanicalSystem":
        force = "lambda t, q, v: free(t, q, v) - mu * np.sign(v - belt)"
        made, problem, initial = "", f"daedal.MechanicalSystem(1.0, {force}, n_q={n})", f"({q0}, {v0})"
    else:
        rate = f"np.concatenate([y[{n}:], free(t, y[:{n}], y[{n}:]) - mu * np.sign(y[{n}:] - belt)])"
        made, problem, initial = "", f"daedal.ODE(lambda t, y: {rate}, {2 * n})", f"{q0 + v0}"
        values = "sol.y"
    tail = TAIL.format(
        problem=problem,
        initial=initial,
        begin=0.0,
        end=numbers["end"],
        values=values,
        reference="of_blocks",
        arguments=f"free, mu, static, belt, {q0}, {v0}",
    )
    return Script(
        f"{n} block{'s' * (n > 1)}, {form}", HEAD.format(reference="of_blocks") + BLOCKS.format(**numbers) + made + tail
    )
