"""``daedal list``."""

import daedal
from daedal.cli.model import parameters_of, unknowns
from daedal.tabular import Tabular


def list_problems() -> None:
    """List the problems of the library."""
    from rich.console import Console

    rows = []
    for name in daedal.library.names():
        # Uncompiled, so that a list does not have to wait for compilers
        uncompiled = {"compiled": False} if "compiled" in parameters_of(name) else {}
        model = daedal.library.get(name, **uncompiled)
        rows.append((name, model.index if model.solvable else "-", unknowns(model.problem), model.title))
    Console(highlight=False).print(Tabular("lrrl", rows, ("name", "index", "unknowns", "title")))
