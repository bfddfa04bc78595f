"""``daedal gallery``."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

import daedal
from daedal.cli.doctor import cores
from daedal.cli.output import refuse


def gallery(
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("out/gallery"),
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this problem; repeatable. All by default.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of processes; that of the cores, up to 4, by default.")
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
        f"{len(made.cards)} problems, {moving} of them move, {len(made.failed)} failed; {size:.1f} MB, {seconds:.0f} s"
    )
    print(f"open {made.path}")
