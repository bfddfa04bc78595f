"""Radau IIA on stiff and constrained problems with known solutions, and with structured matrices."""

import numpy as np
import pytest

import daedal
from daedal import library
from daedal.methods import Radau

# --- stiff problems of the test set -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "atol"), [("hires", 1e-3), ("chemical_akzo_nobel", 1e-3), ("van_der_pol", 1.0)])
def test_stiff_problems_are_as_accurate_as_asked(name, atol):
    model = library.get(name)
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10, 1e-12):
        sol = daedal.solve(model.problem, model.t_span, model.initial, method="radau", rtol=rtol, atol=rtol * atol)
        assert sol.success
        error = np.max(model.reference.error(sol.y[:, -1]))
        assert error < max(20.0 * rtol, 1e-11), (rtol, error)


def test_robertson_to_1e11_is_as_accurate_as_asked():
    model = library.robertson()
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10):
        atol = 0.1 * rtol * model.reference.y
        sol = daedal.solve(model.problem, model.t_span, model.initial, method="radau", rtol=rtol, atol=atol)
        error = np.max(np.abs(sol.y[:, -1] / model.reference.y - 1.0))
        assert error < max(20.0 * rtol, 5e-8), (rtol, error)  # y_1 is 2e-8 beside 1 in y_1 + y_2 + y_3 = 1


def test_transistor_amplifier_is_as_accurate_as_asked():
    """Index 1 with a singular, not diagonal, mass matrix."""
    model = library.transistor_amplifier()
    for rtol in (1e-4, 1e-7, 1e-10):
        sol = daedal.solve(model.problem, model.t_span, model.initial, method="radau", rtol=rtol, atol=0.1 * rtol)
        error = np.max(np.abs(sol.y[:, -1] / model.reference.y - 1.0))
        assert error < 100.0 * rtol, (rtol, error)


@pytest.mark.parametrize(("stages", "digits"), [(7, 5.5), (7, 6.2), (7, 7.9), ("auto", 8.0)])
def test_an_accidental_ratio_of_corrections_does_not_stop_a_run(stages, digits):
    """Steep exponentials are predicted so badly that the second correction is tiny, relative to the first one."""
    model, tol = library.transistor_amplifier(), 10.0**-digits
    sol = daedal.solve(model.problem, model.t_span, model.initial, method=Radau(stages=stages), rtol=tol, atol=tol)
    assert np.all(np.abs(sol.y[:, -1] - model.reference.y) < tol * (1.0 + np.abs(model.reference.y)))


def test_twelve_digits():
    """At rtol = 1e-13, where corrections and errors are near the round-off of the equations."""
    model = library.transistor_amplifier()
    sol = daedal.solve(model.problem, model.t_span, model.initial, method="radau", rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, rtol=2e-12)
    model = library.seven_body()
    options = {"method": "radau", "formulation": "ggl", "rtol": 1e-13, "atol": 1e-13}
    sol = daedal.solve(model.problem, model.t_span, model.initial, **options)
    np.testing.assert_allclose(sol.q[:, -1], model.reference.y[:7], rtol=1e-12)


# --- higher index -----------------------------------------------------------------------------------------------------


def errors_of(model, rtol, **options):
    sol = daedal.solve(model.problem, model.t_span, model.initial, method="radau", rtol=rtol, atol=rtol, **options)
    truth = np.array([np.ravel(model.extra["exact"](t))[: sol.y.shape[0]] for t in sol.t]).T
    return np.max(np.abs(sol.y - truth) / (1.0 + np.abs(truth)), axis=1), sol


@pytest.mark.parametrize("name", ["jay_index2", "hessenberg_index2"])
@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8, 1e-10])
def test_index_2_is_found_and_solved_in_few_steps(name, rtol):
    """DASSL takes 2464 steps for Jay's problem at 1e-6."""
    errors, sol = errors_of(library.get(name), rtol)
    assert np.max(errors[:-1]) < 10.0 * rtol and errors[-1] < 100.0 * rtol
    assert sol.stats.steps < 100


