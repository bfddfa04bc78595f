"""A case, and the judgement of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import daedal
from soak.case import Verdict

LIMIT = 100.0
"""The largest error, in multiples of tolerance and condition, of a run that counts as right."""


@dataclass(frozen=True)
class Case:
    """A problem, how it is solved, and what must come out.

    Attributes
    ----------
    exact : callable
        ``exact(t)``: the solution at the times t, one row for each component.
    observed : callable
        ``observed(sol)``: the same of what was computed.
    sizes : numpy.ndarray
        The size of each component in its unit: what `share` of, as a tolerance, is asked for.
    share : float
        The relative tolerance.
    condition : float or numpy.ndarray
        By how much perturbations of the size of the tolerance, in whatever equation, may grow; for each component.
    """

    label: str
    problem: Any
    t_span: tuple[float, float]
    initial: Any
    options: dict[str, Any]
    t_eval: np.ndarray
    exact: Callable[[np.ndarray], np.ndarray]
    observed: Callable[[Any], np.ndarray]
    sizes: np.ndarray
    share: float
    condition: Any = 1.0

    def judged(self, seed: int) -> Verdict:
        return judged(seed, self)


def judged(seed: int, case: Case) -> Verdict:
    """The case solved and compared with its exact solution."""
    begun = time.perf_counter()

    def verdict(kind, **what):
        return Verdict(seed, case.label, kind, seconds=time.perf_counter() - begun, **what)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            sol = daedal.solve(case.problem, case.t_span, case.initial, t_eval=case.t_eval, **case.options)
        except daedal.DaedalError as error:
            return verdict("refused", words=str(error))
        except Exception as error:  # whatever it is, it is a defect
            return verdict("crashed", words=f"{type(error).__name__}: {error}")
    exact, found = case.exact(case.t_eval), case.observed(sol)
    weights = case.share * (np.max(np.abs(exact), axis=1) + case.sizes) * case.condition
    ratio = float(np.max(np.abs(found - exact) / weights[:, None]))
    kind = "right" if ratio <= LIMIT else "wrong"
    words = "" if kind == "right" else sol.message
    return verdict(kind, ratio=ratio, steps=sol.stats.steps, words=words, warned=[str(note.message) for note in caught])
