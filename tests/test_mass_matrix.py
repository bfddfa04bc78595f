"""Equations with a mass matrix, M(t, y) y' = f(t, y): regular and singular, constant and not, of any index."""

import dataclasses
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import InconsistentInitialError, InvalidProblemError, MassMatrixDAE
from plain_problems import ROBERTSON_40


def balance(t, y):
    """Robertson's reaction with the balance in place of the third rate."""
    slow, fast = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [-slow, slow - fast, y[0] + y[1] + y[2] - 1.0]


DIAGONAL = np.diag([1.0, 1.0, 0.0])
REACTION = MassMatrixDAE(balance, 3, mass=DIAGONAL, names=["A", "B", "C"])


def of_time(t):
    return DIAGONAL


def of_state(t, y):
    return np.array([[1.0, 0.0, 0.0], [0.0, 1.0 + 0.0 * y[0], 0.0], [0.0, 0.0, 0.0]])


MASSES = {
    "array": DIAGONAL,
    "list": DIAGONAL.tolist(),
    "sparse": sp.csr_matrix(DIAGONAL),
    "t": of_time,
    "t, y": of_state,
}


@pytest.mark.parametrize("compile", ["auto", "never"])
@pytest.mark.parametrize("kind", MASSES)
def test_robertson_with_all_kinds_of_matrices(kind, compile):
    problem = MassMatrixDAE(balance, 3, mass=MASSES[kind])
    sol = daedal.solve(problem, (0.0, 40.0), [1.0, 0.0, 0.0], rtol=1e-8, atol=1e-12, compile=compile)
    np.testing.assert_allclose(sol.y[:, -1], ROBERTSON_40, rtol=3e-6)


@pytest.mark.parametrize("method", ["dassl", "radau", "rosenbrock", "extrapolation"])
def test_methods(method):
    sol = daedal.solve(REACTION, (0.0, 40.0), [1.0, 0.0, 0.0], rtol=1e-7, atol=1e-11, method=method)
    np.testing.assert_allclose(sol.y[:, -1], ROBERTSON_40, rtol=1e-4)


def test_a_constant_matrix_is_given_to_rosenbrock_methods_directly():
    sol = daedal.solve(REACTION, (0.0, 40.0), [1.0, 0.0, 0.0])
    assert sol.method.startswith("Rosenbrock")
    assert set(sol.functions) == {"f", "jacobian"}


def test_matrices_that_depend_on_the_state():
    """(1 + y) y' = -y (1 + y) and (2 + t) y' = y: exponentials and straight lines."""
    problem = MassMatrixDAE(
        lambda t, y: [-y[0] * (1.0 + y[0]), y[1]], 2, mass=lambda t, y: np.diag([1.0 + y[0], 2.0 + t])
    )
    for compile in ("auto", "never"):
        for method in ("auto", "dassl", "radau", *["rosenbrock"] * (compile == "auto")):
            sol = daedal.solve(problem, (0.0, 2.0), [1.0, 2.0], rtol=1e-8, atol=1e-10, method=method, compile=compile)
            np.testing.assert_allclose(sol.y[:, -1], [np.exp(-2.0), 4.0], rtol=1e-5)


@given(seed=st.integers(0, 1000), n=st.integers(1, 5), sparse=st.booleans())
@settings(max_examples=15, deadline=None)
def test_regular_matrices_mean_the_same_as_their_inverse(seed, n, sparse):
    rng = np.random.default_rng(seed)
    mass = np.eye(n) + 0.3 * rng.uniform(-1.0, 1.0, (n, n)) / n
    rates, y0 = -np.diag(rng.uniform(0.5, 2.0, n)), rng.uniform(-1.0, 1.0, n)
    given = sp.csc_array(mass) if sparse else mass
    sol = daedal.solve(MassMatrixDAE(lambda t, y: rates @ y, n, mass=given), (0.0, 1.0), y0, rtol=1e-8, method="dassl")
    values, vectors = np.linalg.eig(np.linalg.solve(mass, rates))
    expected = (vectors @ (np.exp(values) * np.linalg.solve(vectors, y0))).real
    np.testing.assert_allclose(sol.y[:, -1], expected, atol=1e-6)
    np.testing.assert_allclose(mass @ sol.yp[:, 0], rates @ y0, atol=1e-9)


