"""Random problems with known solutions, in random units: each family and method of what ``make soak`` draws."""

from collections import Counter

import pytest

from differential.case import judged
from differential.families import drawn

CASES = 120


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_nothing_is_wrong_and_little_refused(part):
    verdicts = [judged(seed, drawn(seed)) for seed in range(part, CASES, 4)]
    bad = [f"case {v.seed}, {v.label}: {v.kind}, ratio {v.ratio:.2g}. {v.words}" for v in verdicts if v.kind != "right"]
    kinds = Counter(v.kind for v in verdicts)
    assert kinds["wrong"] == kinds["crashed"] == 0, "\n\n".join(bad)
    assert kinds["refused"] <= 1, "\n\n".join(bad)


def test_a_wrong_solution_is_called_wrong():
    """The judge can fail: the exact solution of another case is not what comes out."""
    from dataclasses import replace

    case = drawn(4)
    assert judged(4, case).kind == "right"
    shifted = replace(case, exact=lambda t: 1.1 * case.exact(t), share=min(case.share, 1e-6))
    assert judged(4, shifted).kind == "wrong"
