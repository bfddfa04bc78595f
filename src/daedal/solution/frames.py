"""Solutions as tables of pandas, datasets of xarray and comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import DaedalError
from daedal.solution.archive import make_folder
from daedal.solution.quantities import Quantity

TIME = "t"


class MissingPackageError(DaedalError, ImportError):
    """A package that is imported only when it is needed is not installed."""


def pandas() -> Any:
    """The module, or what to do to have it."""
    return _imported("pandas")


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"this needs the package {name}, which is not installed: pip install 'daedal[data]' brings it"
        ) from error


def columns_of(quantities: Iterable[Quantity], chosen: Any = None) -> dict[str, np.ndarray]:
    """Rows by name: all that tables show, or those that are chosen."""
    if chosen is None:
        columns: dict[str, np.ndarray] = {}
        for quantity in quantities:
            if quantity.in_tables and quantity.names:
                for name, row in zip(quantity.names, quantity.rows(), strict=True):
                    columns.setdefault(name, row)
        return columns
    wanted = [chosen] if isinstance(chosen, str) else list(chosen)
    places: dict[str, tuple[Quantity, int]] = {}
    for quantity in quantities:
        for i, name in enumerate(quantity.names):
            places.setdefault(name, (quantity, i))
    for name in wanted:
        if name not in places:
            raise unknown_name(name, places, where="columns")
    values = {id(quantity): quantity.rows() for quantity, _ in (places[name] for name in wanted)}
    return {name: values[id(places[name][0])][places[name][1]] for name in wanted}


def dataframe(times: np.ndarray, columns: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
    """A table with the times as its index."""
    package = pandas()
    frame = package.DataFrame(dict(columns), index=package.Index(times, name=TIME))
    frame.attrs.update(attributes)
    return frame


def dataset(
    times: np.ndarray, quantities: Sequence[Quantity], further: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Any:
    """A dataset with one variable for each kind of quantity, over its names and the times."""
    xarray = _imported("xarray")
    coordinates: dict[str, Any] = {TIME: times}
    variables: dict[str, Any] = {name: (TIME, values) for name, values in further.items()}
    for quantity in quantities:
        if not quantity.names:
            continue
        if not quantity.dimension:
            variables |= {name: (TIME, row) for name, row in zip(quantity.names, quantity.rows(), strict=True)}
            continue
        coordinates.setdefault(quantity.dimension, list(quantity.labels or quantity.names))
        variables[quantity.kind] = ((quantity.dimension, TIME), quantity.rows())
    return xarray.Dataset(variables, coordinates, attrs=dict(attributes))


def comma_separated(times: np.ndarray, columns: Mapping[str, Any], path: Any = None) -> str:
    """A table as text, numbers with all their digits; written to `path` if one is given."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([TIME, *columns])
    writer.writerows(zip(times.tolist(), *(np.asarray(column).tolist() for column in columns.values())))
    if path is not None:
        target = Path(path)
        make_folder(target)
        target.write_text(text.getvalue(), encoding="utf-8", newline="")
    return text.getvalue()
