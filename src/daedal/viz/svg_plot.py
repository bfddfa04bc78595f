"""Small SVG plots with the colours of the page, readable on phones."""

import html
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

import daedal
from daedal.viz.figure import GREEK
from daedal.viz.view import logarithmic_part, sample, sample_segments, select_variables, share_panels, time_scale

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 600.0, 84.0, 28.0, 34.0, 54.0
HEIGHTS = (270.0, 150.0, 110.0)  # panel height for one, two and three panels
GAP = 44.0
_GREEK = dict(zip(GREEK, "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"))
_INDEX = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def plot_svg(sol: Any, title: str, plot: Mapping[str, Any] | None = None) -> str:
    """SVG plot of the variables of a solution over time, with the options ``plot`` of a :class:`daedal.library.Model`.

    Examples
    --------
    >>> import daedal
    >>> from daedal.viz.svg_plot import plot_svg
    >>> model = daedal.library.robertson()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> picture = plot_svg(sol, model.title, model.plot)
    >>> picture.count("<polyline")
    3
    """
    plot = dict(plot or {})
    rows, _ = select_variables(sol, plot.get("variables"))
    factors = np.array([plot.get("factors", {}).get(sol.names[row], 1.0) for row in rows])
    if isinstance(sol, daedal.HybridSolution):
        scale = "linear"
        t, values = sample_segments(sol, rows)
    else:
        scale = plot.get("xscale", time_scale(sol.t))
        t, values = sample(sol, rows, scale)
    curves = values * factors[:, None]
    if scale == "log":
        shown = logarithmic_part(t, curves)
        t, curves = t[shown], curves[:, shown]
    groups = share_panels(curves)[:3]
    height = HEIGHTS[len(groups) - 1]
    parts = []
    axis = _Axis(t, LEFT, WIDTH - RIGHT, scale == "log")
    for k, group in enumerate(groups):
        top = TOP + k * (height + GAP)
        names = [_name(sol.names[rows[i]], factors[i]) for i in group]
        parts.append(_panel(t, curves[group], names, axis, top, top + height, k == len(groups) - 1))
    total = TOP + len(groups) * height + (len(groups) - 1) * GAP + BOTTOM
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH:g} {total:g}" role="img" aria-label="{html.escape(title)}: '
        f'variables over time">{"".join(parts)}</svg>'
    )


def series_svg(t: np.ndarray, series: Mapping[str, np.ndarray], title: str) -> str:
    """SVG plot of labelled curves over time, with a cursor that a script moves between `data-from` and `data-to`."""
    axis = _Axis(t, LEFT, WIDTH - RIGHT)
    top, bottom = TOP, TOP + HEIGHTS[1]
    panel = _panel(t, np.array(list(series.values())), list(series), axis, top, bottom, True)
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH:g} {bottom + BOTTOM:g}" role="img" aria-label="{html.escape(title)} '
        f'over time" data-from="{LEFT:g}" data-to="{WIDTH - RIGHT:g}">{panel}'
        f'<path class="cursor" d="M{LEFT:g} {top:g}V{bottom:g}"/></svg>'
    )


