"""When Newton's method has converged and when it never will, stated once for all methods.

A method computes corrections, of all unknowns of a step or of its stages, and hands the size of each, in units of the
tolerance, to :func:`judge`. With the observed rate of convergence the error that is left is about rate / (1 - rate)
times the last correction (BCP 5.2.2; Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8). Where no
tolerance says when to stop, with constant steps, the iteration ends at round-off.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import part
from daedal.kernels.records import FLOAT, INTEGER, Struct
from daedal.kernels.vectors import power

CONVERGED, DIVERGED = 0, 3
CONTINUE, ROUND_OFF = 4, 5  # verdicts: another correction is needed; this one is noise, and need not be made
SIMPLIFIED, MEAN_RATE, TO_ROUNDOFF = 0, 1, 2
"""How an iteration is judged: by its last two ratios, with a forecast of failure (Hairer and Wanner); by the mean of
all ratios (DASSL); or until corrections fall no longer."""

NEWTON = Struct(
    "NEWTON",
    [
        # what ends the iteration
        ("kind", INTEGER),
        ("most", INTEGER),  # iterations
        ("tolerance", FLOAT),  # of the error that is left
        ("noise", FLOAT),  # size of corrections that the round-off of the unknowns explains
        ("rounding", FLOAT),  # of corrections that may be round-off if they fall no longer
        ("slowest", FLOAT),  # rate, or ratio, from which an iteration stalls
        ("stalls_to_stop", INTEGER),  # ratios of that size in turn that show round-off, with TO_ROUNDOFF
        ("stalls_to_fail", INTEGER),
        ("wildest", FLOAT),  # ratio that is failure, whatever follows
        # further unknowns that have to follow, in a measure of their own
        ("followers", INTEGER),
        ("follow_tolerance", FLOAT),  # of their error that is left
        ("follow_last", FLOAT),  # of their last correction
        ("follow_below", FLOAT),  # of the last correction of the others
        # what was seen
        ("iterations", INTEGER),
        ("first", FLOAT),
        ("before", FLOAT),
        ("rest", FLOAT),  # size of the last correction of the followers
        ("ratio", FLOAT),
        ("stalls", INTEGER),
        ("rate", FLOAT),
        ("worst", FLOAT),  # largest ratio
        ("factor", FLOAT),  # rate / (1 - rate)
        ("shorter", FLOAT),  # ratio of the step to try after a failure, and this one
    ],
)

_LOOK = 2  # the first ratios need not be those of the others: corrections may grow at first
_PLATEAU = 300.0  # corrections of followers that no longer fall are round-off below so many times `noise`
UNKNOWN = 1.0  # factor before a rate has been seen, of a simplified iteration


@part
def expect(progress, kind, most, tolerance, noise, rounding):
    """What ends the iterations from now on; limits of rates by their kind."""
    progress.kind, progress.most = kind, most
    progress.tolerance, progress.noise, progress.rounding = tolerance, noise, rounding
    progress.slowest = 0.9 if kind == MEAN_RATE else 0.99 if kind == SIMPLIFIED else 0.95
    progress.stalls_to_stop, progress.stalls_to_fail = 2, 3
    progress.wildest = 10.0
    progress.followers = 0


@part
def expect_full(progress, most, noise, rounding, ratio):
    """A matrix is formed in every iteration, which converges quadratically in the end and may do anything before."""
    expect(progress, TO_ROUNDOFF, most, 0.0, noise, rounding)
    progress.slowest, progress.stalls_to_stop, progress.stalls_to_fail, progress.wildest = ratio, 1, most, np.inf


@part
def start(progress, factor):
    """Begin an iteration, with what is known of rate / (1 - rate)."""
    progress.factor, progress.rate, progress.ratio, progress.shorter = factor, 0.0, 0.0, 0.5
    progress.iterations, progress.stalls, progress.worst = 0, 0, 0.0
    progress.rest = np.inf


@part
def judge(progress, size, rest):
    """CONVERGED, CONTINUE or DIVERGED with this correction, or ROUND_OFF; `rest` is its size of the followers."""
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
    if followed and (size <= progress.noise or (not exact and progress.factor * size <= progress.tolerance)):
        return CONVERGED
    if m < progress.most:
        return CONTINUE
    left = size if exact else progress.factor * size
    return CONVERGED if left <= progress.rounding else DIVERGED


@part
def _compare(progress, m, size):
    """Rate and ratio of corrections, and what follows from them."""
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
    """DIVERGED where the iterations that are left will not do, with the step that needs no more."""
    left = progress.most - 1 - m
    if m <= _LOOK or left < 0:
        return CONTINUE
    expected = progress.factor * size * power(progress.rate, left) / progress.tolerance
    if expected < 1.0 or size <= progress.noise or progress.factor * size <= progress.rounding:
        return CONTINUE
    progress.shorter = 0.8 * max(1e-4, min(20.0, expected)) ** (-1.0 / (4 + left))
    return DIVERGED
