"""Rosenbrock methods: coefficients, orders, mass matrices, code for whole steps and stage by stage, pivots."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.analysis.order_conditions.trees import defects, index_1_trees
from daedal.errors import InvalidProblemError
from daedal.methods import Rosenbrock
from daedal.methods.rosenbrock.rosenbrock_tableaux import TABLEAUX
from daedal.methods.task import Equations, Task

VARIANTS = tuple(TABLEAUX)
PLAIN = {"compile": "never"}  # functions are called as they are: stage by stage, with differences

# --- coefficients -----------------------------------------------------------------------------------------------------


def worst(tableau, weights, order, theta=1.0):
    """The largest defects of the conditions of an order for y and for z."""
    found = list(defects(tableau.alphas, tableau.gammas, weights, order, theta))
    return [max((abs(d) for tree, d in found if tree.fat == fat), default=0.0) for fat in (False, True)]


def test_trees_of_index_1():
    """Those of Hairer and Wanner, Table VI.4.1, up to order 3, and two of order 4 that carry fat vertices."""
    assert [str(tree) for tree in index_1_trees(2, True)] == ["[t,t]z"]
    assert {str(tree) for tree in index_1_trees(3, True)} == {"[t,t,t]z", "[t,[t]y]z", "[t,[t,t]z]z"}
    assert "[t,[t,t]z]y" in {str(tree) for tree in index_1_trees(4, False)}
    assert "[[t,t]z,[t,t]z]z" in {str(tree) for tree in index_1_trees(4, True)}


@pytest.mark.parametrize("name", VARIANTS)
def test_order_conditions_hold_up_to_the_order_and_no_further(name):
    """For z those of one order less are enough: errors of z are not handed on."""
    tableau = TABLEAUX[name]
    p = tableau.order
    for order in range(1, p + 1):
        of_y, of_z = worst(tableau, tableau.b, order)
        assert of_y < 1e-13
        assert of_z < 1e-12 or order == p
    assert worst(tableau, tableau.b, p + 1)[0] > 1e-3


@pytest.mark.parametrize("name", VARIANTS)
def test_the_embedded_method_has_one_order_less(name):
    tableau = TABLEAUX[name]
    weights = tableau.b - tableau.gammas[-1]  # without the last increment
    p = tableau.order - 1
    assert max(worst(tableau, weights, order)[0] for order in range(1, p + 1)) < 1e-13
    assert worst(tableau, weights, p + 1)[0] > 1e-3


@pytest.mark.parametrize("name", VARIANTS)
def test_dense_output_has_one_order_less_everywhere_in_the_step(name):
    tableau = TABLEAUX[name]
    for theta in (0.2, 0.5, 0.9):
        weights = tableau.weights(theta) @ tableau.gammas
        for order in range(1, tableau.order):
            of_y, of_z = worst(tableau, weights, order, theta)
            assert of_y < 1e-13
            assert of_z < 1e-12 or order == tableau.order - 1 > 2
    np.testing.assert_allclose(tableau.weights(1.0), tableau.m, atol=1e-14)
    np.testing.assert_array_equal(tableau.weights(0.0), 0.0)
    slope = (tableau.weights(1.0) - tableau.weights(1.0 - 1e-6)) / 1e-6
    np.testing.assert_allclose(tableau.slopes(1.0), slope, atol=1e-3)
    slope = (tableau.weights(0.300001) - tableau.weights(0.299999)) / 2e-6
    np.testing.assert_allclose(tableau.slopes(0.3), slope, atol=1e-6)


@pytest.mark.parametrize("name", VARIANTS)
def test_methods_are_stiffly_accurate_and_stable(name):
    """b is the last row of (alpha + gamma), the last stages stand at t_1; |R| <= 1 on the imaginary axis, R(oo) = 0."""
    tableau = TABLEAUX[name]
    beta = tableau.alphas + tableau.gammas
    np.testing.assert_allclose(beta[-1], tableau.b, atol=1e-14)
    np.testing.assert_array_equal(tableau.nodes[-2:], 1.0)
    np.testing.assert_array_equal(tableau.time_weights[-2:], 0.0)
    np.testing.assert_allclose(np.diag(tableau.gammas), tableau.gamma, rtol=1e-14)
    ones = np.ones(tableau.s)
    for z in (*(1j * np.logspace(-2, 4, 200)), -1e8):
        size = abs(1.0 + z * tableau.b @ np.linalg.solve(np.eye(tableau.s) - z * beta, ones))
        assert size < (1e-6 if z == -1e8 else 1.0 + 1e-12)


# --- orders -----------------------------------------------------------------------------------------------------------

ODE = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0] + 0.2 * (y[0] ** 2 + y[1] ** 2 - 1.0) * y[1]], 2)
INDEX1 = daedal.SemiExplicitDAE(
    lambda t, y, z: [np.cos(t) * z[0] * np.exp(y[0])],
    lambda t, y, z: [z[0] - np.exp(-y[0]) + 0.1 * (y[0] - np.sin(t)) * z[0]],
    1,
    1,
)


def mixed_residual(t, y, yp):
    """y_0' + 2 y_1' in both equations; what is left of them determines y_1 - cos 2t from y_0 - sin t."""
    rate = yp[0] + 2.0 * yp[1] - np.cos(t) + 4.0 * np.sin(2.0 * t)
    c = np.cos(2.0 * t)
    return [rate + y[0] - np.sin(t), 2.0 * rate + y[1] + y[1] ** 3 / 3.0 - c - c**3 / 3.0]


MIXED = daedal.ImplicitDAE(mixed_residual, 2)
QUASILINEAR = daedal.ImplicitDAE(  # dF/dy' depends on y
    lambda t, y, yp: [
        (2.0 + y[0]) * yp[0] - y[1] * yp[1] - (2.0 + y[0]) * y[1] - y[1] * y[0] - 0.5 * (y[2] - np.exp(-y[0])),
        yp[1] * np.exp(y[0]) + y[0] * y[2] ** -1,
        y[2] - np.exp(-y[0]) * (y[0] ** 2 + y[1] ** 2),
    ],
    3,
)
CIRCLE = ([0.0, 1.0], None)
CASES = {
    "ode": (ODE, CIRCLE, lambda t: [np.sin(t), np.cos(t)]),
    "index 1": (INDEX1, ([0.0], [1.0]), lambda t: [np.sin(t), np.exp(-np.sin(t))]),
    "singular matrix": (MIXED, CIRCLE, lambda t: [np.sin(t), np.cos(2.0 * t)]),
    "quasilinear": (
        QUASILINEAR,
        ([0.0, 1.0, 1.0], None),
        lambda t: [np.sin(t), np.cos(t), np.exp(-np.sin(t))],
    ),
}


def errors(name, variant, steps):
    """The largest errors of every variable along the run, with constant steps."""
    problem, start, exact = CASES[name]
    found = []
    for n in steps:
        sol = daedal.solve(problem, (0.0, 2.0), start, method=Rosenbrock(variant), fixed_step=2.0 / n)
        found.append(np.max(np.abs(sol.y - exact(sol.t)), axis=1))
    return np.array(found)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_orders_of_differential_and_algebraic_variables(name, variant):
    """The classical order for both, whatever the matrix."""
    order = TABLEAUX[variant].order
    found = errors(name, variant, (40, 80, 160))
    observed = np.log2(found[0] / found[-1]) / 2.0
    assert np.all(observed > order - 0.6) and np.all(observed < order + 0.9), (found, observed)


@pytest.mark.parametrize("name", ["ode", "index 1", "singular matrix"])
def test_stage_by_stage_gives_the_same_as_code_for_whole_steps(name):
    """Differences in place of exact derivatives cost a few digits."""
    problem, start, _ = CASES[name]
    ends = [
        daedal.solve(problem, (0.0, 2.0), start, method="rosenbrock", fixed_step=0.05, **options)
        for options in ({}, PLAIN)
    ]
    np.testing.assert_allclose(ends[0].y[:, -1], ends[1].y[:, -1], rtol=1e-7)
    assert ends[0].stats.jacobian_residual_evaluations == 0 < ends[1].stats.jacobian_residual_evaluations


@pytest.mark.parametrize("structure", [{"bandwidth": (1, 1)}, {"sparsity": np.ones((2, 2))}])
def test_banded_and_sparse_matrices(structure):
    problem = daedal.ImplicitDAE(ODE.residual, 2, **structure)
    method = Rosenbrock(
        linear_solver=next(iter(structure)).replace("bandwidth", "banded").replace("sparsity", "sparse")
    )
    found = daedal.solve(problem, (0.0, 2.0), CIRCLE, method=method, fixed_step=0.05, **PLAIN).y[:, -1]
    dense = daedal.solve(ODE, (0.0, 2.0), CIRCLE, method="rosenbrock", fixed_step=0.05, **PLAIN).y[:, -1]
    np.testing.assert_allclose(found, dense, rtol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("options", [{}, PLAIN], ids=["code", "stages"])
def test_polynomials_in_time_are_integrated_exactly(variant, options):
    """y' = p'(t) with p of the degree of the order; algebraic variables follow polynomials of degree 2."""
    order = TABLEAUX[variant].order
    p = np.polynomial.Polynomial(1.0 / np.arange(1.0, order + 2.0))
    slope, powers = p.deriv().coef, np.arange(order)
    problem = daedal.ImplicitDAE(
        lambda t, y, yp: [yp[0] - np.sum(slope * t**powers), y[1] - 1.0 - t**2], 2, algebraic=[1]
    )
    sol = daedal.solve(
        problem, (0.0, 1.0), ([p(0.0), 1.0], None), method=Rosenbrock(variant), fixed_step=1.0, **options
    )
    tolerance = 1e-12 if not options else 1e-6
    assert sol.y[0, -1] == pytest.approx(p(1.0), rel=tolerance)
    assert sol.y[1, -1] == pytest.approx(2.0, rel=tolerance)
    times = np.linspace(0.0, 1.0, 11)
    np.testing.assert_allclose(sol(times)[1], 1.0 + times**2, rtol=10.0 * tolerance)


def test_steps_do_not_depend_on_the_unit_of_rows_and_variables():
    """The same problem with rows and variables multiplied by powers of two: the same bits, scaled."""
    scale = np.array([2.0**40, 2.0**-30])
    rows = np.array([2.0**-20, 2.0**50])
    scaled = daedal.ImplicitDAE(lambda t, y, yp: rows * np.array(ODE.residual(t, y / scale, yp / scale)), 2)
    plain = daedal.solve(ODE, (0.0, 5.0), CIRCLE, method="rosenbrock", rtol=1e-6, atol=1e-8)
    other = daedal.solve(
        scaled, (0.0, 5.0), (scale * [0.0, 1.0], None), method="rosenbrock", rtol=1e-6, atol=1e-8 * scale
    )
    np.testing.assert_array_equal(other.y, scale[:, None] * plain.y)


# --- matrices that are not constant -----------------------------------------------------------------------------------


def test_a_matrix_that_is_not_constant_is_refused_where_it_cannot_be_traced():
    with pytest.raises(InvalidProblemError, match=r"constant M, and dF/dy' is not constant, and .* use method='radau'"):
        daedal.solve(QUASILINEAR, (0.0, 1.0), ([0.0, 1.0, 1.0], None), method="rosenbrock", **PLAIN)


def test_a_matrix_that_changes_later_is_refused_then():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [(1.0 + max(t - 5.0, 0.0)) * yp[0] + y[0]], 1)
    with pytest.raises(InvalidProblemError, match="it has changed between t = 0 and 5"):
        daedal.solve(problem, (0.0, 10.0), ([1.0], [-1.0]), method="rosenbrock", max_step=0.1, **PLAIN)


def test_a_singular_matrix_that_is_not_constant_is_refused():
    problem = daedal.ImplicitDAE(
        lambda t, y, yp: [y[0] * (yp[0] + yp[1]) + y[1], y[1] * (yp[0] + yp[1]) + y[0] - 1.0], 2
    )
    rate = -np.sqrt(0.5) / (1.0 + 3.0 / np.sqrt(8.0))
    with pytest.raises(InvalidProblemError, match="depends on t, y or y' and is singular: use method='radau'"):
        daedal.solve(problem, (0.0, 1.0), ([2.0, np.sqrt(2.0)], [rate, 3.0 / np.sqrt(8.0) * rate]), method="rosenbrock")


def test_equations_that_are_not_linear_in_y_prime():
    """y'^3 + y' = 2 y^3 ..., whose solution is e^t."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] ** 3 + yp[0] - y[0] ** 3 - y[0]], 1)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [1.0]), method="rosenbrock", rtol=1e-8, atol=1e-10)
    assert sol.y[0, -1] == pytest.approx(np.e, rel=1e-7)
    assert sol.yp[0, -1] == pytest.approx(np.e, rel=1e-6)


