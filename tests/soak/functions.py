"""Random small functions of (t, y) in all styles of Python: a trace has their values, or says why there is none."""

from __future__ import annotations

import contextlib

import numpy as np

from soak.case import Script

SCRIPT = """import bisect, functools, itertools, math, operator, random, types
import numpy as np, scipy.interpolate, scipy.signal, scipy.special
from soak.functions import compared

table, grid = np.array([0.5, -1.0, 2.0, 4.0, 8.0, 3.0]), np.array([-2.0, -1.0, 0.5, 1.0, 2.5])
mask, matrix = np.array([True, False, True]), np.array([[1.0, -0.5, 0.2], [0.3, 2.0, -1.0], [0.1, 0.4, -0.7]])
knots, heights = np.array([-2.0, -1.0, 0.0, 0.5, 2.0]), np.array([1.0, -1.0, 0.5, 2.0, 1.0])
cubic, pchip = scipy.interpolate.CubicSpline(knots, heights), scipy.interpolate.PchipInterpolator(knots, heights)
line = scipy.interpolate.interp1d(knots, heights, fill_value="extrapolate")
basis = scipy.interpolate.make_interp_spline(knots, heights)
gains, box = {{"k": 1.5, "d": -0.5, "up": 2.0, "low": 0.25}}, types.SimpleNamespace(k=0.7, on=True, n=2, names=("k", "d"))

def scaled(x, factor=2.0, *, shift=0.0):
    return factor * x + shift

def larger(*values, floor=-1.0):
    out = floor
    for v in values:
        if v > out:
            out = v
    return out

def f(t, y):
{body}

def found():
    return compared(f, {seed})

expected, allowed = 0.0, 1e-15
must_say = "^Untraceable: .* line [0-9]+|^Untraceable: returns"
"""


def compared(function, seed: int) -> float:
    """The largest difference of the trace of a function and itself at 300 points, relative to its values.

    A function that is not traced raises its reason. Where Python raises, the trace must not have a value.
    """
    from symbolic_tools import machine, traced

    rng = np.random.default_rng(seed)
    points = [*rng.uniform(-3.0, 3.0, (200, 4)), *np.round(rng.uniform(-3.0, 3.0, (100, 4)) * 2.0) / 2.0]
    call, worst = machine(traced(function, 3), 3), 0.0
    for t, *y in np.array(points).tolist():
        try:
            values = np.asarray(function(t, np.array(y)), dtype=float)
        except (ValueError, ArithmeticError):
            values = None
        except TypeError:  # round(np.where(...)) has none anywhere
            return 0.0
        status, found = call(t, y)
        if values is None or status != 0:
            if (status == 0) if values is None else np.isfinite(values).all():
                raise AssertionError(f"at t = {t}, y = {y}: Python gives {values}, the trace {status, found}")
            continue
        if found.shape != values.shape:
            raise AssertionError(f"the shapes are {values.shape} and {found.shape}")
        error = _difference(found, values)
        for _ in range(8 if error > 1e-13 else 0):  # what round-off in the arguments does to the function itself
            nudge, shift = 1.0 + 1e-13 * rng.normal(size=4), 1e-300 * rng.normal(size=4)  # zeros have either sign
            with contextlib.suppress(ValueError, ArithmeticError):
                nearby = function(t * nudge[0] + shift[0], np.array(y) * nudge[1:] + shift[1:])
                error *= error > 2.0 * _difference(nearby, values)
        worst = max(worst, error)
    return worst


def _difference(found, values) -> float:
    found = np.asarray(found, dtype=float)
    same = (found == values) | (np.isnan(found) & np.isnan(values))
    error = np.where(same, 0.0, np.abs(found - values) / (1.0 + np.abs(values)))
    return float(np.max(np.where(np.isnan(error), np.inf, error), initial=0.0))


