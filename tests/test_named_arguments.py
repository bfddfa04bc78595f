"""Functions of the state get what their parameters are called: events, guards, resets, outputs and costs."""

import numpy as np
import pytest

import daedal
from daedal.problems.arguments import FIRST, PARAMS, SECOND, TIME, WHOLE, StateArguments

NUMBERS, NAMED = np.array([9.81, 0.8]), {"g": 9.81, "h": 0.8}
FALLEN = np.sqrt(2.0 * 0.2 / 9.81)
SPAN = (0.0, 0.44)


def fall(params=NUMBERS):
    key = "g" if isinstance(params, dict) else 0
    return daedal.ODE(lambda t, y, p: [y[1], -p[key]], 2, params=params)


def falling_mass():
    return daedal.MechanicalSystem(1.0, lambda t, q, v, p: [-p["g"]], n_q=1, params=NAMED)


def decay():
    f, g = lambda t, y, z, p: [-z[0] * p["k"]], lambda t, y, z, p: [z[0] - y[0]]
    return daedal.SemiExplicitDAE(f, g, n_y=1, n_z=1, params={"k": 1.0, "h": 0.5})


def end(problem, span, initial, function, **options):
    sol = daedal.solve(problem, span, initial, events=daedal.Event(function, terminal=True), rtol=1e-8, **options)
    assert sol.status == "event"
    return sol.t[-1]


@pytest.mark.parametrize(
    "function",
    [
        lambda t, y, p: y[0] - p[1],
        lambda t, y, params: y[0] - params[1],
        lambda t, y, yp, p: y[0] - p[1] + 0.0 * yp[0],
        lambda t, y, p, yp: y[0] - p[1] + 0.0 * yp[0],
        lambda t, y, dydt, parameters: y[0] - parameters[1] + 0.0 * dydt[0],
        lambda t, state, p: state[0] - p[1],
        lambda p, y: y[0] - p[1],
    ],
)
def test_an_event_gets_parameters_by_their_name(function):
    assert end(fall(), SPAN, [1.0, 0.0], function) == pytest.approx(FALLEN, rel=1e-6)
    assert end(fall(NAMED), SPAN, [1.0, 0.0], lambda t, y, p: y[0] - p["h"]) == pytest.approx(FALLEN, rel=1e-6)


def test_names_of_the_problems_own_functions_count():
    problem = daedal.ODE(lambda t, u, k: [u[1], -k[0]], 2, params=NUMBERS)
    assert end(problem, SPAN, [1.0, 0.0], lambda t, u, k: u[0] - k[1]) == pytest.approx(FALLEN, rel=1e-6)
    assert end(problem, SPAN, [1.0, 0.0], lambda t, u, du, k: u[0] - k[1]) == pytest.approx(FALLEN, rel=1e-6)


def test_other_classes_of_problems():
    down = end(falling_mass(), SPAN, ([1.0], [0.0]), lambda t, q, p: q[0] - p["h"])
    assert down == pytest.approx(FALLEN, rel=1e-6)
    assert end(falling_mass(), SPAN, ([1.0], [0.0]), lambda t, v: v[0] + 2.0) == pytest.approx(2.0 / 9.81, rel=1e-6)
    for function in (lambda t, y, p: y[0] - p["h"], lambda t, z, p: z[0] - p["h"], lambda t, y, z, p: z[0] - p["h"]):
        assert end(decay(), (0.0, 2.0), ([1.0], [1.0]), function) == pytest.approx(np.log(2.0), rel=1e-6)
    second = daedal.SecondOrderDAE(lambda t, x, xp, xpp, p: [xpp[0] + p["g"]], 1, params=NAMED)
    found = end(second, SPAN, ([1.0], [0.0]), lambda t, x, p: x[0] - p["h"], method="modified_bdf")
    assert found == pytest.approx(FALLEN, rel=1e-4)


def test_what_is_ambiguous_is_refused_with_the_right_form():
    with pytest.raises(daedal.InvalidProblemError, match=r"events\[0\] takes \(t, y, a\); expected .*\(t, y, p\)"):
        daedal.solve(fall(), SPAN, [1.0, 0.0], events=lambda t, y, a: y[0] - a[1])
    with pytest.raises(daedal.InvalidProblemError, match=r"takes \(t, v, q, x\); expected \(t, q\), \(t, q, v\)"):
        daedal.solve(falling_mass(), SPAN, ([1.0], [0.0]), events=lambda t, v, q, x: q[0])


