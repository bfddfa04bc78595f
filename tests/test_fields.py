"""Partial differential equations of the library: the cavity, ignition, and the flame on a moving mesh."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.sparse import csc_array

import daedal
from daedal import library
from daedal.methods.iterative_solvers import _SparseLU


def run(model, **options):
    return daedal.solve(model.problem, model.t_span, model.initial, **(dict(model.options) | options))


def order(coarse, fine, ratio=2.0):
    return math.log(coarse / fine) / math.log(ratio)


# --- the cavity -----------------------------------------------------------------------------------------------------


def free_of_divergence(grid, seed=0):
    stream = np.zeros((grid.cells + 1,) * 2)
    stream[1:-1, 1:-1] = np.random.default_rng(seed).normal(size=(grid.cells - 1,) * 2)
    return grid.circulation(stream)


def test_cavity_jacobian_is_exact_and_inside_its_sparsity():
    """The residual is quadratic: central differences with any increment are exact."""
    problem = library.cavity(cells=4, reynolds=7.0).problem
    n, rng = problem.n, np.random.default_rng(1)
    x, xp, cj = rng.normal(size=n), rng.normal(size=n), 3.0
    implicit = problem.implicit()
    expected = np.empty((n, n))
    for k, unit in enumerate(np.eye(n)):
        shift = implicit.evaluate(0.0, x + unit, xp + cj * unit) - implicit.evaluate(0.0, x - unit, xp - cj * unit)
        expected[:, k] = 0.5 * shift
    np.testing.assert_allclose(problem.jacobian(0.0, x, xp, cj).toarray(), expected, atol=1e-11)
    assert np.all(problem.sparsity.toarray()[np.abs(expected) > 1e-9] != 0)


def test_cavity_has_hessenberg_form_of_index_2():
    """0 = g(y) does not contain z, and g_y f_z is regular."""
    model = library.cavity(cells=6)
    divergence = model.extra["grid"].divergence.toarray()
    assert np.linalg.matrix_rank(divergence @ divergence.T) == divergence.shape[0] == model.problem.n_z == 35


@given(st.integers(2, 6), st.integers(0, 99))
def test_convection_does_no_work_on_flows_without_divergence(half, seed):
    grid = library.cavity(cells=2 * half).extra["grid"]
    y = free_of_divergence(grid, seed)
    assert np.abs(grid.divergence @ y).max() < 1e-11 * np.abs(y).max() * grid.cells
    size = np.abs(grid.spread) @ (np.abs(grid.first @ y) * np.abs(grid.second @ y))
    assert abs(y @ grid.convection(y)) < 1e-13 * (np.abs(y) @ size)


def test_stream_function_and_velocities_belong_together():
    grid = library.cavity(cells=8).extra["grid"]
    y = free_of_divergence(grid)
    np.testing.assert_allclose(grid.circulation(grid.stream_function(y)), y, atol=1e-12)


def test_cavity_starts_with_consistent_pressure():
    """Hidden constraint: the accelerations are free of divergence as well."""
    for lid in ("sudden", "known"):
        model = library.cavity(cells=8, lid=lid)
        acceleration = model.problem.slope(0.0, *model.initial)
        divergence = model.extra["grid"].divergence
        assert np.abs(divergence @ acceleration).max() < 1e-10 * np.abs(divergence).max() * np.abs(acceleration).max()


def test_cavity_has_order_2_in_space_in_velocities_and_pressure():
    """Against a solution of the partial differential equations; pressures up to their mean."""
    errors = []
    for cells in (14, 28):
        model = library.cavity(cells=cells, reynolds=20.0, lid="known", t1=1.0)
        difference = run(model, rtol=1e-6, atol=1e-8).y[:, -1] - model.extra["pde"](1.0)
        n_y = model.problem.n_y
        errors.append((np.sqrt(np.mean(difference[:n_y] ** 2)), np.append(difference[n_y:], 0.0).std()))
    for coarse, fine in zip(*errors):
        assert 1.7 < order(coarse, fine) < 2.4
    assert errors[1][0] < 3e-3


@pytest.mark.parametrize("k", [2, 3])
def test_pressure_has_the_order_of_bdf(k):
    model = library.cavity(cells=14, reynolds=20.0, lid="known", t1=1.0)
    exact = run(model, method="radau", rtol=1e-9, atol=1e-10).y[:, -1]
    errors = []
    for steps in (20, 40):
        method = daedal.methods.Multistep(f"bdf{k}")
        sol = daedal.solve(
            model.problem, (0.0, 1.0), model.initial, method=method, fixed_step=1.0 / steps, compile="never"
        )
        errors.append(np.abs(sol.y[:, -1] - exact))
    n_y = model.problem.n_y
    for part in (slice(None, n_y), slice(n_y, None)):
        assert k - 0.3 < order(errors[0][part].max(), errors[1][part].max()) < k + 0.5


@pytest.fixture(scope="module")
def steady_cavity():
    model = library.cavity(cells=32, t1=30.0)
    return model, run(model)


def test_cavity_flow_becomes_that_of_ghia_ghia_and_shin(steady_cavity):
    """The table itself is not better than that: on finer grids v differs by 9e-3 still, u by 5e-3."""
    model, sol = steady_cavity
    lines = zip(model.extra["grid"].centre_lines(sol.y[:, -1]), model.extra["published"].values(), (3e-3, 1e-2))
    for (places, values), (published_places, published), bound in lines:
        assert np.abs(CubicSpline(places, values)(published_places) - published).max() < bound
    assert model.extra["grid"].stream_function(sol.y[:, -1]).min() == pytest.approx(-0.103423, abs=2e-3)


@pytest.mark.slow
def test_cavity_at_reynolds_400_extrapolates_to_the_published_flow():
    """From 32 and 48 cells; one of the printed numbers is a misprint, in its second digit."""
    ends = []
    for cells in (32, 48):
        model = library.cavity(cells=cells, reynolds=400.0, t1=50.0)
        lines = model.extra["grid"].centre_lines(run(model, t_eval=[50.0]).y[:, -1])
        published = model.extra["published"].values()
        ends.append([CubicSpline(*line)(places) for line, (places, _) in zip(lines, published)])
    differences = [
        fine + (fine - coarse) / (1.5**2 - 1.0) - values
        for coarse, fine, (_, values) in zip(*ends, model.extra["published"].values())
    ]
    assert np.abs(differences[0]).max() < 5e-3
    misprint = model.extra["published"]["v"][0] == 0.9063
    assert np.abs(differences[1][~misprint]).max() < 5e-3
    assert differences[1][misprint] == pytest.approx(-0.15, abs=2e-3)


def test_cavity_flow_is_steady_and_free_of_divergence(steady_cavity):
    model, sol = steady_cavity
    n_y = model.problem.n_y
    assert np.abs(sol.yp[:n_y, -1]).max() < 1e-5
    assert np.abs(model.extra["grid"].divergence @ sol.y[:n_y]).max() < 1e-11


def test_matrices_with_zeros_on_the_diagonal_are_factored_with_pivoting():
    """Orderings for symmetric factors fill in where SuperLU has to pivot; the structure alone does not tell."""
    for corner, pivots in ((0.0, True), (2.0, False)):
        matrix = csc_array(np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 1.0]]))
        matrix.data[-1] = corner
        factorise = _SparseLU(matrix)
        solve = factorise(matrix.data, matrix.indices, matrix.indptr)
        assert factorise._pivoting == pivots
        np.testing.assert_allclose(matrix @ solve(np.ones(3)), 1.0, rtol=1e-13)
    factorise.forget()
    assert not factorise._pivoting


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"cells": 7}, "even number"), ({"cells": 2}, "at least 4"), ({"lid": "slow"}, "'sudden', 'known'")],
)
def test_wrong_cavities_are_refused(parameters, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        library.cavity(**parameters)


# --- ignition -------------------------------------------------------------------------------------------------------


def test_uniform_gas_ignites_at_the_time_of_the_quadrature():
    """At constant volume (1 - kappa) T' = q B Y exp(delta (1 - 1/T)), with Y = 1 - (1 - kappa)(T - 1)/q."""
    model = library.ignition(nodes=5, wall=None, rate=0.5)
    heat, activation, share = 4.0, 12.0, 5.0 / 7.0

    def duration(T):
        fuel = 1.0 - share * (T - 1.0) / heat
        return share / (heat * 0.5 * fuel * math.exp(activation * (1.0 - 1.0 / T)))

    moment = quad(duration, 1.0, 3.0, epsabs=0.0, epsrel=1e-12)[0]
    sol = daedal.solve(model.problem, (0.0, moment), model.initial, rtol=1e-9, atol=1e-11)
    slope = 1.0 / duration(3.0)
    assert np.abs(sol.y[::4, -1] - 3.0).max() < 1e-6 * slope
    np.testing.assert_allclose(sol.y[3::4, -1], sol.y[::4, -1], rtol=1e-10)  # p = T at constant volume
    np.testing.assert_allclose(sol.y[2::4, -1], np.linspace(0.0, 1.0, 5), atol=1e-10)  # nothing moves


