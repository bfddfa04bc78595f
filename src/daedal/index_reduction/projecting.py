"""Accepted steps brought back to all equations of a prolonged system, in compiled code."""

from daedal.index_reduction.points import EQUATIONS, project_point
from daedal.kernels.compilation import entry
from daedal.kernels.records import ADDRESS, INTEGER, Struct, float_rows, floats, record_at
from daedal.kernels.system import HOOK, HOOK_CHANGED, HOOK_DONE, HOOK_STOP, call_hook

PROJECTING = Struct(
    "PROJECTING",
    [
        ("equations", ADDRESS),
        ("rows", INTEGER),
        ("fixed", ADDRESS),  # combinations of the unknowns that stay as they are, by rows
        ("scale", ADDRESS),
        ("before", ADDRESS),
        ("watch", ADDRESS),  # over the selection, 0 for none
        ("watch_record", ADDRESS),
    ],
)


@entry(HOOK)
def projecting_hook(record, t, h, y):
    """Project an accepted step; where the watch stops the run, it is left to the next selection."""
    projecting = record_at(record, PROJECTING)
    if projecting.watch != 0:
        signal = call_hook(projecting.watch, projecting.watch_record, t, h, y)
        if signal >= HOOK_STOP:
            return signal
    equations = record_at(projecting.equations, EQUATIONS)
    n = equations.n
    point, before = floats(y, n), floats(projecting.before, n)
    for i in range(n):
        before[i] = point[i]
    fixed = float_rows(projecting.fixed, projecting.rows, n)
    if project_point(equations, t, point, fixed, floats(projecting.scale, n)):
        return HOOK_CHANGED
    for i in range(n):
        point[i] = before[i]
    return HOOK_DONE
