"""``daedal list``."""

from daedal.library.contents import contents
from daedal.tabular import Tabular


def list_problems() -> None:
    """List the problems of the library."""
    from rich.console import Console

    rows = [(name, entry["index"], entry["unknowns"], entry["title"]) for name, entry in contents().items()]
    Console(highlight=False).print(Tabular("lrrl", rows, ("name", "index", "unknowns", "title")))
