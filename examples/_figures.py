"""What every example does with its figure: the look of the manual, saved to out/ or, with --show, shown."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

from daedal.viz.figure import STYLE

plt.rcParams.update(STYLE)


def show_or_save(figure, name: str) -> None:
    figure.tight_layout()
    if "--show" in sys.argv:
        plt.show()
        return
    path = Path("out") / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"figure saved as {path}")
