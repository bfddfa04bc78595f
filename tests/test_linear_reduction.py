"""Linear DAEs and their stabilised index reduction, Wijckmans sections 6.2 and 6.3.

Tables 6.1 to 6.3 show how errors delta in [4e-5, 6e-5] of the constraint come through. How they entered is not
stated; here they are drawn anew for every step. The printed x, drift and trends follow from that, the printed errors of
y are single draws; so what is tested are bounds and the dependence on h.
"""

import math
import pickle

import numpy as np
import pytest

import daedal
from daedal import LinearDAE, library
from daedal.formulations import StabilisedReduction
from daedal.mechanics.formulations.linear_reduction import stabilised, stabilised_start
from daedal.methods import DASSL

EPS = 1e-6
SMALLEST, LARGEST = 4e-5, 6e-5
STEPS = (1e-4, 1e-5, 1e-6)


def disturbed(problem, h, *, derivative=False):
    """The problem with an error of the constraint (and of its derivative) that is new at every multiple of h."""
    random = np.random.default_rng(20)
    errors = {0: np.zeros(problem.n_y)}

    def delta(t):
        step = round(t / h)
        while step not in errors:
            errors[len(errors)] = random.uniform(SMALLEST, LARGEST, problem.n_y)
        return errors[step]

    names = ("A", "B", "C", "D", "p", "n_x", "n_y", "names")
    return LinearDAE(
        **{name: getattr(problem, name) for name in names},
        q=lambda t: problem.q(t) + delta(t),
        q_derivative=lambda t: problem.q_derivative(t) + (delta(t) if derivative else 0.0),
    )


