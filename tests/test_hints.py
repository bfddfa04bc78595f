"""Wrong names, options and signatures: the message says what was meant, or where it belongs."""

import warnings

import numba
import numpy as np
import pytest

import daedal

DECAY = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
PENDULUM = daedal.MechanicalSystem(
    1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
)
OSCILLATOR = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0]], 1)
START = {DECAY: ([1.0], None), PENDULUM: ([1.0, 0.0], [0.0, 0.0]), OSCILLATOR: ([1.0], [0.0])}


def refusal(problem, **options):
    with pytest.raises(daedal.InvalidProblemError) as caught:
        daedal.solve(problem, (0.0, 1.0), START[problem], **options)
    return str(caught.value)


# --- options ---


@pytest.mark.parametrize("problem", START, ids=["implicit", "mechanism", "second order"])
@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("rtoll", "rtol"), ("atols", "atol"), ("teval", "t_eval"), ("maxstep", "max_step"), ("event", "events")],
)
def test_a_misspelt_option_gets_its_name(problem, wrong, meant):
    assert f"unknown option {wrong}; did you mean '{meant}'?" in refusal(problem, **{wrong: 1.0})


def test_a_misspelt_option_of_the_method_gets_its_name():
    assert "did you mean 'linear_solver'?" in refusal(DECAY, linear_solvr="dense")


@pytest.mark.parametrize("problem", START, ids=["implicit", "mechanism", "second order"])
@pytest.mark.parametrize("name", ["args", "params", "p"])
def test_parameters_are_sent_to_the_problem(problem, name):
    message = refusal(problem, **{name: (1.0,)})
    assert "define it with params=..." in message and "problem.with_params(...)" in message


def test_the_way_to_give_parameters_works():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p[0] * y[0]], 1, params=[1.0])
    sol = daedal.solve(problem.with_params([2.0]), (0.0, 1.0), ([1.0], None))
    assert sol.y[0, -1] == pytest.approx(np.exp(-2.0), rel=1e-5)


def test_what_belongs_to_the_problem_or_to_the_run_is_sent_there():
    assert "jacobian belongs to the problem" in refusal(DECAY, jacobian=lambda t, y, yp, cj: [[1.0 + cj]])
    with pytest.raises(daedal.InvalidProblemError, match="t_eval is an argument of the run, not of prepare"):
        daedal.prepare(DECAY, t_eval=[0.5])


# --- signatures ---


def two(t, y):
    return [y[0]]


def five(t, y, yp, p, more):
    return [y[0]]


LINEAR = {"A": [[0.0]], "B": [[1.0]], "C": [[1.0]], "D": [[0.0]], "p": [0.0], "q": [0.0], "n_x": 1, "n_y": 1}


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("residual", lambda wrong: daedal.ImplicitDAE(wrong, 1)),
        ("residual", lambda wrong: daedal.ImplicitDAE(numba.njit(wrong), 1)),
        ("residual", lambda wrong: daedal.ImplicitDAE(wrong, 1, params=[1.0])),
        ("jacobian", lambda wrong: daedal.ImplicitDAE(lambda t, y, yp: [y[0]], 1, jacobian=wrong)),
        ("f", lambda wrong: daedal.SemiExplicitDAE(wrong, lambda t, y, z: [z[0]], 1, 1)),
        ("g", lambda wrong: daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], wrong, 1, 1)),
        ("residual", lambda wrong: daedal.SecondOrderDAE(wrong, 1)),
        ("force", lambda wrong: daedal.MechanicalSystem(1.0, wrong, n_q=1)),
        ("A", lambda wrong: daedal.LinearDAE(**(LINEAR | {"A": wrong}))),
    ],
)
@pytest.mark.parametrize("wrong", [two, five])
def test_a_wrong_signature_is_named_with_the_right_one(name, state, wrong):
    with pytest.raises(daedal.InvalidProblemError, match=rf"{name} has the arguments \(t, y.*called as {name}\(t"):
        state(wrong)


def test_a_function_that_tells_no_signature_is_called():
    class Silent:
        __signature__ = "none"

        def __call__(self, t, y, yp):
            return [yp[0] + y[0]]

    sol = daedal.solve(daedal.ImplicitDAE(Silent(), 1), (0.0, 1.0), ([1.0], None))
    assert sol.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-5)


def test_a_type_error_inside_a_function_stays_what_it_is():
    with pytest.raises(TypeError, match="unsupported operand"):
        daedal.solve(daedal.ImplicitDAE(lambda t, y, yp: [1.0 + None], 1), (0.0, 1.0), ([1.0], None))


@pytest.mark.parametrize(("count", "words"), [(0, "takes 0 arguments"), (1, "takes 1 argument;")])
def test_counts_of_arguments_are_grammatical(count, words):
    event = (lambda: 1.0) if count == 0 else (lambda t: 1.0)
    assert words in refusal(DECAY, events=event)


# --- formulations and modes ---


def test_what_a_solution_says_of_its_formulation_can_be_given_back():
    for formulation in ("auto", *daedal.mechanics.formulations.FORMULATIONS):
        try:
            sol = daedal.solve(PENDULUM, (0.0, 0.1), START[PENDULUM], formulation=formulation)
        except daedal.DaedalError:  # one that is not for this problem
            assert formulation != "auto"
            continue
        again = daedal.solve(PENDULUM, (0.0, 0.1), START[PENDULUM], formulation=sol.formulation)
        assert again.formulation == sol.formulation
        assert np.array_equal(again.q, sol.q), formulation


