"""Redraw the figures of the manual: run the Python blocks of pages with figures and keep what the pages show."""

import os
import re
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
            (HERE / name).write_bytes(Path(name).read_bytes())
        os.chdir(HERE)


if __name__ == "__main__":
    main()
