"""Compiled projection of a mechanism and its sensitivities onto the constraints after every step."""

from daedal.kernels.callbacks import CALLBACK, UNEVALUABLE, fetch, is_given, nothing
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import INTEGER, Struct, floats, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.system import HOOK, HOOK_CHANGED
from daedal.kernels.vectors import largest

_NEGLIGIBLE = 1e-9  # relative size of a Newton correction after which the next one, about its square, is omitted
_MOST_CORRECTIONS = 5

CORRECTIONS = Struct(
    "CORRECTIONS",
    [
        ("n", INTEGER),
        ("leading", INTEGER),  # positions, used by the convergence test of Newton's method
        ("positions", CALLBACK),
        ("velocities", CALLBACK),
        ("sensitivities", CALLBACK),
        ("change", f64["n"]),
    ],
)
"""Functions for corrections of all unknowns: of q, of v and the sensitivities of q, of the sensitivities of v."""


@entry(HOOK)
def correct_all(record, t, h, y):
    """Correct y in place: positions by Newton's method, then the others, by linear equations; returns a status."""
    corrections = record_at(record, CORRECTIONS)
    return _correct_all(corrections, t, floats(y, corrections.n))


@part
def _correct_all(corrections, t, y):
    if is_given(corrections.positions):
        for iteration in range(_MOST_CORRECTIONS):
            status = _add(corrections.positions, corrections, t, y)
            if status != 0:
                return status
            moved = largest(corrections.change[: corrections.leading])
            if moved <= _NEGLIGIBLE * largest(y[: corrections.leading]):
                break
            if iteration == _MOST_CORRECTIONS - 1:
                return UNEVALUABLE
    status = _add(corrections.velocities, corrections, t, y)
    if status != 0:
        return status
    status = _add(corrections.sensitivities, corrections, t, y)
    return HOOK_CHANGED if status == 0 else status


@part
def _add(function, corrections, t, y):
    change = corrections.change
    status = fetch(function, t, y, nothing(), nothing(), change)
    if status == 0:
        for i in range(corrections.n):
            y[i] += change[i]
    return status