def test_parameters_in_the_matrix_may_change_between_runs():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [p["mass"] * yp[0] + y[0]], 1, params={"mass": 1.0})
    solver = daedal.prepare(problem, method="rosenbrock", rtol=1e-8, atol=1e-10)
    for mass in (1.0, 2.0, 0.5):
        end = solver.solve((0.0, 1.0), ([1.0], None), params={"mass": mass}).y[0, -1]
        assert end == pytest.approx(np.exp(-1.0 / mass), rel=1e-7)


# --- pivots -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tiny", [0.0, 1e-18, 1e-3])
def test_bad_pivots_are_left_to_a_factorisation_with_pivoting(tiny):
    """tiny z_1 + z_2 = 1, z_1 + z_2 + tiny y = 2: diagonal pivots are of no use for tiny = 1e-18, and missing for 0."""

    def g(t, y, z):
        first = z[1] - 1.0 if tiny == 0.0 else tiny * z[0] + z[1] - 1.0
        return [first, z[0] + z[1] + 0.5 * y[0] - 2.0]

    problem = daedal.SemiExplicitDAE(lambda t, y, z: [-y[0] * z[0]], g, 1, 2)
    z_1 = 0.5 / (1.0 - tiny)
    sol = daedal.solve(problem, (0.0, 3.0), ([1.0], [z_1, 1.0 - tiny * z_1]), method="rosenbrock", rtol=1e-8, atol=1e-8)
    other = daedal.solve(problem, (0.0, 3.0), ([1.0], [z_1, 1.0 - tiny * z_1]), method="radau", rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(sol.y[:, -1], other.y[:, -1], atol=1e-7)


def test_equations_in_another_order_are_the_same_problem():
    """Without an entry on the diagonal rows are exchanged beforehand."""
    given = daedal.ImplicitDAE(lambda t, y, yp: ODE.residual(t, y, yp)[::-1], 2)
    plain = daedal.solve(ODE, (0.0, 5.0), CIRCLE, method="rosenbrock", rtol=1e-6, atol=1e-8)
    other = daedal.solve(given, (0.0, 5.0), CIRCLE, method="rosenbrock", rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(other.y[:, -1], plain.y[:, -1], rtol=1e-8)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2), st.integers(0, 10**6), st.booleans())
