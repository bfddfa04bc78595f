"""The state of an integrator at a failure, and the sentence "Stopped at t = ..."."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf, log10

import numpy as np

from daedal.kernels.endings import Ending


@dataclass(frozen=True)
class Failure:
    """The state of a run that could not continue: the input of the diagnosis.

    Attributes
    ----------
    code : Ending
        Why the run ended: DASSL's IDID.
    t, h, order : float, float, int
        Last good time, step size and order of the failed attempt.
    y, yp : numpy.ndarray
        The last good values.
    tried_y : numpy.ndarray
        The values of the failed attempt (may hold NaN).
    correction : numpy.ndarray
        y - y(0) of the failed attempt, whose weighted norm is tested.
    weights : numpy.ndarray
        rtol |y| + atol.
    cj : float
        Leading coefficient of the failed attempt.
    steps, error_test_failures, newton_failures : int
        Totals of the run.
    attempt_error_failures, attempt_newton_failures : int
        Failures during the last step.
    first_step_failures : int
        Failures before the first step was accepted.
    t_span : tuple of float
    jacobian_unevaluable : bool
        Whether the user's jacobian, not the residual, returned NaN or could not be evaluated (Ending.UNEVALUABLE).
    component : int
        The variable concerned (Ending.ZERO_WEIGHT), otherwise -1.
    start : tuple, optional
        t, y and y' at the start of the run.
    """

    code: Ending
    t: float
    h: float
    order: int
    y: np.ndarray
    yp: np.ndarray
    tried_y: np.ndarray
    correction: np.ndarray
    weights: np.ndarray
    cj: float
    steps: int
    error_test_failures: int
    newton_failures: int
    attempt_error_failures: int
    attempt_newton_failures: int
    first_step_failures: int
    t_span: tuple[float, float]
    component: int = -1
    jacobian_unevaluable: bool = False
    start: tuple[float, np.ndarray, np.ndarray] | None = None
    included: np.ndarray = field(default_factory=lambda: np.zeros(0))


# --- The sentence "Stopped at t = ..." --------------------------------------------------------------------------------


_SETTLED = 50  # steps after which the step size is representative; the first ones are short and grow
# a run crawls if the remaining steps exceed _CRAWLING times the accepted ones, and _MANY
_CRAWLING, _MANY = 20.0, 1e6


def stopped(t: float, reason: str, *, digits: int = 6, details: str = "") -> str:
    """``Stopped at t = 1.5, step size 0.01: the reason``; `details` follow the time."""
    return f"Stopped at t = {t:.{digits}g}{details}: {reason}"


def stopped_step(failure, reason: str, span: tuple[float, float], by: str = "") -> str:
    """The sentence for a failed step, with its size and the completed fraction of the interval (covered `by` what)."""
    done = (failure.t - span[0]) / (span[1] - span[0])
    head = stopped(failure.t, reason, details=f", step size {abs(failure.h):.3g}")
    return f"{head}. The run covered {100.0 * done:.3g} % of the interval{by}."


def fixed_step_failed(failure, step: float) -> str:
    """The message if Newton's method fails for a step of constant size."""
    reason = f"Newton's method did not converge for the next step of the constant size {step:.4g}"
    return (
        f"{stopped(failure.t, reason)}. Likely cause: the step is too long for the fastest component, the "
        "solution grows without bound, or the method is not stable for these equations. Remedy: use a "
        "smaller fixed_step; if that makes it worse, use another method."
    )


def steps_left(failure, span: tuple[float, float]) -> float:
    """The number of remaining steps, if all have the size of the last one."""
    return abs(span[1] - failure.t) / abs(failure.h) if failure.h else inf


def crawls(failure, rest: float) -> bool:
    """Whether progress is too slow to reach the end."""
    return failure.steps >= _SETTLED and not rest <= max(_CRAWLING * failure.steps, _MANY)


def enough_steps(failure, rest: float) -> int:
    """A step limit that suffices to reach the end, rounded to a power of ten."""
    return 10 ** ceil(log10(1.5 * max(failure.steps + rest, 1.0)))


def more_steps(failure, span: tuple[float, float]) -> str:
    """Remedy for reaching the step limit, with the number of steps needed if all have the size of the last one."""
    if failure.steps < _SETTLED:
        return "raise max_steps (the first steps are short, and grow), or loosen rtol and atol"
    rest = steps_left(failure, span)
    if crawls(failure, rest):
        return "loosen rtol and atol; the steps are far too short for this interval"
    return f"raise the limit, for example max_steps={enough_steps(failure, rest)}, or loosen rtol and atol"
