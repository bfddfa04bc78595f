"""Common code of figures: creation and saving, panels with curves, legends, event markers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.viz.view import CurveGroup, share_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# P. Tol, Colour Schemes (SRON technical note EPS/TN/09-002, 2021): the three colours of "high-contrast", which also
# differ in lightness, then three of "muted" with this property, for which lines are dashed.
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


# --- typesetting of variable names ------------------------------------------------------------------------------------

GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()
# A mathematical symbol: one letter, optionally followed by a number or, after an underscore, another subscript
_SYMBOL = re.compile(rf"({'|'.join(GREEK)}|[A-Za-z])(?:(\d+)|_([A-Za-z0-9]+))?")
_DEGREES_PER_RADIAN = 180.0 / math.pi


def label(name: str, factor: float = 1.0) -> str:
    """A name as Matplotlib text; symbols such as ``y1``, ``v_C2`` or ``lambda`` are typeset as in formulas.

    A `factor` is prepended; the factor from radians to degrees is shown as a unit instead.
    """
    match = _SYMBOL.fullmatch(name)
    if match is None:
        text = plain(name)
    else:
        letter, number, subscript = match.groups()
        symbol = "\\" + letter if letter in GREEK else letter
        index = f"_{{{number}}}" if number else rf"_{{\mathrm{{{subscript}}}}}" if subscript else ""
        text = f"${symbol}{index}$"
    if factor == 1.0:
        return text
    if math.isclose(factor, _DEGREES_PER_RADIAN, rel_tol=1e-12):
        return f"{text} [°]"
    return f"{_number(factor)} {text}"


def plain(name: str) -> str:
    """A name as literal Matplotlib text; dollar signs that do not delimit formulas are escaped."""
    if "$" in name:
        from matplotlib.mathtext import MathTextParser

        try:
            MathTextParser("path").parse(name)
        except ValueError:
            name = name.replace("$", r"\$")
    return " " + name if name.startswith("_") else name  # Matplotlib omits labels with a leading underscore


def _number(value: float) -> str:
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    power = math.log10(value) if value > 0.0 else math.nan
    if power.is_integer() and abs(power) > 1.0:
        return f"$10^{{{int(power)}}}$"
    if not exponent:
        return mantissa
    return rf"${mantissa}\cdot 10^{{{int(exponent)}}}$"


# --- common parts of figures ------------------------------------------------------------------------------------------

WIDTH = 7.0  # width of figures over time, in inches
_PANEL_HEIGHTS = (3.2, 1.8, 1.8, 1.5)  # panel heights in inches, for one, two, three and more panels
_LINE_HEIGHT = 0.18  # height of a line of a legend, in inches
_ONE_COLUMN = 4  # largest number of panels in one column; more are arranged in two
_LONG_NAME = 16  # number of characters above which names are placed above a panel
_MARKERS = ("v", "D", "s", "o")
_MANY_EVENTS = 40  # number of events above which they are not marked by lines
_SEE_THROUGH = (0, (4.0, 4.0))  # dashes of a curve that coincides with another one


@dataclass(frozen=True)
class Panel:
    """Curves in a common panel."""

    kind: str
    labels: list[str]
    t: np.ndarray
    curves: np.ndarray


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise daedal.InvalidProblemError(f"{option}={value!r} is not known; choose one of {', '.join(choices)}")


@contextmanager
def new_figure(
    size: tuple[float, float], pyplot: bool, save: str | Path | None = None, title: str | None = None
) -> Iterator[Figure]:
    """Context manager for a figure: on exit, sets its title and layout, and saves it if `save` is given."""
    import matplotlib

    # outside the style context, whose exit would reset settings made by the backend when it is loaded
    figure = _empty(size, pyplot)
    with matplotlib.rc_context(STYLE):
        figure.set_layout_engine("constrained", h_pad=0.04, w_pad=0.06)
        yield figure
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=10.0, fontweight="bold")
        figure.draw_without_rendering()  # compute ticks and layout twice, since they depend on each other
        if save is not None:
            Path(save).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(save)


def _empty(size: tuple[float, float], pyplot: bool) -> Figure:
    from matplotlib.figure import Figure

    options: dict[str, Any] = {"figsize": size, "dpi": STYLE["figure.dpi"], "facecolor": STYLE["figure.facecolor"]}
    if not pyplot:
        return Figure(**options)
    import matplotlib
    import matplotlib.pyplot as plt

    if "inline" in matplotlib.get_backend():
        from daedal.viz.notebook_figure import NotebookFigure

        return plt.figure(FigureClass=NotebookFigure, **options)
    return plt.figure(**options)


def panels_of(
    block: CurveGroup, panels: str, yscale: str = "linear", factors: Mapping[str, float] | None = None
) -> list[Panel]:
    """Divide the curves of a block into panels."""
    scales = [(factors or {}).get(name, 1.0) for name in block.names]
    labels = [_label(name, factor) for name, factor in zip(block.names, scales)]
    curves = block.curves * np.array(scales)[:, None]
    everything = list(range(len(labels)))
    if panels == "one" or block.kind == "drift":
        groups = [everything]
    elif panels == "each":
        groups = [[row] for row in everything]
    else:
        groups = share_panels(curves if yscale == "linear" else _logarithms(curves))
    return [Panel(block.kind, [labels[i] for i in group], block.t, curves[group]) for group in groups]


def _logarithms(curves: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log10(np.abs(curves))


def _label(name: str, factor: float) -> str:
    """Label of a variable, with primes of derivatives as in a formula."""
    symbol, primes = label(name.rstrip("'")), name[len(name.rstrip("'")) :]
    if not primes or not symbol.startswith("$"):
        return label(name, factor)
    return label(name, factor).replace(name, f"{symbol[:-1]}{primes}$")


def row_heights(count: int) -> tuple[int, list[float]]:
    """Number of columns for `count` panels, and the heights of their rows."""
    columns = 1 if count <= _ONE_COLUMN else 2
    return columns, [_PANEL_HEIGHTS[min(count, len(_PANEL_HEIGHTS)) - 1]] * -(-count // columns)


def add_panels(figure: Figure, count: int, columns: int, heights: list[float]) -> tuple[list[Axes], Any]:
    """Add panels for curves, row by row; also returns the grid, which may have further rows below."""
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    axes: list[Axes] = []
    for k in range(count):
        axes.append(figure.add_subplot(grid[k // columns, k % columns], sharex=axes[0] if axes else None))
    return axes, grid


def draw_curves(axes: Axes, panel: Panel, mark_points: bool) -> None:
    for k, (curve, text) in enumerate(zip(panel.curves, panel.labels)):
        colour, dashes = LINES[k % len(LINES)]
        if any(_coincide(curve, earlier) for earlier in panel.curves[:k]):
            dashes = _SEE_THROUGH
        marker = "o" if mark_points else ""
        axes.plot(panel.t, curve, color=colour, linestyle=dashes, marker=marker, markersize=3, label=text)


def _coincide(curve: np.ndarray, other: np.ndarray) -> bool:
    """Whether two non-constant curves coincide, so that one would hide the other."""
    finite = np.isfinite(curve) & np.isfinite(other)
    if not finite.any():
        return False
    return bool(np.max(np.abs(curve[finite] - other[finite])) <= 0.01 * np.ptp(other[finite]))


def name_curves(figure: Figure, state_axes: list[Axes], panels: list[Panel]) -> None:
    """Label axes by the name of a single curve or the kind of several curves; add legends beside or above panels."""
    legends = []
    for axes, panel in zip(state_axes, panels):
        handles, labels = axes.get_legend_handles_labels()
        if len(panel.labels) == 1:
            axes.set_ylabel(f"{labels[0]} drift" if panel.kind == "drift" else labels[0])
            handles, labels = handles[1:], labels[1:]
        else:
            axes.set_ylabel(panel.kind)
        if handles:
            legends.append((axes, handles, labels))
    longest = max((_width(text) for *_, labels in legends for text in labels), default=0)
    narrow = len(panels) > _ONE_COLUMN
    if longest <= _LONG_NAME and not narrow:
        for axes, handles, labels in legends:
            axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.02), borderaxespad=0.3)
        return
    lines: dict[int, int] = {}  # number of legend lines above each row of panels
    for axes, handles, labels in legends:
        width = max(_width(text) for text in labels) + 8  # including the line sample
        columns = max(1, min(len(handles), (38 if narrow else 80) // width))
        # on the right, since the axis exponent is on the left
        axes.legend(handles, labels, loc="lower right", bbox_to_anchor=(1.0, 1.03), borderaxespad=0.0, ncols=columns)
        row = _place(axes).rowspan.start
        lines[row] = max(lines.get(row, 0), -(-len(handles) // columns))
    figure.set_figheight(figure.get_figheight() + _LINE_HEIGHT * sum(lines.values()))


def _width(text: str) -> int:
    """Approximate width of a label in letters."""
    if "$" in text:
        text = re.sub(r"\\[A-Za-z]+", "x", re.sub(r"\\mathrm|[${}_^]", "", text))
    return len(text)


def mark_events(sol: daedal.Solution, state_axes: list[Axes]) -> None:
    """Draw a dotted line through all panels at each event, with a marker above the first panel."""
    names = list(dict.fromkeys(event.name for event in sol.events))
    if len(sol.events) <= _MANY_EVENTS:
        for axes in state_axes:
            for event in sol.events:
                axes.axvline(event.t, color=FAINT, linewidth=0.8, linestyle=":", zorder=1)
    first = state_axes[0]
    for k, name in enumerate(names):
        times = [event.t for event in sol.events if event.name == name]
        first.plot(
            times,
            np.ones(len(times)),
            transform=first.get_xaxis_transform(),
            color=INK,
            linestyle="",
            marker=_MARKERS[k % len(_MARKERS)],
            markersize=4,
            clip_on=False,
            label=plain(name),
        )


def notes(sol: daedal.Solution, note: str) -> str:
    ended = "" if sol.success else f"{sol.status} at t = {sol.t[-1]:g}"
    return "; ".join(text for text in (note, ended) if text)


def finish(figure: Figure, all_axes: list[Axes], xlabel: str, title: str | None, note: str) -> None:
    for axes in all_axes:
        lowest = not any(_is_below(other, axes) for other in all_axes)
        axes.tick_params(labelbottom=lowest)
        if lowest:
            axes.set_xlabel(label(xlabel))
    figure.align_ylabels(all_axes)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        figure.text(0.99, 0.98, note, ha="right", va="top", color=FAINT, fontsize=8)
    elif note:
        figure.suptitle(note, x=0.01, ha="left", color=FAINT, fontsize=8)


def _place(axes: Axes) -> Any:
    """Position of a panel in the grid."""
    return axes.get_subplotspec()


def _is_below(axes: Axes, other: Axes) -> bool:
    return _place(axes).colspan == _place(other).colspan and _place(axes).rowspan.start > _place(other).rowspan.start
