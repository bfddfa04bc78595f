"""Quantities to estimate, by name, with bounds, on a linear or a logarithmic scale; and the measured values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

import daedal
from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError, near_names
from daedal.problems.symbols import symbol_name
from daedal.sensitivity.differentiation import ParameterNumbers, entries_of, unknown_quantity


@dataclass(frozen=True)
class Unknown:
    """One number to estimate.

    `quantity` is the solver's name, ``"k"`` or ``"x(0)"``; `experiment` is the run, if it concerns only one.
    """

    name: str
    quantity: str
    start: float
    low: float
    high: float
    logarithmic: bool
    experiment: int | None = None

    def scaled(self, value: float) -> float:
        """Convert to the scale of the search."""
        return float(np.log(value)) if self.logarithmic else float(value)

    def value(self, scaled: float) -> float:
        """Convert from the scale of the search."""
        return float(np.exp(scaled)) if self.logarithmic else float(scaled)

    @property
    def is_initial(self) -> bool:
        """Whether the unknown is an initial value."""
        return self.quantity.endswith("(0)")


class Unknowns:
    """All unknowns, and how they affect a problem and its initial values."""

    def __init__(self, problem: Any, given: Any, bounds: Any, log: Any, runs: list[Measurements]):
        self._problem = problem
        self._parameters = ParameterNumbers(problem.params, all_numbers=True)
        self.labels = self._parameters.labels
        self._variables = _variables(problem)
        starts = self._expanded(_starts(given))
        own = [f"{quantity} in {run.name}" for run in runs for quantity in run.unknown]
        if len(set(own)) < len(own):
            raise InvalidProblemError(f"unknown contains duplicates: {', '.join(own)}")
        estimated = [*starts, *own]
        limits = _bounds(self._of_each(bounds), estimated)
        logarithmic = _logarithmic(self._of_each(log), estimated)
        self.all: list[Unknown] = []
        for name, start in starts.items():
            value = self._own(name, runs[0].initial) if start is None else start
            self._add(name, name, value, limits, logarithmic, None)
        for k, run in enumerate(runs):
            for quantity in run.unknown:
                if not quantity.endswith("(0)"):
                    raise InvalidProblemError(
                        f"{run.name}: unknown must name initial values such as 'x(0)', got {quantity!r}"
                    )
                label = f"{quantity} in {run.name}"
                self._add(label, quantity, self._own(quantity, run.initial), limits, logarithmic, k)
        if not self.all:
            raise InvalidProblemError("parameters is empty: name at least one quantity to estimate")
        for run in runs:
            for name, value in run.params.items():
                self._position(name)
                if name in starts:
                    raise InvalidProblemError(f"{run.name}: {name!r} is estimated, and cannot be given for one run")
                if not isinstance(value, Real):
                    raise InvalidProblemError(f"{run.name}: params[{name!r}] must be a number, got {value!r}")

    def _parts(self, name: str) -> list[str]:
        """The numbers selected by a name, which may denote a vector or a mapping."""
        if name.endswith("(0)"):
            return [name]
        return entries_of(name, self.labels) or [name]

    def _expanded(self, starts: dict[str, Any]) -> dict[str, Any]:
        """Starting values with one entry for each number."""
        found: dict[str, Any] = {}
        for name, start in starts.items():
            parts = self._parts(name)
            values = [start] * len(parts)
            if len(parts) > 1 and np.ndim(start):
                values = np.ravel(start).tolist()
                if len(values) != len(parts):
                    raise InvalidProblemError(
                        f"parameters: {name!r} has {len(parts)} numbers, but {len(values)} starting values were given"
                    )
            twice = [part for part in parts if part in found]
            if twice:
                raise InvalidProblemError(f"parameters contains duplicates: {', '.join(twice)}")
            found |= dict(zip(parts, values, strict=True))
        return found

    def _of_each(self, given: Any) -> Any:
        """Bounds, or names of logarithmic parameters, with one entry for each number."""
        if isinstance(given, Mapping):
            return {part: value for name, value in given.items() for part in self._parts(str(name))}
        if isinstance(given, str):
            return self._parts(given)
        if isinstance(given, (list, tuple, set, frozenset)):
            return [part for name in given for part in self._parts(str(name))]
        return given

    def _add(self, name: str, quantity: str, start: Any, limits: Mapping, log: Any, experiment: int | None) -> None:
        try:
            value = float(start)
        except (TypeError, ValueError):
            raise InvalidProblemError(f"parameters: the start of {name!r} must be a number, got {start!r}") from None
        self._own(quantity, None, value)
        low, high = limits.get(name, (-np.inf, np.inf))
        everywhere = log is True and experiment is None and not quantity.endswith("(0)")
        logarithmic = everywhere or (log is not True and name in log)
        if not np.isfinite(value):
            raise InvalidProblemError(f"parameters: the start of {name!r} must be finite, got {start!r}")
        if not low <= value <= high:
            raise InvalidProblemError(
                f"parameters: the start of {name!r}, {value:g}, lies outside its bounds [{low:g}, {high:g}]"
            )
        if logarithmic:
            if value <= 0.0:
                raise InvalidProblemError(
                    f"log: {name!r} must be positive for a logarithmic scale, but it starts at {value:g}"
                )
            low = max(low, 0.0)
        self.all.append(Unknown(name, quantity, value, low, high, logarithmic, experiment))

    def _own(self, quantity: str, initial: Any, known: float | None = None) -> float | None:
        if quantity.endswith("(0)"):
            if not self._variables:
                raise InvalidProblemError(
                    f"{quantity!r}: initial values of models with modes are not estimated; if they are unknown, "
                    "define the start as a parameter of a mode"
                )
            if quantity[:-3] not in self._variables:
                raise unknown_quantity(quantity, [], self._variables, "parameters")
            if known is not None:
                return known
            return _initial_value(initial, self._variables, quantity)
        return float(self._parameters.values[self._position(quantity)]) if known is None else known

    def _position(self, name: str) -> int:
        if name not in self.labels:
            if not self.labels:
                raise InvalidProblemError(f"parameters: {name!r} is requested, but the problem has no params")
            raise unknown_quantity(name, self.labels, self._variables, "parameters")
        return self.labels.index(name)

    # --- values -------------------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """Starting point of the search, on its scale."""
        return np.array([one.scaled(one.start) for one in self.all])

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the search, on its scale."""
        with np.errstate(divide="ignore"):
            low = [np.log(one.low) if one.logarithmic else one.low for one in self.all]
            high = [np.log(one.high) if one.logarithmic else one.high for one in self.all]
        return np.array(low), np.array(high)

    def at_bounds(self, scaled: np.ndarray) -> tuple[str, ...]:
        """Unknowns at one of their bounds, up to round-off."""
        low, high = self.bounds()
        near = 1e-6 * np.maximum(np.abs(scaled), 1e-300)
        there = (scaled - low <= near) | (high - scaled <= near)
        return tuple(one.name for one, at in zip(self.all, there, strict=True) if at)

    def values(self, scaled: np.ndarray) -> dict[str, float]:
        """Estimates by name."""
        return {one.name: one.value(x) for one, x in zip(self.all, scaled, strict=True)}

    def slopes(self, scaled: np.ndarray) -> np.ndarray:
        """d(value) / d(scaled)."""
        return np.array([one.value(x) if one.logarithmic else 1.0 for one, x in zip(self.all, scaled, strict=True)])

    # --- single runs --------------------------------------------------------------------------------------------------

    def of(self, k: int) -> list[int]:
        """Indices of the unknowns of run k."""
        return [i for i, one in enumerate(self.all) if one.experiment in (None, k)]

    def quantities(self, k: int) -> list[str]:
        """Variables of differentiation in run k; unknowns of this run replace shared ones."""
        return list(dict.fromkeys(self.all[i].quantity for i in self.of(k)))

    def params(self, run: Measurements, values: np.ndarray) -> Any:
        """Parameters of a run: those of the problem, changed for this run, with the estimates inserted."""
        changes = {self._position(name): float(value) for name, value in run.params.items()}
        changes |= {
            self._position(one.quantity): float(value)
            for one, value in zip(self.all, values, strict=True)
            if not one.is_initial
        }
        return self._parameters.changed(changes)

    def initial(self, k: int, run: Measurements, values: np.ndarray) -> Any:
        """Initial values of a run, with the estimated ones inserted."""
        changes = {
            self._variables.index(self.all[i].quantity[:-3]): values[i] for i in self.of(k) if self.all[i].is_initial
        }
        if isinstance(run.initial, Mapping):
            named = {symbol_name(key): value for key, value in run.initial.items()}
            return named | {self._variables[place]: value for place, value in changes.items()}
        return _replaced(run.initial, changes) if changes else run.initial