def test_trajectories_of_index_2_and_3_from_the_equations_as_they_stand():
    for name, controls in (("tppc2", 6), ("tppc3", 6)):
        model = library.get(name)
        for rtol in (1e-6, 1e-8):
            sol = daedal.solve(model.problem, model.t_span, model.initial, method="radau", rtol=rtol, atol=rtol)
            error = np.abs(sol.y[:, -1] - model.reference.y) / (1.0 + np.abs(model.reference.y))
            assert np.max(error[:controls]) < 100.0 * rtol, (name, rtol, error)


def test_index_3_chain_runs_with_variable_steps():
    """Which BDF cannot do: x_1 and x_2 to the tolerance, x_3 coarser."""
    for rtol in (1e-4, 1e-8):
        errors, sol = errors_of(library.index3_chain(), rtol)
        assert errors[0] < rtol and errors[1] < 10.0 * rtol and errors[2] < 1000.0 * rtol
        assert sol.stats.steps < 50


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_index_2_that_no_variable_has_alone(rtol):
    """y_1' = y_2, y_1 = sin t, y_3' = -y_3 in rotated variables and equations: all have a part of index 2."""
    rotation = np.linalg.qr(np.array([[1.0, 2.0, 3.0], [2.0, -1.0, 1.0], [1.0, 1.0, -2.0]]))[0]

    def residual(t, y, yp):
        x, xp = rotation @ y, rotation @ yp
        return rotation.T @ np.array([xp[0] - x[1], x[0] - np.sin(t), xp[2] + x[2]])

    start, slope = rotation.T @ [0.0, 1.0, 1.0], rotation.T @ [1.0, 0.0, -1.0]
    problem = daedal.ImplicitDAE(residual, 3)
    sol = daedal.solve(problem, (0.0, 5.0), (start, slope), method="radau", rtol=rtol, atol=rtol)
    truth = rotation.T @ np.array([np.sin(sol.t), np.cos(sol.t), np.exp(-sol.t)])
    assert np.max(np.abs(sol.y - truth)) < 100.0 * rtol and sol.stats.steps < 60


def test_classes_of_variables_may_be_given():
    model = library.get("hessenberg_index2")
    found, _ = errors_of(model, 1e-7)
    given, _ = errors_of(model, 1e-7, variable_index=[1, 1, 2])
    np.testing.assert_array_equal(found, given)


FORMULATIONS = ("ggl", "index3", "index2", "index1", "baumgarte", "projected_invariants", "overdetermined")


@pytest.mark.parametrize("formulation", [*FORMULATIONS, "state_space", "projection", "minimal_extension"])
@pytest.mark.parametrize("rtol", [1e-5, 1e-8])
def test_every_first_order_formulation_of_a_pendulum(formulation, rtol):
    model = library.planar_pendulum()
    options = {"method": "radau", "formulation": formulation, "rtol": rtol, "atol": rtol}
    sol = daedal.solve(model.problem, (0.0, 2.0), model.initial, **options)
    assert np.max(np.abs(sol.y[:, -1] - model.extra["exact"](2.0))) < 20.0 * rtol


@pytest.mark.parametrize("formulation", ["ggl", "index1"])
def test_mechanism_with_sparse_matrices(formulation):
    chain = library.chain_of_pendulums()
    options = {"method": "radau", "formulation": formulation, "rtol": 1e-7, "atol": 1e-7}
    sol = daedal.solve(chain.problem, chain.t_span, chain.initial, **options)
    np.testing.assert_allclose(sol.y[:, -1], chain.reference.y, atol=1e-5)


# --- structure --------------------------------------------------------------------------------------------------------

N = 40


def reaction_diffusion(t, y, yp):
    """u' = u_xx / 100 + u (1 - v), 0 = v - u^2 / 2 on a line, unknowns in turn."""
    u, v = y[0::2], y[1::2]
    padded = np.concatenate([u[:1], u, u[-1:]])
    result = np.empty(2 * N)
    result[0::2] = yp[0::2] - (padded[2:] - 2.0 * u + padded[:-2]) * (0.01 * N**2) - u * (1.0 - v)
    result[1::2] = v - 0.5 * u**2
    return result


