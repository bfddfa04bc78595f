"""Events, switches and modes with closed forms: bouncing, friction, counting, tanks, stops, resets."""

from __future__ import annotations

from soak.case import Script

HEAD = """import math
import numpy as np
import daedal

rng = np.random.default_rng({seed})
u = lambda a, b: float(rng.uniform(a, b))
"""
TAIL = """
def found():
    sol = run()
    assert sol.success, sol.message
    return read(sol)
"""

KINDS = {
    "bouncing with resets": """g, h, e, count = u(1.0, 20.0), u(0.3, 3.0), u(0.5, 0.95), int(rng.integers(1, 5))
first, v = math.sqrt(2.0 * h / g), math.sqrt(2.0 * g * h)
end = first + sum(2.0 * v * e**k / g for k in range(1, count)) + v * e**count / g  # at the top of the last flight
bounce = daedal.hybrid.Transition("flight", "flight", lambda t, q, v: q[0], direction=-1, reset=lambda t, q, v: (q, -e * v))
flight = daedal.MechanicalSystem(1.0, lambda t, q, v: [-g], n_q=1)
run = lambda: daedal.solve(daedal.hybrid.HybridProblem({"flight": flight}, [bounce]), (0.0, end), ("flight", ([h], [0.0])))
read = lambda sol: [sol.q[0, -1], sol.v[0, -1]]
expected, allowed = [(v * e**count) ** 2 / (2.0 * g), 0.0], 1e-6 * (1.0 + v)
""",
    "terminal event": """a, w, c = u(0.5, 2.0), u(0.5, 3.0), u(0.1, 0.9)
run = lambda: daedal.solve(daedal.ODE(lambda t, y: [y[1], -w * w * y[0]], 2), (0.0, 20.0), [a, 0.0], events=daedal.Event(lambda t, y: y[0] - c * a, terminal=True))
read = lambda sol: [sol.t[-1]]
expected, allowed = [math.acos(c) / w], 1e-6 / w
""",
    "counted events": """w, p, c, end = u(0.5, 20.0), u(-3.0, 3.0), u(-0.9, 0.9), u(5.0, 30.0)
run = lambda: daedal.solve(daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, end), [1.0], events=daedal.Event(lambda t, y: math.sin(w * t + p) - c))
read = lambda sol: [len(sol.events), *[e.t for e in sol.events][:40]]
zeros = sorted(x for k in range(-5, 200) for x in ((math.asin(c) + 2 * math.pi * k - p) / w, (math.pi - math.asin(c) + 2 * math.pi * k - p) / w) if 0 < x < end)
expected, allowed = [len(zeros), *zeros[:40]], 1e-7
""",
    "counted events of a state": """w, c, end = u(0.5, 6.0), u(-0.9, 0.9), u(5.0, 15.0)
way = int(rng.choice([-1, 1]))
run = lambda: daedal.solve(daedal.MechanicalSystem(1.0, lambda t, q, v: [-w * w * q[0]], n_q=1), (0.0, end), ([0.0], [w]), events=daedal.Event(lambda t, q, v: q[0] - c, direction=way))
read = lambda sol: [len(sol.events), *[e.t for e in sol.events]]
a = math.asin(c) if way > 0 else math.pi - math.asin(c)
zeros = [x for k in range(-2, 40) if 0 < (x := (a + 2 * math.pi * k) / w) < end]
expected, allowed = [len(zeros), *zeros], 3e-6
""",
    "block with friction": """mu, a = u(0.05, 0.4), u(1.0, 3.0)
form = int(rng.integers(3))
problem = [lambda: daedal.MechanicalSystem(1.0, lambda t, q, v: [-q[0] - mu * np.sign(v[0])], n_q=1), lambda: daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0] + mu * np.sign(y[1])], 2), lambda: daedal.ODE(lambda t, y: [y[1], -y[0] - mu * (1.0 if y[1] > 0 else -1.0 if y[1] < 0 else 0.0)], 2)][form]()
run = lambda: daedal.solve(problem, (0.0, 100.0), [([a], [0.0]), ([a, 0.0], None), [a, 0.0]][form])
read = lambda sol: [(sol.q if form == 0 else sol.y)[0, -1]]
x = a
while abs(x) > mu:
    x = -(x - 2.0 * mu * math.copysign(1.0, x))
expected, allowed = [x], 1e-6 * (1.0 + a)
""",
    "block on a belt": """mu, speed = u(0.2, 1.0), u(0.2, 1.0)
run = lambda: daedal.solve(daedal.MechanicalSystem(1.0, lambda t, q, v: [mu * np.sign(speed - v[0])], n_q=1), (0.0, 5.0), ([0.0], [0.0]))
read = lambda sol: [sol.q[0, -1], sol.v[0, -1]]
stick = speed / mu
expected = [0.5 * mu * stick**2 + speed * (5.0 - stick), speed] if stick < 5.0 else [12.5 * mu, 5.0 * mu]
allowed = 1e-6
""",
    "ball on a spring": """g, k, h, end = u(2.0, 20.0), 10.0 ** u(1.0, 6.0), u(0.3, 2.0), u(1.0, 4.0)
run = lambda: daedal.solve(daedal.MechanicalSystem(1.0, lambda t, q, v: [-g + k * max(0.0, -q[0])], n_q=1), (0.0, end), ([h], [0.0]))
read = lambda sol: [sol.q[0, -1]]
fall, w = math.sqrt(2.0 * h / g), math.sqrt(k)
v = g * fall
touch = 2.0 * (math.pi - math.atan(v * w / g)) / w
s = math.fmod(end, 2.0 * fall + touch)
if s < fall:
    x = h - 0.5 * g * s * s
elif s < fall + touch:
    x = -(v / w) * math.sin(w * (s - fall)) - (g / k) * (1.0 - math.cos(w * (s - fall)))
else:
    x = v * (s - fall - touch) - 0.5 * g * (s - fall - touch) ** 2
expected, allowed = [x], 1e-6 * (1.0 + v) * (1.0 + end / fall) * 3.0
""",
    "thermostat by modes": """low, high, rate = u(0.2, 0.4), u(0.6, 0.9), u(0.5, 2.0)
off = daedal.ODE(lambda t, y: [-rate * y[0]], 1)
on = daedal.ODE(lambda t, y: [rate * (1.0 - y[0])], 1)
changes = [daedal.hybrid.Transition("off", "on", lambda t, y: y[0] - low), daedal.hybrid.Transition("on", "off", lambda t, y: y[0] - high)]
down, up = math.log(high / low) / rate, math.log((1.0 - low) / (1.0 - high)) / rate
cycles = int(rng.integers(1, 6))
run = lambda: daedal.solve(daedal.hybrid.HybridProblem({"off": off, "on": on}, changes), (0.0, cycles * (down + up) + 0.5 * down), ("off", [high]))
read = lambda sol: sol.y[:, -1]
expected, allowed = [high * math.exp(-0.5 * rate * down)], 1e-6 * (1.0 + cycles) * 3.0
""",
    "saturated tank": """a, c, end = u(0.3, 2.0), u(0.2, 0.8), u(3.0, 10.0)
run = lambda: daedal.solve(daedal.ODE(lambda t, y: [min(1.0, max(0.0, c + a * math.sin(t)))], 1), (0.0, end), [0.0])
read = lambda sol: sol.y[:, -1]
s = np.linspace(0.0, end, 2_000_001)
v = np.clip(c + a * np.sin(s), 0.0, 1.0)
expected, allowed = [float(np.sum(0.5 * (v[1:] + v[:-1])) * (s[1] - s[0]))], 1e-6 * end
""",
    "counting by floor": """w, end = u(0.5, 5.0), u(2.0, 20.0)
run = lambda: daedal.solve(daedal.ODE(lambda t, y: [w, math.floor(y[0])], 2), (0.0, end), [0.5, 0.0])
read = lambda sol: [sol.y[1, -1]]
n = math.floor(0.5 + w * end)
expected, allowed = [(sum(range(1, n)) + n * (0.5 + w * end - n)) / w], 1e-6 * n * end
""",
    "event and end together": """b, end = u(0.5, 2.0), u(2.5, 5.0)
run = lambda: daedal.solve(daedal.ODE(lambda t, y: [1.0 if t < b else -1.0], 1), (0.0, end), [0.0], events=daedal.Event(lambda t, y: t - b), breakpoints=[b])
read = lambda sol: [sol.y[0, -1], len([e for e in sol.events if e.kind == "event"])]
expected, allowed = [2.0 * b - end, 1.0], 1e-6
""",
}


def drawn(number: int) -> Script:
    names = list(KINDS)
    name = names[number % len(names)]
    return Script(name, HEAD.format(seed=number) + KINDS[name] + TAIL)
