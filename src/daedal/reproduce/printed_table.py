"""The printed tables: data files with one entry for each cell, and the identifiers by which they are known.

A file ``data/document.json`` has the title of the document, its source, and its tables. A table has a caption, notes,
columns (key and heading) and rows; a row has the parameters that name it and its ``cells``. A cell is the printed
text, or a dictionary with ``printed``, ``tag`` (printed, recomputed, doubtful, open), ``band``, ``reason``,
``recomputed`` and ``truncated``; see :mod:`daedal.reproduce.verdict`. Cells with the tag "recomputed", or with it by
default, hold values of an independent computation where the source prints none; ``recomputed`` is such a value beside
a printed one. Columns and tables may give defaults for their
cells. A reason ``@name`` stands in the ``reasons`` of the table. A row with the entry ``open``, a reason, is not
computed.
"""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any

import daedal

DOCUMENTS = ("stability", "book", "half-explicit", "second-order", "multibody")


@dataclass(frozen=True)
class Row:
    """A row: the parameters that name it, and its cells by column."""

    parameters: Mapping[str, Any]
    cells: Mapping[str, Mapping[str, Any]]
    open: str = ""

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter of the row, or `default`."""
        return self.parameters.get(name, default)

    @property
    def label(self) -> str:
        """Its parameters in words; numbers and options with their names."""
        return ", ".join(
            value if isinstance(value, str) and name not in ("D", "W", "R") else f"{name} = {_short(value)}"
            for name, value in self.parameters.items()
        )


@dataclass(frozen=True)
class PrintedTable:
    """A printed table, or the values of a figure.

    Attributes
    ----------
    document, number : str
        Its identifier is ``document/number``.
    caption : str
        What it shows.
    notes : tuple of str
        Remarks on the print and on how it is compared.
    columns : dict
        Key and heading of each column.
    rows : tuple of Row
    data : dict
        Everything else that the data file has for it.
    """

    document: str
    number: str
    caption: str
    notes: tuple[str, ...]
    columns: Mapping[str, str]
    rows: tuple[Row, ...]
    data: Mapping[str, Any]

    @property
    def identifier(self) -> str:
        """``document/number``."""
        return f"{self.document}/{self.number}"

    @property
    def title(self) -> str:
        """``Table 4.1``, or what the data file calls it."""
        return self.data.get("title", f"Table {self.number}")

    def compute(self) -> list[Mapping[str, Any] | None]:
        """What Daedal finds: for each row the values by column, None for rows that are open. Computed once."""
        return computed(self.identifier)

    def each(self, values: Any) -> list[Mapping[str, Any] | None]:
        """``values(row)`` for every row that is not open."""
        return [None if row.open else values(row) for row in self.rows]

    def by_column(self, runs: Sequence[Mapping[str, float]]) -> list[Mapping[str, Any] | None]:
        """The values of a table with a run for each column and a variable for each row."""
        columns = list(self.columns)
        return self.each(lambda row: {key: runs[i][row["variable"]] for i, key in enumerate(columns)})


@dataclass(frozen=True)
class Document:
    """A source: its title, where it appeared, and its tables by number."""

    name: str
    title: str
    source: str
    tables: Mapping[str, PrintedTable]


@cache
def computed(identifier: str) -> list[Mapping[str, Any] | None]:
    """The values of a table; the runs are in the module of its document."""
    (table,) = find([identifier])
    module = import_module(f"daedal.reproduce.{table.document.replace('-', '_')}")
    return module.TABLES[table.number](table)


@cache
def document(name: str) -> Document:
    """Read the data file of a document."""
    file = resources.files("daedal.reproduce") / "data" / f"{name}.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    tables = {number: _table(name, number, entry) for number, entry in content["tables"].items()}
    return Document(name, content["title"], content["source"], tables)


def names() -> list[str]:
    """The identifiers of all tables.

    Examples
    --------
    >>> "stability/4.4" in names()
    True
    """
    return [table.identifier for name in DOCUMENTS for table in document(name).tables.values()]


def find(identifiers: Iterable[str] = ()) -> list[PrintedTable]:
    """The tables with these identifiers, or of these documents; all of them if none is given.

    Examples
    --------
    >>> [table.title for table in find(["stability/4.4"])]
    ['Table 4.4']
    """
    wanted = list(dict.fromkeys(identifiers))
    if not wanted:
        wanted = list(DOCUMENTS)
    found: dict[str, PrintedTable] = {}
    for identifier in wanted:
        name, _, number = identifier.strip("/").partition("/")
        if name not in DOCUMENTS or (number and number not in document(name).tables):
            raise daedal.InvalidProblemError(f"there is no table {identifier!r}; {_suggestion(identifier, name)}")
        tables = document(name).tables
        for table in [tables[number]] if number else tables.values():
            found[table.identifier] = table
    return list(found.values())


def _suggestion(identifier: str, name: str) -> str:
    close = difflib.get_close_matches(identifier, [*names(), *DOCUMENTS], n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if name in DOCUMENTS:
        return f"{name} has {', '.join(document(name).tables)}"
    return f"the documents are {', '.join(DOCUMENTS)}; 'daedal reproduce --list' names all tables"


def _table(name: str, number: str, entry: dict[str, Any]) -> PrintedTable:
    defaults = entry.pop("cell", {})
    columns = {key: value if isinstance(value, dict) else {"heading": value} for key, value in entry["columns"].items()}
    cell_defaults = {
        key: defaults | {k: v for k, v in value.items() if k != "heading"} for key, value in columns.items()
    }
    rows = tuple(_row(row, cell_defaults, entry.get("reasons", {})) for row in entry.pop("rows"))
    headings = {key: value["heading"] for key, value in columns.items()}
    notes = tuple(entry.pop("notes", ()))
    return PrintedTable(name, number, entry.pop("caption"), notes, headings, rows, entry)


def _row(row: dict[str, Any], defaults: Mapping[str, dict[str, Any]], reasons: Mapping[str, str]) -> Row:
    reason = row.get("open", "")
    cells = {}
    for key, cell in row["cells"].items():
        given = cell if isinstance(cell, dict) else {"printed": cell}
        entry = defaults[key] | ({"tag": "open", "reason": reason} if reason else {}) | given
        entry["independent"] = "recomputed" in (defaults[key].get("tag"), given.get("tag"))
        if entry.get("reason", "").startswith("@"):
            entry["reason"] = reasons[entry["reason"][1:]]
        cells[key] = entry
    return Row({key: value for key, value in row.items() if key not in ("cells", "open")}, cells, reason)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
