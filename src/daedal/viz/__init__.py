"""Plots of solutions. Matplotlib is imported when the first one is made."""

from daedal.viz.html import solution_html
from daedal.viz.solution import plot_solution

__all__ = ["plot_solution", "solution_html"]
