"""Error weights and the weighted root-mean-square norm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from daedal.kernels.norms import set_weights, wrms

vectors = st.integers(1, 20).flatmap(lambda n: arrays(float, n, elements=st.floats(-1e3, 1e3)))


@given(vectors, st.integers(0, 1000))
def test_norm_is_the_root_of_the_mean_square_of_weighted_components(v, seed):
    weights = 10.0 ** np.random.default_rng(seed).uniform(-9.0, 3.0, v.size)
    assert wrms(v, 1.0 / weights) == pytest.approx(np.sqrt(np.mean((v / weights) ** 2)), rel=1e-12)


@given(vectors, st.sampled_from([1e-200, 1e-100, 1.0, 1e100, 1e155, 1e200, 1e300]))
def test_norm_neither_overflows_nor_loses_its_scale(v, scale):
    """Components up to the largest numbers, whose squares overflow."""
    v = v / max(1.0, np.max(np.abs(v)))
    expected = scale * np.sqrt(np.mean(v**2))
    if scale < 1e-150 or np.sqrt(np.mean(v**2)) * scale < 1e-150:
        assert wrms(v * scale, np.ones(v.size)) <= 1e-150  # squares vanish: far below any tolerance
    else:
        assert wrms(v * scale, np.ones(v.size)) == pytest.approx(expected, rel=1e-12)


@given(vectors, vectors)
def test_triangle_inequality(v, w):
    n = min(v.size, w.size)
    v, w, inverse = v[:n], w[:n], np.full(n, 0.37)
    assert wrms(v + w, inverse) <= wrms(v, inverse) + wrms(w, inverse) + 1e-9


def test_excluded_components_count_as_zero():
    """An inverse weight of zero takes a component out; the mean is still over all."""
    assert wrms(np.array([3.0, 1e300]), np.array([1.0, 0.0])) == pytest.approx(3.0 / np.sqrt(2.0))


def test_weights_are_relative_plus_absolute():
    y, inverse = np.array([2.0, -3.0, 0.0]), np.zeros(3)
    assert set_weights(y, np.full(3, 0.1), np.array([0.0, 1.0, 0.5]), inverse) == -1
    np.testing.assert_allclose(1.0 / inverse, [0.2, 1.3, 0.5])


def test_vanishing_weight_is_reported_by_its_index():
    y = np.array([2.0, 0.0])
    assert set_weights(y, np.full(2, 0.1), np.zeros(2), np.zeros(2)) == 1
