"""Drawings of the library's mechanisms.

The data of a problem name its drawing, a function of one of the modules here. A drawing depends only on the equations
and their parameters: the library functions that a system uses as constraint, velocity constraint, force, residual or
algebraic equations identify its drawing. Models with modes are identified by name.
"""

from collections.abc import Callable
from inspect import isfunction
from typing import Any

import daedal
from daedal.library.drawings import plane, space
from daedal.library.registry import DRAWINGS
from daedal.multibody.multibody_system import MultibodySystem
from daedal.viz import Drawing, Scene


def drawing_of(model: Any) -> Drawing | Callable[..., Scene] | None:
    """The drawing of a library model or problem; None if it is not a mechanism.

    Parameters
    ----------
    model : daedal.library.Model or a problem
        Models with modes are identified by name, other mechanisms also by their problems.

    Returns
    -------
    daedal.viz.Drawing, callable or None
        Spatial mechanisms have a function (t, q) -> daedal.viz.Scene.

    Examples
    --------
    >>> import daedal
    >>> from daedal.library.drawings import drawing_of
    >>> drawing_of(daedal.library.crank_slider()).traces
    ('middle',)
    >>> drawing_of(daedal.library.robertson()) is None
    True
    """
    if isinstance(model, daedal.library.Model):
        if model.name in DRAWINGS:
            return _draw(DRAWINGS[model.name], model)
        model = model.problem
    if isinstance(model, MultibodySystem):
        return space.machine(model)
    for part in ("constraint", "velocity_constraint", "force", "residual", "g"):
        function: Any = getattr(model, part, None)
        for wrapped in ("original", "py_func"):  # wrapped by a trace or by Numba
            function = getattr(function, wrapped, function)
        if isfunction(function) and (name := f"{function.__module__}.{function.__qualname__}") in DRAWINGS:
            return _draw(DRAWINGS[name], model)
    return None


def _draw(name: str, drawn: Any) -> Drawing | Callable[..., Scene]:
    return next(getattr(module, name) for module in (plane, space) if hasattr(module, name))(drawn)
