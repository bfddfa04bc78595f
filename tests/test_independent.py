"""The independent values of the data files are those of the programs in ``independent``, which do without Daedal."""

import ast
import hashlib
import json
import os
import platform
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest

from daedal.common.object_store import folder
from daedal.studies.reproduce.verdict import meets, number, unit
from independent.comparison import DATA, DOCUMENTS, compared, program

QUICK = [("stability", "4.2"), ("half-explicit", "local"), ("half-explicit", "dense"), ("multibody", "7.9")]
QUICK += [("multibody", "7.10"), ("book", "step-change"), ("book", "stiff-limit"), ("book", "wrong-start")]
QUICK += [("book", "bdf-index1")]
ALL = [(document, table) for document in DOCUMENTS for table in program(document).TABLES]
# In double precision these programs have round-off of their own: less than a tenth, or a third after division by h.
ROUND_OFF = {
    "index1-steps": 1e-12,
    "index2-steps": 1e-12,
    "index3-steps": 1e-12,
    "bdf-index2": 1e-12,
    "bdf-index3": 1e-11,
    "bdf-index1": 2e-12,
    "wrong-start": 1e-8,
}


FOLDER = Path(__file__).parent / "independent"


def kept(document: str, table: str) -> list:
    """The cells of a table; what the programs compute is kept under the digest of all that it depends on.

    That is the programs, the data file with the arguments of its rows, and the packages that compute.
    """
    text = [path.read_text(encoding="utf-8") for path in [*sorted(FOLDER.glob("*.py")), DATA / f"{document}.json"]]
    text += [document, table, version("numpy"), version("scipy"), platform.python_version(), platform.machine()]
    digest = hashlib.sha256("\0".join(text).encode()).hexdigest()[:24]
    file = folder().parent / "tests" / f"independent-{digest}.json"
    if file.exists():
        return json.loads(file.read_text(encoding="utf-8"))
    cells = list(compared(document, [table]))
    with suppress(OSError):  # where nothing can be kept it is computed in every run
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(cells), encoding="utf-8")
        part.replace(file)
    return cells


def agree(table: str, text: str, value: float) -> bool:
    """To one unit of the last digit; orders, which are printed with one or two digits, to 0.05; round-off."""
    if meets(text, value) or abs(value - number(text)) <= unit(text) * 1.001:
        return True
    return abs(value) < ROUND_OFF.get(table, 0.0) and abs(value / number(text) - 1.0) < 0.6


@pytest.mark.parametrize(
    ("document", "table"),
    [pair if pair in QUICK else pytest.param(*pair, marks=pytest.mark.slow) for pair in ALL],
)
def test_values_of_the_data_files(document, table):
    cells = kept(document, table)
    assert cells
    wrong = [
        f"{row}, {column}: {text} / {value:.6g}"
        for _, row, column, text, value in cells
        if not agree(table, text, value)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parent / "independent").glob("*.py")), ids=lambda file: file.stem
)
def test_the_programs_do_without_daedal(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0] == "daedal" for name in names)
