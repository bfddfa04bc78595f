"""What every example does with its figure: save it to out/, or show it when called with --show."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt


def show_or_save(figure, name: str) -> None:
    figure.tight_layout()
    if "--show" in sys.argv:
        plt.show()
        return
    path = Path("out") / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"figure saved as {path}")
