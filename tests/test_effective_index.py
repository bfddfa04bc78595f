"""The effective index: GSVD, and the cascade of section 4.5 of Wijckmans."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daedal.analysis.conditioning.effective_index import THRESHOLD, effective_index, generalised_svd

sizes = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))


def orthogonal(random, n):
    return np.linalg.qr(random.normal(size=(n, n)))[0]


# --- the decomposition ------------------------------------------------------------------------------------------------


@given(sizes, st.integers(0, 5))
def test_gsvd_factors_have_their_properties(size, rank):
    m, n, seed = size
    random = np.random.default_rng(seed)
    C = random.normal(size=(m, n))
    D = random.normal(size=(m, min(rank, m))) @ random.normal(size=(min(rank, m), m))  # of any rank
    f = generalised_svd(C, D)
    scale = np.linalg.norm(np.hstack([C, D]))
    np.testing.assert_allclose(f.X @ f.S @ f.U.T, C, atol=1e-12 * scale)
    np.testing.assert_allclose(f.X @ np.diag(f.T) @ f.V.T, D, atol=1e-12 * scale)
    np.testing.assert_allclose(f.S @ f.S.T + np.diag(f.T**2), np.eye(m), atol=1e-10)
    np.testing.assert_allclose(f.U.T @ f.U, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(f.V.T @ f.V, np.eye(m), atol=1e-12)
    assert np.all(np.diff(f.T) <= 0.0) and np.all(f.T >= 0.0)
    off = f.S.copy()
    off[np.arange(max(m - n, 0), m), np.arange(min(m, n))] = 0.0
    assert not off.any()


@given(sizes)
def test_gsvd_does_not_depend_on_the_form_of_the_constraints(size):
    m, n, seed = size
    random = np.random.default_rng(seed)
    C, D = random.normal(size=(m, n)), random.normal(size=(m, m))
    rows = orthogonal(random, m) * 10.0 ** random.uniform(-2, 2, m)
    np.testing.assert_allclose(generalised_svd(rows @ C, rows @ D).T, generalised_svd(C, D).T, atol=1e-9)


def test_gsvd_resolves_small_numbers():
    assert generalised_svd(np.eye(2), np.diag([1.0, 1e-9])).T[1] == pytest.approx(1e-9, rel=1e-6)


# --- the cascade ------------------------------------------------------------------------------------------------------


def ladder(small=0.0):
    """y1 of index 1, y2 of index 2, y3 of index 3, y4 of index 4, all but for small numbers."""
    # x1' = y2; x2' = x3, x3' = y3; x4' = x5, x5' = x6, x6' = y4
    A, B, C = np.zeros((6, 6)), np.zeros((6, 4)), np.zeros((4, 6))
    A[1, 2] = A[3, 4] = A[4, 5] = 1.0
    B[0, 1] = B[2, 2] = B[5, 3] = 1.0
    C[0, 0] = C[1, 0] = C[2, 1] = C[3, 3] = 1.0
    return A, B, C, np.diag([1.0, small, small, small])


@pytest.mark.parametrize("small", [0.0, 1e-9, 1e-5])
def test_every_variable_gets_its_index(small):
    found = effective_index(*ladder(small))
    assert found.index == 4
    assert found.of_variables() == [1, 2, 3, 4]
    assert found.clear


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-8, 1e-5]))
def test_indices_do_not_depend_on_the_coordinates(seed, small):
    random = np.random.default_rng(seed)
    A, B, C, D = ladder(small)
    T, V, W = orthogonal(random, 6), orthogonal(random, 4), orthogonal(random, 4)
    rows = W * 10.0 ** random.uniform(-3, 3, 4)
    found = effective_index(T @ A @ T.T, T @ B @ V.T, rows @ C @ T.T, rows @ D @ V.T)
    assert [level.directions.shape[1] for level in found.levels] == [1, 1, 1, 1]
    for k, level in enumerate(found.levels):  # y_k of the ladder, in the new coordinates
        assert abs(V[:, k] @ level.directions[:, 0]) == pytest.approx(1.0, abs=1e-3)


def test_nearly_singular_derivative_of_the_constraint_splits_index_2_and_3():
    """Step 4 of the algorithm: E = C B has one singular value of size 1 and a small one."""
    eps = 1e-5
    A = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    B = np.array([[1.0, 0.0], [0.0, eps], [0.0, 1.0]])
    C = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert effective_index(A, B, C, np.zeros((2, 2))).of_variables() == [2, 3]
    assert effective_index(A, B, C, np.zeros((2, 2)), threshold=1e-7).of_variables() == [2, 2]


def test_example_4_11_is_never_determined():
    """C A^i B = 0 for all i: without eps the pencil is singular."""
    A, B, C = np.array([[-1.0, -1.0], [0.0, 0.0]]), np.array([[1.0], [0.0]]), np.array([[0.0, 1.0]])
    found = effective_index(A, B, C, np.array([[1e-6]]))
    assert found.index is None and found.of_variables() == [None]
    assert effective_index(A, B, C, np.array([[1.0]])).index == 1


def test_examples_5_12_and_5_16():
    """Both have C B = eps; the first one a singular pencil in the limit, the second one index 3."""
    B, C, D = np.array([[1.0], [1.0]]), np.array([[1.0001, -1.0]]), np.zeros((1, 1))
    assert effective_index(np.array([[0.5, 1.0], [1.0, 0.5]]), B, C, D).index is None
    for A in ([[0.5, 1.0], [1.0, 0.0]], [[0.5, 2.0], [1.0, 1.0]]):
        assert effective_index(np.array(A), B, C, D).index == 3
        assert effective_index(np.array(A), B, C, D, threshold=1e-6).index == 2


def test_turning_constraints_need_the_derivative_of_c():
    """0 = C(t) x with C B = 0 at all times and (C A + C') B regular."""
    A, B, C = np.zeros((2, 2)), np.array([[0.0], [1.0]]), np.array([[1.0, 0.0]])
    assert effective_index(A, B, C, np.zeros((1, 1))).index is None
    assert effective_index(A, B, C, np.zeros((1, 1)), C_rate=np.array([[0.0, 1.0]])).index == 3


@pytest.mark.parametrize(
    ("eps", "index", "clear"), [(0.3, 1, True), (3e-3, 1, False), (3e-4, 2, False), (1e-6, 2, True)]
)
def test_numbers_near_the_threshold_are_reported(eps, index, clear):
    found = effective_index(np.zeros((1, 1)), np.eye(1), np.eye(1), np.array([[eps]]))
    assert (found.index, found.clear, found.threshold) == (index, clear, THRESHOLD)
