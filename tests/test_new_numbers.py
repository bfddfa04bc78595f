"""New parameters, new closures and repeated calls: what was made for a function serves all its numbers."""

import math

import numpy as np
import pytest

import daedal
from daedal.symbolic import machine
from daedal.symbolic.tracing import problem as tracing

SPAN = 0.0, 1.0


def kinetics(t, y, p):
    return [-p["a"] * y[0] + y[1], -y[1] * math.exp(-p["b"] * y[0])]


def circle(t, y, yp, p):
    return [yp[0] - p["a"] * y[1], y[0] ** 2 + y[1] ** 2 - p["b"]]


def index_3(t, y, yp, p):
    return [
        yp[0] - y[2],
        yp[1] - y[3],
        yp[2] + y[0] * y[4],
        yp[3] + y[1] * y[4] + p["a"],
        y[0] ** 2 + y[1] ** 2 - p["b"],
    ]


def pendulum(params):
    return daedal.MechanicalSystem(
        mass=lambda t, q, p: np.diag([p["a"], p["a"]]),
        force=lambda t, q, v, p: [0.0, -9.81 * p["a"]],
        constraint=lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - p["b"]],
        n_q=2,
        n_constraints=1,
        params=params,
    )


PROBLEMS = {
    "ode": (lambda p: daedal.ODE(kinetics, 2, params=p), lambda b: [1.0, 1.0]),
    "index 1": (lambda p: daedal.ImplicitDAE(circle, 2, params=p), lambda b: ([0.0, math.sqrt(b)], None)),
    "index 3": (lambda p: daedal.ImplicitDAE(index_3, 5, params=p), lambda b: ([math.sqrt(b), 0, 0, 0, 0], None)),
    "mechanism": (pendulum, lambda b: ([math.sqrt(b), 0.0], [0.0, 0.0])),
}


def bits(sol):
    return [values.tobytes() for values in (sol.t, getattr(sol, "integrated", sol.y))]


@pytest.fixture
def traced(monkeypatch):
    """How many problems are traced."""
    made, trace = [], tracing._traced
    monkeypatch.setattr(tracing, "_traced", lambda *a, **k: made.append(a) or trace(*a, **k))
    return made


@pytest.mark.parametrize("name", PROBLEMS)
def test_other_parameters_give_what_a_problem_stated_with_them_gives(name):
    make, start = PROBLEMS[name]
    stated = make({"a": 1.0, "b": 1.0})
    numbers = [{"a": 1.3, "b": 2.0}, {"a": 0.7, "b": 1.1}, {"a": 1.3, "b": 2.0}]
    found = [bits(daedal.solve(stated, SPAN, start(p["b"]), params=p)) for p in numbers]
    assert found == [bits(daedal.solve(make(p), SPAN, start(p["b"]))) for p in numbers]


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_traced_once_for_all_its_parameters(name, traced):
    make, start = PROBLEMS[name]
    problem = make({"a": 1.0, "b": 1.0})
    daedal.solve(problem, SPAN, start(2.0), params={"a": 1.3, "b": 2.0})
    before = len(traced)
    for b in (1.2, 1.4):
        daedal.solve(problem, SPAN, start(b), params={"a": 0.9, "b": b})
    assert len(traced) == before


def test_parameters_that_only_keep_a_place_do_not_matter():
    def slope(t, y, p):
        return [-float(np.linalg.inv([[p[0]]])[0, 0]) * y[0]]

    problem = daedal.ODE(slope, 1, params=[0.0])
    sol = daedal.solve(problem, SPAN, [1.0], params=[2.0])
    assert sol.y[0, -1] == pytest.approx(math.exp(-0.5), rel=1e-5)


def test_closures_over_other_numbers_share_machine_code(monkeypatch):
    made, generate = [], machine._generated
    monkeypatch.setattr(machine, "_generated", lambda text: made.append(text) or generate(text))

    def final(k):
        return daedal.solve(daedal.ODE(lambda t, y: [-k * y[0] + 0.125 * k], 1), SPAN, [1.0]).y[0, -1]

    rates = [1.1, 1.7, 3.3, 0.3]
    first = final(rates[0])
    before = len(made)
    found = [first, *map(final, rates[1:])]
    assert len(made) == before
    np.testing.assert_allclose(found, [0.125 + 0.875 * math.exp(-k) for k in rates], rtol=1e-5)


def test_functions_given_again_are_not_traced_again(traced):
    rate = [1.0]

    def decay(t, y):
        return [-rate[0] * y[0]]

    def implicit(t, y, yp):
        return [yp[0] + rate[0] * y[0]]

    def finals():
        one = daedal.solve_ivp(decay, SPAN, [1.0], rtol=1e-8, atol=1e-10).y[0, -1]
        return one, daedal.solve_dae(implicit, SPAN, [1.0], rtol=1e-8, atol=1e-10).y[0, -1]

    first = finals()
    count = len(traced)
    assert finals() == first and len(traced) == count
    rate[0] = 2.0  # what they read has changed
    assert finals() == pytest.approx([math.exp(-2.0)] * 2, rel=1e-6)


def test_arguments_that_can_change_are_read_anew():
    names, matrix = ["a"], np.array([[-1.0]])

    def decay(t, y):
        return [-y[0]]

    def implicit(t, y, yp):
        return [yp[0] + y[0]]

    daedal.solve_dae(implicit, SPAN, [1.0], names=names)
    names[0] = "b"
    assert daedal.solve_dae(implicit, SPAN, [1.0], names=names)["b"][0] == 1.0
    daedal.solve_ivp(decay, SPAN, [1.0], jac=matrix)
    matrix[0, 0] = -1e6
    with pytest.warns(daedal.errors.DerivativeWarning, match="is 1e\\+06"):
        daedal.solve_ivp(decay, SPAN, [1.0], jac=matrix)
