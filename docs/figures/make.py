"""Redraw the figures of the page on plots: run its Python blocks in this folder and keep what the page shows."""

import os
import re
import tempfile
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"
HERE = Path(__file__).resolve().parent
PAGE = (HERE.parent / "guide" / "plotting.md").read_text(encoding="utf-8")


def main() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shown = re.findall(r"\(\.\./figures/(\S+?)\)", PAGE)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec("\n".join(blocks), {})
        for name in shown:
            (HERE / name).write_bytes(Path(name).read_bytes())
        os.chdir(HERE)


if __name__ == "__main__":
    main()
