"""Groups of columns for difference Jacobians, and the patterns of bands and blocks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from daedal.kernels.patterns import band_pattern, block_pattern, sparse_groups


def columns_of_groups(start, order):
    return [order[a:b] for a, b in pairwise(start)]


@given(st.integers(1, 40), st.floats(0.0, 0.3), st.integers(0, 10_000))
def test_columns_of_a_group_share_no_row_and_every_column_has_one_group(n, density, seed):
    pattern = sparse.random(n, n, density, format="csc", random_state=seed) + sparse.eye(n, format="csc")
    groups = columns_of_groups(*sparse_groups(pattern))
    assert sorted(np.concatenate(groups)) == list(range(n))
    dense = pattern.toarray() != 0.0
    for group in groups:
        assert np.max(np.sum(dense[:, group], axis=1)) <= 1


@given(st.integers(2, 60), st.integers(0, 4), st.integers(0, 4))
def test_band_needs_as_many_groups_as_its_width(n, ml, mu):
    """Greedy colouring in the natural order is optimal for bands (Curtis, Powell and Reid)."""
    ml, mu = min(ml, n - 1), min(mu, n - 1)
    band = sparse.diags([1.0] * (ml + mu + 1), range(-ml, mu + 1), shape=(n, n), format="csc")
    assert len(columns_of_groups(*sparse_groups(band))) == min(n, ml + mu + 1)


@pytest.mark.parametrize("m", [3, 10, 30])
def test_five_point_stencil_needs_few_groups(m):
    """Five colours are the optimum; any number that does not grow with the mesh is fine."""
    line = sparse.diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(m, m))
    stencil = (sparse.kron(sparse.eye(m), line) + sparse.kron(line, sparse.eye(m))).tocsc()
    assert 5 <= len(columns_of_groups(*sparse_groups(stencil))) <= 9


@given(st.integers(1, 30), st.integers(0, 5), st.integers(0, 5))
def test_band_pattern_lists_the_rows_of_every_column(n, ml, mu):
    ml, mu = min(ml, n - 1), min(mu, n - 1)
    start, rows = band_pattern(n, ml, mu)
    for j in range(n):
        expected = [i for i in range(n) if j - mu <= i <= j + ml]
        assert list(rows[start[j] : start[j + 1]]) == expected


@given(st.integers(1, 30), st.integers(1, 7))
def test_block_pattern_lists_the_rows_of_every_column(n, size):
    start, rows = block_pattern(n, size)
    for j in range(n):
        expected = [i for i in range(n) if i // size == j // size]
        assert list(rows[start[j] : start[j + 1]]) == expected
