"""Commands that show information: ``daedal list``, ``show``, ``reproduce``, ``doctor``, ``studio`` and ``gallery``."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import daedal
from daedal.cli.common import (
    End,
    Name,
    Parameters,
    RunName,
    assignments,
    find_model,
    is_own,
    largest_error,
    own_model,
    parameters_of,
    print_rows,
    refuse,
    short,
    span_of,
)
from daedal.common.tabular import Tabular
from daedal.library.contents import contents, unknowns

if TYPE_CHECKING:
    from daedal.studies.reproduce import PrintedTable, Reproduction, Result


def list_problems() -> None:
    """List the problems of the library."""
    from rich.console import Console

    rows = [(name, entry["index"], entry["unknowns"], entry["title"]) for name, entry in contents().items()]
    Console(highlight=False).print(Tabular("lrrl", rows, ("name", "index", "unknowns", "title")))


# --- ``daedal show`` --------------------------------------------------------------------------------------------------


def show(name: Name) -> None:
    """Describe a problem: what it models, its parameters, its source."""
    model = find_model(name, {})
    t0, t1 = model.t_span
    reference = "none"
    if model.reference is not None:
        reference = f"t = {model.reference.t:g}, {model.reference.source}"
    parameters = ", ".join(f"{key}={value.default!r}" for key, value in parameters_of(name).items())
    print(f"{model.title}\n")
    print_rows(
        [
            ("about", model.description),
            ("unknowns", f"{unknowns(model.problem)}, {model.index_in_words}"),
            ("interval", f"{t0:g} to {t1:g}"),
            ("parameters", parameters or "none"),
            ("options", ", ".join(f"{key}={short(value)}" for key, value in model.options.items()) or "none"),
            ("reference", reference),
            ("source", model.source),
        ],
        wrap=True,
    )


# --- ``daedal reproduce`` ---------------------------------------------------------------------------------------------


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables, such as stability/4.4, or all tables of documents, such as half-explicit; by default all.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the tables without computing them.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the cells as JSON, or write them to the given FILE.json.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the web page.")] = Path("out/reproduction"),
    page: Annotated[bool, typer.Option("--page/--no-page", help="Whether to write the web page.")] = True,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print one line for each table instead of every cell.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the overview of the documentation, with a line for each document.")
    ] = False,
) -> None:
    """Recompute the printed tables of the sources and compare them cell by cell.

    Example: daedal reproduce stability/4.4 half-explicit

    The exit code is 1 if a cell is not reproduced and the data files do not explain the difference.
    """
    from rich.console import Console

    from daedal.studies.reproduce import find
    from daedal.studies.reproduce.terminal import print_list

    identifiers, files = _split(tables or [], json)
    try:
        wanted = find(identifiers)
    except daedal.InvalidProblemError as error:
        refuse(str(error), code=2)
    if list_:
        print_list(Console(highlight=False), wanted)
        return
    report = _run(wanted, quiet=(json and not files) or markdown, summary=summary)
    if json and not files:
        print(report.to_json())
    if markdown:
        print(f"{report.summary()}\n\n{report.markdown()}")
    try:
        for file in files:
            report.write_json(file)
        written = [str(file) for file in files]
        if page:
            from daedal.studies.reproduce.page import write_page

            written.append(str(write_page(report, out)))
    except OSError as error:
        refuse(f"cannot write: {error}")
    for path in written:
        print(f"written: {path}", file=sys.stderr if json and not files else sys.stdout)
    if not report.holds:
        raise typer.Exit(1)


def _split(arguments: list[str], json: bool) -> tuple[list[str], list[Path]]:
    """The identifiers and the JSON file among the arguments of ``daedal reproduce``."""
    files = [text for text in arguments if json and text.endswith(".json")]
    return [text for text in arguments if text not in files], [Path(file) for file in files]


def _run(tables: list[PrintedTable], quiet: bool, summary: bool) -> Reproduction:
    """Compute the tables, print each as soon as it is computed, then the summary."""
    from rich.console import Console

    from daedal.studies.reproduce import run
    from daedal.studies.reproduce.terminal import print_cells, print_overview

    if quiet:
        return run([table.identifier for table in tables])
    console = Console(highlight=False)

    def done(result: Result) -> None:
        if not summary:
            print_cells(console, result)

    report = run([table.identifier for table in tables], done=done)
    if summary or len(tables) > 1:
        print_overview(console, report)
    console.print(f"\n[bold]{report.summary()}[/bold]", soft_wrap=True)
    return report


# --- ``daedal doctor`` ------------------------------------------------------------------------------------------------

_SELF_TEST_ERROR = 1e-4  # largest relative error of the self-test, a hundred times the tolerance of its problem


def doctor() -> None:
    """Check the installation: print versions and caches, and compare a solution with its reference."""
    print(f"Daedal {daedal.__version__}")
    print_rows(
        [
            ("python", f"{platform.python_version()} ({platform.system()} {platform.machine()})"),
            *((package, _version_of(package)) for package in ("numpy", "scipy", "llvmlite", "numba", "matplotlib")),
            ("cores", str(cores())),
        ]
    )
    try:
        rows, healthy = _self_test()
    except Exception as error:  # the report is completed after any failure
        rows, healthy = [("self-test", f"failed with {type(error).__name__}: {error}")], False
    print_rows([*_kernel_report(), *rows])
    if not healthy:
        refuse("the self-test failed; reinstall Daedal and its dependencies, or report this output")
    print("All is well.")


def _version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed; needed only for user functions" if package == "numba" else "missing"


def cores() -> int:
    """Number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _self_test() -> tuple[list[tuple[str, str]], bool]:
    """Solve Robertson's reaction with plain and with traced equations, and compare with the reference."""
    model = daedal.library.robertson()
    assert model.reference is not None
    rows, healthy = [], True
    for kind, compile in (("called", "never"), ("traced", "always")):
        first = daedal.solve(model.problem, model.t_span, model.initial, compile=compile, **model.options)
        again = daedal.solve(model.problem, model.t_span, model.initial, compile=compile, **model.options)
        error = largest_error(model.reference, again)
        right = error is not None and error.size < _SELF_TEST_ERROR and np.array_equal(first.y, again.y)
        seconds = f"first {first.stats.seconds:.2f} s, again {again.stats.seconds:.4f} s"
        rows.append((kind, f"robertson {seconds}, error {error}: {'right' if right else 'WRONG'}"))
        healthy = healthy and right
    return rows, healthy


