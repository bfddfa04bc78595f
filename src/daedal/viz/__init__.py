"""Plots and animations of solutions. Matplotlib is imported on first use."""

from daedal.viz.analysis_plots import growth_factor, plot_conditioning, plot_eigenvalues, plot_stability_region
from daedal.viz.animate import animate
from daedal.viz.comparison_plot import plot_comparison, plot_work_precision
from daedal.viz.drawing import Drawing
from daedal.viz.ensemble_plot import plot_ensemble, plot_fit, plot_fit_residuals, plot_uncertainty
from daedal.viz.pages import solution_html
from daedal.viz.scene import Scene
from daedal.viz.scene_parts import Arrow, Line, Part, Plot, RodLine, SpringLine, Trace
from daedal.viz.shapes3d import Box, Cylinder, Disc, Ellipsoid, Gear, Mesh, Plane, Rod, Sphere
from daedal.viz.solution_plot import plot_hybrid, plot_modes, plot_solution

__all__ = [
    "Arrow",
    "Box",
    "Cylinder",
    "Disc",
    "Drawing",
    "Ellipsoid",
    "Gear",
    "Line",
    "Mesh",
    "Part",
    "Plane",
    "Plot",
    "Rod",
    "RodLine",
    "Scene",
    "Sphere",
    "SpringLine",
    "Trace",
    "animate",
    "growth_factor",
    "plot_comparison",
    "plot_conditioning",
    "plot_eigenvalues",
    "plot_ensemble",
    "plot_fit",
    "plot_fit_residuals",
    "plot_hybrid",
    "plot_modes",
    "plot_solution",
    "plot_stability_region",
    "plot_uncertainty",
    "plot_work_precision",
    "solution_html",
]


def __dir__() -> list[str]:
    return __all__
