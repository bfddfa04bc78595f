"""Simulations: calls in pieces agree with one run, in all classes, methods and modes; states; work; what is refused."""

import copy
import gc
import pickle
import threading
import tracemalloc
from math import exp, sin

import numpy as np
import pytest

import daedal

MASS = [[1.0, 0.0], [0.0, 0.0]]


def lag(**options):
    return daedal.ODE(lambda t, y, u: [u - y[0]], 1, names=["x"], inputs=["u"], **options)


def lags():
    """x' = u - x in every class of problems."""
    second = daedal.SecondOrderDAE(lambda t, x, xp, xpp, u: [xp[0] + x[0] - u], 1, order=[1], names="x", inputs="u")
    point = daedal.MechanicalSystem(1.0, lambda t, q, v, u: [u - v[0]], n_q=1, names="q", inputs=["u"])
    dae = daedal.ImplicitDAE(lambda t, y, yp, u: [yp[0] + y[1], y[0] - y[1] - u], 2, names=["x", "z"], inputs=["u"])
    mass = daedal.MassMatrixDAE(lambda t, y, u: [-y[1], y[0] - y[1] - u], 2, MASS, names=["x", "z"], inputs=["u"])
    semi = daedal.SemiExplicitDAE(
        lambda t, y, z: [-z[0]], lambda t, y, z, u: [y[0] - z[0] - u], 1, 1, names=["x", "z"], inputs=["u"]
    )
    pair = [[0.0, 0.0], None]
    return {
        "ODE": (lag(), [0.0], "x"),
        "ImplicitDAE": (dae, pair, "x"),
        "MassMatrixDAE": (mass, pair, "x"),
        "SemiExplicitDAE": (semi, ([0.0], None), "x"),
        "SecondOrderDAE": (second, ([0.0], [0.0]), "x"),
        "MechanicalSystem": (point, ([0.0], [0.0]), "q'"),
        "HybridProblem": (daedal.hybrid.HybridProblem({"only": lag()}), ("only", [0.0]), "x"),
    }


def pendulum(**options):
    """A pendulum on a string of length 1 that is pushed sideways."""
    return daedal.MechanicalSystem(
        np.eye(2),
        lambda t, q, v, push: [push, -9.81],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
        names=["x", "y"],
        inputs=["push"],
        **options,
    )


HANGING = ([1.0, 0.0], [0.0, 0.0])


def pushes(count):
    return [float(k // 3) for k in range(count)]


@pytest.mark.parametrize("exact", [True, False], ids=["ending", "interpolating"])
@pytest.mark.parametrize("name", lags())
def test_problems_of_all_classes_take_steps_with_inputs_that_jump(name, exact):
    problem, initial, label = lags()[name]
    options = {"correct_initial": True, "rtol": 1e-9, "atol": 1e-12, "exact": exact}
    sim = daedal.Simulation(problem, initial, **options)
    x = 0.0
    for u in (1.0, 1.0, -2.0, 0.5):
        sim.step(0.25, u={"u": u})
        x = u + (x - u) * exp(-0.25)
        assert sim[label] == pytest.approx(x, abs=2e-7) and sim["u"] == u
    assert sim.t == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "dassl", "formulation": "ggl"},
        {"method": "radau", "formulation": "ggl"},
        {"method": "phem56"},
        {"method": "mexx"},
        {"method": "modified_bdf"},
        {"formulation": "baumgarte"},
        {"formulation": "state_space"},
        {"method": "rattle", "fixed_step": 1e-3},
        {"compile": "never"},
    ],
    ids=lambda options: "-".join(map(str, options.values())) or "auto",
)
def test_a_mechanism_in_pieces_agrees_with_one_run_and_a_restored_state_continues_bit_for_bit(options):
    sim = daedal.Simulation(pendulum(), HANGING, **options)
    for _ in range(5):
        sim.step(0.1)
    state = sim.save_state()
    first = [sim.step(0.1, u=[push]) for push in pushes(10)]
    sim.restore(state)
    assert sim.t == state.t and np.array_equal(first, [sim.step(0.1, u=[push]) for push in pushes(10)])
    signal = np.r_[0.0, 0.5 + 0.1 * np.arange(10)], np.r_[0.0, pushes(10)]
    sol = daedal.solve(pendulum(), (0.0, 1.5), HANGING, inputs={"push": signal}, rtol=1e-10, atol=1e-12)
    assert sim.state.y == pytest.approx(sol.y[:, -1], abs=2e-4 if "fixed_step" in options else 3e-5)
    assert abs(sim.state.q @ sim.state.q - 1.0) < 1e-12 and abs(sim.state.q @ sim.state.v) < 1e-12
    assert sim["lambda[0]"] == sim.state.lam[0] == pytest.approx(sol.lam[0, -1], rel=1e-3)


