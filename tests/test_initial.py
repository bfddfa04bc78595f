"""Consistent initial values: Newton's method of Brown, Hindmarsh and Petzold, the derivative array, the Euler step.

Brenan, Campbell and Petzold, sections 5.3.1, 5.3.4 and 7.5.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

import daedal
from daedal import library
from daedal.index.structure.system_equations import SystemEquations
from daedal.initial.array_start import difference_array_initial
from daedal.initial.newton_start import damped_euler_step
from daedal.initial.variable_kinds import algebraic_variables
from daedal.methods.workspace import Workspace


def semi_explicit():
    """u1' = v1 - u1, u2' = -v2, 0 = v1^3 + v1 - u1, 0 = exp(v2) - u2 (index 1)."""
    return daedal.SemiExplicitDAE(
        lambda t, u, v: [v[0] - u[0], -v[1]],
        lambda t, u, v: [v[0] ** 3 + v[0] - u[0], math.exp(v[1]) - u[1]],
        2,
        2,
        names=["u1", "u2", "v1", "v2"],
    )


def root_of_cubic(u):
    return float(np.real(next(r for r in np.roots([1.0, 0.0, 1.0, -u]) if abs(r.imag) < 1e-9)))


# --- problem 1: differential variables given ------------------------------------------------------------------


@settings(max_examples=25)
@given(st.floats(-5.0, 5.0), st.floats(0.1, 5.0), st.floats(-3.0, 3.0), st.floats(-2.0, 3.0))
def test_algebraic_variables_are_found_and_differential_ones_kept(u1, u2, guess1, guess2):
    u, v = daedal.consistent_initial(semi_explicit(), 0.0, ([u1, u2], [guess1, guess2]))
    np.testing.assert_array_equal(u, [u1, u2])
    np.testing.assert_allclose(v, [root_of_cubic(u1), math.log(u2)], rtol=1e-6, atol=1e-8)


def test_derivatives_of_differential_variables_are_found():
    problem = semi_explicit().implicit()
    y, yp = daedal.consistent_initial(problem, 0.0, ([2.0, 3.0, 0.5, 0.5], None))
    v1, v2 = root_of_cubic(2.0), math.log(3.0)
    np.testing.assert_allclose(y, [2.0, 3.0, v1, v2], rtol=1e-7)
    np.testing.assert_allclose(yp[:2], [v1 - 2.0, -v2], rtol=1e-7)


def test_last_correction_is_below_a_hundredth_of_the_newton_tolerance():
    """||A^{-1} F|| < 0.01 x 0.33 in the weights of the tolerances, at t0 itself."""
    problem = semi_explicit().implicit()
    rtol, atol, h = 1e-4, 1e-6, 1e-6
    y, yp = daedal.consistent_initial(problem, 0.0, ([2.0, 3.0, 0.5, 0.5], None), rtol=rtol, atol=atol)
    weights = rtol * np.abs([2.0, 3.0, 0.5, 0.5]) + atol
    workspace = Workspace(problem)
    r = workspace.residual(0.0, y, yp)
    assert workspace.prepare(0.0, y, yp, r, 1.0 / h, h, 1.0 / weights)
    delta = workspace.solve(0.0, y, yp, r, 1.0 / h, 1.0 / weights)
    assert np.sqrt(np.mean((delta / weights) ** 2)) < 0.0033


@pytest.mark.parametrize("guess", [-20.0, 0.0, 10.0, 40.0])
def test_linesearch_saves_a_guess_from_which_full_steps_diverge(guess):
    """arctan: Newton's method with full steps diverges from all guesses further than 1.39 from the root."""
    problem = daedal.SemiExplicitDAE(lambda t, u, v: [v[0]], lambda t, u, v: [math.atan(v[0] - 3.0) - u[0]], 1, 1)
    _, v = daedal.consistent_initial(problem, 0.0, ([0.5], [guess]))
    assert v[0] == pytest.approx(3.0 + math.tan(0.5), rel=1e-6)


def test_equations_without_a_solution_are_refused():
    problem = daedal.SemiExplicitDAE(lambda t, u, v: [v[0]], lambda t, u, v: [v[0] ** 2 + 1.0 + u[0]], 1, 1)
    with pytest.raises(daedal.InconsistentInitialError, match="no consistent initial values"):
        daedal.consistent_initial(problem, 0.0, ([1.0], [1.0]))


