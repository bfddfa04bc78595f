"""Conditioning constants of index 1 and nearly index 2: closed forms, theorems of Wijckmans' chapter 4, invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from conditioning_problems import constant, orthogonal, random_index1, random_index2
from daedal import linear
from daedal.analysis import analyse_conditioning

seeds = st.integers(0, 10**6)


# --- index 1 ----------------------------------------------------------------------------------------------------------


def test_scalar_closed_forms():
    """x' = a x + b y, 0 = c x + d y: the state equation x' = (a - b c / d) x."""
    a, b, c, d, T = -0.5, 2.0, 1.0, 4.0, 3.0
    rate = a - b * c / d
    found = analyse_conditioning(constant([[a]], [[b]], [[c]], [[d]]), (0.0, T))
    assert (found.index, found.effective_index) == (1, 1)
    lasting = (1.0 - np.exp(rate * T)) / -rate
    expected = {"k1": 1.0, "k2": lasting, "D_inverse_C": c / d, "D_inverse": 1.0 / d, "kappa5": 0.0}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-6), name
    assert found.factor("x", "q") == pytest.approx(lasting * b / d)
    assert found.factor("y", "q") == pytest.approx(lasting * b / d * c / d + 1.0 / d)


def test_transient_growth_and_integrals_against_quadrature():
    A = np.array([[-1.0, 60.0], [0.0, -3.0]])
    found = analyse_conditioning(constant(A, np.zeros((2, 1)), [[1.0, 0.0]], [[1.0]]), (0.0, 4.0), points=301)
    s = np.linspace(0.0, 4.0, 4001)
    slow, fast = np.exp(-s), np.exp(-3.0 * s)
    exponentials = np.array([[slow, 30.0 * (slow - fast)], [0.0 * s, fast]])
    sizes = np.linalg.norm(np.moveaxis(exponentials, 2, 0), 2, axis=(1, 2))
    assert found["k1"] == pytest.approx(sizes.max(), rel=1e-3)
    assert found["k2"] == pytest.approx(np.trapezoid(sizes, s), rel=1e-3)


@given(seeds)
@settings(max_examples=25)
def test_canonical_projectors(seed):
    """Qs projects onto ker A along {x: B x in range A}; G = A + B Q; Q and Qs have the same range."""
    A, B, C, D = random_index1(seed)
    random = np.random.default_rng(seed)
    rows, columns = orthogonal(random, 5), orthogonal(random, 5)
    lead = rows @ np.diag([1.0, 1.0, 1.0, 0.0, 0.0]) @ columns
    rest = rows @ np.block([[-A, -B], [C, D]]) @ columns
    found = analyse_conditioning(linear.Pencil(lead, rest), (0.0, 1.0), points=3)
    Q, P, Qs, Ps, G = (found.matrices[name][0] for name in ("Q", "P", "Qs", "Ps", "G"))
    close = {"atol": 1e-8 * max(1.0, np.linalg.norm(Qs))}
    np.testing.assert_allclose(G, lead + rest @ Q, atol=1e-12)
    np.testing.assert_allclose(P + Q, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(Qs @ Qs, Qs, **close)
    np.testing.assert_allclose(Q @ Qs, Qs, **close)
    np.testing.assert_allclose(lead @ Qs, 0.0, **close)
    onto_rest = np.eye(5) - lead @ np.linalg.pinv(lead)  # orthogonal to range A
    np.testing.assert_allclose(onto_rest @ rest @ Ps, 0.0, atol=1e-7)
    np.testing.assert_allclose(Qs, linear.Pencil(lead, rest).matrix_chain().canonical_projector, **close)


def test_a_turning_kernel_counts_in_kappa5():
    """A(t) = u u^T with u turning at the rate 3: |P'| = 3; the state u^T x decays like exp(-t)."""

    def axes(t):
        return np.array([np.cos(3.0 * t), np.sin(3.0 * t)]), np.array([-np.sin(3.0 * t), np.cos(3.0 * t)])

    def A(t):
        return np.outer(axes(t)[0], axes(t)[0])

    def B(t):
        return A(t) + 2.0 * np.outer(axes(t)[1], axes(t)[1])

    found = analyse_conditioning(linear.TimeVarying(A, B, n=2), (0.0, 2.0))
    assert found["kappa5"] == pytest.approx(3.0, rel=1e-4)
    assert found["kappa1"] == pytest.approx(1.0, rel=1e-6)
    assert found["kappa2"] == pytest.approx(1.0 - np.exp(-2.0), rel=1e-4)
    assert found["kappa3"] == pytest.approx(1.0) and found["kappa4"] == pytest.approx(0.5)
    assert found["kappa"] == pytest.approx((1.0 - np.exp(-2.0)) * (1.0 + 0.5 * 3.0), rel=1e-4)