@pytest.mark.parametrize("formulation", ["auto", "dummy_derivatives"])
def test_inputs_act_on_equations_that_are_solved_in_another_form(formulation):
    def residual(t, y, yp, push):
        return [yp[0] - y[2], yp[1] - y[3], yp[2] + y[0] * y[4] - push, yp[3] + y[1] * y[4] + 9.81, y[:2] @ y[:2] - 1.0]

    problem = daedal.ImplicitDAE(residual, 5, inputs=["push"])
    sim = daedal.Simulation(problem, ([1.0, 0.0, 0.0, 0.0, 0.0], None), formulation=formulation)
    mechanism = daedal.Simulation(pendulum(), HANGING)
    for push in (0.0, 1.0, 3.0):
        sim.step(0.2, u=[push])
        mechanism.step(0.2, u=[push])
    assert sim.state.y[:4] == pytest.approx(mechanism.y, abs=1e-5)
    assert sim.state.y[4] == pytest.approx(2.0 * mechanism.state.lam[0], rel=1e-4)


@pytest.mark.parametrize(
    "rate", [lambda u: 2.0 if u > 0.5 else -1.0, lambda u: [1.0, -3.0][int(u)], lambda u: max(u, 0.0)]
)
def test_functions_may_branch_on_inputs(rate):
    sim = daedal.Simulation(daedal.ODE(lambda t, y, u: [rate(u)], 1, inputs=["u"]), [0.0])
    given = (0.0, 1.0, 0.7, -1.0)
    assert [sim.step(1.0, u=[u])[0] for u in given] == pytest.approx(np.cumsum([rate(u) for u in given]))


def robertson():
    return daedal.ImplicitDAE(
        lambda t, y, yp, feed: [
            yp[0] + 0.04 * y[0] - 1e4 * y[1] * y[2] - feed,
            yp[1] - 0.04 * y[0] + 1e4 * y[1] * y[2] + 3e7 * y[1] ** 2,
            y[0] + y[1] + y[2] - 1.0 - feed,
        ],
        3,
        inputs=["feed"],
    )


@pytest.mark.parametrize("method", ["dassl", "radau", "rosenbrock", "extrapolation"])
def test_stiff_equations_in_pieces_agree_with_one_run(method):
    start = ([1.0, 0.0, 0.0], None)
    sim = daedal.Simulation(robertson(), start, method=method)
    for _ in range(10):
        sim.step(0.2)
    state = sim.save_state()
    first = [sim.step(0.2, u=[1e-3 * push]) for push in pushes(10)]
    sim.restore(state)
    assert np.array_equal(first, [sim.step(0.2, u=[1e-3 * push]) for push in pushes(10)])
    times = np.r_[0.0, 2.0 + 0.2 * np.arange(10)]
    signal = times, 1e-3 * np.r_[0.0, pushes(10)]
    options = {"rtol": 1e-9, "atol": 1e-12, "correct_initial": True}
    sol = daedal.solve(robertson(), (0.0, 4.0), start, method="radau", inputs={"feed": signal}, **options)
    assert sim.y == pytest.approx(sol.y[:, -1], abs=1e-6)
    residual = robertson().with_inputs(feed=3e-3).evaluate(sim.t, sim.y, sim.state.yp)
    assert residual == pytest.approx(np.zeros(3), abs=1e-4)


def test_the_history_goes_on_and_steps_that_end_alike_have_the_same_bits():
    problem = daedal.ODE(lambda t, y: [y[1], -(y[0] ** 3)], 2)
    sol = daedal.solve(problem, (0.0, 10.0), [1.0, 0.0], first_step=0.01)
    sim = daedal.Simulation(problem, [1.0, 0.0], first_step=0.01)
    for k in range(1, sol.t.size - 1):
        assert np.array_equal(sim.step_to(sol.t[k]), sol.y[:, k])
    stepper = daedal.Simulation(problem, [1.0, 0.0], first_step=0.01)
    for k in range(1, sol.t.size - 1):
        assert np.array_equal(stepper.internal_step(), sol.y[:, k]) and stepper.t == sol.t[k]
    between = daedal.Simulation(problem, [1.0, 0.0], first_step=0.01)
    for t in np.linspace(0.0, 9.0, 200)[1:]:
        between.step_to(t)
        assert between.y == pytest.approx(sol(t), abs=1e-12)