# --- problem 2: derivatives given -----------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.floats(-1.0, 4.0), st.floats(-1.0, 4.0))
def test_steady_state_is_found_from_zero_derivatives(first, second):
    """y1' = 1 + y1^2 y2 - 4 y1, y2' = 3 y1 - y1^2 y2 (Brusselator): steady state (1, 3)."""

    def residual(t, y, yp):
        return [yp[0] - 1.0 - y[0] ** 2 * y[1] + 4.0 * y[0], yp[1] - 3.0 * y[0] + y[0] ** 2 * y[1]]

    problem = daedal.ImplicitDAE(residual, 2)
    try:
        y, yp = daedal.consistent_initial(problem, 0.0, ([first, second], [0.0, 0.0]), fixed="derivative")
    except daedal.InconsistentInitialError:
        return  # dF/dy is singular on a curve of guesses
    np.testing.assert_array_equal(yp, 0.0)
    np.testing.assert_allclose(y, [1.0, 3.0], rtol=1e-6)


def test_steady_state_is_found_from_a_near_guess():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + math.sin(y[0]) + 0.5 * y[1] - 0.3], 2)
    y, _ = daedal.consistent_initial(problem, 0.0, ([0.5, 0.2], [0.0, 0.0]), fixed="derivative")
    np.testing.assert_allclose(y, [math.asin(0.3), 0.0], atol=1e-7)


def test_given_derivatives_need_not_vanish():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0] ** 3, y[1] - y[0]], 2)
    y, yp = daedal.consistent_initial(problem, 0.0, ([1.0, 1.0], [-8.0, 0.0]), fixed="derivative")
    np.testing.assert_allclose(y, [2.0, 2.0], rtol=1e-6)
    np.testing.assert_array_equal(yp, [-8.0, 0.0])


# --- chosen variables held ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("held", "expected"), [(["x", "u"], [0.6, 0.8]), (["y", "u"], [math.sqrt(0.51), 0.7])])
def test_chosen_variables_are_held_and_the_others_move(held, expected):
    """A point on the unit circle and its velocity: either coordinate may be given."""

    def residual(t, z, zp):
        x, y, u, v, _ = z
        return [zp[0] - u, zp[1] - v, zp[2] + x * z[4], zp[3] + y * z[4], x * x + y * y - 1.0]

    problem = daedal.ImplicitDAE(residual, 5, names=["x", "y", "u", "v", "lam"], algebraic=["lam"])
    y, _ = daedal.consistent_initial(problem, 0.0, ([0.6, 0.7, 0.8, -0.5, 0.0], None), fixed=held)
    np.testing.assert_allclose(y[:2], expected, rtol=1e-7)
    assert y[2] == 0.8
    assert y[0] * y[2] + y[1] * y[3] == pytest.approx(0.0, abs=1e-7)  # the hidden constraint of velocity


# --- the derivative array -------------------------------------------------------------------------------------

COUPLED = library.coupled_derivatives()  # Y1' + Y2' + Y1 = cos t, Y2 = sin t


