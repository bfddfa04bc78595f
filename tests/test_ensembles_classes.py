"""Semi-explicit problems and models with modes in ensembles: in the compiled loop, with the bits of the driver."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import daedal
from test_ensembles_batch import in_rows, of_driver, rows_of

COUNT = 9
K1 = np.linspace(0.03, 0.05, COUNT)
SPAN, START = (0.0, 1e5), ([1.0, 0.0], [0.0])
SHARP = {"rtol": 1e-5, "atol": 1e-8}


def robertson():
    """Robertson's reaction, the sum of its species in place of one equation."""

    def f(t, y, z, p):
        forth, back = p["k1"] * y[0], p["k3"] * y[1] * z[0]
        return [back - forth, forth - back - p["k2"] * y[1] ** 2]

    params = {"k1": 0.04, "k2": 3e7, "k3": 1e4}
    return daedal.SemiExplicitDAE(f, lambda t, y, z, p: [y[0] + y[1] + z[0] - 1.0], 2, 1, params=params)


def test_semi_explicit_problems_run_in_the_loop_with_the_bits_of_the_driver(handed_back):
    times = np.array([1.0, 1e3, 1e5])
    options = {"t_eval": times, "events": daedal.Event(lambda t, y, z, p: z[0] - 10.0 * p["k1"], name="much"), **SHARP}
    ensemble = daedal.solve_many(robertson(), SPAN, START, params={"k1": K1}, workers=1, chunk_size=4, **options)
    assert sum(handed_back) == 0 and ensemble.failed.size == 0
    members = (0, 5, COUNT - 1)
    for k, alone in zip(members, of_driver(robertson(), SPAN, START, [{"k1": K1[k]} for k in members], **options)):
        assert_array_equal(ensemble.y[k], alone.y)
        assert rows_of(ensemble, k) == in_rows(alone) and len(rows_of(ensemble, k)) == 1


def test_starts_of_semi_explicit_problems_vary_and_refuse_as_with_the_driver(handed_back):
    first = np.linspace(0.5, 1.0, COUNT)
    y, z = np.column_stack([first, np.zeros(COUNT)]), (1.0 - first)[:, None]
    z[3] += 0.1
    ensemble = daedal.solve_many(robertson(), (0.0, 10.0), (y, z), workers=1, chunk_size=4, **SHARP)
    assert sum(handed_back) == 1  # that which the driver refuses
    assert ensemble.failed.tolist() == [3] and "do not satisfy" in ensemble.messages[3]
    alone = daedal.solve(robertson(), (0.0, 10.0), (y[7], z[7]), t_eval=[10.0], **SHARP)
    assert_array_equal(ensemble.final.y[7], alone.y[:, -1])


def test_an_unknown_z_is_left_to_the_driver():
    ensemble = daedal.solve_many(robertson(), (0.0, 1.0), (START[0], None), params={"k1": K1[:3]}, workers=1, **SHARP)
    alone = daedal.solve(robertson(), (0.0, 1.0), (START[0], None), params={"k1": K1[2]}, t_eval=[1.0], **SHARP)
    assert ensemble.failed.size == 0
    assert_array_equal(ensemble.final.y[2], alone.y[:, -1])


# --- modes ------------------------------------------------------------------------------------------------------------


def same_as_alone(ensemble, k, problem, span, start, **options):
    """Hold one member against :func:`daedal.solve`, bit for bit, with its events."""
    alone = daedal.solve(problem, span, start, **options)
    values = ensemble.final.y[k][:, None] if ensemble.t is None else ensemble.y[k]
    assert_array_equal(values, alone.y[: values.shape[0], -values.shape[1] :])
    rows = [(r.t, r.name, r.direction, r.target is None) for r in alone.events]
    assert rows_of(ensemble, k) == rows
    return len(rows)


@pytest.mark.parametrize("times", [None, np.linspace(0.0, 10.0, 7)])
def test_stick_and_slip_run_in_the_loop_with_the_bits_of_the_driver(handed_back, times):
    model, mu = daedal.library.stick_slip_block(), np.linspace(0.2, 0.4, COUNT)
    options = {"rtol": 1e-5, "atol": 1e-5}
    ensemble = daedal.solve_many(
        model.problem, model.t_span, model.initial, params={"mu": mu}, t_eval=times, workers=1, chunk_size=4, **options
    )
    assert sum(handed_back) == 0 and ensemble.failed.size == 0
    output = {"t_eval": [10.0] if times is None else times}
    for k in (0, 4, COUNT - 1):
        n = same_as_alone(
            ensemble, k, model.problem, model.t_span, model.initial, params={"mu": mu[k]}, **output, **options
        )
        assert n > 6


def test_the_block_is_where_the_closed_solution_is():
    model, mu = daedal.library.stick_slip_block(), np.array([0.25, 0.3, 0.35])
    built = [daedal.library.stick_slip_block(mu=value) for value in mu]
    starts = [("stick", one.initial[1]) for one in built]
    ensemble = daedal.solve_many(
        model.problem, model.t_span, starts, params={"mu": mu}, workers=1, rtol=1e-9, atol=1e-9
    )
    exact = [one.extra["exact"](model.t_span[1]) for one in built]
    np.testing.assert_allclose(ensemble.final.y, exact, atol=1e-7)