def test_finite_elements_with_a_sparse_matrix():
    n = 1000
    dx = 1.0 / (n + 1)
    stiffness = sp.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n), format="csc") / dx
    mass = sp.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(n, n), format="csc") * dx / 6.0
    start = np.sin(np.pi * dx * np.arange(1, n + 1))
    angle = np.cos(np.pi * dx)
    exact = start * np.exp(0.1 * (2.0 * angle - 2.0) / dx / (dx * (4.0 + 2.0 * angle) / 6.0))
    for structure in ({"sparsity": stiffness}, {"sparsity": stiffness, "jacobian": lambda t, y: stiffness}):
        sol = daedal.solve(MassMatrixDAE(lambda t, y: stiffness @ y, n, mass=mass, **structure), (0.0, 0.1), start)
        np.testing.assert_allclose(sol.y[:, -1], exact, atol=1e-5)


# --- of any index -----------------------------------------------------------------------------------------------------


def pendulum(t, y):
    x, z, u, w, force = y
    return [u, w, -2.0 * x * force, -2.0 * z * force - 9.81, x * x + z * z - 1.0]


PENDULUM = MassMatrixDAE(pendulum, 5, mass=np.diag([1.0, 1.0, 1.0, 1.0, 0.0]), names=["x", "z", "u", "w", "force"])


def test_index_3_is_recognised_and_solved():
    analysis = daedal.analyse(PENDULUM, at=(0.0, ([0.6, -0.8, 0.0, 0.0, 4.0], None)))
    assert (analysis.index, analysis.degrees_of_freedom) == (3, 2)
    implicit = daedal.ImplicitDAE(lambda t, y, yp: [*(yp[:4] - pendulum(t, y)[:4]), pendulum(t, y)[4]], 5)
    start = [0.6, -0.8, 0.0, 0.0, 0.0]
    sol, same = (daedal.solve(p, (0.0, 2.0), (start, None), rtol=1e-8) for p in (PENDULUM, implicit))
    assert sol.method == same.method
    np.testing.assert_allclose(sol.y[:, -1], same.y[:, -1], rtol=1e-6)
    energy = 0.5 * (sol["u"] ** 2 + sol["w"] ** 2) + 9.81 * sol["z"]
    np.testing.assert_allclose(energy, energy[0], atol=1e-5)


def test_index_2_is_reduced():
    """x' = y, 0 = x - sin t."""
    problem = MassMatrixDAE(lambda t, y: [y[1], y[0] - np.sin(t)], 2, mass=[[1.0, 0.0], [0.0, 0.0]], names=["x", "v"])
    reduced = daedal.reduce_index(problem)
    assert reduced.analysis.index == 2 if hasattr(reduced, "analysis") else "index 2" in str(reduced)
    sol = daedal.solve(problem, (0.0, 1.0), [0.0, 1.0], formulation="dummy_derivatives")
    np.testing.assert_allclose(sol.y[:, -1], [np.sin(1.0), np.cos(1.0)], atol=1e-6)
    sol = daedal.solve(problem, (0.0, 1.0), [0.0, 1.0])
    np.testing.assert_allclose(sol.y[:, -1], [np.sin(1.0), np.cos(1.0)], atol=1e-4)


# --- the house --------------------------------------------------------------------------------------------------------


