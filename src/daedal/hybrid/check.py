"""A look at a hybrid model before it is run."""

from dataclasses import dataclass, field

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.hybrid.by_mode import ByMode
from daedal.hybrid.guards import Guards
from daedal.hybrid.messages import some
from daedal.hybrid.problem import HybridProblem
from daedal.hybrid.state_form import StateForm

_SHIFTS = (1e-3, 1e-1, 1.0)  # of the state, at which a guard that is zero is looked at once more


@dataclass(frozen=True)
class HybridReport:
    """What :meth:`HybridProblem.check` found.

    Attributes
    ----------
    guards : dict
        The values of the guards of the initial mode at the state, by name.
    reachable : tuple of str
        Modes to which transitions lead from the initial one; all of them if a target is a function.
    notes : tuple of str
        What may be a mistake.
    """

    guards: dict[str, float]
    reachable: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        lines = [f"guard of '{name}': {value:.6g}" for name, value in self.guards.items()]
        return "\n".join([*lines, f"reachable: {', '.join(self.reachable)}", *self.notes])


def check_hybrid(problem: HybridProblem, t: float, initial) -> HybridReport:
    """Check guards and resets of the initial mode; see :meth:`HybridProblem.check`."""
    initial = problem.entry((t, t), initial)
    named = isinstance(initial, (tuple, list)) and len(initial) == 2 and isinstance(initial[0], str)
    if not named or initial[0] not in problem.modes:
        raise InvalidProblemError(f"initial must be (mode, initial values), with a mode of {some(problem.modes)}")
    mode, given = initial
    forms = ByMode(problem.modes, lambda name: StateForm(problem.modes[name].problem))
    form, notes = forms[mode], []
    guards = Guards(mode, forms, problem.transitions_from(mode))
    y, yp, _ = form.stack(given, f"initial of mode '{mode}': ")
    yp = np.zeros(form.n) if form.implicit and yp is None else yp
    guards.prepare(t, y, yp)
    values = guards.evaluate(t, y, yp)
    for i in np.flatnonzero(values == 0.0):
        if _vanishes(guards, int(i), t, y, yp):
            raise InvalidProblemError(
                f"the guard of '{guards.names[i]}' is zero wherever it was looked at: it never changes its sign"
            )
    for i in np.flatnonzero(guards.direction * values > 0.0):
        notes.append(f"'{guards.names[i]}' is on the wrong side of its guard and would fire at once.")
    for transition in guards.transitions:
        target = transition.target(t, y, yp)
        if target is not None:
            transition.carry_over(target, t, y, yp)
    reachable = _reachable(problem, mode)
    missed = [name for name in problem.mode_names if name not in reachable]
    if missed:
        notes.append(f"No transition leads to {', '.join(missed)}.")
    return HybridReport(dict(zip(guards.names, values.tolist(), strict=True)), reachable, tuple(notes))


def _vanishes(guards: Guards, i: int, t: float, y: np.ndarray, yp) -> bool:
    """Whether a guard is zero beside the state as well."""
    pattern = np.cos(0.7 + 1.3 * np.arange(y.size))
    for shift in _SHIFTS:
        moved = y + shift * np.maximum(np.abs(y), 1.0) * pattern
        try:
            if guards.evaluate(t + shift, moved, None if yp is None else yp + shift * pattern)[i] != 0.0:
                return False
        except InvalidProblemError:  # not defined there
            return False
    return True


def _reachable(problem: HybridProblem, mode: str) -> tuple[str, ...]:
    found, open_ = [mode], [mode]
    while open_:
        here = open_.pop()
        last = problem.accumulation_from(here)
        for transition in [*problem.transitions_from(here), *([] if last is None else [last])]:
            if transition.target is None:
                continue
            targets = problem.mode_names if callable(transition.target) else (transition.target,)
            new = [name for name in targets if name not in found]
            found += new
            open_ += new
    return tuple(name for name in problem.mode_names if name in found) + tuple(
        name for name in found if name not in problem.mode_names
    )
