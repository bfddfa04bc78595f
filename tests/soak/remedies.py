"""Remedies that messages name as arguments, followed as they are written: one of them must lead to the solution."""

from __future__ import annotations

import inspect
import re

import daedal
from soak.case import Script

SCRIPT = """import math, re, warnings
import numpy as np
import daedal
from soak.remedies import named

rng = np.random.default_rng({seed})
u = lambda a, b: float(rng.uniform(a, b))
a, c, w = u(0.5, 2.0), u(0.2, 0.8), u(0.5, 3.0)
{problem}

def attempt(**options):
    sol = daedal.solve(problem, span, start, **{{**given, **options}})
    assert sol.success, sol.message
    return sol.y[:, -1]

def found():
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            first, words = attempt(), ""
        except daedal.DaedalError as error:
            first, words = None, str(error)
    words += " ".join(str(note.message) for note in notes)
    if not words or first is not None and np.allclose(first, expected, rtol=0.0, atol=300.0 * allowed):
        return first  # nothing to remedy
    remedies, outcomes = named(words), []
    assert remedies, f"names no argument: {{words}}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for remedy in remedies:
            try:
                values = attempt(**remedy)
            except daedal.DaedalError as error:
                outcomes.append(f"{{remedy}}: {{error}}")
                continue
            if np.allclose(values, expected, rtol=0.0, atol=300.0 * allowed):
                return values
            outcomes.append(f"{{remedy}}: {{values}}")
    raise AssertionError(f"{{words}} FOLLOWED: {{outcomes}}")

"""