def test_steps_of_linear_equations_are_those_of_the_formula(n, singular, seed, spread):
    """E y' + B y = c sin t with E of any rank, rows in any order and of any size: one step by NumPy."""
    rng = np.random.default_rng(seed)
    singular = min(singular, n)
    mass = np.diag(np.where(np.arange(n) < singular, 0.0, 1.0)) @ rng.normal(size=(n, n))
    scale = 10.0 ** rng.uniform(-8.0, 8.0, n) if spread else np.ones(n)
    order = rng.permutation(n)
    mass, matrix, input = (scale * mass.T).T[order], (scale * rng.normal(size=(n, n)).T).T[order], rng.normal(size=n)
    scale = scale[order]
    problem = daedal.ImplicitDAE(lambda t, y, yp: mass @ yp + matrix @ y - scale * input * np.sin(t), n)
    t, h, y0, tableau = 0.3, 0.1, rng.normal(size=n), TABLEAUX["rodas5p"]
    u = np.zeros((tableau.s, n))
    for i in range(tableau.s):
        rest = mass @ (-tableau.c[i] @ u / h) + matrix @ (y0 + tableau.a[i] @ u)
        rest -= scale * input * np.sin(t + tableau.nodes[i] * h)
        rest -= tableau.time_weights[i] * h * scale * input * np.cos(t)
        u[i] = np.linalg.solve((matrix + mass / (h * tableau.gamma)) / scale[:, None], -rest / scale)
    condition = np.linalg.cond((matrix + mass / (h * tableau.gamma)) / scale[:, None])
    for options, accuracy in (({}, 1e-11), (PLAIN, 1e-6)):  # of exact derivatives, and of differences
        method = daedal.methods.Rosenbrock()
        task = Task((t, t + h), y0, np.zeros(n), np.full(n, 1e-6), np.full(n, 1e-6), fixed_step=h)
        stated = problem.compiled(backend="trace") if not options else problem
        end = method.prepare(Equations(n, problem=stated)).integrate(task).y[:, -1]
        np.testing.assert_allclose(end, y0 + tableau.m @ u, rtol=0.0, atol=accuracy * condition * np.abs(u).max())