def test_an_implicit_method_keeps_its_order_and_its_matrices():
    problem = daedal.ODE(lambda t, y: [-1e3 * (y[0] - np.cos(t))], 1)
    sol = daedal.solve(problem, (0.0, 10.0), [1.0], method="dassl")
    sim = daedal.Simulation(problem, [1.0], method="dassl")
    for t in np.linspace(0.0, 10.0, 2001)[1:]:
        sim.step_to(t)
    counts = sim.state.solution.stats
    assert counts.steps < sol.stats.steps + 20 and counts.factorisations < sol.stats.factorisations + 10


def test_events_are_found_and_terminal_ones_stop_a_step_and_can_be_passed():
    problem = daedal.ODE(lambda t, y: [y[1], -y[0]], 2)
    events = [daedal.Event(lambda t, y: y[0], name="zero"), daedal.Event(lambda t, y: y[1], terminal=3, name="top")]
    sim = daedal.Simulation(problem, [0.0, 1.0], events=events, rtol=1e-9, atol=1e-12)
    sim.step_to(20.0)
    assert sim.t == pytest.approx(2.5 * np.pi, abs=1e-7) and abs(sim.y[1]) < 1e-7
    names = [(event.name, round(event.t / np.pi, 6)) for event in sim.events]
    assert names == [("top", 0.5), ("zero", 1.0), ("top", 1.5), ("zero", 2.0), ("top", 2.5)]
    sim.step_to(10.0)
    assert sim.t == 10.0 and sim.events[-1].name == "zero"
    assert sim.y == pytest.approx([np.sin(10.0), np.cos(10.0)], abs=1e-7)


def test_hidden_switches_and_sticking_are_followed_as_in_solve():
    for problem, start in (
        (daedal.ODE(lambda t, y: [y[1], np.sin(t) - 0.5 * np.sign(y[1]) - y[0]], 2), [1.0, 0.0]),
        (daedal.MechanicalSystem(1.0, lambda t, q, v: [np.sin(t) - 0.5 * np.sign(v[0]) - q[0]], n_q=1), ([1.0], [0.0])),
    ):
        sol = daedal.solve(problem, (0.0, 10.0), start)
        for exact in (False, True):
            sim = daedal.Simulation(problem, start, exact=exact)
            state = sim.save_state()
            first = [sim.step(0.25) for _ in range(40)]
            assert sim.y == pytest.approx(sol.y[:, -1], abs=1e-4)
            assert [event.kind for event in sim.events] == [event.kind for event in sol.events]
            sim.restore(state)
            assert np.array_equal(first, [sim.step(0.25) for _ in range(40)])


def test_switches_in_time_are_followed_beyond_the_horizon():
    problem = daedal.ODE(lambda t, y: [(1.0 if np.sin(5.0 * t) > 0.0 else -1.0) - y[0]], 1)
    sim = daedal.Simulation(problem, [1.0], horizon=1.0)
    for _ in range(60):
        sim.step(0.1)
    assert sim.y == pytest.approx(daedal.solve(problem, (0.0, 6.0), [1.0]).y[:, -1], abs=1e-5)
    assert len(sim.events) == 9


def ball():
    fall = daedal.MechanicalSystem(1.0, lambda t, q, v, lift: [lift - 10.0], n_q=1, inputs=["lift"])
    bounce = daedal.hybrid.Transition(
        "flight", "flight", lambda t, q, v: q[0], direction=-1, reset=lambda t, q, v: (q, -0.8 * v), name="bounce"
    )
    return daedal.hybrid.HybridProblem({"flight": fall}, [bounce])


def test_modes_and_their_transitions_are_followed():
    start = ("flight", ([1.0], [0.0]))
    sim = daedal.Simulation(ball(), start, rtol=1e-9)
    for _ in range(11):
        sim.step(0.1, u=[0.0])
    state = sim.save_state()
    first = [sim.step(0.1, u=[0.5]) for _ in range(9)]
    sol = daedal.solve(ball(), (0.0, 2.0), start, rtol=1e-9, inputs={"lift": ([0.0, 1.1], [0.0, 0.5])})
    assert first[-1] == pytest.approx(sol.y[:, -1], abs=1e-7) and sim.mode == "flight"
    assert [event.t for event in sim.events] == pytest.approx([event.t for event in sol.events], abs=1e-7)
    sim.restore(state)
    assert np.array_equal(first, [sim.step(0.1, u=[0.5]) for _ in range(9)])