@pytest.mark.parametrize("guess", [(2.0, 0.5, 0.0), (3.0, -1.0, 5.0)])
def test_equations_alone_leave_open_what_the_derivative_array_determines(guess):
    """Given Y1'(0), the equations at t = 0 cannot tell Y1(0) and Y2'(0) apart; the derivative of Y2 = sin t can."""
    t0, given_slope = 0.0, -1.0
    y1, y2, slope2 = guess

    def equations(x):
        return COUPLED.problem.evaluate(t0, x[:2], [given_slope, x[2]])

    x = np.array([y1, y2, slope2])
    jacobian = np.array([(equations(x + 1e-6 * e) - equations(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]).T
    assert np.linalg.matrix_rank(jacobian, tol=1e-6) == 2  # three unknowns
    naive = x - np.linalg.lstsq(jacobian, equations(x), rcond=1e-6)[0]
    np.testing.assert_allclose(equations(naive), 0.0, atol=1e-8)
    assert abs(naive[0] - 1.0) > 0.1  # satisfies the equations, and is wrong

    result = difference_array_initial(
        COUPLED.problem,
        t0,
        np.array([y1, y2]),
        np.array([given_slope, slope2]),
        fixed=np.array([False, False]),
        fixed_slope=np.array([True, False]),
        weights=np.full(2, 1e-9),
        index=2,
    )
    assert result.converged
    np.testing.assert_allclose(result.y, [1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(result.yp, [-1.0, 1.0], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("transistor_amplifier", {}),
        ("robertson", {}),
        ("pendulum", {"form": "index1"}),
        ("pendulum", {"form": "index2"}),
        ("pendulum", {"form": "ggl"}),
        ("tppc2", {"form": "index1"}),
    ],
)
def test_missing_derivatives_are_computed(name, parameters):
    """Those of the differential variables are determined by the equations or by their derivatives."""
    model = library.get(name, **parameters)
    y0, yp0 = model.initial
    y, yp = daedal.consistent_initial(model.problem, model.t_span[0], (y0, None))
    differential = np.ones(y0.size, dtype=bool) if model.problem.algebraic is None else ~model.problem.algebraic
    np.testing.assert_allclose(y, y0, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(yp[differential], yp0[differential], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["coupled_derivatives", "linear_index1", "hessenberg_index2", "damped_oscillator"])
def test_missing_derivatives_agree_with_closed_solutions(name):
    model = library.get(name)
    exact = model.extra["exact"]
    y, yp = daedal.consistent_initial(model.problem, 0.5, (exact(0.5), None))
    differential = ~(np.zeros(y.size, dtype=bool) if model.problem.algebraic is None else model.problem.algebraic)
    np.testing.assert_allclose(y, exact(0.5), rtol=1e-7)
    np.testing.assert_allclose(yp[differential], exact(0.5, 1)[differential], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("unit", [1e3, 1e-3, 1e-6, 1e-9])
def test_computed_derivatives_do_not_depend_on_the_unit_of_time(unit):
    """The same equations in milliseconds, microseconds, nanoseconds."""
    scaled = daedal.ImplicitDAE(lambda t, y, yp: COUPLED.problem.evaluate(t / unit, y, yp * unit), 2)
    _, yp = daedal.consistent_initial(scaled, 0.0, ([1.0, 0.0], None))
    np.testing.assert_allclose(yp * unit, [-1.0, 1.0], rtol=1e-4)


def test_algebraic_variable_of_index_2_comes_from_the_hidden_constraint():
    """g(t, y) = 0 does not contain z; its time derivative does."""
    model = library.hessenberg_index2(form="semi-explicit")
    y, z = daedal.consistent_initial(model.problem, 0.0, (model.initial[0], [7.0]))
    np.testing.assert_allclose(y, [1.0, 1.0], rtol=1e-7)
    np.testing.assert_allclose(z, [-0.5], rtol=1e-5)


# --- the damped Euler step ------------------------------------------------------------------------------------


def euler_step(h, weights):
    problem = semi_explicit().implicit()
    v1, v2 = root_of_cubic(2.0), math.log(3.0)
    y0 = np.array([2.0, 3.0, v1, v2])
    return problem, y0, damped_euler_step(Workspace(problem), 0.0, y0, np.zeros(4), h, np.full(4, weights))


def test_euler_step_returns_values_behind_the_start_that_satisfy_the_equations():
    problem, y0, (t, y, yp) = euler_step(1e-4, 1e-3)
    assert t == 1e-4
    np.testing.assert_allclose(y - y0, t * yp, atol=1e-10)  # implicit Euler
    # The damping by 0.75 leaves a quarter of the error in each iteration, until it is a third of the weights.
    np.testing.assert_allclose(problem.evaluate(t, y, yp)[2:], 0.0, atol=1e-3)
    np.testing.assert_allclose(yp[:2], [root_of_cubic(2.0) - 2.0, -math.log(3.0)], atol=0.3 * 1e-3 / t)


def test_euler_step_is_shortened_until_the_solution_moves_less_than_its_weights():
    _, y0, (t, y, _) = euler_step(1.0, 1e-4)
    assert t < 1e-3
    assert np.sqrt(np.mean(((y - y0) / 1e-4) ** 2)) <= 1.0


def test_derivative_from_the_euler_step_is_first_order():
    slopes = np.array([root_of_cubic(2.0) - 2.0, -math.log(3.0)])
    errors = []
    for h in (1e-2, 1e-3, 1e-4):
        problem = semi_explicit().implicit()
        y0 = np.array([2.0, 3.0, root_of_cubic(2.0), math.log(3.0)])
        # Weights so large that the first step is accepted, Newton's method ends at rounding only.
        tight = damped_euler_step(Workspace(problem), 0.0, y0, np.zeros(4), h, np.full(4, 1e-2 * h * 50.0))
        errors.append(np.max(np.abs(tight[2][:2] - slopes)))
    assert errors[0] > errors[1] > errors[2]


# --- what solve does with initial values ----------------------------------------------------------------------


def circle():
    """x' = -y v, y' = x v, 0 = v - 1 - x^2 - y^2: index 1."""
    return daedal.SemiExplicitDAE(
        lambda t, u, v: [-u[1] * v[0], u[0] * v[0]],
        lambda t, u, v: [v[0] - 1.0 - u[0] ** 2 - u[1] ** 2],
        2,
        1,
        names=["x", "y", "v"],
    )


def test_missing_algebraic_values_are_computed_before_the_run():
    sol = daedal.solve(circle(), (0.0, 1.0), ([1.0, 0.0], None), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(sol.y[:, 0], [1.0, 0.0, 2.0], rtol=1e-8)
    np.testing.assert_allclose(sol.y[:2, -1], [math.cos(2.0), math.sin(2.0)], atol=1e-6)


def test_inconsistent_start_is_refused_with_the_violated_equation():
    with pytest.raises(daedal.InconsistentInitialError) as refusal:
        daedal.solve(circle(), (0.0, 1.0), ([1.0, 0.0], [1.7]))
    assert refusal.value.equations == (2,)
    assert refusal.value.residual[2] == pytest.approx(-0.3)
    assert "equation 2" in str(refusal.value)
    assert "v by 0.3" in str(refusal.value)


def test_several_violated_equations_are_named():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[1] - 1.0, y[2] - y[0]], 3, algebraic=[1, 2])
    with pytest.raises(daedal.InconsistentInitialError) as refusal:
        daedal.solve(problem, (0.0, 1.0), ([0.0, 1.5, -2.0], [1.0, 0.0, 0.0]))
    assert set(refusal.value.equations) == {0, 1, 2}


def test_correction_keeps_differential_variables_and_moves_the_others():
    sol = daedal.solve(circle(), (0.0, 1.0), ([1.0, 0.0], [1.7]), correct_initial=True, rtol=1e-8, atol=1e-10)
    right = daedal.solve(circle(), (0.0, 1.0), ([1.0, 0.0], [2.0]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(sol.y[:, 0], [1.0, 0.0, 2.0], rtol=1e-9)
    np.testing.assert_allclose(sol.y[:, -1], right.y[:, -1], rtol=1e-7)


def test_wrong_derivatives_are_corrected_too():
    problem = circle().implicit()
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0, 1.7], [5.0, 5.0, 5.0]), correct_initial=True)
    np.testing.assert_allclose(sol.yp[:2, 0], [0.0, 2.0], atol=1e-6)


def test_wrong_derivative_alone_is_refused():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    with pytest.raises(daedal.InconsistentInitialError) as refusal:
        daedal.solve(problem, (0.0, 1.0), ([1.0], [3.0]))
    assert refusal.value.equations == (0,)


@pytest.mark.parametrize(("atol", "accepted"), [(1e-5, True), (1e-9, False)])
def test_inconsistency_is_measured_in_the_tolerances(atol, accepted):
    """An error of 1e-6 in the algebraic variable is nothing beside 1e-5, and fatal beside 1e-9."""

    def run():
        return daedal.solve(circle(), (0.0, 1.0), ([1.0, 0.0], [2.0 + 1e-6]), rtol=1e-10, atol=atol)

    if accepted:
        assert run().success
    else:
        with pytest.raises(daedal.InconsistentInitialError):
            run()


def test_differential_variables_off_their_constraints_move_only_if_asked_to():
    """The length of the pendulum is violated: no algebraic variable can mend that."""
    model = library.pendulum(form="ggl")
    y0, yp0 = (values.copy() for values in model.initial)
    y0[0] = 1.01
    with pytest.raises(daedal.InconsistentInitialError) as refusal:
        daedal.solve(model.problem, model.t_span, (y0, yp0), method="dassl", error_test="differential")
    assert 5 in refusal.value.equations
    solution = daedal.solve(
        model.problem, (0.0, 0.1), (y0, yp0), method="dassl", error_test="differential", correct_initial=True
    )
    assert np.abs(model.problem.evaluate(0.0, solution.y[:, 0], solution.yp[:, 0])).max() <= 1e-10
    assert np.abs(solution.y[:, 0] - y0)[:2].max() <= 0.011


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("t", [0.0, 2.0])
def test_constraint_on_a_variable_that_is_zero(t, unit):
    """Sliding along v = 0: v' comes out as round-off, and nothing in its equation says of what."""
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z: [(1.0 - 2.0 * z[0]) / unit, z[0] / unit], lambda t, y, z: [y[0]], 2, 1
    )
    y, z = daedal.consistent_initial(problem, t * unit, ([0.0, 0.0], [0.3]))
    assert np.array_equal(y, [0.0, 0.0])
    assert z == pytest.approx([0.5], rel=1e-8)
    with pytest.raises(daedal.InconsistentInitialError):
        daedal.consistent_initial(problem, t * unit, ([1e-8, 0.0], [0.3]))


def test_consistent_start_is_not_moved_by_a_correction():
    model = library.pendulum(form="index1")
    y0, yp0 = model.initial
    sol = daedal.solve(model.problem, model.t_span, model.initial, correct_initial=True)
    np.testing.assert_allclose(sol.y[:, 0], y0, atol=1e-9)
    np.testing.assert_allclose(sol.yp[:4, 0], yp0[:4], atol=1e-9)


def test_large_sparse_problem_gets_its_missing_derivatives():
    model = library.heat2d(m=30, structure="sparse")
    y, yp = daedal.consistent_initial(model.problem, 0.0, (model.initial[0], None))
    inside = ~model.problem.algebraic
    np.testing.assert_allclose(yp[inside], model.initial[1][inside], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y, model.initial[0], atol=1e-9)


def test_an_exact_matrix_leads_to_the_start_as_differences_do():
    """The first correction of v is off by that of u, which is given; it is taken back and does not count as failure."""

    def jacobian(t, y, yp, cj):
        return [[cj + 1.0, -1.0], [1.0, 1.0]]

    problem = daedal.ImplicitDAE(
        lambda t, y, yp: [yp[0] + y[0] - y[1], y[0] + y[1] - np.cos(t)], 2, jacobian=jacobian, algebraic=[1]
    )
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0], None), compile="never")
    assert sol.yp[0, 0] == pytest.approx(-1.0, abs=1e-9) and sol.y[1, 0] == pytest.approx(0.0, abs=1e-12)


