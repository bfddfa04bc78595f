"""The second-order problems of the library: closed solutions, hidden constraints, indices, and what reads them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import daedal
from daedal import cli, library

SECOND_ORDER = ("body_on_circle", "order_reduction", "particle_on_circle")
MODELS = {
    **{name: library.get(name) for name in SECOND_ORDER},
    "order_reduction-3": library.order_reduction(frequency=3.0, t1=4.0),
}
MECHANICAL = {name: library.get(name, form="mechanical") for name in ("body_on_circle", "particle_on_circle")}

every_model = pytest.mark.parametrize("model", list(MODELS.values()), ids=list(MODELS))
every_mechanism = pytest.mark.parametrize("model", list(MECHANICAL.values()), ids=list(MECHANICAL))


def derivatives(model, t):
    return [model.extra["exact"](t, k) for k in range(3)]


def test_these_are_all_second_order_problems():
    found = [name for name in library.names() if isinstance(library.get(name).problem, daedal.SecondOrderDAE)]
    assert found == sorted([*SECOND_ORDER, "three_orders"])  # the last has its tests with the problems of any index


@every_model
@given(fraction=st.floats(0.0, 1.0))
def test_closed_solution_satisfies_the_equations(model, fraction):
    t = model.t_span[0] + fraction * (model.t_span[1] - model.t_span[0])
    x, xp, xpp = derivatives(model, t)
    used = [np.where(model.problem.order >= k, value, 0.0) for k, value in ((1, xp), (2, xpp))]
    np.testing.assert_allclose(model.problem.evaluate(t, x, *used), 0.0, atol=1e-12)


@every_model
@pytest.mark.parametrize("k", [0, 1])
def test_derivatives_of_the_closed_solution_are_derivatives(model, k):
    exact, t, h = model.extra["exact"], 1.3, 1e-5
    slope = (exact(t + h, k) - exact(t - h, k)) / (2.0 * h)
    np.testing.assert_allclose(slope, exact(t, k + 1), rtol=1e-6, atol=1e-6)


@every_model
def test_orders_are_those_that_occur(model):
    """A derivative of an order that is not declared makes no difference, one that is does."""
    rng = np.random.default_rng(0)
    problem = model.problem
    values = [rng.normal(size=problem.n) for _ in range(3)]
    base = problem.evaluate(1.1, *values)
    for i in range(problem.n):
        highest = 0
        for k in (1, 2):
            changed = [value.copy() for value in values]
            changed[k][i] += 1.0
            if np.any(problem.evaluate(1.1, *changed) != base):
                highest = k
        assert highest == problem.order[i]


def test_given_jacobian_is_that_of_the_residual():
    problem = MODELS["particle_on_circle"].problem
    rng = np.random.default_rng(1)
    x, xp, xpp = (rng.normal(size=problem.n) for _ in range(3))
    c1, c2, h = 3.0, 7.0, 1e-6
    columns = [
        (
            problem.evaluate(1.0, x + h * e, xp + c1 * h * e, xpp + c2 * h * e)
            - problem.evaluate(1.0, x - h * e, xp - c1 * h * e, xpp - c2 * h * e)
        )
        / (2.0 * h)
        for e in np.eye(problem.n)
    ]
    np.testing.assert_allclose(problem.jacobian(1.0, x, xp, xpp, c1, c2), np.array(columns).T, atol=1e-7)


@every_model
@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_is_solved_as_it_stands(model, compiled):
    problem = model.problem.compiled("numba") if compiled else model.problem
    sol = daedal.solve(problem, model.t_span, model.initial, **model.options)
    exact = np.array([model.extra["exact"](t) for t in sol.t]).T
    differentiated = problem.order == 2
    size = np.abs(exact).max(axis=1)
    error = np.abs(sol.x - exact).max(axis=1) / size
    assert error[differentiated].max() < 1e-4
    assert error[~differentiated].max() < 1e-2
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, rtol=1e-2, atol=1e-2)


def local_index(dae, t, y, yp):
    """The length of the longest chain of (c F_y' + F_y)^-1 F_y' that ends in zero."""

    def differences(shift):
        columns = [dae.evaluate(t, *shift(1e-6 * e)) - dae.evaluate(t, *shift(-1e-6 * e)) for e in np.eye(dae.n)]
        return np.array(columns).T / 2e-6

    f_y, f_yp = differences(lambda d: (y + d, yp)), differences(lambda d: (y, yp + d))
    chain = np.linalg.solve(3.0 * f_yp + f_y, f_yp)
    ranks = [np.linalg.matrix_rank(np.linalg.matrix_power(chain, k), tol=1e-7) for k in range(7)]
    return next(k for k in range(6) if ranks[k] == ranks[k + 1])


@every_model
@pytest.mark.parametrize("all_derivatives", [False, True], ids=["as needed", "companion form"])
def test_companion_form_raises_the_index(model, all_derivatives):
    problem = model.problem
    order = np.full(problem.n, 2) if all_derivatives else problem.order
    x, xp, xpp = derivatives(model, 1.3)
    y, yp = np.append(x, xp[order == 2]), np.append(xp, xpp[order == 2])
    dae = problem.first_order(order=order)
    np.testing.assert_allclose(dae.evaluate(1.3, y, yp), 0.0, atol=1e-11)
    assert local_index(dae, 1.3, y, yp) == model.index + all_derivatives


def test_companion_form_needs_the_third_derivative_of_the_data():
    """v2 = f1' - f2'' - f2''', with f2''' as large as the frequency; x2 does not grow with it."""
    for frequency in (10.0, 100.0):
        exact = library.order_reduction(frequency=frequency).extra["exact"]
        times = np.linspace(0.0, 2.0, 500)
        assert max(abs(exact(t)[1]) for t in times) < 2.2
        assert max(abs(exact(t, 1)[1]) for t in times) > 0.9 * frequency


# --- as mechanisms ------------------------------------------------------------------------------------------------


@every_mechanism
@pytest.mark.parametrize("method", ["modified_bdf", "collocation", "auto"])
def test_mechanical_form_has_the_same_motion(model, method):
    sol = daedal.solve(model.problem, model.t_span, model.initial, method=method, rtol=1e-8, atol=1e-8)
    exact = np.array([model.extra["exact"](t) for t in sol.t]).T
    lam = np.array([model.extra["exact_lam"](t) for t in sol.t]).T
    assert np.abs(sol.y - exact).max() < 2e-5
    assert np.abs(sol.lam - lam).max() < 1e-3


@every_mechanism
def test_multipliers_of_both_forms_agree_up_to_their_convention(model):
    second_order = MODELS[model.name]
    sign = {"body_on_circle": 1.0, "particle_on_circle": -1.0}[model.name]
    at = model.problem.at(1.2, *np.split(model.extra["exact"](1.2), 2))
    np.testing.assert_allclose(at.multipliers, sign * second_order.extra["exact"](1.2)[2:], atol=1e-9)
    np.testing.assert_allclose(at.acceleration, second_order.extra["exact"](1.2, 2)[:2], atol=1e-9)


# --- what is refused, and what reads the models -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("particle_on_circle", {"form": "first-order"}, "form='first-order' is not known"),
        ("body_on_circle", {"t1": -1.0}, "t1=-1.0 must be a positive number"),
        ("order_reduction", {"frequency": 0.0}, "frequency=0.0 must be a positive number"),
    ],
    ids=["form", "time", "frequency"],
)
def test_wrong_parameters_are_refused(name, parameters, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        library.get(name, **parameters)


def run(*arguments):
    result = CliRunner().invoke(cli.app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_list_has_problems_of_every_kind():
    rows = {line.split()[0]: line.split() for line in run("list").splitlines()[1:]}
    assert rows["particle_on_circle"][1:3] == ["3", "3"]
    hybrid = [name for name in library.names() if isinstance(library.get(name).problem, daedal.hybrid.HybridProblem)]
    assert hybrid and all(rows[name][2].isdigit() for name in hybrid)


@pytest.mark.parametrize("name", SECOND_ORDER)
def test_command_line_shows_and_runs(name, tmp_path):
    assert library.get(name).title in run("show", name)
    files = [tmp_path / "run.png", tmp_path / "run.csv"]
    text = run("run", name, "--plot", str(files[0]), "--save", str(files[1]))
    assert "ModifiedBDF" in text and "against the reference" in text
    assert all(file.stat().st_size > 0 for file in files)
    assert files[1].read_text().splitlines()[0].count("'") == np.count_nonzero(library.get(name).problem.order == 2)
