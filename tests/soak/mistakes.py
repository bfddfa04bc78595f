"""Mistakes of users: each is an error or a warning in words that names the thing; exceptions of functions arrive unchanged."""

from __future__ import annotations

import numpy as np

from soak.case import Script

SCRIPT = '''import math, warnings
import numpy as np
import daedal

n, k, at = {n}, {k}, {at}

def rates(t, y):
    return -np.asarray(y) * np.arange(1.0, n + 1.0)

def late(t):
    return t > at

class Own(Exception):
    pass

names = [f"x{{i}}" for i in range(n)]

def found():
    {run}

must_say = r"""{pattern}"""
'''

ODE = "return daedal.solve(daedal.ODE({f}, n{more}), (0.0, 2.0), {y0}{options}).y[:, -1]"
DAE = "return daedal.solve(daedal.ImplicitDAE({f}, n{more}), (0.0, 2.0), ({y0}, None){options}).y[:, -1]"
MECHANISM = "return daedal.solve(daedal.MechanicalSystem({mass}, {f}{g}, n_q=n{more}), (0.0, 2.0), ({q0}, {v0}){options}).q[:, -1]"
SEMI = "return daedal.solve(daedal.SemiExplicitDAE({f}, {g}, n, 1), (0.0, 2.0), ({y0}, {z0}){options}).y[:, -1]"


def ode(f="rates", y0="np.ones(n)", options="", more=""):
    return ODE.format(f=f, y0=y0, options=options, more=more)


def dae(f="lambda t, y, yp: yp - rates(t, y)", y0="np.ones(n)", options="", more=""):
    return DAE.format(f=f, y0=y0, options=options, more=more)


def mechanism(mass="np.eye(n)", f="lambda t, q, v: -q", g="", q0="np.ones(n)", v0="np.zeros(n)", options="", more=""):
    return MECHANISM.format(mass=mass, f=f, g=g, q0=q0, v0=v0, options=options, more=more)


def semi(
    f="lambda t, y, z: rates(t, y) + z", g="lambda t, y, z: z - np.sin(t)", y0="np.ones(n)", z0="None", options=""
):
    return SEMI.format(f=f, g=g, y0=y0, z0=z0, options=options)