def test_parameters_may_be_inputs_and_tables_act_beside_them():
    problem = daedal.ODE(lambda t, y, p, u: [p["k"] * (u - y[0])], 1, params={"k": 1.0}, inputs={"u": 1.0})
    sim = daedal.Simulation(problem, [0.0], inputs={"k": 2.0, "u": ([0.0, 0.4], [1.0, 3.0])}, rtol=1e-10, atol=1e-12)
    assert sim.input_names == ("k",)
    sim.step_to(0.7)
    y = 1.0 - exp(-0.8)
    y = 3.0 + (y - 3.0) * exp(-0.6)
    assert sim.y[0] == pytest.approx(y, abs=1e-8)
    sim.step(0.5, u=[0.0])
    assert sim.y[0] == pytest.approx(y, abs=1e-8) and problem.params.given == {"k": 1.0}
    plain = daedal.ODE(lambda t, y, p: [-p["k"] * y[0]], 1, params={"k": 1.0})
    sim = daedal.Simulation(plain, [1.0], inputs=["k"], rtol=1e-10, atol=1e-12)
    sim.step(1.0, u=[2.0])
    assert sim.step(1.0, u={"k": 0.5})[0] == pytest.approx(exp(-2.5), abs=1e-8)


def test_outputs_are_names_and_functions():
    sim = daedal.Simulation(pendulum(), HANGING, outputs=["y", "lambda[0]", lambda t, y: [t, y[0]]])
    found = sim.step(0.2)
    assert sim.output_names == ("y", "lambda[0]", "<lambda>[0]", "<lambda>[1]")
    assert found == pytest.approx([sim["y"], sim["lambda[0]"], 0.2, sim["x"]])
    sim = daedal.Simulation(pendulum(), HANGING, outputs={"height": "y", "side": "x"})
    assert np.array_equal(sim.step(0.2), [sim["height"], sim["side"]])


def test_models_and_circuits_are_simulated():
    circuit = daedal.circuits.parse("""
        V1 in 0 PULSE(0 5 1e-4 1e-6 1e-6 4e-4 1e-3)
        R1 in out 1k
        C1 out 0 1u
    """)
    sim = daedal.Simulation(circuit, {"C1": 0.0}, rtol=1e-8, atol=1e-9, horizon=1e-3)
    for _ in range(20):
        sim.step(1e-4)
    sol = daedal.solve(circuit, (0.0, 2e-3), {"C1": 0.0}, rtol=1e-8, atol=1e-9)
    assert sim["v(out)"] == pytest.approx(sol["v(out)"][-1], rel=1e-5)
    rod = daedal.multibody.Body.rod("rod", length=2.0, mass=1.0)
    model = daedal.multibody.Model(
        daedal.multibody.Revolute("pivot", daedal.multibody.ground, rod.start), gravity=(0.0, -9.81), planar=True
    )
    sim = daedal.Simulation(model, {"pivot": 0.5})
    for _ in range(10):
        sim.step(0.1)
    sol = daedal.solve(model, (0.0, 1.0), {"pivot": 0.5})
    assert sim["pivot"] == pytest.approx(sol["pivot"][-1], abs=1e-5)


def test_the_work_of_a_call_is_bounded_and_goes_on_in_the_next():
    problem = daedal.ODE(lambda t, y: [y[1], -1e4 * y[0]], 2)
    sim = daedal.Simulation(problem, [1.0, 0.0], max_steps=5)
    with pytest.raises(daedal.IntegrationError, match="max_steps = 5 steps reached"):
        sim.step_to(1.0)
    assert 0.0 < sim.t < 1.0 and sim.state.solution.stats.steps == 5
    before = sim.t
    with pytest.raises(daedal.IntegrationError):
        sim.step_to(1.0)
    assert sim.t > before
    exact = daedal.Simulation(problem, [1.0, 0.0], max_steps=100)
    other = daedal.Simulation(problem, [1.0, 0.0])
    for t in np.linspace(0.0, 0.05, 11)[1:]:
        assert np.array_equal(exact.step_to(t), other.step_to(t))


