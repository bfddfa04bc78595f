"""Comparison of machine code with user functions, to round-off, and warnings of functions with memory or jumps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.problems import SecondOrderDAE, SemiExplicitDAE
from daedal.problems.checks import full_matrix
from daedal.problems.compile import last_argument
from daedal.symbolic import Untraceable
from daedal.symbolic.substitution import DRAWN
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.tracer import TracedProblem

_SAME = 1e-11  # relative difference up to which values always count as equal
_MOVE = 1e-12  # relative perturbation of the arguments for estimating round-off
_WRONG = 1e-3  # error above which an entry of a given matrix is wrong, as a fraction of the largest entry of its row
_FACTORS = ("cj", "c1", "c2")
_MOVES = 3
_ALLOWED = 100.0  # differences below this multiple of the change by a perturbation _MOVE are attributed to round-off


@dataclass(frozen=True)
class Disagreement:
    """A function that disagrees with its trace."""

    name: str
    component: int | None
    t: float

    def __str__(self) -> str:
        where = "" if self.component is None else f", component {self.component},"
        return f"{self.name}{where} at t = {self.t:.6g}"


def disagreement(
    traced: TracedProblem, functions: Mapping[str, TracedFunction], params: Any, t: float, point: Mapping[str, Any]
) -> Disagreement | None:
    """The first function that differs from its machine code at a point, given by argument names; None if all agree."""
    last = () if traced.layout is None else (params,)
    for name, function in functions.items():
        arrays = [point[argument] for argument in traced.arguments[name]]
        component = _difference(function, t, arrays, last)
        if component is not None:
            return Disagreement(name, None if component < 0 else component, t)
    return None


def irregular_derivatives(traced: TracedProblem) -> tuple[str, ...]:
    """Derivatives that can become infinite for reasons other than overflow."""
    return tuple(name for name, function in traced.derivatives.items() if not function.is_regular)


def infinite_derivatives(traced: TracedProblem, params: Any, t: float, point: Mapping[str, Any]) -> tuple[str, ...]:
    """Derivatives that are infinite at a point at which their function is finite, where finite differences may still
    work."""
    last = () if traced.layout is None else (params,)
    found = []
    for name in irregular_derivatives(traced):
        arrays = [point[argument] for argument in traced.arguments[name]]
        status, values = traced.derivatives[name].evaluate(t, *arrays, *last)
        if status == 0 and not np.isfinite(values).all():
            found.append(name)
    return tuple(found)


def wrong_entry(traced: TracedProblem, problem: Any, t: float, point: Mapping[str, Any]) -> str | None:
    """Description of an entry of a given Newton matrix that clearly differs from the residual's derivative; None if
    there is none."""
    if traced.exact_matrix is None or getattr(problem, "jacobian", None) is None:
        return None
    values: dict[str, Any] = {"t": t, **point}
    if traced.layout is not None:
        values[NAME] = traced.layout.numbers(problem.params)
    stacked = problem.implicit() if isinstance(problem, SemiExplicitDAE) else problem
    arrays, factors = [x for x in point.values() if np.ndim(x)], [point[name] for name in _FACTORS if name in point]
    if isinstance(problem, SemiExplicitDAE):
        arrays = [np.concatenate(arrays[:2]), arrays[2]]
    factors = factors[1:] if isinstance(problem, SecondOrderDAE) else factors[:1]
    try:
        with np.errstate(all="ignore"):
            exact = traced.exact_matrix(values)
            last = last_argument(stacked.jacobian, stacked.params)
            jacobian: Any = stacked.jacobian
            given = full_matrix(stacked, jacobian(t, *[x.copy() for x in arrays], *factors, *last))
        size = np.maximum(np.abs(exact), np.abs(given)).max(axis=1, keepdims=True)
        excess = np.abs(given - exact) - _WRONG * size
    except Exception:  # undefined here; the run raises the detailed error
        return None
    if given.shape != exact.shape or not np.isfinite(excess).all() or excess.max() <= 0.0:
        return None
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    where = f"the derivative of equation {i} with respect to {stacked.label(int(j))}"
    return f"{where} is {given[i, j]:.6g}, but should be {exact[i, j]:.6g}"


def beside(point: Mapping[str, Any], share: float) -> dict[str, Any]:
    """A point at the distance `share` (as a fraction of the largest coordinate), generally without zero coordinates."""
    moved = {}
    for name, values in point.items():
        if isinstance(values, float):
            moved[name] = values
            continue
        size = np.max(np.abs(values), initial=0.0) or 1.0
        moved[name] = values + share * size * np.cos(0.4 + 1.9 * np.arange(values.size))
    return moved


def _difference(function: TracedFunction, t: float, arrays: list, last: tuple) -> int | None:
    """Index of the component that differs most, -1 if there is no result to compare; None if all agree."""
    status, found = function.evaluate(t, *arrays, *last)
    if status != 0:
        return None  # falls back to Python at this point
    expected = _value(function, t, arrays, last)
    if expected is None or expected.shape != found.shape:
        return -1
    if (found == expected).all():
        return None
    with np.errstate(all="ignore"):
        return _beyond_round_off(function, t, arrays, last, found, expected)


def _beyond_round_off(function, t: float, arrays: list, last: tuple, found, expected) -> int | None:
    gap = np.abs(found - expected)
    wrong = ~((gap <= _SAME * np.abs(expected)) | (found == expected) | (np.isnan(found) & np.isnan(expected)))
    if not wrong.any():
        return None
    noise = 1e-13 * np.max(np.abs(expected), initial=0.0)
    for k in range(_MOVES):
        moved = _value(function, *_moved(t, arrays, k), last)
        if moved is None or moved.shape != found.shape:
            return None  # the function is at the boundary of its domain
        noise = noise + _ALLOWED * np.abs(moved - expected)
    wrong &= ~(gap <= noise)
    return int(np.argmax(np.where(wrong, gap, 0.0))) if wrong.any() else None


def _moved(t: float, arrays: list, k: int) -> tuple[float, list]:
    """All arguments perturbed by about 1 in 10^12, each by a different relative amount that varies with k.

    Terms then no longer cancel: the resulting change measures their size, and thus the expected round-off.
    """
    sizes = [np.size(a) for a in arrays]
    shares = np.cos(0.7 + 2.3 * np.arange(1 + sum(sizes)) + k * (1.0 + np.arange(1 + sum(sizes))))
    parts = np.split(1.0 + _MOVE * shares, np.cumsum([1, *sizes])[:-1])
    moved = [a * (part if np.ndim(a) else float(part[0])) for a, part in zip(arrays, parts[1:], strict=True)]
    return t * float(parts[0][0]), moved


def _value(function: TracedFunction, t: float, arrays: list, last: tuple) -> np.ndarray | None:
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arrays]
    try:
        with np.errstate(all="ignore"):  # branches not taken may be undefined
            return np.asarray(function.reference(t, *copies, *last), dtype=float)
    except Exception:  # any exception here should have been signalled by the code
        return None


def _called(name: str, function: Any) -> str:
    own = getattr(function, "__name__", type(function).__name__)
    return name if own in (name, "<lambda>", "NoneType") else f"{name} ({own})"


def jump_words(name: str, function: Any, reason: Untraceable, interval: float) -> str:
    """Message on a function whose jumps are not located: name, reason and remedy."""
    place = f" ({reason.site})" if reason.site else ""
    return (
        f"{_called(name, function)} {reason.reason}{place} and is not traced: its jumps cannot be located, and a "
        f"pulse shorter than a step may be missed. Remedy: {reason.remedy}; or give breakpoints at the jumps, or "
        f"max_step={1e-4 * interval:.1g}"
    )


def stateful_words(name: str, function: Any, reason: Untraceable) -> str:
    """Message on a function with memory or random numbers: name, consequence and remedy."""
    called = _called(name, function)
    place = f", {reason.site}" if reason.site else ""
    if reason.memory in DRAWN or "random" in reason.reason:
        return (
            f"{called} {reason.reason} ({reason.memory}{place}): each call gives another result, so the error "
            "estimate of a step is meaningless. Remedy: draw the numbers before the run, and put them into a "
            "daedal.Table"
        )
    return (
        f"{called} remembers '{reason.memory}' from call to call ({reason.reason}{place}). Functions are called "
        "several times per step, also in rejected steps, so this is not the state of the solution. Remedy: use "
        "modes (daedal.hybrid.HybridProblem) for switches with hysteresis, a daedal.Table for data, one run per "
        "sampling interval of a controller, with its output as a parameter, or an additional equation"
    )