def test_events_in_ensembles_and_compiled_by_numba():
    event = daedal.Event(lambda t, y, p: y[0] - p[1], terminal=True)
    ensemble = daedal.solve_many(fall(), SPAN, [1.0, 0.0], params=[NUMBERS, NUMBERS], events=event, workers=1)
    assert ensemble.final.t == pytest.approx(FALLEN, rel=1e-4)
    mass = daedal.Event(lambda t, q, p: q[0] - p["h"], terminal=True)
    heights = {"h": np.array([0.8, 0.9])}
    ensemble = daedal.solve_many(falling_mass(), SPAN, ([1.0], [0.0]), params=heights, events=mass, workers=1)
    assert ensemble.final.t == pytest.approx([FALLEN, np.sqrt(2.0 * 0.1 / 9.81)], rel=1e-4)
    numba = pytest.importorskip("numba")
    compiled = fall().compiled("numba")
    function = numba.njit(lambda t, y, p: y[0] - p[1])
    assert end(compiled, SPAN, [1.0, 0.0], function) == pytest.approx(FALLEN, rel=1e-6)


def test_guards_and_resets():
    hit = daedal.hybrid.Transition(
        "fall",
        "fall",
        guard=lambda t, y, p: y[0] - p["h"],
        direction=-1,
        reset=lambda t, y, p: ([p["h"] + 1.0, 0.0], None),
        name="hit",
    )
    problem = daedal.hybrid.HybridProblem({"fall": fall(NAMED)}, [hit])
    sol = daedal.solve(problem, (0.0, 0.3), ("fall", ([1.0, 0.0], None)), rtol=1e-8)
    assert sol.events[0].t == pytest.approx(FALLEN, rel=1e-6) and sol.y[0, -1] > 1.7
    mass = daedal.hybrid.HybridProblem(
        {"fall": falling_mass()},
        [daedal.hybrid.Transition("fall", None, guard=lambda t, q, p: q[0] - p["h"], direction=-1, name="hit")],
    )
    sol = daedal.solve(mass, SPAN, ("fall", ([1.0], [0.0])), rtol=1e-8)
    assert sol.t[-1] == pytest.approx(FALLEN, rel=1e-6)
    ensemble = daedal.solve_many(mass, SPAN, ("fall", ([1.0], [0.0])), params={"h": np.array([0.8, 0.9])}, workers=1)
    assert ensemble.final.t == pytest.approx([FALLEN, np.sqrt(2.0 * 0.1 / 9.81)], rel=1e-3)


def test_costs_and_outputs():
    mass = falling_mass()
    for cost in (lambda t, q, p: q[0] * p["h"], lambda t, q, v, p: q[0] * p["h"], lambda t, y, p: y[0] * p["h"]):
        found = daedal.gradient(mass, (0.0, 0.5), ([1.0], [0.0]), final_cost=cost)
        assert found["g"] == pytest.approx(-0.8 * 0.5 * 0.25, rel=1e-5)
        assert found["h"] == pytest.approx(1.0 - 0.5 * 9.81 * 0.25, rel=1e-5)
    times = np.linspace(0.0, 0.5, 6)
    for output in (lambda t, q, v: v[0], lambda t, v: v[0], lambda t, q, v, p: v[0] + 0.0 * p["h"]):
        data = {"t": times, "speed": -9.0 * times}
        found = daedal.fit(mass, data, ["g"], initial=([1.0], [0.0]), outputs={"speed": output})
        assert found.params["g"] == pytest.approx(9.0, rel=1e-5)
    with pytest.raises(daedal.InvalidProblemError, match=r"outputs\['rate'\] takes yp, but it is a function of the st"):
        data = {"t": times, "rate": times}
        daedal.fit(fall(NAMED), data, ["g"], initial=[1.0, 0.0], outputs={"rate": lambda t, y, yp: yp[0]})


@pytest.mark.parametrize(
    ("problem", "function", "places"),
    [
        (fall(), lambda t, y: 0, (TIME, WHOLE)),
        (fall(), lambda a, b: 0, (TIME, WHOLE)),
        (fall(), lambda t, y, yp: 0, (TIME, FIRST, SECOND)),
        (fall(), lambda a, b, c, d: 0, (TIME, FIRST, SECOND, PARAMS)),
        (decay(), lambda t, y: 0, (TIME, WHOLE)),
        (decay(), lambda t, a, b, p: 0, (TIME, FIRST, SECOND, PARAMS)),
        (falling_mass(), lambda t, q: 0, (TIME, FIRST)),
        (falling_mass(), lambda t, x, v: 0, (TIME, FIRST, SECOND)),
        (falling_mass(), lambda t, y, k=3: 0, (TIME, WHOLE)),
        (decay(), lambda y: 0, None),
        (decay(), lambda t, y, yp: 0, None),
    ],
)
def test_what_each_argument_is(problem, function, places):
    arguments = StateArguments(problem, True, not isinstance(problem, daedal.ODE))
    if places is None:
        with pytest.raises(daedal.InvalidProblemError, match=r"the function takes .*; expected"):
            arguments.of(function, "the function")
    else:
        assert arguments.of(function, "the function") == places
