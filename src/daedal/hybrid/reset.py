"""From the state in which a mode ends to the initial values of the next one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.hybrid.arguments import StateForm
from daedal.hybrid.problem import ZENO, Transition
from daedal.initial.consistent import consistent_initial
from daedal.problems import HessenbergDAE, LinearDAE, SecondOrderDAE

_EXPLAINED = 100.0  # tolerances by which a state may be moved without being asked to

_NEGLIGIBLE = 1e-3  # tolerances below which an entry of the state may as well be zero


@dataclass
class Begin:
    """Initial values of a mode: the stacked vector, y' of an implicit problem, whether they may be corrected."""

    y: np.ndarray
    yp: np.ndarray | None
    correct: bool


def choose_target(transition: Transition, form: StateForm, t: float, y, yp, modes) -> str | None:
    """The mode that follows, or None if the run ends."""
    if not callable(transition.target):
        return transition.target
    target = form.bind(transition.target, f"target of '{transition.name}'")(t, y, yp)
    if target is not None and (not isinstance(target, str) or target not in modes):
        raise InvalidProblemError(
            f"target of '{transition.name}' returned {target!r} at t = {t:g}, which is not a mode; "
            f"there are {', '.join(modes)}"
        )
    return target


def carry_over(transition: Transition, source: str, target: str, forms, t: float, y, yp) -> Begin:
    """The initial values of the mode `target`: what the reset says, or the state as it is."""
    old, new = forms[source], forms[target]
    project = transition.project or transition.guard == ZENO
    reset = transition.reset_to(target)
    if reset is None:
        return Begin(_continued(transition, source, target, old, new, y), None, project or not new.mechanical)
    value = old.bind(reset, f"reset of '{transition.name}'")(t, y.copy(), None if yp is None else yp.copy())
    values, slope, incomplete = new.stack(value, f"reset of '{transition.name}' at t = {t:g} returned a wrong state: ")
    if new.mechanical and new.problem.n_r and len(value) < 3 and old.mechanical and old.problem.n_r == new.problem.n_r:
        values[-new.problem.n_r :] = y[-new.problem.n_r :]
    return Begin(values, slope, project or (incomplete and not new.mechanical))


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


def make_consistent(form: StateForm, t: float, begin: Begin, weights: np.ndarray) -> Begin:
    """Values moved onto the constraints; refused if they may not be moved and are off by more than the tolerances."""
    problem = form.problem.semi_explicit() if isinstance(form.problem, LinearDAE) else form.problem
    if isinstance(problem, (HessenbergDAE, SecondOrderDAE)):
        return begin  # completed by the integration
    try:
        found = consistent_initial(problem, t, form.initial(begin.y, begin.yp))
    except InconsistentInitialError:
        small = np.abs(begin.y) < _NEGLIGIBLE * weights
        if not small.any():
            raise
        # Round-off about zero has no scale of its own by which a projection could be judged.
        found = consistent_initial(problem, t, form.initial(np.where(small, 0.0, begin.y), begin.yp))
    if form.mechanical:
        y, yp = np.concatenate([found.q, found.v, found.r]), None
    else:
        y, yp = (found[0], found[1]) if form.implicit else (np.concatenate(found), None)
    if not begin.correct and np.max(np.abs(y - begin.y) / weights) > _EXPLAINED:
        raise InconsistentInitialError("the values are off by more than the tolerances")
    return Begin(y, yp, True)
