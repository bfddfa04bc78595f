"""Starting values of multistep methods with constant steps: given, or computed to nearly full accuracy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.task import Outcome, Task
from daedal.problems.checks import check_real, check_vector

_SAME = 10.0  # units of the tolerance by which the first given value may differ from y0
_CLOSE = 1e-4  # fraction of the largest value by which an experiment may perturb starting values


def given_values(given, k: int, n: int, times: np.ndarray, count: str) -> np.ndarray | None:
    """Given values of y at `times`, possibly with additional ones, shape (m, n), m >= k; None if none are given.

    `count` describes k in messages.
    """
    if callable(given):
        return np.array([check_vector(given(t), n, f"starting_values({t:g})") for t in times])
    if given is None:
        return None
    expected = f"be finite and of shape ({n}, m) with m >= {count} = {k}"
    values = check_real(given, "starting_values", expected)
    if values.ndim != 2 or values.shape[0] != n or values.shape[1] < k or not np.all(np.isfinite(values)):
        raise InvalidProblemError(f"starting_values must {expected}; the shape is {values.shape}")
    return np.ascontiguousarray(values.T)


def require_start(values: np.ndarray, task: Task, label) -> None:
    """Reject given values that do not start with y0, within some tolerances; `label` names a variable by its number."""
    off = (
        np.abs(values[0] - task.y0)
        - _SAME * (task.rtol * np.abs(task.y0) + task.atol)
        - _CLOSE * np.max(np.abs(task.y0))
    )
    if np.max(off) > 0.0:
        i = int(np.argmax(off))
        raise InvalidProblemError(
            f"starting_values contradict the initial values: at t = {task.t_span[0]:g}, {label(i)} is "
            f"{values[0, i]:.6g} in starting_values and {task.y0[i]:.6g} in y0. Remedy: pass y at t0, t0 + h, ..., "
            "starting with y0"
        )


def accurate_values(run, task: Task, times: np.ndarray, name: str, tolerance: float, events: bool = False) -> Outcome:
    """The solution at `times` from a run with variable steps, with the events in between if requested.

    If a terminal event ends this run, it is repeated with the output requested by the task.
    """
    outcome = _accurate_run(run, task, times, name, tolerance, {} if events else {"switching": None})
    if any(event.terminal for event in outcome.events):
        asked = {"t_eval": task.t_eval, "dense": task.dense}
        return _accurate_run(run, task, times, name, tolerance, asked)
    return outcome


def _accurate_run(run, task: Task, times: np.ndarray, name: str, tolerance: float, changes: dict[str, Any]) -> Outcome:
    n, t0 = task.n, task.t_span[0]
    alike = replace(
        task,
        rtol=np.full(n, tolerance),
        atol=np.full(n, tolerance * (float(np.max(np.abs(task.y0))) or 1.0)),
        t_eval=times,
        t_span=(t0, float(times[-1])),
        t_stop=float(times[-1]),
        dense=False,
        first_step=None,
        fixed_step=None,
        index_2=False,
    )
    outcome = run.integrate(replace(alike, **changes))
    if outcome.failure is not None:
        raise InvalidProblemError(
            f"accurate starting values for {name} could not be computed; pass starting_values (y at t0, t0 + h, ...)"
        )
    return outcome


def fixed_times(task: Task, count: int) -> np.ndarray:
    """The first `count` of t0, t0 + h, ...."""
    assert task.fixed_step is not None
    return task.t_span[0] + task.sign * task.fixed_step * np.arange(count)


def points_behind(task: Task, values: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """t, y and y' at the starting values after the first, which are written to the output."""
    if values is None or task.fixed_step is None or len(values) < 2:
        return None
    times = fixed_times(task, len(values))
    return times[1:], values[1:], np.gradient(values, times, axis=0)[1:]


def write_past(record, phi: np.ndarray, values: np.ndarray, degree: int, h: float) -> None:
    """Write phi and psi from y at t, t - h, t - 2h, ...; with constant steps phi are backward differences."""
    row = values
    for i in range(min(len(row), degree + 2)):
        phi[i] = row[0]
        row = row[:-1] - row[1:]
    record["psi"][: degree + 1] = (np.arange(degree + 1) + 1) * h


def require_room(record, m: int) -> None:
    """Raise if there are more starting values than steps."""
    if int(record["last_step"]) < m:
        raise InvalidProblemError(f"{m} starting values leave no step to take in t_span: use a smaller fixed_step")