def test_memory_does_not_grow_with_steps():
    sim, u = daedal.Simulation(pendulum(), HANGING), np.zeros(1)

    def steps(count):
        for k in range(count):
            u[0] = k % 7
            sim.step(1e-3, u)

    steps(300)
    gc.collect()
    tracemalloc.start()
    try:
        steps(300)
        first = tracemalloc.get_traced_memory()[0]
        steps(3000)
        assert tracemalloc.get_traced_memory()[0] - first < 3000
    finally:
        tracemalloc.stop()


def test_an_exception_of_the_model_arrives_and_the_simulation_goes_on_from_there():
    def f(t, y, u):
        if isinstance(u, float) and u > 5.0:
            raise RuntimeError("too much")
        return [u]

    sim = daedal.Simulation(daedal.ODE(f, 1, inputs=["u"]), [0.0], compile="never")
    sim.step(1.0, u=[2.0])
    with pytest.raises(RuntimeError, match="too much"):
        sim.step(1.0, u=[9.0])
    assert sim.t == 1.0
    assert sim.step(1.0, u=[1.0])[0] == pytest.approx(3.0)


def test_a_failure_says_why_and_the_state_before_can_be_restored():
    sim = daedal.Simulation(daedal.ODE(lambda t, y: [y[0] ** 2], 1), [1.0])
    sim.step(0.5)
    state = sim.save_state()
    with pytest.raises(daedal.IntegrationError, match="Stopped at t = 1"):
        sim.step(1.0)
    assert sim.t == pytest.approx(1.0, abs=1e-5) and sim.y[0] > 1e5
    sim.restore(state)
    assert sim.t == 0.5 and sim.step(0.25)[0] == pytest.approx(4.0, rel=1e-5)


def test_inputs_that_no_algebraic_variables_satisfy_are_refused_and_differential_variables_do_not_jump():
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z: [-z[0]], lambda t, y, z, u: [z[0] ** 2 - y[0] - u], 1, 1, inputs={"u": 1.0}
    )
    sim, other = (daedal.Simulation(problem, ([1.0], [2.0**0.5])) for _ in range(2))
    before = sim.step(0.1)
    with pytest.raises(daedal.InconsistentInitialError, match=r"The inputs jump at t = 0\.1, where no consistent"):
        sim.step(0.1, u=[-5.0])
    assert sim.t == 0.1 and np.array_equal(sim.y, before) and sim["u"] == 1.0
    other.step_to(0.2)
    assert sim.step_to(0.2) == pytest.approx(other.y, abs=1e-5)
    with pytest.raises(daedal.InconsistentInitialError):
        daedal.solve(problem, (0.0, 0.2), ([1.0], [2.0**0.5]), inputs={"u": ([0.0, 0.1], [1.0, -5.0])})


def test_a_reset_that_is_refused_changes_nothing():
    sim = daedal.Simulation(lag(), [0.0])
    first = sim.step(0.5, u=[1.0])
    for wrong in ([1.0, 2.0], [np.nan]):
        with pytest.raises(daedal.InvalidProblemError):
            sim.reset(wrong)
        assert sim.t == 0.5 and sim["u"] == 1.0 and np.array_equal(sim.y, first)
    with pytest.raises(daedal.InvalidProblemError, match="below the resolution of the time"):
        sim.step(1e-20)
    assert sim.step(np.float32(0.5))[0] == pytest.approx(1.0 - exp(-1.0), abs=1e-5) and type(sim.t) is float


def test_a_simulation_is_used_by_one_thread_at_a_time_and_is_not_copied():
    problem, count = pendulum(), 300
    expected = [daedal.Simulation(problem, HANGING).step(0.01 * count, u=[1.0])]
    shared, refused, own = daedal.Simulation(problem, HANGING), [], []

    def work():
        own.append(daedal.Simulation(problem, HANGING).step(0.01 * count, u=[1.0]))
        for _ in range(count):
            try:
                shared.step(0.01, u=[1.0])
            except daedal.InvalidProblemError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(own, expected * 2) and all("the simulation is in use" in words for words in refused)
    assert shared.t == pytest.approx(0.01 * (2 * count - len(refused)))
    assert shared.state.q @ shared.state.q == pytest.approx(1.0, abs=1e-12)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(daedal.InvalidProblemError, match="cannot be copied or pickled"):
            copied(shared)


def test_a_function_of_the_problem_cannot_step_its_simulation():
    made = []

    def recursive(t, y):
        if made:
            made[0].step(1.0)
        return [1.0]

    made.append(daedal.Simulation(daedal.ODE(recursive, 1), [0.0], compile="never"))
    with pytest.raises(daedal.InvalidProblemError, match="by a function of the problem that calls it"):
        made[0].step(1.0)


