"""Plots of solutions. Matplotlib is imported when the first one is made."""

from daedal.viz.html import solution_html
from daedal.viz.hybrid import hybrid_html, plot_hybrid, plot_modes
from daedal.viz.solution import plot_solution

__all__ = ["hybrid_html", "plot_hybrid", "plot_modes", "plot_solution", "solution_html"]
