"""Requests to the driver: the checked arguments of :func:`daedal.solve`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isinf
from typing import Any

import numpy as np

from daedal.driver.options import RunOptions, Sensitivities, SolverOptions, split
from daedal.errors import InvalidProblemError
from daedal.methods.named_methods import refuse_options_of_auto
from daedal.problems import HessenbergDAE, Quasilinear
from daedal.problems.checks import check_number, check_real, paired
from daedal.problems.symbols import check_values

_PLAIN = (str, float, int, bool, type(None))  # types whose values are used as keys unchanged
_FEWEST_SPACINGS = 1e4  # smallest number of floats in t_span
_SHORTEST_SPAN = (
    1e-300  # smallest length of t_span: smaller step sizes, or their reciprocals, leave the range of floats
)
_MOST_FIXED_STEPS = 1_000_000  # limit without max_steps, for mistyped values of fixed_step that would exhaust memory


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings that do not depend on interval and start: the arguments of :func:`daedal.prepare`."""

    method: Any
    formulation: Any
    rtol: Any
    atol: Any
    events: Any
    max_steps: int | None  # None: unlimited, as long as the run makes progress
    first_step: float | None
    max_step: float
    fixed_step: float | None
    dense_output: bool | None
    correct_initial: bool
    compile: str
    switches: str
    sensitivities: Sensitivities | None
    options: dict[str, Any]  # options of the method

    @property
    def key(self) -> tuple:
        """Hashable values of the settings on which a plan depends; the others may vary between runs."""
        chosen = (self.method, self.formulation, self.rtol, self.atol, self.compile, *self.options.items())
        if self.sensitivities is not None:
            chosen = (*chosen, *self.sensitivities.key)
        return tuple([value if type(value) in _PLAIN else _identity(value) for value in chosen])


