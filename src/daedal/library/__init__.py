"""Ready-made problems, each with its data, its source and a reference solution.

>>> import daedal
>>> daedal.library.names()[:3]
['andrews_machine', 'balanced_modes', 'bicycle']
>>> daedal.library.get("pendulum", form="index1").index
1

The modules of this package register their problems by a decorator; a module is imported when one of its problems is
requested.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from daedal.errors import InvalidProblemError

if TYPE_CHECKING:
    from daedal.library.circuits import Branch as Branch
    from daedal.library.circuits import Source as Source
    from daedal.library.circuits import sparse_tableau as sparse_tableau
    from daedal.library.combustion import FlameRun as FlameRun
    from daedal.library.combustion import follow_flame as follow_flame
    from daedal.library.nodal_analysis import Control as Control
    from daedal.library.nodal_analysis import mna as mna
    from daedal.library.registry import Indices as Indices
    from daedal.library.registry import Model as Model
    from daedal.library.registry import Reference as Reference
    from daedal.library.violin import StringState as StringState
    from daedal.library.violin import ViolinRun as ViolinRun
    from daedal.library.violin import play_violin as play_violin

# public names other than the problems, and their modules
_OTHERS = {
    "Branch": "circuits",
    "Control": "nodal_analysis",
    "FlameRun": "combustion",
    "Indices": "registry",
    "Model": "registry",
    "Reference": "registry",
    "Source": "circuits",
    "StringState": "violin",
    "ViolinRun": "violin",
    "follow_flame": "combustion",
    "mna": "nodal_analysis",
    "play_violin": "violin",
    "sparse_tableau": "circuits",
}


def _contents() -> dict[str, dict[str, Any]]:
    from daedal.library.contents import contents  # this module is also run as a command

    return contents()


def _factory(name: str) -> Callable[..., Model] | None:
    """The function that creates a problem; None for an unknown name."""
    if name not in _contents():
        return None
    return getattr(import_module(f"{__name__}.{_contents()[name]['module']}"), name)


def __getattr__(name: str) -> Callable[..., Model]:
    if name in _OTHERS:
        return getattr(import_module(f"{__name__}.{_OTHERS[name]}"), name)
    value: Any = __dir__() if name == "__all__" else None if name.startswith("_") else _factory(name)
    if value is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return value


def __dir__() -> list[str]:
    return sorted(["get", "names", *_OTHERS, *_contents()])


def names() -> list[str]:
    """Names of all problems, in alphabetical order."""
    return sorted(_contents())


def get(name: str, **parameters: Any) -> Model:
    """Create a library problem by name.

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
    factory = _factory(name)
    if factory is None:
        close = difflib.get_close_matches(str(name), names(), n=1, cutoff=0.4)
        hint = f"did you mean '{close[0]}'?" if close else f"the problems are {', '.join(names())}"
        raise InvalidProblemError(f"the library has no problem called '{name}'; {hint}")
    known = inspect.signature(factory).parameters
    for parameter in parameters:
        if parameter not in known:
            offered = ", ".join(known) if known else "none"
            raise InvalidProblemError(f"'{name}' has no parameter '{parameter}'; its parameters: {offered}")
    return factory(**parameters)
