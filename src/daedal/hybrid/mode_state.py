"""State of a mode: as a vector, by name, and mapped from one mode to another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.driver.request import Request, checked_settings
from daedal.driver.solver import solve_request
from daedal.errors import DaedalError, InconsistentInitialError, InvalidProblemError, Unevaluable
from daedal.hybrid.hybrid_problem import ZENO, Transition
from daedal.initial.by_name import initial_by_name
from daedal.initial.consistent import corrected_initial
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.problems import (
    ODE,
    HessenbergDAE,
    ImplicitDAE,
    LinearDAE,
    MechanicalSystem,
    SecondOrderDAE,
    SemiExplicitDAE,
)
from daedal.problems.arguments import FIRST, PARAMS, SECOND, TIME, WHOLE, StateArguments, state_split
from daedal.problems.checks import check_vector, is_pair
from daedal.problems.compile import last_argument
from daedal.problems.named_inputs import in_driven_form

_OUTGROWN = 1e4  # factor by which coordinates may grow before difference increments are chosen again
_MOST_MODES = 30  # maximum number of modes in a message
_SHORT_RUN = checked_settings(rtol=1e-10, correct_initial=True)


def some(names: Iterable[str]) -> str:
    """Names of modes; long lists are truncated."""
    found = list(itertools.islice(names, _MOST_MODES + 1))
    return ", ".join(found[:_MOST_MODES]) + (", ..." if len(found) > _MOST_MODES else "")


class StateForm:
    """How the state of a problem is stacked in one vector: (q, v, r), (y, z), (x, x'), or y.

    A form belongs to one run: it caches objects for evaluating accelerations.
    """

    def __init__(self, problem):
        self.problem = problem
        self.params = getattr(problem, "params", None)
        self.mechanical = isinstance(problem, MechanicalSystem)
        self.implicit = isinstance(problem, ImplicitDAE)
        self.ordinary = isinstance(problem, ODE)
        self.second_order = isinstance(problem, SecondOrderDAE)
        self.n: int = 2 * problem.n if self.second_order else problem.n
        self.labels = tuple(problem.label(i) for i in range(problem.n))
        if self.second_order:
            self.labels += tuple(f"{label}'" for label in self.labels)
        self.split: int | None = state_split(problem)
        further = ("lam", "r") if self.mechanical and problem.n_r else ("lam",) if self.mechanical else ()
        self.arguments = StateArguments(problem, self.params is not None, self.split is not None, further)
        self._assembly: SystemWorkspace | None = None
        self._size = 0.0  # size of the coordinates for which the assembly's increments were chosen
        self._quick: bool | None = None  # whether constraints are independent, judged at the first point

    def differential(self) -> np.ndarray:
        """Mask of entries that must be given; the others can be computed."""
        needed = np.ones(self.n, dtype=bool)
        if isinstance(self.problem, (SemiExplicitDAE, LinearDAE)):
            needed[self.split :] = False
        elif self.implicit and self.problem.algebraic is not None:
            needed[np.asarray(self.problem.algebraic, dtype=bool)] = False
        elif self.second_order and self.problem.order is not None:
            needed = np.concatenate([self.problem.order > 0, self.problem.order > 1])
        return needed

    def output(self, solution) -> np.ndarray:
        """The vectors at the output points, as columns."""
        return np.concatenate([solution.x, solution.xp]) if self.second_order else solution.y[: self.n]

    def at_end(self, solution) -> tuple[np.ndarray, np.ndarray | None]:
        """The vector at the last output point, and y' of an implicit problem."""
        return self.output(solution)[:, -1], solution.yp[: self.n, -1] if self.implicit else None

    def seen(self, y: np.ndarray) -> np.ndarray:
        """The part of the vector that events and guards receive during an integration: without additional states r."""
        return y[: 2 * self.problem.n_q] if self.mechanical else y

    def at_event(self, solution, event) -> tuple[np.ndarray, np.ndarray | None]:
        """The vector at an event, and y' of an implicit problem."""
        if self.second_order:
            x, xp, _ = solution._split(event.y[:, None], event.yp[:, None])
            return np.concatenate([x[:, 0], xp[:, 0]]), None
        return event.y[: self.n], event.yp[: self.n] if self.implicit else None

    def stack(self, initial, what: str) -> tuple[np.ndarray, np.ndarray | None, bool]:
        """The state vector, its derivative if given, and whether some values must be computed."""
        (first, second), problem, n = self.arguments.letters, self.problem, self.n
        if self.mechanical:
            initial = getattr(initial, "initial", initial)  # pair of a consistent state
            if not isinstance(initial, (tuple, list)) or not 2 <= len(initial) <= 5:
                raise InvalidProblemError(f"{what}expected a pair (q, v), or (q, v, r), got {initial!r}")
            q, v, r = (*initial, None)[:3]
            parts = [
                check_vector(q, problem.n_q, f"{what}q", names=problem.names),
                np.zeros(problem.n_q) if v is None else check_vector(v, problem.n_q, f"{what}v"),
                np.zeros(problem.n_r) if r is None else check_vector(r, problem.n_r, f"{what}r"),
            ]
            return np.concatenate(parts), None, v is None
        a, b = initial if is_pair(initial) else (initial, None)
        if self.implicit or isinstance(problem, HessenbergDAE):
            y = check_vector(a, n, f"{what}{first}", names=self.labels)
            return y, None if b is None or not self.implicit else check_vector(b, n, f"{what}{second}"), b is None
        assert self.split is not None
        x = check_vector(a, self.split, f"{what}{first}")
        z = np.zeros(n - self.split) if b is None else check_vector(b, n - self.split, f"{what}{second}")
        return np.concatenate([x, z]), None, b is None

    def completed(self, initial):
        """The user's initial values, with None for the second part if only the first is given."""
        alone = not self.mechanical and not isinstance(self.problem, HessenbergDAE) and not is_pair(initial)
        return (initial, None) if alone else initial

    def initial(self, y: np.ndarray, yp: np.ndarray | None):
        """Initial values in the form that :func:`daedal.solve` accepts."""
        if self.mechanical:
            k = self.problem.n_q
            return (y[:k], y[k : 2 * k], y[2 * k :]) if y.size > 2 * k else (y[:k], y[k:])
        if isinstance(self.problem, HessenbergDAE):
            return y
        return (y, yp) if self.implicit else (y[: self.split], y[self.split :])

    def event_function(self, guard) -> Callable[..., np.ndarray]:
        """``guard(t, y, yp)`` with the arguments that :func:`daedal.solve` passes to an event of this problem."""
        if self.second_order:
            return lambda t, x, xp: guard(t, np.concatenate([x, xp]), None)
        return guard if self.implicit else lambda t, y: guard(t, y, None)

    def bind(self, function, what: str, *, sees_all: bool = True) -> Callable[[float, np.ndarray, Any], Any]:
        """Convert `function` to a function of (t, y, yp), whatever its arguments.

        During an integration a function of a mechanical system receives only q and v, not additional states r, unless
        `sees_all`.
        """
        function = in_driven_form(function, self.params)
        places, split, n = self.arguments.of(function, what), self.split, self.n
        hidden = next((name for name in ("lam", "r") if name in places), None)
        if hidden and self.problem.n_r and not sees_all:
            raise InvalidProblemError(
                f"{what} takes '{hidden}', but for a system with states r it can only receive q and v"
            )
        if places == (TIME, WHOLE):
            return lambda t, y, yp: function(t, y[:n])
        end = 2 * split if self.mechanical and split else n
        if places == (TIME, FIRST, SECOND):
            if split is None:
                return lambda t, y, yp: function(t, y, yp)
            return lambda t, y, yp: function(t, y[:split], y[split:end])
        last = last_argument(function, self.params) if PARAMS in places else (None,)

        def named(t, y, yp):
            given = {TIME: t, WHOLE: y[:n], FIRST: y[:split], PARAMS: last[0], "r": y[end:]}
            given[SECOND] = yp if split is None else y[split:end]
            if "lam" in places:
                given["lam"] = self.accelerate(t, y)[1]
            return function(*[given[place] for place in places])

        return named

    def accelerate(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations and multipliers of a mechanical system.

        The fast computation, without checking for dependent constraints, is used if it gave the same result at the
        first point.
        """
        k = self.problem.n_q
        state = y if y.size == self.n else np.concatenate([y, np.zeros(self.n - y.size)])
        if self._quick is not False:
            a, lam, _, _, status = self._assembled(t, y[:k]).accelerate(t, state)
            if self._quick and status[0] == 0 and np.isfinite(a).all():
                return a[0], lam[0]
        point = self.problem.at(t, y[:k], y[k : 2 * k], r=state[2 * k :])
        if self._quick is None:
            self._quick = bool(np.allclose(point.multipliers, lam[0], rtol=1e-6, atol=1e-9))
        return point.acceleration, point.multipliers

    def _assembled(self, t: float, q: np.ndarray) -> SystemWorkspace:
        """The system as seen by kernels, with increments for the current size of the coordinates."""
        size = float(np.max(np.abs(q), initial=0.0))
        if self._assembly is None or size > _OUTGROWN * self._size:
            self._assembly, self._size = SystemWorkspace(self.problem, t, q), size or 1.0
        return self._assembly

    def motion(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> Callable[[float], Any]:
        """Function of a small step h that returns the state after the step, and y' of an implicit problem; or None."""
        if self.mechanical:
            k = self.problem.n_q
            v, a = y[k : 2 * k], self.accelerate(t, y)[0]
            rest = y[2 * k :]
            return lambda h: (np.concatenate([y[:k] + h * v + 0.5 * h * h * a, v + h * a, rest]), None)
        if self.implicit:
            return lambda h: None if yp is None else (y + h * yp, yp)
        return lambda h: self._short_run(t, y, h)

    def _short_run(self, t: float, y: np.ndarray, step: float):
        request = Request(self.problem, _SHORT_RUN, (t, t + step), self.initial(y, None), t_stop=t + step)
        try:
            return self.output(solve_request(request))[:, -1], None
        except DaedalError:
            return None


# --- initial values of a run through modes, by name -------------------------------------------------------------------


def values_by_name(problem: Any, t0: float, initial: Any) -> Any:
    """Initial values with vectors instead of a mapping: ``{"x": 1.0}`` or ``("mode", {"x": 1.0})``; others are
    unchanged."""
    if isinstance(initial, Mapping):
        return initial_by_name(_first_problem(problem), t0, initial)
    if isinstance(initial, (tuple, list)) and len(initial) == 2 and isinstance(initial[1], Mapping):
        mode, values = initial
        if isinstance(mode, str) and mode in problem.modes:
            return mode, initial_by_name(problem.modes[mode].problem, t0, values)
    return initial


def _first_problem(problem: Any) -> Any:
    """The problem to which names refer if no mode is named."""
    if hasattr(problem, "system"):  # friction and contacts, which infer the mode
        return problem.system
    if isinstance(problem.start, str):
        return problem.modes[problem.start].problem
    raise InvalidProblemError(
        "initial values by name need a mode: (mode, {name: value, ...}), or a HybridProblem with start=mode; the "
        f"modes are {', '.join(problem.modes)}"
    )


# --- from the end of a mode to the initial values of the next mode ----------------------------------------------------


_EXPLAINED = 100.0  # largest correction of a state without project=True, in tolerances
_NEGLIGIBLE = 1e-3  # size, in tolerances, below which an entry of the state counts as zero


@dataclass
class ModeInitial:
    """Initial values of a mode: the stacked vector, y' of an implicit problem, whether the values may be
    corrected (`correct`), and whether they are known to be consistent (`found`)."""

    y: np.ndarray
    yp: np.ndarray | None
    correct: bool
    found: bool = False


class BoundTransition:
    """A transition out of one mode, with its functions as functions of (t, y, yp)."""

    def __init__(self, transition: Transition, source: str, forms: Mapping[str, StateForm]):
        self.transition, self.name, self.source, self._forms = transition, str(transition.name), source, forms
        self._projects = transition.project or transition.guard == ZENO
        self._resets: dict[str, Callable[..., Any] | None] = {}
        self._target = None
        if callable(transition.target):
            self._target = forms[source].bind(transition.target, f"target of '{self.name}'")

    def target(self, t: float, y, yp) -> str | None:
        """The next mode, or None if the run ends."""
        if self._target is None:
            return self.transition.target
        target = self._target(t, y, yp)
        if target is not None and (not isinstance(target, str) or target not in self._forms):
            raise InvalidProblemError(
                f"target of '{self.name}' returned {target!r} at t = {t:g}, which is not a mode; "
                f"the modes are {some(self._forms)}"
            )
        return target

    def carry_over(self, target: str, t: float, y, yp) -> ModeInitial:
        """Initial values of the mode `target`: from the reset, or the unchanged state."""
        old, new, reset = self._forms[self.source], self._forms[target], self._reset(target)
        if reset is None:
            y = _continued(self.transition, self.source, target, old, new, y)
            return ModeInitial(y, None, self._projects or not new.mechanical)
        value = reset(t, y.copy(), None if yp is None else yp.copy())
        values, slope, incomplete = new.stack(value, f"reset of '{self.name}' at t = {t:g} returned an invalid state: ")
        n_r = new.problem.n_r if new.mechanical else 0
        if n_r and len(value) < 3 and old.mechanical and old.problem.n_r == n_r:
            values[-n_r:] = y[-n_r:]
        return ModeInitial(values, slope, self._projects or (incomplete and not new.mechanical))

    def _reset(self, target: str) -> Callable[..., Any] | None:
        if target not in self._resets:
            given = self.transition.reset_to(target)
            form = self._forms[self.source]
            self._resets[target] = None if given is None else form.bind(given, f"reset of '{self.name}'")
        return self._resets[target]


def _continued(transition: Transition, source: str, target: str, old: StateForm, new: StateForm, y) -> np.ndarray:
    """The state after a transition without a reset: copied, or matched by variable names."""
    named = old.problem.names is not None and new.problem.names is not None
    if old.labels == new.labels or (type(old.problem) is type(new.problem) and old.n == new.n and not named):
        return y[: new.n].copy()
    if not named:
        raise InvalidProblemError(
            f"transition '{transition.name}' has no reset, and the state of '{source}' ({old.n} variables) does "
            f"not determine that of '{target}' ({new.n} variables). Remedy: give a reset, or name the variables of "
            f"both modes"
        )
    places = {label: i for i, label in enumerate(old.labels)}
    needed = new.differential()
    missing = [label for label, need in zip(new.labels, needed, strict=True) if need and label not in places]
    if missing:
        raise InvalidProblemError(
            f"transition '{transition.name}' has no reset, and '{source}' lacks variables {', '.join(missing[:8])} "
            f"of '{target}'. Remedy: give a reset"
        )
    return np.array([y[places[label]] if label in places else 0.0 for label in new.labels])


def make_consistent(form: StateForm, t: float, begin: ModeInitial, weights: np.ndarray) -> ModeInitial:
    """Values projected onto the constraints; raises if corrections are not allowed and exceed the tolerances.

    Differential variables of first-order problems change only if the constraints require it, and by no more than the
    tolerances explain.
    """
    problem = form.problem.semi_explicit() if isinstance(form.problem, LinearDAE) else form.problem
    if isinstance(problem, (HessenbergDAE, SecondOrderDAE)):
        return begin  # completed by the integration
    if form.ordinary:
        with suppress(Unevaluable):
            slope = form.problem.slope(t, begin.y)
            if np.isfinite(slope).all():
                return ModeInitial(begin.y, slope, True, found=True)
    measured: dict[str, Any] = {} if form.mechanical else {"rtol": 1e-14, "atol": weights}
    small = np.abs(begin.y) < _NEGLIGIBLE * weights  # round-off near zero provides no scale for judging a projection
    guesses = [(begin.y, 0.0), (begin.y, _EXPLAINED), *([(np.where(small, 0.0, begin.y), 0.0)] if small.any() else [])]
    refusal: InconsistentInitialError | None = None
    for y, reach in guesses:
        try:
            found = corrected_initial(problem, t, form.initial(y, begin.yp), reach=reach, **measured)
            break
        except InconsistentInitialError as error:
            refusal = refusal or error
    else:
        assert refusal is not None
        raise refusal
    if form.mechanical:
        y, yp = np.concatenate([found.q, found.v, found.r]), None
    else:
        y, yp = (found[0], found[1]) if form.implicit else (np.concatenate(found), None)
    if not begin.correct and np.max(np.abs(y - begin.y) / weights) > _EXPLAINED:
        raise InconsistentInitialError(
            f"to satisfy the equations, the values would have to change by more than {_EXPLAINED:g} tolerances"
        )
    return ModeInitial(y, yp, True, found=True)