def _kernel_report() -> list[tuple[str, str]]:
    """Rows on the machine code of kernels and of traced functions."""
    from daedal.common import object_store
    from daedal.kernels.levels import host_levels
    from daedal.kernels.units import SHIPPED, all_units, find

    units = all_units()
    there = sum(find(unit) is not None for unit in units)
    source = "installed" if SHIPPED.is_dir() else "built"
    remedy = "" if there == len(units) else "; `python -m daedal.build --all` builds the others, as does first use"
    folder = object_store.folder()
    files = list(folder.glob("*.o")) if folder.is_dir() else []
    size = sum(file.stat().st_size for file in files) / 1e6
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    writable = "writable" if os.access(nearest, os.W_OK) else "NOT writable: set DAEDAL_CACHE_DIR to a writable folder"
    return [
        ("kernels", f"{there} of {len(units)} units {source}, for {host_levels()[0]}{remedy}"),
        ("cache", f"{len(files)} files, {size:.1f} MB, {writable}"),
        ("", str(folder)),
    ]


# --- ``daedal studio`` ------------------------------------------------------------------------------------------------


def studio(
    name: RunName,
    out: Annotated[Path | None, typer.Option(help="File of the page; by default out/NAME.html.")] = None,
    rtol: Annotated[float, typer.Option(help="Relative tolerance.")] = 1e-6,
    atol: Annotated[float, typer.Option(help="Absolute tolerance.")] = 1e-9,
    t_end: End = None,
    set_: Parameters = None,
) -> None:
    """Write a live page of a problem, which is solved again while sliders for parameters and starts are dragged.

    Examples: daedal studio double_pendulum; daedal studio my_model.py:pendulum --t-end 10
    """
    values = assignments(set_, "--set")
    model = own_model(name, values, t_end and (0.0, t_end), None) if is_own(name) else find_model(name, values)
    path = Path("out") / f"{model.name}.html" if out is None else out
    labels = {} if is_own(name) else _labels_of_parameters(name, values, model)
    given: dict[str, Any] = {"rtol": rtol, "atol": atol, "labels": labels, "title": model.title}
    try:
        daedal.studio(model.problem, span_of(model, t_end), model.initial, path, **given)
    except (daedal.DaedalError, OSError) as error:
        refuse(str(error))
    print(f"open {path}")


def _labels_of_parameters(name: str, values: dict[str, Any], model: daedal.library.Model) -> dict[str, str]:
    """Names for the entries of a parameter vector: the arguments of the factory that change them."""
    before = np.asarray(model.problem.params)
    if before.dtype != np.float64 or before.ndim != 1:
        return {}
    found: dict[int, list[str]] = {}
    for argument, parameter in parameters_of(name).items():
        value = values.get(argument, parameter.default)
        if type(value) is float and argument != "t1":
            try:
                other = daedal.library.get(name, **{**values, argument: 1.01 * value + 1e-3 * (value == 0.0)})
            except daedal.DaedalError:
                continue
            after = np.asarray(other.problem.params)
            for k in np.flatnonzero(after != before) if after.shape == before.shape else ():
                found.setdefault(int(k), []).append(argument)
    words = {k: " · ".join(arguments) for k, arguments in found.items()}
    return {f"p[{k}]": text for k, text in words.items() if list(words.values()).count(text) == 1}


# --- ``daedal gallery`` -----------------------------------------------------------------------------------------------


def gallery(
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("out/gallery"),
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Include only this problem; may be repeated. By default all are included."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of processes; by default the number of cores, up to 4.")
    ] = None,
) -> None:
    """Solve the problems of the library and build a page with their equations, pictures, animations and code.

    Example: daedal gallery --only seven_body --only robertson
    """
    from tqdm import tqdm

    from daedal.viz.gallery import build_gallery

    begin = time.perf_counter()
    total = len(only or daedal.library.names())
    try:
        with tqdm(total=total, desc="gallery", unit=" problems", disable=not sys.stderr.isatty()) as bar:
            made = build_gallery(out, only or (), jobs=jobs or min(cores(), 4), done=lambda card: bar.update())
    except (daedal.DaedalError, OSError) as error:
        refuse(str(error))
    for card in made.failed:
        print(f"  {card.name}: {card.failure}", file=sys.stderr)
    moving = sum(card.moves for card in made.cards)
    size, seconds = made.path.stat().st_size / 1e6, time.perf_counter() - begin
    print(
        f"{len(made.cards)} problems, {moving} of them with motion, {len(made.failed)} failed; {size:.1f} MB, "
        f"{seconds:.0f} s"
    )
    print(f"open {made.path}")
