"""Table of contents of the library, ``contents.json``, which can be read without importing the problems.

``python -m daedal.library.contents`` writes the table; a test compares it with the problems.
"""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("contents.json")
_PACKAGE = "daedal.library"


@cache
def contents() -> dict[str, dict[str, Any]]:
    """Module, title, index and number of unknowns of each problem, by name."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def computed() -> dict[str, dict[str, Any]]:
    """Compute the table from the problems."""
    import inspect

    from daedal.library import registry

    folder = [str(FILE.parent)]
    for module in pkgutil.iter_modules(folder, f"{_PACKAGE}."):
        if not module.ispkg:
            import_module(module.name)
    table = {}
    for name, factory in sorted(registry.FACTORIES.items()):
        plain = {"compiled": False} if "compiled" in inspect.signature(factory).parameters else {}
        made = factory(**plain)
        table[name] = {
            "module": factory.__module__.rpartition(".")[2],
            "title": made.title,
            "index": str(made.index) if made.solvable else "-",
            "unknowns": unknowns(made.problem),
        }
    return table


def unknowns(problem: Any) -> str:
    """Number of unknowns; a range if it differs between modes."""
    sizes = {mode.problem.n for mode in problem.modes.values()} if hasattr(problem, "modes") else {problem.n}
    return str(min(sizes)) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in computed().items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
