"""Mechanisms given as residuals, solved as mechanisms: digits, constraints, output, events, messages."""

import pickle

import numpy as np
import pytest

import daedal
from daedal.index.reduction.recognised_solution import RecognisedSolution
from daedal.index.reduction.recognition import recognise_mechanism
from daedal.index.structure.system_equations import SystemEquations
from daedal.library import car_axis, fekete, flexible_slider_crank, planar_pendulum, seven_body
from residual_models import as_residual, start_of

G = 9.81


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G, x * x + z * z - 1.0]


PENDULUM = daedal.ImplicitDAE(pendulum, 5, names=["x", "z", "u", "w", "lam"])
START = ([1.0, 0.0, 0.0, 0.0, 0.0], None)


MODELS = (planar_pendulum, seven_body, car_axis, flexible_slider_crank)


@pytest.mark.parametrize(
    ("model", "tol"), [*((model, tol) for model in MODELS for tol in (1e-4, 1e-6, 1e-8)), (fekete, 1e-6)]
)
def test_residuals_of_mechanisms_give_the_digits_of_their_mechanical_statement(model, tol):
    stated = model()
    problem, n = as_residual(stated.problem), stated.problem.n_q
    sol = daedal.solve(problem, stated.t_span, start_of(stated), rtol=tol, atol=tol)
    mechanical = daedal.solve(stated.problem, stated.t_span, stated.initial, rtol=tol, atol=tol)
    assert isinstance(sol, RecognisedSolution) and sol.status == "finished"
    errors = [np.max(stated.reference.error(y)) for y in (sol.y[: 2 * n, -1], mechanical.y[:, -1])]
    assert errors[0] <= 1.5 * errors[1] + tol
    assert sol.drift["position"] < 1e-12 and sol.drift["velocity"] < 1e-10
    assert abs(sol.stats.steps - mechanical.stats.steps) <= 0.01 * mechanical.stats.steps + 1
    scale = np.abs(sol.y[2 * n :]).max() + 1.0
    np.testing.assert_allclose(sol.y[2 * n :, -1], mechanical.lam[:, -1], atol=10.0 * max(errors) * scale, rtol=1e-6)


def test_all_equations_hold_at_all_points():
    sol = daedal.solve(PENDULUM, (0.0, 2.0), START, rtol=1e-6)
    residuals = [PENDULUM.evaluate(t, y, yp) for t, y, yp in zip(sol.t, sol.y.T, sol.yp.T)]
    assert np.abs(residuals).max() < 1e-13
    times = np.linspace(0.1, 1.9, 23)
    between = [PENDULUM.evaluate(t, sol(t), sol(t, derivative=True)) for t in times]
    assert np.abs(between).max() < 1e-13
    np.testing.assert_array_equal(sol(times)[:, 3], sol(times[3]))


def test_derivatives_of_multipliers():
    sol = daedal.solve(PENDULUM, (0.0, 2.0), START, rtol=1e-10, atol=1e-12)
    h, t = 1e-5, 1.3
    difference = (sol(t + h) - sol(t - h)) / (2.0 * h)
    np.testing.assert_allclose(sol(t, derivative=True), difference, rtol=1e-5)


