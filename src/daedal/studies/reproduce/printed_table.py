"""Printed tables: data files with an entry for each cell, and identifiers.

A file ``data/document.json`` has the title of the document, its source, and its tables. A table has a caption, notes,
columns (key and heading) and rows; a row has the parameters that identify it and its ``cells``. A cell is the printed
text, or a dictionary with these entries:

* ``printed``: the text in the source; or, if the ``origin`` of the cell is "derived" or "independent", a value that
  follows from the source or was computed independently.
* ``band`` and ``basis``: admissible deviation of a computed value to either side, and its justification.
* ``tag``: "doubtful print", "not reproduced" or "open", with a ``reason``.
* ``recomputed``: the value of an independent computation in addition to a printed one, or the value that should be
  printed.
* ``truncated``: the source truncates digits.
* ``missing``: information that the cell depends on and the source omits.

Columns and tables (``cell``) provide defaults for their cells; null removes a default. A text ``@name`` is looked up in
the ``texts`` of the table or of the document. A row with an entry ``open``, whose value is a reason, is not computed.
All other entries are rejected.
"""

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module, resources
from typing import Any

import daedal
from daedal.studies.reproduce.verdict import BASES, DOUBTFUL, FAILED, OPEN, ORIGINS, is_number, kind_of, limits, number

TAGS = (DOUBTFUL, FAILED, OPEN)
WIDEST = 10.0  # maximum factor between the printed value and either end of a band
_SLACK = 1.0 + 1e-12  # tolerance for round-off in this factor
_KEYS = {"printed", "tag", "origin", "band", "basis", "reason", "recomputed", "truncated", "missing"}
_BANDS = {"relative", "absolute", "units", "factor", "range"}


def broken_rules(entry: Mapping[str, Any]) -> Iterator[str]:
    """Violations of the rules for the entries of a cell.

    Examples
    --------
    >>> list(broken_rules({"printed": "43", "band": {"relative": 0.35}}))
    ['a band without basis']
    >>> list(broken_rules({"printed": "0.5", "band": {"absolute": 1.0}, "basis": "observed: another code"}))
    ['a band that reaches zero, although the printed value is a size']
    """
    if unknown := entry.keys() - _KEYS:
        yield f"unknown entries {sorted(unknown)}"
    if entry.get("origin", ORIGINS[0]) not in ORIGINS:
        yield f"unknown origin {entry['origin']!r}"
    yield from _broken_by_tag(entry)
    if "band" in entry:
        yield from _broken_by_band(entry)
    elif "basis" in entry:
        yield "a basis without a band"


def _broken_by_tag(entry: Mapping[str, Any]) -> Iterator[str]:
    tag, reason = entry.get("tag"), entry.get("reason", "")
    if tag is None:
        if reason:
            yield "a reason without a tag; give the justification of a band as its basis"
        return
    if tag not in TAGS:
        yield f"unknown tag {tag!r}"
    if not reason or "unknown cause" in reason:
        yield f"{tag} without a reason"
    if tag == DOUBTFUL and "band" not in entry and "recomputed" not in entry:
        yield "a doubtful print without the corrected value"
    if tag == FAILED and "band" in entry:
        yield "not reproduced, but with a band"


def _broken_by_band(entry: Mapping[str, Any]) -> Iterator[str]:
    band, basis = entry["band"], entry.get("basis", "")
    kind, _, detail = basis.partition(":")
    if not basis:
        yield "a band without basis"
    elif kind not in BASES:
        yield f"unknown basis {basis!r}"
    elif kind == "algorithm" and not detail.strip():
        yield "a band due to the algorithm that does not name the difference"
    if len(band) != 1 or not band.keys() <= _BANDS:
        yield f"unknown band {dict(band)}"
    elif not is_number(entry["printed"]) or math.isinf(number(entry["printed"])):
        yield "a band around a text that is not a number"
    else:
        yield from _broken_by_limits(entry, *limits(band, entry["printed"]))


def _broken_by_limits(entry: Mapping[str, Any], low: float, high: float) -> Iterator[str]:
    """Violations by a band: it must have finite ends, contain the printed value, and not reach zero for a size.

    Bands for round-off and in units of printed digits may reach zero.
    """
    size = number(entry["printed"])
    size = abs(size) if "factor" in entry["band"] else size
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        yield "a band without two ends"
        return
    doubtful = entry.get("tag") == DOUBTFUL
    if not doubtful and not low <= size <= high:
        yield "a band that does not contain the printed value"
    kind = kind_of(entry.get("basis", ""))
    by_units = kind == "printed digits" and "units" in entry["band"]
    if kind == "machine constants" or by_units or size == 0.0 or doubtful:
        return
    ratios = [abs(end / size) for end in (low, high)]
    if low * high <= 0.0:
        yield "a band that reaches zero, although the printed value is a size"
    elif max(ratios) > WIDEST * _SLACK or min(ratios) * WIDEST * _SLACK < 1.0:
        yield f"a band wider than a factor of {WIDEST:g}"


