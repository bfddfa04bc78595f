"""What several commands take: the name of a problem, its parameters, files to write."""

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

Name = Annotated[str, typer.Argument(help="Name of a problem, as in 'daedal list'.", show_default=False)]
RunName = Annotated[
    str,
    typer.Argument(help="Name of a problem, as in 'daedal list', or FILE.py:NAME of your own.", show_default=False),
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", metavar="PARAMETER=VALUE", help="A parameter of the problem; repeatable.")
]
End = Annotated[float | None, typer.Option(help="End of the interval; that of the source by default.")]
Plot = Annotated[Path | None, typer.Option(help="Write a plot to this file (.png, .pdf, .svg).")]


def assignments(texts: Iterable[str] | None, option: str) -> dict[str, Any]:
    """``["a=1", "b=text"]`` as a dictionary; a value is a Python literal or else a text."""
    values: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"'{text}' has not the form name=value", param_hint=option)
        try:
            values[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            values[name.strip()] = value.strip()
    return values


def literal(text: str | None, option: str) -> Any:
    """A Python literal, such as a list of numbers; None if there is none."""
    if text is None:
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise typer.BadParameter(f"'{text}' is no list of numbers, pair or mapping", param_hint=option) from None


def check_ending(option: str, path: Path | None, endings: Sequence[str]) -> None:
    if path is not None and path.suffix.lower().removeprefix(".") not in endings:
        known = ", ".join(f".{ending}" for ending in endings)
        raise typer.BadParameter(f"'{path}' must end in one of {known}", param_hint=option)


def check_figure(path: Path | None) -> None:
    """Refuse a file for a plot that Matplotlib cannot write."""
    if path is not None:
        from matplotlib.backend_bases import FigureCanvasBase

        check_ending("--plot", path, sorted(FigureCanvasBase.get_supported_filetypes()))
