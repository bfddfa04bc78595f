"""Linear systems of second order: strangeness, and the forms of first order (daedal.linear)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daedal import linear
from daedal.errors import InvalidProblemError
from linear_systems import transformation


def example_321():
    """x1'' + x1' + x2 = f1, x1 = f2."""
    return linear.SecondOrder([[1, 0], [0, 0]], [[1, 0], [0, 0]], [[0, 1], [1, 0]], names=["x1", "x2"])


def mechanism(rng, n_q, n_lambda, damping):
    """M q'' + D q' + K q + G^T lambda = f, G q = g."""
    n = n_q + n_lambda
    M, C, K = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    root = rng.normal(size=(n_q, n_q))
    M[:n_q, :n_q] = root @ root.T + n_q * np.eye(n_q)
    C[:n_q, :n_q] = damping * rng.normal(size=(n_q, n_q))
    K[:n_q, :n_q] = rng.normal(size=(n_q, n_q))
    G = rng.normal(size=(n_lambda, n_q))
    K[n_q:, :n_q], K[:n_q, n_q:] = G, G.T
    return M, C, K


def test_example_of_the_thesis():
    """Wunderlich, example 3.2.1: strangeness index 2, and 3 of the form with velocities for all unknowns."""
    forms = example_321().forms()
    assert forms.second_order.index == 2 and forms.second_order.clear
    assert (forms.trimmed_strangeness, forms.companion_strangeness) == (2, 3)
    assert (forms.trimmed.index, forms.companion.index) == (3, 4)
    assert forms.trimmed.names == ("x1'", "x1", "x2") and forms.companion.shape == (4, 4)
    values = forms.second_order.values
    assert [v.s02 for v in values] == [1, 0, 0] and [v.s01 for v in values] == [0, 1, 0]
    assert values[-1].a == 2 and forms.second_order.degrees_of_freedom == 0


def test_example_of_the_thesis_needs_one_derivative_less():
    """x1 = f2, x2 = f1 - f2' - f2''; with all velocities also v2 = f1' - f2'' - f2'''."""
    f = linear.sine([1.0, 0.0], 2.0) + linear.exponential([0.0, 1.0], -0.5)
    wide = np.vstack([np.eye(2), np.zeros((1, 2))])
    t = 0.8
    x = example_321().trimmed().solution(f.times(wide))
    e = np.exp(-0.5 * t)
    x2 = np.sin(2 * t) + 0.5 * e - 0.25 * e
    np.testing.assert_allclose(x(t), [-0.5 * e, e, x2], atol=1e-14)
    assert x.derivatives_needed[1] == 2
    wide = np.vstack([np.eye(2), np.zeros((2, 2))])
    y = example_321().companion().solution(f.times(wide))
    v2 = 2.0 * np.cos(2 * t) - 0.25 * e + 0.125 * e
    np.testing.assert_allclose(y(t), [-0.5 * e, v2, e, x2], atol=1e-14)
    assert y.derivatives_needed[1] == 3


@settings(deadline=None, max_examples=25)
@given(
    n_q=st.integers(2, 5),
    n_lambda=st.integers(1, 2),
    damping=st.sampled_from([0.0, 1.0]),
    change=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_equations_of_motion(n_q, n_lambda, damping, change, seed):
    """Remark 3.2.3: velocities of q alone keep index 3 (strangeness 2), a variable for lambda' raises it to 4."""
    if n_lambda >= n_q:
        return
    rng = np.random.default_rng(seed)
    M, C, K = mechanism(rng, n_q, n_lambda, damping)
    if change:
        P, Q = transformation(rng, len(M), 3.0), transformation(rng, len(M), 3.0)
        M, C, K = P @ M @ Q, P @ C @ Q, P @ K @ Q
    forms = linear.SecondOrder(M, C, K).forms()
    if not (forms.trimmed.clear and forms.companion.clear and forms.second_order.clear):
        return
    assert (forms.trimmed.index, forms.trimmed_strangeness) == (3, 2)
    assert (forms.companion.index, forms.companion_strangeness) == (4, 3)
    freedom = 2 * (n_q - n_lambda)
    assert forms.second_order.degrees_of_freedom == freedom == forms.trimmed.n_finite == forms.companion.n_finite
    if damping == 0.0:
        last = forms.second_order.values[-1]
        assert forms.second_order.index == 1 and last.d2 == n_q - n_lambda and last.a == 2 * n_lambda


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 5),
    ranks=st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)),
    seed=st.integers(0, 2**32 - 1),
)
def test_degrees_of_freedom_are_those_of_the_forms_of_first_order(n, ranks, seed):
    """Sparse integer matrices, so that all kinds of strangeness occur; equations and unknowns counted at the end."""
    rng = np.random.default_rng(seed)
    M, C, K = (rng.integers(-1, 2, size=(n, n)) * (rng.random((n, n)) < 0.5) for _ in range(3))
    for matrix, rank in zip((M, C, K), ranks):
        matrix[min(rank, n) :] = 0
    system = linear.SecondOrder(M, C, K)
    companion, trimmed = system.companion(), system.trimmed()
    strangeness = system.strangeness()
    last = strangeness.values[-1]
    assert strangeness.clear and last.strange == 0
    assert last.d2 + last.d1 + last.a + last.u == n == last.d2 + last.d1 + last.a + last.v
    assert companion.regular == trimmed.regular == (last.u == 0)
    if companion.regular:
        assert strangeness.degrees_of_freedom == companion.n_finite == trimmed.n_finite
        assert trimmed.index <= companion.index <= trimmed.index + 1
        np.testing.assert_allclose(np.sum(companion.eigenvalues), np.sum(trimmed.eigenvalues), atol=1e-6)


