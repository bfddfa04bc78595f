"""What is asked of an ensemble: the arguments of :func:`daedal.solve_many`, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from daedal.drive.request import Settings
from daedal.ensembles.layout import StateLayout


@dataclass(frozen=True, eq=False)
class EnsembleRequest:
    """What all members have in common; starts and parameters come in chunks.

    Attributes
    ----------
    problem : object
        The problem, or a function of the parameters that returns it.
    settings : Settings
        Method, formulation, tolerances, events: those of :func:`daedal.prepare`.
    span : (float, float)
    t_eval : numpy.ndarray or None
        The output times that the user asked for.
    t_stop : float or None
    outputs : tuple of str, callable or None
        What is kept of each run, by name or as a function of its solution; None for the states.
    keeps_states : bool
        Whether the states at `t_eval` are kept.
    keeps_events : bool
        Whether the events of all members are kept.
    member_timeout : float or None
        Seconds that one run may take.
    """

    problem: Any
    settings: Settings
    span: tuple[float, float]
    t_eval: np.ndarray | None = None
    t_stop: float | None = None
    outputs: tuple[str, ...] | Callable[[Any], Any] | None = None
    keeps_states: bool = True
    keeps_events: bool = False
    member_timeout: float | None = None
    layout: StateLayout | None = field(default=None)

    @property
    def is_factory(self) -> bool:
        """Whether the problem is a function of the parameters."""
        return callable(self.problem)

    @property
    def needs_solutions(self) -> bool:
        """Whether an output is computed of the whole solution, so that arrays of states are not enough."""
        if self.outputs is None:
            return False
        return callable(self.outputs) or self.layout is None or any(n not in self.layout.names for n in self.outputs)

    @cached_property
    def times(self) -> np.ndarray:
        """The times at which states are computed: `t_eval`, and the end where it is not among them."""
        end = np.array([self.span[1]])
        if self.t_eval is None or self.t_eval.size == 0:
            return end
        return self.t_eval if self.t_eval[-1] == end[0] else np.concatenate([self.t_eval, end])

    @property
    def n_times(self) -> int:
        """How many times the user asked for."""
        return 0 if self.t_eval is None else self.t_eval.size
