"""Measured values of one run in any form: a mapping, a frame, or times and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError, near_names

TIME = "t"


@dataclass(frozen=True)
class Experiment:
    """Measurements of one run and its settings.

    Parameters
    ----------
    data : mapping or pandas.DataFrame
        Measured values by the names of variables (or of `outputs`, see :func:`daedal.fit`), with the times as ``"t"``;
        the times of a frame may also be its index. NaN and None denote missing values.
    initial : optional
        Initial values of this run; by default those given to :func:`daedal.fit`.
    params : mapping, optional
        Parameters specific to this run, by name.
    t_span : (float, float), optional
        Start and end of the run; by default the first and the last time of `data`.
    sigma : float, mapping or array, optional
        Standard deviations of the measurements: one number, one per name, or one per value.
    unknown : sequence of str, optional
        Unknown initial values, such as ``"x(0)"``, estimated for this run alone.
    name : str
        Name for tables and plots.

    Examples
    --------
    >>> import daedal
    >>> data = {"t": [0.0, 1.0, 2.0], "x": [1.0, None, 0.2]}
    >>> run = daedal.sensitivity.Experiment(data, params={"load": 3.0}, sigma=0.01)
    >>> run.data["x"][1] is None
    True
    """

    data: Any
    initial: Any = None
    params: Mapping[str, float] | None = None
    t_span: tuple[float, float] | None = None
    sigma: Any = None
    unknown: Any = ()
    name: str = ""


@dataclass(frozen=True)
class Measurements:
    """The values of an experiment as arrays: rows are measured quantities, columns are times."""

    name: str
    t: np.ndarray
    columns: tuple[str, ...]
    values: np.ndarray
    weights: np.ndarray  # 1 / sigma, 0 for missing values
    t_span: tuple[float, float]
    initial: Any
    params: Mapping[str, Any]
    unknown: tuple[str, ...]
    with_sigma: bool = field(default=False)

    @property
    def count(self) -> int:
        """Number of measured values."""
        return int(np.count_nonzero(self.weights))


def measurements(given: Any, known: list[str], initial: Any, t_span: Any, sigma: Any) -> list[Measurements]:
    """The experiments in `data`, validated; `known` are the names that can be compared."""
    experiments = given if isinstance(given, (list, tuple)) and given else [given]
    if not all(isinstance(one, Experiment) for one in experiments):
        experiments = [Experiment(given)]
    found = [_read(one, k, known, initial, t_span, sigma, len(experiments)) for k, one in enumerate(experiments)]
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise InvalidProblemError(f"data: two experiments have the same name: {', '.join(names)}")
    return found


def _read(run: Experiment, k: int, known: list[str], initial: Any, t_span: Any, sigma: Any, of: int) -> Measurements:
    name = run.name or f"run {k + 1}"
    where = f"data of {name}" if of > 1 else "data"
    t, table = _table(run.data, where)
    order = np.argsort(t, kind="stable")
    t = t[order]
    for column in table:
        if column not in known:
            hint = near_names(column, known) or f"there are {', '.join(known[:12])}"
            raise InvalidProblemError(f"{where}: there is no variable or output {column!r}; {hint.rstrip()}")
    values = np.array([table[column][order] for column in table])
    if np.any(np.isinf(values)):
        raise InvalidProblemError(f"{where}: infinite values; omit missing values, or give NaN")
    if not np.any(np.isfinite(values)):
        raise InvalidProblemError(f"{where}: all values are missing")
    given_sigma = sigma if run.sigma is None else run.sigma
    deviations = _deviations(given_sigma, tuple(table), values.shape, order, where)
    weights = np.where(np.isfinite(values), 1.0 / deviations, 0.0)
    start = initial if run.initial is None else run.initial
    if start is None:
        raise InvalidProblemError(
            f"{where}: no initial values: pass initial=..., or initial values for each Experiment"
        )
    unknown = (run.unknown,) if isinstance(run.unknown, str) else tuple(run.unknown)
    return Measurements(
        name=name,
        t=t,
        columns=tuple(table),
        values=np.where(np.isfinite(values), values, 0.0),
        weights=weights,
        t_span=_span(run.t_span if run.t_span is not None else t_span, t, where),
        initial=start,
        params=dict(run.params or {}),
        unknown=unknown,
        with_sigma=given_sigma is not None,
    )


def _table(data: Any, where: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    if hasattr(data, "columns") and hasattr(data, "index"):  # a pandas frame; pandas need not be imported
        columns = {str(name): np.asarray(data[name]) for name in data.columns}
        columns.setdefault(TIME, np.asarray(data.index))
    elif isinstance(data, Mapping):
        columns = {str(name): value for name, value in data.items()}
    else:
        raise InvalidProblemError(
            f"{where} must be a mapping or a frame with the times as 't' and a column for each measured variable, or a "
            f"list of daedal.sensitivity.Experiment, got {type(data).__name__}"
        )
    if TIME not in columns:
        raise InvalidProblemError(f"{where}: no times; give them as 't'")
    read = {name: _numbers(value, f"{where}, column {name!r}") for name, value in columns.items()}
    t = read.pop(TIME)
    if not t.size or not np.all(np.isfinite(t)):
        raise InvalidProblemError(f"{where}: the times must be finite numbers, at least one")
    if not read:
        raise InvalidProblemError(f"{where}: there are times, but no measured values")
    for name, value in read.items():
        if value.shape != t.shape:
            raise InvalidProblemError(f"{where}: column {name!r} has {value.size} values for {t.size} times")
    return t, read


def _numbers(value: Any, what: str) -> np.ndarray:
    try:
        found = np.array(
            [np.nan if one is None else one for one in np.asarray(value, dtype=object).ravel()], dtype=float
        )
    except (TypeError, ValueError):
        raise InvalidProblemError(f"{what}: not numbers") from None
    if np.ndim(value) != 1:
        raise InvalidProblemError(f"{what}: must be a vector, got shape {np.shape(value)}")
    return found


def _deviations(sigma: Any, columns: tuple[str, ...], shape: tuple, order: np.ndarray, where: str) -> np.ndarray:
    """Standard deviation of each value; 1 if unknown."""
    if sigma is None:
        return np.ones(shape)
    if isinstance(sigma, Mapping):
        missing = [name for name in columns if name not in sigma]
        if missing:
            raise InvalidProblemError(f"{where}: sigma has no entry for {', '.join(missing)}")
        given = [sigma[name] for name in columns]
    else:
        given = [sigma]
    try:
        if isinstance(sigma, Mapping):
            found = np.array([np.broadcast_to(_ordered(one, order), shape[1]) for one in given], dtype=float)
        else:
            found = np.broadcast_to(_ordered(sigma, order), shape).astype(float)
    except (TypeError, ValueError):
        raise InvalidProblemError(
            f"{where}: sigma must be a number, a mapping by name, or one number for each of {shape} values"
        ) from None
    if not np.all(np.isfinite(found) & (found > 0.0)):
        raise InvalidProblemError(f"{where}: sigma must be positive and finite")
    return found


def _ordered(sigma: Any, order: np.ndarray) -> np.ndarray:
    found = np.asarray(sigma, dtype=float)
    return found[..., order] if found.ndim and found.shape[-1] == order.size else found


def _span(given: Any, t: np.ndarray, where: str) -> tuple[float, float]:
    if given is None:
        if t[0] == t[-1]:
            raise InvalidProblemError(f"{where}: only one time; give t_span with the start of the run")
        return float(t[0]), float(t[-1])
    try:
        first, last = (float(one) for one in given)
    except (TypeError, ValueError):
        raise InvalidProblemError(f"t_span must be two numbers, got {given!r}") from None
    low, high = min(first, last), max(first, last)
    outside = t[(t < low) | (t > high)]
    if outside.size:
        raise InvalidProblemError(
            f"{where}: {outside.size} of {t.size} times lie outside t_span = ({first:g}, {last:g}), such as "
            f"{outside[0]:g}; widen t_span or leave them out"
        )
    return first, last