def errors_of(model, h, formulation, **disturbance):
    """Largest errors of x and y, and of the constraint, over the last steps of backward Euler to T = 1e-3."""
    problem = model.problem
    sol = daedal.solve(
        disturbed(problem, h, **disturbance),
        model.t_span,
        model.initial,
        formulation=formulation,
        method=DASSL(max_order=1),
        fixed_step=h,
        dense_output=False,
    )
    last = range(sol.t.size - min(10, sol.t.size // 2), sol.t.size)
    error, drift = [], []
    for i in last:
        x, y = sol.y[: problem.n_x, i], sol.y[problem.n_x : problem.n, i]
        error.append(np.abs(sol.y[: problem.n, i] - model.extra["exact"](sol.t[i])))
        at = [problem.coefficient(name, sol.t[i]) for name in "CDq"]
        drift.append(np.abs(at[0] @ x + at[1] @ y + at[2]))
    return np.max(error, axis=0), np.max(drift)


# --- Tables 6.1 to 6.3 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("h", STEPS)
def test_table_6_1_nearly_index_2_as_it_stands(h):
    """y receives differences of the errors divided by h, until h is as small as eps: then errors divided by eps."""
    (ex, ey), drift = errors_of(library.nearly_index2(EPS), h, "none")
    assert SMALLEST <= drift <= LARGEST
    assert 0.5 * SMALLEST <= ex <= LARGEST
    assert 1e-6 / max(h, EPS) < ey < 2e-5 / max(h, EPS)


@pytest.mark.parametrize("h", STEPS)
def test_table_6_2_index_2_as_it_stands(h):
    """y receives differences of the errors divided by h."""
    (ex, ey), drift = errors_of(library.linear_index2(), h, "none")
    assert SMALLEST <= drift <= LARGEST
    assert ex == pytest.approx(drift)
    assert 2e-6 / h < ey < 2e-5 / h


@pytest.mark.parametrize("L", [None, np.eye(2)], ids=["C^T", "I"])
def test_table_6_3_the_stabilised_form_does_not_depend_on_h(L):
    model, found = library.ill_conditioned_constraints(EPS), []
    for h in STEPS:
        (ex1, ex2, ey1, ey2), drift = errors_of(model, h, StabilisedReduction(L))
        assert SMALLEST <= drift <= LARGEST
        assert SMALLEST <= ex1 <= LARGEST
        assert 2 * SMALLEST <= ex2 <= 2 * LARGEST
        assert ey1 < 1e-6
        assert ey2 < 2e-5
        found.append(ey2)
    assert max(found) < 10.0 * min(found)


def test_table_6_3_errors_of_both_constraints():
    model = library.ill_conditioned_constraints(EPS)
    for h in STEPS:
        (ex1, ex2, ey1, ey2), _ = errors_of(model, h, "stabilised_reduction", derivative=True)
        assert SMALLEST <= ex1 <= LARGEST and 2 * SMALLEST <= ex2 <= 2 * LARGEST
        assert ey1 < 1e-6
        assert 3e-5 < ey2 < 1.2e-4


def test_example_6_7_as_it_stands_has_errors_that_grow():
    errors = [errors_of(library.ill_conditioned_constraints(EPS), h, "none")[0][3] for h in STEPS]
    assert errors[0] > 0.01 and errors[2] > 1.0
    assert errors[2] > 5.0 * errors[0]


@pytest.mark.parametrize("name", ["nearly_index2", "linear_index2"])
def test_the_stabilised_form_cures_examples_6_4_and_6_5(name):
    for h in STEPS:
        (ex, ey), _ = errors_of(library.get(name), h, "stabilised_reduction", derivative=True)
        assert SMALLEST <= ex <= LARGEST
        assert ey <= 1.05 * LARGEST


def test_only_the_multiplier_receives_errors_divided_by_h():
    """It gets the difference of two errors of the constraint over h, up to the error of backward Euler, h / 2."""
    model = library.linear_index2()
    for h in STEPS:
        sol = daedal.solve(
            disturbed(model.problem, h),
            model.t_span,
            model.initial,
            formulation="stabilised_reduction",
            method=DASSL(max_order=1),
            fixed_step=h,
        )
        assert np.max(np.abs(sol.y[1, 2:] - 2.0 * np.sin(sol.t[2:]))) < 1e-12
        errors = np.random.default_rng(20).uniform(SMALLEST, LARGEST, sol.t.size - 1)  # those of `disturbed`
        np.testing.assert_allclose(sol.y[2, 2:], -np.diff(errors) / h, rtol=1e-9, atol=0.6 * h)


# --- the models ---------------------------------------------------------------------------------------------------

MODELS = ["nearly_index2", "linear_index2", "ill_conditioned_constraints"]


@pytest.mark.parametrize("name", MODELS)
def test_the_closed_solutions_solve_the_equations(name):
    model = library.get(name)
    problem, exact = model.problem, model.extra["exact"]
    for t, h in ((2e-6, 1e-9), (1e-3, 1e-5), (0.7, 1e-4)):
        z, slope = exact(t), (exact(t + h) - exact(t - h)) / (2.0 * h)
        x, y = z[: problem.n_x], z[problem.n_x :]
        a, b, c, d, p, q = (problem.coefficient(k, t) for k in "ABCDpq")
        expected = a @ x + b @ y + p
        np.testing.assert_allclose(slope[: problem.n_x], expected, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(c @ x + d @ y + q, 0.0, atol=1e-15)
        np.testing.assert_allclose(
            problem.derivative("q", t), (problem.q(t + h) - problem.q(t - h)) / (2 * h), atol=1e-6
        )


@pytest.mark.parametrize("t1", [1e-3, 1.0])
@pytest.mark.parametrize("name", MODELS)
def test_the_stabilised_form_at_variable_steps(name, t1):
    """It takes a few hundred steps, among them the initial layer, where the problem as it stands takes thousands."""
    model = library.get(name)
    sol = daedal.solve(model.problem, (0.0, t1), model.initial, formulation="stabilised_reduction", **model.options)
    assert sol.stats.steps < 300
    np.testing.assert_allclose(sol.y[: model.problem.n, -1], model.extra["exact"](t1), atol=2e-5)
    assert sol.names[: model.problem.n] == tuple(model.problem.names)


@pytest.mark.parametrize("name", MODELS)
def test_as_it_stands_at_variable_steps(name):
    model = library.get(name)
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, atol=2e-5)
    assert sol.z.shape[0] == model.problem.n_y


# --- the problem class and its checks -----------------------------------------------------------------------------


def turning(omega=1.0, d=0.0):
    """C = (cos, sin) turns; x = (cos 2t, sin 2t) + (0, t), y = e^t by construction."""

    def c(t):
        return np.array([[math.cos(omega * t), math.sin(omega * t)]])

    def x(t):
        return np.array([math.cos(2.0 * t), math.sin(2.0 * t) + t])

    def p(t):
        return np.array([-2.0 * math.sin(2.0 * t), 2.0 * math.cos(2.0 * t) + 1.0]) - math.exp(t) * c(t)[0]

    return LinearDAE(
        np.zeros((2, 2)),
        lambda t: c(t).T,
        c,
        lambda t: np.array([[d * (1.0 + t)]]),
        p,
        lambda t: -(c(t) @ x(t)) - d * (1.0 + t) * math.exp(t),
        n_x=2,
        n_y=1,
    ), x


@pytest.mark.parametrize("d", [0.0, 1e-8, 0.5])
def test_coefficients_that_depend_on_time_are_differentiated(d):
    problem, x = turning(d=d)
    sol = daedal.solve(problem, (0.0, 1.0), (x(0.0), [1.0]), formulation="stabilised_reduction", rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(sol.y[:2, -1], x(1.0), atol=1e-5)
    assert sol.y[2, -1] == pytest.approx(math.e, abs=1e-5)
    assert abs(sol.y[3, -1]) < 1e-3


def test_derivatives_by_differences_agree_with_given_ones():
    model = library.ill_conditioned_constraints()
    problem = model.problem
    guess = LinearDAE(problem.A, problem.B, problem.C, problem.D, problem.p, problem.q, n_x=2, n_y=2)
    for t in (0.0, 0.3):
        np.testing.assert_allclose(guess.derivative("q", t), problem.derivative("q", t), rtol=1e-11)
        np.testing.assert_array_equal(guess.derivative("C", t), np.zeros((2, 2)))


@pytest.mark.parametrize("d, y0", [([[0.0]], 0.0), ([[-0.5]], 2.0)])
def test_an_unknown_y0_is_computed(d, y0):
    problem = LinearDAE([[0.0]], [[-1.0]], [[1.0]], d, lambda t: [math.sin(t)], lambda t: [-math.cos(t)], n_x=1, n_y=1)
    z, slope = stabilised_start(problem, 0.0, ([1.0 if d == [[0.0]] else 2.0], None))
    np.testing.assert_allclose(z, [1.0 if d == [[0.0]] else 2.0, y0, 0.0], atol=1e-9)
    reduced = stabilised(problem)
    np.testing.assert_allclose(reduced.residual(0.0, z, slope), 0.0, atol=1e-9)


def test_an_unknown_y0_where_the_constraints_are_of_different_index():
    problem = LinearDAE(
        np.zeros((2, 2)),
        np.eye(2),
        np.eye(2),
        [[2.0, 0.0], [0.0, 0.0]],
        [0.0, 1.0],
        lambda t: [0.0, -math.sin(t)],
        n_x=2,
        n_y=2,
    )
    z, _ = stabilised_start(problem, 0.0, ([4.0, 0.0], None))
    np.testing.assert_allclose(z, [4.0, 0.0, -2.0, 0.0, 0.0, 0.0], atol=1e-9)


def test_the_jacobian_is_that_of_the_residual():
    problem, _ = turning(d=0.3)
    for implicit in (stabilised(problem), problem.implicit()):
        n, t, cj = implicit.n, 0.4, 7.0
        rng = np.random.default_rng(1)
        z, zp = rng.normal(size=n), rng.normal(size=n)
        base = np.asarray(implicit.residual(t, z, zp))
        columns = [
            np.asarray(implicit.residual(t, z + e, zp + cj * e)) - base for e in np.eye(n)
        ]  # linear: differences are exact
        np.testing.assert_allclose(implicit.jacobian(t, z, zp, cj), np.array(columns).T, atol=1e-10)


def test_a_problem_with_constant_coefficients_can_be_pickled():
    problem = LinearDAE([[-1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [0.0], n_x=1, n_y=1)
    problem.semi_explicit()
    copy = pickle.loads(pickle.dumps(problem))
    sol = daedal.solve(copy, (0.0, 1.0), ([1.0], [-1.0]))
    assert sol.y[0, -1] == pytest.approx(math.exp(-2.0), rel=1e-4)


def one(**changes):
    values = {"A": [[0.0]], "B": [[1.0]], "C": [[1.0]], "D": [[0.0]], "p": [0.0], "q": [0.0], "n_x": 1, "n_y": 1}
    return LinearDAE(**(values | changes))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"A": [[0.0, 1.0]]}, r"A has shape \(1, 2\); expected \(1, 1\)"),
        ({"n_x": 0}, "n_x must be an integer of at least 1"),
        ({"q_derivative": 3.0}, "q_derivative must be a function"),
        ({"names": ["x"]}, "names has 1 entries for 2 variables"),
    ],
)
def test_bad_data_are_refused(changes, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        one(**changes)


def test_what_the_stabilised_form_cannot_do_is_said():
    with pytest.raises(daedal.InvalidProblemError, match="C L is singular at t = 0; choose another L"):
        stabilised(one(C=[[0.0]]))
    with pytest.raises(daedal.InvalidProblemError, match="at least as many x as y"):
        stabilised(LinearDAE([[0.0]], [[1.0, 0.0]], [[1.0], [0.0]], np.eye(2), [0.0], [0.0, 0.0], n_x=1, n_y=2))
    with pytest.raises(daedal.InvalidProblemError, match="unknown formulation 'ggl' for a linear DAE"):
        daedal.solve(one(), (0.0, 1.0), ([0.0], [0.0]), formulation="ggl")
    with pytest.raises(daedal.InvalidProblemError, match="initial must be a pair"):
        daedal.solve(one(), (0.0, 1.0), [1.0, 2.0, 3.0], formulation="stabilised_reduction")
    with pytest.raises(daedal.InvalidProblemError, match=r"L has shape \(2,\)"):
        daedal.solve(one(), (0.0, 1.0), ([0.0], [0.0]), formulation=StabilisedReduction([1.0, 2.0]))
