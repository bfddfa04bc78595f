"""How commands print and how they end when something is wrong."""

import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from daedal.tabular import Tabular

_NAMES = 10  # characters; all tables of a command begin their second column at the same place


def print_rows(rows: Sequence[tuple[str, str]], wrap: bool = False) -> None:
    """Names and values, two columns."""
    width = max(40, min(shutil.get_terminal_size().columns, 120)) if wrap else None
    print(Tabular("ll", rows, indent=2, width=width, least=_NAMES))


def refuse(message: str, code: int = 1) -> NoReturn:
    """End with an error."""
    sys.stdout.flush()
    print(f"daedal: {message}", file=sys.stderr)
    raise typer.Exit(code)
