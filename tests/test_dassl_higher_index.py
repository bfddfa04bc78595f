"""Higher index: conditioning, row scaling, error tests that spare the algebraic variables, drift, and honest failures.

Brenan, Campbell and Petzold, sections 5.4 and 6.2.
"""

import numpy as np
import pytest

import daedal
from daedal import library
from daedal.methods.workspace import Workspace

# --- conditioning of the iteration matrix ---------------------------------------------------------------------


def chain(index):
    """x_1 = sin t, x_{i+1} = x_i': Hessenberg of the given index; with an oscillator beside it."""

    def residual(t, y, yp):
        links = [yp[i] - y[i + 1] for i in range(index - 1)]
        return [yp[index] - y[index + 1], yp[index + 1] + y[index], *links, *([y[0] - np.sin(t)] if index else [])]

    return daedal.ImplicitDAE(residual, index + 2)


def inverse_matrix(problem, h, row_power=None):
    """The inverse of the iteration matrix that the solver uses at step size h."""
    workspace = Workspace(problem, row_power=row_power)
    n = problem.n
    y, yp, weights = np.ones(n), np.zeros(n), np.full(n, 1e6)
    r = workspace.residual(0.5, y, yp)
    assert workspace.prepare(0.5, y, yp, r, 1.0 / h, h, weights)
    return np.array([workspace.solve(0.5, y, yp, unit, 1.0 / h, weights) for unit in np.eye(n)]).T


def growth(problem, row_power=None):
    """The exponent q in cond(G) ~ h^-q."""
    steps = np.array([1e-2, 1e-3, 1e-4])
    conditions = []
    for h in steps:
        inverse = inverse_matrix(problem, h, row_power)
        conditions.append(np.linalg.cond(inverse, 2))
    return -np.polyfit(np.log(steps), np.log(conditions), 1)[0]


@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_condition_of_the_iteration_matrix_grows_like_h_to_the_minus_index(index):
    """BCP theorem 5.4.1."""
    assert growth(chain(index)) == pytest.approx(index, abs=0.1)


def index1(t, y, yp):
    return [yp[0] - y[1], y[1] - np.cos(y[0])]


def index2(t, y, yp):
    return [yp[0] - y[2], yp[1] + y[0] - y[2], y[0] + y[1] - np.sin(t)]


@pytest.mark.parametrize(("residual", "n", "unscaled", "scaled"), [(index1, 2, 1, 0), (index2, 3, 2, 1)])
def test_constraints_divided_by_the_step_size_lower_the_exponent_by_one(residual, n, unscaled, scaled):
    problem = daedal.ImplicitDAE(residual, n)
    rows = np.zeros(n)
    rows[-1] = 1.0
    assert growth(problem) == pytest.approx(unscaled, abs=0.1)
    assert growth(problem, row_power=rows) == pytest.approx(scaled, abs=0.1)


@pytest.mark.parametrize("row_scaling", [[0, 0, 0, 0, 1, 1], [1, 1, -1, 0, 2, 1]])
def test_row_scaling_does_not_change_the_solution(row_scaling):
    model = library.pendulum(form="ggl")
    options = {"rtol": 1e-6, "atol": 1e-6, "error_test": "differential"}
    plain = daedal.solve(model.problem, model.t_span, model.initial, **options, method="dassl")
    scaled = daedal.solve(
        model.problem, model.t_span, model.initial, row_scaling=row_scaling, **options, method="dassl"
    )
    assert scaled.stats.steps == pytest.approx(plain.stats.steps, abs=2)
    np.testing.assert_allclose(scaled.y[:, -1], plain.y[:, -1], atol=1e-6)


# --- error tests ----------------------------------------------------------------------------------------------


def fail(problem, t_span, initial, **options):
    with pytest.raises(daedal.IntegrationError) as failure:
        daedal.solve(problem, t_span, initial, **options, method="dassl")
    return failure.value


