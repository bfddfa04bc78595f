"""Exact solutions of A x' + B x = f with constant coefficients (daedal.linear)."""

import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import linear
from daedal.errors import InconsistentInitialError, InvalidProblemError
from linear_systems import CHAIN_A, CHAIN_B, chain_f, transformation, weierstrass_pencil


def smooth(rng, n):
    """A polynomial, an exponential and a sine."""
    f = linear.polynomial(*rng.normal(size=(4, n)))
    return f + linear.exponential(rng.normal(size=n), -0.7) + linear.sine(rng.normal(size=n), 3.0, 0.4)


# --- Drazin inverse


@settings(deadline=None, max_examples=60)
@given(
    regular=st.integers(0, 5),
    blocks=st.lists(st.integers(1, 4), max_size=3),
    exponent=st.floats(0.0, 1.5),
    seed=st.integers(0, 2**32 - 1),
)
def test_drazin_inverse_satisfies_its_definition(regular, blocks, exponent, seed):
    n = regular + sum(blocks)
    if n == 0:
        return
    rng = np.random.default_rng(seed)
    T = transformation(rng, n, 10.0**exponent)
    core = transformation(rng, regular, 5.0) if regular else np.zeros((0, 0))
    nilpotent = [np.eye(size, k=1) for size in blocks]
    M = T @ scipy.linalg.block_diag(core, *nilpotent) @ np.linalg.inv(T)
    D = linear.drazin_inverse(M)
    inverse = scipy.linalg.block_diag(np.linalg.inv(core), *(0.0 * N for N in nilpotent))
    expected = T @ inverse @ np.linalg.inv(T)
    size = 1.0 + np.abs(D).max()
    np.testing.assert_allclose(D, expected, atol=1e-9 * size)
    np.testing.assert_allclose(D @ M @ D, D, atol=1e-8 * size)
    np.testing.assert_allclose(D @ M, M @ D, atol=1e-8 * size)
    index = max(blocks, default=0)
    power = np.linalg.matrix_power(M, index)
    np.testing.assert_allclose(power @ M @ D, power, atol=1e-8 * (1.0 + np.abs(power).max()) * size)


def test_drazin_inverse_of_a_regular_matrix_is_the_inverse():
    M = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(linear.drazin_inverse(M), np.linalg.inv(M), atol=1e-14)
    with pytest.raises(InvalidProblemError, match="square"):
        linear.drazin_inverse(np.ones((2, 3)))


def test_solution_by_drazin_inverses_is_the_same():
    """x = e^{-Â^D B̂ t} Â Â^D x0 + ∫ ... + (I - Â Â^D) Σ (-1)^i (Â B̂^D)^i B̂^D f̂^(i) (S. L. Campbell, 1980)."""
    rng = np.random.default_rng(1)
    A, B, _ = weierstrass_pencil(rng, 2, [2, 1], 3.0)
    f = linear.polynomial(rng.normal(size=5))
    x = linear.Pencil(A, B).solution(f)
    shifted = 0.8 * A + B
    Ah, Bh, fh = np.linalg.solve(shifted, A), np.linalg.solve(shifted, B), np.linalg.solve(shifted, f(0.0))
    AD, BD = linear.drazin_inverse(Ah), linear.drazin_inverse(Bh)
    E, eye, t = -AD @ Bh, np.eye(5), 0.9
    integral = scipy.linalg.expm(np.block([[E, (AD @ fh)[:, None]], [np.zeros((1, 6))]]) * t)[:5, 5]
    by_hand = scipy.linalg.expm(E * t) @ Ah @ AD @ x.x0 + integral + (eye - Ah @ AD) @ BD @ fh
    np.testing.assert_allclose(x(t), by_hand, atol=1e-9)


# --- right-hand sides


@given(st.floats(-2.0, 2.0), st.integers(0, 4))
def test_derivatives_of_right_hand_sides(t, order):
    f = linear.polynomial([1.0], [2.0], [0.0], [4.0]) + linear.sine([3.0], 2.0, 0.5) + linear.exponential([0.5], -1.5)
    polynomial = np.polynomial.Polynomial([1.0, 2.0, 0.0, 4.0]).deriv(order)(t) if order else 1 + 2 * t + 4 * t**3
    sine = 3.0 * 2.0**order * np.sin(2.0 * t + 0.5 + order * np.pi / 2.0)
    expected = polynomial + sine + 0.5 * (-1.5) ** order * np.exp(-1.5 * t)
    assert f.derivative(t, order)[0] == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_wrong_right_hand_sides():
    pencil = linear.Pencil(np.eye(2), np.eye(2))
    with pytest.raises(InvalidProblemError, match="f must have length 2"):
        pencil.solution(linear.sine([1.0]), [0.0, 0.0])
    with pytest.raises(InvalidProblemError, match=r"f at t = 0 must have the shape \(2,\)"):
        pencil.solution(lambda t: [t], [0.0, 0.0])(1.0)
    with pytest.raises(InvalidProblemError, match="same length"):
        linear.polynomial([1.0], [1.0, 2.0])
    with pytest.raises(InvalidProblemError, match="cannot be added"):
        linear.sine([1.0]) + linear.sine([1.0, 2.0])

    def f(t):
        raise KeyError("of the user")

    with pytest.raises(KeyError, match="of the user"):
        linear.Pencil([[0.0]], [[1.0]]).solution(f)


