"""Switching functions for kernels: the record, and their values on the polynomial of a step."""

import numpy as np

from daedal.kernels.callbacks import CALLBACK, call_with, nothing, repeat_in_python
from daedal.kernels.compilation import inlined, part
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, at, floats, optional
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import SYSTEM
from daedal.kernels.vectors import copy

_RESOLUTION = 8.0 * np.finfo(float).eps

ROOTS_LOCATED, LAYER_WATCHED, BY_SHAPE = 0, 1, 2  # location method of a function
MUTED = 2  # replaces the direction of a function that cannot fire now
STOPPING = 2  # marks, multiplied by the direction of the change, a function that fires and ends the run

_OPTIONS = ("direction", "terminal", "count", "interior", "touch", "location")
_INTEGERS = (*_OPTIONS, "side", "crooked", "aim", "fired", "held_side")
_FLOATS = ("tolerance", "delta", "low", "high", "last", "middle", "trial", "start", "before", "tried", "held_for")
_TINY = 1e-300

SEARCH = Struct(
    "SEARCH",
    [
        ("n", INTEGER),
        ("enclosure", ADDRESS),  # first in the chain of ENCLOSURE records
        *[(name, i64["n"]) for name in ("enclosed", "verdicts", "doubtful", "rough")],
        ("doubt", f64["n"]),  # time from which on an enclosed function is undecided or sampled
        *[(name, f64["n"]) for name in ("begin", "end")],
        ("doubts", INTEGER),  # number of undecided functions
        ("most_boxes", INTEGER),  # maximum number of pieces in one search
        ("further_boxes", INTEGER),  # maximum number of pieces after an undecided search
        ("boxes", INTEGER),  # number of pieces so far
        ("depth", INTEGER),
        ("ends", f64["depth"]),
        ("stack", f64["depth", "n"]),
    ],
)
"""Data of the search for zeros by enclosures, and the places at which it was undecided."""

ROOTS = Struct(
    "ROOTS",
    [
        ("n", INTEGER),
        ("size", INTEGER),  # length of the state
        ("functions", CALLBACK),
        ("t_end", FLOAT),  # end of the run
        ("t_begin", FLOAT),  # start of the run
        ("held", INTEGER),  # whether some functions have a fixed sign for a time
        ("encloses", INTEGER),  # whether some functions are enclosed
        ("search", at(SEARCH)),
        *[(name, i64["n"]) for name in _INTEGERS],
        *[(name, f64["n"]) for name in _FLOATS],
        ("y", f64["size"]),
        ("yp", f64["size"]),
        # for functions monitored before a step is accepted
        ("watched", INTEGER),  # number of monitored functions
        ("system", at(SYSTEM)),
        ("slope", optional(f64["size"])),  # y' at the end of the step
        ("inner", ADDRESS),  # another hook, which is called first
        ("inner_record", ADDRESS),
        ("t_start", FLOAT),
        ("t_before", FLOAT),
        ("t_tried", FLOAT),
        ("tries", INTEGER),
    ],
)
"""The switching functions s(t, y, y'), their location methods, and their values at several points.

Until the time ``held_for`` after the start, a function has the sign ``held_side``, independent of round-off.
``low`` and ``high`` belong to the ends of the interval that is searched, ``last`` to the end of the step, ``start``
and ``before`` to the last two accepted points and ``tried`` to the point that is about to be accepted.
"""


@inlined
def resolution(t, h):
    """Smallest distinguishable distance of times: 8 u (|t| + |h|)."""
    return _RESOLUTION * (abs(t) + abs(h))


@inlined
def same_sign(a, b):
    """Whether both are positive or both are negative."""
    return (a > 0.0 and b > 0.0) or (a < 0.0 and b < 0.0)


@part
def evaluate_at(system, roots, t, y, yp, values):
    """values = s(t, y, y'); NaN is reported in Python, with the name of the function."""
    n = roots.size
    result = floats(roots.functions.block + 16 * n, roots.n)
    system.event_evaluations += 1
    status, bad = call_with(roots.functions, t, y, yp, nothing()), False
    for i in range(roots.n):
        bad = bad or np.isnan(result[i])
    if status == 0 and bad:
        status = repeat_in_python(roots.functions, t, y, yp, nothing())
    copy(values, result)
    if roots.held != 0:
        _hold_signs(roots, abs(t - roots.t_begin), values)
    return status


@part
def _hold_signs(roots, elapsed, values):
    """Fix the signs of functions for a time after the start."""
    held_side, held_for = roots.held_side, roots.held_for
    for i in range(roots.n):
        if held_side[i] != 0 and elapsed <= held_for[i]:
            values[i] = held_side[i] * max(abs(values[i]), _TINY)


@part
def evaluate_on(system, roots, t, t_end, psi, phi, k, values):
    """values = s(t, y(t), y'(t)) on the polynomial of the last step."""
    y, yp = roots.y, roots.yp
    newton_polynomial(t, t_end, psi, phi, k, y, yp)
    return evaluate_at(system, roots, t, y, yp, values)
