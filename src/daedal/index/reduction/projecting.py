"""Projection of accepted steps onto all equations of a prolonged system, in compiled code."""

from daedal.index.reduction.points import EQUATIONS, project_point
from daedal.kernels.compilation import entry
from daedal.kernels.records import ADDRESS, Struct, at, floats, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.system import HOOK, HOOK_CHANGED, HOOK_DONE, HOOK_STOP, call_hook

PROJECTING = Struct(
    "PROJECTING",
    [
        ("equations", at(EQUATIONS)),
        ("fixed", f64["equations.n - equations.m", "equations.n"]),  # combinations of unknowns that are fixed
        ("scale", f64["equations.n"]),
        ("before", f64["equations.n"]),
        ("watch", ADDRESS),  # watch for the selection; 0 if there is none
        ("watch_record", ADDRESS),
    ],
)


@entry(HOOK)
def projecting_hook(record, t, h, y):
    """Project an accepted step, unless the watch stops the run because another selection is needed."""
    projecting = record_at(record, PROJECTING)
    if projecting.watch != 0:
        signal = call_hook(projecting.watch, projecting.watch_record, t, h, y)
        if signal >= HOOK_STOP:
            return signal
    equations, before = projecting.equations, projecting.before
    n, point = equations.n, floats(y, equations.n)
    for i in range(n):
        before[i] = point[i]
    if project_point(equations, t, point, projecting.fixed, projecting.scale):
        return HOOK_CHANGED
    for i in range(n):
        point[i] = before[i]
    return HOOK_DONE
