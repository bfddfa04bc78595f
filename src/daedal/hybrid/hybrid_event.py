"""What happened in a run through modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True)
class HybridEvent:
    """Something that happened in a run through modes.

    Attributes
    ----------
    t : float
        When.
    name : str
        Of the transition, or of the event.
    kind : str
        ``"transition"``; ``"immediate"``, a transition at the very start of its mode; ``"zeno"``, one at a point of
        accumulation; ``"not taken"``, one that fired together with another before it in the list; ``"event"``, an event
        that was given to :func:`daedal.solve`; ``"switch"``, ``"slides"`` and ``"leaves"``, a hidden switch of the
        mode's equations.
    source, target : str or None
        The mode that ended and the one that began; None if the run ended, or nothing changed.
    y, y_after : numpy.ndarray
        The stacked state before and after: (q, v, r) of a mechanical system, (y, z) of a semi-explicit problem.
    direction : int
        Of the change of sign of the guard.
    sensitivity : dict or None
        Derivatives of the time of a transition {parameter: dt/dp}, in a run with sensitivities.
    """

    t: float
    name: str
    kind: str
    source: str
    target: str | None
    y: np.ndarray
    y_after: np.ndarray | None = None
    direction: int = 0
    sensitivity: Any = None
    columns: ClassVar[tuple[str, ...]] = ("t", "name", "kind", "source", "target")  # of a table