# --- z0 is not given --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("logarithm", [np.log, math.log])
def test_search_for_z_begins_where_the_functions_are_defined(logarithm):
    problem = daedal.SemiExplicitDAE(lambda t, y, z: [-y[0]], lambda t, y, z: [logarithm(z[0]) - y[0]], 1, 1)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], None))
    np.testing.assert_allclose(sol.y[1], np.exp(sol.y[0]), rtol=1e-6)
    _, z = daedal.consistent_initial(problem, 0.0, ([1.0], None))
    assert z[0] == pytest.approx(math.e)


def test_search_for_z_goes_on_from_other_guesses():
    """At z = 0 the matrix is singular."""
    problem = daedal.SemiExplicitDAE(lambda t, y, z: [-y[0]], lambda t, y, z: [z[0] ** 2 - 4.0], 1, 1)
    _, z = daedal.consistent_initial(problem, 0.0, ([1.0], None))
    assert abs(z[0]) == pytest.approx(2.0)


def test_a_guess_of_z_is_corrected():
    problem = daedal.SemiExplicitDAE(lambda t, y, z: [-y[0]], lambda t, y, z: [z[0] ** 2 - 4.0], 1, 1)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [-1.5]), correct_initial=True)
    assert sol.y[1, 0] == pytest.approx(-2.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_refusals_say_where_z_was_looked_for_and_name_the_function():
    def g(t, y, z):
        return [z[0], z[1], z[2], np.sqrt(-1.0 - z[3] ** 2)]

    problem = daedal.SemiExplicitDAE(lambda t, y, z: [0.0, 0.0, 0.0], g, 3, 4)
    for run in (daedal.solve, lambda problem, span, initial: daedal.consistent_initial(problem, span[0], initial)):
        with pytest.raises(daedal.InvalidProblemError, match=r"g\[3\] is nan.*z = 0, 1, -1.*guess as z0"):
            run(problem, (0.0, 1.0), ([1.0, 0.0, 0.0], None))
        with pytest.raises(daedal.InvalidProblemError, match=r"g\[3\] is nan at the initial values"):
            run(problem, (0.0, 1.0), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]))
    unsolvable = daedal.SemiExplicitDAE(lambda t, y, z: [0.0], lambda t, y, z: [z[0] ** 2 + 1.0], 1, 1)
    with pytest.raises(daedal.InconsistentInitialError, match=r"z = 0, 1, -1.*were tried"):
        daedal.solve(unsolvable, (0.0, 1.0), ([1.0], None))


