"""Words that all rooms share."""

import pytest

from daedal.structure.derivative_array import equation_in_words
from daedal.tabular import derivative_name, times


def test_counts_and_derivatives():
    assert [times(k) for k in (1, 2, 3)] == ["once", "twice", "3 times"]
    assert [derivative_name("x", k) for k in (0, 2, 3, 4)] == ["x", "x''", "x'''", "x^(4)"]


@pytest.mark.parametrize(("often", "words"), [(0, ""), (1, " differentiated once"), (4, " differentiated 4 times")])
def test_equations(often, words):
    assert equation_in_words(2, often) == f"equation 2{words}"
