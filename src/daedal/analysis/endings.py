"""How a run ended: the sentence that begins with "Stopped at t = ...", composed in one place."""


def stopped(t: float, reason: str, *, digits: int = 6, details: str = "") -> str:
    """``Stopped at t = 1.5, step size 0.01: the reason``; `details` stand behind the time."""
    return f"Stopped at t = {t:.{digits}g}{details}: {reason}"


def stopped_step(failure, reason: str, span: tuple[float, float], by: str = "") -> str:
    """The same for a failed step, with its size, and how much of the interval was covered (`by` what)."""
    done = (failure.t - span[0]) / (span[1] - span[0])
    head = stopped(failure.t, reason, details=f", step size {abs(failure.h):.3g}")
    return f"{head}. The run covered {100.0 * done:.3g} % of the interval{by}."