def test_output_at_given_times_and_backwards():
    times = np.linspace(0.0, 2.0, 7)
    sol = daedal.solve(PENDULUM, (0.0, 2.0), START, t_eval=times, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(sol.t, times)
    assert sol.y.shape == sol.yp.shape == (5, 7)
    back = daedal.solve(PENDULUM, (2.0, 0.0), (sol.y[:, -1], None), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(back.y[:4, -1], START[0][:4], atol=1e-7)


def test_events_see_the_unknowns_of_the_problem():
    seen = []

    def slack(t, y, yp):
        seen.append((y.size, yp.size))
        return y[4] - 2.5 * G

    def lowest(t, y):
        return y[0]

    events = [daedal.Event(slack, name="tight"), daedal.Event(lowest, terminal=True, name="lowest")]
    sol = daedal.solve(PENDULUM, (0.0, 2.0), START, events=events, rtol=1e-9, atol=1e-11)
    assert set(seen) == {(5, 5)}
    assert [event.name for event in sol.events] == ["tight", "lowest"] and sol.status == "event"
    tight, last = sol.events
    np.testing.assert_allclose(tight.y[4], 2.5 * G, rtol=1e-7)
    np.testing.assert_allclose(-3.0 * G * tight.y[1], 2.5 * G, rtol=1e-7)  # lam = w^2 - g z = -3 g z
    np.testing.assert_allclose([last.y[0], last.y[4]], [0.0, 3.0 * G], atol=1e-7)
    assert np.abs(PENDULUM.evaluate(last.t, last.y, last.yp)).max() < 1e-12


def test_further_states_in_events_and_output():
    def driven(t, y, yp):
        return [*pendulum(t, y[:5], yp[:5]), yp[5] - y[2] ** 2 - y[3] ** 2]

    problem = daedal.ImplicitDAE(driven, 6)
    event = daedal.Event(lambda t, y: y[5] - 1.0, terminal=True)
    sol = daedal.solve(problem, (0.0, 2.0), ([*START[0], 0.0], None), events=event, rtol=1e-8)
    assert isinstance(sol, RecognisedSolution)
    np.testing.assert_allclose(sol.events[0].y[5], 1.0, rtol=1e-9)
    assert np.abs([problem.evaluate(t, y, yp) for t, y, yp in zip(sol.t, sol.y.T, sol.yp.T)]).max() < 1e-12


def test_semi_explicit_problems_keep_their_z():
    def f(t, y, z):
        return [y[2], y[3], -y[0] * z[0], -y[1] * z[0] - G]

    problem = daedal.SemiExplicitDAE(f, lambda t, y, z: [y[0] ** 2 + y[1] ** 2 - 1.0], 4, 1)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0, 0.0, 0.0], None), rtol=1e-8)
    assert isinstance(sol, RecognisedSolution)
    np.testing.assert_allclose(sol.z[0], -3.0 * G * sol.y[1], atol=1e-5)


def test_multipliers_of_constraints_that_are_lengths():
    """lam x in the forces with the constraint |q| = 1: S is a length, and constant only on the constraint."""

    def residual(t, y, yp):
        values = pendulum(t, y, yp)
        return [*values[:4], np.sqrt(y[0] ** 2 + y[1] ** 2) - 1.0]

    sol = daedal.solve_dae(residual, (0.0, 1.0), *START, rtol=1e-8)
    same = daedal.solve(PENDULUM, (0.0, 1.0), START, rtol=1e-8)
    assert isinstance(sol, RecognisedSolution)
    np.testing.assert_allclose(sol.y[:, -1], same.y[:, -1], atol=1e-6)


def test_parameters_from_run_to_run():
    def residual(t, y, yp, p):
        x, z, u, w, lam = y
        return [
            p["m"] * yp[2] + lam * x,
            p["m"] * (yp[3] + p["g"]) + lam * z,
            yp[0] - u,
            yp[1] - w,
            x * x + z * z - 1.0,
        ]

    problem = daedal.ImplicitDAE(residual, 5, params={"m": 1.0, "g": G})
    solver = daedal.prepare(problem, rtol=1e-8)
    solver.solve((0.0, 1.0), START)
    other = solver.solve((0.0, 1.0), START, params={"m": 2.0, "g": 3.0})
    fresh = daedal.solve(problem.with_params({"m": 2.0, "g": 3.0}), (0.0, 1.0), START, rtol=1e-8)
    np.testing.assert_array_equal(other.y, fresh.y)
    np.testing.assert_allclose(other.y[4], -3.0 * 2.0 * 3.0 * other.y[1], atol=1e-5)


def test_parameters_that_scale_multipliers():
    def residual(t, y, yp, p):
        values = pendulum(t, [*y[:4], p[0] * y[4]], yp)
        return values

    solver = daedal.prepare(daedal.ImplicitDAE(residual, 5, params=np.array([1.0])), rtol=1e-8)
    solver.solve((0.0, 1.0), START)
    sol = solver.solve((0.0, 1.0), START, params=np.array([5.0]))
    np.testing.assert_allclose(5.0 * sol.y[4], -3.0 * G * sol.y[1], atol=1e-5)


def test_parameters_that_scale_rows():
    """Rows divided by masses: their multiples are numbers, which are looked for anew with other masses."""

    def residual(t, y, yp, p):
        x, z, u, w, lam = y
        a, b = p
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x / a, yp[3] + lam * z / b + G, x * x + z * z - 1.0]

    problem = daedal.ImplicitDAE(residual, 5, params=np.array([1.0, 2.0]))
    solver = daedal.prepare(problem, rtol=1e-8)
    solver.solve((0.0, 1.0), START)
    for params in ([1.0, 2.0], [3.0, 1.0]):
        sol = solver.solve((0.0, 1.0), START, params=np.array(params))
        assert isinstance(sol, RecognisedSolution)
        system = daedal.MechanicalSystem(
            params, lambda t, q, v, m=params: [0.0, -G * m[1]], lambda t, q: [q @ q - 1.0], n_q=2, n_constraints=1
        )
        expected = daedal.solve(system, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), rtol=1e-8)
        np.testing.assert_allclose(sol.y[:4, -1], expected.y[:, -1], atol=1e-7)


