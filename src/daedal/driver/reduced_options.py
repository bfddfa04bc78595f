"""Conversion of options with one value per unknown to the unknowns of a reduced problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.driver.request import Settings
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.problems.checks import check_mask

_FOR_HIGHER_INDEX = ("variable_index", "newton_weights", "row_scaling")


def option_for_higher_index(settings: Settings) -> str | None:
    """The name of an option, if given, that scales by powers of the step size for direct solution at higher index."""
    return next((name for name in _FOR_HIGHER_INDEX if _given(settings, name, None) is not None), None)


def inside_options(reduction: ReducedProblem, settings: Settings) -> Settings:
    problem, masks = reduction.original, {}
    nonnegative = _given(settings, "nonnegative", False)
    if nonnegative is not False:
        # additional unknowns of the reduced problem may be negative
        further = np.zeros(reduction.problem.n - reduction.n, dtype=bool)
        masks["nonnegative"] = np.append(_mask(nonnegative, problem, "nonnegative"), further)
    tested = _given(settings, "error_test", "auto")
    if not isinstance(tested, str):  # a derivative is tested together with its unknown
        included = reduction.tolerance(_mask(tested, problem, "error_test").astype(float))
        masks["error_test"] = reduction.inside(included) > 0.0
    if settings.options:
        return replace(settings, options=settings.options | masks)
    return replace(settings, method=replace(settings.method, **masks)) if masks else settings


def _given(settings: Settings, name: str, default: Any) -> Any:
    own = default if isinstance(settings.method, str) else getattr(settings.method, name, default)
    return settings.options.get(name, own)


def _mask(given: Any, problem: Any, name: str) -> np.ndarray:
    if isinstance(given, bool):
        return np.full(problem.n, given)
    return check_mask(given, problem.n, name, tuple(problem.label(i) for i in range(problem.n)))
