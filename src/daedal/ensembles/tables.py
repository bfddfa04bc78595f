"""An ensemble as a frame or a data set."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from daedal.ensembles.part import STATUS
from daedal.errors import InvalidProblemError
from daedal.results.archive import make_folder


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


def _arrays(ensemble: Any) -> dict[tuple[str, ...], np.ndarray]:
    """All arrays of numbers by their place: what varies, states, outputs, reductions."""
    found: dict[tuple[str, ...], Any] = {("parameter", name): v for name, v in ensemble.parameters().items()}
    found |= {(name.removeprefix("output:"),): values for name, values in ensemble.arrays.items()}
    for name, quantities in ensemble.reduced.items():
        for quantity, value in quantities.items():
            parts = {(k,): v for k, v in value.items()} if isinstance(value, dict) else {(): value}
            found |= {(name, quantity, *map(str, k)): v for k, v in parts.items()}
    if ensemble.t is not None:
        found["t",] = ensemble.t
    found["t_final",] = ensemble.t_final
    return {key: np.asarray(values) for key, values in found.items()}


def save_zarr(ensemble: Any, target: Path) -> Path:
    """A Zarr group, complete or not at all: it is written beside its place, and takes the place of an older one."""
    make_folder(target)
    zarr = imported("zarr", f"saving {target.name}")
    beside, old = (target.with_name(f".{target.name}.{os.getpid()}{end}") for end in ("", ".old"))
    if target.exists() and not (target / "zarr.json").exists():
        raise InvalidProblemError(f"{target} is there already, and is no Zarr group: choose another name")
    try:
        group = zarr.open_group(beside, mode="w")
        for key, values in _arrays(ensemble).items():
            group.create_array("/".join(key), data=values)
        group.create_array("status", data=ensemble.code)
        group.create_array("failed", data=ensemble.failed)
        group.attrs["names"], group.attrs["status"] = list(ensemble.names), list(STATUS)
        group.attrs["messages"] = {str(member): text for member, text in ensemble.messages.items()}
        group.attrs["message"] = ensemble.message
        if target.exists():
            target.rename(old)
        beside.rename(target)
    finally:
        for left in (beside, old):
            shutil.rmtree(left, ignore_errors=True)
    return target


def imported(package: str, what: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        extra = "zarr" if package == "zarr" else "data"
        raise InvalidProblemError(f"{what} needs {package}: pip install 'daedal[{extra}]'") from None
