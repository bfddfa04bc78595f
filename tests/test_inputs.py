"""Inputs of problems: constants, functions of time, tables and samples, in all classes; what is refused."""

from math import exp, sin

import numpy as np
import pytest

import daedal

TIGHT = {"rtol": 1e-10, "atol": 1e-12}
MASS = [[1.0, 0.0], [0.0, 0.0]]


def lag(**options):
    return daedal.ODE(lambda t, y, u: [u - y[0]], 1, inputs=["u"], **options)


def lags():
    """y' = u - y in every class of problems, with what reads y of a solution."""
    alone, pair = lambda sol: sol.y[0], [[0.0], None]
    second = daedal.SecondOrderDAE(lambda t, x, xp, xpp, u: [xp[0] + x[0] - u], 1, order=[1], names="x", inputs="u")
    point = daedal.MechanicalSystem(1.0, lambda t, q, v, u: [u - v[0]], n_q=1, names="x", inputs=["u"])
    dae = daedal.ImplicitDAE(lambda t, y, yp, u: [yp[0] + y[1], y[0] - y[1] - u], 2, inputs=["u"])
    mass = daedal.MassMatrixDAE(lambda t, y, u: [-y[1], y[0] - y[1] - u], 2, MASS, inputs=["u"])
    semi = daedal.SemiExplicitDAE(lambda t, y, z: [-z[0]], lambda t, y, z, u: [y[0] - z[0] - u], 1, 1, inputs=["u"])
    return {
        "ODE": (lag(), [0.0], alone),
        "ImplicitDAE": (dae, ([0.0, 0.0], None), alone),
        "MassMatrixDAE": (mass, ([0.0, 0.0], None), alone),
        "SemiExplicitDAE": (semi, pair, alone),
        "SecondOrderDAE": (second, ([0.0], [0.0]), lambda sol: sol["x"]),
        "MechanicalSystem": (point, ([0.0], [0.0]), lambda sol: sol["x'"]),
    }


def held(*pieces):
    """y(1) of y' = u - y, y(0) = 0, for u that is constant between times."""
    y = 0.0
    for begin, end, u in pieces:
        y = u + (y - u) * exp(begin - end)
    return y


@pytest.mark.parametrize("name", lags())
def test_inputs_of_all_classes_are_constants_functions_and_samples(name):
    problem, initial, read = lags()[name]
    options = {"correct_initial": True, "rtol": 1e-9, "atol": 1e-12}
    for given, expected in (
        (2.0, held((0.0, 1.0, 2.0))),
        (lambda t: np.exp(-t), exp(-1.0)),
        (([0.0, 0.3, 0.7], [1.0, -1.0, 2.0]), held((0.0, 0.3, 1.0), (0.3, 0.7, -1.0), (0.7, 1.0, 2.0))),
        (daedal.Table([0.0, 0.5], [1.0, 3.0], kind="previous"), held((0.0, 0.5, 1.0), (0.5, 1.0, 3.0))),
    ):
        sol = daedal.solve(problem, (0.0, 1.0), initial, inputs={"u": given}, **options)
        assert sol.success and read(sol)[-1] == pytest.approx(expected, abs=2e-7)


def test_samples_held_to_first_order_are_lines():
    times = np.linspace(0.0, 1.0, 6)
    sol = daedal.solve(lag(), (0.0, 1.0), [0.0], inputs={"u": (times, 2.0 * times)}, hold="first", **TIGHT)
    assert sol.y[0, -1] == pytest.approx(2.0 * exp(-1.0), abs=1e-10)


def test_steps_end_at_jumps_and_only_there():
    sol = daedal.solve(lag(), (0.0, 1.0), [0.0], inputs={"u": ([0.0, 0.37], [1.0, -1.0])}, **TIGHT)
    assert np.count_nonzero(np.abs(sol.t - 0.37) < 1e-12) >= 1
    assert sol(0.37 + 1e-9)[0] < sol(0.37)[0] and sol(0.37 - 1e-9)[0] < sol(0.37)[0]


