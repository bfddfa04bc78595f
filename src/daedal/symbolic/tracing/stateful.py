"""Warnings about functions that remember, draw random numbers, or jump where no trace shows it."""

from typing import Any

from daedal.symbolic import Untraceable
from daedal.symbolic.substitution import DRAWN


def _called(name: str, function: Any) -> str:
    own = getattr(function, "__name__", type(function).__name__)
    return name if own in (name, "<lambda>", "NoneType") else f"{name} ({own})"


def jump_words(name: str, function: Any, reason: Untraceable, interval: float) -> str:
    """The function, why its jumps are not located, and what to write instead."""
    place = f" ({reason.site})" if reason.site else ""
    return (
        f"{_called(name, function)} {reason.reason}{place} and is not traced: where it jumps is not known, and a pulse "
        f"shorter than a step may be missed. "
        f"Remedy: {reason.remedy}; or give breakpoints at the jumps, or max_step={1e-4 * interval:.1g}"
    )


def stateful_words(name: str, function: Any, reason: Untraceable) -> str:
    """The function, what it remembers or draws, why that is wrong, and what to use instead."""
    called = _called(name, function)
    place = f", {reason.site}" if reason.site else ""
    if reason.memory in DRAWN or "random" in reason.reason:
        return (
            f"{called} {reason.reason} ({reason.memory}{place}): each call gives another result, and a "
            "step meets its tolerance by chance only. Remedy: draw the numbers before the run, for a daedal.Table"
        )
    return (
        f"{called} remembers '{reason.memory}' from call to call ({reason.reason}{place}). Functions are called "
        "several times in a step, and in steps that are rejected: that is not the state of the solution. Remedy: modes "
        "(daedal.hybrid.HybridProblem) for what switches with hysteresis, a daedal.Table for data, one run for each "
        "interval of a sampled controller, with its output as a parameter, or one more equation"
    )
