"""The structure as a graph for Graphviz: blocks of equations, and which of them needs which."""

from __future__ import annotations

from collections.abc import Sequence

from daedal.problem_analysis.layout import Layout
from daedal.structure.signature import Orders
from daedal.tabular import listing

_MOST_NAMED = 6


def dot(layout: Layout, names: Sequence[str]) -> str:
    """A digraph in the language of Graphviz; an arrow leads from a block to one that needs its unknowns.

    Dashed arrows are those of derivatives of lower order, which are known from the state where the block is solved.
    """
    block_of = {j: k for k, block in enumerate(layout.blocks) for j in block.part.columns}
    lines = ["digraph structure {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for k, block in enumerate(layout.blocks):
        equations = listing(map(str, block.part.rows[:_MOST_NAMED]), len(block.part.rows))
        unknowns = listing((names[j] for j in block.part.columns[:_MOST_NAMED]), len(block.part.columns))
        colour = "" if block.kind == "square" else ', color="#BB5566"'
        lines.append(f'  b{k} [label="{_quoted(unknowns)}\\nequations {_quoted(equations)}"{colour}];')
    needs, reads = (_edges(layout, block_of, orders) for orders in (layout.leading, layout.sigma))
    lines += [f"  b{a} -> b{b};" for a, b in sorted(needs)]
    lines += [f"  b{a} -> b{b} [style=dashed, constraint=false];" for a, b in sorted(reads - needs)]
    return "\n".join([*lines, "}", ""])


def _edges(layout: Layout, block_of: dict[int, int], orders: Orders) -> set[tuple[int, int]]:
    pairs = ((block_of[j], k) for k, block in enumerate(layout.blocks) for i in block.part.rows for j in orders[i])
    return {(a, b) for a, b in pairs if a != b}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