def test_machine_code_serves_all_values():
    problem = lag()
    first = daedal.solve(problem, (0.0, 1.0), [0.0], inputs={"u": 1.0})
    other = daedal.solve(problem, (0.0, 1.0), [0.0], inputs={"u": ([0.0, 0.5], [1.0, 3.0])})
    assert "traced" in first.functions["f"] and first.stats.first_use >= 0.0
    assert other.stats.first_use == 0.0


def test_arguments_are_inputs_by_name_or_all_of_them():
    given = {"b": 3.0, "a": np.array([1.0, 2.0])}
    by_vector = daedal.ODE(lambda t, y, p, w: [p["k"] * w[0] + w[1] + 10.0 * w[2]], 1, params={"k": 7.0}, inputs=given)
    by_name = daedal.ODE(lambda t, y, p, a, b: [p["k"] * b + a[0] + 10.0 * a[1]], 1, params={"k": 7.0}, inputs=given)
    without = daedal.ODE(lambda t, y, a: [21.0 + a @ np.array([1.0, 10.0])], 1, inputs=given)
    for problem in (by_vector, by_name, without):
        assert problem.inputs.labels == ("b", "a[0]", "a[1]") and problem.inputs.size == 3
        for compile in ("auto", "never"):
            sol = daedal.solve(problem, (0.0, 1.0), [0.0], compile=compile)
            assert sol.y[0, -1] == pytest.approx(42.0)
    changed = by_name.with_inputs(b=0.0).with_params({"k": 1.0})
    assert daedal.solve(changed, (0.0, 1.0), [0.0]).y[0, -1] == pytest.approx(21.0)
    assert daedal.solve(by_name, (0.0, 1.0), [0.0], inputs=[0.0, 1.0, 0.0]).y[0, -1] == pytest.approx(1.0)


def pendulum_on_a_cart():
    """A cart that is pushed, with a pendulum in Cartesian coordinates; the constraint takes no input."""
    return daedal.MechanicalSystem(
        [2.0, 0.5, 0.5],
        lambda t, q, v, p, push: [push - 0.1 * v[0], 0.0, -0.5 * p["g"]],
        lambda t, q: [(q[1] - q[0]) ** 2 + q[2] ** 2 - 1.0],
        n_q=3,
        n_constraints=1,
        params={"g": 9.81},
        names=["cart", "x", "y"],
        inputs=["push"],
    )


def test_a_mechanism_with_samples_equals_one_with_break_points():
    start = ([0.0, 0.6, -0.8], [0.0, 0.0, 0.0])
    problem = pendulum_on_a_cart()
    sol = daedal.solve(problem, (0.0, 2.0), start, inputs={"push": ([0.0, 0.5, 1.3], [2.0, -4.0, 0.5])}, **TIGHT)
    other = daedal.solve(
        problem,
        (0.0, 2.0),
        start,
        inputs={"push": lambda t: 2.0 if t < 0.5 else (-4.0 if t < 1.3 else 0.5)},
        breakpoints=[0.5, 1.3],
        **TIGHT,
    )
    assert sol.y[:, -1] == pytest.approx(other.y[:, -1], abs=1e-9)


def test_events_take_inputs_and_parameters():
    problem = daedal.ODE(lambda t, y, p, u: [p["k"] * u], 1, params={"k": 2.0}, inputs=["u"])
    events = [
        daedal.Event(lambda t, y, u: y[0] - u, name="reached"),
        daedal.Event(lambda t, y, p: y[0] - p["k"], name="k"),
    ]
    sol = daedal.solve(problem, (0.0, 2.0), [0.0], inputs={"u": ([0.0, 1.0], [0.25, 1.0])}, events=events, **TIGHT)
    assert [(e.name, round(e.t, 8)) for e in sol.events] == [
        ("reached", 0.5),
        ("reached", 1.0),  # where u jumps
        ("reached", 1.25),
        ("k", 1.75),
    ]