def test_tolerances_of_single_unknowns():
    """Those of velocities in other units are in these units."""

    def residual(t, y, yp):
        x, z, u, w, lam = y
        return pendulum(t, [x, z, 1e-3 * u, 1e-3 * w, lam], [yp[0], yp[1], 1e-3 * yp[2], 1e-3 * yp[3], yp[4]])

    atol = np.array([1e-8, 1e-8, 1e-5, 1e-5, 1.0])
    sol = daedal.solve_dae(residual, (0.0, 1.0), *START, rtol=1e-8, atol=atol)
    same = daedal.solve(PENDULUM, (0.0, 1.0), START, rtol=1e-8, atol=1e-8)
    assert sol.stats.steps == same.stats.steps
    np.testing.assert_allclose(sol.y[2, -1], 1e3 * same.y[2, -1], rtol=1e-9)


def test_a_stored_solution():
    sol = pickle.loads(pickle.dumps(daedal.solve(PENDULUM, (0.0, 1.0), START, rtol=1e-8)))
    fresh = daedal.solve(PENDULUM, (0.0, 1.0), START, rtol=1e-8)
    np.testing.assert_array_equal(sol.y, fresh.y)
    for derivative in (False, True):
        np.testing.assert_allclose(sol(0.37, derivative), fresh(0.37, derivative), rtol=1e-10, atol=1e-10)
    assert sol(0.37)[0] ** 2 + sol(0.37)[1] ** 2 == pytest.approx(1.0, abs=1e-14)
    assert sol.message == fresh.message


def test_what_is_told():
    sol = daedal.solve(PENDULUM, (0.0, 1.0), START)
    assert "The equations are those of a mechanism with 2 coordinates (x, z) and 1 constraint" in repr(sol)
    assert "formulation" in repr(sol) and sol.names == ("x", "z", "u", "w", "lam")
    assert sol.mechanical.q.shape == (2, sol.t.size)
    np.testing.assert_array_equal(sol["x"], sol.mechanical.q[0])


def test_plots_break_points_and_names():
    sol = daedal.solve(PENDULUM, (0.0, 1.0), START, rtol=1e-8)
    assert "<img" in sol._repr_html_()
    pieces = daedal.solve(PENDULUM, (0.0, 1.0), START, breakpoints=[0.5], rtol=1e-8)
    np.testing.assert_allclose(pieces(0.7), sol(0.7), atol=1e-6)
    named = daedal.solve(PENDULUM, (0.0, 1.0), {"x": 1.0, "z": 0.0, "u": 0.0, "w": 0.0}, rtol=1e-8)
    np.testing.assert_allclose(named.y[:, -1], sol.y[:, -1], atol=1e-7)


def test_inconsistent_values_are_refused_or_corrected():
    bad = ([1.1, 0.0, 0.0, 0.0, 0.0], None)
    with pytest.raises(daedal.InconsistentInitialError, match=r"equation 4 \(0.21\)") as caught:
        daedal.solve(PENDULUM, (0.0, 1.0), bad)
    assert caught.value.equations == (4,)
    moving = ([1.0, 0.0, 0.3, 0.0, 0.0], None)
    with pytest.raises(daedal.InconsistentInitialError, match=r"the first time derivative of equation 4 \(0.6\)"):
        daedal.solve(PENDULUM, (0.0, 1.0), moving)
    sol = daedal.solve(PENDULUM, (0.0, 1.0), bad, correct_initial=True)
    np.testing.assert_allclose(sol.y[:2, 0], [1.0, 0.0], atol=1e-12)


