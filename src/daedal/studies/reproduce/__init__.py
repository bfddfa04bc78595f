"""Printed tables, recomputed by Daedal and compared cell by cell.

``daedal reproduce`` on the command line; from Python:

>>> from daedal.studies import reproduce
>>> reproduce.run(["half-explicit/2"]).summary()[:54]
'1 table, 9 cells. 9 are printed: 9 agree in all digits'
"""

from daedal.studies.reproduce.printed_table import DOCUMENTS, PrintedTable, document, find, names
from daedal.studies.reproduce.reproduction import Cell, Reproduction, Result, run
from daedal.studies.reproduce.verdict import ORIGINS, VERDICTS

__all__ = [
    "DOCUMENTS",
    "ORIGINS",
    "VERDICTS",
    "Cell",
    "PrintedTable",
    "Reproduction",
    "Result",
    "document",
    "find",
    "names",
    "run",
]


def __dir__() -> list[str]:
    return __all__