@pytest.mark.parametrize("closed", [True, False])
def test_exact_solution_of_a_constrained_oscillator(closed):
    """M q'' + D q' + K q + G^T lambda = f, G q = 0 to round-off."""
    M, C, K = mechanism(np.random.default_rng(3), 3, 1, 0.3)
    system = linear.SecondOrder(M, C, K)
    amplitude = np.array([1.0, -2.0, 0.5, 0.0])
    f = linear.sine(amplitude, 2.0) if closed else (lambda t: [a * np.sin(2.0 * t) for a in amplitude])
    normal = K[3, :3]
    start = np.cross(normal, [1.0, 2.0, 3.0])
    known = system.solution(f)  # some start, for a consistent multiplier
    assert known.f(0.0).shape == (7,)
    x0 = system.trimmed().consistent([0.0, 0.0, 0.0, *start, 0.0], linear.sine([*amplitude, 0.0, 0.0, 0.0], 2.0)).x
    x = system.solution(f, x0[3:], [*x0[:3], 0.0])
    for t in (0.4, 1.5):
        y, slope = x(t), x.derivative(t)
        forced = amplitude * np.sin(2.0 * t)
        residual = M[:, :3] @ slope[:3] + C[:, :3] @ y[:3] + K @ y[3:] - forced
        np.testing.assert_allclose(residual, 0.0, atol=1e-10)
        np.testing.assert_allclose(slope[3:6], y[:3], atol=1e-10)
        assert abs(normal @ y[3:6]) < 1e-10
    with pytest.raises(InvalidProblemError, match="both x0 and v0"):
        system.solution(f, x0[3:])


@pytest.mark.parametrize(
    ("M", "C", "K", "first", "index"),
    [
        ([[1, 0], [0, 0]], [[0, 0], [1, 0]], [[0, 0], [0, 1]], dict(s12=1), 1),  # x'' = f1, x' + y = f2
        ([[1, 0], [0, 0]], [[0, 0], [0, 0]], [[0, 1], [1, 0]], dict(s02=1), 1),  # x'' + y = f1, x = f2
        ([[0, 0], [0, 0]], [[1, 0], [0, 0]], [[0, 1], [1, 0]], dict(s01=1), 1),  # x' + y = f1, x = f2
        (np.diag([1, 0, 0]), [[0, 0, 0], [1, 0, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], dict(s012=1), 1),
        (np.eye(2), np.eye(2), np.eye(2), dict(d2=2), 0),
        (np.zeros((2, 2)), np.eye(2), np.eye(2), dict(d1=2), 0),
        (np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2), dict(a=2), 0),
        ([[1, 0], [0, 0]], np.zeros((2, 2)), np.zeros((2, 2)), dict(d2=1, u=1, v=1), 0),
    ],
)
def test_each_kind_of_direction(M, C, K, first, index):
    """The columns of the condensed form (3.5), one at a time."""
    found = linear.SecondOrder(M, C, K).strangeness()
    assert found.index == index
    strange = {name: value for name, value in found.values[0]._asdict().items() if value and name in first}
    assert strange == first


def test_words():
    text = str(example_321().forms())
    assert text.startswith("Velocities for all unknowns raise the index to 4")
    assert "s012" in str(example_321().strangeness()) and "<table" in example_321().strangeness()._repr_html_()
    oscillator = linear.SecondOrder([[1.0]], [[0.1]], [[4.0]])
    assert "Both first-order forms have index 0" in str(oscillator.forms())
    assert repr(oscillator) == "<M x'' + C x' + K x = f: 1 equation, 1 unknown>"


def test_wrong_matrices():
    with pytest.raises(InvalidProblemError, match=r"C must be a matrix of shape \(1, 1\)"):
        linear.SecondOrder([[1.0]], [[1.0, 2.0]], [[1.0]])
    with pytest.raises(InvalidProblemError, match="as many equations as unknowns"):
        linear.SecondOrder([[1.0, 0.0]], [[0.0, 0.0]], [[0.0, 1.0]]).forms()
