"""What can be said of a problem before it is solved: one page on its structure, index, constraints and freedom."""

from daedal.problem_analysis.analyse import analyse
from daedal.problem_analysis.result import Analysis

__all__ = ["Analysis", "analyse"]
