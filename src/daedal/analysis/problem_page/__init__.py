"""Analysis of a problem before it is solved: structure, index, constraints and degrees of freedom on one page."""

from daedal.analysis.problem_page.analyse_problem import analyse
from daedal.analysis.problem_page.analysis_page import Analysis

__all__ = ["Analysis", "analyse"]