def test_exceptions_of_the_user_arrive_with_a_note_on_what_was_tried():
    problem = daedal.SemiExplicitDAE(lambda t, y, z: [0.0], lambda t, y, z: [math.sqrt(-1.0 - z[0] ** 2)], 1, 1)
    with pytest.raises(ValueError, match=r"math domain error|nonnegative") as failure:
        daedal.solve(problem, (0.0, 1.0), ([1.0], None))
    assert "z0 was not given" in failure.value.__notes__[0]


def linear_index2(**kwargs):
    """x1' = y, x2' = x1, 0 = x1 + x2 - sin t: the derivative of the constraint says y = cos t - x1."""
    A, B, C = [[0.0, 0.0], [1.0, 0.0]], [[1.0], [0.0]], [[1.0, 1.0]]
    return daedal.LinearDAE(A, B, C, [[0.0]], [0.0, 0.0], lambda t: [-np.sin(t)], n_x=2, n_y=1, **kwargs)


def test_linear_problems_of_index_1_and_2():
    index1 = daedal.LinearDAE([[-1.0]], [[1.0]], [[2.0]], [[-4.0]], [0.0], lambda t: [4.0 * t], n_x=1, n_y=1)
    for y0 in (None, [7.0]):
        x, y = daedal.consistent_initial(index1, 0.5, ([3.0], y0))
        assert x.tolist() == [3.0] and y == pytest.approx([2.0])
    x, y = daedal.consistent_initial(linear_index2(), 0.0, ([1.5, -1.5], None))
    assert x == pytest.approx([1.5, -1.5]) and y == pytest.approx([-0.5], abs=1e-7)