# --- nearly index 2 ---------------------------------------------------------------------------------------------------


def test_theorem_4_6_has_no_constant_that_grows_with_1_over_eps():
    A, B, C = [[-1.0, 1.0], [0.0, -2.0]], [[1.0], [0.5]], [[1.0, 0.2]]
    names = ("layer_k1", "layer_k2", "layer_k1_hat", "layer_k2_hat", "layer_F")
    all_found = [analyse_conditioning(constant(A, B, C, [[eps]]), (0.0, 1.0), points=11) for eps in (1e-4, 1e-6, 1e-8)]
    for found, eps in zip(all_found, (1e-4, 1e-6, 1e-8), strict=True):
        assert (found.index, found.effective_index) == (1, 2)
        assert found["D_inverse"] == pytest.approx(1.0 / eps)  # what (4.12) has
        assert found["layer_bare"] == pytest.approx(1.0 / eps)
        assert found["layer_thickness"] == pytest.approx(eps / 1.1)
        assert found["layer_k1_hat"] == pytest.approx(1.0)
        assert found["layer_k2_hat"] == pytest.approx(1.0 / 1.1, rel=1e-3)
        assert [found[name] for name in names] == pytest.approx([all_found[0][name] for name in names], rel=1e-2)


@given(seeds, st.sampled_from([1e-4, 1e-6]))
@settings(max_examples=15)
def test_bounds_of_theorem_4_6_hold(seed, eps):
    """(4.39) and (4.40) for smooth q, against the exact solution with A = 0."""
    random = np.random.default_rng(seed)
    B = orthogonal(random, 3)[:, :2]
    C = B.T @ (np.eye(3) + 0.2 * random.normal(size=(3, 3)))
    found = analyse_conditioning(constant(np.zeros((3, 3)), B, C, eps * np.eye(2)), (0.0, 1.0), points=5)
    frequency, direction = random.uniform(1.0, 5.0), random.normal(size=2)
    # x = Re(X exp(i w t)) solves i w X = -B (C X + q) / eps, q = Re(direction exp(i w t))
    X = np.linalg.solve(1j * frequency * np.eye(3) + B @ C / eps, -B @ direction / eps)
    t = np.linspace(0.0, 1.0, 200)
    wave = np.exp(1j * frequency * t)
    x, q = np.real(np.outer(X, wave)), np.real(np.outer(direction, wave))
    y = -(C @ x + q) / eps
    size_q, rate_q = np.linalg.norm(q, axis=0), np.linalg.norm(np.imag(np.outer(direction, wave)) * frequency, axis=0)
    bound_x = found["layer_k1"] * np.linalg.norm(x[:, 0]) + found["layer_F"] * (
        size_q.max() + found["layer_k1_hat"] * size_q[0]
    )
    bound_x += eps * found["layer_k2_hat"] * found["layer_F"] * rate_q.max()
    bound_y = found["layer_k1_hat"] * np.linalg.norm(y[:, 0]) + found["layer_k2_hat"] * rate_q.max()
    assert found["layer_k2_hat"] < 20.0
    assert np.linalg.norm(x, axis=0).max() <= 1.001 * bound_x
    assert np.linalg.norm(y, axis=0).max() <= 1.001 * bound_y