def test_reset_begins_again_with_the_same_bits():
    sim = daedal.Simulation(pendulum(), HANGING)
    first = [sim.step(0.1, u=[push]) for push in pushes(6)]
    sim.reset()
    assert sim.t == 0.0 and sim["push"] == 0.0
    assert np.array_equal(first, [sim.step(0.1, u=[push]) for push in pushes(6)])
    sim.reset(([0.0, -1.0], [0.0, 0.0]), t0=2.0)
    assert sim.t == 2.0 and sim.step(1.0)[:2] == pytest.approx([0.0, -1.0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda sim: sim.step(0.0), daedal.InvalidProblemError, "dt must be positive and finite, got 0.0"),
        (lambda sim: sim.step(-1.0), daedal.InvalidProblemError, "only advances"),
        (lambda sim: sim.step(float("nan")), daedal.InvalidProblemError, "dt must be positive and finite"),
        (lambda sim: sim.step(True), daedal.InvalidProblemError, "dt must be positive and finite, got True"),
        (lambda sim: sim.step(1.0, u="u"), daedal.InvalidProblemError, "u must hold 1 number, got 'u'"),
        (lambda sim: sim.step_to(0.0), daedal.InvalidProblemError, "not after 0, the time of the simulation"),
        (lambda sim: sim.step_to("soon"), daedal.InvalidProblemError, "t must be a finite number, got 'soon'"),
        (lambda sim: sim.step(1.0, u=[1.0, 2.0]), daedal.InvalidProblemError, "u must hold 1 number for u, got 2"),
        (lambda sim: sim.step(1.0, u=np.array([np.nan])), daedal.InvalidProblemError, "u is not finite: u = nan"),
        (lambda sim: sim.step(1.0, u={"v": 1.0}), daedal.errors.UnknownNameError, "'v' is not an input of the problem"),
        (lambda sim: sim.step(1.0, u={"u": sin}), daedal.InvalidProblemError, "must be a number or a vector"),
        (lambda sim: sim["w"], KeyError, "w"),
        (lambda sim: sim.restore(3), daedal.InvalidProblemError, "must come from save_state"),
        (
            lambda sim: sim.restore(daedal.Simulation(pendulum(), HANGING).save_state()),
            daedal.InvalidProblemError,
            "saved by another simulation",
        ),
        (lambda sim: sim.run(None, dt=0.1, t_end=1.0), daedal.InvalidProblemError, "controller must be a function"),
        (lambda sim: sim.run(lambda t, y: 0.0, t_end=1.0), daedal.InvalidProblemError, "dt is missing"),
        (lambda sim: sim.run(lambda t, y: 0.0, dt=0.1), daedal.InvalidProblemError, "t_end is missing"),
        (lambda sim: sim.run(lambda t, y: None, dt=0.1, t_end=1.0), daedal.InvalidProblemError, "returned None"),
    ],
)
def test_bad_input_is_refused_and_nothing_has_changed(call, error, words):
    sim = daedal.Simulation(lag(), [0.0])
    with pytest.raises(error, match=words):
        call(sim)
    assert sim.t == 0.0 and sim.step(1.0, u=[1.0])[0] == pytest.approx(1.0 - exp(-1.0), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"initial": None}, "initial is missing"),
        ({"exact": "yes"}, "exact must be"),
        ({"t_eval": [1.0]}, "t_eval: a simulation has no given end"),
        ({"inputs": ["u", "u"]}, "'u' twice"),
        ({"inputs": ["w"]}, "'w' is neither an input nor a parameter; there are 'u'"),
        ({"inputs": {"u": "fast"}}, "input 'u' must be a number"),
        ({"outputs": ["nothing"]}, "nothing"),
        ({"outputs": 3}, "outputs must be names"),
        ({"horizon": -1.0}, "horizon must be positive"),
        ({"max_steps": 0}, "max_steps must be a positive integer"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises((daedal.InvalidProblemError, KeyError), match=words):
        daedal.Simulation(lag(), **{"initial": [0.0]} | options)


def test_inputs_of_a_problem_without_any_are_refused():
    sim = daedal.Simulation(daedal.ODE(lambda t, y: [-y[0]], 1), [1.0])
    with pytest.raises(daedal.InvalidProblemError, match="the simulation has no inputs"):
        sim.step(1.0, u=[1.0])
