"""The start of DASSL on problems of index 2.

A first step of order 1 leaves index-2 variables with errors proportional to h, and rounding errors proportional to 1/h:
no h satisfies tolerances below 1e-7. Instead, a few implicit Euler steps provide the history for a start with order 2
or 3. Their differentiated variables are as accurate as the constraints that determine them; errors of the other
variables are differences of slopes, which are harmless in the polynomial through these values.
"""

from __future__ import annotations

from math import comb

import numpy as np

from daedal.methods.task import Task
from daedal.methods.workspace import Workspace

_TIGHT = 1e9  # size of y in units of the tolerance from which order 2 needs steps too short for rounding errors
_TRIALS = 12
_ITERATIONS = 8
_CONVERGED = 1e-3
_ROUNDING = 0.1  # stagnating corrections below this size are rounding errors
_AIM = 0.5  # bound on the estimated error at the start, in units of the tolerance
_LONGEST = 0.02  # longest step of the history, as a fraction of the interval


def past(workspace: Workspace, task: Task, max_order: int) -> tuple[float, np.ndarray] | None:
    """The step size and y at t0, t0 - h, ..., extrapolated backwards; None if no step is short enough."""
    (t0, t1), y0, yp0 = task.t_span, task.y0, task.yp0
    inverse = 1.0 / (task.rtol * np.abs(y0) + task.atol)
    order = 2 if _norm(y0, inverse) < _TIGHT else 3
    if order > max_order:
        return None
    longest = min(_LONGEST * abs(t1 - t0), task.max_step)
    slope = _norm(yp0, inverse)
    h = task.first_step or longest
    if task.first_step is None and slope > 0.0:
        # The error of y' is proportional to h^k: the time scale of y, times the k-th root of the tolerance.
        h = _AIM * max(_norm(y0, inverse), 1.0) ** (1.0 - 1.0 / order) / slope
    h = task.sign * min(h, longest)
    best = None
    for _ in range(_TRIALS):
        found = _euler_steps(workspace, t0, y0, yp0, h, inverse, order)
        if found is None:
            h *= 0.25
            continue
        values, error = found
        if best is not None and error >= best[2]:
            break  # shorter steps have larger rounding errors
        best = h, values, error
        if error <= _AIM:
            break
        h *= max(0.05, 0.8 * (_AIM / error) ** (1.0 / order))
    if best is None:
        return None
    h, values, _ = best
    # The polynomial through y(t0), y(t0 + h), ..., at t0 - h, t0 - 2h, ...: its difference of order k is constant.
    row = values[order::-1]
    signs = [(-1) ** (order - i) * comb(order + 1, i) for i in range(order + 1)]
    while len(row) < 2 * order + 1:
        row.append(sum(sign * value for sign, value in zip(signs, row[-order - 1 :], strict=True)))
    return h, np.array(row[order:])


def _euler_steps(workspace: Workspace, t, y0, yp0, h, inverse, order) -> tuple[list[np.ndarray], float] | None:
    """y at t0, t0 + h, ..., t0 + (k + 1) h and the error of a step of order k, by the last difference."""
    values, step, cj = [y0], h * yp0, 1.0 / h
    prepared = False
    for i in range(order + 1):
        y, t_next = values[-1] + step, t + (i + 1) * h
        size = np.inf
        for _ in range(_ITERATIONS):
            slope = cj * (y - values[-1])
            r = workspace.residual(t_next, y, slope)
            if r is None or not (prepared or workspace.prepare(t_next, y, slope, r, cj, h, inverse)):
                return None
            prepared = True
            delta = workspace.solve(t_next, y, slope, r, cj, inverse)
            if delta is None:
                return None
            y = y - delta
            size, before = _norm(delta, inverse), size
            if size <= _CONVERGED or 0.5 * before < size <= _ROUNDING:
                break
        else:
            return None
        step = y - values[-1]
        values.append(y)
    slope = cj * step
    difference = np.diff(np.array(values), n=order + 1, axis=0)[0]
    base, shifted = workspace.residual(t_next, y, slope), workspace.residual(t_next, y, slope + cj * difference)
    if base is None or shifted is None:
        return None
    error = workspace.solve(t_next, y, slope, base, cj, inverse, shifted - base)
    return None if error is None else (values, _norm(error, inverse) / (order + 1))


def _norm(v: np.ndarray, inverse: np.ndarray) -> float:
    return float(np.sqrt(np.mean((v * inverse) ** 2)))
