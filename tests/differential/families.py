"""All families, and how often each is drawn."""

from __future__ import annotations

import numpy as np

from differential import linear, linkages, semi_explicit
from differential.case import Case

FAMILIES = (
    linear.weierstrass,
    linear.constrained,
    semi_explicit.manufactured,
    semi_explicit.manufactured,
    linkages.chain,
    linkages.crank_slider,
)


def drawn(seed: int) -> Case:
    """The case with this number: always the same one."""
    return FAMILIES[seed % len(FAMILIES)](np.random.default_rng(seed))
