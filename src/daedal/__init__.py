"""Daedal: differential-algebraic equations and constrained mechanisms in Python.

>>> import daedal
>>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], [-1.0])
>>> sol.success
True
"""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_MODULES: dict[str, str] = dict(
    (name, module)
    for module, name in re.findall(
        r"^from (\S+) import (\w+) as", Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"), re.MULTILINE
    )
)
"""Public names, and the modules that hold them; a module is imported when one of its names is first used."""
__all__ = sorted([*(name for name in _MODULES if name != "viz"), "__version__"])


def __getattr__(name: str) -> Any:
    """Import what is asked for: a model that is solved needs a small part of the package."""
    module = _MODULES.get(name, "daedal")
    if module == "daedal" and (name.startswith("_") or find_spec(f"daedal.{name}") is None):
        raise AttributeError(f"module 'daedal' has no attribute '{name}'")
    try:
        value = import_module(f"daedal.{name}") if module == "daedal" else getattr(import_module(module), name)
    except AttributeError:
        value = import_module(f"{module}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "viz"]