@pytest.mark.parametrize("rtol", [1e-6, 1e-8])
def test_plain_test_fails_on_trajectory_control_of_index_2_and_says_why(rtol):
    model = library.tppc2()
    error = fail(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol, error_test="all", max_steps=2000)
    assert error.solution.t[-1] < 0.01 * 300.0
    assert "index 2" in str(error)
    assert "alpha and beta" in str(error)
    assert 'error_test="differential"' in str(error)


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_pendulum_of_index_3_as_it_stands_fails_at_once_and_is_told_its_index(rtol):
    model = library.pendulum(form="index3")
    error = fail(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol, formulation="none")
    assert error.solution.t[-1] < 1e-4
    assert "index 3" in str(error)
    assert "lambda" in str(error)
    assert "MechanicalSystem" in str(error)


def test_chain_of_index_3_as_it_stands_fails_at_once_and_is_told_its_index():
    model = library.index3_chain()
    error = fail(model.problem, model.t_span, model.initial, formulation="none")
    assert error.solution.t[-1] < 1e-2
    assert "index 3" in str(error)


def test_masks_of_all_kinds_are_the_same_mask():
    model = library.pendulum(form="ggl")
    options = {"rtol": 1e-6, "atol": 1e-6}
    runs = [
        daedal.solve(model.problem, model.t_span, model.initial, error_test=mask, **options, method="dassl")
        for mask in ("differential", [0, 1, 2, 3], ["z1", "z2", "z3", "z4"], [True] * 4 + [False] * 2)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.y, runs[0].y)


def test_algebraic_variables_are_found_when_they_are_not_named():
    model = library.pendulum(form="ggl")
    unnamed = daedal.ImplicitDAE(model.problem.residual, 6, params=model.problem.params)
    options = {"rtol": 1e-6, "atol": 1e-6, "error_test": "differential"}
    a = daedal.solve(model.problem, model.t_span, model.initial, **options, method="dassl")
    b = daedal.solve(unnamed, model.t_span, model.initial, **options, method="dassl")
    np.testing.assert_array_equal(a.y, b.y)


@pytest.mark.parametrize("nu", [1.0, 2.0])
@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_semi_explicit_problems_of_index_2_are_accurate_in_all_variables(nu, rtol):
    model = library.hessenberg_index2(nu=nu, form="semi-explicit")
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol, method="dassl")
    assert sol.stats.steps < 250
    np.testing.assert_array_less(np.abs(sol.y[:, -1] - model.reference.y), 20.0 * rtol * (1.0 + abs(model.reference.y)))


def test_semi_explicit_problems_of_index_1_keep_their_algebraic_variables_in_the_test():
    model = library.robertson(t1=100.0, form="semi-explicit")
    options = {"rtol": 1e-5, "atol": 1e-9}
    auto = daedal.solve(model.problem, model.t_span, model.initial, **options, method="dassl")
    everything = daedal.solve(model.problem, model.t_span, model.initial, error_test="all", **options, method="dassl")
    np.testing.assert_array_equal(auto.y, everything.y)


HIGHER_INDEX_TESTS = {
    "mask": {"error_test": "differential"},
    "index classes": {"variable_index": [1, 1, 1, 1, 2, 2]},
    "index classes, scaled rows and Newton test": {
        "variable_index": [1, 1, 1, 1, 2, 2],
        "row_scaling": [0, 0, 0, 0, 1, 1],
        "newton_weights": [0, 0, 0, 0, 1, 1],
    },
    "filter": {"error_test": "filtered"},
    "filter, remembered rate": {"error_test": "filtered", "remember_rate": True},
}


@pytest.mark.parametrize("options", HIGHER_INDEX_TESTS.values(), ids=HIGHER_INDEX_TESTS.keys())
def test_stabilised_pendulum_is_solved_with_every_higher_index_control(options):
    """Hundreds of steps where the plain test takes more than ten thousand; errors fall with the tolerance."""
    model = library.pendulum(form="ggl")
    errors = []
    for rtol in (1e-4, 1e-5, 1e-6, 1e-7):
        sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol, **options, method="dassl")
        assert sol.stats.steps < 350
        error = np.abs(sol.y[:, -1] - model.reference.y)
        errors.append(error)
        np.testing.assert_array_less(error[:4], 100.0 * rtol)
    errors = np.array(errors)
    assert errors[-1, :4].max() < 0.01 * errors[0, :4].max()
    assert errors[-1, 4] < 0.1 * errors[0, 4]


