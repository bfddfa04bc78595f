"""The block-triangular form as a picture, in SVG and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from daedal.common.tabular import listing
from daedal.index.structure.signature import DulmageMendelsohn, Orders, SystemPart


@dataclass(frozen=True)
class DiagonalBlock:
    """A diagonal block: its first row and column in the picture, and its contents."""

    # position of its first entry
    row: int
    column: int
    part: SystemPart  # the equations and unknowns of the picture
    kind: str  # "square", "over" (more equations than unknowns) or "under"


@dataclass(frozen=True)
class BlockLayout:
    """A structure in block-triangular order."""

    # Equations and unknowns in display order
    rows: list[int]
    columns: list[int]
    blocks: list[DiagonalBlock]  # the diagonal blocks, in the order in which they can be solved
    sigma: Orders  # {unknown: highest derivative} for each equation, in the original order
    leading: Orders  # the entries that form the system Jacobian
    matched: list[int]  # the unknown that each equation determines, -1 if none

    @classmethod
    def of(cls, parts: DulmageMendelsohn, sigma: Orders, leading: Orders) -> BlockLayout:
        """Order the parts: overdetermined ones first, then the square blocks in the order of their dependence."""
        matched = [int(j) for j in parts.matching]
        rows, columns, blocks = list[int](), list[int](), list[DiagonalBlock]()
        named = [(parts.over, "over"), *((part, "square") for part in parts.blocks), (parts.under, "under")]
        for part, kind in named:
            if part.rows or part.columns:
                blocks.append(DiagonalBlock(len(rows), len(columns), part, kind))
                rows += part.rows
                paired = [matched[i] for i in part.rows if matched[i] >= 0]
                columns += paired + [j for j in part.columns if j not in set(paired)]
        return cls(rows, columns, blocks, sigma, leading, matched)

    def places(self) -> list[tuple[int, int, int, str]]:
        """All entries: row and column of the picture, order of the derivative, and "matched", "leading" or "other"."""
        row_of = {i: k for k, i in enumerate(self.rows)}
        column_of = {j: k for k, j in enumerate(self.columns)}
        found = []
        for i, entries in enumerate(self.sigma):
            for j, order in entries.items():
                kind = "matched" if self.matched[i] == j else "leading" if j in self.leading[i] else "other"
                found.append((row_of[i], column_of[j], order, kind))
        return found


# --- pictures ---------------------------------------------------------------------------------------------------------

INK, FAINT = "#222222", "#666666"
_ENTRIES = {"matched": "#004488", "leading": "#6699CC", "other": "#BBBBBB"}
_BLOCKS = {"square": ("#FFF6E0", "#DDAA33"), "over": ("#F9E3E7", "#BB5566"), "under": ("#F9E3E7", "#BB5566")}
_WIDTH = 420.0  # width of the matrix if labels are not shown
_LABELLED = 40  # maximum number of unknowns that are named in the picture
_CELLS = 300  # number of unknowns beyond which neighbouring entries share a square
_LONGEST_NAME = 14
_IN_LETTERS, _WIDEST = 30, 110  # maximum number of rows, and of characters in a row, of a picture as text


def svg(layout: BlockLayout, names: Sequence[str], offsets: tuple[Sequence[int], Sequence[int]] | None) -> str:
    """The picture in SVG; offsets (c, d) are shown in the margins if there is space for names."""
    n = max(len(layout.rows), 1)
    labelled = n <= _LABELLED
    cell = 22.0 if labelled else _WIDTH / min(n, _CELLS)
    scale = 1.0 if n <= _CELLS else _CELLS / n
    size = n * scale * cell
    left = top = 12.0
    if labelled:
        longest = max(len(_short(names[j])) for j in layout.columns)
        left, top = 74.0 + 40.0 * (offsets is not None), 24.0 + 7.0 * longest * 0.75 + 20.0 * (offsets is not None)
    parts = [_frame(block, cell * scale, left, top) for block in _shown(layout, n)]
    parts += _entries(layout, n, cell, scale, left, top)
    if labelled:
        parts += _labels(layout, names, offsets, cell, left, top)
    width, height, legend = left + max(size, 250.0) + 12.0, top + size + 36.0, top + size + 16.0
    parts += _legend(left, legend)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'font-family="sans-serif" font-size="11"><title>Block-triangular form of {n} equations</title>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )


def letters(layout: BlockLayout, names: Sequence[str], offsets: tuple[Sequence[int], Sequence[int]] | None) -> str:
    """The picture as text: digits are orders of derivatives, bracketed if an equation determines them.

    Larger structures are listed by blocks.
    """
    n = len(layout.rows)
    header = [_short(names[j], 7) for j in layout.columns]
    widths = [max(4, len(name) + 2) for name in header]
    if n > _IN_LETTERS or sum(widths) > _WIDEST:
        return _listed(layout.blocks, names)
    cells = [["   ."] * n for _ in range(n)]
    for row, column, order, kind in layout.places():
        cells[row][column] = {"matched": f" [{order}]", "leading": f"  {order} ", "other": f" ({order})"}[kind]
    first = len(f"equation {n}") + 1
    lines = [" " * first + "".join(_placed(name, w) for name, w in zip(header, widths, strict=True))]
    if offsets is not None:
        lines[0] += "   c"
    begins = {block.row: block for block in layout.blocks}
    for row, i in enumerate(layout.rows):
        if row in begins and row:
            lines.append(" " * first + "-" * sum(widths[: begins[row].column + max(1, len(begins[row].part.columns))]))
        text = f"equation {i}".ljust(first)
        text += "".join(_placed(cell.strip(), w) for cell, w in zip(cells[row], widths, strict=True))
        lines.append(text + (f"{offsets[0][i]:4d}" if offsets is not None else ""))
    if offsets is not None:
        lines.append("d".rjust(first) + "".join(_placed(str(offsets[1][j]), w) for j, w in zip(layout.columns, widths)))
    return "\n".join(line.rstrip() for line in lines)


def _placed(text: str, width: int) -> str:
    """Align a digit with the end of its heading; brackets extend on both sides."""
    return text.rjust(width) if text[0] in "[(" and text[-1] in "])" else f"{text} ".rjust(width)


def _listed(blocks: Sequence[DiagonalBlock], names: Sequence[str]) -> str:
    single = sum(len(block.part.rows) == len(block.part.columns) == 1 for block in blocks)
    lines = [f"{len(blocks)} block{'s' * (len(blocks) != 1)}, {single} of them one equation in one unknown"]
    largest = sorted(blocks, key=lambda block: -len(block.part.rows))[:5]
    for block in (block for block in largest if len(block.part.rows) > 1 or block.kind != "square"):
        equations, unknowns = block.part.rows, block.part.columns
        which = listing((names[j] for j in unknowns[:4]), len(unknowns))
        kind = {"square": "", "over": "overdetermined: ", "under": "underdetermined: "}[block.kind]
        lines.append(f"  {kind}{len(equations)} equations for {which}")
    return "\n".join(lines)


def _shown(layout: BlockLayout, n: int) -> list[DiagonalBlock]:
    """The blocks to draw: all, or only the larger ones if the structure is large."""
    least = 0 if n <= _CELLS else n / _CELLS
    return [block for block in layout.blocks if max(len(block.part.rows), len(block.part.columns)) > least]


def _frame(block: DiagonalBlock, cell: float, left: float, top: float) -> str:
    fill, line = _BLOCKS[block.kind]
    x, y = left + block.column * cell, top + block.row * cell
    width, height = len(block.part.columns) * cell, len(block.part.rows) * cell
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{fill}" stroke="{line}" '
        f'stroke-width="{1.2 if cell > 4 else 0.5}"/>'
    )


def _entries(layout: BlockLayout, n: int, cell: float, scale: float, left: float, top: float) -> list[str]:
    """Squares with the order of the derivative if there is space. A shared square has the colour of its most important
    entry."""
    rank = list(_ENTRIES)
    squares: dict[tuple[int, int], tuple[str, int]] = {}
    for row, column, order, kind in layout.places():
        place = int(row * scale), int(column * scale)
        if place not in squares or rank.index(kind) < rank.index(squares[place][0]):
            squares[place] = kind, order
    found, inset = [], 2.0 if cell > 10 else 0.0
    for (row, column), (kind, order) in sorted(squares.items()):
        x, y, side = left + column * cell + inset, top + row * cell + inset, cell - 2 * inset
        found.append(
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{side:.2f}" height="{side:.2f}" fill="{_ENTRIES[kind]}"'
            f"{' rx=' + chr(34) + '3' + chr(34) if inset else ''}/>"
        )
        if n <= _LABELLED:
            ink = INK if kind == "other" else "white"
            x, y = left + (column + 0.5) * cell, top + (row + 0.5) * cell + 4.0
            found.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{ink}">{order}</text>')
    return found


def _labels(layout: BlockLayout, names, offsets, cell: float, left: float, top: float) -> list[str]:
    found = []
    above = 20.0 if offsets is not None else 0.0
    for k, i in enumerate(layout.rows):
        y = top + (k + 0.5) * cell + 4.0
        if offsets is not None:
            found.append(
                f'<text x="{left - 16:.1f}" y="{y:.1f}" text-anchor="middle" fill="{FAINT}">{offsets[0][i]}</text>'
            )
        x = left - 6.0 - (24.0 if offsets is not None else 0.0)
        found.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="end" fill="{INK}">equation {i}</text>')
    for k, j in enumerate(layout.columns):
        x, y = left + (k + 0.5) * cell, top - 6.0
        if offsets is not None:
            found.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{FAINT}">{offsets[1][j]}</text>')
        x, y = x + 4.0, y - above
        name = escape(_short(names[j]))
        found.append(f'<text transform="translate({x:.1f} {y:.1f}) rotate(-60)" fill="{INK}">{name}</text>')
    if offsets is not None:
        found.append(f'<text x="{left - 16:.1f}" y="{top - 6:.1f}" text-anchor="middle" fill="{FAINT}">c \\ d</text>')
    return found


def _legend(x: float, y: float) -> list[str]:
    found, words = [], {"matched": "determines", "leading": "occurs", "other": "known from state"}
    for kind, text in words.items():
        found.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="10" height="10" rx="2" fill="{_ENTRIES[kind]}"/>')
        found.append(f'<text x="{x + 14:.1f}" y="{y + 9:.1f}" fill="{FAINT}">{text}</text>')
        x += 24.0 + 6.2 * len(text)
    return found


def _short(name: str, longest: int = _LONGEST_NAME) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"


# --- the structure as a graph for Graphviz: blocks of equations and their dependence ----------------------------------

_MOST_NAMED = 6


def dot(layout: BlockLayout, names: Sequence[str]) -> str:
    """A digraph in the language of Graphviz; an arrow points from a block to one that needs its unknowns.

    Dashed arrows represent lower-order derivatives, which are known from the state when the block is solved.
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


def _edges(layout: BlockLayout, block_of: dict[int, int], orders: Orders) -> set[tuple[int, int]]:
    pairs = ((block_of[j], k) for k, block in enumerate(layout.blocks) for i in block.part.rows for j in orders[i])
    return {(a, b) for a, b in pairs if a != b}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
