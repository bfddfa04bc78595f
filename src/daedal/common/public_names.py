"""Modules whose names are imported on first use.

Such a module has a stub in the same folder (``__init__.pyi`` for ``__init__.py``), with a line
``from daedal.methods.bdf.dassl import DASSL as DASSL`` for each name. Type checkers and the module itself read the
stub, so that there is one list of public names. A line with the comment ``# for annotations`` defines an attribute that
is not in ``__all__``, the type of a result.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])


def public_names(
    namespace: dict[str, Any],
    *,
    own: Iterable[str] = (),
    not_starred: Iterable[str] = (),
    old_names: dict[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a module with a stub.

    Parameters
    ----------
    namespace : dict
        The ``globals()`` of the module.
    own : iterable of str
        Additional public names, defined in the module itself.
    not_starred : iterable of str
        Names excluded from ``from module import *``, because they take long to import.
    old_names : dict, optional
        New locations of names that were moved, as in ``{"DASSL": "daedal.methods.DASSL"}``. The old names still work,
        with a `DeprecationWarning`.
    """
    module = namespace["__name__"]
    places, listed = _places(namespace["__file__"].removesuffix("c").removesuffix(".py") + ".pyi")
    moved = old_names or {}

    def __getattr__(name: str) -> Any:
        if name in places:
            value = namespace[name] = _at(*places[name], module)
            return value
        if name in moved:
            warn_of_old_name(f"{module}.{name}", moved[name])
            value = import_module("daedal")
            for part in moved[name].split(".")[1:]:
                value = getattr(value, part)
            return value
        if not name.startswith("_"):
            try:
                return import_module(f"{module}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{module}.{name}":  # the submodule exists, but one of its imports is missing
                    raise
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    def __dir__() -> list[str]:
        return sorted({*listed, *own})

    return __getattr__, __dir__, sorted({*listed, *own}.difference(not_starred))


def _places(stub: str) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """For each name in a stub, its module and its name in that module; and the names of ``__all__``."""
    with open(stub, encoding="utf-8") as lines:
        words = [line.split() for line in lines if line.startswith("from daedal")]
    return {alias: (module, name) for _, module, _, name, _, alias, *_ in words}, [
        one[5] for one in words if len(one) == 6
    ]


def _at(holder: str, name: str, module: str) -> Any:
    """Attribute or submodule `name` of `holder`; errors mention an attribute of `module`."""
    if holder != module:
        found = import_module(holder)
        if hasattr(found, name):
            return getattr(found, name)
    return import_module(f"{holder}.{name}")


def warn_of_old_name(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that `old` is now `new`; the warning refers to the user's line."""
    import warnings

    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=stacklevel)


def with_old_keywords(**names: str) -> Callable[[Function], Function]:
    """Decorator that accepts keywords by their old names too, given as ``old="new"``, with a `DeprecationWarning`."""

    def decorated(function: Function) -> Function:
        shown = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

        def called(*args: Any, **keywords: Any) -> Any:
            for old in names.keys() & keywords.keys():
                new = names[old]
                warn_of_old_name(f"{shown}({old}=...)", f"{new}=...", stacklevel=3)
                if new in keywords:
                    raise TypeError(f"{shown}() got both {new}= and its old name {old}=")
                keywords[new] = keywords.pop(old)
            return function(*args, **keywords)

        from functools import update_wrapper

        return update_wrapper(called, function)  # type: ignore[return-value]

    return decorated