@dataclass(frozen=True, eq=False)
class Request:
    """One run: problem, settings, interval, start and output."""

    problem: Any
    settings: Settings
    span: tuple[float, float]
    initial: Any
    times: np.ndarray | None = None
    t_stop: float = inf
    progress: Any = False
    began: float = field(default_factory=time.perf_counter)
    event_names: list[str] = field(default_factory=list)  # names of the events, filled when known
    # names of switching functions about whose zeros the user has been warned
    doubted: set[str] = field(default_factory=set)
    begins_only: bool = False  # whether the run is prepared but not started, see `run_segments.run`

    def stacked(self, problem: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Checked y0 and, if given, y'0 of a first-order problem."""
        kept = vars(self).get("_stacked")
        if kept is None:
            from daedal.initial.consistent import split_initial

            kept = vars(self)["_stacked"] = split_initial(problem, self.initial)
        return kept[0].copy(), None if kept[1] is None else kept[1].copy()

    @property
    def sign(self) -> float:
        """The direction of time: 1 or -1."""
        return 1.0 if self.span[1] > self.span[0] else -1.0

    @property
    def remedies_taken(self) -> frozenset[str]:
        """Remedies that messages about initial values omit, since the user has applied them."""
        taken = {"correct_initial"} if self.settings.correct_initial else set()
        if isinstance(self.initial, (tuple, list)) and len(self.initial) > 1 and self.initial[1] is None:
            taken.add("None")
        return frozenset(taken)

    def changed(self, **values) -> Request:
        """The request with some values replaced, including values of the settings."""
        inner = {name: values.pop(name) for name in list(values) if name in Settings.__dataclass_fields__}
        if inner:
            values["settings"] = replace(self.settings, **inner)
        return replace(self, **values)


def checked_settings(**given: Any) -> Settings:
    """Settings from options of `prepare`; tolerances, method and formulation are checked later, with the problem."""
    known, rest = split(given)
    return _settings(known, rest)


def checked_options(given: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Settings from options of `solve`, and the options of the run."""
    known, rest = split(given, RunOptions)
    run = {name: known.pop(name) for name in _OF_A_RUN}
    return _settings(known, rest), run


_OF_A_RUN = tuple(RunOptions.__annotations__.keys() - SolverOptions.__annotations__.keys())


def _settings(known: dict[str, Any], rest: dict[str, Any]) -> Settings:
    if rest and isinstance(known["method"], str) and known["method"] == "auto":
        refuse_options_of_auto([name for name in rest if name not in _OF_HYBRID_RUNS])
    return Settings(**known, options=rest)


_OF_HYBRID_RUNS = ("max_events", "record_events")


def checked_request(problem, settings: Settings, t_span, initial, *, t_eval=None, t_stop=None, progress=False):
    """A request from the user's arguments."""
    span = check_span(t_span)
    times = None if t_eval is None else check_times(t_eval, span)
    stop = span[1] if t_stop is None else _check_stop(t_stop, span)
    if settings.first_step is not None and settings.first_step > abs(span[1] - span[0]):
        raise InvalidProblemError(
            f"first_step = {settings.first_step:g} is longer than t_span ({abs(span[1] - span[0]):g})"
        )
    if settings.fixed_step is not None:
        step = _check_fixed_step(settings.fixed_step, span, settings.max_steps)
        settings = replace(settings, fixed_step=step)
    check_values(getattr(problem, "params", None))
    if isinstance(initial, Mapping) and not hasattr(problem, "modes"):
        from daedal.initial.by_name import initial_by_name

        initial = initial_by_name(problem, span[0], initial)
    elif isinstance(problem, Quasilinear):
        initial = problem.pair(initial)
    elif not isinstance(problem, HessenbergDAE) and not hasattr(problem, "modes"):
        initial = paired(problem, initial)
    return Request(problem, settings, span, initial, times, stop, progress)


def check_span(t_span) -> tuple[float, float]:
    """The interval as two floats, after checks."""
    if type(t_span) is tuple and len(t_span) == 2 and type(t_span[0]) is float and type(t_span[1]) is float:
        t0, t1 = t_span
    else:
        expected = "be a pair (t0, t1) of numbers"
        ends = check_real(t_span, "t_span", expected)
        if ends.shape != (2,):
            raise InvalidProblemError(f"t_span must {expected}, got {t_span!r}")
        t0, t1 = ends.tolist()
    if not (isfinite(t0) and isfinite(t1)):
        raise InvalidProblemError(f"t_span must be finite, got ({t0}, {t1})")
    if t0 == t1:
        raise InvalidProblemError(f"t_span is empty: it starts and ends at {t0}")
    if not _SHORTEST_SPAN <= abs(t1 - t0) < inf:
        raise InvalidProblemError(f"t_span ({t0}, {t1}) has a length outside the range of floats; rescale the time")
    spacing = float(np.spacing(max(abs(t0), abs(t1))))
    if abs(t1 - t0) < _FEWEST_SPACINGS * spacing:
        raise InvalidProblemError(
            f"t_span ({t0}, {t1}) cannot be resolved: floats near {t1:g} are {spacing:.2g} apart. Shift the time, "
            "for example so that it starts at 0"
        )
    return t0, t1


def check_times(t_eval, span: tuple[float, float]) -> np.ndarray:
    """Output times as an array, which must be monotone and within the interval."""
    times = check_real(t_eval, "t_eval", "be a sequence of times").reshape(-1)
    low, high = span if span[0] < span[1] else span[::-1]
    if times.size and not (low <= times.item(0) <= high and low <= times.item(-1) <= high):
        _refuse_times(times, f"lie within t_span {span}")
    if times.size > 1:
        ahead = times[1:] > times[:-1] if span[1] > span[0] else times[1:] < times[:-1]
        if not ahead.all():
            inside = low <= times.min() and times.max() <= high
            what = "be strictly monotone in the direction of integration" if inside else f"lie within t_span {span}"
            _refuse_times(times, what)
    return times


def _refuse_times(times: np.ndarray, what: str):
    if not np.isfinite(times).all():
        raise InvalidProblemError("t_eval contains values that are not finite")
    raise InvalidProblemError(f"t_eval must {what}")


def _check_stop(t_stop, span) -> float:
    stop = check_number(t_stop, "t_stop")
    sign = 1.0 if span[1] > span[0] else -1.0
    if isinf(stop):
        return sign * inf
    if not sign * (stop - span[1]) >= 0.0:
        raise InvalidProblemError(
            f"t_stop = {stop:g} lies before {span[1]:g}, the end of t_span; it must not lie inside t_span"
        )
    return stop


def _check_fixed_step(step: float, span, max_steps: int | None) -> float:
    length, most = abs(span[1] - span[0]), _MOST_FIXED_STEPS if max_steps is None else max_steps
    if length / step > most + 0.5:
        limit = f"the default limit of {most}" if max_steps is None else f"max_steps = {most}"
        raise InvalidProblemError(
            f"fixed_step = {step:g} takes {length / step:.4g} steps, more than {limit}; "
            "use longer steps or a larger max_steps"
        )
    count = round(length / step)
    if count < 1 or abs(count * step - length) > 1e-8 * length:
        raise InvalidProblemError(f"fixed_step = {step:g} does not divide the interval of length {length:g}")
    return length / count


def _identity(value):
    """A hashable key that is equal for equal settings: numbers and arrays by value, other objects by identity."""
    if isinstance(value, (list, tuple)):
        return tuple(_identity(item) for item in value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return _Same(value)


class _Same:
    """Wrapper that compares an object by identity and keeps it alive."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return id(self.value)

    def __eq__(self, other):
        return isinstance(other, _Same) and other.value is self.value