def test_names_of_a_linear_problem_can_be_held():
    problem = linear_index2(names=["a", "b", "force"])
    x, y = daedal.consistent_initial(problem, 0.0, ([1.0, 0.0], [0.0]), fixed=["a"])
    assert x == pytest.approx([1.0, -1.0]) and y == pytest.approx([0.0], abs=1e-7)
    with pytest.raises(daedal.InconsistentInitialError, match=r"equation 2 \(1\)") as refusal:
        daedal.consistent_initial(problem, 0.0, ([1.0, 0.0], [0.0]), fixed=["a", "b"])
    assert "a by -1" in str(refusal.value)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("last", [0.0, 1.0])
def test_algebraic_variables_of_sparse_problems_are_told_apart(n, last):
    """All columns of a diagonal pattern are moved at once."""
    slopes = np.append(np.ones(n - 1), last)
    problem = daedal.ImplicitDAE(lambda t, y, yp: slopes * yp + y, n, sparsity=csc_array(np.eye(n)))
    found = algebraic_variables(problem, 0.0, np.ones(n), np.zeros(n))
    np.testing.assert_array_equal(found, slopes == 0.0)


def slider(t, y, yp):
    """A bead on a parabola in the form of index 2, with its acceleration and multiplier as unknowns."""
    x, _, u, w, a, b, force = y
    slope = 2.0 * x
    return [yp[0] - u, yp[1] - w, yp[2] - a, yp[3] - b, a + force * slope, b + 9.81 - force, w - slope * u]


SLIDER = np.array([1.0, 1.0, 0.5, 1.0, -4.124, 1.562, 0.0])


def slider_start():
    """The consistent values: the force that keeps the bead on the parabola."""
    force = (9.81 + 2.0 * 0.25) / 5.0
    return np.array([1.0, 1.0, 0.5, 1.0, -2.0 * force, force - 9.81, force])


