"""Linear Hessenberg DAEs of order 1, 2 and 3, and their essential underlying ODE."""

import math

import numpy as np
import pytest

import daedal
from daedal import HessenbergDAE, library
from daedal.formulations import (
    GGL,
    Baumgarte,
    CoordinateProjection,
    EssentialODE,
    Index1,
    Index2,
    Overdetermined,
    ProjectedInvariants,
    StateSpace,
)
from daedal.methods import DASSL, RK4
from daedal.studies.reproduce.printed_table import find

E = math.e


def smooth_problem(m, given=True, n_x=3):
    """Order m, x = (exp(-t), cos t, sin 2t), y = 1 + t^2, smooth coefficients; z(t) and y(t) go with it."""
    random = np.random.default_rng(m)
    a0, a1 = 0.3 * random.normal(size=(2, m, n_x, n_x))
    b0, b1 = random.normal(size=(n_x, 1)), 0.2 * random.normal(size=(n_x, 1))
    c1 = 0.3 * random.normal(size=(1, n_x))

    def x(t, k=0):
        shift = 0.5 * k * math.pi
        return np.array([(-1) ** k * math.exp(-t), math.cos(t + shift), 2**k * math.sin(2.0 * t + shift)])

    def y(t):
        return 1.0 + t * t

    def c(t, k=0):
        return (b0.T if k == 0 else 0.0) + math.sin(t + 0.5 * k * math.pi) * c1

    def r(t, k=0):
        return -sum(math.comb(k, i) * c(t, k - i) @ x(t, i) for i in range(k + 1))

    def q(t):
        return x(t, m) - sum((a0 + t * a1)[j] @ x(t, j) for j in range(m)) - (b0 + t * b1)[:, 0] * y(t)

    derivatives = {
        "C_derivatives": lambda t: np.array([c(t, k) for k in range(1, m + 1)]),
        "r_derivatives": lambda t: np.array([r(t, k) for k in range(1, m + 1)]),
    }
    problem = HessenbergDAE(
        lambda t: a0 + t * a1, lambda t: b0 + t * b1, c, q, r, n_x=n_x, n_y=1, order=m, **(derivatives if given else {})
    )
    return problem, lambda t: np.concatenate([x(t, k) for k in range(m)]), y


def example3_as_a_linear_problem(nu, kappa):
    """Example 3 of Ascher and Petzold with its mass matrix inverted: order 2."""

    def inverse_mass(t):
        off = nu * (2.0 * nu - 1.0)
        return (2.0 + t) * np.array([[2.0 * (2.0 - t) * nu * nu, off], [off, (nu * nu + (nu - 1.0) ** 2) / (2.0 - t)]])

    def damping(t):
        return inverse_mass(t) @ np.diag([0.0, kappa / (nu * (2.0 + t))])

    def b(t):
        return np.array([[(4.0 - t * t) * nu], [(nu - 1.0) * (t + 2.0)]])

    def q(t):
        return math.exp(t) * (1.0 - np.sum(damping(t), axis=1) + b(t)[:, 0] / (2.0 - t))

    return HessenbergDAE(
        lambda t: np.array([np.zeros((2, 2)), damping(t)]),
        b,
        lambda t: np.array([[1.0, t - 2.0]]),
        q,
        lambda t: np.array([(1.0 - t) * math.exp(t)]),
        n_x=2,
        n_y=1,
        order=2,
        C_derivatives=lambda t: np.array([[[0.0, 1.0]], [[0.0, 0.0]]]),
        r_derivatives=lambda t: -math.exp(t) * np.array([[t], [1.0 + t]]),
        names=["p1", "p2"],
    )


def backward_euler(problem, initial, formulation, h=0.01, t1=1.0):
    return daedal.solve(problem, (0.0, t1), initial, formulation=formulation, method=DASSL(max_order=1), fixed_step=h)


# --- all formulations, all orders ---------------------------------------------------------------------------------