def test_closed_vessel_keeps_its_energy():
    """Uneven temperatures, and a wall without heat flow: weights @ ((1 - kappa) T + q Y) stays what it is."""
    model = library.ignition(nodes=5, wall=None, rate=0.5)
    psi, weights = model.extra["psi"], model.extra["weights"]
    y0 = model.initial[0].reshape(-1, 4).copy()
    y0[:, 0] = 1.2 + 0.3 * np.cos(7.0 * psi)
    y0[:, 3] = 2.0 * weights @ y0[:, 0]
    volume = 0.5 * np.diff(psi) * (y0[1:, 0] + y0[:-1, 0]) / y0[0, 3]
    y0[:, 2] = np.sqrt(2.0 * np.r_[0.0, np.cumsum(volume)])
    sol = daedal.solve(model.problem, (0.0, 0.1), (y0.ravel(), None), rtol=1e-8, atol=1e-10)
    energy = weights @ (5.0 / 7.0 * sol.y[::4] + 4.0 * sol.y[1::4])
    assert sol.y[1, 0] - sol.y[1, -1] > 0.1
    np.testing.assert_allclose(energy, energy[0], rtol=1e-7)


def test_gas_without_reaction_takes_the_temperature_of_the_wall():
    model = library.ignition(nodes=5, heat=0.0, rate=0.0, wall=1.5, t1=3.0)
    end = run(model).y[:, -1].reshape(-1, 4)
    np.testing.assert_allclose(end[:, [0, 1, 3]], [[1.5, 1.0, 1.5]] * 5, rtol=1e-4)
    np.testing.assert_allclose(end[:, 2], np.linspace(0.0, 1.0, 5), atol=1e-4)


