"""Ready-made problems, each with its data, its source and a reference solution.

>>> import daedal
>>> daedal.library.names()[:3]
['andrews_machine', 'balanced_modes', 'bicycle']
>>> daedal.library.get("pendulum", form="index1").index
1

The modules of this package enter their problems themselves, by a decorator. They are imported when one is asked for.
"""

from __future__ import annotations

import difflib
import inspect
import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from daedal.errors import InvalidProblemError

if TYPE_CHECKING:
    from daedal.library.circuits import Branch as Branch
    from daedal.library.circuits import Source as Source
    from daedal.library.circuits import sparse_tableau as sparse_tableau
    from daedal.library.combustion import FlameRun as FlameRun
    from daedal.library.combustion import follow_flame as follow_flame
    from daedal.library.model import Indices as Indices
    from daedal.library.model import Model as Model
    from daedal.library.model import Reference as Reference
    from daedal.library.nodal_analysis import Control as Control
    from daedal.library.nodal_analysis import mna as mna
    from daedal.library.violin import ViolinRun as ViolinRun
    from daedal.library.violin import play_violin as play_violin

# What is public besides the problems, and where it is
_OTHERS = {
    "Branch": "circuits",
    "Control": "nodal_analysis",
    "FlameRun": "combustion",
    "Indices": "model",
    "Model": "model",
    "Reference": "model",
    "Source": "circuits",
    "ViolinRun": "violin",
    "follow_flame": "combustion",
    "mna": "nodal_analysis",
    "play_violin": "violin",
    "sparse_tableau": "circuits",
}


@cache
def _factories() -> dict[str, Callable[..., Model]]:
    """All problems by name: what the modules of this package have entered."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        if not module.ispkg:  # drawings are looked for when something is drawn
            import_module(module.name)
    return import_module(f"{__name__}.model").FACTORIES


def __getattr__(name: str) -> Callable[..., Model]:
    if name in _OTHERS:
        return getattr(import_module(f"{__name__}.{_OTHERS[name]}"), name)
    value: Any = __dir__() if name == "__all__" else None if name.startswith("_") else _factories().get(name)
    if value is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return value


def __dir__() -> list[str]:
    return sorted(["get", "names", *_OTHERS, *_factories()])


def names() -> list[str]:
    """The names of all problems, in alphabetical order."""
    return sorted(_factories())


def get(name: str, **parameters: Any) -> Model:
    """The problem called `name`.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    **parameters
        Parameters of the problem, as in the function of the same name in this module.

    Returns
    -------
    Model

    Examples
    --------
    >>> import daedal
    >>> daedal.library.get("robertson", t1=40.0).t_span
    (0.0, 40.0)
    """
    factories = _factories()
    if name not in factories:
        close = difflib.get_close_matches(str(name), factories, n=1, cutoff=0.4)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names())}"
        raise InvalidProblemError(f"the library has no problem called '{name}'; {hint}")
    known = inspect.signature(factories[name]).parameters
    for parameter in parameters:
        if parameter not in known:
            offered = ", ".join(known) if known else "none"
            raise InvalidProblemError(f"'{name}' has no parameter '{parameter}'; its parameters: {offered}")
    return factories[name](**parameters)
