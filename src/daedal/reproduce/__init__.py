"""The printed tables of the sources, computed again by Daedal and compared cell by cell.

``daedal reproduce`` on the command line; from Python:

>>> from daedal import reproduce
>>> print(reproduce.run(["half-explicit/2"]).summary().split(":")[0])
9 cells
"""

from daedal.reproduce.report import Cell, Report, Result, run
from daedal.reproduce.table import DOCUMENTS, Table, document, find, names
from daedal.reproduce.verdict import VERDICTS

__all__ = ["DOCUMENTS", "VERDICTS", "Cell", "Report", "Result", "Table", "document", "find", "names", "run"]


def __dir__() -> list[str]:
    return __all__
