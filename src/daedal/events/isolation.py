"""Isolation of the first zero of switching functions that depend only on time, in compiled code."""

from daedal.events.roots import begin, locate
from daedal.events.switching import ROOTS
from daedal.kernels.compilation import entry
from daedal.kernels.records import float_rows, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import SYSTEM

MOST_BOXES = 1_000_000
"""Maximum number of pieces examined for one zero, which takes about half a second. Chosen."""
WORDS = 3
"""Length of the workspace, without its two numbers for each unknown."""


@entry(i64(i64, i64, f64, f64, i64))
def first_zero(system_address, roots_address, t, end, memory):
    """The first event in (t, end] of a state at rest, treated as a single step.

    Writes the time to `memory`; returns 1 if there is an event, 0 if not, or -1 if a function cannot be evaluated.
    """
    system, roots = record_at(system_address, SYSTEM), record_at(roots_address, ROOTS)
    result, psi, phi = floats(memory, 1), floats(memory + 8, 2), float_rows(memory + 24, 2, roots.size)
    psi[0], psi[1] = 1.0, 2.0
    if begin(system, roots, t, end, psi, phi, 1) != 0:
        return -1
    found, time, status = locate(system, roots, t, end, end, psi, phi, 1)
    result[0] = time
    return -1 if status != 0 else 1 if found else 0
