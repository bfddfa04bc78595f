"""Check that the solution of a recognised mechanism satisfies the original equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.analysis.probe import Probe
from daedal.index.reduction.recognised_solution import RecognisedSolution

_POINTS = 50  # maximum number of output points that are checked
_WRONG = 1e-6  # largest residual, relative to the terms of its equation
_ROUNDOFF = 1e-12  # residuals below this fraction of the largest term of all equations count as zero


def solves(problem: Any, solution: RecognisedSolution, switches: bool) -> bool:
    """Whether the residual vanishes along the solution, relative to the terms of each equation, without a pole.

    The form of the mass matrix and of the constraint forces was tested at a few points far from the run; terms that
    vanish there may matter here. Where forces have `switches` and the solution slides on their surface, the original
    residual does not vanish, and the matrices are tested instead.
    """
    times, y, yp = solution.sampled(_POINTS)
    good = np.isfinite(y).all(axis=0) & np.isfinite(yp).all(
        axis=0
    )  # points at which the run reported an exception are skipped
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
