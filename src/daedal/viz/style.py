"""The look of all figures: colours that the colour-blind and a black-and-white printer can tell apart."""

from typing import Any

# P. Tol, Colour Schemes (SRON technical note EPS/TN/09-002, 2021): "high-contrast", whose three colours differ in
# lightness as well, then three of "muted" with the same property. The second three are drawn dashed.
COLOURS = ("#004488", "#DDAA33", "#BB5566", "#332288", "#44AA99", "#AA4499")
DASHES: tuple[Any, ...] = ("-", "-", "-", (0, (4.5, 1.6)), (0, (4.5, 1.6)), (0, (4.5, 1.6)))
LINES = tuple(zip(COLOURS, DASHES))

INK, FAINT, GRID = "#222222", "#666666", "#E3E3E3"

STYLE: Any = {
    "figure.facecolor": "white",
    "figure.dpi": 110.0,
    "savefig.dpi": 200.0,
    "savefig.facecolor": "white",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "mathtext.fontset": "dejavusans",
    "text.color": INK,
    "axes.facecolor": "white",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.0,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.prop_cycle": f"cycler('color', {list(COLOURS)})",
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-4, 5),
    "axes.xmargin": 0.01,
    "axes.ymargin": 0.06,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "lines.linewidth": 1.4,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "agg.path.chunksize": 10000,
}