def test_singular_matrices_want_consistent_values():
    with pytest.raises(InconsistentInitialError) as error:
        daedal.solve(REACTION, (0.0, 1.0), [1.0, 0.0, 0.5])
    assert "equation 2" in str(error.value) and "correct_initial" in str(error.value)
    sol = daedal.solve(REACTION, (0.0, 1.0), [1.0, 0.0, 0.5], correct_initial=True)
    np.testing.assert_allclose(sol.y[:, 0], [1.0, 0.0, 0.0], atol=1e-12)
    y0, _ = daedal.consistent_initial(REACTION, 0.0, [0.7, 0.0, 0.0])
    np.testing.assert_allclose(y0, [0.7, 0.0, 0.3], atol=1e-9)
    sol = daedal.solve(REACTION, (0.0, 40.0), {"A": 1.0, "B": 0.0}, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(sol.y[:, -1], ROBERTSON_40, rtol=1e-6)


def decay(t, y, p):
    return [-p["k"] * y[0], y[1] - 2.0 * y[0]]


def masses(t, y, p):
    return np.array([[p["m"], 0.0], [0.0, 0.0]])


DECAY = MassMatrixDAE(decay, 2, mass=masses, params={"k": 3.0, "m": 2.0}, names=["x", "z"])


def test_parameters_copies_and_pickles():
    solver = daedal.prepare(DECAY, rtol=1e-9)
    sol = solver.solve((0.0, 1.0), [1.0, 2.0], params={"k": 2.0})
    assert abs(sol["x"][-1] - np.exp(-1.0)) < 1e-7
    again = pickle.loads(pickle.dumps(DECAY))
    for problem in (again, dataclasses.replace(DECAY), DECAY.compiled(backend="trace")):
        sol = daedal.solve(problem, (0.0, 1.0), [1.0, 2.0], rtol=1e-9)
        assert abs(sol["z"][-1] - 2.0 * np.exp(-1.5)) < 1e-7
    numbers = MassMatrixDAE(
        lambda t, y, p: np.array([-p[0] * y[0]]), 1, mass=lambda t, y, p: np.array([[p[1]]]), params=[3.0, 2.0]
    )
    sol = daedal.solve(numbers.compiled("numba"), (0.0, 1.0), [1.0], rtol=1e-9, compile="never")
    assert abs(sol.y[0, -1] - np.exp(-1.5)) < 1e-7 and sol.functions["f"] == "Numba"


def test_events_switches_and_modes():
    """y = 1 - t until the valve closes at y = 0.5; z is a mirror of y."""
    valve = MassMatrixDAE(
        lambda t, y: [-1.0 if y[0] > 0.5 else -0.25, y[1] + y[0]], 2, mass=[[1.0, 0.0], [0.0, 0.0]], names=["y", "z"]
    )
    sol = daedal.solve(valve, (0.0, 1.5), [1.0, -1.0], events=daedal.Event(lambda t, y: y[1] + 0.375, terminal=True))
    assert abs(sol.t[-1] - 1.0) < 1e-9 and [event.kind for event in sol.events] == ["switch", "event"]
    hybrid = daedal.hybrid.HybridProblem(
        {"on": valve}, [daedal.hybrid.Transition("on", "on", lambda t, y: y[0] - 0.375, reset=lambda t, y: [1.0, -1.0])]
    )
    assert abs(daedal.solve(hybrid, (0.0, 1.25), ("on", [1.0, -1.0])).y[0, -1] - 0.75) < 1e-6


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "mass is missing"),
        ({"mass": np.eye(3)}, r"mass has shape \(3, 3\); expected \(2, 2\)"),
        ({"mass": [1.0, 0.0]}, r"give a matrix, np.diag\(mass\)"),
        ({"mass": [[1.0, np.nan], [0.0, 0.0]]}, "mass holds values that are not finite"),
        ({"mass": sp.csc_array([[1.0, np.inf], [0.0, 0.0]])}, "mass holds values that are not finite"),
        ({"mass": "M"}, "mass must be a"),
        ({"mass": 1j * np.eye(2)}, "mass must be a"),
        ({"mass": sp.csc_array(1j * np.eye(2))}, "mass must hold real numbers"),
        ({"mass": lambda: np.eye(2)}, r"called as mass\(t, y\) or mass\(t\)"),
        ({"mass": lambda t, y: np.eye(2), "jacobian": lambda t, y: np.eye(2)}, "omit it"),
        ({"mass": np.ones((2, 2)), "bandwidth": (0, 0)}, "row 0, column 1, outside bandwidth"),
        ({"mass": np.eye(2), "algebraic": [1]}, "column 1 of mass is not zero"),
    ],
)
def test_wrong_statements_are_refused(options, message):
    with pytest.raises(InvalidProblemError, match=message):
        MassMatrixDAE(lambda t, y: [y[1], y[0]], 2, **options)


@pytest.mark.parametrize("compile", ["auto", "never"])
@pytest.mark.parametrize(
    ("mass", "message"),
    [
        (lambda t, y: np.eye(3), r"mass returned an array of shape \(3, 3\); expected \(2, 2\)"),
        (lambda t, y: None, "mass returned None"),
        (lambda t, y: np.diag([1.0, np.nan]), "not finite at the initial values"),
    ],
)
def test_wrong_matrices_are_refused(mass, message, compile):
    with pytest.raises(InvalidProblemError, match=message):
        daedal.solve(MassMatrixDAE(lambda t, y: [y[1], y[0]], 2, mass=mass), (0.0, 1.0), [1.0, 1.0], compile=compile)


def test_a_matrix_that_changes_its_shape_is_refused_with_what_was_computed():
    problem = MassMatrixDAE(lambda t, y: [-y[0]], 1, mass=lambda t: np.eye(1) if t < 0.5 else np.eye(2))
    with pytest.raises(InvalidProblemError, match=r"mass returned an array of shape \(2, 2\)") as error:
        daedal.solve(problem, (0.0, 1.0), [1.0], compile="never")
    assert 0.0 < error.value.solution.t[-1] < 0.5


def test_explicit_methods_want_an_ode():
    with pytest.raises(InvalidProblemError, match="define the problem as an ODE"):
        daedal.solve(REACTION, (0.0, 1.0), [1.0, 0.0, 0.0], method="dopri5")
