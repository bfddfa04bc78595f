"""Costs that switch along a solution: steps end there, and a jump, whose time changes with parameters, is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError

_BISECTIONS = 40
_JUMP = 1e-6  # of the size of the cost along the solution


def with_kinks(equations: Any, solution: Any, times: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The ends of steps, with the times at which the running cost passes to another branch; refused if it jumps."""
    if not equations.cost_switches:
        return times
    found = []
    grid = np.unique(np.concatenate([times, 0.5 * (times[1:] + times[:-1])]))
    values = equations.cost_with_switches(solution, grid, numbers)
    sides = _sides(equations, values)
    size = np.abs(values[:, -1]).max(initial=0.0)
    for k in np.flatnonzero(np.any(sides[1:] != sides[:-1], axis=1)):
        low, high = grid[k], grid[k + 1]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            there = equations.cost_with_switches(solution, np.array([low, middle]), numbers)
            same = np.array_equal(*_sides(equations, there))
            low, high = (middle, high) if same else (low, middle)
        before, after = equations.cost_with_switches(solution, np.array([low, high]), numbers)[:, -1]
        if abs(after - before) > _JUMP * max(size, abs(before), abs(after)):
            raise InvalidProblemError(
                f"cost is not differentiable: it jumps from {before:.6g} to {after:.6g} at t = {high:.6g}, where "
                f"{equations.cost_switches[0].site} passes to another branch. Remedy: a continuous cost, such as one "
                "of np.maximum, np.abs or np.tanh"
            )
        found.append(high)
    return np.unique(np.concatenate([times, found]))


def _sides(equations: Any, values: np.ndarray) -> np.ndarray:
    """On which side of its points each switching function is."""
    columns = []
    for j, switch in enumerate(equations.cost_switches):
        u = values[:, j]
        inside = np.floor((u - switch.phase) / switch.period) if switch.period else np.searchsorted(switch.points, u)
        columns.append(inside)
    return np.array(columns).T
