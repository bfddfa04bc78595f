"""Plots and animations of solutions. Matplotlib is imported when the first one is made."""

from daedal.viz.animate import animate
from daedal.viz.drawing import Drawing
from daedal.viz.html import solution_html
from daedal.viz.hybrid import hybrid_html, plot_hybrid, plot_modes
from daedal.viz.solution import plot_solution

__all__ = ["Drawing", "animate", "hybrid_html", "plot_hybrid", "plot_modes", "plot_solution", "solution_html"]
