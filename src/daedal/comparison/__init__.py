"""Formulations and methods side by side: :func:`daedal.compare` and what it returns."""

from daedal.comparison.compare import compare
from daedal.comparison.result import ComparedRun, Comparison

__all__ = ["ComparedRun", "Comparison", "compare"]


def __dir__() -> list[str]:
    return __all__