@pytest.mark.parametrize("eps", [1e-3, 1e-5])
def test_asymptotics_of_the_initial_layer(eps):
    """Section 4.4: outer solution plus layer differ from the solution by O(eps)."""
    A, B, C = np.array([[-1.0, 2.0], [0.5, -1.5]]), np.array([[1.0], [1.0]]), np.array([[1.0, 0.5]])
    x0, q = np.array([1.0, 2.0]), np.array([-0.5])
    found = analyse_conditioning(constant(A, B, C, [[eps]]), (0.0, 1.0), points=5)
    layer = found.initial_layer(x0, q)
    F = B @ np.linalg.inv(C @ B)
    free = np.eye(2) - F @ C
    np.testing.assert_allclose(C @ layer.x0 + q, 0.0, atol=1e-14)
    np.testing.assert_allclose(layer.x0 + layer.alpha, x0, atol=1e-14)
    state, drive = A - B @ C / eps, -(B @ q) / eps
    rest = np.linalg.solve(state, drive)
    for t in (0.0, 0.5 * eps, 2.0 * eps, 20.0 * eps, 0.7):
        x = expm(state * t) @ (x0 + rest) - rest
        # the outer solution: z' = (I - P) A (z - F q), x = z - F q
        block = np.block([[free @ A, -(free @ A @ F @ q)[:, None]], [np.zeros((1, 3))]])
        z = (expm(block * t) @ np.append(free @ x0, 1.0))[:2]
        outer_x = z - F @ q
        outer_y = -np.linalg.solve(C @ B, C @ A @ outer_x)
        layer_x, layer_y = layer(t)
        np.testing.assert_allclose(x, outer_x + layer_x, atol=2.0 * eps)
        # in the layer y is of size 1/eps, after it of size 1
        atol = 1.0 if t < 10.0 * eps else 2.0 * eps
        np.testing.assert_allclose(-(C @ x + q) / eps, outer_y + layer_y, atol=atol)
    start = free @ x0 - F @ q  # no layer iff C x(0) + q(0) = 0
    assert np.linalg.norm(found.initial_layer(start, q).beta) < 1e-10 / eps


@pytest.mark.parametrize("eps", [1e-4, 1e-6])
def test_theorem_4_12_small_perturbations_change_little(eps):
    """For C B regular; eigenvalues of the slow part and the constants move by a multiple of delta."""
    random = np.random.default_rng(3)
    A, B = -np.eye(3), orthogonal(random, 3)[:, :1]
    C = B.T + 0.2 * random.normal(size=(1, 3))
    delta = 1e-3
    given_, changed = (
        analyse_conditioning(constant(A + d * random.normal(size=(3, 3)), B + d, C - d, [[eps]]), (0.0, 2.0), points=21)
        for d in (0.0, delta)
    )
    for name in ("k1", "k2", "layer_k1", "layer_k2", "layer_k2_hat"):
        assert changed[name] == pytest.approx(given_[name], rel=20.0 * delta), name


def test_examples_4_11_and_4_13_a_singular_pencil_has_no_such_protection():
    A, C = [[-1.0, -1.0], [0.0, 0.0]], [[0.0, 1.0]]
    sizes = []
    for eps in (1e-4, 1e-5):
        found = analyse_conditioning(constant(A, [[1.0], [0.0]], C, [[eps]]), (0.0, 1.0))
        assert found.index == 1 and found.effective_index is None
        assert any("nearly singular" in text for text in found.advice)
        assert "layer_k1" not in found.constants
        # x1 = ... + (1 + 1/eps) (exp(-t) - 1) x2(0)
        assert found["k1"] == pytest.approx((1.0 + 1.0 / eps) * (1.0 - np.exp(-1.0)), rel=1e-3)
        sizes.append(found["k1"])
    assert sizes[1] == pytest.approx(10.0 * sizes[0], rel=1e-2)
    delta, eps = 1e-3, 1e-6  # example 4.13: the eigenvalue 0 moves to -delta / eps
    state = np.array(A) - np.array([[1.0], [delta]]) @ np.array(C) / eps
    assert min(np.linalg.eigvals(state).real) == pytest.approx(-delta / eps, rel=1e-3)
    stable = analyse_conditioning(constant(A, [[1.0], [delta]], C, [[eps]]), (0.0, 1.0))
    assert stable["k1"] < 1e-2 / eps and found["k1"] > 0.5 / 1e-5


