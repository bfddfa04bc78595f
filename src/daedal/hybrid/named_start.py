"""Initial values of a run through modes, given by name."""

from collections.abc import Mapping
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.initial.by_name import initial_by_name


def values_by_name(problem: Any, t0: float, initial: Any) -> Any:
    """Initial values with vectors in place of a mapping: ``{"x": 1.0}`` or ``("mode", {"x": 1.0})``; others stay."""
    if isinstance(initial, Mapping):
        return initial_by_name(_first_problem(problem), t0, initial)
    if isinstance(initial, (tuple, list)) and len(initial) == 2 and isinstance(initial[1], Mapping):
        mode, values = initial
        if isinstance(mode, str) and mode in problem.modes:
            return mode, initial_by_name(problem.modes[mode].problem, t0, values)
    return initial


def _first_problem(problem: Any) -> Any:
    """The problem whose variables the names are those of, where no mode is named."""
    if hasattr(problem, "system"):  # of friction and contacts, which infer the mode
        return problem.system
    if isinstance(problem.start, str):
        return problem.modes[problem.start].problem
    raise InvalidProblemError(
        "initial values by name need the mode that they are for: (mode, {name: value, ...}), or a HybridProblem with "
        f"start=mode; there are the modes {', '.join(problem.modes)}"
    )
