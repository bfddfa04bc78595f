"""A quick look at the start of a run: whether it is worth while to look for a mechanism in the equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.drive.request import Request, Settings
from daedal.errors import DaedalError
from daedal.initial.consistent import split_initial
from daedal.problems import ImplicitDAE, SemiExplicitDAE

_MOST_UNKNOWNS = 1500  # of problems in which mechanisms are looked for


def may_be_mechanism(problem: Any, traced: Any, request: Request) -> bool:
    """Whether an equation contains neither derivatives nor unknowns without derivatives, and the method is open.

    Such equations are constraints on positions or velocities; problems of index 1 have none. `traced` is the problem
    with its functions as machine code.
    """
    if not isinstance(problem, (ImplicitDAE, SemiExplicitDAE)) or not _is_open(request.settings):
        return False
    if problem.n > _MOST_UNKNOWNS:
        return False
    try:
        y0, yp0 = split_initial(problem, request.initial)
    except DaedalError:  # which the run will raise with more to say
        return False
    partials = traced.implicit().exact_partials(request.span[0], y0, np.zeros(y0.size) if yp0 is None else yp0)
    if partials is None:
        return True
    by_slopes, by_values = partials
    algebraic = ~np.any(by_slopes, axis=0)
    return bool(algebraic.any() and np.any(~by_slopes.any(axis=1) & ~by_values[:, algebraic].any(axis=1)))


def _is_open(settings: Settings) -> bool:
    """Whether equations and method are Daedal's to choose."""
    automatic = all(isinstance(x, str) and x == "auto" for x in (settings.method, settings.formulation))
    return automatic and not settings.options and settings.fixed_step is None
