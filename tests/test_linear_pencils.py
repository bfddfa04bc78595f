"""Matrix pencils: ranks, staircase, Weierstrass form, singular pencils (daedal.linear)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daedal import linear
from daedal.errors import InvalidProblemError
from linear_systems import CHAIN_A, CHAIN_B, hessenberg_pencil, kronecker_pencil, transformation, weierstrass_pencil


def partitions(draw_sizes):
    return st.lists(draw_sizes, max_size=6).map(lambda sizes: sorted(sizes, reverse=True))


# --- ranks


def test_a_clear_rank_names_its_gap():
    decision = linear.rank_decision(np.diag([3.0, 1.0, 1e-14]))
    assert decision.clear and decision.rank == 2
    assert (decision.kept, decision.dropped, decision.threshold) == (1.0, 1e-14, 3e-10)
    assert decision.gap == pytest.approx(1e14)
    assert "rank 2 (smallest kept 1, largest dropped 1e-14, threshold 3e-10)" in str(decision)


def test_an_unclear_rank_names_what_it_lies_between():
    decision = linear.rank_decision(np.diag([1.0, 1e-10, 5e-12, 1e-20]))
    assert not decision.clear and (decision.lowest, decision.highest) == (1, 3)
    assert "rank decision unclear between 1 and 3" in str(decision)


def test_rank_of_nothing_and_of_zero():
    assert linear.rank_decision(np.zeros((0, 3))).rank == 0
    zero = linear.rank_decision(np.zeros((2, 3)))
    assert zero.rank == 0 and zero.clear and zero.dropped == 0.0


@given(st.floats(-13.0, -7.0))
def test_clear_means_no_singular_value_near_the_threshold(exponent):
    decision = linear.rank_decision(np.diag([1.0, 10.0**exponent]))
    assert decision.clear == (not 1e-10 / 30 < 10.0**exponent <= 30e-10)


# --- regular pencils


@settings(deadline=None, max_examples=300)
@given(
    finite=st.integers(0, 12),
    blocks=partitions(st.integers(1, 6)),
    exponent=st.floats(0.0, 5.0),
    noise=st.sampled_from([0.0, 0.0, 1e-13, 1e-12, 1e-11, 1e-10]),
    seed=st.integers(0, 2**32 - 1),
)
def test_structure_is_recovered_or_called_unclear(finite, blocks, exponent, noise, seed):
    """Brenan, Campbell and Petzold, theorems 2.3.1 and 2.3.2, up to index 6 and size 30."""
    if not 0 < finite + sum(blocks) <= 30:
        return
    rng = np.random.default_rng(seed)
    A, B, C = weierstrass_pencil(rng, finite, blocks, 10.0**exponent)
    pencil = linear.Pencil(*(X * (1.0 + noise * rng.normal(size=X.shape)) for X in (A, B)))
    if not pencil.clear:
        assert (exponent > 2.0 or noise > 0.0) and pencil.alternatives
        return
    assert pencil.regular and pencil.index == max(blocks, default=0)
    assert pencil.infinite_blocks == tuple(blocks) and pencil.n_finite == finite
    if exponent > 3.0 or noise > 0.0:
        return
    form = pencil.weierstrass()
    n = finite + sum(blocks)
    norm = np.linalg.norm(form.P, 2) * np.linalg.norm(form.Q, 2) * max(np.linalg.norm(A, 2), np.linalg.norm(B, 2))
    error = 1e-12 * n * norm
    middle_A, middle_B = form.P @ A @ form.Q, form.P @ B @ form.Q
    np.testing.assert_allclose(middle_A[:finite, :finite], np.eye(finite), atol=error)
    np.testing.assert_allclose(middle_A[finite:, finite:], form.N, atol=error)
    np.testing.assert_allclose(middle_B[finite:, finite:], np.eye(n - finite), atol=error)
    np.testing.assert_allclose(middle_B[:finite, :finite], form.C, atol=error)
    for middle in (middle_A, middle_B):
        np.testing.assert_allclose(middle[:finite, finite:], 0.0, atol=error)
        np.testing.assert_allclose(middle[finite:, :finite], 0.0, atol=error)
    assert np.array_equal(form.N, np.triu(form.N, 1))
    power = np.linalg.matrix_power(form.N, form.index) if form.index else np.zeros(0)
    assert not np.any(power)  # nilpotent, exactly
    # One coefficient of det(λ I + C) for all eigenvalues, whose conditions differ: the trace.
    assert pencil.eigenvalues.sum() == pytest.approx(-np.trace(C), abs=1e-7 * (1.0 + np.abs(C).sum()))


@pytest.mark.parametrize("size", [1e-10, 1e-11, 2e-9])
def test_numbers_at_the_threshold_are_called_unclear_in_words(size):
    pencil = linear.Pencil([[1.0, 1.0], [1.0, 1.0 + 4.0 * size]], [[0.0, 1.0], [1.0, 1.0]])
    assert not pencil.clear
    assert set(pencil.alternatives) == {"index 0 with 2 free initial values", "index 1 with 1 free initial value"}
    assert "rank decision unclear between 1 and 2" in str(pencil)
    with pytest.raises(linear.UnclearRankError, match="rank decision unclear between 1 and 2") as caught:
        pencil.weierstrass()
    assert caught.value.decisions[0].what == "A"
    assert linear.Pencil(pencil.A, pencil.B, tolerance=1e-14).weierstrass().index == 0
    assert linear.Pencil(pencil.A, pencil.B, tolerance=1e-6).weierstrass().index == 1


def test_units_do_not_matter():
    rng = np.random.default_rng(3)
    A, B, C = weierstrass_pencil(rng, 3, [3, 2, 1])
    rows, columns = 10.0 ** rng.uniform(-6, 6, 9), 10.0 ** rng.uniform(-6, 6, 9)
    pencil = linear.Pencil(1e-5 * rows[:, None] * A * columns, rows[:, None] * B * columns)
    assert pencil.clear and pencil.infinite_blocks == (3, 2, 1)
    expected = 1e5 * np.linalg.eigvals(-C)
    np.testing.assert_allclose(np.sort_complex(pencil.eigenvalues), np.sort_complex(expected), rtol=1e-8)


@pytest.mark.parametrize("index", [1, 2, 3, 4])
def test_shuffle_lowers_the_index_by_one(index):
    """Theorem 2.3.3: after as many passes as the index, A is regular."""
    A, B, _ = weierstrass_pencil(np.random.default_rng(index), 2, [index, 1])
    pencil = linear.Pencil(A, B)
    for expected in range(index, -1, -1):
        assert pencil.clear and pencil.index == expected
        if expected:
            pencil = pencil.shuffled()
    assert np.linalg.cond(pencil.A) < 1e6


@pytest.mark.parametrize("index", [1, 2, 3])
def test_pole_order_of_the_iteration_matrix_is_the_index(index):
    """Theorem 2.3.4: 2 dynamic and 3 nilpotent unknowns, the slope between 1e-3 and 1e-4."""
    blocks = {1: [1, 1, 1], 2: [2, 1], 3: [3]}[index]
    A, B, _ = weierstrass_pencil(np.random.default_rng(7), 2, blocks)
    assert linear.Pencil(A, B).index == index

    def slope(function):
        return np.log10(np.linalg.norm(function(1e-4), 2) / np.linalg.norm(function(1e-3), 2))

    assert slope(lambda h: np.linalg.inv(A + h * B)) == pytest.approx(index, abs=0.05)
    assert slope(lambda h: np.linalg.solve(A + h * B, A)) == pytest.approx(index - 1, abs=0.05)


def test_index_is_that_of_the_matrix_of_the_shifted_pencil():
    """Section 4 of the theory: index of (sA + B)^{-1} A as a matrix, and the rank of its power."""
    A, B, _ = weierstrass_pencil(np.random.default_rng(11), 4, [3, 2])
    pencil = linear.Pencil(A, B)
    M = np.linalg.solve(0.7 * A + B, A)
    ranks = [np.linalg.matrix_rank(np.linalg.matrix_power(M, k), tol=1e-9) for k in range(5)]
    assert ranks == [9, 7, 5, 4, 4]
    assert pencil.index == ranks.index(4) and pencil.n_finite == 4


def test_hidden_constraints_example():
    """(2.3.7): index 3, completely singular."""
    pencil = linear.Pencil(CHAIN_A, CHAIN_B, names=["x1", "x2", "x3"])
    assert (pencil.index, pencil.infinite_blocks, pencil.n_finite, pencil.eigenvalues.size) == (3, (3,), 0, 0)
    assert pencil.matrix_chain().index == 3


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", [0, 1])
def test_hessenberg_forms_have_their_size_as_index(size, seed):
    """Proposition 2.4.1; only the product of the blocks has to be square."""
    A, B = hessenberg_pencil(np.random.default_rng(seed), size, [3] * (size - 1) + [2])
    pencil = linear.Pencil(A, B)
    assert pencil.index == size == linear.TimeVarying(A, B).index(0.0)
    assert pencil.n_finite == len(A) - 2 * size  # each constraint hides size - 1 others
    assert max(pencil.solution().variable_indices) == size  # perturbation index, for constant coefficients


def regulator(R):
    """P03: x' = F x + G u, l' = -Q x - F^T l, 0 = R u + G^T l."""
    rng = np.random.default_rng(3)
    n, k = 4, len(R)
    F, G, root = rng.normal(size=(n, n)), rng.normal(size=(n, k)), rng.normal(size=(n, n))
    A = np.diag([1.0] * (2 * n) + [0.0] * k)
    B = np.block(
        [[-F, np.zeros((n, n)), -G], [root @ root.T, F.T, np.zeros((n, k))], [np.zeros((k, n)), G.T, np.asarray(R)]]
    )
    return linear.Pencil(A, B)


def test_index_of_the_quadratic_regulator():
    """Index 1 if R is regular; 3 if R = 0 and B^T Q B is regular."""
    assert regulator(np.eye(2)).index == 1
    assert regulator(np.zeros((2, 2))).index == 3
    assert regulator(np.zeros((2, 2))).n_finite == 2 * 4 - 2 * 2
    eigenvalues = regulator(np.eye(2)).eigenvalues  # of a Hamiltonian matrix: with each one its negative
    np.testing.assert_allclose(np.sort(eigenvalues.real), -np.sort(eigenvalues.real)[::-1], atol=1e-8)


def test_semi_discrete_problems():
    """P08, the heat equation with boundary values, has index 1; P10, Stokes flow M U' + K U + C P = f, C^T U = g, 2."""
    n, width = 12, 1.0 / 11.0
    A, B = np.eye(n), np.zeros((n, n))
    A[0, 0] = A[-1, -1] = 0.0
    B[0, 0] = B[-1, -1] = 1.0
    for j in range(1, n - 1):
        B[j, j - 1 : j + 2] = np.array([-1.0, 2.0, -1.0]) / width**2
    heat = linear.Pencil(A, B)
    assert heat.index == 1 and heat.n_finite == n - 2
    exact = -4.0 / width**2 * np.sin(np.arange(1, n - 1) * np.pi * width / 2.0) ** 2
    np.testing.assert_allclose(np.sort(heat.eigenvalues.real), np.sort(exact), rtol=1e-9)
    rng = np.random.default_rng(0)
    K, C = rng.normal(size=(6, 6)), rng.normal(size=(6, 2))
    flow = linear.Pencil(np.diag([1.0] * 6 + [0.0] * 2), np.block([[K, C], [C.T, np.zeros((2, 2))]]))
    assert flow.index == 2 and flow.n_finite == 4


