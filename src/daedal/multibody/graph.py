"""A drawing of the graph of bodies and joints."""

from __future__ import annotations

from typing import NamedTuple

from daedal.multibody.joints import Joint
from daedal.multibody.topology import SpanningTree
from daedal.viz.figure import COLOURS, FAINT, INK, new_figure

_TREE, _CUT = COLOURS[0], COLOURS[2]
_ACROSS, _UP = 1.9, 1.3  # between bodies, in inches of a small graph
_LARGEST = 16.0  # inches; larger graphs are drawn smaller
_BEND = 0.35


def places(topology: SpanningTree) -> dict[int, tuple[float, float]]:
    """Where bodies are drawn: as high as they are far from the ground, fathers in the middle above their sons."""
    found: dict[int, tuple[float, float]] = {}
    depth = {-1: 0}
    for body, father in enumerate(topology.fathers):
        depth[body] = depth[father] + 1
    ends = 0
    for body in reversed(range(len(topology.bodies))):  # sons come before their fathers, branches from the right
        sons = topology.sons[body]
        if sons:
            x = sum(found[son][0] for son in sons) / len(sons)
        else:
            x, ends = -ends * _ACROSS, ends + 1
        found[body] = x, depth[body] * _UP
    return found


class _Line(NamedTuple):
    joint: Joint
    start: tuple[float, float]
    end: tuple[float, float]
    bend: float  # as in matplotlib's arc3, to the left of the way

    @property
    def middle(self) -> tuple[float, float]:
        (a, b), (c, d) = self.start, self.end
        return 0.5 * (a + c) - 0.5 * self.bend * (d - b), 0.5 * (b + d) + 0.5 * self.bend * (c - a)


def _lines(topology: SpanningTree, at) -> tuple[list[_Line], list[_Line]]:
    """Straight lines for the tree, and bent ones that keep out of its way for the joints that are cut."""
    tree = [
        _Line(joint, (at[body][0], 0.0) if father < 0 else at[father], at[body], 0.0)
        for body, (joint, father) in enumerate(zip(topology.joints, topology.fathers))
    ]
    index = {body.name: i for i, body in enumerate(topology.bodies)} | {"ground": -1}
    xs = [x for x, _ in at.values()]
    cut = []
    for joint in topology.cut:
        one, two = sorted((index[name] for name in joint.bodies), key=lambda body: at.get(body, (0.0, 0.0))[1])
        end = at[two]
        is_left = 2.0 * end[0] < min(xs) + max(xs)
        side = min(xs) - 0.6 * _ACROSS if is_left else max(xs) + 0.6 * _ACROSS
        start = (side, 0.0) if one < 0 else at[one]
        outwards = one < 0 and not is_left
        cut.append(_Line(joint, start, end, _BEND if end[0] >= start[0] and not outwards else -_BEND))
    return tree, cut


def draw_graph(topology: SpanningTree, title: str = "", *, pyplot: bool = True, save=None):
    """Bodies as boxes, joints of the tree as lines, joints that are cut dashed; see Model.draw_graph."""
    at = places(topology)
    tree, cut = _lines(topology, at)
    corners = [*at.values(), *(line.middle for line in cut)]
    left, right = min(x for x, _ in corners) - 0.6 * _ACROSS, max(x for x, _ in corners) + 0.6 * _ACROSS
    top = max(y for _, y in corners) + 0.35 * _UP
    scale = min(1.0, _LARGEST / max(right - left, top + 0.5))
    with new_figure((scale * (right - left), scale * (top + 0.8)), pyplot, save, title or None) as figure:
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        axes.axis("off")
        axes.set_xlim(left, right)
        axes.set_ylim(-0.5, top)
        axes.fill_between([left, right], -0.22, 0.0, facecolor="white", edgecolor=FAINT, hatch="////", linewidth=0.0)
        axes.plot([left, right], [0.0, 0.0], color=INK, linewidth=1.2)
        axes.text(left + 0.1, -0.27, "ground", fontsize=9.0 * scale, va="top", color=INK)
        for lines, is_cut in ((tree, False), (cut, True)):
            for line in lines:
                _draw(axes, line, scale, is_cut)
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": INK, "linewidth": 1.0}
        for body, place in at.items():
            name = topology.bodies[body].name
            axes.text(*place, name, ha="center", va="center", fontsize=9.5 * scale, bbox=box, zorder=5)
    return figure


def _draw(axes, line: _Line, scale: float, is_cut: bool):
    from matplotlib.patches import FancyArrowPatch

    colour, dashes = (_CUT, (0, (4.0, 2.5))) if is_cut else (_TREE, "-")
    bent = f"arc3,rad={-line.bend}"
    way = FancyArrowPatch(line.start, line.end, arrowstyle="-", connectionstyle=bent, shrinkA=0.0, shrinkB=0.0)
    way.set(linestyle=dashes, color=colour, linewidth=1.4)
    axes.add_patch(way)
    label = f"{line.joint.name}\n{type(line.joint).__name__}" + "\n(cut)" * is_cut
    text = axes.text(*line.middle, label, ha="center", va="center", color=colour, fontsize=7.5 * scale, zorder=4)
    text.set(linespacing=1.05, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})