# --- solutions


@settings(deadline=None, max_examples=40)
@given(
    finite=st.integers(0, 5),
    blocks=st.lists(st.integers(1, 4), max_size=3),
    t=st.floats(-1.0, 2.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_solutions_satisfy_the_equation_to_round_off(finite, blocks, t, seed):
    if finite + sum(blocks) == 0:
        return
    rng = np.random.default_rng(seed)
    A, B, _ = weierstrass_pencil(rng, finite, blocks, 3.0)
    n = len(A)
    pencil, f = linear.Pencil(A, B), smooth(rng, n)
    start = pencil.consistent(rng.normal(size=n), f, 0.3)
    x = pencil.solution(f, start.x, 0.3)
    size = 1.0 + np.abs(x(t)).max() + np.abs(x.derivative(t)).max()
    np.testing.assert_allclose(x.x0, start.x, atol=1e-10 * (1.0 + np.abs(start.x).max()))
    assert np.abs(A @ x.derivative(t) + B @ x(t) - f(t)).max() < 1e-10 * size * (1.0 + np.abs(B).max())
    h = 1e-4  # x' is the derivative of x
    slope = (8.0 * (x(t + h) - x(t - h)) - x(t + 2.0 * h) + x(t - 2.0 * h)) / (12.0 * h)
    np.testing.assert_allclose(slope, x.derivative(t), atol=1e-6 * size)


def test_hidden_constraint_example_in_closed_form():
    """(2.3.7): x1 = f2 - f3', x2 = f3, x3 = f1 - f2' + f3''."""
    f = linear.sine([1, 0, 0]) + linear.sine([0, 1, 0], 2.0, np.pi / 2) + linear.exponential([0, 0, 1])
    x = linear.Pencil(CHAIN_A, CHAIN_B).solution(f)
    t = np.linspace(0.0, 2.0, 5)
    expected = [np.cos(2 * t) - np.exp(t), np.exp(t), np.sin(t) + 2 * np.sin(2 * t) + np.exp(t)]
    np.testing.assert_allclose(x(t), expected, atol=1e-13)
    np.testing.assert_allclose(x(0.5), [-1.10841896483199, 1.64872127070013, 3.81108877892012], rtol=1e-13)
    assert x.variable_indices == (2, 1, 3) and x.derivatives_needed == (0, 1, 2)


def test_canonical_chain():
    """P17, N y' + y = g with the Jordan block below the diagonal, g = (sin t, cos 2t, e^{-t})."""
    x = linear.Pencil(np.eye(3, k=-1), np.eye(3)).solution(lambda t: [np.sin(t), np.cos(2.0 * t), np.exp(-t)])
    t = 0.7
    expected = [np.sin(t), np.cos(2 * t) - np.cos(t), np.exp(-t) + 2 * np.sin(2 * t) - np.sin(t)]
    np.testing.assert_allclose(x(t), expected, atol=1e-14)


@pytest.mark.parametrize("how", ["series", "given", "by order", "interpolated"])
def test_functions_by_quadrature_with_derivatives_of_any_kind(how):
    rng = np.random.default_rng(6)
    A, B, _ = weierstrass_pencil(rng, 2, [3], 3.0)
    exact = linear.Pencil(A, B).solution(linear.sine(np.arange(1.0, 6.0), 2.0))
    vector = np.arange(1.0, 6.0)
    derivatives = {
        "given": [lambda t: 2.0 * vector * np.cos(2.0 * t), lambda t: -4.0 * vector * np.sin(2.0 * t)],
        "by order": lambda t, k: vector * 2.0**k * np.sin(2.0 * t + k * np.pi / 2.0),
    }.get(how)
    sine = math.sin if how == "interpolated" else np.sin
    x = linear.Pencil(A, B).solution(lambda t: [c * sine(2.0 * t) for c in vector], derivatives=derivatives)
    np.testing.assert_allclose(
        x([0.0, 0.6, 1.3]), exact([0.0, 0.6, 1.3]), atol=1e-9 if how == "interpolated" else 1e-11
    )


def test_too_few_derivatives_are_named():
    pencil = linear.Pencil(CHAIN_A, CHAIN_B)
    with pytest.raises(InvalidProblemError, match="derivative 2 of f is needed, but only 1 were given"):
        pencil.solution(chain_f, derivatives=[lambda t: [np.cos(t), -2 * np.sin(2 * t), np.exp(t)]])


def test_smooth_components_and_the_particular_solution():
    """Without x0 the finite part starts at 0; both parts add up."""
    rng = np.random.default_rng(9)
    A, B, _ = weierstrass_pencil(rng, 3, [2])
    pencil, f = linear.Pencil(A, B), smooth(rng, 5)
    x = pencil.solution(f)
    projector = pencil.weierstrass().projector
    np.testing.assert_allclose(projector @ x.x0, 0.0, atol=1e-10)
    np.testing.assert_allclose(projector @ x(1.0), x.finite(1.0), atol=1e-9)
    np.testing.assert_allclose(x.finite(1.0) + x.infinite(1.0), x(1.0), atol=1e-12)


def test_solution_over_many_time_constants():
    x = linear.Pencil([[1.0, 0.0], [0.0, 0.0]], [[1e6, 0.0], [1.0, 1.0]]).solution(linear.sine([1e6, 0.0]), [0.0, 0.0])
    np.testing.assert_allclose(x(3.0)[0], np.sin(3.0) - 1e-6 * np.cos(3.0), rtol=1e-9)


# --- initial values


def test_violated_constraints_are_named():
    pencil = linear.Pencil(CHAIN_A, CHAIN_B, names=["x1", "x2", "x3"])
    test = pencil.consistent([0.0, 1.0, 2.0], chain_f)
    assert not test.consistent and "x1 = 0 must hold" not in test.words()
    np.testing.assert_allclose(test.x, [0.0, 1.0, 1.0], atol=1e-12)
    assert test.words() == "x3 = 1 must hold, but is 2"
    with pytest.raises(InconsistentInitialError, match="x3 = 1 must hold, but is 2"):
        pencil.solution(chain_f, [0.0, 1.0, 2.0])
    assert pencil.consistent(test.x, chain_f).consistent


@settings(deadline=None, max_examples=30)
@given(
    finite=st.integers(1, 4), blocks=st.lists(st.integers(1, 3), min_size=1, max_size=2), seed=st.integers(0, 2**32 - 1)
)
def test_projection_is_consistent_and_keeps_what_is_free(finite, blocks, seed):
    """Theorem 2.4.8 as a test: the projected values pass, moved off the constraints they fail."""
    rng = np.random.default_rng(seed)
    A, B, _ = weierstrass_pencil(rng, finite, blocks, 3.0)
    n = len(A)
    pencil, f, given = linear.Pencil(A, B), smooth(rng, n), rng.normal(size=n)
    test = pencil.consistent(given, f)
    assert pencil.consistent(test.x, f).consistent and len(test.constraints) == sum(blocks)
    np.testing.assert_allclose(pencil.weierstrass().projector @ (test.x - given), 0.0, atol=1e-9)
    moved = test.x + 0.01 * np.linalg.pinv(test.constraints)[:, 0] * (1.0 + np.abs(test.x).max())
    assert not pencil.consistent(moved, f).consistent
    by_array = linear.TimeVarying(A, B, f).consistent(test.x, 0.0)
    assert by_array.consistent and len(by_array.constraints) == sum(blocks)


def test_rounding_errors_do_not_violate_a_constraint_that_demands_zero():
    pencil = linear.Pencil([[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])  # y = 0
    assert pencil.consistent([1.0, 1e-15]).consistent and not pencil.consistent([1.0, 1e-6]).consistent
    assert pencil.consistent([0.0, 0.0]).consistent and not pencil.consistent([0.0, 1e-15]).consistent


def test_every_start_of_an_ordinary_differential_equation_is_consistent():
    test = linear.Pencil(np.eye(2), np.eye(2)).consistent([1.0, 2.0])
    assert test.consistent and "no constraints" in str(test)


@pytest.mark.parametrize("x0", [[1.0], [1.0, np.nan], "ab"])
def test_wrong_initial_values(x0):
    with pytest.raises(InvalidProblemError, match=r"x0 must (be a vector of length 2|have finite entries)"):
        linear.Pencil(np.eye(2), np.eye(2)).solution(x0=x0)


# --- against the solver


@pytest.mark.parametrize("blocks", [[1], [1, 1], [2]])
def test_solver_agrees(blocks):
    rng = np.random.default_rng(12)
    A, B, _ = weierstrass_pencil(rng, 2, blocks, 2.0)
    n = len(A)
    constant, sine = rng.normal(size=(2, n))
    pencil, f = linear.Pencil(A, B), linear.polynomial(constant) + linear.sine(sine, 3.0)
    x = pencil.solution(f, pencil.consistent(rng.normal(size=n), f).x)
    problem = daedal.ImplicitDAE(lambda t, y, yp: A @ yp + B @ y - constant - sine * np.sin(3.0 * t), n)
    initial = x(0.0), x.derivative(0.0)
    sol = daedal.solve(problem, (0.0, 1.0), initial, method="radau", rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sol.y[:, -1], x(1.0), atol=1e-6 * (1.0 + np.abs(x(1.0)).max()))


def test_print_of_a_solution():
    x = linear.Pencil(CHAIN_A, CHAIN_B, names=["x1", "x2", "x3"]).solution(chain_f)
    assert "its index" in str(x) and "2 derivatives of f at most" in str(x) and "<table" in x._repr_html_()
