"""Tables of text columns, as plain text, in notebooks and in colour; lists, counts and derivatives in sentences."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

_CELL = "padding: 1px 12px 1px 0; text-align: "
_ALIGNED: dict[str, Literal["left", "right"]] = {"l": "left", "r": "right"}


@dataclass(frozen=True)
class Tabular:
    """A table, shown as text by ``print``, as HTML by notebooks and with styles by Rich consoles.

    Attributes
    ----------
    columns : str
        As in LaTeX's ``tabular``: a letter ``l`` or ``r`` for each column.
    rows : sequence of sequences
        The cells, which are converted to strings; Rich consoles show a ``rich.text.Text`` with its style. A row that
        is a single string spans all columns.
    header : sequence of str
        The headings; if empty, the table has none.
    indent : int
        Spaces before each line.
    width : int, optional
        Largest length of a line; the last column is wrapped.
    least : int
        Smallest width of the first column.

    Examples
    --------
    >>> from daedal.common.tabular import Tabular
    >>> print(Tabular("lr", [("Euler", 1), ("BDF", 5)], ("method", "order")))
    method  order
    Euler       1
    BDF         5
    """

    columns: str
    rows: Sequence[Any]
    header: Sequence[str] = ()
    indent: int = 0
    width: int | None = None
    least: int = 0

    def __str__(self) -> str:
        lines = [self.header, *self.rows] if self.header else list(self.rows)
        cells = [line if isinstance(line, str) else [str(cell) for cell in line] for line in lines]
        full = [line for line in cells if not isinstance(line, str)]
        widths = [max((len(line[k]) for line in full), default=0) for k in range(len(self.columns))]
        widths[0] = max(widths[0], self.least)
        return "\n".join(
            " " * self.indent + line if isinstance(line, str) else self._line(line, widths) for line in cells
        )

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        padded = [
            cell.ljust(width) if column == "l" else cell.rjust(width)
            for cell, width, column in zip(cells, widths, self.columns, strict=True)
        ]
        if self.width is None:
            return (" " * self.indent + "  ".join(padded)).rstrip()
        start = " " * self.indent + "".join(cell + "  " for cell in padded[:-1])
        return textwrap.fill(cells[-1], self.width, initial_indent=start, subsequent_indent=" " * len(start))

    def _repr_html_(self) -> str:
        return str(self.__html__())

    def __html__(self) -> str:
        """The table as HTML, with escaped cells."""
        from markupsafe import Markup

        def line(cells: Any, first: str, others: str) -> Markup:
            if isinstance(cells, str):
                return Markup('<tr><td colspan="{}">{}</td></tr>').format(len(self.columns), cells)
            tags = [first, *[others] * (len(self.columns) - 1)]
            parts = (
                Markup('<{0} style="{1}">{2}</{0}>').format(tag, _CELL + _ALIGNED[column], cell)
                for cell, column, tag in zip(cells, self.columns, tags, strict=True)
            )
            return Markup("<tr>{}</tr>").format(Markup("").join(parts))

        header = [line(self.header, "th", "th")] if self.header else []
        first = "td" if self.header else "th"  # without headings, the first cell is the label of its row
        body = Markup("").join([*header, *(line(row, first, "td") for row in self.rows)])
        return Markup('<table style="margin: 0">{}</table>').format(body)

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(self.header))
        for heading, column in zip(self.header or [""] * len(self.columns), self.columns, strict=True):
            table.add_column(Text(str(heading)), justify=_ALIGNED[column], no_wrap=column == "r")
        for row in self.rows:
            table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
        return table


class FunctionTable(dict):
    """Table {name: description} of how the functions of a problem are evaluated."""

    def __repr__(self) -> str:
        return str(Tabular("ll", list(self.items())))

    __str__ = __repr__

    def summary(self) -> list[tuple[str, str]]:
        """Rows of the short form: one for all traced functions, one for each other function."""
        traced = {name: words for name, words in self.items() if words.startswith(("traced", "exact"))}
        others = [row for row in self.items() if row[0] not in traced]
        if others and len({words for _, words in others}) == 1 and not traced:
            return [("functions", others[0][1])]
        counts = [re.search(r"(\d+) operation", words) for words in traced.values()]
        count = sum(int(found.group(1)) for found in counts if found)
        exact = ", exact derivatives" if any(words.startswith("exact") for words in traced.values()) else ""
        return [("functions", f"traced, {plural(count, 'operation')}{exact}")] * bool(traced) + others


def listing(parts: Iterable[str], total: int | None = None) -> str:
    """``a``, ``a and b``, ``a, b and c``, or ``none``; ``a, b and 3 more`` if `total` exceeds the number of parts."""
    named = list(parts)
    more = (total or 0) - len(named)
    if more > 0:
        named.append(f"{more} more")
    if not named:
        return "none"
    return named[0] if len(named) == 1 else ", ".join(named[:-1]) + " and " + named[-1]


def plural(count: int, noun: str) -> str:
    """``1 equation``, ``2 equations``."""
    return f"{count} {noun if count == 1 else re.sub('(?<![aeiou])y$', 'ie', noun) + 's'}"


def times(count: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def derivative_name(name: str, order: int) -> str:
    """``x``, ``x'``, ``x''``, ``x'''``, ``x^(4)``."""
    return name + ("'" * order if order <= 3 else f"^({order})")


def duration(seconds: float) -> str:
    """A time in seconds as text, with two digits and a suitable unit.

    >>> duration(0.00153), duration(0.4), duration(75.0)
    ('1.5 ms', '0.4 s', '75 s')
    """
    for limit, factor, unit in ((1e-3, 1e6, "us"), (0.1, 1e3, "ms")):
        if seconds < limit:
            return _two_digits(seconds * factor) + f" {unit}"
    return _two_digits(seconds) + " s"


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"
