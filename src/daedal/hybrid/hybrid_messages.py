"""Messages of runs through modes that end early."""

from __future__ import annotations

import numpy as np

from daedal.hybrid.mode_state import StateForm

_MOST_NAMED = 8


def state_in_words(form: StateForm, y: np.ndarray) -> str:
    """The first variables with their values."""
    shown = ", ".join(f"{label} = {value:.6g}" for label, value in zip(form.labels[:_MOST_NAMED], y, strict=False))
    return shown + (", ..." if y.size > _MOST_NAMED else "")


def end_reached(t: float) -> str:
    return f"The end of the interval, t = {t:g}, was reached."


def event_stopped(name: str, t: float) -> str:
    return f"The event '{name}' stopped the integration at t = {t:.10g}."


def transition_ended(name: str, t: float) -> str:
    return f"The transition '{name}' ended the run at t = {t:.10g}."


def interrupted(t: float) -> str:
    return f"Interrupted at t = {t:g}; this is the solution computed until then."


def loop(passed: list[tuple[str, str, np.ndarray]], mode: str, form: StateForm, y: np.ndarray, t: float) -> str:
    """Message on endless immediate transitions; `passed` holds the modes, the transitions out of them and the
    states."""
    same = [i for i, (name, _, state) in enumerate(passed) if name == mode and np.array_equal(state, y)]
    circle = passed[same[0] if same else -4 :]
    path = " -> ".join(f"{name} ({transition})" for name, transition, _ in circle[:6])
    if len({name for name, _, _ in circle}) > 1:
        remedy = (
            "if the equations of both modes lead back to the switching surface, the solution slides along it: use "
            "daedal.hybrid.Filippov. Otherwise, make the resets lead to the correct side of the guards."
        )
    else:
        remedy = (
            "make the reset lead to the correct side of the guard, or add a mode in which the state stays (a contact)."
        )
    return (
        f"A loop of immediate transitions at t = {t:.10g}: {path} -> {mode}. As soon as one of these modes "
        f"begins, the guard of its transition is on the wrong side, or moves to it. "
        f"State: {state_in_words(form, y)}. Remedy: {remedy}"
    )


def zeno(name: str | None, point: float, mode: str, count: int) -> str:
    return (
        f"The transitions '{name}' accumulate at t = {point:.10g} (Zeno behaviour): the intervals between them "
        f"shrink by a constant factor, and the run cannot pass that point. {count} transitions were taken. Remedy: "
        f"define the continuation by Transition('{mode}', ..., guard='zeno'), for example a mode at rest."
    )


def chattering(names: list[str], t: float, count: int) -> str:
    return (
        f"Chattering at t = {t:.10g}: after {count} transitions ({', '.join(names[:4])}) the time hardly advances. The "
        "equations on both sides lead back to the switching surface. Remedy: let the solution slide along the surface "
        "(daedal.hybrid.Filippov), or switch with hysteresis."
    )


def too_many(count: int, t: float) -> str:
    return (
        f"{count} transitions were taken up to t = {t:.10g}, as many as max_events allows. Remedy: check "
        "sol.events for transitions in too rapid succession, or raise max_events."
    )


def refused(name: str | None, source: str, target: str, t: float, reason: str, *, at_start: bool = False) -> str:
    """Message on a transition into a mode whose equations do not hold after it."""
    what = reason.split("\nRemedy")[0]
    if at_start:
        return (
            f"The transition '{name}' from '{source}' fires at once, at t = {t:.10g}, and leads to a state that "
            f"violates the equations of mode '{target}'. {what}\nRemedy: begin '{source}' on the other side of the "
            f"guard of '{name}', or begin in '{target}' with values that satisfy its equations."
        )
    return (
        f"The transition '{name}' from '{source}' at t = {t:.10g} leads to a state that violates the equations of mode "
        f"'{target}'. {what}\nRemedy: give '{name}' a reset onto the constraints of '{target}' (for velocities an "
        "impact), or project=True, which moves the state onto them."
    )