def test_coefficients_that_are_not_allowed_are_refused_in_the_loop_too(handed_back):
    model, mu = daedal.library.stick_slip_block(), np.array([0.3, 0.31, 0.32, 0.6, 0.33])  # mu_static is 0.5
    ensemble = daedal.solve_many(model.problem, (0.0, 0.1), model.initial, params={"mu": mu}, workers=1)
    assert sum(handed_back) == 1
    assert ensemble.failed.tolist() == [3] and "mu_static = 0.5 is less than" in ensemble.messages[3]


def ball(extra=()):
    """A ball that bounces, with restitution and gravity as parameters."""
    system = daedal.MechanicalSystem(
        1.0, lambda t, q, v, p: [0.0, -p["g"]], n_q=2, names=["x", "h"], params={"g": 9.81, "e": 0.7}
    )
    impact = daedal.hybrid.Transition(
        "flight",
        "flight",
        lambda t, q, v: q[1],
        direction=-1,
        reset=lambda t, q, v, p: (q, [v[0], -p["e"] * v[1]]),
        name="impact",
    )
    return daedal.hybrid.HybridProblem({"flight": system}, [impact, *extra])


def test_resets_and_starts_of_a_ball_run_in_the_loop(handed_back):
    e, height = np.linspace(0.7, 0.9, COUNT), np.linspace(0.5, 2.0, COUNT)
    q = np.column_stack([np.zeros(COUNT), height])
    times = np.linspace(0.0, 1.0, 5)
    start = "flight", (q, [1.0, 0.0])
    ensemble = daedal.solve_many(ball(), (0.0, 1.0), start, params={"e": e}, t_eval=times, workers=1, chunk_size=4)
    assert sum(handed_back) == 0
    for k in (0, 5, COUNT - 1):
        alone = "flight", (q[k], [1.0, 0.0])
        same_as_alone(ensemble, k, ball(), (0.0, 1.0), alone, params={"e": e[k]}, t_eval=times)


def test_transitions_that_accumulate_are_left_to_the_driver(handed_back):
    e = np.array([0.9, 0.8, 0.3])
    ensemble = daedal.solve_many(ball(), (0.0, 2.0), ("flight", ([0.0, 1.0], [0.0, 0.0])), params={"e": e}, workers=1)
    assert sum(handed_back) == 1
    assert ensemble.failed.tolist() == [2] and "accumulate" in ensemble.messages[2]


def pendulum_on_a_line():
    """A pendulum whose string is taut or slack: a constraint that the next mode has, and one that it has not."""
    names = {"n_q": 2, "names": ["x", "y"], "params": {"g": 9.81}}

    def weight(t, q, v, p):
        return [0.0, -p["g"]]

    taut = daedal.MechanicalSystem(
        1.0, weight, lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)], n_constraints=1, **names
    )
    slack = daedal.MechanicalSystem(1.0, weight, **names)

    def pull(t, q, v, p):
        return v[0] ** 2 + v[1] ** 2 - p["g"] * q[1]

    def length(t, q, v):
        return 1.0 - q[0] ** 2 - q[1] ** 2

    return daedal.hybrid.HybridProblem(
        {"taut": taut, "slack": slack},
        [
            daedal.hybrid.Transition("taut", "slack", pull, direction=-1, name="slackens"),
            daedal.hybrid.Transition("slack", "taut", length, direction=-1, name="tightens", project=True),
        ],
    )


def test_states_are_projected_onto_the_constraints_of_the_next_mode(handed_back):
    speed = np.linspace(5.3, 6.3, COUNT)  # enough to rise above the centre, too little for a whole turn
    v = np.column_stack([speed, np.zeros(COUNT)])
    ensemble = daedal.solve_many(
        pendulum_on_a_line(), (0.0, 2.0), ("taut", ([0.0, -1.0], v)), workers=1, chunk_size=4, rtol=1e-7
    )
    assert sum(handed_back) == 0 and ensemble.failed.size == 0
    for k in (0, 4, COUNT - 1):
        start = "taut", ([0.0, -1.0], v[k])
        n = same_as_alone(ensemble, k, pendulum_on_a_line(), (0.0, 2.0), start, t_eval=[2.0], rtol=1e-7)
        assert n >= 2


def test_guards_of_multipliers_are_left_to_the_driver():
    block = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [p["push"], -9.81],
        lambda t, q, p: [q[1]],
        n_q=2,
        n_constraints=1,
        params={"push": 1.0},
    )
    problem = daedal.hybrid.Friction(block, [1.0, 0.0], mu=0.2, constraint=0)
    push, start = np.array([1.0, 2.5, 4.0]), ([0.0, 0.0], [1.0, 0.0])
    mode = problem.entry((0.0, 1.0), start)
    ensemble = daedal.solve_many(problem, (0.0, 1.0), mode, params={"push": push}, workers=1)
    assert ensemble.failed.size == 0
    same_as_alone(ensemble, 2, problem, (0.0, 1.0), mode, params={"push": push[2]}, t_eval=[1.0])


