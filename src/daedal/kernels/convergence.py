"""Convergence and divergence tests of Newton's method, shared by all methods.

A method computes corrections, of all unknowns of a step or of its stages, and passes the size of each, in units of the
tolerance, to :func:`judge`. With the observed rate of convergence the remaining error is about rate / (1 - rate) times
the last correction (BCP 5.2.2; Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8). If no tolerance
defines convergence, with constant steps, the iteration ends at round-off.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import part
from daedal.kernels.records import FLOAT, INTEGER, Struct
from daedal.kernels.vectors import power

CONVERGED, DIVERGED = 0, 3
CONTINUE, ROUND_OFF = 4, 5  # verdicts: another correction is needed; the correction is round-off and can be skipped
SIMPLIFIED, MEAN_RATE, TO_ROUNDOFF = 0, 1, 2
"""Convergence test: the last two ratios with a forecast of failure (Hairer and Wanner); the mean of all ratios (DASSL);
or iteration until corrections no longer decrease."""

NEWTON = Struct(
    "NEWTON",
    [
        # stopping criteria
        ("kind", INTEGER),
        ("most", INTEGER),  # largest number of iterations
        ("tolerance", FLOAT),  # tolerance for the remaining error
        ("noise", FLOAT),  # size of corrections attributable to round-off of the unknowns
        ("rounding", FLOAT),  # bound for corrections that count as round-off if they no longer decrease
        ("slowest", FLOAT),  # rate, or ratio, above which an iteration stalls
        ("stalls_to_stop", INTEGER),  # number of consecutive such ratios that indicate round-off, with TO_ROUNDOFF
        ("stalls_to_fail", INTEGER),
        ("wildest", FLOAT),  # ratio that always indicates failure
        # additional unknowns (followers) that must converge as well, measured separately
        ("followers", INTEGER),
        ("follow_tolerance", FLOAT),  # tolerance for the remaining error of the followers
        ("follow_last", FLOAT),  # size of their last correction
        ("follow_below", FLOAT),  # bound for the last correction of the leading unknowns
        ("known", INTEGER),  # whether a rate of earlier iterations was given
        # observations
        ("iterations", INTEGER),
        ("first", FLOAT),
        ("before", FLOAT),
        ("rest", FLOAT),  # size of the last correction of the followers
        ("ratio", FLOAT),
        ("stalls", INTEGER),
        ("rate", FLOAT),
        ("worst", FLOAT),  # largest ratio
        ("factor", FLOAT),  # rate / (1 - rate)
        ("shorter", FLOAT),  # step size to try after a failure, relative to the current one
    ],
)

_LOOK = 2  # iterations in which slow convergence is not yet a failure: corrections may grow initially
# largest last correction, in units of the error tolerance, if the rate is new: one ratio may be small by accident, for
# instance where a steep exponential was predicted badly
_LARGEST_LAST = 1.0
_PLATEAU = 300.0  # corrections of followers that no longer decrease count as round-off below this multiple of `noise`
UNKNOWN = 1.0  # factor assumed for a simplified iteration before a rate has been observed


@part
def expect(progress, kind, most, tolerance, noise, rounding):
    """Set the stopping criteria for the following iterations; rate limits depend on `kind`."""
    progress.kind, progress.most = kind, most
    progress.tolerance, progress.noise, progress.rounding = tolerance, noise, rounding
    progress.slowest = 0.9 if kind == MEAN_RATE else 0.99 if kind == SIMPLIFIED else 0.95
    progress.stalls_to_stop, progress.stalls_to_fail = 2, 3
    progress.wildest = 10.0
    progress.followers = 0


@part
def expect_full(progress, most, noise, rounding, ratio):
    """Set the stopping criteria for a new matrix in every iteration; convergence is quadratic only in the end."""
    expect(progress, TO_ROUNDOFF, most, 0.0, noise, rounding)
    progress.slowest, progress.stalls_to_stop, progress.stalls_to_fail, progress.wildest = ratio, 1, most, np.inf


@part
def start(progress, factor):
    """Start an iteration, with the known value of rate / (1 - rate)."""
    progress.factor, progress.rate, progress.ratio, progress.shorter = factor, 0.0, 0.0, 0.5
    progress.iterations, progress.stalls, progress.worst = 0, 0, 0.0
    progress.known = 1 if factor < UNKNOWN else 0
    progress.rest = np.inf


@part
def judge(progress, size, rest):
    """CONVERGED, CONTINUE, DIVERGED or ROUND_OFF for this correction; `rest` is its size for the followers."""
    progress.iterations += 1
    m = progress.iterations
    if not size + rest < np.inf:
        return DIVERGED
    if m == 1:
        progress.first = size
    elif size > progress.noise or progress.kind == SIMPLIFIED:
        verdict = _compare(progress, m, size)
        if verdict != CONTINUE:
            return verdict
    rest_before = progress.rest
    progress.before, progress.rest = max(size, np.finfo(np.float64).tiny), rest
    exact = progress.kind == TO_ROUNDOFF
    followed = True
    if progress.followers and not exact:
        plateau = rest >= 0.5 * rest_before and size <= _PLATEAU * progress.noise
        settled = size <= progress.follow_below and rest <= progress.follow_last
        followed = plateau or (settled and progress.factor * rest <= progress.follow_tolerance)
    trusted = progress.kind != SIMPLIFIED or progress.known or size <= _LARGEST_LAST
    near = not exact and trusted and progress.factor * size <= progress.tolerance
    if followed and (near or size <= progress.noise):
        return CONVERGED
    if m < progress.most:
        return CONTINUE
    left = size if exact else progress.factor * size
    return CONVERGED if left <= progress.rounding else DIVERGED


@part
def _compare(progress, m, size):
    """Rate and ratio of corrections, and the resulting decision."""
    previous, ratio = progress.ratio, size / progress.before
    progress.ratio, progress.worst = ratio, max(progress.worst, ratio)
    if progress.kind == MEAN_RATE:
        progress.rate = size / progress.first if m == 2 else (size / progress.first) ** (1.0 / (m - 1))
        if progress.rate > progress.slowest:
            return DIVERGED
        progress.factor = progress.rate / (1.0 - progress.rate)
        return CONTINUE
    if progress.kind == TO_ROUNDOFF:
        progress.rate = ratio
        progress.stalls = progress.stalls + 1 if ratio >= progress.slowest else 0
        if progress.stalls >= progress.stalls_to_stop and size <= progress.rounding:
            return ROUND_OFF
        if (m > _LOOK and progress.stalls >= progress.stalls_to_fail) or ratio > progress.wildest:
            return ROUND_OFF if progress.before <= progress.rounding else DIVERGED
        return CONTINUE
    progress.rate = ratio if m == 2 or previous >= progress.slowest else np.sqrt(ratio * previous)
    if progress.rate >= progress.slowest:
        if size <= progress.rounding and (m > _LOOK or not progress.followers):
            return ROUND_OFF
        if ratio > progress.wildest or m > _LOOK:
            return DIVERGED
        progress.factor = UNKNOWN
        return CONTINUE
    progress.factor = progress.rate / (1.0 - progress.rate)
    return _forecast(progress, m, size)


@part
def _forecast(progress, m, size):
    """DIVERGED if the remaining iterations will not suffice, with the step size for which they would."""
    left = progress.most - 1 - m
    if m <= _LOOK or left < 0:
        return CONTINUE
    expected = progress.factor * size * power(progress.rate, left) / progress.tolerance
    if expected < 1.0 or size <= progress.noise or progress.factor * size <= progress.rounding:
        return CONTINUE
    progress.shorter = 0.8 * max(1e-4, min(20.0, expected)) ** (-1.0 / (4 + left))
    return DIVERGED
