"""How good a solution is."""

from dataclasses import dataclass

import numpy as np

import daedal


def quality(model: daedal.library.Model, solution: daedal.Solution) -> list[tuple[str, str]]:
    """Rows of the summary that say how good the solution is."""
    rows = []
    if model.reference is not None:
        found = largest_error(model.reference, solution)
        place = f"the reference at t = {model.reference.t:g}"
        rows.append(("error", f"not known: {place} was not passed" if found is None else f"{found} against {place}"))
    return rows


@dataclass(frozen=True)
class _Error:
    """The largest error of a solution, the variable that has it, and whether it is relative."""

    size: float
    name: str
    relative: bool

    def __str__(self) -> str:
        return f"{self.size:.1e} ({'relative' if self.relative else 'absolute'}, largest in {self.name})"


def largest_error(reference: daedal.library.Reference, solution: daedal.Solution) -> _Error | None:
    """The error at the time of the reference; None if the solution does not reach it."""
    if solution.t.size and np.isclose(solution.t[-1], reference.t, rtol=1e-12, atol=0.0):
        values = solution.y[:, -1]
    elif solution.dense is not None and solution.dense.interval[0] <= reference.t <= solution.dense.interval[1]:
        values = solution(reference.t)
    else:
        return None
    errors = reference.error(values)
    worst = int(np.nanargmax(errors))
    return _Error(float(errors[worst]), solution.names[worst], bool(reference.y[worst] != 0.0))