def test_the_formulation_of_a_run_that_was_handed_over_can_be_given_back():
    stiff = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [-1e4 * v[0], -1e4 * v[1] - 9.81],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
    )
    sol = daedal.solve(stiff, (0.0, 0.1), START[PENDULUM])
    assert sol.formulation.startswith("CoordinateProjection, then")
    again = daedal.solve(stiff, (0.0, 0.1), START[PENDULUM], formulation=sol.formulation)
    assert np.array_equal(again.q, sol.q)


def test_velocity_constraints_are_for_half_explicit_methods():
    sol = daedal.solve(PENDULUM, (0.0, 0.1), START[PENDULUM], formulation="VelocityConstraints", method="hem4")
    assert sol.formulation == "VelocityConstraints"
    message = refusal(PENDULUM, formulation="VelocityConstraints", method="dassl")
    assert "is for half-explicit methods only" in message


def test_the_example_of_a_start_names_a_mode_that_exists():
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
    bouncing = daedal.hybrid.UnilateralProblem(
        ball, daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5, name="floor")
    )
    own = daedal.hybrid.HybridProblem({"free": ball, "held": ball}, [])
    with pytest.raises(daedal.InvalidProblemError, match=r"for example \('free', \.\.\.\); the modes are free, held"):
        daedal.solve(own, (0.0, 1.0), ([1.0], [0.0]))
    with pytest.raises(daedal.InvalidProblemError, match=r"'flor' is not a mode; did you mean 'floor'\?"):
        daedal.solve(bouncing, (0.0, 1.0), ("flor", ([1.0], [0.0])))


# --- counts, names, times ---------------------------------------------------------------------------------------------


def test_one_of_something_is_no_plural():
    with pytest.raises(daedal.InvalidProblemError, match=r"must return 1 number \("):
        daedal.solve(daedal.ODE(lambda t, y: None, 1), (0.0, 1.0), [1.0])
    with pytest.raises(daedal.InvalidProblemError, match="names must be a sequence of 1 string,"):
        daedal.ODE(lambda t, y: -y, 1, names=3)


@pytest.mark.parametrize("names", [None, ["level"]])
def test_hidden_switches_are_told_with_the_names_of_variables(names):
    tank = daedal.ODE(lambda t, y: [max((1.0 - y[0]) * 2.0, 0.0) - 0.1 * y[0]], 1, names=names)
    sol = daedal.solve(tank, (0.0, 10.0), [2.0])
    assert sol.events[0].name.startswith(f"(1 - {names[0] if names else 'y[0]'}) * 2 < 0")


def test_a_y0_that_is_too_long_is_named():
    with pytest.raises(daedal.InvalidProblemError, match=r"expected \(2,\), since y0 has 2 entries"):
        daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0, 2.0])
    with pytest.raises(daedal.InvalidProblemError, match=r"expected \(2,\), since y0 has 2 entries"):
        daedal.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0, 2.0])


def test_a_run_between_break_points_has_its_methods_and_steps():
    sol = daedal.solve(daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, 1.0), [1.0], breakpoints=[0.5])
    assert sol.method == "DOPRI5, order 5"
    assert sol.history.t.size == sol.stats.steps == sol.history.h.size and sol.history.h.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("f", [lambda t, y: -y[0], lambda t, y: -float(y[0]), lambda t, y: np.float64(-y[0])])
def test_solve_ivp_takes_numbers_from_functions_of_one_unknown(f):
    for method in ("RK45", "Radau"):
        result = daedal.solve_ivp(f, (0.0, 1.0), [1.0], method=method)
        assert result.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-3)
    assert daedal.solve_ivp(lambda t, y, k: -k * y[0], (0.0, 1.0), [1.0], args=(2.0,)).y[0, -1] == pytest.approx(
        np.exp(-2.0), rel=1e-2
    )


def test_the_search_for_a_start_leaks_no_warnings_of_numpy():
    def steep(t, y, yp):
        return [yp[0] + np.exp(1000.0 * y[1]), y[1] - np.sqrt(y[0])]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(daedal.InconsistentInitialError):
            daedal.solve_dae(steep, (0.0, 1.0), [1.0, -1.0], correct_initial=True)


def test_times_that_are_far_apart_are_the_cause_and_the_remedy_works():
    start = 1.7e9
    with pytest.raises(daedal.IntegrationError, match=r"are 2.384e-07 apart.*\nRemedy: start t at 0") as caught:
        drives = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - np.sin(t - start)], 2)
        daedal.solve(drives, (start, start + 10.0), ([0.0, 1.0], [1.0, 0.0]), method="dassl")
    assert "t_span=(0, 10), and add 1700000000.0" in str(caught.value)
    sol = daedal.solve_dae(lambda t, y, yp: [yp[0] - y[1], y[0] - np.sin(t)], (0.0, 10.0), [0.0, 1.0])
    assert sol.y[1, -1] == pytest.approx(np.cos(10.0), abs=1e-4)
