"""Conditioning constants of index 2 and errors in the coefficients: Wijckmans, chapter 5."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from conditioning_problems import constant, random_index2, turning
from daedal.analysis import analyse_conditioning
from daedal.analysis.conditioning.constants import perturbed_index2

seeds = st.integers(0, 10**6)


# --- index 2 ----------------------------------------------------------------------------------------------------------


def test_lemma_5_2():
    """P(t) Z(t) (I - P(0)) = 0, P(0) Z^-1(t) (I - P(t)) = 0, W W+ W = W, W+ W W+ = W+."""
    found = analyse_conditioning(turning(), (0.0, 2.0))
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
    found = analyse_conditioning(problem, (0.0, 2.0))
    start = found.matrices["W"][0] @ np.array([1.0, -0.4, 0.7])
    sol = daedal.solve(problem, (0.0, 2.0), (start, None), formulation="stabilised_reduction", rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.matrices["W"][-1] @ start, sol.y[:3, -1], atol=1e-6)


def test_mixed_constraints_of_index_1_and_2():
    """Example 6.7 with eps = 0: y1 is eliminated, y2 has index 2; as eps -> 0 the constants of x meet."""
    matrices = [[-2.0, -1.0], [0.0, -3.0]], [[1.0, 1.0], [2.0, 0.0]], [[-1.0, -1.0], [1.0, 0.0]]
    limit = analyse_conditioning(constant(*matrices, np.diag([1.0, 0.0])), (0.0, 1.0))
    near = analyse_conditioning(constant(*matrices, np.diag([1.0, 1e-8])), (0.0, 1.0))
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
    return analyse_conditioning(constant(A, SKEW[1], SKEW[2], [[0.0]]), (0.0, 1.0), points=5)


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
    found = analyse_conditioning(constant(np.diag([lam, -lam]), [[1.0], [1.0]], [[1.0, 1.0]], [[0.0]]), (0.0, 1e-3))
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
    found = analyse_conditioning(
        constant([[0.5, 1.0], [1.0, 0.0]], [[1.0], [1.0]], [[1.0 + eps, -1.0]], [[0.0]]), (0.0, 1.0)
    )
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