def test_multipliers_of_index_2_are_guesses_at_any_tolerance():
    start = slider_start()
    given = start * np.where(np.arange(7) < 4, 1.0, 1.0 + 1e-5)
    for tolerance in (1e-4, 1e-9):
        sol = daedal.solve(daedal.ImplicitDAE(slider, 7), (0.0, 0.1), (given, None), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(sol.y[:, 0], start, rtol=1e-12)


def test_states_that_violate_hidden_constraints_by_less_than_the_tolerance_are_accepted():
    given = slider_start() + np.array([0.0, 0.0, 0.0, 1e-7, 0.0, 0.0, 0.0])
    problem = daedal.ImplicitDAE(slider, 7)
    sol = daedal.solve(problem, (0.0, 0.1), (given, None), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sol.y[:4, 0], given[:4], atol=1e-7)
    with pytest.raises(daedal.InconsistentInitialError):
        daedal.solve(problem, (0.0, 0.1), (given, None), rtol=1e-9, atol=1e-9)


def test_correct_initial_moves_velocities_onto_a_constraint():
    given = slider_start() + np.array([0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0])
    sol = daedal.solve(daedal.ImplicitDAE(slider, 7), (0.0, 0.1), (given, None), correct_initial=True)
    _, _, u, w = sol.y[:4, 0]
    assert w == pytest.approx(2.0 * sol.y[0, 0] * u, rel=1e-12)
    assert np.abs(sol.y[:4, 0] - given[:4]).max() <= 0.1


def test_equations_of_a_start_are_traced_once_with_the_first_run(monkeypatch):
    """The mass matrix is singular without a column of zeros, so that Newton's method does not complete the start."""
    problem = daedal.MassMatrixDAE(
        lambda t, y, p: [-p[0] * y[0], 1.0 - y[1] - y[0]], 2, mass=[[1.0, -1.0], [-1.0, 1.0]], params=[1.0]
    )
    made, known = [], 0
    usual = SystemEquations.__init__
    monkeypatch.setattr(
        SystemEquations, "__init__", lambda self, problem: (made.append(problem), usual(self, problem))[1]
    )
    for p in (1.0, 1.0, 3.0):
        y0 = [0.2, 1.0 - 0.2 * (1.0 + p)]
        sol = daedal.solve(problem, (0.0, 0.1), (y0, None), params=[p])
        e = np.array([[1.0, -1.0], [-1.0, 1.0]])
        np.testing.assert_allclose(e @ sol.yp[:, 0], [-p * y0[0], 1.0 - y0[1] - y0[0]], atol=1e-9)
        known = known or len(made)
    assert len(made) == known


def test_large_problems_of_index_2_start_from_sparse_systems():
    """400 pairs x' = z, x = sin(t + k), each index 2; z and z' follow from derivatives of the constraints."""
    n = 400
    k = np.arange(n)
    problem = daedal.ImplicitDAE(lambda t, y, yp: [*(yp[:n] - y[n:]), *(y[:n] - np.sin(t + k))], 2 * n)
    y, yp = daedal.consistent_initial(problem, 0.5, (np.r_[np.sin(0.5 + k), np.zeros(n)], None))
    np.testing.assert_allclose(y[n:], np.cos(0.5 + k), atol=1e-13)
    np.testing.assert_allclose(yp[n:], -np.sin(0.5 + k), atol=1e-13)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-9])
def test_constraints_that_coefficients_hide_from_the_structure_are_found(tolerance):
    """The last two equations hold the same combination of a and b: x = z and a = b + 1 follow."""

    def residual(t, y, yp):
        x, z, a, b = y
        return [yp[0] - a, yp[1] - b - 1.0, a + b - np.sin(x), 2.0 * a + 2.0 * b - 2.0 * np.sin(z)]

    problem = daedal.ImplicitDAE(residual, 4)
    sol = daedal.solve(problem, (0.0, 1.0), (np.zeros(4), None), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(sol.y[:, 0], [0.0, 0.0, 0.5, -0.5], atol=1e-14)
    np.testing.assert_allclose(sol.y[0], sol.y[1], atol=10.0 * tolerance)
    with pytest.raises(daedal.InconsistentInitialError):
        daedal.solve(problem, (0.0, 1.0), ([0.0, 1e-2, 0.0, 0.0], None), rtol=tolerance, atol=tolerance)
