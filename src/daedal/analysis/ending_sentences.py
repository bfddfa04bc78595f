"""How a run ended: the sentence that begins with "Stopped at t = ...", composed in one place."""

from math import ceil, inf, log10

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
