"""What can be said of a problem before it is solved: one page on its structure, index, constraints and freedom."""

from daedal.problem_analysis.analyse_problem import analyse
from daedal.problem_analysis.analysis_page import Analysis

__all__ = ["Analysis", "analyse"]
