"""Sensitivities, gradients, fits and ensembles of random problems, against closed forms and single runs."""

from __future__ import annotations

import numpy as np

from soak.case import Script

HEAD = """import math
import numpy as np
import daedal

rng = np.random.default_rng({seed})
u = lambda a, b: float(rng.uniform(a, b))
k, c, T = u(0.3, 2.0), u(0.3, 2.0), u(0.5, 3.0)
params = {{"k": k, "c": c}}
decay = [
    lambda: (daedal.ODE(lambda t, y, p: [p["c"] - p["k"] * y[0]], 1, params=params), [0.0]),
    lambda: (daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - y[1], y[1] - p["c"] + p["k"] * y[0]], 2, params=params), ([0.0, c], None)),
    lambda: (daedal.SemiExplicitDAE(lambda t, y, z, p: [z[0]], lambda t, y, z, p: [z[0] - p["c"] + p["k"] * y[0]], 1, 1, params=params), ([0.0], [c])),
    lambda: (daedal.MechanicalSystem(1.0, lambda t, q, v, p: [p["c"] - p["k"] * v[0]], n_q=1, params=params), ([0.0], [0.0])),
]
problem, start = decay[{form}]()
values = (lambda sol: sol.v[0, -1]) if {form} == 3 else (lambda sol: sol.y[0, -1])
end = c / k * (1.0 - math.exp(-k * T))
by_c = end / c
by_k = -c / k**2 * (1.0 - math.exp(-k * T)) + c / k * T * math.exp(-k * T)
"""

KINDS = {
    "sensitivities": """def found():
    sol = daedal.solve(problem, (0.0, T), start, sensitivities=["k", "c"])
    row = 1 if {form} == 3 else 0
    return [values(sol), *(np.asarray(sol.sensitivity(x))[row, -1] for x in "kc")]
expected, allowed = [end, by_k, by_c], 3e-6
""",
    "sensitivities through a switch": """b = u(0.2, 0.8) * T
problem = daedal.ODE(lambda t, y, p: [p["c"] if t < p["b"] else -p["k"]], 1, params={"k": k, "c": c, "b": b})
def found():
    sol = daedal.solve(problem, (0.0, T), [0.5], sensitivities=["k", "c", "b"])
    return [sol.y[0, -1], *(sol.sensitivity(x)[0, -1] for x in "kcb")]
expected, allowed = [0.5 + c * b - k * (T - b), b - T, b, c + k], 3e-6
""",
    "sensitivities through a switch of the state": """s = u(0.2, 0.8) * c * T  # y' = c until y = s, then c k
problem = daedal.ODE(lambda t, y, p: [p["c"] * (1.0 if y[0] < p["s"] else p["k"])], 1, params={"k": k, "c": c, "s": s})
def found():
    sol = daedal.solve(problem, (0.0, T), [0.0], sensitivities=["k", "c", "s"])
    return [sol.y[0, -1], *(sol.sensitivity(x)[0, -1] for x in "kcs")]
t = s / c
expected, allowed = [s + c * k * (T - t), c * (T - t), k * T, 1.0 - k], 3e-6
""",
    "gradient": """problem = daedal.ODE(lambda t, y, p: [p["c"] - p["k"] * y[0]], 1, params=params)
def found():
    found = daedal.gradient(problem, (0.0, T), [0.0], final_cost=lambda t, y, p: y[0] ** 2, parameters=["k", "c"])
    return [found.value, found["k"], found["c"]]
expected, allowed = [end**2, 2.0 * end * by_k, 2.0 * end * by_c], 3e-6
""",
    "ensemble": """members = 12
ks = rng.uniform(0.3, 2.0, members)
def found():
    many = daedal.solve_many(problem, (0.0, T), [start] * members, params=[{"k": float(x), "c": c} for x in ks])
    final = many.final.v[:, 0] if {form} == 3 else many.final.y[:, 0]
    alone = [values(daedal.solve(problem, (0.0, T), start, params={"k": float(x), "c": c})) for x in ks]
    return [*final, float(np.array_equal(final, alone))]
expected, allowed = [*(c / ks * (1.0 - np.exp(-ks * T))), 1.0], 1e-6
""",
    "ensemble with switches": """members = 8
bs = rng.uniform(0.1, 0.9, members) * T
problem = daedal.ODE(lambda t, y, p: [1.0 if t < p["b"] else -1.0, math.exp(-y[1])], 2, params={"b": 1.0})
def found():
    many = daedal.solve_many(problem, (0.0, T), [[0.0, 0.0]] * members, params=[{"b": float(b)} for b in bs])
    alone = [daedal.solve(problem, (0.0, T), [0.0, 0.0], params={"b": float(b)}).y[:, -1] for b in bs]
    return [*many.final.y[:, 0], float(np.array_equal(many.final.y, alone))]
expected, allowed = [*(2.0 * bs - T), 1.0], 1e-6
""",
    "ensemble of an index-2 problem": """members = 6
problem = daedal.SemiExplicitDAE(lambda t, y, z, p: [y[1], -y[0] + z[0]], lambda t, y, z, p: [y[1] - p["c"] * math.cos(t)], 2, 1, params={"c": c})
cs = rng.uniform(0.5, 2.0, members)
def found():
    starts = [([0.0, float(x)], None) for x in cs]
    many = daedal.solve_many(problem, (0.0, T), starts, params=[{"c": float(x)} for x in cs])
    alone = [daedal.solve(problem, (0.0, T), s, params={"c": float(x)}).y[:, -1] for s, x in zip(starts, cs)]
    return [*many.final.y[:, 0], float(np.array_equal(many.final.y[:, :2], np.array(alone)[:, :2]))]
expected, allowed = [*(cs * math.sin(T)), 1.0], 3e-6
""",
    "fit": """problem = daedal.ODE(lambda t, y, p: [p["c"] - p["k"] * y[0]], 1, params={"k": 1.0, "c": 1.0}, names=["x"])
times = np.linspace(0.1, 2.0 + T, 25)
data = c / k * (1.0 - np.exp(-k * times))
def found():
    fitted = daedal.fit(problem, {"t": times, "x": data}, ["k", "c"], t_span=(0.0, 2.0 + T), initial=[0.0])
    return [fitted.params["k"], fitted.params["c"]]
expected, allowed = [k, c], 1e-5
""",
    "save and load": """import os, tempfile
def found():
    sol = daedal.solve(problem, (0.0, T), start, sensitivities=["k"])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "solution.npz")
        sol.save(path)
        again = daedal.load(path)
    return [values(again), float(np.array_equal(again.t, sol.t)), float(np.array_equal(again.y, sol.y))]
expected, allowed = [end, 1.0, 1.0], 1e-6
""",
    "threads": """from concurrent.futures import ThreadPoolExecutor
def found():
    once = values(daedal.solve(problem, (0.0, T), start))
    with ThreadPoolExecutor(4) as pool:
        all_ = list(pool.map(lambda _: values(daedal.solve(problem, (0.0, T), start)), range(8)))
    return [once, float(len({*all_, once}))]
expected, allowed = [end, 1.0], 1e-6
""",
}


def drawn(number: int) -> Script:
    """The kind changes first, the form of the problem is drawn."""
    rng, names = np.random.default_rng(number), list(KINDS)
    name, form = names[number % len(names)], int(rng.integers(4))
    source = HEAD.format(seed=number, form=form) + KINDS[name].replace("{form}", str(form))
    return Script(f"{name}, form {form}", source)
