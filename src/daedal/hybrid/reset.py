"""From the state in which a mode ends to the initial values of the next one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.hybrid.messages import some
from daedal.hybrid.problem import ZENO, Transition
from daedal.hybrid.state_form import StateForm
from daedal.initial.consistent import consistent_initial
from daedal.problems import HessenbergDAE, LinearDAE, SecondOrderDAE

_EXPLAINED = 100.0  # tolerances by which a state may be moved without being asked to
_NEGLIGIBLE = 1e-3  # tolerances below which an entry of the state may as well be zero


@dataclass
class ModeInitial:
    """Initial values of a mode: the stacked vector, y' of an implicit problem, whether they may be corrected or are."""

    y: np.ndarray
    yp: np.ndarray | None
    correct: bool
    found: bool = False


class BoundTransition:
    """A transition out of one mode, with its functions as those of (t, y, yp)."""

    def __init__(self, transition: Transition, source: str, forms: Mapping[str, StateForm]):
        self.transition, self.name, self.source, self._forms = transition, str(transition.name), source, forms
        self._projects = transition.project or transition.guard == ZENO
        self._resets: dict[str, Callable[..., Any] | None] = {}
        self._target = None
        if callable(transition.target):
            self._target = forms[source].bind(transition.target, f"target of '{self.name}'")

    def target(self, t: float, y, yp) -> str | None:
        """The mode that follows, or None if the run ends."""
        if self._target is None:
            return self.transition.target
        target = self._target(t, y, yp)
        if target is not None and (not isinstance(target, str) or target not in self._forms):
            raise InvalidProblemError(
                f"target of '{self.name}' returned {target!r} at t = {t:g}, which is not a mode; "
                f"there are {some(self._forms)}"
            )
        return target

    def carry_over(self, target: str, t: float, y, yp) -> ModeInitial:
        """The initial values of the mode `target`: what the reset says, or the state as it is."""
        old, new, reset = self._forms[self.source], self._forms[target], self._reset(target)
        if reset is None:
            y = _continued(self.transition, self.source, target, old, new, y)
            return ModeInitial(y, None, self._projects or not new.mechanical)
        value = reset(t, y.copy(), None if yp is None else yp.copy())
        values, slope, incomplete = new.stack(value, f"reset of '{self.name}' at t = {t:g} returned a wrong state: ")
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
    """The state as it is: copied, or matched by the names of the variables."""
    named = old.problem.names is not None and new.problem.names is not None
    if old.labels == new.labels or (type(old.problem) is type(new.problem) and old.n == new.n and not named):
        return y[: new.n].copy()
    if not named:
        raise InvalidProblemError(
            f"transition '{transition.name}' has no reset, and the state of '{source}' ({old.n} variables) does not "
            f"tell that of '{target}' ({new.n} variables). Remedy: give a reset, or names to the variables of both"
        )
    places = {label: i for i, label in enumerate(old.labels)}
    needed = new.differential()
    missing = [label for label, need in zip(new.labels, needed, strict=True) if need and label not in places]
    if missing:
        raise InvalidProblemError(
            f"transition '{transition.name}' has no reset, and '{source}' has no variables {', '.join(missing[:8])}, "
            f"which '{target}' needs. Remedy: give a reset"
        )
    return np.array([y[places[label]] if label in places else 0.0 for label in new.labels])


def make_consistent(form: StateForm, t: float, begin: ModeInitial, weights: np.ndarray) -> ModeInitial:
    """Values moved onto the constraints; refused if they may not be moved and are off by more than the tolerances."""
    problem = form.problem.semi_explicit() if isinstance(form.problem, LinearDAE) else form.problem
    if isinstance(problem, (HessenbergDAE, SecondOrderDAE)):
        return begin  # completed by the integration
    measured = {} if form.mechanical else {"rtol": 1e-14, "atol": weights}
    try:
        found = consistent_initial(problem, t, form.initial(begin.y, begin.yp), **measured)
    except InconsistentInitialError:
        small = np.abs(begin.y) < _NEGLIGIBLE * weights
        if not small.any():
            raise
        # Round-off about zero has no scale of its own by which a projection could be judged.
        found = consistent_initial(problem, t, form.initial(np.where(small, 0.0, begin.y), begin.yp), **measured)
    if form.mechanical:
        y, yp = np.concatenate([found.q, found.v, found.r]), None
    else:
        y, yp = (found[0], found[1]) if form.implicit else (np.concatenate(found), None)
    if not begin.correct and np.max(np.abs(y - begin.y) / weights) > _EXPLAINED:
        raise InconsistentInitialError("the values are off by more than the tolerances")
    return ModeInitial(y, yp, True, found=True)
