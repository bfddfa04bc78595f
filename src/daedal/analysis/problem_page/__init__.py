"""What can be said of a problem before it is solved: one page on its structure, index, constraints and freedom."""

from daedal.analysis.problem_page.analyse_problem import analyse
from daedal.analysis.problem_page.analysis_page import Analysis

__all__ = ["Analysis", "analyse"]
