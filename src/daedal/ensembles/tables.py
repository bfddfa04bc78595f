"""An ensemble as a frame or a data set."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_dataframe(ensemble: Any) -> Any:
    """A row for each member."""
    pandas = imported("pandas", "to_dataframe")
    columns: dict[str, Any] = dict(ensemble.parameters())
    if "final" in ensemble.arrays:
        final = ensemble.arrays["final"]
        columns |= {_free(columns, name): final[:, k] for k, name in enumerate(ensemble.names)}
        columns["t_final"] = ensemble.t_final
    for name, values in ensemble.outputs.items():
        if values.ndim == 1:
            columns[name] = values
    columns["status"] = ensemble.status
    frame = pandas.DataFrame(columns)
    frame.index.name = "member"
    return frame


def _free(columns: dict[str, Any], name: str) -> str:
    return f"{name} (final)" if name in columns else name


def to_xarray(ensemble: Any) -> Any:
    """A data set with the dimensions member, variable and time."""
    xarray = imported("xarray", "to_xarray")
    coordinates: dict[str, Any] = {"member": np.arange(ensemble.members)}
    coordinates |= {name: ("member", values) for name, values in ensemble.parameters().items()}
    data: dict[str, Any] = {"status": ("member", ensemble.status.astype(str))}
    if ensemble.t_final.size:
        data["t_final"] = ("member", ensemble.t_final)
    if ensemble.names:
        coordinates["variable"] = list(ensemble.names)
    if ensemble.t is not None:
        coordinates["time"] = ensemble.t
    if "final" in ensemble.arrays:
        data["final"] = (("member", "variable"), ensemble.arrays["final"])
    if "y" in ensemble.arrays:
        data["y"] = (("member", "variable", "time"), ensemble.arrays["y"])
    for name, values in ensemble.outputs.items():
        timed = values.ndim == 2 and ensemble.t is not None and values.shape[1] == ensemble.t.size
        inner = ("time",) if timed else tuple(f"{name}_{k}" for k in range(1, values.ndim))
        data[name] = (("member", *inner), values)
    return xarray.Dataset(data, coordinates, {"message": ensemble.message})


def imported(package: str, what: str) -> Any:
    from importlib import import_module

    from daedal.errors import InvalidProblemError

    try:
        return import_module(package)
    except ImportError:
        raise InvalidProblemError(f"{what} needs {package}: pip install 'daedal[data]'") from None
