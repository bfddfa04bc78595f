"""One pulse of area 1, in every spelling, in four forms of a problem, of three widths, anywhere in the interval."""

from __future__ import annotations

import numpy as np

from soak.case import Script

WIDTHS = (0.3, 0.03, 1e-3)
FORMS = {
    "ODE": ("daedal.ODE(lambda t, y: [u(t)], 1)", "[0.0]", "sol.y[0, -1]"),
    "ImplicitDAE": ("daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - u(t)], 1)", "([0.0], None)", "sol.y[0, -1]"),
    "SemiExplicitDAE": (
        "daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] - u(t)], 1, 1)",
        "([0.0], None)",
        "sol.y[0, -1]",
    ),
    "MechanicalSystem": (
        "daedal.MechanicalSystem(1.0, lambda t, q, v: [u(t)], n_q=1)",
        "([0.0], [0.0])",
        "sol.v[0, -1]",
    ),
}

# Of the time t, begin a, end b, middle c, half width r and height h; what stands before "return" is set up once.
SPELLINGS = {
    "if": "if a < t < b:\n        return h\n    return 0.0",
    "if and": "return h if t > a and t <= b else 0.0",
    "if not": "return 0.0 if not (t >= a and t < b) else h",
    "if or": "return 0.0 if t < a or t > b else h",
    "nested if": "if t > a:\n        if t < b:\n            return h\n    return 0.0",
    "early return": "if t < a:\n        return 0.0\n    if t > b:\n        return 0.0\n    return h",
    "abs": "return h if abs(t - c) < r else 0.0",
    "math.fabs": "return h if math.fabs(t - c) <= r else 0.0",
    "square of distance": "return h if (t - c) ** 2 < r**2 else 0.0",
    "product of distances": "return h if (t - a) * (t - b) < 0 else 0.0",
    "np.where": "return np.where((t > a) & (t < b), h, 0.0)",
    "np.where nested": "return np.where(t > a, np.where(t < b, h, 0.0), 0.0)",
    "np.where outer": "return np.where((t < a) | (t > b), 0.0, h)",
    "np.logical_and": "return h * np.logical_and(t > a, t < b)",
    "np.logical_not": "return h * (1 - np.logical_not((t > a) & (t < b)))",
    "np.heaviside": "return h * (np.heaviside(t - a, 0.5) - np.heaviside(t - b, 0.5))",
    "np.sign": "return 0.5 * h * (np.sign(t - a) - np.sign(t - b))",
    "product of signs": "return 0.5 * h * (1.0 - np.sign((t - a) * (t - b)))",
    "np.copysign": "return 0.5 * h * (np.copysign(1.0, t - a) - np.copysign(1.0, t - b))",
    "math.copysign": "return 0.5 * h * (math.copysign(1.0, t - a) - math.copysign(1.0, t - b))",
    "truth values": "return h * (t > a) * (t < b)",
    "difference of truth values": "return h * (float(t > a) - float(t > b))",
    "sum of truth values": "return h * ((t > a) + (t > b) == 1)",
    "int of truth values": "return h * int(t > a) * int(t <= b)",
    "bool": "return h * bool(a < t < b)",
    "index by truth value": "return (0.0, h)[a < t < b]",
    "array by truth value": "return np.array([0.0, h])[int(t > a) - int(t > b)]",
    "dictionary": "return {False: 0.0, True: h}[bool(t > a and t < b)]",
    "np.select": "return np.select([t < a, t < b], [0.0, h], 0.0)",
    "np.piecewise": "return np.piecewise(t, [t < a, (t >= a) & (t < b)], [0.0, h, 0.0])",
    "np.searchsorted": "return table[np.searchsorted(edges, t)]",
    "searchsorted from the right": "return table[np.searchsorted(edges, t, side='right')]",
    "method searchsorted": "return table[edges.searchsorted(t)]",
    "np.digitize": "return table[np.digitize(t, edges)]",
    "bisect": "return table[bisect.bisect(edges.tolist(), t)]",
    "np.interp": "return np.interp(t, [a, a + 1e-9, b, b + 1e-9], [0.0, h, h, 0.0])",
    "triangle by np.interp": "return np.interp(t, [a, c, b], [0.0, 2.0 * h, 0.0])",
    "triangle by max": "return max(0.0, 2.0 * h * (1.0 - abs(t - c) / r))",
    "triangle by np.maximum": "return np.maximum(0.0, 2.0 * h * (1.0 - np.abs(t - c) / r))",
    "triangle by clip": "return np.clip(2.0 * h * (1.0 - abs(t - c) / r), 0.0, None)",
    "parabola by max": "return max(0.0, 1.5 * h * (1.0 - ((t - c) / r) ** 2))",
    "half cosine": "return 0.5 * math.pi * h * math.cos(0.5 * math.pi * (t - c) / r) if abs(t - c) < r else 0.0",
    "difference of ramps": "return (max(t - a, 0.0) - max(t - c, 0.0) * 2.0 + max(t - b, 0.0)) / r**2",
    "min and max": "return h if max(a, min(t, b)) == t else 0.0",
    "floor": "return h if math.floor((t - a) / (b - a)) == 0 else 0.0",
    "np.floor": "return h * (np.floor((t - a) / (b - a)) == 0)",
    "ceil": "return h if math.ceil((t - a) / (b - a)) == 1 else 0.0",
    "int": "return h if t > a and int((t - a) / (b - a)) == 0 else 0.0",
    "round": "return h if round((t - c) / (2.0 * r)) == 0 else 0.0",
    "np.rint": "return h * (np.rint((t - c) / (2.0 * r)) == 0)",
    "floor division": "return h if (t - a) // (b - a) == 0 else 0.0",
    "divmod": "return h if divmod(t - a, b - a)[0] == 0 else 0.0",
    "remainder": "return h if (t - a) % 50.0 < b - a else 0.0",
    "math.fmod": "return h if t > a and math.fmod(t - a, 50.0) < b - a else 0.0",
    "np.mod": "return np.where(np.mod(t - a, 50.0) < b - a, h, 0.0)",
    "cosine": "return h if math.cos(0.1 * (t - c)) > math.cos(0.1 * r) else 0.0",
    "np.cos": "return h * (np.cos(0.1 * (t - c)) > np.cos(0.1 * r))",
    "square wave": "return 0.5 * h * (1.0 + scipy.signal.square(0.1 * (t - a), 0.1 * (b - a) / (2.0 * math.pi)))",
    "exponential": "return h if math.exp(t) > math.exp(a) and math.exp(t) < math.exp(b) else 0.0",
    "logarithm": "return h if math.log(a) < math.log(t + 1e-300) < math.log(b) else 0.0",
    "square root": "return h if math.sqrt(abs(t - c)) < math.sqrt(r) else 0.0",
    "arc tangent": "return h if abs(math.atan(t - c)) < math.atan(r) else 0.0",
    "tanh": "return h * (abs(np.tanh(t - c)) < np.tanh(r))",
    "reciprocal": "return h if 1.0 / (1.0 + (t - c) ** 2) > 1.0 / (1.0 + r**2) else 0.0",
    "bell": "return h if math.exp(-((t - c) ** 2)) > math.exp(-(r**2)) else 0.0",
    "norm": "return h if np.linalg.norm([t - c, 0.0]) < r else 0.0",
    "math.hypot": "return h if math.hypot(t - c, 0.0) < r else 0.0",
    "cubic": "return h if (t - a) ** 3 > 0 and (t - b) ** 3 < 0 else 0.0",
    "cbrt": "return h if np.cbrt(t - a) > 0 > np.cbrt(t - b) else 0.0",
    "any": "return h if any(x < t < x + (b - a) for x in (a, 70.0)) else 0.0",
    "all": "return h if all([t > a, t < b]) else 0.0",
    "loop over windows": "total = 0.0\n    for x, z in ((a, c), (c, b), (80.0, 81.0)):\n"
    "        if x <= t < z:\n            total += h\n    return total",
    "list of values": "return [0.0, h, 0.0][sum(t > x for x in (a, b))]",
    "array of conditions": "return h * np.all(np.array([t - a, b - t]) > 0.0)",
    "helper": "def on(x):\n        return 1.0 if x > 0 else 0.0\n    return h * on(t - a) * on(b - t)",
    "CubicSpline window": "return h * (spline(t) > 0.0)",
    "interp1d": "return line(t)",
    "PPoly": "return pieces(t)",
    "while": "k = 0\n    while k < 2 and t > (a, b)[k]:\n        k += 1\n    return h if k == 1 else 0.0",
    "walrus": "return h if (s := t - a) > 0 and s < b - a else 0.0",
    "match": "match (t > a, t < b):\n        case (True, True):\n            return h\n        case _:\n            return 0.0",
    "max of two": "return h * max(0.0, min(1.0, 1.0 if (t - a) * (b - t) > 0 else 0.0))",
    "isnan": "return 0.0 if np.isnan(np.sqrt((t - a) * (b - t))) else h",
    "nan_to_num": "return np.nan_to_num(4.0 * h / math.pi * np.sqrt(1.0 - ((t - c) / r) ** 2))",
}

