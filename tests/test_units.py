"""Nothing depends on the units of time, of the variables and of the equations."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import daedal

UNITS = st.integers(-12, 12).map(lambda power: 10.0**power)
RTOL = 1e-6
ATOL = 1e-8


def index_1(t, y, yp):
    return [yp[0] + 2.0 * y[0] - y[1], y[1] - y[0] - np.cos(t)]


def floating_capacitor(t, y, yp):
    """Index 2: the charges of a capacitor without a node that is held."""
    return [yp[0] - (np.sin(t) - y[2]), yp[1] + y[3], y[0] - (y[2] - y[3]), y[1] - (y[3] - y[2])]


def differentiator(t, y, yp):
    return [yp[0] - y[1], y[0] - max(0.0, t - 1.0) / 10.0]


def reactor(t, y, yp):
    """Index 2: a flow that keeps a volume on its course."""
    return [yp[0] - (0.5 - y[2]), yp[1] - (1.0 - y[2] * y[1] / y[0] - y[1]), y[0] - 1.0 - 0.1 * np.sin(t)]


PROBLEMS = {
    "index 1": (index_1, [1.0, 2.0]),
    "floating capacitor": (floating_capacitor, [0.0, 0.0, 0.0, 0.0]),
    "differentiator": (differentiator, [0.0, 0.0]),
    "reactor": (reactor, [1.0, 0.0, 0.4]),
}


class Scaled:
    """A problem in other units: y in multiples of `values`, t of `time`, F of `equations`."""

    def __init__(self, name, time, values, equations):
        residual, start = PROBLEMS[name]
        self.time, self.values, self.atol = time, values, ATOL * values
        self.start = values * np.array(start)

        def scaled(t, y, yp):
            return equations * np.array(residual(t / time, y / values, yp * (time / values)))

        self.problem = daedal.ImplicitDAE(scaled, len(start))
        split = 2 if name == "reactor" else 1 if name in ("index 1", "differentiator") else None
        self.n_y = split

    def semi_explicit(self):
        """The same problem as y' = f, 0 = g, where the last equation is the constraint."""
        n_y, residual = self.n_y, self.problem.residual

        def f(t, y, z):
            return np.array(residual(t, np.concatenate([y, z]), np.zeros(n_y + 1)))[:n_y] * self._slope

        def g(t, y, z):
            return residual(t, np.concatenate([y, z]), np.zeros(n_y + 1))[n_y:]

        one = np.zeros(n_y + 1)
        one[0] = self.values / self.time
        at_start = np.concatenate([self.start[:n_y], self.start[n_y:]])
        change = residual(0.0, at_start, one)[0] - residual(0.0, at_start, np.zeros(n_y + 1))[0]
        self._slope = -(self.values / self.time) / change
        return daedal.SemiExplicitDAE(f, g, n_y, 1)

    def options(self):
        return {"rtol": RTOL, "atol": self.atol}

    def end(self, end=2.0, **options):
        sol = daedal.solve(self.problem, (0.0, end * self.time), (self.start, None), **self.options(), **options)
        return sol.y[:, -1] / self.values


def reference(name, end=2.0, **options):
    return Scaled(name, 1.0, 1.0, 1.0).end(end, **options)


REFERENCES = {name: reference(name) for name in PROBLEMS}

units = given(time=UNITS, values=UNITS, equations=UNITS)
cheap = settings(max_examples=12, deadline=None, derandomize=True)


@pytest.mark.parametrize("name", PROBLEMS)
@example(time=1e-12, values=1.0, equations=1.0)
@example(time=1e12, values=1e-12, equations=1e12)
@example(time=1e-9, values=1e-12, equations=1.0)
@units
@cheap
def test_solutions_do_not_depend_on_units(name, time, values, equations):
    found = Scaled(name, time, values, equations).end()
    np.testing.assert_allclose(found, REFERENCES[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["floating capacitor", "differentiator"])
@example(time=1e-12, values=1.0, equations=1.0)
@example(time=1e-9, values=1e-12, equations=1.0)
@units
@cheap
def test_break_points_do_not_depend_on_units(name, time, values, equations):
    found = Scaled(name, time, values, equations).end(breakpoints=[time])
    np.testing.assert_allclose(found, REFERENCES[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("t0", [0.0, 0.7])
@example(time=1e-12, values=1e12, equations=1e-12)
@units
@cheap
def test_consistent_values_do_not_depend_on_units(name, t0, time, values, equations):
    """The differential variables keep their values: the other ones, and the derivatives that occur, are found."""
    one = Scaled(name, 1.0, 1.0, 1.0)
    start = one.start.copy()
    if name in ("reactor", "differentiator"):  # the given values have to satisfy the constraint
        start[0] = 1.0 + 0.1 * np.sin(t0) if name == "reactor" else max(0.0, t0 - 1.0) / 10.0
    expected = daedal.consistent_initial(one.problem, t0, (start, None), **one.options())
    scaled = Scaled(name, time, values, equations)
    y, yp = daedal.consistent_initial(scaled.problem, t0 * time, (values * start, None), **scaled.options())
    np.testing.assert_allclose(y / values, expected[0], rtol=1e-5, atol=1e-6)
    occurs = slice(0, 2) if name in ("floating capacitor", "reactor") else slice(0, 1)
    np.testing.assert_allclose((yp * (time / values))[occurs], expected[1][occurs], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["index 1", "reactor"])
@example(time=1e-12, values=1e12, equations=1.0)
@units
@cheap
def test_semi_explicit_problems_do_not_depend_on_units(name, time, values, equations):
    scaled = Scaled(name, time, values, equations)
    problem = scaled.semi_explicit()
    span, given_values = (0.0, 2.0 * time), scaled.start[: problem.n_y]
    sol = daedal.solve(problem, span, (given_values, None), **scaled.options())
    np.testing.assert_allclose(sol.y[:, -1] / values, REFERENCES[name], rtol=1e-4, atol=1e-5)
    y, z = daedal.consistent_initial(problem, 0.0, (given_values, None), **scaled.options())
    np.testing.assert_allclose(np.concatenate([y, z]) / values, PROBLEMS[name][1], rtol=1e-5, atol=1e-6)