class Writer:
    """Statements and expressions of random kind; ``names`` holds the local variables by kind."""

    def __init__(self, rng):
        self.rng, self.lines, self.depth = rng, [], 0
        self.names = {"float": ["t", "y[0]", "y[1]", "y[2]"], "int": [], "bool": [], "vector": ["y"]}

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def number(self):
        return self.pick(["0.5", "-1.0", "2.0", "0.3", "1.5", "3", "-2", "1", "0.25", "1e-3"])

    def float(self, d=3):
        if d <= 0 or self.rng.random() < 0.15:
            return self.pick([*self.names["float"], *self.names["float"], self.number()])
        f, b, i, v = (lambda k=kind: getattr(self, k)(d - 1) for kind in ("float", "bool", "int", "vector"))
        return self.pick(
            [
                lambda: f"({f()} {self.pick('+-*')} {f()})",
                lambda: f"({f()} {self.pick('+-*')} {f()})",
                lambda: f"{f()} / (1.0 + {f()} ** 2)",
                lambda: f"({f()} if {b()} else {f()})",
                lambda: f"{self.pick(['math', 'np'])}.{self.pick(['sin', 'cos', 'tanh'])}({f()})",
                lambda: (
                    f"np.{self.pick(['arctan', 'sign', 'floor', 'ceil', 'abs', 'square', 'cbrt', 'trunc', 'rint'])}({f()})"
                ),
                lambda: f"math.{self.pick(['atan', 'floor', 'ceil', 'fabs', 'trunc', 'erf'])}({f()})",
                lambda: f"abs({f()})",
                lambda: f"{self.pick(['max', 'min'])}({f()}, {f()}{self.pick(['', f', {f()}'])})",
                lambda: f"np.{self.pick(['maximum', 'minimum', 'hypot', 'copysign', 'arctan2'])}({f()}, {f()} + 0.01)",
                lambda: f"math.{self.pick(['copysign', 'hypot', 'atan2'])}({f()} + 0.01, {f()} + 0.01)",
                lambda: f"({f()} % {self.pick(['0.7', '2', '-1.5', '3.0'])})",
                lambda: f"({f()} // {self.pick(['0.7', '2', '-1.5'])})",
                lambda: f"math.fmod({f()}, {self.pick(['0.7', '2'])})",
                lambda: f"divmod({f()}, {self.pick(['0.7', '2'])})[{self.pick('01')}]",
                lambda: f"math.exp(-abs({f()}))",
                lambda: f"np.sqrt({f()} ** 2 + {self.pick(['1', '0.5'])})",
                lambda: f"np.log1p(abs({f()}))",
                lambda: f"abs({f()}) ** {self.pick(['0.5', '1.5', '2'])}",
                lambda: f"np.where({b()}, {f()}, {f()})",
                lambda: f"np.clip({f()}, -1.0, {self.pick(['1', '0.5'])})",
                lambda: f"np.interp({f()}, grid, table[:5]{self.pick(['', ', left=0.0', ', right=-1.0'])})",
                lambda: f"np.heaviside({f()}, {self.pick(['0.5', '0', '1'])})",
                lambda: f"{self.pick(['cubic', 'pchip', 'line', 'basis'])}({f()})",
                lambda: f"scipy.special.{self.pick(['expit', 'erf', 'erfc', 'ndtr', 'exprel', 'expm1'])}({f()})",
                lambda: f"scipy.signal.{self.pick(['square', 'sawtooth'])}({f()}, {self.pick(['0.3', '0.5'])})",
                lambda: f"gains[{self.pick(['chr(107)', repr('d'), repr('up'), 'box.names[0]'])}] * {f()}",
                lambda: f"(gains['k'] if {b()} else gains.get('low', 1.0))",
                lambda: f"scaled({f()}{self.pick(['', ', 0.5', ', shift=1.0', ', factor=-1', f', shift={f()}'])})",
                lambda: f"larger({f()}, {f()}{self.pick(['', ', floor=0.0', f', floor={f()}'])})",
                lambda: f"table[np.searchsorted(grid, {f()}{self.pick(['', ', side=' + repr('right')])})]",
                lambda: f"table[np.digitize({f()}, grid)]",
                lambda: f"({f()}, {f()})[{b()}]",
                lambda: f"({b()}) * {f()}",
                lambda: f"float({b()})",
                lambda: f"float({i()})",
                lambda: f"({i()} + {f()})",
                lambda: f"({b()} and {f()} or {f()})",
                lambda: f"np.{self.pick(['sum', 'mean', 'max', 'min', 'prod', 'median', 'ptp', 'std', 'var'])}({v()})",
                lambda: f"({v()}).{self.pick(['sum', 'mean', 'max', 'min', 'prod'])}()",
                lambda: f"np.sum({v()}, where=mask)",
                lambda: f"np.max({v()}, initial={self.pick(['0.5', '-1'])})",
                lambda: f"np.linalg.norm({v()}{self.pick(['', ', 1', ', np.inf'])})",
                lambda: f"({v()} @ {v()})",
                lambda: f"np.dot({v()}, {v()})",
                lambda: f"({v()})[{self.pick(['0', '1', '-1'])}]",
                lambda: f"sum({v()}{self.pick(['', ', 1.0'])})",
                lambda: f"{self.pick(['max', 'min'])}({v()}, key=abs)",
                lambda: f"math.prod({v()}, start={self.pick(['1', '2.0'])})",
                lambda: f"functools.reduce(operator.{self.pick(['add', 'mul', 'sub'])}, {v()})",
                lambda: f"sorted({v()})[{self.pick('012')}]",
                lambda: f"np.polyval(table[:3], {f()})",
                lambda: f"float(np.select([{b()}, {b()}], [{f()}, {f()}], {self.number()}))",
                lambda: f"float(np.piecewise({f()}, [{b()}, {b()}], [lambda x: x * x, {self.number()}, -1.0]))",
                lambda: f"np.nan_to_num(np.sqrt({f()}), nan={self.pick(['0.0', '2.0'])})",
                lambda: f"(lambda x: x * {self.number()} + t)({f()})",
                lambda: f"next(x for x in ({f()}, 1.0))",
                lambda: f"(0.0 if np.isnan(np.log({f()})) else {f()})",
                lambda: f"np.float64({f()})",
                lambda: (
                    f"np.{self.pick(['remainder', 'fmod', 'mod', 'floor_divide'])}({f()}, {self.pick(['0.7', '2'])})"
                ),
                lambda: f"np.add({f()}, {b()})",
                lambda: f"operator.{self.pick(['add', 'mul', 'sub'])}({f()}, {f()})",
                lambda: f"np.trapezoid({v()})",
                lambda: f"box.k * {f()} ** box.n",
                lambda: f"np.deg2rad({f()})",
                lambda: f"-{f()}",
                lambda: f"np.square({f()}) - np.reciprocal(2.0 + abs({f()}))",
            ]
        )()

    def bool(self, d=2):
        if d <= 0 or self.rng.random() < 0.1:
            return self.pick(self.names["bool"] or [f"t > {self.number()}", f"y[{self.pick('012')}] < {self.number()}"])
        f, b, i, v = (lambda k=kind: getattr(self, k)(d - 1) for kind in ("float", "bool", "int", "vector"))
        return self.pick(
            [
                lambda: f"({f()} {self.pick(['<', '<=', '>', '>='])} {f()})",
                lambda: f"({f()} {self.pick(['<', '<=', '>', '>='])} {self.number()})",
                lambda: f"({self.number()} < {f()} <= {self.number()})",
                lambda: f"({f()} {self.pick(['==', '!='])} {self.number()})",
                lambda: f"({b()} {self.pick(['and', 'or'])} {b()})",
                lambda: f"(({f()} > 0) {self.pick('&|^')} ({f()} < 1))",
                lambda: f"(not {b()})",
                lambda: f"bool({f()})",
                lambda: f"({i()} {self.pick(['<', '==', '!=', '>='])} {self.pick('012')})",
                lambda: f"np.{self.pick(['any', 'all'])}({v()} > {self.number()})",
                lambda: f"{self.pick(['any', 'all'])}(x > {self.number()} for x in {v()})",
                lambda: f"({v()} > 0).{self.pick(['any', 'all'])}()",
                lambda: f"np.logical_{self.pick(['and', 'or', 'xor'])}({b()}, {b()})",
                lambda: f"np.isfinite({f()})",
                lambda: f"(box.on and {b()})",
                lambda: f"(({b()}) == ({b()}))",
                lambda: f"isinstance({self.pick(['t', 'y[0]'])}, float)",
                lambda: f"operator.{self.pick(['lt', 'ge'])}({f()}, {f()})",
                lambda: f"(({b()}) is True)" if self.rng.random() < 0.1 else f"(({b()}) == True)",
                lambda: f"({f()} in (0.0, 0.5, 1.0))",
            ]
        )()

    def int(self, d=2):
        if d <= 0 or self.rng.random() < 0.1:
            return self.pick(self.names["int"] or ["math.floor(t)", f"int(y[{self.pick('012')}])", "2"])
        f, b, i, v = (lambda k=kind: getattr(self, k)(d - 1) for kind in ("float", "bool", "int", "vector"))
        return self.pick(
            [
                lambda: f"math.{self.pick(['floor', 'ceil', 'trunc'])}({f()})",
                lambda: f"int({f()})",
                lambda: f"round({f()})",
                lambda: f"({i()} {self.pick(['+', '-', '*'])} {self.pick(['2', '3', i()])})",
                lambda: f"({i()} % {self.pick(['2', '3', '-3'])})",
                lambda: f"({i()} // {self.pick(['2', '3', '-3'])})",
                lambda: f"({i()} & {self.pick(['1', '3', '7'])})",
                lambda: f"int({b()})",
                lambda: f"({f()} > 0) + ({f()} > 1)",
                lambda: f"sum([{b()}, {b()}])",
                lambda: f"np.sum({v()} > {self.number()})",
                lambda: f"np.count_nonzero({v()} > 0)",
                lambda: f"len([x for x in {v()} if x > {self.number()}])",
                lambda: f"abs({i()})",
                lambda: f"int(np.searchsorted(grid, {f()}))",
                lambda: f"divmod({i()}, 3)[1]",
                lambda: f"{i()} ** 2",
                lambda: f"np.argmax({v()})",
                lambda: f"bisect.bisect([-1.0, 0.0, 1.0], {f()})",
                lambda: f"({i()} if {b()} else {i()})",
                lambda: f"-{i()}",
            ]
        )()

    def vector(self, d=2):
        """Of three entries."""
        if d <= 0 or self.rng.random() < 0.2:
            return self.pick(self.names["vector"])
        f, v = (lambda k=kind: getattr(self, k)(d - 1) for kind in ("float", "vector"))
        return self.pick(
            [
                lambda: f"({v()} {self.pick('+-*')} {v()})",
                lambda: f"({v()} * {f()})",
                lambda: f"np.{self.pick(['sin', 'abs', 'tanh', 'floor', 'sign', 'square'])}({v()})",
                lambda: f"np.array([{f()}, {f()}, {f()}])",
                lambda: f"({v()})[::-1]",
                lambda: f"(matrix @ {v()})",
                lambda: f"np.where({v()} > {self.number()}, {v()}, {self.pick([v(), '0.0'])})",
                lambda: f"np.cross({v()}, {v()})",
                lambda: f"np.roll({v()}, 1)",
                lambda: f"np.cumsum({v()})",
                lambda: f"np.sort({v()})",
                lambda: f"np.clip({v()}, {self.pick(['None', '-1'])}, 1.0)",
                lambda: f"np.maximum({v()}, {self.number()})",
                lambda: f"({v()} % 0.7)",
                lambda: f"np.concatenate([({v()})[:1], ({v()})[1:]])",
                lambda: f"np.einsum('ij,j->i', matrix, {v()})",
                lambda: f"np.full(3, {f()})",
                lambda: f"np.array([x * {self.number()} for x in {v()}])",
                lambda: f"table[np.searchsorted(grid, {v()})]",
                lambda: f"np.stack([{v()}, {v()}])[{self.pick('01')}]",
                lambda: f"np.outer({v()}, {v()}).sum(axis={self.pick('01')})",
                lambda: f"np.gradient({v()})",
                lambda: f"({v()}).copy()",
                lambda: f"np.linalg.solve(matrix + 3.0 * np.eye(3), {v()})",
                lambda: f"(({v()} > 0) * 1.0)",
                lambda: f"np.interp({v()}, grid, table[:5])",
                lambda: f"cubic({v()})",
                lambda: f"np.nan_to_num(np.sqrt({v()}))",
                lambda: f"np.round({v()})",
                lambda: f"np.append(({v()})[:2], {f()})",
            ]
        )()

    def line(self, text):
        self.lines.append("    " * (self.depth + 1) + text)

    def block(self, name):
        """An assignment to a name that is already there, in branches or loops."""
        self.depth += 1
        self.line(f"{name} {self.pick(['=', '+=', '-=', '='])} {self.float(2)}")
        self.depth -= 1

    def statement(self, k):
        kind = self.pick(
            ["float", "float", "int", "bool", "vector", "if", "for", "fill", "while", "slots", "closure", "match"]
        )
        name = f"{kind[0]}{k}"
        if kind in ("float", "int", "bool", "vector"):
            self.line(f"{name} = {getattr(self, kind)(3)}")
            self.names[kind].append(name)
            return
        if kind in ("fill", "slots"):
            self.line(f"{name} = np.{self.pick(['zeros(3)', 'empty(3)', 'ones(3)', 'zeros_like(y)'])}")
            if kind == "fill":
                self.line(f"for j in range(3):\n{'    ' * (self.depth + 2)}{name}[j] = {self.float(2)} + j * y[j]")
            else:
                self.line(f"{name}[:] = {self.vector(1)}")
                self.line(
                    f"{name}[{self.pick(['0', '1:', '::2', '-1'])}] {self.pick(['=', '+=', '*='])} {self.float(2)}"
                )
                if self.rng.random() < 0.3:
                    self.line(f"{name}[{name} > {self.number()}] = {self.number()}")
            self.names["vector"].append(name)
            return
        self.line(f"{name} = {self.float(1)}")
        if kind == "if":
            self.line(f"if {self.bool(2)}:")
            self.block(name)
            if self.rng.random() < 0.3:
                self.line(f"elif {self.bool(1)}:")
                self.block(name)
            if self.rng.random() < 0.5:
                self.line("else:")
                self.block(name)
        elif kind == "for":
            over = self.pick(["j, x in enumerate(y)", "j, x in zip((2, 0, 1), y)", "j in range(2)", "j in (0, 2)"])
            self.line(f"for {over}:")
            self.depth += 1
            self.line(f"{name} += {self.float(1)} * (j + 1)")
            if self.rng.random() < 0.4:
                self.line(f"if {self.bool(1)}:")
                self.line(f"    {self.pick(['break', 'continue', f'{name} = 0.5'])}")
                self.line(f"{name} -= y[j]")
            self.depth -= 1
        elif kind == "while":
            self.line(f"j{k} = 0")
            self.line(f"while j{k} < 3 and {name} < {self.number()}:")
            self.line(f"    {name} += {self.pick(['1.0', 'abs(y[1])', '0.5 + t * t'])}")
            self.line(f"    j{k} += 1")
            self.names["int"].append(f"j{k}")
        elif kind == "closure":
            self.line(f"def g{k}(x, p={self.number()}):")
            self.line(f"    return x * {name} + p if x > {self.number()} else {self.float(1)}")
            name = f"g{k}({self.float(1)})"
        else:
            self.line(f"match {self.pick(['t > 0', '(t > 0, y[0] > 0)', self.int(1)])}:")
            self.line(f"    case {self.pick(['True', '(True, True)', '0', '1 | 2'])}:")
            self.depth += 1
            self.block(name)
            self.depth -= 1
            self.line(f"    case _:\n{'    ' * (self.depth + 3)}{name} = {self.float(1)}")
        self.names["float"].append(name)


def drawn(number: int) -> Script:
    """A few statements, and what is returned of them in some form."""
    writer = Writer(np.random.default_rng(number))
    for k in range(int(writer.rng.integers(1, 4))):
        writer.statement(k)
    result = writer.pick(["[{0}, {1}]", "np.array([{0}, {1}])", "({0}, {1})", "np.append({2}, {0})", "{2}", "[{0}]"])
    writer.line("return " + result.format(writer.float(3), writer.float(2), writer.vector(2)))
    return Script("function", SCRIPT.format(body="\n".join(writer.lines), seed=number))
