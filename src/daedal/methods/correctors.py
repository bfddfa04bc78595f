"""How a solution and its sensitivities are found in a step: all together, or one after the other."""

from __future__ import annotations

from typing import Any

from daedal.errors import InvalidProblemError

CORRECTORS = ("simultaneous", "staggered", "staggered direct")
"""How a solution and its sensitivities are found in a step."""


def check_corrector(given: Any, known: tuple[str, ...] = CORRECTORS) -> None:
    """Refuse what is none of them; "auto" is the first."""
    if given != "auto" and given not in known:
        raise InvalidProblemError(f"unknown corrector {given!r}; known: {', '.join(known)}")