# --- tables -----------------------------------------------------------------------------------------------------------

DOCUMENTS = ("stability", "book", "half-explicit", "second-order", "multibody")


@dataclass(frozen=True)
class Row:
    """A row: its parameters, its cells by column, and the reason if it is open."""

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
        """Parameters as text; numbers and options with their names."""
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
        Parts of the identifier ``document/number``.
    caption : str
        Description of the table.
    notes : tuple of str
        Remarks on the printed values and on the comparison.
    columns : dict
        Key and heading of each column.
    rows : tuple of Row
    data : dict
        All other entries of the data file.
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
        """The title in the data file; by default "Table" and the number."""
        return self.data.get("title", f"Table {self.number}")

    def compute(self) -> list[Mapping[str, Any] | None]:
        """Computed values for each row by column, None for open rows; cached."""
        return computed(self.identifier)

    def each(self, values: Any) -> list[Mapping[str, Any] | None]:
        """``values(row)`` for every row that is not open."""
        return [None if row.open else values(row) for row in self.rows]

    def by_column(self, runs: Sequence[Mapping[str, float]]) -> list[Mapping[str, Any] | None]:
        """Values of a table in which a column is a run and a row is a variable."""
        columns = list(self.columns)
        return self.each(lambda row: {key: runs[i][row["variable"]] for i, key in enumerate(columns)})


@dataclass(frozen=True)
class Document:
    """A source: title, bibliographic data, and tables by number."""

    name: str
    title: str
    source: str
    tables: Mapping[str, PrintedTable]


@cache
def computed(identifier: str) -> list[Mapping[str, Any] | None]:
    """Compute the values of a table with the functions in the module of its document."""
    (table,) = find([identifier])
    module = import_module(f"daedal.studies.reproduce.tables_{table.document.replace('-', '_')}")
    return module.TABLES[table.number](table)


@cache
def document(name: str) -> Document:
    """Read the data file of a document."""
    file = resources.files("daedal.studies.reproduce") / "data" / f"{name}.json"
    return read_document(name, json.loads(file.read_text(encoding="utf-8")))


def read_document(name: str, content: dict[str, Any]) -> Document:
    """Convert the content of a data file; ValueError if a cell violates a rule."""
    texts = content.get("texts", {})
    tables = {number: _table(name, number, entry, texts) for number, entry in content["tables"].items()}
    return Document(name, content["title"], content["source"], tables)


def names() -> list[str]:
    """Identifiers of all tables.

    Examples
    --------
    >>> "stability/4.4" in names()
    True
    """
    return [table.identifier for name in DOCUMENTS for table in document(name).tables.values()]


def find(identifiers: Iterable[str] = ()) -> list[PrintedTable]:
    """Find tables by identifiers of tables or documents; by default all tables.

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
        return f"the tables of {name} are {', '.join(document(name).tables)}"
    return f"the documents are {', '.join(DOCUMENTS)}; 'daedal reproduce --list' names all tables"


def _table(name: str, number: str, entry: dict[str, Any], texts: Mapping[str, str]) -> PrintedTable:
    defaults = entry.pop("cell", {})
    columns = {key: value if isinstance(value, dict) else {"heading": value} for key, value in entry["columns"].items()}
    cell_defaults = {
        key: defaults | {k: v for k, v in value.items() if k != "heading"} for key, value in columns.items()
    }
    texts = dict(texts) | entry.pop("texts", {})
    rows = tuple(_row(f"{name}/{number}", row, cell_defaults, texts) for row in entry.pop("rows"))
    headings = {key: value["heading"] for key, value in columns.items()}
    notes = tuple(entry.pop("notes", ()))
    return PrintedTable(name, number, entry.pop("caption"), notes, headings, rows, entry)


def _row(table: str, row: dict[str, Any], defaults: Mapping[str, dict[str, Any]], texts: Mapping[str, str]) -> Row:
    reason = row.get("open", "")
    found = Row({key: value for key, value in row.items() if key not in ("cells", "open")}, {}, reason)
    cells = {}
    for key, given in row["cells"].items():
        entry = defaults[key] | (given if isinstance(given, dict) else {"printed": given})
        if reason:
            entry |= {"tag": "open", "reason": reason}
        cells[key] = _without_defaults(entry, texts)
        for broken in broken_rules(cells[key]):
            raise ValueError(f"{table}, {found.label}, {key}: {broken}")
    return replace(found, cells=cells)


def _without_defaults(entry: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Complete a cell: replace names of texts, remove nulls and entries that do not apply with the tag of the cell."""
    void: tuple[str, ...] = ("band", "basis") if entry.get("tag") in ("open", "not reproduced") else ()
    if entry.get("tag") == "doubtful print" and "recomputed" in entry:
        void = ("band", "basis")
    found = {key: value for key, value in entry.items() if value is not None and key not in void}
    for key in ("basis", "reason", "missing"):
        if found.get(key, "").startswith("@"):
            found[key] = texts[found[key][1:]]
    return {"origin": "printed"} | found


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
