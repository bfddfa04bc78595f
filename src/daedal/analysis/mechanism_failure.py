"""Why the integration of a constrained system could not go on, in words."""

from __future__ import annotations

from daedal.analysis.diagnosis import diagnose


def explain(request, segments) -> str:
    """The message for a failed run."""
    segment = segments[-1]
    return diagnose(segment.reduction.problem, segment.outcome.failure)
