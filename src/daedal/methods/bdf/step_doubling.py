r"""The step control of Wunderlich's thesis, reproduced exactly (sections 4.3 and 4.4).

The error is the distance of all variables from the cubic through the last four points. After a few constant steps every
success doubles the step size.
"""

from __future__ import annotations

from daedal.kernels.compilation import part
from daedal.kernels.norms import wrms

POINTS = 4


@part
def remember(method, run, t, y):
    """Append y at t to the last four points."""
    times, values = method.past_t, method.past_y
    for q in range(POINTS - 1, 0, -1):
        times[q] = times[q - 1]
        for j in range(run.n):
            values[q, j] = values[q - 1, j]
    times[0] = t
    for j in range(run.n):
        values[0, j] = y[j]


@part
def extrapolation_error(method, run, t):
    """Wunderlich (4.22) to (4.24), in units of the tolerance."""
    times, values = method.past_t, method.past_y
    y, vector = run.y, run.scratch
    for j in range(run.n):
        vector[j] = y[j]
    for q in range(POINTS):
        weight = 1.0
        for l in range(POINTS):
            if l != q:
                weight *= (t - times[l]) / (times[q] - times[l])
        for j in range(run.n):
            vector[j] -= weight * values[q, j]
    return wrms(vector, run.inverse_weights)


@part
def step_after_failure(h, k, error, failures):
    """The step size after the given number of consecutive error-test failures."""
    if failures > 1:
        return 0.25 * h
    return h * max(0.25, min(0.9, 0.9 * (2.0 * error) ** (-1.0 / (k + 1))))


@part
def step_after_success(h, k, error, successes):
    """The step size after the given number of consecutive successes; the second doubles it regardless of the error."""
    ratio = (2.0 * error) ** (-1.0 / (k + 1))
    if successes > 1 or ratio >= 2.0:
        return 2.0 * h
    return h if ratio > 1.0 else h * max(0.5, min(0.9, ratio))