def test_the_number_of_workers_does_not_change_runs_through_modes():
    model, mu = daedal.library.stick_slip_block(t1=3.0), np.linspace(0.2, 0.4, 40)
    options = {"params": {"mu": mu}, "rtol": 1e-5, "atol": 1e-5}
    one, two = (
        daedal.solve_many(model.problem, model.t_span, model.initial, workers=n, chunk_size=size, **options)
        for n, size in ((1, 40), (2, 3))
    )
    assert_array_equal(one.final.y, two.final.y)
    assert_array_equal(one.events["t"], two.events["t"])


def test_modes_that_are_left_at_once_and_transitions_that_end_runs_are_part_of_the_loop(handed_back):
    model = daedal.library.stick_slip_block()
    stiff = np.linspace(100.0, 200.0, COUNT)  # at the start the spring draws more than adhesion holds
    start, options = ("stick", ([-1.0], [0.0])), {"rtol": 1e-6, "atol": 1e-6}
    times = np.linspace(0.0, 4.0, 6)
    ensemble = daedal.solve_many(
        model.problem, (0.0, 4.0), start, params={"stiffness": stiff}, t_eval=times, workers=1, **options
    )
    assert sum(handed_back) == 0 and np.count_nonzero(np.asarray(ensemble.events["t"]) == 0.0) == COUNT
    for k in (0, COUNT - 1):
        params = {"stiffness": stiff[k]}
        same_as_alone(ensemble, k, model.problem, (0.0, 4.0), start, params=params, t_eval=times, **options)


def test_a_transition_that_ends_the_run_is_an_event_of_its_member(handed_back):
    gone = daedal.hybrid.Transition("flight", None, lambda t, q, v: 1.0 - q[0], direction=-1, name="gone")
    speed, problem = np.linspace(0.5, 3.0, COUNT), ball([gone])
    v, times = np.column_stack([speed, np.zeros(COUNT)]), np.linspace(0.0, 1.0, 5)
    ensemble = daedal.solve_many(problem, (0.0, 1.0), ("flight", ([0.0, 1.0], v)), t_eval=times, workers=1)
    assert sum(handed_back) == 0 and set(ensemble.status) == {"finished", "event"}
    for k in range(COUNT):
        alone = daedal.solve(problem, (0.0, 1.0), ("flight", ([0.0, 1.0], v[k])), t_eval=times)
        assert ensemble.status[k] == alone.status
        assert_array_equal(ensemble.y[k][:, : alone.t.size], alone.y)
        assert np.isnan(ensemble.y[k][:, alone.t.size :]).all()
        assert rows_of(ensemble, k) == [(r.t, r.name, r.direction, r.target is None) for r in alone.events]
        if alone.status == "event":
            assert ensemble.t_final[k] == alone.events[-1].t
            assert_array_equal(ensemble.final.y[k], alone.events[-1].y)


def test_a_first_member_that_fails_does_not_keep_the_others_out_of_the_loop(handed_back):
    model, mu = daedal.library.stick_slip_block(), np.append(0.6, np.linspace(0.2, 0.4, COUNT))  # mu_static is 0.5
    ensemble = daedal.solve_many(model.problem, (0.0, 2.0), model.initial, params={"mu": mu}, workers=1, chunk_size=4)
    assert sum(handed_back) == 0 and ensemble.failed.tolist() == [0]
    first, rates = np.array([1.0, 0.9, 0.8, 0.7, 0.6]), {"workers": 1, "chunk_size": 2, **SHARP}
    y, z = np.column_stack([first, np.zeros(5)]), (1.0 - first)[:, None]
    z[0] = 0.5
    ensemble = daedal.solve_many(robertson(), (0.0, 10.0), (y, z), **rates)
    assert sum(handed_back) == 0 and ensemble.failed.tolist() == [0]


def test_a_sweep_of_the_block_on_the_command_line_varies_parameters(tmp_path, capsys):
    from daedal.cli import main

    file = tmp_path / "sweep.npz"
    arguments = ["sweep", "stick_slip_block", "--set", "mu=0.2:0.4:5", "--t-end", "2", "--workers", "1"]
    with pytest.raises(SystemExit) as ending:
        main([*arguments, "--save", str(file)])
    assert not ending.value.code and "5 of 5 runs were successful on 1 thread" in capsys.readouterr().out
    built = daedal.library.stick_slip_block(mu=float(np.linspace(0.2, 0.4, 5)[3]))
    alone = daedal.solve(built.problem, (0.0, 2.0), built.initial, t_eval=[2.0], **built.options)
    assert_array_equal(daedal.load(file).final.y[3], alone.y[:, -1])
