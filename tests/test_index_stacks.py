"""Pencils in stacks: each is scaled and judged as if it were alone."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from daedal.analysis.index import are_clearly_index_1, is_clearly_index_1
from daedal.index.linear.rank import scale_pencil


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 4))
def test_stacks_of_pencils_are_scaled_and_judged_one_by_one(seed, n, count):
    random = np.random.default_rng(seed)
    sizes = 10.0 ** random.uniform(-6.0, 6.0, (2, count, n, n))
    E, B = random.normal(size=(2, count, n, n)) * sizes * (random.random((2, count, n, n)) < 0.6)
    E[:, random.integers(n)] = 0.0
    together = scale_pencil(E, B)
    for k in range(count):
        alone = scale_pencil(E[k], B[k])
        assert_array_equal(together.rows[k], alone.rows)
        assert_array_equal(together.columns[k], alone.columns)
        assert together.time[k] == alone.time and isinstance(alone.time, float)
        assert_array_equal(together.A[k], alone.A)
    assert are_clearly_index_1(E, B).tolist() == [is_clearly_index_1(E[k], B[k]) for k in range(count)]
