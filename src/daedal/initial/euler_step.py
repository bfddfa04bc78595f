"""y' from a small damped implicit Euler step, as DASSL does it (BCP section 5.3.1).

The values belong to t0 + h, not to t0: this is the fallback for large systems whose structure is unknown.
"""

import numpy as np

from daedal.methods.workspace import Workspace

_DAMPING = 0.75
_ITERATIONS = 10
_NEW_MATRIX_EVERY = 5
_SLOWEST_RATE = 0.9
_TOLERANCE = 0.33
_MAX_FAILURES = 10
_ROUNDOFF_LEVEL = 100.0 * np.finfo(float).eps


def damped_euler_step(
    workspace: Workspace, t: float, y: np.ndarray, yp: np.ndarray, h: float, weights: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray] | None:
    """(t0 + h, y, y') after one implicit Euler step with ||y - y0|| <= 1, or None."""
    inverse = 1.0 / weights
    for _ in range(_MAX_FAILURES):
        solved = _euler_newton(workspace, t + h, y, yp, h, inverse)
        if solved is None:
            h *= 0.25
            continue
        error = float(np.sqrt(np.mean(((solved[0] - y) * inverse) ** 2)))
        if error <= 1.0:
            return t + h, *solved
        h *= max(0.1, min(0.5, 0.9 / (2.0 * error + 1e-4)))
    return None


def _euler_newton(workspace, t, y0, yp0, h, inverse):
    y, yp = y0 + h * yp0, yp0.copy()
    cj = 1.0 / h
    level = _ROUNDOFF_LEVEL * float(np.sqrt(np.mean((y0 * inverse) ** 2)))
    factor, first = 1e6, 0.0
    for m in range(_ITERATIONS):
        r = workspace.residual(t, y, yp)
        if r is None or (m % _NEW_MATRIX_EVERY == 0 and not workspace.prepare(t, y, yp, r, cj, h, inverse)):
            return None
        delta = workspace.solve(t, y, yp, r, cj, inverse)
        if delta is None:
            return None
        delta *= _DAMPING
        y = y - delta
        yp = yp - cj * delta
        size = float(np.sqrt(np.mean((delta * inverse) ** 2)))
        if size <= level:
            return y, yp
        if m == 0:
            first = size
        else:
            rate = (size / first) ** (1.0 / m)
            if rate > _SLOWEST_RATE:
                return None
            factor = rate / (1.0 - rate)
        if factor * size <= _TOLERANCE:
            return y, yp
    return None
