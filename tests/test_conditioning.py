"""Conditioning constants of index 1 and 2: closed forms, invariances, theorems of chapters 4 and 5 of Wijckmans."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import daedal
from daedal import LinearDAE, conditioning, library, linear
from daedal.conditioning.local import local_conditioning
from daedal.conditioning.perturbed import perturbed_index2

seeds = st.integers(0, 10**6)


def constant(A, B, C, D):
    """A linear DAE with constant coefficients and nothing on the right."""
    A, B, C, D = (np.asarray(one, dtype=float) for one in (A, B, C, D))
    n_x, n_y = B.shape
    return LinearDAE(A, B, C, D, np.zeros(n_x), np.zeros(n_y), n_x=n_x, n_y=n_y)


def orthogonal(random, n):
    return np.linalg.qr(random.normal(size=(n, n)))[0]


def random_index1(seed, n_x=3, n_y=2):
    random = np.random.default_rng(seed)
    D = orthogonal(random, n_y) * random.uniform(0.3, 2.0, n_y)
    return random.normal(size=(n_x, n_x)), random.normal(size=(n_x, n_y)), random.normal(size=(n_y, n_x)), D


def random_index2(seed, n_x=4, n_y=2):
    random = np.random.default_rng(seed)
    B = orthogonal(random, n_x)[:, :n_y]
    C = B.T + 0.4 * random.normal(size=(n_y, n_x))
    if np.linalg.svd(C @ B, compute_uv=False)[-1] < 0.2:
        C = B.T
    return random.normal(size=(n_x, n_x)), B, C, np.zeros((n_y, n_y))


# --- index 1 ----------------------------------------------------------------------------------------------------------


def test_scalar_closed_forms():
    """x' = a x + b y, 0 = c x + d y: the state equation x' = (a - b c / d) x."""
    a, b, c, d, T = -0.5, 2.0, 1.0, 4.0, 3.0
    rate = a - b * c / d
    found = conditioning(constant([[a]], [[b]], [[c]], [[d]]), (0.0, T))
    assert (found.index, found.effective_index) == (1, 1)
    lasting = (1.0 - np.exp(rate * T)) / -rate
    expected = {"k1": 1.0, "k2": lasting, "D_inverse_C": c / d, "D_inverse": 1.0 / d, "kappa5": 0.0}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-6), name
    assert found.factor("x", "q") == pytest.approx(lasting * b / d)
    assert found.factor("y", "q") == pytest.approx(lasting * b / d * c / d + 1.0 / d)


def test_transient_growth_and_integrals_against_quadrature():
    A = np.array([[-1.0, 60.0], [0.0, -3.0]])
    found = conditioning(constant(A, np.zeros((2, 1)), [[1.0, 0.0]], [[1.0]]), (0.0, 4.0), points=301)
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
    found = conditioning(linear.Pencil(lead, rest), (0.0, 1.0), points=3)
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

    found = conditioning(linear.TimeVarying(A, B, n=2), (0.0, 2.0))
    assert found["kappa5"] == pytest.approx(3.0, rel=1e-4)
    assert found["kappa1"] == pytest.approx(1.0, rel=1e-6)
    assert found["kappa2"] == pytest.approx(1.0 - np.exp(-2.0), rel=1e-4)
    assert found["kappa3"] == pytest.approx(1.0) and found["kappa4"] == pytest.approx(0.5)
    assert found["kappa"] == pytest.approx((1.0 - np.exp(-2.0)) * (1.0 + 0.5 * 3.0), rel=1e-4)


# --- nearly index 2 ---------------------------------------------------------------------------------------------------


def test_theorem_4_6_has_no_constant_that_grows_with_1_over_eps():
    A, B, C = [[-1.0, 1.0], [0.0, -2.0]], [[1.0], [0.5]], [[1.0, 0.2]]
    names = ("layer_k1", "layer_k2", "layer_k1_hat", "layer_k2_hat", "layer_F")
    all_found = [conditioning(constant(A, B, C, [[eps]]), (0.0, 1.0), points=11) for eps in (1e-4, 1e-6, 1e-8)]
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
    found = conditioning(constant(np.zeros((3, 3)), B, C, eps * np.eye(2)), (0.0, 1.0), points=5)
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
    found = conditioning(constant(A, B, C, [[eps]]), (0.0, 1.0), points=5)
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
        conditioning(constant(A + d * random.normal(size=(3, 3)), B + d, C - d, [[eps]]), (0.0, 2.0), points=21)
        for d in (0.0, delta)
    )
    for name in ("k1", "k2", "layer_k1", "layer_k2", "layer_k2_hat"):
        assert changed[name] == pytest.approx(given_[name], rel=20.0 * delta), name


def test_examples_4_11_and_4_13_a_singular_pencil_has_no_such_protection():
    A, C = [[-1.0, -1.0], [0.0, 0.0]], [[0.0, 1.0]]
    sizes = []
    for eps in (1e-4, 1e-5):
        found = conditioning(constant(A, [[1.0], [0.0]], C, [[eps]]), (0.0, 1.0))
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
    stable = conditioning(constant(A, [[1.0], [delta]], C, [[eps]]), (0.0, 1.0))
    assert stable["k1"] < 1e-2 / eps and found["k1"] > 0.5 / 1e-5


def test_an_unstable_layer_is_named():
    found = conditioning(constant([[0.0]], [[1.0]], [[1.0]], [[-1e-4]]), (0.0, 1e-2))
    assert np.isinf(found["layer_k2_hat"])
    assert "unstable" in found.advice[0]


# --- index 2 ----------------------------------------------------------------------------------------------------------


def turning(eps=0.0):
    """Three unknowns, a constraint whose normal and whose direction turn at different rates."""

    def B(t):
        return np.array([[np.cos(t)], [np.sin(t)], [0.3]])

    def C(t):
        return np.array([[np.cos(1.3 * t), np.sin(1.3 * t), 0.5 * np.sin(t)]])

    def A(t):
        return np.array([[-0.2, 1.0, 0.0], [-1.0, -0.2, np.sin(t)], [0.3, 0.0, -0.5]])

    return LinearDAE(A, B, C, [[eps]], np.zeros(3), np.zeros(1), n_x=3, n_y=1)


def test_lemma_5_2():
    """P(t) Z(t) (I - P(0)) = 0, P(0) Z^-1(t) (I - P(t)) = 0, W W+ W = W, W+ W W+ = W+."""
    found = conditioning(turning(), (0.0, 2.0))
    P, Z, W, plus = (found.matrices[name] for name in ("P", "Z", "W", "W_plus"))
    one = np.eye(3)
    assert max(np.linalg.norm(P[k] @ P[k] - P[k]) for k in range(len(P))) < 1e-12
    for k in range(0, len(P), 10):
        np.testing.assert_allclose(P[k] @ Z[k] @ (one - P[0]), 0.0, atol=1e-7)
        np.testing.assert_allclose(P[0] @ np.linalg.inv(Z[k]) @ (one - P[k]), 0.0, atol=1e-7)
        np.testing.assert_allclose((one - P[k]) @ Z[k] @ (one - P[0]), W[k], atol=1e-7)
        np.testing.assert_allclose(W[k] @ plus[k] @ W[k], W[k], atol=1e-7)
        np.testing.assert_allclose(plus[k] @ W[k] @ plus[k], plus[k], atol=1e-7)
    assert np.linalg.norm(P[-1] @ Z[-1] @ P[0]) > 0.1  # the first identity is not trivially true


def test_z_of_the_state_equation_is_the_solution():
    """W(t) against the solution of the index-2 problem itself."""
    problem = turning()
    found = conditioning(problem, (0.0, 2.0))
    start = found.matrices["W"][0] @ np.array([1.0, -0.4, 0.7])
    sol = daedal.solve(problem, (0.0, 2.0), (start, None), formulation="stabilised_reduction", rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.matrices["W"][-1] @ start, sol.y[:3, -1], atol=1e-6)


def test_mixed_constraints_of_index_1_and_2():
    """Example 6.7 with eps = 0: y1 is eliminated, y2 has index 2; as eps -> 0 the constants of x meet."""
    matrices = [[-2.0, -1.0], [0.0, -3.0]], [[1.0, 1.0], [2.0, 0.0]], [[-1.0, -1.0], [1.0, 0.0]]
    limit = conditioning(constant(*matrices, np.diag([1.0, 0.0])), (0.0, 1.0))
    near = conditioning(constant(*matrices, np.diag([1.0, 1e-8])), (0.0, 1.0))
    assert (limit.index, near.index, near.effective_index) == (2, 1, 2)
    assert list(limit.variables.values()) == list(near.variables.values()) == [0, 0, 1, 2]
    assert near.variable_index == [1, 1, 1, 2]
    for pair in (("x", "p"), ("y", "q'")):
        assert near.factor(*pair) == pytest.approx(limit.factor(*pair), rel=0.02), pair
    # x2' = -x2 + ..., y1 = x2 + ..., so that the response to p2 is 1 - exp(-1)
    assert limit["k2"] == pytest.approx(1.0 - np.exp(-1.0), rel=1e-6)


EPS = 1e-4
SKEW = ([[0.5, 1.0], [1.0, 0.5]], [[1.0], [1.0]], [[1.0 + EPS, -1.0]])


def skew(A=SKEW[0]):
    return conditioning(constant(A, SKEW[1], SKEW[2], [[0.0]]), (0.0, 1.0), points=5)


@pytest.mark.parametrize(("change", "growth"), [(-1e-3, 9.5), (-1e-4, 0.5), (1e-4, -1.5)])
def test_example_5_12(change, growth):
    found = skew()
    assert found["P"] == pytest.approx(2.0001e4, rel=1e-4)
    there = found.perturbed(dA=[[change, 0.0], [0.0, 0.0]])
    assert there.eigenvalues.real == pytest.approx([-0.5])
    assert there.exact.real == pytest.approx([growth], rel=1e-6)
    assert there.first_order.real == pytest.approx([growth], rel=1e-6)  # dA enters linearly
    assert there.loses_stability == (change < -EPS / 2.0)


def test_example_5_14():
    d = -5e-5
    there = skew().perturbed(dB=[[0.0], [d]])
    assert there.exact.real == pytest.approx([(3.0 * d + EPS + 2.0 * EPS * d) / (2.0 * (d - EPS))])
    assert there.exact.real == pytest.approx([1.667e-1], abs=1e-4)
    assert there.loses_stability


@pytest.mark.parametrize("lam", [1.0, 1e4])
def test_example_5_15(lam):
    e = 1e-3
    found = conditioning(constant(np.diag([lam, -lam]), [[1.0], [1.0]], [[1.0, 1.0]], [[0.0]]), (0.0, 1e-3))
    there = found.perturbed(dC=[[e, 0.0]])
    assert there.eigenvalues.real == pytest.approx([0.0], abs=1e-9 * lam)
    assert there.exact.real == pytest.approx([-lam * e / (2.0 + e)])
    assert there.first_order.real == pytest.approx([-lam * e / (2.0 + e)], rel=1e-3)


@pytest.mark.parametrize("A", [[[0.5, 2.0], [1.0, 1.0]], [[0.5, 1.0], [1.0, 0.0]]])
def test_example_5_16(A):
    """Nearly index 3, all constants bounded, and yet destroyed by a small dC."""
    d = -2e-4
    found = skew(A)
    assert (found.index, found.effective_index) == (2, 3)
    there = found.perturbed(dC=[[0.0, d]])
    assert there.eigenvalues.real == pytest.approx([-(1.0 + 1.0 / (2.0 * EPS))])
    assert there.exact.real == pytest.approx([-(1.0 + d + 2.0 * EPS) / (2.0 * (EPS + d))])
    assert there.exact.real == pytest.approx([5000.0], rel=1e-3)
    mode = np.array([1.0 - d, 1.0 + EPS])
    np.testing.assert_allclose((np.eye(2) - there.P_exact) @ A @ mode, there.exact[0].real * mode, rtol=1e-6)
    assert any("Theorem 5.10" in text for text in found.advice)


@pytest.mark.parametrize("eps", [1e-4, 1e-6])
def test_theorem_5_6(eps):
    """C B = eps with C A B regular: constants of the bounds do not grow, although |P| and k1 do."""
    found = conditioning(constant([[0.5, 1.0], [1.0, 0.0]], [[1.0], [1.0]], [[1.0 + eps, -1.0]], [[0.0]]), (0.0, 1.0))
    assert found["P"] > 1.0 / eps
    assert found["layer_k1_hat"] == pytest.approx(1.0)
    assert found["layer_k2_hat"] == pytest.approx(2.0, rel=0.01)  # (C A B)^-1
    assert found["layer_k1"] < 4.0 and found["layer_F"] == pytest.approx(2.0 * np.sqrt(2.0), rel=0.01)


@given(seeds, st.sampled_from(["dB", "dC", "dA"]))
@settings(max_examples=40)
def test_first_order_formulas(seed, which):
    """The remainder of the formulas falls by 4 when the perturbation is halved."""
    random = np.random.default_rng(seed)
    A, B, C, _ = random_index2(seed)
    shape = {"dA": A, "dB": B, "dC": C}[which].shape
    change = random.normal(size=shape)
    change *= 1e-3 / np.linalg.norm(change)
    remainders = []
    for factor in (1.0, 0.5):
        there = perturbed_index2(A, B, C, **{which: factor * change})
        remainders.append(np.linalg.norm(there.P_exact - there.P_first_order))
        np.testing.assert_allclose(there.P_exact, there.P_first_order, atol=1e-3)
    if which == "dA":
        assert max(remainders) == 0.0
    else:
        assert np.linalg.norm(there.P_exact - there.P) > 20.0 * remainders[1]
        assert remainders[0] == pytest.approx(4.0 * remainders[1], rel=0.1)


# --- invariances ------------------------------------------------------------------------------------------------------


@given(seeds, st.sampled_from([random_index1, random_index2]))
@settings(max_examples=20)
def test_orthogonal_coordinates_do_not_matter(seed, make):
    random = np.random.default_rng(seed)
    A, B, C, D = make(seed)
    T, V, R = orthogonal(random, len(A)), orthogonal(random, len(D)), orthogonal(random, len(D))
    one = conditioning(constant(A, B, C, D), (0.0, 1.0), points=9)
    other = conditioning(constant(T @ A @ T.T, T @ B @ V.T, R @ C @ T.T, R @ D @ V.T), (0.0, 1.0), points=9)
    assert (one.index, one.effective_index) == (other.index, other.effective_index)
    for name in one.constants:
        assert other[name] == pytest.approx(one[name], rel=1e-6, abs=1e-9), name
    for pair in one.amplification:
        assert other.factor(*pair) == pytest.approx(one.factor(*pair), rel=1e-6, abs=1e-9), pair


@given(seeds, st.floats(0.1, 10.0), st.sampled_from([random_index1, random_index2]))
@settings(max_examples=20)
def test_scaled_constraints_change_only_what_has_their_unit(seed, factor, make):
    A, B, C, D = make(seed)
    one = conditioning(constant(A, B, C, D), (0.0, 1.0), points=9)
    other = conditioning(constant(A, B, factor * C, factor * D), (0.0, 1.0), points=9)
    for effect, source in one.amplification:
        unit = 1.0 / factor if source in ("q", "q'") else 1.0
        assert other.factor(effect, source) == pytest.approx(unit * one.factor(effect, source), rel=1e-6, abs=1e-9)
    assert other.effective_index == one.effective_index


@given(seeds, st.floats(0.05, 20.0), st.sampled_from([random_index1, random_index2]))
@settings(max_examples=20)
def test_other_units_of_time(seed, unit, make):
    """x(t) with t = unit s: A and B are multiplied by the unit, p as well."""
    A, B, C, D = make(seed)
    one = conditioning(constant(A, B, C, D), (0.0, 1.0), points=9)
    other = conditioning(constant(unit * A, unit * B, C, D), (0.0, 1.0 / unit), points=9)
    assert other["k1"] == pytest.approx(one["k1"], rel=1e-6, abs=1e-9)
    assert unit * other["k2"] == pytest.approx(one["k2"], rel=1e-6, abs=1e-9)
    assert other.factor("x", "q") == pytest.approx(one.factor("x", "q"), rel=1e-6)
    assert other.factor("y", "q") == pytest.approx(one.factor("y", "q"), rel=1e-6)


def test_backward_in_time():
    forward = conditioning(constant([[1.0]], [[0.0]], [[1.0]], [[2.0]]), (0.0, 1.0))
    backward = conditioning(constant([[-1.0]], [[0.0]], [[1.0]], [[2.0]]), (0.0, -1.0))
    for name in ("k1", "k2", "kappa"):
        assert backward[name] == pytest.approx(forward[name]), name


# --- fast coefficients, different units -------------------------------------------------------------------------------


def pulse(height, width):
    return linear.TimeVarying(np.eye(1), lambda t: [[-height * np.exp(-(((t - 0.5) / width) ** 2))]], n=1)


def test_the_grid_is_refined_where_coefficients_change_fast():
    found = conditioning(pulse(500.0, 0.01), (0.0, 1.0), points=21)
    assert found["k1"] == pytest.approx(np.exp(500.0 * 0.01 * np.sqrt(np.pi)), rel=0.02)
    assert found.t.size == 21 and not found.unresolved


def test_coefficients_that_are_too_fast_are_reported():
    found = conditioning(linear.TimeVarying(np.eye(1), lambda t: [[1e5 * np.sin(1e6 * t)]], n=1), (0.0, 1.0), points=5)
    assert found.unresolved and "too fast" in found.advice[0]


def test_a_jump_of_the_coefficients_is_found():
    found = conditioning(linear.TimeVarying(np.eye(1), lambda t: [[-9.0 if t > 0.37 else 1.0]], n=1), (0.0, 1.0))
    assert found["k1"] == pytest.approx(np.exp(9.0 * 0.63 - 0.37), rel=0.01)
    assert not found.unresolved


def test_a_jump_of_the_solution_is_followed_step_by_step():
    """The relaxation oscillation of van der Pol: between slow parts the velocity rises as it does in the solution."""
    model = library.van_der_pol()
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-7, atol=1e-7)
    found = conditioning(model.problem, sol)
    speed = np.linalg.norm(sol.yp, axis=0)
    reached = np.max(speed[1:] / np.minimum.accumulate(speed)[:-1])
    assert reached / 3.0 <= found["k1"] <= 30.0 * reached


def test_equations_in_tiny_units_are_no_constraints():
    assert conditioning(linear.Pencil(np.diag([1.0, 1e-13]), np.eye(2)), (0.0, 1.0), points=5).index == 0


def test_a_large_gain_is_not_a_higher_index():
    """y occurs with 1e-4 beside x in its constraint, but the layer would be as long as the interval."""
    found = conditioning(constant([[-1.0]], [[1e-3]], [[1.0]], [[1e-4]]), (0.0, 1.0))
    assert found["layer_thickness"] == pytest.approx(0.1)
    assert found.effective.index == 2 and found.effective_index == 1 and found.variable_index == [1, 1]
    assert "large gain" in found.advice[0] and repr(found).endswith("index 1>")


# --- the three statements of a problem --------------------------------------------------------------------------------


def test_statements_of_one_problem_agree():
    """As a LinearDAE, and along a solution as SemiExplicitDAE, ImplicitDAE (traced, and by differences)."""
    problem = turning(eps=0.8)
    T = 0.9
    expected = conditioning(problem, (0.0, T), points=41)
    semi = problem.semi_explicit()

    def untraceable(t, y, yp):
        return semi.implicit().evaluate(float(t), np.array(y, dtype=float), np.array(yp, dtype=float))

    statements = [
        (daedal.SemiExplicitDAE(semi.f, semi.g, 3, 1), ([1.0, 0.5, -0.2], None)),
        (daedal.ImplicitDAE(untraceable, 4), ([1.0, 0.5, -0.2, -1.25], None)),
    ]
    for one, start in statements:
        sol = daedal.solve(one, (0.0, T), start, rtol=1e-8, atol=1e-8)
        found = conditioning(one, sol, points=41)
        assert found.index == 1 and not found.is_linear and expected.is_linear
        for name in ("k1", "k2", "D_inverse_C", "D_inverse", "kappa1", "kappa3", "kappa4", "gamma_s"):
            assert found[name] == pytest.approx(expected[name], rel=1e-3), name


def test_a_linear_problem_may_be_looked_at_along_a_solution():
    """The grid is that of the steps, short ones in the initial layer."""
    model = library.nearly_index2(1e-4)
    sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, rtol=1e-6, atol=1e-6)
    found = conditioning(model.problem, sol)
    assert found.t[0] == 0.0 and found.t[-1] == 1.0 and found.t[5] < 1e-3
    assert found["k2"] == pytest.approx(1e-4, rel=0.02)
    assert found["layer_k2_hat"] == pytest.approx(1.0, rel=0.02)


def test_functions_may_use_parameters_and_names():
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z, p: [-p["k"] * z[0]],
        lambda t, y, z, p: [z[0] ** 3 + z[0] - y[0]],
        1,
        1,
        params={"k": 2.0},
        names=["level", "flow"],
    )
    sol = daedal.solve(problem, (0.0, 1.0), ([2.0], [1.0]), rtol=1e-8, atol=1e-10)
    found = conditioning(problem, sol)
    assert found.variables == {"level": 0, "flow": 1}
    slopes = 1.0 / (3.0 * sol.z[0] ** 2 + 1.0)  # dz/dy
    assert found["D_inverse"] == pytest.approx(slopes.max(), rel=1e-3)


# --- index changes, singular problems, words --------------------------------------------------------------------------


def test_an_index_that_changes_is_said_where():
    problem = LinearDAE([[0.0]], [[1.0]], [[1.0]], lambda t: [[t - 0.5]], [0.0], [0.0], n_x=1, n_y=1)
    found = conditioning(problem, (0.0, 1.0))
    assert found.index is None and not found.constants
    assert "changes near t = 0.5" in found.advice[0]


def test_a_singular_problem_names_what_is_not_determined():
    problem = LinearDAE(
        np.zeros((2, 2)),
        np.eye(2),
        [[1.0, 0.0], [2.0, 0.0]],
        np.zeros((2, 2)),
        [0, 0],
        [0, 0],
        n_x=2,
        n_y=2,
        names=["a", "b", "force", "heat"],
    )
    found = conditioning(problem, (0.0, 1.0))
    assert found.index is None and "heat" in found.advice[0] and "force" not in found.advice[0]


def test_index_3_is_left_to_index_reduction():
    A = [[0.0, 1.0], [0.0, 0.0]]
    found = conditioning(constant(A, [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]]), (0.0, 1.0))
    assert found.index == found.effective_index == 3 and not found.constants
    assert "index is 3" in found.advice[0]
    assert "index 3" in str(found)


def test_an_effective_index_that_changes_is_said():
    problem = LinearDAE([[0.0]], [[-1.0]], [[1.0]], lambda t: [[-np.exp(-20.0 * t)]], [0.0], [0.0], n_x=1, n_y=1)
    found = conditioning(problem, (0.0, 1.0))
    assert found.index == 1 and found.effective_index == 2
    assert found.indices[0] == 1 and found.indices[-1] == 2
    assert any("changes along the way" in text and "t = 0.35" in text for text in found.advice)


def test_advice_for_nearly_index_2_can_be_followed():
    model = library.nearly_index2(1e-6)
    found = conditioning(model.problem, model.t_span)
    assert "Integrate it as index 2" in found.advice[0] and "stabilised_reduction" in found.advice[0]
    assert found.variable_index == [1, 2]
    start = [1.0], [0.0]
    options = {"rtol": 1e-6, "atol": 1e-6}
    for way in ({"formulation": "stabilised_reduction"}, {"method": "dassl", "variable_index": found.variable_index}):
        sol = daedal.solve(model.problem, (0.0, 1.0), start, **way, **options)
        assert sol.success and sol.y[1, -1] == pytest.approx(2.0 * np.sin(1.0), abs=1e-3)


def test_a_well_conditioned_problem_is_called_so():
    found = conditioning(constant([[-1.0]], [[1.0]], [[1.0]], [[2.0]]), (0.0, 5.0))
    assert found.advice == [
        "All factors are moderate: the problem is well conditioned, and can be solved as it stands."
    ]


def test_growth_is_warned_about():
    found = conditioning(constant([[2.0]], [[0.0]], [[1.0]], [[1.0]]), (0.0, 10.0))
    assert found["k1"] == pytest.approx(np.exp(20.0), rel=1e-6)
    assert any("grow by a factor of" in text for text in found.advice)


def test_shown_as_text_html_and_picture(tmp_path):
    found = conditioning(library.ill_conditioned_constraints().problem, (0.0, 1.0), points=11)
    text, page = str(found), found._repr_html_()
    for part in ("index 1, in effect index 2", "k2^", "Theorem 4.6", "y2", "What follows"):
        assert part in text and part in page, part
    assert "constraints, rate q'" in text and "index 1, in effect index 2" in repr(found)
    assert all(len(line) <= 120 for line in text.splitlines())
    figure = found.plot(save=tmp_path / "conditioning.png", pyplot=False, title="Example 6.7")
    assert (tmp_path / "conditioning.png").stat().st_size > 0
    assert [axes.get_ylabel() for axes in figure.axes] == ["moves x by", "moves y by", "index"]
    unbounded = conditioning(constant([[0.0]], [[1.0]], [[1.0]], [[-1e-4]]), (0.0, 1e-2), points=5)
    assert "unbounded" in str(unbounded)
    unbounded.plot(pyplot=False)
    conditioning(linear.Pencil(np.eye(2), np.eye(2)), (0.0, 1.0), points=5).plot(pyplot=False)


def test_local_conditioning_of_every_kind():
    at = local_conditioning(library.nearly_index2(1e-6).problem)
    assert (at.index, at.effective_index, at.variables) == (1, 2, {"x": 0, "y": 2})
    assert at.norms["D_inverse"] == pytest.approx(1e6)
    assert "because of" in str(at) and "<table" in at._repr_html_()
    mixed = local_conditioning(constant(*random_index2(4)), 0.0)
    assert mixed.index == 2 and mixed.norms["P"] >= 1.0
    pendulum = daedal.SemiExplicitDAE(
        lambda t, y, z: [y[1], -z[0] * y[0]], lambda t, y, z: [y[0] ** 2 - 1.0], 2, 1, names=["x", "v", "force"]
    )
    there = local_conditioning(pendulum, 0.0, [1.0, 0.0, 0.0])
    assert there.index == 3 and there.variables["force"] == 3 and not there.norms


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((library.linear_index2().problem, (0.0, 0.0)), {}, "t0 different from t1"),
        ((library.linear_index2().problem, "soon"), {}, "solution or an interval"),
        ((library.linear_index2().problem, (0.0, 1.0)), {"points": 1}, "points"),
        ((library.linear_index2().problem, (0.0, 1.0)), {"threshold": 2.0}, "threshold"),
        ((daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1), (0.0, 1.0)), {}, "solve it first"),
        ((42, (0.0, 1.0)), {}, "not an int"),
        ((linear.Pencil(np.ones((1, 2)), np.ones((1, 2))), (0.0, 1.0)), {}, "as many equations"),
        ((linear.TimeVarying(lambda t: [[t]], [[1.0]], n=1), (0.0, 1.0)), {}, "rank of dF/dx' changes"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_in_words(arguments, options, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        conditioning(*arguments, **options)


def test_constants_that_do_not_exist_are_named():
    found = conditioning(library.linear_index2().problem, (0.0, 1.0), points=5)
    with pytest.raises(KeyError, match="k1, k2, P"):
        found["kappa"]
    with pytest.raises(KeyError, match="no factor"):
        found.factor("y", "z")
    with pytest.raises(daedal.InvalidProblemError, match="initial layer"):
        found.initial_layer([1.0], [0.0])
    near = conditioning(library.nearly_index2().problem, (0.0, 1.0), points=5)
    with pytest.raises(daedal.InvalidProblemError, match="index 2"):
        near.perturbed()
    with pytest.raises(daedal.InvalidProblemError, match="dA must have the shape"):
        skew().perturbed(dA=[1.0])
