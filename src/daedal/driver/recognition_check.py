"""Whether a run of a recognised mechanism has solved the equations as they stand."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.analysis.probe import Probe
from daedal.index.reduction.recognised_solution import RecognisedSolution

_POINTS = 50  # of the run, at most
_WRONG = 1e-6  # residual as part of the terms of its equation
_ROUNDOFF = 1e-12  # the same of the largest terms of all equations


def solves(problem: Any, solution: RecognisedSolution, switches: bool) -> bool:
    """Whether the residual vanishes along the solution, in units of the terms of each equation, and no pole is passed.

    The form of a mass matrix and of constraint forces was tested at a few points far from the run. What vanishes there
    may matter here: the solution then is that of other equations. Where forces have `switches` and a motion stays on
    their surface, the residual as it is written does not vanish: then the matrices are tested at these points.
    """
    times, y, yp = solution.sampled(_POINTS)
    good = np.isfinite(y).all(axis=0) & np.isfinite(yp).all(axis=0)  # the run itself speaks of the others
    times, y, yp = times[good], y[:, good], yp[:, good]
    if not times.size:
        return True
    probe, terms = Probe(problem), np.zeros(problem.n)
    points = zip(times.tolist(), y.T.copy(), yp.T.copy(), strict=True)
    residuals = np.nan_to_num(np.abs([probe.sample(*point) for point in points]))
    for k in np.argsort(residuals.max(axis=1))[::-1]:
        if not np.any(residuals > _WRONG * terms + _ROUNDOFF * np.max(terms)):
            break
        terms = np.maximum(terms, probe.terms(times[k], y[:, k], yp[:, k]))
    else:
        if not (switches and solution.is_balanced(times, y)):
            return False
    return not solution.passes_a_pole(times, y)