def test_ignition_has_order_2_in_space():
    pressures = [run(library.ignition(nodes=n, t1=0.15), rtol=1e-7, atol=1e-9)["p0"][-1] for n in (5, 9, 17)]
    assert 1.7 < order(pressures[0] - pressures[1], pressures[1] - pressures[2]) < 2.4


def test_hot_walls_ignite_the_gas():
    sol = run(library.ignition(nodes=9))
    burnt = sol["Y0"] < 0.5
    assert sol["T0"].max() > 4.0 and burnt[-1] and not burnt[sol.t < 0.2].any()


# --- the flame on a moving mesh -------------------------------------------------------------------------------------


def flame_profile(points, t1, places):
    model = library.flame(20.0, points, compiled=False)
    sol = daedal.solve(model.problem, (0.0, t1), model.initial, rtol=1e-6, atol=1e-7)
    return PchipInterpolator(model.extra["x"], sol.y[:, -1])(places)


def test_moving_mesh_needs_fewer_nodes():
    """As accurate as a fixed mesh of twice as many, on the flame with the broad front."""
    places = np.linspace(0.0, 1.0, 501)
    exact = flame_profile(601, 0.28, places)
    flame = library.follow_flame(library.moving_flame(points=31), [0.28])
    moving = np.abs(PchipInterpolator(flame.x[:, -1], flame.T[:, -1])(places) - exact).mean()
    fixed = [np.abs(flame_profile(points, 0.28, places) - exact).mean() for points in (31, 61)]
    assert 2.5 * moving < fixed[0] and moving < 1.3 * fixed[1]
    assert np.diff(flame.x[:, -1]).min() < 0.01 and flame.meshes > 5


def test_three_forms_of_the_moving_mesh_have_the_same_solution():
    ends = []
    for form in (1, 2, 3):
        model = library.moving_flame(points=11, form=form)
        ends.append(daedal.solve(model.problem, (0.0, 0.265), model.initial, rtol=1e-7, atol=1e-8).y[:, -1])
    assert ends[0][2] > 1.5  # it burns
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-5)
    np.testing.assert_allclose(ends[2], ends[0], atol=1e-5)


def test_penalty_keeps_nodes_apart():
    nearest = []
    for penalty in (0.0, 1.0):
        model = library.moving_flame(points=11, penalty=penalty)
        sol = daedal.solve(model.problem, (0.0, 0.29), model.initial, rtol=1e-6, atol=1e-7)
        nearest.append(np.diff(sol.y[1::2, -1]).min())
    assert 0.0 < nearest[0] < 0.5 * nearest[1]


@given(st.floats(0.1, 0.9), st.floats(0.02, 0.3))
def test_balanced_meshes_are_meshes(middle, width):
    x = np.linspace(0.0, 1.0, 41)
    y = np.column_stack([1.5 - 0.5 * np.tanh((x - middle) / width), x]).ravel()
    model = library.moving_flame(points=41)
    balanced = model.extra["balanced"](y)
    assert np.all(np.diff(balanced[1::2]) > 0.0) and balanced[1] == 0.0 and balanced[-1] == 1.0
    assert model.extra["imbalance"](0.0, balanced, balanced) < max(model.extra["imbalance"](0.0, y, y), -1.0)
    np.testing.assert_allclose(balanced[::2], CubicSpline(x, y[::2])(balanced[1::2]), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ignition", {"nodes": 2}, "at least 3"),
        ("ignition", {"heat": -1.0}, "must not be negative"),
        ("moving_flame", {"form": 4}, "choose one of 1, 2, 3"),
        ("moving_flame", {"penalty": -1.0}, "must not be negative"),
        ("moving_flame", {"points": 2}, "at least 3"),
    ],
)
def test_wrong_flames_are_refused(name, parameters, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        library.get(name, **parameters)


def test_times_of_a_flame_have_to_increase():
    with pytest.raises(daedal.InvalidProblemError, match="increasing order"):
        library.follow_flame(library.moving_flame(), [0.2, 0.1])
