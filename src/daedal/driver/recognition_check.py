"""Verify that the run of a recognised mechanism has solved the original equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.analysis.probe import Probe
from daedal.index.reduction.recognised_solution import RecognisedSolution

_POINTS = 50  # maximum number of points of the run
_WRONG = 1e-6  # residual relative to the terms of its equation
_ROUNDOFF = 1e-12  # tolerance relative to the largest terms of all equations


def solves(problem: Any, solution: RecognisedSolution, switches: bool) -> bool:
    """Whether the residual vanishes along the solution, relative to the terms of each equation, without crossing a
    pole.

    The form of the mass matrix and constraint forces was tested at a few points far from the run. Terms that vanish
    there may matter here; the solution then satisfies other equations. If forces have `switches` and the solution
    slides on their surface, the original residual does not vanish; the matrices are tested at these points instead.
    """
    times, y, yp = solution.sampled(_POINTS)
    good = np.isfinite(y).all(axis=0) & np.isfinite(yp).all(axis=0)  # other exceptions are reported by the run
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