def test_an_unstable_layer_is_named():
    found = analyse_conditioning(constant([[0.0]], [[1.0]], [[1.0]], [[-1e-4]]), (0.0, 1e-2))
    assert np.isinf(found["layer_k2_hat"])
    assert "unstable" in found.advice[0]


# --- invariances ------------------------------------------------------------------------------------------------------


@given(seeds, st.sampled_from([random_index1, random_index2]))
@settings(max_examples=20)
def test_orthogonal_coordinates_do_not_matter(seed, make):
    random = np.random.default_rng(seed)
    A, B, C, D = make(seed)
    T, V, R = orthogonal(random, len(A)), orthogonal(random, len(D)), orthogonal(random, len(D))
    one = analyse_conditioning(constant(A, B, C, D), (0.0, 1.0), points=9)
    other = analyse_conditioning(constant(T @ A @ T.T, T @ B @ V.T, R @ C @ T.T, R @ D @ V.T), (0.0, 1.0), points=9)
    assert (one.index, one.effective_index) == (other.index, other.effective_index)
    for name in one.constants:
        assert other[name] == pytest.approx(one[name], rel=1e-6, abs=1e-9), name
    for pair in one.amplification:
        assert other.factor(*pair) == pytest.approx(one.factor(*pair), rel=1e-6, abs=1e-9), pair


@given(seeds, st.floats(0.1, 10.0), st.sampled_from([random_index1, random_index2]))
@settings(max_examples=20)
def test_scaled_constraints_change_only_what_has_their_unit(seed, factor, make):
    A, B, C, D = make(seed)
    one = analyse_conditioning(constant(A, B, C, D), (0.0, 1.0), points=9)
    other = analyse_conditioning(constant(A, B, factor * C, factor * D), (0.0, 1.0), points=9)
    for effect, source in one.amplification:
        unit = 1.0 / factor if source in ("q", "q'") else 1.0
        assert other.factor(effect, source) == pytest.approx(unit * one.factor(effect, source), rel=1e-6, abs=1e-9)
    assert other.effective_index == one.effective_index


@given(seeds, st.floats(0.05, 20.0), st.sampled_from([random_index1, random_index2]))
@settings(max_examples=20)
def test_other_units_of_time(seed, unit, make):
    """x(t) with t = unit s: A and B are multiplied by the unit, p as well."""
    A, B, C, D = make(seed)
    one = analyse_conditioning(constant(A, B, C, D), (0.0, 1.0), points=9)
    other = analyse_conditioning(constant(unit * A, unit * B, C, D), (0.0, 1.0 / unit), points=9)
    assert other["k1"] == pytest.approx(one["k1"], rel=1e-6, abs=1e-9)
    assert unit * other["k2"] == pytest.approx(one["k2"], rel=1e-6, abs=1e-9)
    assert other.factor("x", "q") == pytest.approx(one.factor("x", "q"), rel=1e-6)
    assert other.factor("y", "q") == pytest.approx(one.factor("y", "q"), rel=1e-6)


def test_backward_in_time():
    forward = analyse_conditioning(constant([[1.0]], [[0.0]], [[1.0]], [[2.0]]), (0.0, 1.0))
    backward = analyse_conditioning(constant([[-1.0]], [[0.0]], [[1.0]], [[2.0]]), (0.0, -1.0))
    for name in ("k1", "k2", "kappa"):
        assert backward[name] == pytest.approx(forward[name]), name
