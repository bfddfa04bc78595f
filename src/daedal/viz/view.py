"""What a figure shows: which variables, which of them together, at which times, on which axes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np

import daedal

FEW = 8  # so many variables are all shown
HANDFUL = 6  # so many are picked from a larger number, and so many share a panel
SMALLEST_SHARE = 0.08  # of the height of a shared panel that each of its variables must fill
SMOOTH = 800  # points of a curve that looks smooth


def select_variables(sol: daedal.Solution, variables: Any = None) -> tuple[list[int], str]:
    """The rows of ``sol.y`` to show, and a note if they are a choice made here.

    Without a wish, a handful is picked from many variables, evenly spread over those that change and differ.
    """
    n = sol.y.shape[0]
    if variables is not None:
        wanted = [variables] if isinstance(variables, (str, int, np.integer)) else list(variables)
        if not wanted:
            raise daedal.InvalidProblemError("variables is empty; name at least one variable")
        return [_row(sol, variable) for variable in wanted], ""
    if n <= FEW:
        return list(range(n)), ""
    pool = _distinct(sol.y)
    rows = pool[np.linspace(0, pool.size - 1, min(HANDFUL, pool.size)).round().astype(int)]
    return [int(row) for row in rows], f"{rows.size} of {n} variables shown"


def _distinct(y: np.ndarray, candidates: int = 200, times: int = 100) -> np.ndarray:
    """Rows, evenly spread, that change and do not look like one another; all candidates if none changes."""
    low, high = _extremes(y)
    changing = np.flatnonzero(high - low > _rounding(low, high))
    pool = changing if changing.size else np.arange(y.shape[0])
    pool = pool[np.linspace(0, pool.size - 1, min(candidates, pool.size)).round().astype(int)]
    columns = np.linspace(0, y.shape[1] - 1, min(times, y.shape[1])).round().astype(int)
    looks = y[np.ix_(pool, columns)]
    kept: list[int] = []
    for k, row in enumerate(pool):
        near = 0.01 * (high[row] - low[row])
        if not kept or np.min(np.max(np.abs(looks[kept] - looks[k]), axis=1)) > near:
            kept.append(k)
    return pool[kept]


def _row(sol: daedal.Solution, variable: Any) -> int:
    n = sol.y.shape[0]
    if isinstance(variable, (int, np.integer)) and not isinstance(variable, bool):
        if not -n <= variable < n:
            raise daedal.InvalidProblemError(f"there is no variable {variable}; the {n} variables are numbered from 0")
        return int(variable) % n
    if variable in sol.names:
        return sol.names.index(variable)
    if isinstance(variable, str) and variable.lower().endswith((".png", ".pdf", ".svg", ".jpg")):
        raise daedal.InvalidProblemError(f"{variable!r} is not a variable; to save the figure pass save={variable!r}")
    close = difflib.get_close_matches(str(variable), sol.names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sol.names[:20])}"
    raise daedal.InvalidProblemError(f"the solution has no variable {variable!r}; {hint}")


def time_scale(t: np.ndarray) -> str:
    """``"log"`` if most of the points crowd near a start at 0 over several decades, else ``"linear"``."""
    positive = t[t > 0.0]
    if positive.size < 20 or t[0] < 0.0 or positive.size < t.size - 1 or t[-1] <= t[0]:
        return "linear"
    crowded = np.median(positive) < 0.01 * positive[-1]
    return "log" if crowded and positive[-1] > 1e4 * positive[0] else "linear"


def share_panels(curves: np.ndarray) -> list[list[int]]:
    """Divide the rows of `curves` into panels such that each curve that changes is clearly seen to do so.

    A change too small to be more than rounding, measured by the others, counts as none.
    """
    low, high = _extremes(curves)
    ranges = high - low
    rounding = _rounding(low, high)
    panels: list[list[int]] = []
    for row in range(curves.shape[0]):
        for panel in panels:
            together = [*panel, row]
            height = np.max(high[together]) - np.min(low[together])
            seen = ranges[together] >= SMALLEST_SHARE * height
            flat = ranges[together] <= rounding[together]
            if len(panel) < HANDFUL and np.all(seen | flat):
                panel.append(row)
                break
        else:
            panels.append([row])
    return panels


def _extremes(curves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest finite value of each row; 0 where there is none."""
    finite = np.isfinite(curves)
    low = np.min(np.where(finite, curves, np.inf), axis=1)
    high = np.max(np.where(finite, curves, -np.inf), axis=1)
    known = finite.any(axis=1)
    return np.where(known, low, 0.0), np.where(known, high, 0.0)


def _rounding(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A change of a variable up to which it counts as constant, seen with its size and with the changes of all."""
    return np.maximum(1e-9 * np.maximum(np.abs(low), np.abs(high)), 1e-14 * np.max(high - low))


def sample(sol: daedal.Solution, rows: Sequence[int], scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of smooth curves: from the dense output if it was kept, else the stored points."""
    if sol.dense is None or sol.t.size < 2:
        return sol.t, sol.y[list(rows)]
    low, high = sol.dense.interval  # a terminal event lies inside the last step
    steps = sol.t if sol.history is None else sol.history.t
    nodes = np.unique(np.clip(np.concatenate([[low, high], sol.t, steps]), low, high))
    if scale == "log":
        nodes = nodes[nodes > 0.0]
    pieces = max(1, -(-SMOOTH // nodes.size))
    fractions = np.arange(pieces) / pieces
    if scale == "log":
        between = nodes[:-1, None] * (nodes[1:] / nodes[:-1])[:, None] ** fractions
    else:
        between = nodes[:-1, None] + np.diff(nodes)[:, None] * fractions
    times = np.append(between.ravel(), nodes[-1])
    return times, daedal.Solution.__call__(sol, times)[list(rows)]


def logarithmic_part(t: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """Mask of the times that belong on a logarithmic axis: from a decade before anything is seen to change."""
    positive = t > 0.0
    low, high = _extremes(curves)
    start = curves[:, np.argmax(positive)]
    moved = positive & np.any(np.abs(curves - start[:, None]) > 0.005 * (high - low)[:, None], axis=0)
    return positive & (t >= 0.1 * t[np.argmax(moved)]) if moved.any() else positive