ORDINARY = {
    "index1": Index1(),
    "baumgarte": Baumgarte(),
    "state-space": StateSpace(),
    "state-space-svd": StateSpace("svd"),
    "essential": EssentialODE(),
    "projection": CoordinateProjection("I"),
    "projection-positions": CoordinateProjection("I", 1),
}
IMPLICIT = {
    "index2": Index2(),
    "index2-damped": Index2(2.0),
    "ggl": GGL(),
    "ggl-b": GGL("B"),
    "projected-invariants": ProjectedInvariants(),
    "projected-invariants-b": ProjectedInvariants(1, "B"),
    "overdetermined": Overdetermined(),
}


@pytest.mark.parametrize("form", list(ORDINARY | IMPLICIT))
@pytest.mark.parametrize("m", [1, 2, 3])
def test_every_form_at_variable_steps(m, form):
    problem, z, y = smooth_problem(m)
    formulation = (ORDINARY | IMPLICIT)[form]
    for method in ("dassl", "dopri5") if form in ORDINARY else ("dassl",):
        sol = daedal.solve(problem, (0.0, 1.0), z(0.0), formulation=formulation, method=method, rtol=1e-8, atol=1e-8)
        error = np.max(np.abs(sol.y - np.array([z(t) for t in sol.t]).T))
        assert error < (1e-6 if method == "dassl" else 1e-7)
        assert sol.lam[0, -1] == pytest.approx(y(1.0), abs=1e-6)
        assert sol.stats.steps < (200 if method == "dassl" else 40)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_backward_euler_has_order_one(m):
    problem, z, _ = smooth_problem(m)
    for formulation in (Index2(), GGL(), ProjectedInvariants(), EssentialODE()):
        errors = [
            np.max(np.abs(backward_euler(problem, z(0.0), formulation, h).y[:, -1] - z(1.0))) for h in (0.02, 0.01)
        ]
        assert errors[0] < 0.2
        assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.02), formulation  # 2 + O(h)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_derivatives_by_differences_are_accurate(m):
    given, computed = smooth_problem(m)[0], smooth_problem(m, given=False)[0]
    for t in (0.0, 0.7):
        np.testing.assert_allclose(computed.coefficients(t), given.coefficients(t), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("formulation", [Baumgarte(gamma=1.0), GGL(), GGL("B"), Index2(1.0), ProjectedInvariants(1)])
def test_a_linear_problem_of_order_two_agrees_with_the_mechanical_system(formulation):
    model = library.stability_example3(10.0, 1.0)
    mechanical = backward_euler(model.problem, model.initial, formulation)
    linear = backward_euler(example3_as_a_linear_problem(10.0, 1.0), np.ones(4), formulation)
    np.testing.assert_allclose(linear.raw.y[:4], mechanical.raw.y[:4], rtol=1e-9)
    np.testing.assert_allclose(linear.lam, -mechanical.lam, rtol=1e-4)  # lam is -y, before the projection in M


@pytest.mark.parametrize("m", [1, 2, 3])
def test_auto_solves_it(m):
    problem, z, y = smooth_problem(m)
    sol = daedal.solve(problem, (0.0, 1.0), z(0.0), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(sol.y[:, -1], z(1.0), atol=1e-5)
    assert sol.lam[0, -1] == pytest.approx(y(1.0), abs=1e-4)


# --- growth of perturbations --------------------------------------------------------------------------------------


def drift(sol):
    """g = C p + r at all steps of Example 3, as integrated."""
    p1, p2 = sol.raw.y[:2]
    t = sol.raw.t
    return p1 + (t - 2.0) * p2 + (1.0 - t) * np.exp(t)


@pytest.mark.parametrize("gamma, growth", [(0.0, lambda t: t), (1.0, lambda t: t * np.exp(-t))])
def test_an_error_of_the_velocity_grows_as_baumgarte_s_polynomial_says(gamma, growth):
    """v'' + 2 gamma v' + gamma^2 v = 0 for v = g, whatever the solution does (3.9b)."""
    delta = 1e-7
    sol = daedal.solve(
        example3_as_a_linear_problem(1.0, 1.0),
        (0.0, 1.0),
        np.array([1.0, 1.0, 1.0 + delta, 1.0]),
        formulation=Baumgarte(gamma=gamma),
        method=RK4(),
        fixed_step=0.01,
    )
    for t in (0.25, 0.5, 1.0):
        at = round(100 * t)
        assert drift(sol)[at] / delta == pytest.approx(growth(t), rel=0.03)


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_an_error_of_the_position_stays_or_decays_in_the_index_2_form(gamma):
    delta, initial = 1e-7, np.ones(4)
    problem = example3_as_a_linear_problem(1.0, 1.0)
    runs = []
    for error in (0.0, delta):
        # a velocity that satisfies the combination C v + C' p + r' + gamma (C p + r) = 0 with the wrong position
        start = initial + [error, 0.0, -gamma * error, 0.0]
        runs.append(drift(backward_euler(problem, start, Index2(gamma), 0.005)))
    growth = (runs[1] - runs[0]) / delta
    expected = np.exp(-gamma * np.linspace(0.0, 1.0, growth.size))
    np.testing.assert_allclose(growth, expected, rtol=5e-3)


# --- the essential underlying ODE ---------------------------------------------------------------------------------


def essential_rows():
    return [
        pytest.param(table.data["kappa"], row, id=f"kappa={table.data['kappa']:g} nu={row['nu']:g}")
        for table in find(f"stability/kappa-{kappa}" for kappa in (0, 1, 2))
        for row in table.rows
        if row["formulation"] == "essential ODE"
    ]


@pytest.mark.parametrize("kappa, row", essential_rows())
def test_the_essential_ode_of_example_3(kappa, row):
    """With the derivative of R by differences; with the given one it is a row of the reproduction book."""
    nu = row["nu"]
    form = EssentialODE(lambda t: np.array([[1.0 / nu - 1.0, 2.0 - t]]))
    sol = backward_euler(example3_as_a_linear_problem(nu, kappa), np.ones(4), form)
    error = np.abs(sol.y[:, -1] - E)
    assert np.max(error[:2]) == pytest.approx(float(row.cells["position"]["printed"]), rel=5.1e-4)
    assert np.max(error[2:]) == pytest.approx(float(row.cells["velocity"]["printed"]), rel=5.1e-4)
    assert sol.raw.names == ("w1[0]", "w2[0]")


@pytest.mark.parametrize("example, error", [(1, 11.9), (2, 2.70e-2)])
def test_the_essential_ode_of_examples_1_and_2(example, error):
    """u varies much faster than x, or S is large: it is no good form for these examples."""
    model = library.get(f"stability_example{example}")
    form = EssentialODE(model.extra["R"], model.extra["R_derivative"])
    sol = backward_euler(model.problem, model.initial, form)
    assert np.max(np.abs(sol.y[:, -1] - E)) == pytest.approx(error, rel=5e-3)


def test_the_computed_r_begins_new_charts_where_the_constraint_turns():
    model = library.stability_example1(nu=2.0)
    for method in ("dopri5", "dassl"):
        sol = daedal.solve(
            model.problem, (0.0, 1.9), model.initial, formulation="essential", method=method, rtol=1e-8, atol=1e-8
        )
        np.testing.assert_allclose(sol.y, np.tile(np.exp(sol.t), (2, 1)), rtol=1e-6)
        np.testing.assert_allclose(sol(1.23), np.exp([1.23, 1.23]), rtol=1e-6)


def test_a_wrong_r_is_refused():
    model = library.stability_example2(nu=1.0)

    def solve(problem=model.problem, initial=model.initial, **arguments):
        daedal.solve(problem, (0.0, 1.0), initial, formulation=EssentialODE(**arguments), method="dopri5")

    with pytest.raises(daedal.InvalidProblemError, match="R B must vanish, but its largest entry at t = 0 is 2"):
        solve(R=lambda t: [[1.0, 0.0]])
    with pytest.raises(daedal.InvalidProblemError, match=r"R has shape \(1, 3\); expected \(1, 2\)"):
        solve(R=lambda t: [[1.0, 0.0, 0.0]])
    with pytest.raises(daedal.InvalidProblemError, match="R must be a function"):
        solve(R=[[1.0, 0.0]])
    with pytest.raises(daedal.InvalidProblemError, match="R is for linear problems"):
        pendulum = library.planar_pendulum()
        solve(pendulum.problem, pendulum.initial, R=lambda t: [[1.0, 0.0]])
    with pytest.raises(daedal.InvalidProblemError, match="no degree of freedom"):
        full = HessenbergDAE([[0.0]], [[1.0]], [[1.0]], [0.0], lambda t: [-t], n_x=1, n_y=1)
        solve(full, [0.0])


# --- the library, and what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("example", [1, 2])
def test_the_models_satisfy_their_equations(example, nu):
    model = library.get(f"stability_example{example}", nu=nu)
    problem, exact, exact_lam = model.problem, model.extra["exact"], model.extra["exact_lam"]
    for t in (0.0, 0.3, 1.0):
        a, b = problem.A(t) if callable(problem.A) else problem.A, problem.B(t)
        x, y = exact(t), exact_lam(t)
        np.testing.assert_allclose(a @ x + b @ y + problem.q(t), x, rtol=1e-12 * nu)  # x' = x
        np.testing.assert_allclose(problem.C(t) @ x + problem.r(t), 0.0, atol=1e-13)
        h = 1e-4 / nu
        for name in ("C", "r"):
            function = getattr(problem, name)
            quotient = (function(t + h) - function(t - h)) / (2.0 * h)
            given = getattr(problem, f"{name}_derivatives")(t)
            np.testing.assert_allclose(np.ravel(given), np.ravel(quotient), rtol=1e-6, atol=1e-6 * nu)
        rows, rate = model.extra["R"], model.extra["R_derivative"]
        np.testing.assert_allclose(rows(t) @ b, 0.0, atol=1e-12 * nu)
        np.testing.assert_allclose(rate(t), (rows(t + h) - rows(t - h)) / (2.0 * h), rtol=1e-6, atol=1e-6 * nu)


@pytest.mark.parametrize("example", [1, 2])
def test_the_models_are_solved_to_their_references(example):
    model = library.get(f"stability_example{example}", nu=20.0)
    sol = daedal.solve(model.problem, model.t_span, model.initial, formulation="projected_invariants", **model.options)
    assert np.max(model.reference.error(sol.y[:, -1])) < 1e-6
    assert sol.lam[0, -1] == pytest.approx(model.extra["exact_lam"](1.0)[0], rel=1e-5)
    assert sol.names == ("x1", "x2")


def simple(**changes):
    values = {"A": [[0.0, 1.0], [0.0, 0.0]], "B": [[0.0], [1.0]], "C": [[0.0, 1.0]], "q": [0.0, 0.0], "r": [-1.0]}
    return HessenbergDAE(**(values | {"n_x": 2, "n_y": 1} | changes))


def solved(problem, initial=(0.0, 1.0)):
    return daedal.solve(problem, (0.0, 1.0), np.array(initial), formulation="ggl", method="dassl")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"n_y": 3}, "n_y = 3 constraints on n_x = 2 unknowns"),
        ({"order": 0}, "order must be an integer of at least 1"),
        ({"C_derivatives": 1.0}, "C_derivatives must be a function"),
        ({"names": ["x"]}, "names has 1 entries for 2 variables"),
        ({"B": [[1.0]]}, r"B has shape \(1, 1\); expected \(2, 1\)"),
        ({"r_derivatives": lambda t: [1.0, 2.0]}, r"r_derivatives has shape \(2,\); expected \(1, 1\)"),
    ],
)
def test_bad_data_are_refused(changes, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        solved(simple(**changes))


def test_constant_coefficients():
    sol = solved(simple())
    np.testing.assert_allclose(sol.y[:, -1], [1.0, 1.0], rtol=1e-8)


def test_an_inconsistent_start_is_refused():
    with pytest.raises(daedal.InconsistentInitialError, match=r"violate the constraints .*: constraint 0 .1."):
        solved(simple(), (0.0, 2.0))
    with pytest.raises(daedal.InvalidProblemError, match="initial"):
        solved(simple(), (0.0, 1.0, 2.0))