PROBLEMS = {
    "a kink in what index 2 prescribes": """problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - a * abs(np.sin(w * t))], 2)
span, start, given = (0.0, 6.0), ([0.0, a * w], None), {}
sign = math.copysign(1.0, math.sin(6.0 * w))
expected, allowed = [a * abs(math.sin(6.0 * w)), sign * a * w * math.cos(6.0 * w)], 1e-6 * (1.0 + a * w * w)
""",
    "a kink in what semi-explicit index 2 prescribes": """problem = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [y[0] - max(c * a, a * np.cos(w * t))], 1, 1)
span, start, given = (0.0, 5.0), ([a], None), {}
x = a * math.cos(5.0 * w)
expected, allowed = [max(c * a, x), -a * w * math.sin(5.0 * w) if x > c * a else 0.0], 1e-6 * (1.0 + a * w * w)
""",
    "algebraic values that are not consistent": """problem = daedal.SemiExplicitDAE(lambda t, y, z: [-z[0]], lambda t, y, z: [z[0] - w * y[0]], 1, 1)
span, start, given = (0.0, 1.0), ([a], [5.0]), {}
expected, allowed = [a * math.exp(-w), a * w * math.exp(-w)], 1e-6
""",
    "derivatives that are not consistent": """problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + w * y[0]], 1)
span, start, given = (0.0, 1.0), ([a], [7.0]), {}
expected, allowed = [a * math.exp(-w)], 1e-6
""",
    "guessed algebraic values of index 2": """problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0] - y[1], y[0] - a * np.cos(w * t)], 2)
span, start, given = (0.0, 2.0), ([a, 9.0], None), {}
expected, allowed = [a * math.cos(2.0 * w), a * math.cos(2.0 * w) - a * w * math.sin(2.0 * w)], 1e-6 * (1.0 + w * w)
""",
    "too few steps": """problem = daedal.ODE(lambda t, y: [y[1], -w * w * y[0]], 2)
span, start, given = (0.0, 30.0), [a, 0.0], {"max_steps": 5}
expected, allowed = [a * math.cos(30.0 * w), -a * w * math.sin(30.0 * w)], 1e-4
""",
    "variables below atol": """problem = daedal.ODE(lambda t, y: [-w * y[0]], 1)
span, start, given = (0.0, 20.0), [1e-12 * a], {}
expected, allowed = [1e-12 * a * math.exp(-20.0 * w)], 1e-15
""",
    "a tolerance below round-off": """problem = daedal.ODE(lambda t, y: [-w * y[0]], 1)
span, start, given = (0.0, 1.0), [a], {"rtol": 1e-17}
expected, allowed = [a * math.exp(-w)], 1e-8
""",
    "a method that is not there": """problem = daedal.ODE(lambda t, y: [-w * y[0]], 1)
span, start, given = (0.0, 1.0), [a], {"method": "dasl"}
expected, allowed = [a * math.exp(-w)], 1e-6
""",
    "a method for another index": """problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] - y[2], y[0] - a * np.sin(w * t)], 3)
span, start, given = (0.0, 1.0), ([0.0, a * w, 0.0], None), {"method": str(rng.choice(["rosenbrock", "dassl", "radau", "extrapolation"]))}
expected, allowed = [a * math.sin(w), a * w * math.cos(w), -a * w * w * math.sin(w)], 1e-5 * (1.0 + w**3)
""",
    "a formulation for another problem": """problem = daedal.ODE(lambda t, y: [-w * y[0]], 1)
span, start, given = (0.0, 1.0), [a], {"formulation": "ggl"}
expected, allowed = [a * math.exp(-w)], 1e-6
""",
    "a branch that cannot be evaluated beyond its end": """problem = daedal.ODE(lambda t, y: [-math.sqrt(y[0]) if y[0] > 0 else 0.0], 1)
span, start, given = (0.0, 2.0 * math.sqrt(a) + 1.0), [a], {}
expected, allowed = [0.0], 1e-5
""",
    "a start at a large time": """problem = daedal.ODE(lambda t, y: [math.cos(w * (t - 1.7e9))], 1)
span, start, given = (1.7e9, 1.7e9 + 5.0), [0.0], {}
expected, allowed = [math.sin(5.0 * w) / w], 1e-6
""",
    "a switch of every few steps": """problem = daedal.ODE(lambda t, y: [1.0 if math.sin(40.0 * w * t) * math.sin(27.0 * t) > 0 else -0.5, -y[1]], 2)
span, start, given = (0.0, 10.0), [0.0, 1.0], {}
s = np.linspace(0.0, 10.0, 4_000_001)
v = np.where(np.sin(40.0 * w * s) * np.sin(27.0 * s) > 0, 1.0, -0.5)
expected, allowed = [float(np.mean(v[:-1]) * 10.0), math.exp(-10.0)], 1e-5
""",
    "a pulse that is not traced": """problem = daedal.ODE(lambda t, y: [{True: 100.0}.get(f"{t > 3.0 and t < 3.01}" == "True", 0.0)], 1)
span, start, given = (0.0, 10.0), [0.0], {}
expected, allowed = [1.0], 1e-6
""",
    "a stiff problem by an explicit method": """problem = daedal.ODE(lambda t, y: [-1e6 * (y[0] - math.cos(t)), -y[1]], 2)
span, start, given = (0.0, 10.0), [1.0, a], {"method": "dop853"}
expected, allowed = [math.cos(10.0), a * math.exp(-10.0)], 1e-5
""",
}


PROSE = (
    (r"raise (max_steps)", lambda found: {found[1]: 1_000_000}),
    (r"pass (atol) as a vector with about ([-+.\de]+\d) for it", lambda found: {found[1]: float(found[2])}),
    (r"(rtol) = .* use ([-+.\de]+\d) or more", lambda found: {found[1]: float(found[2])}),
    (r"unknown (\w+) '.*?(?:take|accept) '(\w+)'", lambda found: {found[1]: found[2]}),
    (r"unknown (\w+) '.*?did you mean '(\w+)'", lambda found: {found[1]: found[2]}),
)
"""Remedies that messages name in words, and what they come to."""
VALUE = r"\"[^\"]*\"|'[^']*'|True|False|None|\[[^\]]*\]|[-+]?\d[\d_.]*(?:e[-+]?\d+)?"


def named(words: str) -> list[dict]:
    """Arguments of `solve` with values, as a message names them."""
    known = {*inspect.signature(daedal.solve).parameters, *inspect.signature(daedal.prepare).parameters}
    written = re.findall(rf"\b(\w+)=({VALUE})", words)
    found = [{name: eval(text.rstrip("."))} for name, text in written if name in known]
    return found + [meant(match) for pattern, meant in PROSE if (match := re.search(pattern, words))]


def drawn(number: int) -> Script:
    names = list(PROBLEMS)
    name = names[number % len(names)]
    return Script(name, SCRIPT.format(seed=number, problem=PROBLEMS[name]))