class _Axis:
    """Ticks and pixels of an axis."""

    def __init__(self, values: np.ndarray, begin: float, end: float, log: bool = False, margin: float = 0.0):
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        self.log = log
        if log:
            low, high = math.log10(low), math.log10(high)
        if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
        gap = margin * (high - low)
        self.low, self.high, self.begin, self.end = low - gap, high + gap, begin, end

    def place(self, values):
        values = np.log10(values) if self.log else np.asarray(values, dtype=float)
        return self.begin + (values - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self, about: int) -> tuple[list[tuple[float, str]], str]:
        """Positions and labels, and a note with the offset if labels are differences from a long number."""
        if self.log:
            decades = range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)
            every = max(1, -(-len(decades) // about))
            return [(self._pixel(k), f"10{_superscript(k)}") for k in list(decades)[::every]], ""
        rough = (self.high - self.low) / about
        unit = 10.0 ** math.floor(math.log10(rough))
        step = unit * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= 0.999 * rough)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        if last <= first and about < 20:
            return self.ticks(2 * about)
        size = max(abs(first), abs(last))  # largest label in tick intervals
        base = last if size > 2000 else 0
        note = f" − {base * step:.12g}" if base else ""
        return [(self._pixel(k * step), _number((k - base) * step)) for k in range(first, last + 1)], note

    def _pixel(self, position: float) -> float:
        return self.begin + (position - self.low) / (self.high - self.low) * (self.end - self.begin)


def _panel(t, curves, names, axis: _Axis, top: float, bottom: float, last: bool) -> str:
    vertical = _Axis(curves, bottom, top, margin=0.06)
    parts = []
    ticks, note = vertical.ticks(4)
    for y, text in ticks:
        parts.append(f'<path class="grid" d="M{LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}"/>')
        parts.append(f'<text x="{LEFT - 8:g}" y="{y + 6:.1f}" text-anchor="end">{text}</text>')
    for x, text in axis.ticks(5)[0]:
        parts.append(f'<path class="grid" d="M{x:.1f} {top:g}V{bottom:g}"/>')
        if last:
            parts.append(f'<text x="{x:.1f}" y="{bottom + 24:g}" text-anchor="middle">{text}</text>')
    if last:
        middle = 0.5 * (LEFT + WIDTH - RIGHT)
        parts.append(f'<text x="{middle:g}" y="{bottom + 47:g}" text-anchor="middle">t</text>')
    parts.append(f'<path class="axis" d="M{LEFT:g} {top:g}V{bottom:g}H{WIDTH - RIGHT:g}"/>')
    legend = LEFT
    x = axis.place(t)
    for k, (curve, name) in enumerate(zip(curves, names)):
        for piece in _pieces(x, vertical.place(curve)):
            parts.append(f'<polyline class="c{k % 6}" points="{piece}"/>')
        parts.append(f'<path class="c{k % 6}" d="M{legend:g} {top - 14:g}h26"/>')
        parts.append(f'<text x="{legend + 32:g}" y="{top - 8:g}">{html.escape(name + note)}</text>')
        legend += 58.0 + 11.0 * len(name + note)
    return "".join(parts)


def _pieces(x: np.ndarray, y: np.ndarray) -> list[str]:
    """Pieces of a curve between gaps, reduced to the first, lowest, highest and last point in each column of pixels."""
    pieces = []
    breaks = np.flatnonzero(~np.isfinite(y))
    for part in np.split(np.arange(y.size), breaks):
        part = part[np.isfinite(y[part])]
        if part.size < 2:
            continue
        column = np.floor(x[part]).astype(int)
        borders = np.flatnonzero(np.diff(column)) + 1
        kept: list[int] = []
        for group in np.split(part, borders):
            chosen = {group[0], group[np.argmin(y[group])], group[np.argmax(y[group])], group[-1]}
            kept.extend(sorted(chosen))
        pieces.append(" ".join(f"{x[i]:.1f},{y[i]:.1f}" for i in kept))
    return pieces


def _name(name: str, factor: float) -> str:
    match = re.fullmatch(r"([A-Za-z]+)_?(\d*)", name)
    text = name
    if match and (match.group(1) in _GREEK or len(match.group(1)) == 1):
        text = _GREEK.get(match.group(1), match.group(1)) + match.group(2).translate(_INDEX)
    if factor == 1.0:
        return text
    return f"{text} [°]" if math.isclose(factor, 180.0 / math.pi) else f"{_number(factor)} {text}"


def _number(value: float) -> str:
    if value == 0.0:
        return "0"
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    if -4 < exponent < 5:
        return f"{value:.6g}".replace("-", "−")
    mantissa = f"{value / 10.0**exponent:.3g}".replace("-", "−")
    power = f"10{_superscript(exponent)}"
    return power if mantissa == "1" else f"{mantissa}·{power}"


def _superscript(k: int) -> str:
    return str(k).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
