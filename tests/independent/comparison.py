"""The values of the programs of this folder beside those of the data files, which are read without Daedal's loader."""

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent.parent / "src" / "daedal" / "studies" / "reproduce" / "data"
DOCUMENTS = ("stability", "book", "half-explicit", "multibody")


def program(document: str) -> Any:
    """The module that computes the values of a document."""
    return import_module(f"independent.{document.replace('-', '_')}")


def compared(document: str, tables: Sequence[str] = ()) -> Iterator[tuple[str, str, str, str, float]]:
    """Table, row, column, text of the data file and value, of cells that are not printed or have a value beside."""
    content = json.loads((DATA / f"{document}.json").read_text(encoding="utf-8"))["tables"]
    module = program(document)
    for number in tables or module.TABLES:
        table = content[number]
        for row, values in zip(table["rows"], module.values(number, table), strict=True):
            name = ", ".join(f"{key} = {value}" for key, value in row.items() if key != "cells")
            for column, given in row["cells"].items():
                cell = _cell(table, column, given)
                if column in values and cell.get("tag") != "open" and {"independent", "recomputed"} & _marks(cell):
                    yield number, name, column, cell.get("recomputed", cell["printed"]), float(values[column])


def _cell(table: dict[str, Any], column: str, given: Any) -> dict[str, Any]:
    heading = table["columns"][column]
    defaults = table.get("cell", {}) | (heading if isinstance(heading, dict) else {})
    return defaults | (given if isinstance(given, dict) else {"printed": given})


def _marks(cell: dict[str, Any]) -> set[str]:
    return {cell.get("origin", "printed")} | cell.keys()
