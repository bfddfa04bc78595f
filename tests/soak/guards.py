"""Guards of modes that change sign for an instant, in problems of every class; the times follow from closed forms."""

from __future__ import annotations

import numpy as np

from soak.case import Script

SCRIPT = """import math
import numpy as np
import daedal
from daedal.hybrid import HybridProblem, Transition

P = {{"rate": {rate}}}
T = {span}

def bump(x):
    return {shape}

def found():
    problem = {problem}
    ends = Transition("only", None, {guard}, direction=-1, name="dip")
    {others}
    modes = HybridProblem({{"only": problem}}, [ends, *others])
    sol = daedal.solve(modes, T, ("only", {initial}){options})
    assert sol.success, sol.message
    return [sol.t[-1], sol.events[-1].located == "enclosed"]

expected, allowed = [{expected!r}, 1], [{allowed}, 1e-3]
"""

# The variable x = rate * t of each class, and its rate; what a guard of it is called with.
CLASSES = {
    "ODE": ("daedal.ODE(lambda t, y, p: [p['rate']], 1, params=P)", "[x0]", "t, y, p", "y[0]"),
    "ImplicitDAE": (
        "daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - p['rate']], 1, params=P)",
        "([x0], None)",
        "t, y",
        "y[0]",
    ),
    "SemiExplicitDAE": (
        "daedal.SemiExplicitDAE(lambda t, y, z, p: [z[0]], lambda t, y, z, p: [z[0] - p['rate']], 1, 1, params=P)",
        "([x0], None)",
        "t, y, z",
        "y[0]",
    ),
    "MechanicalSystem": (
        "daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0], n_q=1)",
        "([x0], [P['rate']])",
        "t, q, v",
        "q[0]",
    ),
    "constrained": (
        "daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0], lambda t, q: [q[1]], n_q=2, n_constraints=1)",
        "([x0, 0.0], [P['rate'], 0.0])",
        "t, q, v",
        "q[0]",
    ),
}


def drawn(number: int) -> Script:
    """A class, where its guard dips and how, what else goes on, and the direction of time."""
    rng = np.random.default_rng(number)
    name = str(rng.choice(list(CLASSES)))
    problem, initial, arguments, x = CLASSES[name]
    rate, place = round(float(rng.uniform(0.3, 3.0)), 3), round(float(rng.uniform(0.5, 9.0)), 4)
    width = round(float(10.0 ** rng.uniform(-4.0, -1.0)), 6)
    shapes = [
        f"(x - {place}) ** 2 - {width} ** 2",
        f"0.5 - math.exp(-math.log(2.0) * ((x - {place}) / {width}) ** 2)",
        f"abs(x - {place}) - {width}",
        f"np.maximum({place} - x, x - {place}) - {width}",
        f"1.0 if abs(x - {place}) > {width} else -1.0",
    ]
    backwards = bool(rng.random() < 0.3)
    other = "others = []"
    if rng.random() < 0.5:
        other = (
            f"others = [Transition('only', 'only', lambda {arguments}: {x} - {place} + 0.3, direction=0, name='mark')]"
        )
    first, last = (10.0 / rate, 0.0) if backwards else (0.0, 10.0 / rate)
    edge = (place + width if backwards else place - width) / rate
    options = str(rng.choice(["", ", rtol=1e-9, atol=1e-12", ", events=lambda t, y: y[0] - 0.25"]))
    source = SCRIPT.format(
        rate=rate,
        span=(first, last),
        shape=shapes[rng.integers(len(shapes))],
        problem=problem,
        guard=f"lambda {arguments}: bump({x})",
        others=other,
        initial=initial.replace("x0", repr(rate * first)),
        options=options,
        expected=edge,
        allowed=1e-9,
    )
    return Script(f"guard, {name}" + ", backwards" * backwards, source)