def test_modes_have_inputs():
    fall = daedal.MechanicalSystem(1.0, lambda t, q, v, lift: [lift - 10.0], n_q=1, inputs=["lift"])
    bounce = daedal.hybrid.Transition(
        "flight", "flight", lambda t, q, v: q[0], direction=-1, reset=lambda t, q, v: (q, -v), name="bounce"
    )
    ball = daedal.hybrid.HybridProblem({"flight": fall}, [bounce])
    start = ("flight", ([1.0], [0.0]))
    sol = daedal.solve(ball, (0.0, 1.0), start, inputs={"lift": ([0.0, 0.2], [10.0, 8.0])}, rtol=1e-9)
    assert not len(sol.events) and sol.y[0, -1] == pytest.approx(1.0 - 0.8**2)
    sol = daedal.solve(ball.with_inputs(lift=2.0), (0.0, 0.6), start, rtol=1e-9)
    assert sol.events[0].t == pytest.approx(0.5)


def test_a_prepared_solver_takes_inputs():
    solver = daedal.prepare(lag(), **TIGHT)
    for u in (1.0, -2.0):
        assert solver.solve((0.0, 1.0), [0.0], inputs={"u": u}).y[0, -1] == pytest.approx(held((0.0, 1.0, u)))
    sol = solver.with_inputs(u=([0.0, 0.5], [1.0, 0.0])).solve((0.0, 1.0), [0.0])
    assert sol.y[0, -1] == pytest.approx(held((0.0, 0.5, 1.0), (0.5, 1.0, 0.0)))


def test_solutions_are_differentiated_by_constant_inputs():
    problem = daedal.ODE(lambda t, y, p, u: [p[0] * (u - y[0])], 1, params=[1.0], inputs=["u"])
    sol = daedal.solve(problem, (0.0, 1.0), [0.0], sensitivities=["u", "p[0]"], inputs={"u": 2.0}, rtol=1e-9)
    assert sol.sensitivity("u")[0, -1] == pytest.approx(1.0 - exp(-1.0), abs=1e-7)
    assert sol.sensitivity("p[0]")[0, -1] == pytest.approx(2.0 * exp(-1.0), abs=1e-7)


@pytest.mark.parametrize(
    ("inputs", "options", "words"),
    [
        ({"w": 1.0}, {}, "'w' is not an input of the problem; known: 'u'"),
        ({"u": [1.0, 2.0]}, {}, "input 'u' is a number, got shape \\(2,\\)"),
        ({"u": float("nan")}, {}, "input 'u' is not finite"),
        ({"u": "fast"}, {}, "input 'u' must be a number"),
        ({"u": lambda a, b: 0.0}, {}, "called with t only, got \\(a, b\\)"),
        ({"u": ([0.0, 1.0], [1.0, 2.0, 3.0])}, {}, "2 times and 3 values"),
        ({"u": ([1.0, 0.0], [1.0, 2.0])}, {}, "times must increase"),
        ({"u": 1.0}, {"hold": "second"}, "hold must be 'zero' or 'first'"),
        (lambda t: [1.0, 2.0], {}, "f returned an array of shape"),
    ],
)
def test_wrong_inputs_of_a_run_are_refused(inputs, options, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        daedal.solve(lag(), (0.0, 1.0), [0.0], inputs=inputs, **options)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (3, "inputs must be a list of names"),
        ([], "inputs is empty"),
        ([1], "inputs must have names"),
        (["u", "u"], "'u' twice"),
        (["y"], "'y' is the name of a variable"),
        ({"u": [[1.0]]}, "must be a number or a vector"),
    ],
)
def test_wrong_inputs_of_a_problem_are_refused(inputs, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        daedal.ODE(lambda t, y, u: [u[0] - y[0]], 1, names=["y"], inputs=inputs)


def test_functions_with_other_arguments_are_refused():
    with pytest.raises(daedal.InvalidProblemError, match="it is called as f\\(t, y, u\\)"):
        daedal.ODE(lambda t, y, u, w: [u - w], 1, inputs=["force"])
    with pytest.raises(daedal.InvalidProblemError, match="defined without inputs"):
        daedal.solve(daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, 1.0), [1.0], inputs={"u": sin})
