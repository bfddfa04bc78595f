"""Plots and animations of solutions. Matplotlib is imported when the first one is made."""

from daedal.viz.animate import animate
from daedal.viz.compare import plot_comparison, plot_work_precision
from daedal.viz.drawing import Drawing
from daedal.viz.html import solution_html
from daedal.viz.hybrid import hybrid_html, plot_hybrid, plot_modes
from daedal.viz.solution import plot_solution
from daedal.viz.stability import growth_factor, plot_stability_region

__all__ = [
    "Drawing",
    "animate",
    "growth_factor",
    "hybrid_html",
    "plot_comparison",
    "plot_hybrid",
    "plot_modes",
    "plot_solution",
    "plot_stability_region",
    "plot_work_precision",
    "solution_html",
]