def test_chain_of_two_hessenberg_blocks():
    """P06 made linear: C' + C + R = 0, T' + 2 T - R - Tc = 0, R = T + C, C = u; index 3 and nothing free."""
    A = np.diag([1.0, 1.0, 0.0, 0.0])
    B = [[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, -1.0, -1.0], [-1.0, -1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    pencil = linear.Pencil(A, B, names=["C", "T", "R", "Tc"])
    assert pencil.index == 3 and pencil.n_finite == 0
    assert pencil.solution().variable_indices == (1, 2, 2, 3)
    given_coolant = linear.Pencil(A[:3, :3], np.array(B)[:3, :3])
    assert given_coolant.index == 1


def test_forms_of_constrained_mechanics():
    """Index 3 as it is, 2 as GGL, 1 with the minimal extension (Wunderlich 7.13), for a linear mechanism."""
    rng = np.random.default_rng(1)
    n, k = 4, 2
    K, G, eye, none = rng.normal(size=(n, n)), rng.normal(size=(k, n)), np.eye(n), np.zeros
    # unknowns q, v, lambda
    A = np.diag([1.0] * (2 * n) + [0.0] * k)
    B = np.block([[none((n, n)), -eye, none((n, k))], [K, none((n, n)), G.T], [G, none((k, n + k))]])
    assert linear.Pencil(A, B).index == 3
    # and mu
    A = np.diag([1.0] * (2 * n) + [0.0] * (2 * k))
    B = np.block(
        [
            [none((n, n)), -eye, none((n, k)), G.T],
            [K, none((n, n)), G.T, none((n, k))],
            [G, none((k, n + 2 * k))],
            [none((k, n)), G, none((k, 2 * k))],
        ]
    )
    assert linear.Pencil(A, B).index == 2
    # unknowns p1, p2, z1, z2, w1, w2, lambda
    f = n - k
    A, B = none((2 * n + 3 * k, 2 * n + 3 * k)), none((2 * n + 3 * k, 2 * n + 3 * k))
    A[:f, :f], B[:f, n : n + f] = np.eye(f), -np.eye(f)  # p1' = z1
    B[f:n, 2 * n : 2 * n + k], B[f:n, n + f : 2 * n] = np.eye(k), -np.eye(k)  # w1 = z2
    motion = slice(n, 2 * n)  # (z1', w2) + K p + G^T lambda = 0
    A[n : n + f, n : n + f] = np.eye(f)
    B[n + f : 2 * n, 2 * n + k : 2 * n + 2 * k] = np.eye(k)
    B[motion, :n], B[motion, 2 * n + 2 * k :] = K, G.T
    B[2 * n : 2 * n + k, :n] = G
    B[2 * n + k : 2 * n + 2 * k, n : 2 * n] = G
    B[2 * n + 2 * k :, :n], B[2 * n + 2 * k :, 2 * n + 2 * k :] = G @ K, G @ G.T
    extended = linear.Pencil(A, B)
    assert extended.index == 1 and extended.n_finite == 2 * f


def test_index_one_by_the_constructive_form():
    """Lemma 3.2.1: Q = [A1; B2]^{-1} is regular exactly for index 1, and C = B11 Q11 + B12 Q21."""
    rng = np.random.default_rng(5)
    A1, B = rng.normal(size=(3, 5)), rng.normal(size=(5, 5))
    A = np.vstack([A1, np.zeros((2, 5))])
    Q = np.linalg.inv(np.vstack([A1, B[3:]]))
    pencil = linear.Pencil(A, B)
    assert pencil.index == 1
    C = B[:3] @ Q[:, :3]
    expected = np.linalg.eigvals(-C)
    nearest = np.abs(np.subtract.outer(pencil.eigenvalues, expected)).argmin(axis=1)
    assert sorted(nearest) == [0, 1, 2]
    np.testing.assert_allclose(pencil.eigenvalues, expected[nearest], rtol=1e-10)


def test_raising_and_lowering_the_index():
    """Proposition 2.5.3: y' = z raises the index by one. Section 2.5.3: z1' for an algebraic x1 lowers it."""
    from linear_systems import INTEGRATED_A, INTEGRATED_B, ORIGINAL_A, ORIGINAL_B

    assert linear.Pencil(ORIGINAL_A, ORIGINAL_B).index == 3
    assert linear.Pencil(INTEGRATED_A, INTEGRATED_B).index == 2
    for blocks in ([], [1], [2, 1], [3]):
        A, B, _ = weierstrass_pencil(np.random.default_rng(2), 3, blocks)
        n = len(A)
        raised_A = np.block([[np.eye(n), np.zeros((n, n))], [np.zeros((n, 2 * n))]])
        raised_B = np.block([[np.zeros((n, n)), -np.eye(n)], [B, A]])
        assert linear.Pencil(raised_A, raised_B).index == linear.Pencil(A, B).index + 1


@pytest.mark.parametrize("terms", [0, 1, 2, 3])
def test_power_series_of_a_singular_perturbation_have_any_index(terms):
    """x' = f, eps y' = g: the equations of the power series up to order l form a DAE of index l + 1."""
    count = terms + 1  # x_k' = -x_k + y_k, y_{k-1}' = x_k - y_k
    n = 2 * count
    A, B = np.zeros((n, n)), np.zeros((n, n))
    for k in range(count):
        A[k, k], B[k, k], B[k, count + k] = 1.0, 1.0, -1.0
        B[count + k, k], B[count + k, count + k] = -1.0, 1.0
        if k:
            A[count + k, count + k - 1] = 1.0
    pencil = linear.Pencil(A, B)
    assert pencil.clear and pencil.index == terms + 1


def test_stabilised_index_reductions_leave_index_two_to_the_multiplier():
    """Wijckmans (6.41) and (6.42): x and y depend on no derivative of the right-hand side, only the multiplier does."""
    rng = np.random.default_rng(8)
    n, k = 4, 2
    A, B, C, L = rng.normal(size=(n, n)), rng.normal(size=(n, k)), rng.normal(size=(k, n)), rng.normal(size=(n, k))
    eye, none = np.eye(n), np.zeros
    plain_A = np.block([[eye, none((n, k))], [none((k, n + k))]])
    plain = linear.Pencil(plain_A, np.block([[-A, -B], [C, none((k, k))]]))
    assert plain.index == 2 and plain.solution().variable_indices == (1,) * n + (2,) * k
    assert linear.Pencil(plain_A, np.block([[-A, -B], [C, np.eye(k)]])).index == 1
    for D in (none((k, k)), rng.normal(size=(k, k))):
        wide_A = np.block([[eye, none((n, 2 * k))], [none((k, n + 2 * k))], [none((k, n)), D, none((k, k))]])
        wide_B = np.block([[-A, -B, -L], [C, D, none((k, k))], [C @ A, C @ B, none((k, k))]])
        wide = linear.Pencil(wide_A, wide_B)
        assert wide.clear and wide.index == 2
        indices = wide.solution().variable_indices
        assert max(indices[: n + k]) == 1 and indices[n + k :] == (2,) * k


def test_parasitics_change_index_and_dimension():
    """A gyrator with capacitors and parasitic elements, which are set to zero (P07, with a skew gyrator)."""
    c, g = 1.0, 2.0

    def circuit(C1, C2, G1, G2, G3, G):
        A = [[C1, 0.0, 0.0], [0.0, C2, 0.0], [c, -c, 0.0]]
        B = [[G1, g, 1.0], [-g, G + G2, -1.0], [G3, -G3, -1.0]]
        return linear.Pencil(A, B)

    assert (circuit(1.0, 1.0, 0.1, 0.1, 0.1, 1.0).index, circuit(1.0, 1.0, 0.1, 0.1, 0.1, 1.0).n_finite) == (1, 2)
    ideal = circuit(0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    assert ideal.regular and ideal.n_finite < 2


# --- projector chains


@settings(deadline=None, max_examples=40)
@given(finite=st.integers(0, 4), blocks=partitions(st.integers(1, 3)), seed=st.integers(0, 2**32 - 1))
def test_tractability_index_is_the_index(finite, blocks, seed):
    if not 0 < finite + sum(blocks) <= 10:
        return
    A, B, _ = weierstrass_pencil(np.random.default_rng(seed), finite, blocks, 3.0)
    assert linear.Pencil(A, B).matrix_chain().index == max(blocks, default=0)


def test_canonical_projector_of_index_one():
    """Wijckmans 4.1: G = A + B Q is regular exactly for index 1; Qs projects onto ker A along {x: B x in range A}."""
    A, B, _ = weierstrass_pencil(np.random.default_rng(4), 3, [1, 1])
    chain = linear.Pencil(A, B).matrix_chain()
    Qs = chain.canonical_projector
    np.testing.assert_allclose(Qs @ Qs, Qs, atol=1e-10)
    np.testing.assert_allclose(A @ Qs, 0.0, atol=1e-10)
    np.testing.assert_allclose(Qs, np.eye(5) - linear.Pencil(A, B).weierstrass().projector, atol=1e-9)
    # The solution by projectors, (4.7): u = P x obeys an ordinary differential equation, x = (I - Qs) u + Q G^{-1} q.
    Q, G, q = chain.projectors[0], chain.matrices[1], linear.sine([1.0, 2.0, 0.0, 1.0, -1.0], 2.0)
    x, t = linear.Pencil(A, B).solution(q), 0.7
    u, rate_u = x(t) - Q @ x(t), x.derivative(t) - Q @ x.derivative(t)
    np.testing.assert_allclose((np.eye(5) - Qs) @ u + Q @ np.linalg.solve(G, q(t)), x(t), atol=1e-10)
    slope = np.linalg.solve(G, q(t) - B @ u)
    np.testing.assert_allclose(slope - Q @ slope, rate_u, atol=1e-10)
    A, B, _ = weierstrass_pencil(np.random.default_rng(4), 3, [2])
    with pytest.raises(InvalidProblemError, match="the index is 2"):
        _ = linear.Pencil(A, B).matrix_chain().canonical_projector


def test_matrix_chain_of_a_singular_pencil_ends():
    assert linear.Pencil([[1.0, 0.0], [0.0, 0.0]], np.zeros((2, 2))).matrix_chain().index is None


# --- singular pencils


@settings(deadline=None, max_examples=60)
@given(
    finite=st.integers(0, 3),
    blocks=partitions(st.integers(1, 3)),
    right=st.lists(st.integers(0, 3), max_size=2).map(sorted),
    left=st.lists(st.integers(0, 3), max_size=2).map(sorted),
    seed=st.integers(0, 2**32 - 1),
)
def test_kronecker_structure_is_recovered(finite, blocks, right, left, seed):
    rows = finite + sum(blocks) + sum(right) + sum(k + 1 for k in left)
    columns = finite + sum(blocks) + sum(k + 1 for k in right) + sum(left)
    if min(rows, columns) == 0 or max(rows, columns) > 18:
        return
    A, B = kronecker_pencil(np.random.default_rng(seed), finite, blocks, right, left)
    pencil = linear.Pencil(A, B)
    if not pencil.clear:
        return
    assert pencil.right_minimal_indices == tuple(right) and pencil.left_minimal_indices == tuple(left)
    assert pencil.infinite_blocks == tuple(blocks) and pencil.n_finite == finite
    assert pencil.regular == (not right and not left)
    assert (pencil.index is None) == (not pencil.regular)


def test_equations_and_unknowns_of_a_singular_pencil_are_named():
    # y0' = y1, y0 = sin t, y0' = cos t; y2 does not occur
    A = [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    B = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    pencil = linear.Pencil(A, B, names=["a", "b", "c"])
    assert pencil.right_minimal_indices == (0,) and pencil.left_minimal_indices == (1,)
    assert pencil.undetermined == (2,) and set(pencil.redundant) == {1, 2}
    assert "1 function remains free (c)" in str(pencil)
    with pytest.raises(InvalidProblemError, match="singular"):
        pencil.weierstrass()


def test_frozen_pencil_of_example_241_is_singular():
    pencil = linear.Pencil([[1.0, 0.5], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.5]])
    assert pencil.right_minimal_indices == (0,) and pencil.left_minimal_indices == (1,)


def test_columns_that_vanish_are_not_taken_for_numbers():
    """Unknowns x1 and x4 occur only in v = x': the rounding errors of their columns in B must not count."""
    M = np.zeros((6, 6))
    M[:3, :4] = [[0, 0, 0, -1], [2, 0, -1, 0], [0, 0, 2, 1]]
    C, K = np.zeros((6, 6)), np.zeros((6, 6))
    C[0, 2], K[0, 2], K[2, 2], K[3, 5], K[4, 0] = -1, 2, -2, 1, 1
    pencil = linear.SecondOrder(M, C, K).companion()
    assert pencil.clear and pencil.right_minimal_indices == (1, 1) and len(pencil.left_minimal_indices) == 2
    assert set(pencil.undetermined) == {1, 4, 7, 10}


def test_rectangular_pencils():
    tall = linear.Pencil([[1.0], [0.0]], [[0.0], [1.0]])
    assert tall.left_minimal_indices == (1,) and tall.index is None
    wide = linear.Pencil([[1.0, 0.0]], [[0.0, 1.0]])
    assert wide.right_minimal_indices == (1,) and set(wide.undetermined) == {0, 1}


# --- structural nilpotency


@settings(deadline=None, max_examples=50)
@given(n=st.integers(1, 8), density=st.floats(0.0, 1.0), seed=st.integers(0, 2**32 - 1))
def test_structurally_nilpotent_matrices_become_triangular(n, density, seed):
    """Theorem 2.3.6 and its converse 2.3.5: strictly triangular matrices are nilpotent."""
    rng = np.random.default_rng(seed)
    N = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < density), 1)
    order = rng.permutation(n)
    N = N[np.ix_(order, order)]
    found = linear.triangular_order(N)
    shown = N[np.ix_(found, found)]
    assert np.array_equal(shown, np.triu(shown, 1))
    assert not np.any(np.linalg.matrix_power(N != 0.0, n))


@pytest.mark.parametrize("N", [[[1.0, -1.0], [1.0, -1.0]], [[1.0]], [[0.0, 1.0], [1.0, 0.0]]])
def test_cycles_are_not_structurally_nilpotent(N):
    assert linear.triangular_order(N) is None


# --- words and wrong input


def test_a_pencil_prints_its_decisions_and_shows_html():
    pencil = linear.Pencil(CHAIN_A, CHAIN_B)
    text = str(pencil)
    assert "index                3" in text and "smallest kept" in text and "B on ker A, step 2" in text
    assert "<table" in pencil._repr_html_() and "3 equations" in pencil._repr_html_()
    assert repr(pencil) == "<Pencil 3x3, index 3 with 0 free initial values>"


@pytest.mark.parametrize(
    ("A", "B", "message"),
    [
        ([1.0, 2.0], np.eye(2), "A must be a matrix"),
        (np.eye(2), np.eye(3), r"B must be a matrix of shape \(2, 2\)"),
        ([[np.nan]], [[1.0]], r"A\[0, 0\] is nan"),
        ([["x"]], [[1.0]], "A must be a real matrix"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "at least one row"),
    ],
)
def test_wrong_matrices_are_refused_in_words(A, B, message):
    with pytest.raises(InvalidProblemError, match=message):
        linear.Pencil(A, B)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 2.0])
def test_wrong_tolerance(tolerance):
    with pytest.raises(InvalidProblemError, match="tolerance"):
        linear.Pencil(np.eye(2), np.eye(2), tolerance=tolerance)


def test_wrong_names():
    with pytest.raises(InvalidProblemError, match="2 names"):
        linear.Pencil(np.eye(2), np.eye(2), names=["a"])


def test_ill_conditioned_transformations_are_reported():
    A, B, _ = weierstrass_pencil(np.random.default_rng(0), 3, [2, 1], 1e3)
    form = linear.Pencil(A, B).weierstrass()
    assert form.condition_P > 100.0 and form.condition_Q > 10.0 and form.error < 1e-8
    assert transformation(np.random.default_rng(0), 3).shape == (3, 3)