SETUP = {
    "searchsorted": "edges, table = np.array([a, b]), np.array([0.0, h, 0.0])",
    "digitize": "edges, table = np.array([a, b]), np.array([0.0, h, 0.0])",
    "bisect": "edges, table = np.array([a, b]), np.array([0.0, h, 0.0])",
    "CubicSpline": "spline = scipy.interpolate.CubicSpline([-100.0, a, b, 100.0], [-1.0, 0.0, 0.0, -1.0])",
    "interp1d": "line = scipy.interpolate.interp1d([a, c, b], [0.0, 2.0 * h, 0.0], bounds_error=False, fill_value=0.0)",
    "PPoly": "pieces = scipy.interpolate.PPoly(np.array([[0.0, h, 0.0]]), np.array([-100.0, a, b, 100.0]))",
}

SCRIPT = """import bisect, math
import numpy as np, scipy.interpolate, scipy.signal
import daedal

a, b = {a!r}, {b!r}
c, r, h = 0.5 * (a + b), 0.5 * (b - a), 1.0 / (b - a)
{setup}

def u(t):
    {body}

def found():
    sol = daedal.solve({problem}, {span}, {initial})
    assert sol.success, sol.message
    return {value}

expected, allowed = {sign} * (1.0), 1e-6
"""


def drawn(number: int) -> Script:
    """The spelling changes first, then the form, then the width."""
    rng, names = np.random.default_rng(number), list(SPELLINGS)
    rest, k = divmod(number, len(names))
    form, width = list(FORMS)[rest % len(FORMS)], WIDTHS[rest // len(FORMS) % len(WIDTHS)]
    name, begin = names[k], float(rng.uniform(0.5, 9.0))
    backwards = bool(rng.random() < 0.2)
    problem, initial, value = FORMS[form]
    source = SCRIPT.format(
        a=begin,
        b=begin + width,
        setup=next((text for word, text in SETUP.items() if word in SPELLINGS[name] + name), ""),
        body=SPELLINGS[name],
        problem=problem,
        span="(10.0, 0.0)" if backwards else "(0.0, 10.0)",
        initial=initial,
        value=value,
        sign=-1.0 if backwards else 1.0,
    )
    return Script(f"pulse by {name}, {form}, width {width:g}" + ", backwards" * backwards, source)
