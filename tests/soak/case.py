"""A case is a script with an expectation; its verdict is what became of it.

A script defines ``found()``, which runs Daedal and returns numbers, and

* ``expected`` and ``allowed``: these numbers, and the error of each that tolerance and conditioning account for; or
* ``must_say``: a pattern. The case is a mistake; an error or a warning must match, with its words on one line. With
  ``expected`` as well, the pattern is what may be said instead.

``found`` raises AssertionError with the message of a run without success.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
import traceback
import warnings
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

import daedal

LIMIT = 300.0
"""The largest error, in multiples of what is allowed, of a run that counts as right."""

KINDS = ("right", "named", "warned", "missed", "refused", "wrong", "crashed", "hung")
"""What a case may be.

right     the values are
named     a mistake that is named, or a function that is not traced, with its reason
warned    the values are right, with a warning
missed    the values are wrong, with a warning
refused   a well-posed problem with an error in words
wrong     the values are wrong and nothing is said of it
crashed   an exception that is none of Daedal's, or the end of the process
hung      more than `soak.runner.PATIENCE` seconds of processor time
"""


@dataclass(frozen=True)
class Verdict:
    """How a case ended; ``ratio`` is its error in multiples of what is allowed."""

    seed: int
    label: str
    kind: str
    ratio: float = float("nan")
    steps: int = 0
    seconds: float = 0.0
    words: str = ""
    warned: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Script:
    """A case as a text that runs by itself, with ``tests`` in the path where it imports from there."""

    label: str
    source: str

    def judged(self, seed: int) -> Verdict:
        """The script executed and its numbers compared."""
        begun = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)
            kind, ratio, words = _ended(self.source, f"<{self.label}>", caught)
        notes = [str(note.message) for note in caught]
        return Verdict(seed, self.label, kind, ratio, 0, time.perf_counter() - begun, words, notes)


def _ended(source: str, name: str, caught: list) -> tuple[str, float, str]:
    module = sys.modules["case"] = ModuleType("case")
    names = vars(module)
    try:
        exec(compile(source, name, "exec"), names)
        values = names["found"]()
    except Exception as error:
        return _raised(error, names.get("must_say"), caught)
    pattern = names.get("must_say")
    notes = " | ".join(str(note.message) for note in caught)
    if pattern is not None and "expected" not in names:
        named = re.search(pattern, notes) is not None
        return "named" if named else "wrong", float("nan"), f"gave {_short(values)}; warned: {notes or 'no'}"
    expected, allowed = np.asarray(names["expected"], dtype=float), np.asarray(names["allowed"], dtype=float)
    error = np.abs(np.asarray(values, dtype=float) - expected) / allowed
    ratio = float(np.max(np.where(np.isnan(error), np.inf, error), initial=0.0))
    if ratio <= LIMIT:
        return "warned" if notes else "right", ratio, notes
    words = f"gave {_short(values)}, expected {_short(expected)}"
    return "missed" if notes else "wrong", ratio, f"{words}. {notes}"


def _raised(error: Exception, pattern: str | None, caught: list) -> tuple[str, float, str]:
    """An error of Daedal, or of the user's function where the pattern asks for it, is one in words."""
    words = f"{type(error).__name__}: {error}".replace("\n", " ")
    if pattern is not None:
        notes = " | ".join([words, *(str(note.message) for note in caught)])
        if re.search(pattern, notes):
            return "named", float("nan"), words
    if isinstance(error, (daedal.DaedalError, AssertionError)):
        return "refused" if pattern is None else "wrong", float("nan"), words
    place = traceback.extract_tb(error.__traceback__)[-1]
    return "crashed", float("nan"), f"{words} at {place.filename.rpartition('daedal/')[2]}:{place.lineno}"


def _short(values) -> str:
    with contextlib.suppress(Exception):
        return np.array2string(np.asarray(values, dtype=float).ravel()[:6], precision=5, separator=", ")
    return repr(values)[:80]