def _variables(problem: Any) -> list[str]:
    """Variables whose initial values may be estimated, in the order of `initial`."""
    if isinstance(problem, daedal.hybrid.HybridProblem):
        return []
    names = [problem.label(i) for i in range(problem.n)]
    return [*names, *(f"{name}'" for name in names)] if isinstance(problem, daedal.SecondOrderDAE) else names


def _starts(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        return {given: None}
    if isinstance(given, Mapping):
        return {str(name): value for name, value in given.items()}
    if isinstance(given, Iterable):
        names = [str(name) for name in given]
        if len(set(names)) < len(names):
            raise InvalidProblemError(f"parameters contains duplicates: {', '.join(names)}")
        return dict.fromkeys(names)
    raise InvalidProblemError(f"parameters must be names, or a mapping of names to starting values, got {given!r}")


def _bounds(given: Any, starts: list[str]) -> dict[str, tuple[float, float]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidProblemError(f"bounds must be a mapping {{name: (low, high)}}, got {type(given).__name__}")
    found = {}
    for name, pair in given.items():
        try:
            low, high = (np.nan if one is None else float(one) for one in pair)
        except (TypeError, ValueError):
            raise InvalidProblemError(
                f"bounds of {name!r} must be two numbers (None for no bound), got {pair!r}"
            ) from None
        low, high = (-np.inf if np.isnan(low) else low), (np.inf if np.isnan(high) else high)
        if not low < high:
            raise InvalidProblemError(
                f"bounds of {name!r}: the lower one, {low:g}, must be below the upper one, {high:g}"
            )
        if str(name) not in starts:
            raise unknown_name(name, starts, "parameter or initial value", "bounds")
        found[str(name)] = (low, high)
    return found


def _logarithmic(given: Any, starts: list[str]) -> Any:
    if given is True:
        return True
    names = (
        [] if given is None or given is False else [given] if isinstance(given, str) else [str(one) for one in given]
    )
    for name in names:
        if name not in starts:
            raise unknown_name(name, starts, "parameter or initial value", "log")
    return names


def _initial_value(initial: Any, variables: list[str], quantity: str) -> float:
    if isinstance(initial, Mapping):
        named = {symbol_name(key): value for key, value in initial.items()}
        if quantity[:-3] not in named:
            raise InvalidProblemError(
                f"{quantity} is to be estimated, but initial does not name {quantity[:-3]!r}: give it there, or a "
                f"starting value, parameters={{{quantity!r}: ...}}"
            )
        return named[quantity[:-3]]
    flat = np.concatenate([np.atleast_1d(np.asarray(part, dtype=float)) for part in _parts(initial)])
    place = variables.index(quantity[:-3])
    if place >= flat.size:
        raise InvalidProblemError(
            f"{quantity} is to be estimated: give a starting value, parameters={{{quantity!r}: ...}}"
        )
    return float(flat[place])


def _parts(initial: Any) -> list[Any]:
    parts = list(initial) if isinstance(initial, tuple) else [initial]
    return [part for part in parts if part is not None]


def _replaced(initial: Any, changes: Mapping[int, float]) -> Any:
    """Initial values with some numbers replaced, by index in the state; (q, v) and (y, z) count as one state."""
    parts = list(initial) if isinstance(initial, tuple) else [initial]
    made: list[Any] = []
    offset = 0
    for part in parts:
        if part is None:
            made.append(None)
            continue
        values = np.atleast_1d(np.array(part, dtype=float))
        for place, value in changes.items():
            if offset <= place < offset + values.size:
                values[place - offset] = value
        offset += values.size
        made.append(values)
    if any(place >= offset for place in changes):
        raise InvalidProblemError("an initial value is to be estimated, but its part of initial is None: give numbers")
    return tuple(made) if isinstance(initial, tuple) else made[0]


# --- measured values of one run in any form: a mapping, a frame, or times and values ----------------------------------

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
            f"{outside[0]:g}; widen t_span or omit these times"
        )
    return first, last
