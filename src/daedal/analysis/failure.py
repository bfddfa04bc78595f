"""What an integrator knows when it gives up, and the sentence that begins with "Stopped at t = ..."."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf, log10

import numpy as np

from daedal.kernels.endings import Ending


@dataclass(frozen=True)
class Failure:
    """The state of a run that could not go on; the raw material of a diagnosis.

    Attributes
    ----------
    code : Ending
        Why the run ended, DASSL's IDID.
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
        Failures inside the last step.
    first_step_failures : int
        Failures before the first step was accepted.
    t_span : tuple of float
    jacobian_unevaluable : bool
        Whether the user's jacobian, not the residual, gave NaN or could not be evaluated (Ending.UNEVALUABLE).
    component : int
        The variable concerned (Ending.ZERO_WEIGHT), else -1.
    start : tuple, optional
        t, y and y' where the run started.
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


# --- How a run ended: the sentence that begins with "Stopped at t = ...", composed in one place ----------------------


_SETTLED = 50  # steps after which their size tells something; the first ones are short and grow
_CRAWLING, _MANY = 20.0, 1e6  # the rest would take so many times the steps already taken, and so many


def stopped(t: float, reason: str, *, digits: int = 6, details: str = "") -> str:
    """``Stopped at t = 1.5, step size 0.01: the reason``; `details` stand behind the time."""
    return f"Stopped at t = {t:.{digits}g}{details}: {reason}"


def stopped_step(failure, reason: str, span: tuple[float, float], by: str = "") -> str:
    """The same for a failed step, with its size, and how much of the interval was covered (`by` what)."""
    done = (failure.t - span[0]) / (span[1] - span[0])
    head = stopped(failure.t, reason, details=f", step size {abs(failure.h):.3g}")
    return f"{head}. The run covered {100.0 * done:.3g} % of the interval{by}."


def fixed_step_failed(failure, step: float) -> str:
    """Newton's method has failed for a step of constant size, which is not shortened."""
    reason = f"Newton's method did not converge for the next step of the constant size {step:.4g}"
    return (
        f"{stopped(failure.t, reason)}. Likely cause: the step is too long for what moves fastest, the solution grows "
        "without bound, or the method is not stable for these equations. Remedy: a smaller fixed_step; if that makes "
        "it worse, another method."
    )


def steps_left(failure, span: tuple[float, float]) -> float:
    """How many more steps the interval takes, if they stay as long as the last one."""
    return abs(span[1] - failure.t) / abs(failure.h) if failure.h else inf


def crawls(failure, rest: float) -> bool:
    """Whether the end is out of reach at this pace."""
    return failure.steps >= _SETTLED and not rest <= max(_CRAWLING * failure.steps, _MANY)


def enough_steps(failure, rest: float) -> int:
    """A limit of steps with which the run comes to its end, a power of ten."""
    return 10 ** ceil(log10(1.5 * max(failure.steps + rest, 1.0)))


def more_steps(failure, span: tuple[float, float]) -> str:
    """What to do at the limit of steps, with the number that the interval takes if they stay as long as the last."""
    if failure.steps < _SETTLED:
        return "raise max_steps (the first steps are short, and grow), or loosen rtol and atol"
    rest = steps_left(failure, span)
    if crawls(failure, rest):
        return "loosen rtol and atol; the steps are far too short for this interval"
    return f"raise the limit, for example max_steps={enough_steps(failure, rest)}, or loosen rtol and atol"
