"""Methods by name. Methods share an interface; each family is a package.

A class that derives from :class:`daedal.methods.base.Method` and has a `name` is found by that name. The table below
lists the modules of the methods; other modules are found by importing all families. An instance of any such class can
be passed directly, including a user's own.
"""

from __future__ import annotations

import difflib
import pkgutil
from importlib import import_module
from typing import Any

from daedal.errors import InvalidProblemError

__all__ = ["method_class", "named_method"]

_MODULES = {
    "dassl": "bdf.dassl",
    "modified_bdf": "bdf.modified_bdf",
    **dict.fromkeys(("dopri5", "dop853", "rk4"), "explicit.runge_kutta"),
    "extrapolation": "extrapolation.extrapolation",
    "mexx": "extrapolation.mexx",
    **dict.fromkeys(("phem56", "hedop5", "hem3", "hem4", "hem5"), "half_explicit.half_explicit"),
    "collocation": "implicit_rk.collocation",
    "radau": "implicit_rk.radau",
    "rosenbrock": "rosenbrock.rosenbrock",
    "rattle": "symplectic.rattle",
}
"""Modules of the named methods."""
_OF_SOLVE = (
    *("method", "formulation", "rtol", "atol", "t_eval", "events", "progress", "max_steps", "first_step", "max_step"),
    *("t_stop", "fixed_step", "dense_output", "correct_initial", "breakpoints", "max_events", "record_events"),
)
_WITH_THE_RUN = ("t_eval", "t_stop", "progress", "breakpoints")
_PARAMETERS = ("args", "params", "parameters", "p")
_OF_PROBLEMS = ("jacobian", "jac", "names", "algebraic", "sparsity", "jac_sparsity", "bandwidth")


def method_class(name: str) -> Any:
    """The class of a method by its name or class name, ignoring case; None if there is none."""
    found = _find(name.lower())
    if found is None and name.lower() in _MODULES:
        import_module(f"{__package__}.{_MODULES[name.lower()]}")
        found = _find(name.lower())
    if found is None:
        for module in pkgutil.walk_packages(import_module(__package__).__path__, f"{__package__}."):
            import_module(module.name)
        found = _find(name.lower())
    return found


def _find(name: str) -> Any:
    from daedal.methods.base import registered

    kinds = registered()
    return kinds.get(name) or {kind.__name__.lower(): kind for kind in kinds.values()}.get(name)


def named_method(method: Any, options: dict[str, Any]) -> Any:
    """A method object from its name, its class, or itself."""
    from daedal.methods.base import Method, registered

    if isinstance(method, Method):
        if options:
            raise InvalidProblemError(
                f"options {', '.join(options)} apply to a method given by name; "
                f"here, pass them to {type(method).__name__}(...)"
            )
        return method
    kind = method if isinstance(method, type) and issubclass(method, Method) else None
    if isinstance(method, str):
        kind = method_class(method)
        if kind is None:
            known = registered()
            close = difflib.get_close_matches(method.lower(), known, n=1, cutoff=0.6)
            hint = f"did you mean '{close[0]}'? " if close else ""
            raise InvalidProblemError(f"unknown method '{method}'; {hint}known: auto, {', '.join(known)}")
    if kind is None:
        raise InvalidProblemError(f"method must be a name or a method object such as DASSL(), got {method!r}")
    unknown = [name for name in options if name not in kind.options()]
    if unknown:
        raise InvalidProblemError(
            f"unknown option {', '.join(unknown)}; {_hint(unknown[0], kind.options())}options of solve and of "
            f"{kind.__name__} ({', '.join(kind.options())}) are accepted"
        )
    return kind(**options)


def refuse_options_of_auto(names: list[str]) -> None:
    """Raise for options of methods if the method is chosen automatically; the message lists the methods that have
    them."""
    if not names:
        return
    from daedal.methods.base import registered

    for module in dict.fromkeys(_MODULES.values()):
        import_module(f"{__package__}.{module}")
    known = registered()
    having = [name for name in _MODULES if set(names) <= set(known[name].options())]
    options = tuple(dict.fromkeys(option for name in _MODULES for option in known[name].options()))
    listed = ", ".join(names)
    if not having:
        raise InvalidProblemError(f"unknown option {listed}; {_hint(names[0], options)}no method has it")
    one = "is an option" if len(names) == 1 else "are options"
    raise InvalidProblemError(
        f"{listed} {one} of {', '.join(having)}, and method='auto' may choose another one: name the method too, as in "
        f"method='{having[0]}'"
    )


def _hint(name: str, own: tuple[str, ...]) -> str:
    """A hint for an unknown option: a similar name, or the correct place."""
    if name in _PARAMETERS:
        return (
            "parameters belong to the problem: define it with params=..., as the last argument of its functions, and "
            "use problem.with_params(...) to change them; "
        )
    if name in _OF_PROBLEMS:
        return f"{name.replace('jac_', '')} belongs to the problem, not to the run; "
    if name in _WITH_THE_RUN:
        return f"{name} is an argument of the run, not of prepare; "
    close = difflib.get_close_matches(name, (*own, *_OF_SOLVE), n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'? " if close else ""
