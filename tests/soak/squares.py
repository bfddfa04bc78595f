"""Square waves and windows whose edges follow from time or from the state; the reference has every edge bisected."""

from __future__ import annotations

import numpy as np

from soak.case import Script

FORMS = {
    "ODE": ("daedal.ODE(lambda t, y: [u(t, y), {rate}], 2)", "[0.0, {x0}]"),
    "ImplicitDAE": ("daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - u(t, y), yp[1] - {rate}], 2)", "([0.0, {x0}], None)"),
}

SCRIPT = """import math
import numpy as np, scipy.signal
import daedal
from soak.squares import integral

T = {span}

def x(t):
    return {path}

def u(t, y):
    return {wave}

def found():
    sol = daedal.solve({problem}, T, {initial})
    assert sol.success, sol.message
    return sol.y[0, -1]

expected, allowed = integral(lambda t: u(t, [0.0, x(t)]), T), 1e-6 * max(1.0, abs(T[1] - T[0]))
"""


def integral(u, span, points: int = 40_000) -> float:
    """The integral of a function that is constant or linear between jumps, each bisected; by the midpoint rule."""
    t = np.linspace(*span, points + 1)
    values = np.array(
        [
            u(
                s,
            )
            for s in t
        ]
    )
    jumps = np.flatnonzero(np.abs(np.diff(values)) > 0.3)
    total = float(np.sum(0.5 * (values[1:] + values[:-1])) * (t[1] - t[0]))
    for k in jumps:
        left, right = t[k], t[k + 1]
        for _ in range(45):
            middle = 0.5 * (left + right)
            left, right = (
                (middle, right) if abs(u(middle) - values[k]) < abs(u(middle) - values[k + 1]) else (left, middle)
            )
        total += values[k] * (left - t[k]) + values[k + 1] * (t[k + 1] - left)
        total -= 0.5 * (values[k] + values[k + 1]) * (t[k + 1] - t[k])
    return total


def _condition(rng) -> tuple[str, str]:
    """A kind and a condition on t, or on the state y[1], of whose path x(t) is known."""
    w, p, c = (round(float(v), 3) for v in (rng.uniform(0.2, 6.0), rng.uniform(-3.0, 3.0), rng.uniform(-0.95, 0.95)))
    v, d = round(float(rng.uniform(0.2, 4.0)), 3), round(float(rng.uniform(0.1, 0.9)), 3)
    period = round(float(rng.uniform(0.4, 4.0)), 3)
    return [
        ("sine", f"math.sin({w} * t + {p}) > {c}"),
        ("cosine", f"math.cos({w} * t + {p}) < {c}"),
        ("np.sin", f"np.sin({w} * t) >= {c}"),
        ("remainder", f"(t - {p}) % {period} < {d * period:.4f}"),
        ("fmod", f"abs(math.fmod(t - {p}, {period})) < {d * period:.4f}"),
        ("parity", f"math.floor(t / {period} + {p}) % 2 == 0"),
        ("floor division", f"t // {period} % 3 == 1"),
        ("product of sines", f"math.sin({w} * t) * math.sin({v} * t + {p}) > {0.9 * c:.4f}"),
        ("sum of sines", f"math.sin({w} * t) + math.cos({v} * t + {p}) > {c}"),
        ("two sines", f"math.sin({w} * t) > 0 and math.cos({v} * t + {p}) > {c}"),
        ("either sine", f"math.sin({w} * t) > {c} or math.sin({v} * t) < -{d}"),
        ("chirp", f"math.sin({0.3 * v:.4f} * t**2 + {p}) > {c}"),
        ("sine of sine", f"math.sin({v} * t + 2.0 * math.sin({0.5 * w:.4f} * t)) > {c}"),
        ("damped sine", f"math.exp(-0.05 * abs(t)) * math.sin({w} * t + {p}) > {0.3 * c:.4f}"),
        ("power of a sine", f"math.sin({w} * t + {p}) ** 3 > {c**3:.5f}"),
        ("arctan2", f"math.atan2(math.sin({w} * t), math.cos({w} * t)) > {c}"),
        ("narrow sine", f"math.sin({w} * t + {p}) > {1.0 - 10.0 ** rng.uniform(-6.0, -1.0):.7f}"),
        ("narrow product", f"math.sin({0.5 * w:.4f} * t) * math.sin({1.5 * w:.4f} * t) > {0.9 * d:.4f}"),
        ("absolute sine", f"abs(math.sin({w} * t + {p})) > {d}"),
        ("sign of sine", f"np.sign(math.sin({w} * t + {p})) > 0"),
        ("state", f"y[1] > {c}"),
        ("state window", f"abs(y[1] - {c}) < {10.0 ** rng.uniform(-3.0, -0.5):.5f}"),
        ("sine of state", f"math.sin({2.0 * w:.4f} * y[1] + {p}) > {c}"),
        ("remainder of state", f"y[1] % {0.3 * period:.4f} < {0.3 * d * period:.5f}"),
        ("state against time", f"y[1] > math.sin({w} * t + {p})"),
        ("product with state", f"y[1] * math.sin({w} * t) > {0.3 * c:.4f}"),
        ("square of state", f"(y[1] - {c}) ** 2 < {10.0 ** rng.uniform(-5.0, -1.0):.7f}"),
    ][rng.integers(27)]


def drawn(number: int) -> Script:
    """A condition, how the wave is made of it, the path of the state, the form, the direction."""
    rng = np.random.default_rng(number)
    kind, condition = _condition(rng)
    wave = str(
        rng.choice([f"1.0 if {condition} else 0.0", f"np.where({condition}, 1.0, -1.0)", f"1.0 * ({condition})"])
    )
    if " and " in condition or " or " in condition:
        wave = f"1.0 if {condition} else 0.0"
    if kind == "sine" and rng.random() < 0.3:
        kind, wave = (
            "scipy.signal.square",
            f"scipy.signal.square({rng.uniform(0.3, 5.0):.4f} * t, {rng.uniform(0.1, 0.9):.3f})",
        )
    f, p = round(float(rng.uniform(0.3, 2.0)), 3), round(float(rng.uniform(-3.0, 3.0)), 3)
    rate, path = [
        (f"{f} * math.cos({f} * t + {p})", f"math.sin({f} * t + {p})"),
        (f"{0.2 * f:.4f}", f"{0.2 * f:.4f} * t - {0.3 * f:.4f}"),
    ][rng.integers(2)]
    form = str(rng.choice(list(FORMS)))
    problem, initial = FORMS[form]
    end = float(rng.choice([5.0, 10.0, 30.0]))
    span = [(0.0, end), (end, 0.0), (-0.4 * end, 0.6 * end)][rng.integers(3)]
    source = SCRIPT.format(
        span=span, path=path, wave=wave, problem=problem.format(rate=rate), initial=initial.format(x0=f"x({span[0]})")
    )
    return Script(f"square wave, {kind}, {form}" + ", backwards" * (span[1] < span[0]), source)