def test_index_class_multiplies_the_estimate_by_the_step_size():
    """Class 2 tests h times the variable: the same as a weight 1/h in its tolerance, at constant step."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[1] - np.cos(t)], 2)
    initial = ([0.0, 1.0], [1.0, 0.0])
    seen = {}
    for name, options in {
        "plain": {},
        "class 2": {"variable_index": [1, 2]},
        "class 3": {"variable_index": [1, 3]},
    }.items():
        calls = seen.setdefault(name, [])

        def norm(v, w, calls=calls):
            calls.append(w.copy())
            return float(np.sqrt(np.mean((v / w) ** 2)))

        h = 2.0**-8
        daedal.solve(
            problem, (0.0, h), initial, rtol=1e-3, atol=1e-3, first_step=h, norm=norm, **options, method="dassl"
        )
    # cj = 1/h in the first step, so that the weights of the error test are larger by h^-1 and h^-2.
    plain = seen["plain"][0]
    assert any(np.allclose(w, plain * [1.0, 2.0**8], rtol=1e-12) for w in seen["class 2"])
    assert any(np.allclose(w, plain * [1.0, 2.0**16], rtol=1e-12) for w in seen["class 3"])
    assert not any(np.allclose(w, plain * [1.0, 2.0**8], rtol=1e-12) for w in seen["plain"])


def test_filter_leaves_ordinary_differential_equations_alone():
    """cj G^{-1} F_{y'} tends to the identity: about the same steps as with the plain estimate."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2)
    runs = [
        daedal.solve(
            problem, (0.0, 20.0), ([0.0, 1.0], [1.0, 0.0]), rtol=1e-6, atol=1e-6, error_test=test, method="dassl"
        )
        for test in ("all", "filtered")
    ]
    assert runs[1].stats.steps == pytest.approx(runs[0].stats.steps, rel=0.1)


def test_filter_removes_the_algebraic_part_of_index_1():
    """A steep algebraic variable that no other one sees: the plain test resolves it, the filter does not."""

    def residual(t, y, yp):
        return [yp[0] + y[0], y[1] - np.tanh(200.0 * (t - 1.0))]

    problem = daedal.ImplicitDAE(residual, 2, algebraic=[1])
    steps = {
        test: daedal.solve(
            problem, (0.0, 2.0), ([1.0, -1.0], [-1.0, 0.0]), rtol=1e-5, atol=1e-5, error_test=test, method="dassl"
        ).stats.steps
        for test in ("all", "filtered", "differential")
    }
    assert steps["all"] > 2 * steps["filtered"]
    assert steps["filtered"] == pytest.approx(steps["differential"], rel=0.1)


# --- drift ----------------------------------------------------------------------------------------------------


def constraint_residuals(form, **options):
    """Times and residuals of the constraints of position, velocity and acceleration on [0, 20]."""
    model = library.pendulum(form=form)
    sol = daedal.solve(model.problem, (0.0, 20.0), model.initial, rtol=1e-6, atol=1e-6, **options, method="dassl")
    return sol.t, *np.abs(model.extra["constraints"](sol.y))


def test_lower_index_drifts_from_its_constraint_and_the_stabilised_form_does_not():
    t, position, velocity, acceleration = constraint_residuals("index1")
    assert position[t > 15.0].max() > 10.0 * position[t < 5.0].max() > 1e-5
    assert velocity[t > 15.0].max() > 10.0 * velocity[t < 5.0].max() > 1e-5
    assert acceleration.max() < 1e-5
    t, position, velocity, _ = constraint_residuals("index2", error_test="differential")
    assert velocity.max() < 1e-5
    drifted = position[t > 15.0].max()
    t, position, velocity, _ = constraint_residuals("ggl", error_test="differential")
    assert velocity.max() < 1e-5
    assert position.max() < 1e-6 < 0.2 * drifted


def test_second_multiplier_of_the_stabilised_form_vanishes_with_the_tolerance():
    model = library.pendulum(form="ggl")
    largest = [
        np.abs(
            daedal.solve(
                model.problem,
                model.t_span,
                model.initial,
                rtol=rtol,
                atol=rtol,
                error_test="differential",
                method="dassl",
            ).y[5]
        ).max()
        for rtol in (1e-4, 1e-6, 1e-8)
    ]
    assert largest[0] > 5.0 * largest[1] > 25.0 * largest[2]
    assert largest[2] < 1e-5
