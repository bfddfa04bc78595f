"""Switches in time whose arguments are not affine; each edge that a dense sampling shows has to be an event."""

from __future__ import annotations

import numpy as np

from soak.case import Script

SCRIPT = """import math
import numpy as np, scipy.signal
import daedal
from soak.clocks import edges
from soak.squares import integral

T = {span}

def u(t):
    return {wave}

def found():
    sol = daedal.solve(daedal.ODE(lambda t, y: [u(t)], 1), T, [0.0])
    assert sol.success, sol.message
    located = np.append(sol.events.t, np.inf)
    missed = sum(np.min(np.abs(located - t)) > 1e-6 for t in edges(u, T))
    return [sol.y[0, -1], missed]

expected = [integral(lambda t: float(u(t)), T), 0]
allowed = [1e-6 * max(1.0, abs(T[1] - T[0])), 1e-3]
"""


def edges(u, span, points: int = 40_000) -> list[float]:
    """Where a function jumps by more than 0.3 inside an interval, by bisection between points."""
    t = np.linspace(*span, points + 1)
    values = np.array([float(u(s)) for s in t])
    found = []
    for k in np.flatnonzero(np.abs(np.diff(values)) > 0.3):
        left, right = t[k], t[k + 1]
        for _ in range(50):
            middle = 0.5 * (left + right)
            nearer = abs(u(middle) - values[k]) < abs(u(middle) - values[k + 1])
            left, right = (middle, right) if nearer else (left, middle)
        middle = 0.5 * (left + right)
        if abs(u(middle + 1e-9) - u(middle - 1e-9)) > 0.3:  # not a value at a single point
            found.append(middle)
    return [s for s in found if min(abs(s - span[0]), abs(s - span[1])) > 1e-6]


def _conditions(rng) -> list[tuple[str, str]]:
    """Conditions on t by name."""
    w, v = (round(float(x), 3) for x in rng.uniform(0.3, 7.0, 2))
    c, p, d = (round(float(x), 3) for x in (rng.uniform(-0.95, 0.95), rng.uniform(-3.0, 3.0), rng.uniform(0.1, 0.9)))
    e = round(float(10.0 ** rng.uniform(-4.0, -1.0)), 6)
    return [
        ("sine of a square", f"math.sin({0.5 * w:.4f} * t**2 + {p}) > {c}"),
        ("narrow sine of a square", f"np.sin({0.3 * w:.4f} * t**2 + {p}) > {1.0 - e:.6f}"),
        ("sine of a cube", f"np.sin({0.02 * w:.5f} * t**3 - {v} * t) < {c}"),
        ("product of waves", f"np.sin({w} * t) * np.cos({v} * t) > {0.9 * c:.4f}"),
        ("narrow product of waves", f"np.sin({w} * t) * np.cos({v} * t) > {0.9 * d:.4f}"),
        ("decaying wave", f"np.exp(-{0.1 * d:.4f} * t) * np.sin({7.0 * w:.4f} * t) > {0.4 * c:.4f}"),
        ("growing period", f"t % (1.0 + {0.1 * d:.4f} * np.sin(t)) < {d}"),
        ("remainder of a square", f"({0.3 * w:.4f} * t**2) % 1.7 < {d}"),
        ("nested floor", f"math.floor(t + 0.5 * math.floor({w} * t)) % 2 == 0"),
        ("floor of a wave", f"np.floor(3.0 * np.sin({w} * t) + np.floor({0.3 * v:.4f} * t)) % 2 == 1"),
        ("floor division of a square", f"(t**2 + {p}) // {v} % 2 == 0"),
        ("rounded wave", f"round(2.0 * math.sin({w} * t + {p}) + t) % 3 == 1"),
        ("sine of a root", f"math.sin({3.0 * w:.4f} * math.sqrt(1.0 + t * t)) > {c}"),
        ("sine of a logarithm", f"math.sin({2.0 * w:.4f} * math.log(1.5 + abs(t))) > {c}"),
        ("modulated sine", f"np.sin({w} * t + 1.5 * np.sin({v} * t)) > {c}"),
        ("tangent", f"math.tan({0.3 * w:.4f} * t + {p}) > {3.0 * c:.4f}"),
        ("polynomial", f"(t - {w}) * (t - {w} - {e}) * (t - {v}) > 0"),
        ("quotient", f"np.sin({w} * t) / (2.0 + np.cos({v} * t)) > {0.4 * c:.4f}"),
        ("absolute wave", f"abs(np.sin({w} * t)) * abs(np.cos({v} * t + {p})) > {d}"),
        ("larger wave", f"max(math.sin({w} * t), math.cos({v} * t**2 / 3.0)) > {d}"),
        ("power", f"np.sin({w} * t) ** 4 > {1.0 - e:.6f}"),
        ("arctan2", f"math.atan2(math.sin({w} * t), math.cos({v} * t) + 0.1) > {c}"),
        ("hyperbolic tangent", f"math.tanh(20.0 * math.sin({w} * t**2 / 4.0)) > {c}"),
        ("Gaussian", f"math.exp(-((t - {w}) / {e}) ** 2) > 0.5"),
        ("train of Gaussians", f"math.exp(-((t % {v:.3f} - {0.5 * v:.4f}) / {e}) ** 2) > 0.5"),
    ]