def structured(kind):
    from scipy.sparse import csc_array

    places = np.arange(2 * N)
    band = np.abs(places[:, None] - places) <= 2
    structure = {"dense": {}, "banded": {"bandwidth": (2, 2)}, "sparse": {"sparsity": csc_array(band.astype(float))}}
    return daedal.ImplicitDAE(reaction_diffusion, 2 * N, **structure[kind])


@pytest.mark.parametrize("stages", ["auto", 3, 7])
def test_banded_and_sparse_matrices_give_the_dense_solution(stages):
    u = 1.0 + 0.5 * np.cos(np.pi * (np.arange(N) + 0.5) / N)
    start = np.column_stack([u, 0.5 * u**2]).ravel()
    options = {"method": Radau(stages=stages), "rtol": 1e-6, "atol": 1e-8, "compile": "never"}
    runs = {
        kind: daedal.solve(structured(kind), (0.0, 1.0), (start, None), **options)
        for kind in ("dense", "banded", "sparse")
    }
    for kind in ("banded", "sparse"):
        assert runs[kind].stats.steps == runs["dense"].stats.steps
        np.testing.assert_allclose(runs[kind].y[:, -1], runs["dense"].y[:, -1], rtol=1e-9)
    assert runs["banded"].stats.jacobian_residual_evaluations < runs["dense"].stats.jacobian_residual_evaluations / 5


def test_heat_equation_with_a_band():
    n, k = 200, np.array([1.0, 3.0])
    x = np.arange(1, n + 1) / (n + 1)
    modes = np.sin(np.pi * np.outer(k, x))
    rates = 4.0 * (n + 1) ** 2 * np.sin(0.5 * np.pi * k / (n + 1)) ** 2

    def residual(t, y, yp):
        padded = np.concatenate([np.zeros(1), y, np.zeros(1)])
        return yp - (padded[2:] - 2.0 * y + padded[:-2]) * (n + 1) ** 2

    problem = daedal.ImplicitDAE(residual, n, bandwidth=(1, 1))
    for rtol in (1e-4, 1e-8):
        options = {"rtol": rtol, "atol": 0.01 * rtol, "compile": "never"}
        sol = daedal.solve(problem, (0.0, 0.1), (modes.sum(axis=0), None), method="radau", **options)
        np.testing.assert_allclose(sol.y[:, -1], np.exp(-0.1 * rates) @ modes, atol=10.0 * rtol)
        assert sol.stats.steps < 40


def test_mass_matrices_that_depend_on_the_state():
    """M(y) y' = f: (1 + y_0^2) y_0' = (1 + y_0^2) y_1 and so on, with the solution (sin t, cos t)."""

    def residual(t, y, yp):
        return [(1.0 + y[0] ** 2) * (yp[0] - y[1]) + y[0] * (yp[1] + y[0]), (2.0 + y[1]) * (yp[1] + y[0])]

    problem = daedal.ImplicitDAE(residual, 2)
    for rtol in (1e-5, 1e-9):
        sol = daedal.solve(problem, (0.0, 5.0), ([0.0, 1.0], None), method="radau", rtol=rtol, atol=rtol)
        np.testing.assert_allclose(sol.y, [np.sin(sol.t), np.cos(sol.t)], atol=20.0 * rtol)


@pytest.mark.parametrize("rtol", [1e-3, 3e-5, 1e-6, 1e-8])
def test_the_multiplier_of_a_turning_mass_is_accurate_at_every_step(rtol):
    """Index 2, z = 1: what Newton's method leaves of the constraint comes divided by the next step, however short."""
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z: [y[2], y[3], -z[0] * y[0], -z[0] * y[1]], lambda t, y, z: [y[0] * y[2] + y[1] * y[3]], 4, 1
    )
    for angle in 0.01 + 0.2094 * np.arange(0, 30, 5):
        c, s = np.cos(angle), np.sin(angle)
        sol = daedal.solve(problem, (0.0, 20.0), ([c, s, -s, c], [1.0]), method="radau", rtol=rtol, atol=rtol)
        assert np.abs(sol.z - 1.0).max() < 20.0 * rtol