MISTAKES = {
    # shapes
    "too few rates": (ode("lambda t, y: rates(t, y)[1:] if n > 1 else []"), "shape|return|numbers"),
    "too many rates": (ode("lambda t, y: np.append(rates(t, y), 0.0)"), "shape|return|numbers"),
    "rates as a matrix": (ode("lambda t, y: np.outer(rates(t, y), [1.0, 1.0])"), "shape|return"),
    "rates that change their number": (
        ode("lambda t, y: rates(t, y) if not late(t) else np.ones(n + 1)"),
        "shape|return",
    ),
    "no return": (ode("lambda t, y: None"), "None|return"),
    "text returned": (ode("lambda t, y: ['a'] * n"), "number|return|str|float"),
    "complex rates": (ode("lambda t, y: 1j * rates(t, y)"), "(?i)complex"),
    "y0 too long": (ode(y0="np.ones(n + 1)"), "y0|initial|length|entries|values"),
    "y0 too short": (ode(y0="np.ones(n - 1)"), "y0|initial|length|entries|values"),
    "y0 a matrix": (ode(y0="np.ones((n, 2))"), "y0|initial|shape"),
    "y0 with NaN": (ode(y0="np.where(np.arange(n) == k, np.nan, 1.0)"), "(?i)nan|finite"),
    "y0 with infinity": (ode(y0="np.where(np.arange(n) == k, np.inf, 1.0)"), "(?i)inf|finite"),
    "y0 complex": (ode(y0="1j * np.ones(n)"), "real|complex"),
    "y0 text": (ode(y0="['a'] * n"), "number|initial|y0"),
    "y0 None": (ode(y0="None"), "initial|y0|None"),
    "n negative": ("daedal.ODE(rates, -n)", r"\bn\b|size|number"),
    "n zero": ("daedal.ODE(rates, 0)", r"\bn\b|size|number|least"),
    "n a float": ("daedal.ODE(rates, n + 0.5)", r"\bn\b|integer|whole"),
    "mass of a wrong shape": (mechanism(mass="np.eye(n + 1)"), "mass"),
    "mass with NaN": (mechanism(mass="np.full((n, n), np.nan)"), "(?i)mass|nan"),
    "singular mass": (mechanism(mass="np.zeros((n, n))"), "(?i)mass|singular"),
    "forces of a wrong shape": (mechanism(f="lambda t, q, v: np.ones(n + 1)"), "force"),
    "v0 of a wrong shape": (mechanism(v0="np.ones(n + 2)"), r"\bv0?\b"),
    "constraints of a wrong number": (
        mechanism(g=", lambda t, q: [q[0] - 1.0, 0.0 * q[0]]", more=", n_constraints=1"),
        "constraint",
    ),
    "constraint not met": (mechanism(g=", lambda t, q: [q[0] - 3.0]", more=", n_constraints=1"), "constraint|violate"),
    "g of a wrong number": (semi(g="lambda t, y, z: [z[0], z[0]]"), r"\bg\b"),
    "z0 of a wrong length": (semi(z0="np.ones(3)"), "z0|initial|z"),
    "contradicting z0": (semi(z0="[5.0]"), "violate|initial|consistent"),
    "residual of a wrong length": (dae("lambda t, y, yp: np.append(yp, 1.0)"), "residual"),
    "yp0 of a wrong length": (dae().replace("None)", "np.ones(n + 1))"), "y|initial"),
    "contradicting yp0": (dae().replace("None)", "5.0 + np.ones(n))"), "violate|initial|consistent"),
    # names and options
    "a name too few": (ode(more=", names=names[1:]"), "name"),
    "a name twice": (ode(more=", names=['x'] * n") if True else "", "name|x"),
    "an unknown name": (
        "return daedal.solve(daedal.ODE(rates, n, names=names), (0.0, 2.0), np.ones(n))['speed']",
        "speed",
    ),
    "a misspelt start": (ode(y0="{**dict.fromkeys(names, 1.0), 'x_0': 1.0}", more=", names=names"), "x_0"),
    "an unknown method": (ode(options=", method='rk54'"), "rk54"),
    "an unknown formulation": (mechanism(options=", formulation='lagrang'"), "lagrang"),
    "an unknown option": (ode(options=", rtoll=1e-3"), "rtoll"),
    "an unknown parameter": (
        ode(f="lambda t, y, p: rates(t, y) * p['a']", more=", params={'a': 1.0}", options=", params={'b': 1.0}"),
        "'b'",
    ),
    "missing parameters": (
        ode(f="lambda t, y, p: rates(t, y) * p['b']", more=", params={'a': 1.0}"),
        "'b'|KeyError: .b",
    ),
    "an unknown argument": ("daedal.ODE(rates, n, sparsty=None)", "sparsty"),
    "not a function": ("daedal.ODE(3.0, n)", "call|function"),
    "a function of too few arguments": (ode("lambda t: t"), "argument|positional|takes"),
    "a function of too many arguments": (ode("lambda t, y, z, w: y"), "argument|positional|missing"),
    "t_span of one": ("return daedal.solve(daedal.ODE(rates, n), (0.0,), np.ones(n))", "span|interval"),
    "t_span with NaN": ("return daedal.solve(daedal.ODE(rates, n), (0.0, np.nan), np.ones(n))", "(?i)span|nan|finite"),
    "infinite t_span": ("return daedal.solve(daedal.ODE(rates, n), (0.0, np.inf), np.ones(n))", "(?i)span|inf|finite"),
    "t_span reversed names": ("return daedal.solve(daedal.ODE(rates, n), 2.0, np.ones(n))", "span|interval"),
    "t_eval outside": (ode(options=", t_eval=[0.0, 3.0]"), "t_eval"),
    "t_eval unsorted": (ode(options=", t_eval=[1.0, 0.5]"), "t_eval"),
    "t_eval with NaN": (ode(options=", t_eval=[0.0, np.nan]"), "t_eval"),
    # tolerances and steps
    "rtol negative": (ode(options=", rtol=-1e-3"), "rtol"),
    "rtol zero": (ode(options=", rtol=0.0, atol=0.0"), "tol"),
    "rtol NaN": (ode(options=", rtol=np.nan"), "rtol"),
    "rtol text": (ode(options=", rtol='small'"), "rtol"),
    "rtol below round-off": (ode(options=", rtol=1e-18"), "rtol"),
    "rtol above 1": (ode(options=", rtol=10.0"), "rtol"),
    "atol of a wrong length": (ode(options=", atol=np.ones(n + 1)"), "atol"),
    "atol negative": (ode(options=", atol=-1.0"), "atol"),
    "atol NaN": (ode(options=", atol=np.nan"), "atol"),
    "max_step zero": (ode(options=", max_step=0.0"), "max_step"),
    "max_step negative": (ode(options=", max_step=-0.1"), "max_step"),
    "first_step NaN": (ode(options=", first_step=np.nan"), "first_step"),
    "max_steps too few": (ode(options=", max_steps=1, rtol=1e-9"), "max_steps|step"),
    "max_steps a float": (ode(options=", max_steps=1.5"), "max_steps"),
    "fixed_step zero": (ode(options=", fixed_step=0.0"), "fixed_step"),
    "everything below atol": (ode(y0="1e-12 * np.ones(n)"), "atol"),
    # structure
    "a wrong algebraic": (
        dae("lambda t, y, yp: np.append(yp[:-1] + y[:-1], yp[-1] + y[-1])", more=", algebraic=[n - 1]"),
        "algebraic",
    ),
    "algebraic out of range": (dae(more=", algebraic=[n]"), "algebraic"),
    "a wrong sparsity": (ode("lambda t, y: np.roll(y, 1) - 2.0 * y", more=", sparsity=np.eye(n)"), "sparsity"),
    "sparsity of a wrong shape": (ode(more=", sparsity=np.ones((n, n + 1))"), "sparsity"),
    "a wrong bandwidth": (ode("lambda t, y: y[::-1] - 2.0 * y", more=", bandwidth=(0, 0)"), "bandwidth"),
    "a wrong jacobian": (
        ode("lambda t, y: -1e3 * y + np.roll(y, 1)", more=", jacobian=lambda t, y: 5.0 * np.eye(n)"),
        "jacobian",
    ),
    "jacobian of a wrong shape": (
        ode("lambda t, y: -1e3 * y", more=", jacobian=lambda t, y: np.eye(n + 1)", options=", method='radau'"),
        "jacobian",
    ),
    "jacobian with NaN": (
        ode("lambda t, y: -1e3 * y", more=", jacobian=lambda t, y: np.nan * np.eye(n)", options=", method='radau'"),
        "(?i)jacobian|nan",
    ),
    "an equation twice": (
        dae("lambda t, y, yp: np.append(yp[:-1] + y[:-1], yp[0] + y[0])"),
        "(?i)singular|determin|depend",
    ),
    "an equation of nothing": (
        dae("lambda t, y, yp: np.append(yp[:-1] + y[:-1], np.sin(t))"),
        "(?i)singular|determin|contains|equation",
    ),
    "an unknown of nothing": (
        dae("lambda t, y, yp: np.append((yp + y)[:-1], (yp[0] + y[0]) ** 2)"),
        "(?i)singular|determin|contains|occur|appear",
    ),
    # values
    "NaN at the start": (ode("lambda t, y: rates(t, y) * np.nan"), "(?i)nan|finite"),
    "NaN from a time on": (ode("lambda t, y: rates(t, y) + (np.nan if t > at else 0.0)"), "(?i)nan|finite"),
    "infinity from a time on": (ode("lambda t, y: rates(t, y) + (np.inf if t > at else 0.0)"), "(?i)inf|nan|finite"),
    "blow-up": (ode("lambda t, y: y**2"), "(?i)step|grow|singular|overflow|infin|infinity"),
    "a pole": (
        ode("lambda t, y: 1.0 / (at - t) * np.ones(n)"),
        "(?i)step|infin|grow|nan|singular|overflow|^ZeroDivisionError",
    ),
    # functions with memory, exceptions
    "random numbers": (
        ode("lambda t, y: rates(t, y) + 1e-3 * np.random.default_rng().normal(size=n)", options=", max_steps=2000"),
        "random",
    ),
    "a memory": (
        "st = {'on': False}\n    def f(t, y):\n        st['on'] = y[0] < 0.5 or st['on'] and y[0] < 0.8\n        return rates(t, y) * (0.0 if st['on'] else 1.0)\n    "
        + ode("f"),
        "'st'|remember|outside",
    ),
    "a counter": (
        "c = [0]\n    def f(t, y):\n        c[0] += 1\n        return rates(t, y) * (1.0 if c[0] < 10 else 2.0)\n    "
        + ode("f"),
        "'c'|remember|outside",
    ),
    "own exception at once": ("def f(t, y):\n        raise Own('valve 7')\n    " + ode("f"), "^Own: valve 7$"),
    "own exception later": (
        "def f(t, y):\n        if t > at:\n            raise Own('valve 7')\n        return rates(t, y)\n    "
        + ode("f"),
        "^Own: valve 7$",
    ),
    "ValueError later": (
        "def f(t, y):\n        if t > at:\n            raise ValueError('valve 7')\n        return rates(t, y)\n    "
        + dae("lambda t, y, yp: yp - f(t, y)"),
        "^ValueError: valve 7$",
    ),
    "KeyError later": (
        "def f(t, y):\n        if t > at:\n            {}['valve']\n        return rates(t, y)\n    " + ode("f"),
        "^KeyError: 'valve'$",
    ),
    "IndexError later": (
        "def f(t, y):\n        return rates(t, y) + [0.0][int(t > at)]\n    " + ode("f"),
        "^IndexError: list index",
    ),
    "IndexError of y": (ode("lambda t, y: [y[n]] * n"), "^IndexError: index .* out of bounds"),
    "AttributeError": (ode("lambda t, y: y.speed"), "^AttributeError: .*speed"),
    "ZeroDivisionError": (
        "def f(t, y):\n        return rates(t, y) / (0 if t > at else 1)\n    "
        + ode("lambda t, y: list(map(lambda r: float(r) / (0 if t > at else 1), rates(t, y)))"),
        "(?i)ZeroDivision|inf|nan",
    ),
    "StopIteration": (
        "def f(t, y):\n        return rates(t, y) * next(iter([] if t > at else [1.0]))\n    " + ode("f"),
        "^StopIteration",
    ),
    "exception in forces": (
        "def f(t, q, v):\n        if t > at:\n            raise Own('valve 7')\n        return -q\n    "
        + mechanism(f="f"),
        "^Own: valve 7$",
    ),
    "exception in an event": (
        "def e(t, y):\n        if t > at:\n            raise Own('valve 7')\n        return y[0] - 0.5\n    "
        + ode(options=", events=daedal.Event(e)"),
        "^Own: valve 7$",
    ),
    "exception in a jacobian": (
        "def j(t, y):\n        raise Own('valve 7')\n    "
        + ode("lambda t, y: -1e3 * y", more=", jacobian=j", options=", method='radau'"),
        "^Own: valve 7$",
    ),
    "exception for a state": (
        "def f(t, y):\n        if y[0] < 0.6:\n            raise Own('valve 7')\n        return rates(t, y)\n    "
        + ode("f"),
        "^Own: valve 7$",
    ),
    "event of no function": (ode(options=", events=3.0"), "(?i)event"),
    "event of NaN": (ode(options=", events=daedal.Event(lambda t, y: np.nan)"), "(?i)event|nan"),
    "event of wrong arguments": (
        ode(options=", events=daedal.Event(lambda a, b, c, d, e: b[0])"),
        "(?i)event|argument|parameter",
    ),
    "breakpoints outside": (ode(options=", breakpoints=['a']"), "breakpoint"),
    "sensitivities of nothing": (ode(options=", sensitivities=['k']"), "sensitivit|parameter|'k'"),
    "a given time of a solution": (
        "return daedal.solve(daedal.ODE(rates, n), (0.0, 2.0), np.ones(n))(5.0)",
        "5|outside|interval",
    ),
    "pulse that is not traced": (
        "def f(t, y):\n        key = '%d' % int(t * 1e4 / 7)\n        return np.full(n, 1e3 if key == '%d' % int(at * 1e4 / 7) else 0.0)\n    "
        + ode("f"),
        "traced|switch|jump",
    ),
}


def drawn(number: int) -> Script:
    """The mistake changes first; sizes and times are drawn."""
    rng, names = np.random.default_rng(number), list(MISTAKES)
    name = names[number % len(names)]
    run, pattern = MISTAKES[name]
    n = int(rng.integers(2, 6))
    at = round(float(rng.uniform(0.1, 1.8)), 4)
    return Script(f"{name}, n = {n}", SCRIPT.format(n=n, k=int(rng.integers(n)), at=at, run=run, pattern=pattern))