WAYS = ({}, {"formulation": "dummy_derivatives"})


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize(
    "y, yp, told",
    [
        ([1.0, 0.0, 0.0, 0.0, 7.0], [5.0] * 5, "lam from 7 to 0"),
        ([1.0, 0.0, 0.0, 0.0, 7.0], [0.0, 0.0, -7.0, -G, 0.0], "lam from 7 to 0"),  # all but a hidden constraint
        ([1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], "w' from 0 to -9.81"),
        ([1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 30.0, 0.0, -G, 0.0], "z' from 30 to 0"),
    ],
)
def test_derivatives_and_multipliers_that_contradict_the_state_are_refused(y, yp, told, options):
    with pytest.raises(daedal.InconsistentInitialError, match=told):
        daedal.solve(PENDULUM, (0.0, 1.0), (y, yp), **options)
    sol = daedal.solve(PENDULUM, (0.0, 1.0), (y, yp), correct_initial=True, **options)
    np.testing.assert_allclose(sol.y[:, 0], [1.0, 0.0, 0.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("options", WAYS)
def test_consistent_derivatives_are_taken_whatever_stands_for_those_that_do_not_occur(options):
    y, yp = [0.6, -0.8, 0.8, 0.6, 1.0 + 0.8 * G], [0.8, 0.6, -0.6 - 0.48 * G, 0.8 - 0.36 * G, 1e3]
    sol = daedal.solve(PENDULUM, (0.0, 1.0), (y, yp), **options)
    np.testing.assert_allclose(sol.y[:, 0], y, rtol=1e-12)


def test_a_failure_keeps_what_was_computed():
    def residual(t, y, yp):
        values = pendulum(t, y, yp)
        values[3] = values[3] + 1.0 / (0.5 - t) ** 2
        return values

    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve_dae(residual, (0.0, 1.0), *START)
    assert isinstance(caught.value.solution, RecognisedSolution)
    assert caught.value.solution.y.shape[0] == 5 and 0.4 < caught.value.solution.t[-1] <= 0.5


def test_exceptions_of_events_arrive_with_the_solution():
    def event(t, y):
        if t > 0.5:
            raise ZeroDivisionError("of the user")
        return y[0] + 10.0

    with pytest.raises(ZeroDivisionError, match="of the user") as caught:
        daedal.solve(PENDULUM, (0.0, 1.0), START, events=event)
    assert caught.value.solution.y.shape[0] == 5


@pytest.mark.parametrize("options", [{"method": "dassl", "error_test": "differential"}, {"compile": "never"}])
def test_the_users_choices_stand(options):
    """GGL, which is of index 2, so that methods for first-order problems solve it."""
    model = daedal.library.pendulum("ggl")
    sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, **options)
    assert not isinstance(sol, RecognisedSolution)


def test_constant_steps_are_those_of_the_problem_as_it_stands():
    """Whichever comes first: plans are kept."""
    model = daedal.library.pendulum("index2")
    for options in ({}, {"fixed_step": 0.01}, {}):
        sol = daedal.solve(model.problem, (0.0, 0.1), model.initial, **options)
        assert isinstance(sol, RecognisedSolution) == (not options)


@pytest.mark.parametrize("model", [planar_pendulum, car_axis])
def test_the_general_reduction_gives_the_same(model):
    stated = model()
    problem, span = as_residual(stated.problem), (0.0, 0.3)
    sol = daedal.solve(problem, span, start_of(stated), rtol=1e-8, atol=1e-8)
    general = daedal.solve(problem, span, start_of(stated), rtol=1e-8, atol=1e-8, formulation="dummy_derivatives")
    assert isinstance(sol, RecognisedSolution) and not isinstance(general, RecognisedSolution)
    np.testing.assert_allclose(sol.y[:, -1], general.y[:, -1], atol=1e-5 * np.abs(sol.y).max())


def test_functions_compiled_by_numba():
    import numba

    @numba.njit
    def residual(t, y, yp):
        r = np.empty(5)
        r[0], r[1] = yp[0] - y[2], yp[1] - y[3]
        r[2], r[3] = yp[2] + y[4] * y[0], yp[3] + y[4] * y[1] + 9.81
        r[4] = y[0] * y[0] + y[1] * y[1] - 1.0
        return r

    sol = daedal.solve_dae(residual, (0.0, 1.0), *START, rtol=1e-8)
    assert isinstance(sol, RecognisedSolution)
    same = daedal.solve(PENDULUM, (0.0, 1.0), START, rtol=1e-8)
    np.testing.assert_allclose(sol.y[:, -1], same.y[:, -1], rtol=1e-9)


def test_hidden_switches_are_followed():
    def residual(t, y, yp):
        values = pendulum(t, y, yp)
        values[3] = values[3] + np.where(y[0] > 0.0, 2.0, -2.0)
        return values

    sol = daedal.solve_dae(residual, (0.0, 3.0), *START, rtol=1e-8)
    assert isinstance(sol, RecognisedSolution)
    assert {event.kind for event in sol.events} == {"switch"}
    plain = daedal.solve_dae(residual, (0.0, 3.0), *START, rtol=1e-10, atol=1e-12, switches="never")
    np.testing.assert_allclose(sol.y[:4, -1], plain.y[:4, -1], atol=1e-5)


def braked(share):
    """A pendulum with friction in proportion to the constraint force, of a share that may be next to nothing."""

    def residual(t, y, yp, p):
        values = pendulum(t, y, yp)
        part = p[0] * share(t, y) * y[4]
        values[2], values[3] = values[2] - part * y[1], values[3] + part * y[0]
        return values

    return daedal.ImplicitDAE(residual, 5, params=np.array([0.5]))


BRAKES = {
    "in time": lambda t, y: np.exp(-200.0 * (t - 3.0) ** 2),
    "in space": lambda t, y: np.exp(-200.0 * (y[0] + 1.2) ** 2),
    "growing": lambda t, y: 1e-12 * np.exp(8.0 * t),
}


@pytest.mark.parametrize("share", BRAKES.values(), ids=BRAKES)
@pytest.mark.parametrize("options", [{}, {"t_eval": [3.3]}, {"t_eval": [3.3], "dense_output": False}], ids=str)
def test_runs_that_leave_the_form_of_mechanics_are_repeated(share, options):
    problem = braked(share)
    assert recognise_mechanism(SystemEquations(problem)) is not None
    sol = daedal.solve(problem, (0.0, 3.3), START, rtol=1e-7, atol=1e-7, **options)
    general = daedal.solve(problem, (0.0, 3.3), START, rtol=1e-7, atol=1e-7, formulation="dummy_derivatives", **options)
    assert not isinstance(sol, RecognisedSolution)
    np.testing.assert_allclose(sol.y, general.y, rtol=1e-12)
    assert np.abs(problem.evaluate(3.3, sol.y[:, -1], sol.yp[:, -1])).max() < 1e-10


def test_whether_a_mechanism_is_solved_depends_on_the_run_alone():
    solver = daedal.prepare(braked(BRAKES["in time"]), rtol=1e-6)
    first = solver.solve((0.0, 1.0), START)
    assert isinstance(first, RecognisedSolution)  # the brake is not felt so far
    later, again = (solver.solve((0.0, 3.3), START) for _ in range(2))
    assert not isinstance(later, RecognisedSolution)
    assert later.message.endswith("resemble those of a mechanism, but its motion does not satisfy them.")
    np.testing.assert_array_equal(later.y, again.y)
    np.testing.assert_array_equal(solver.solve((0.0, 1.0), START).y, first.y)


def test_motion_that_stays_on_a_switching_surface_is_that_of_the_mechanism():
    def residual(t, y, yp):
        _, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + 3.0 * np.sign(u) - 4.0 * np.sin(t), yp[3] + lam + G, z]

    sol = daedal.solve_dae(residual, (0.0, 10.0), [0.0, 0.0, 0.0, 0.0, -G], None, rtol=1e-6)
    assert isinstance(sol, RecognisedSolution) and sol.status == "finished"
    assert np.mean(np.abs(sol(np.linspace(0.0, 10.0, 200))[2]) < 1e-10) > 0.1  # it sticks


def test_multipliers_of_rows_in_another_order_and_of_other_signs_have_no_pole():
    """A multiplier in units that vary, and rows of which the forces alone would change their direction."""

    def residual(t, y, yp):
        x, lam = y[0], y[4]
        one, other, first, second, constraint = pendulum(t, [*y[:4], lam * (2.0 + x)], yp)
        return [-second, one, other, first, constraint]

    sol = daedal.solve_dae(residual, (0.0, 2.0), *START, rtol=1e-6)
    assert isinstance(sol, RecognisedSolution) and sol.status == "finished"


def test_multipliers_that_go_through_infinity_are_not_stepped_over():
    def residual(t, y, yp):
        return [yp[0] - y[1], yp[1] - y[2] * (1.0 - t), y[0] - np.sin(t)]

    with pytest.raises(daedal.IntegrationError, match="t = 1"):
        daedal.solve_dae(residual, (0.0, 2.0), [0.0, 1.0, 0.0], None)
    assert isinstance(daedal.solve_dae(residual, (0.0, 0.9), [0.0, 1.0, 0.0], None), RecognisedSolution)
