"""Redraw the figures of the manual: run the Python blocks of pages with figures and keep what the pages show.

Pages that the blocks write are photographed by Chromium.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"

import matplotlib.pyplot as plt

from daedal.viz.figure import STYLE

HERE = Path(__file__).resolve().parent


def main() -> None:
    for path in sorted(HERE.parent.glob("*/*.md")):
        draw(path.read_text(encoding="utf-8"))


def draw(page: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shown = re.findall(r"\(\.\./figures/(\S+?)\)", page)
    if not shown:
        return
    with tempfile.TemporaryDirectory() as folder, plt.rc_context(STYLE):
        os.chdir(folder)
        exec("\n".join(blocks), {})
        for name in shown:
            if not Path(name).exists():
                photograph(Path(name).with_suffix(".html"), Path(name))
            (HERE / name).write_bytes(Path(name).read_bytes())
        os.chdir(HERE)


def photograph(page: Path, picture: Path) -> None:
    sys.path.append(str(HERE.parent.parent / "tests"))
    from browser import Browser, find_chromium

    browser = Browser(find_chromium(), Path("profile").resolve())
    try:
        browser.open(page, 1280, 900, calm=True)
        browser.evaluate("for (const player of daedalPage.players) player.show(0.2 * player.last)")
        browser.evaluate("new Promise(done => setTimeout(done, 500))")
        browser.screenshot(picture, whole=True)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
