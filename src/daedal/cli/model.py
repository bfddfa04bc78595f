"""A problem of the library as commands use it."""

import inspect
from typing import Any

import numpy as np

import daedal
from daedal.cli.output import refuse


def find_model(name: str, parameters: dict[str, Any]) -> daedal.library.Model:
    """The model with these parameters; a wrong name or value ends the command."""
    try:
        return daedal.library.get(name, **parameters)
    except daedal.DaedalError as error:
        refuse(str(error))
    except (TypeError, ValueError) as error:
        refuse(f"the parameters {parameters} do not suit '{name}': {error}")


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """The parameters of its factory."""
    return dict(inspect.signature(getattr(daedal.library, name)).parameters)


def span_of(model: daedal.library.Model, t_end: float | None) -> tuple[float, float]:
    """The interval of the source, or up to another end."""
    return model.t_span if t_end is None else (model.t_span[0], t_end)


def short(value: Any) -> str:
    """A value on one line; an array by its smallest and largest entry."""
    if isinstance(value, np.ndarray):
        return f"{value.min():g} to {value.max():g}" if value.min() < value.max() else f"{value.flat[0]:g}"
    return f"{value:g}" if isinstance(value, float) else str(value)