def _waves(rng) -> list[tuple[str, str]]:
    """Piecewise constant functions of t by name."""
    w, v, d = (round(float(x), 3) for x in (rng.uniform(0.3, 5.0), rng.uniform(0.3, 5.0), rng.uniform(0.1, 0.9)))
    inner = str(
        rng.choice([f"{0.4 * w:.4f} * t**2", f"{w} * t + np.sin({v} * t)", f"{5.0 * w:.4f} * np.sqrt(t + 20.0)"])
    )
    wave = f"np.sin({inner})"
    return [
        ("square", f"scipy.signal.square({inner}, {d})"),
        ("sawtooth", f"1.0 * (scipy.signal.sawtooth({inner}) > {2.0 * d - 1.0:.4f})"),
        ("heaviside", f"np.heaviside({wave} - {d}, 0.5)"),
        ("select", f"np.select([{wave} > {d}, {wave} < -{d}], [1.0, -1.0], 0.0)"),
        ("piecewise", f"np.piecewise({wave}, [{wave} > {d}, {wave} < -{d}], [1.0, -1.0, 0.0])"),
        ("searchsorted", f"float(np.searchsorted([-{d}, 0.1, {d}], {wave}))"),
        ("digitize", f"float(np.digitize({wave}, [-{d}, 0.1, {d}]))"),
        ("look-up", f"np.array([0.0, 2.0, 1.0])[np.searchsorted([-{d}, {d}], {wave})]"),
        ("sign", f"np.sign({wave} - {d})"),
        ("copysign", f"math.copysign(1.0, {wave} - {d})"),
        ("clip", f"np.clip(1e9 * ({wave} - {d}), 0.0, 1.0)"),
        ("where in where", f"np.where({wave} > 0, np.where(np.cos({v} * t) > {d}, 1.0, 2.0), 0.0)"),
    ]


def drawn(number: int) -> Script:
    """A wave, or what a condition makes of numbers, and the interval."""
    rng = np.random.default_rng(number)
    end = float(rng.choice([4.0, 9.0, 15.0]))
    if rng.random() < 0.65:
        conditions = _conditions(rng)
        kind, condition = conditions[rng.integers(len(conditions))]
        wave = str(rng.choice([f"1.0 if {condition} else 0.0", f"np.where({condition}, 1.0, -1.0)"]))
    else:
        waves = _waves(rng)
        kind, wave = waves[rng.integers(len(waves))]
    span = [(0.0, end), (end, 0.0), (-0.3 * end, 0.7 * end)][rng.integers(3)]
    return Script(f"clock, {kind}" + ", backwards" * (span[1] < span[0]), SCRIPT.format(span=span, wave=wave))
