"""Warnings about functions that have memory, draw random numbers, or have jumps that no trace reveals."""

from typing import Any

from daedal.symbolic import Untraceable
from daedal.symbolic.substitution import DRAWN


def _called(name: str, function: Any) -> str:
    own = getattr(function, "__name__", type(function).__name__)
    return name if own in (name, "<lambda>", "NoneType") else f"{name} ({own})"


def jump_words(name: str, function: Any, reason: Untraceable, interval: float) -> str:
    """Message on a function whose jumps are not located: name, reason and remedy."""
    place = f" ({reason.site})" if reason.site else ""
    return (
        f"{_called(name, function)} {reason.reason}{place} and is not traced: its jumps cannot be located, and a "
        f"pulse shorter than a step may be missed. Remedy: {reason.remedy}; or give breakpoints at the jumps, or "
        f"max_step={1e-4 * interval:.1g}"
    )


def stateful_words(name: str, function: Any, reason: Untraceable) -> str:
    """Message on a function with memory or random numbers: name, consequence and remedy."""
    called = _called(name, function)
    place = f", {reason.site}" if reason.site else ""
    if reason.memory in DRAWN or "random" in reason.reason:
        return (
            f"{called} {reason.reason} ({reason.memory}{place}): each call gives another result, so the error "
            "estimate of a step is meaningless. Remedy: draw the numbers before the run, for a daedal.Table"
        )
    return (
        f"{called} remembers '{reason.memory}' from call to call ({reason.reason}{place}). Functions are called "
        "several times per step, also in rejected steps, so this is not the state of the solution. Remedy: modes "
        "(daedal.hybrid.HybridProblem) for switches with hysteresis, a daedal.Table for data, one run per sampling "
        "interval of a controller, with its output as a parameter, or an additional equation"
    )
