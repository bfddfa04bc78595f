"""Quantities to estimate: parameters and initial values by name, with bounds, on a linear or a logarithmic scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

import daedal
from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.problems.symbols import symbol_name
from daedal.sensitivity.differentiation import ParameterNumbers, entries_of, unknown_quantity
from daedal.sensitivity.fitting.experiment import Measurements


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
        """Whether it is an initial value."""
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
